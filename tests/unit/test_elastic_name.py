"""Ids of searches in a cluster: valid whatever they are made from, told apart by their tails."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.engine.elastic_blast.name import (
    LONGEST,
    TAIL,
    cluster_name,
    is_cluster_id,
    require_cluster_id,
)

VALID = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
"""A label's value, a part of an object's name, and a key that is lower-cased, all at once."""

texts = st.text(st.characters(), max_size=300)


@given(texts, texts)
def test_every_id_can_be_a_label_a_name_and_a_key(search: str, key: str) -> None:
    name = cluster_name(search, key)

    assert VALID.fullmatch(name.id)
    assert len(name.id) <= LONGEST
    assert (name.search, name.key) == (search, key)
    assert is_cluster_id(name.id)


@given(texts, texts)
def test_the_same_search_has_the_same_id(search: str, key: str) -> None:
    assert cluster_name(search, key) == cluster_name(search, key)


@given(texts, texts, texts, texts)
def test_different_searches_have_different_tails(one: str, key: str, two: str, other: str) -> None:
    if (one, key) != (two, other):
        assert cluster_name(one, key).tail != cluster_name(two, other).tail


@given(st.text("abcdef0123456789", min_size=8, max_size=8), st.lists(texts, unique=True))
def test_searches_alike_in_their_last_eight_characters_get_different_tails(
    tail: str, heads: list[str]
) -> None:
    """Fault R9."""
    tails = {cluster_name(head + tail).tail for head in heads}

    assert len(tails) == len(heads)


@pytest.mark.parametrize(
    "search", ["ABC", "abc", "a_b", "a.b", "-", "", "x" * 300, "Ärger", "寿司", "a\0b", "\ud800"]
)
def test_odd_keys_are_kept_beside_a_name_from_a_hash(search: str) -> None:
    """Fault R9."""
    name = cluster_name(search)

    assert VALID.fullmatch(name.id)
    assert name.search == search


def test_an_id_of_ours_stands_in_the_name() -> None:
    search = str(UUID(int=7))

    assert cluster_name(search, "2").id.startswith(f"{search}-")


def test_attempts_and_children_of_a_search_are_told_apart() -> None:
    names = {cluster_name("s", key).tail for key in ("", "1", "2", "child-1", "child-2")}

    assert len(names) == 5
    assert {len(tail) for tail in names} == {TAIL}


@pytest.mark.parametrize("text", ["", "-a", "a-", "a b", "a,b", "x" * 64, "a)b"])
def test_what_would_select_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be the id"):
        require_cluster_id(text)
