"""Searches that run are asked for only when something of them has changed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.engine.elastic_blast.followed import FRESH_SECONDS, UNFOLLOWED_SECONDS, Followed
from blastyard.engine.elastic_blast.sight import Sight


class Namespace:
    """What is asked, and what is followed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.signs: dict[str, object] = {}
        self.is_followed = True
        self.is_silent = False
        self.asked: list[set[str]] = []
        self.followed = Followed(self.look_at, self.sign, lambda: self.seconds)

    def look_at(self, names: Iterable[str]) -> dict[str, Sight]:
        if self.is_silent:
            raise Unavailable("cluster_unavailable", "no answer")
        self.asked.append(set(names))
        return {name: Sight(name) for name in names}

    def sign(self, name: str) -> object:
        return self.signs.get(name, 0) if self.is_followed else None


@pytest.fixture
def namespace() -> Namespace:
    return Namespace()


def test_looking_again_costs_nothing_while_nothing_changes(namespace: Namespace) -> None:
    for _ in range(100):
        namespace.followed.look("one")

    assert namespace.asked == [{"one"}]


def test_a_change_of_one_search_is_asked_for_and_no_other(namespace: Namespace) -> None:
    for name in ("one", "two"):
        namespace.followed.look(name)
    namespace.signs["two"] = 1
    for name in ("one", "two"):
        namespace.followed.look(name)

    assert namespace.asked == [{"one"}, {"two"}, {"two"}]


def test_now_and_then_all_are_asked_for_at_once(namespace: Namespace) -> None:
    """Whatever is followed may have missed something."""
    names = [f"search-{number}" for number in range(20)]
    for name in names:
        namespace.followed.look(name)
    namespace.asked.clear()
    namespace.seconds += FRESH_SECONDS
    for name in names:
        namespace.followed.look(name)

    assert namespace.asked == [set(names)]


def test_what_is_not_followed_is_asked_for_more_often(namespace: Namespace) -> None:
    namespace.is_followed = False
    namespace.followed.look("one")
    namespace.followed.look("one")
    namespace.seconds += UNFOLLOWED_SECONDS
    namespace.followed.look("one")

    assert len(namespace.asked) == 2


def test_what_is_forgotten_is_not_asked_for_with_others(namespace: Namespace) -> None:
    for name in ("one", "two"):
        namespace.followed.look(name)
    namespace.followed.forget("one")
    namespace.seconds += FRESH_SECONDS
    namespace.followed.look("two")

    assert namespace.asked[-1] == {"two"}


def test_no_answer_is_no_sight(namespace: Namespace) -> None:
    namespace.followed.look("one")
    namespace.signs["one"] = 1
    namespace.is_silent = True
    with pytest.raises(Unavailable):
        namespace.followed.look("one")
