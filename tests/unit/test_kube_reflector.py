"""Keeping up with a kind: what a stream leaves out is listed, and nothing ends the loop."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from kube_script import Said, Script, answer, bookmark, event, lease, page, status

from blastyard.kube.client import Listing, Selection
from blastyard.kube.error import ServerTrouble
from blastyard.kube.outcome import Object
from blastyard.kube.reflector import Pace, Reflector, Source, Time
from blastyard.kube.resource import LEASES

RESET = ServerTrouble("the connection was reset", "")
EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})


class Play:
    """A reflector on answers given beforehand; it is closed when they are used up."""

    def __init__(self, *answers: Any, pace: Pace | None = None, sources: Any = None) -> None:
        self.script = Script(*answers)
        self.now = 0.0
        self.told: list[str] = []
        self.pauses: list[float] = []
        self.following: list[bool] = []
        self.fails_on: str | None = None
        source = sources or Source(LEASES, Object)
        time = Time(lambda: self.now, self._pause, Random(1), pace or Pace())
        self.reflector: Reflector[Object] = Reflector(self._client(), source, self, time)

    def run(self) -> Play:
        self.reflector.run()
        return self

    @property
    def asked(self) -> list[str]:
        """Lists, and the versions that streams were asked to go on from."""
        return [
            call.query.get("resourceVersion", "list")
            for call in self.script.calls
            if "continue" not in call.query
        ]

    def listed(self, listing: Listing[Object]) -> None:
        self._tell("=" + ",".join(item["metadata"]["name"] for item in listing.items))

    def changed(self, item: Object, at: float) -> None:
        self._tell("+" + item["metadata"]["name"])

    def gone(self, item: Object, version: str, at: float) -> None:
        self._tell(f"-{item['metadata']['name']}@{version}")

    def _tell(self, what: str) -> None:
        self.told.append(what)
        if what == self.fails_on:
            self.fails_on = None
            raise ValueError("a mistake of the sink")

    def _pause(self, seconds: float) -> None:
        self.following.append(self.reflector.is_following)
        self.pauses.append(seconds)
        self.now += seconds

    def _client(self) -> Any:
        play = self

        class Closing:
            """Closes the reflector when the script has ended, and lets time pass in streams."""

            def send(self, call: Any) -> Any:
                return play.script.send(call) if self._goes_on() else answer({}, 503)

            def stream(self, call: Any) -> Any:
                if not self._goes_on():
                    return Said()
                said = play.script.stream(call)
                play.now += getattr(said, "lasts", 100.0)
                return said

            def _goes_on(self) -> bool:
                if not play.script.answers:
                    play.reflector.close()
                return bool(play.script.answers)

            def close(self) -> None: ...

        from blastyard.kube.client import Client  # noqa: PLC0415

        return Client(Closing(), "lab", lambda: play.now)


def test_it_lists_and_follows_and_goes_on_where_a_stream_ended() -> None:
    play = Play(
        page(["a", "b"], "9"),
        Said([event("ADDED", lease("c", "10")), event("DELETED", lease("a", "11"))]),
        Said([event("MODIFIED", lease("b", "12")), bookmark("20")]),
        Said([]),
    ).run()

    assert play.told == ["=a,b", "+c", "-a@11", "+b"]
    assert play.asked == ["list", "9", "11", "20"]
    assert play.pauses == []
    assert play.reflector.restarts == 0


def test_streams_are_asked_for_with_bookmarks_and_a_near_end() -> None:
    """One from which nothing comes any more is noticed by its end that does not come either."""
    play = Play(page([], "9"), Said([]), Said([]), pace=Pace(resync=150, quiet=77)).run()
    first, second = (call.query for call in play.script.calls[1:3])

    assert first["allowWatchBookmarks"] == "true"
    for query in (first, second):
        assert int(query["timeoutSeconds"]) < Pace().quiet


def test_a_stream_is_asked_to_end_before_the_resync() -> None:
    play = Play(page([], "9"), Said([]), pace=Pace(resync=15, quiet=77)).run()

    assert int(play.script.calls[1].query["timeoutSeconds"]) == 16


def test_the_quiet_limit_is_that_of_the_pace() -> None:
    said = Said([])
    Play(page([], "9"), said, pace=Pace(quiet=77)).run()

    assert said.quiet == 77
    assert said.closed


def test_the_list_may_leave_out_more_than_the_watch() -> None:
    source = Source(LEASES, Object, Selection("a=b", "c=d"), Selection("a=b"))
    play = Play(page([], "9"), Said([]), sources=source).run()
    listed, watched = (call.query for call in play.script.calls)

    assert (listed["labelSelector"], listed["fieldSelector"]) == ("a=b", "c=d")
    assert watched["labelSelector"] == "a=b"
    assert "fieldSelector" not in watched


def test_a_broken_stream_is_taken_up_where_it_broke() -> None:
    play = Play(
        page(["a"], "9"), Said([event("ADDED", lease("b", "10")), RESET]), Said([bookmark("11")])
    ).run()

    assert play.asked == ["list", "9", "10"]
    assert play.told == ["=a", "+b"]
    assert play.following == [False]
    assert play.reflector.restarts == 1


def test_what_was_forgotten_is_listed_anew_after_a_pause() -> None:
    gone = Said(status=410, body=status(410, "Expired").body)
    play = Play(
        page(["a"], "9"), Said([EXPIRED]), page(["b"], "30"), gone, page(["c"], "40"), Said([])
    ).run()

    assert play.told == ["=a", "=b", "=c"]
    assert play.asked == ["list", "9", "list", "30", "list", "40"]
    assert len(play.pauses) == 2
    assert play.following == [False, False]


def test_a_stream_that_broke_without_a_word_is_no_ground_to_go_on_from() -> None:
    """A server that was restored to an earlier state is silent about later versions."""
    play = Play(page(["a"], "90"), Said([RESET]), page(["b"], "40"), Said([])).run()

    assert play.asked == ["list", "90", "list", "40"]
    assert play.told == ["=a", "=b"]


def test_a_server_that_is_down_is_asked_again_in_growing_and_bounded_pauses() -> None:
    pace = Pace(shortest_pause=0.2, longest_pause=5.0, resync=1e9)
    play = Play(page([], "9"), Said([bookmark("10")]), *[RESET] * 40, Said([]), pace=pace).run()

    assert play.asked == ["list", "9", *["10"] * 41]
    assert len(play.pauses) == 40
    assert 0.2 <= play.pauses[0] <= 0.6
    assert all(0.2 <= pause <= 5.0 for pause in play.pauses)
    assert max(play.pauses) > 3
    assert len(set(play.pauses)) > 20  # drawn, so that clients come back at different times


def test_pauses_are_short_again_after_a_stream_that_told_something() -> None:
    play = Play(
        *[RESET] * 20, page([], "9"), Said([bookmark("10"), RESET]), Said([]), pace=Pace(resync=1e9)
    ).run()

    assert max(play.pauses[:20]) > 5
    assert play.pauses[20] <= 0.6


def test_a_server_that_asks_for_patience_gets_it() -> None:
    throttled = status(429, "TooManyRequests", retryAfterSeconds=30)
    refused = Said(status=429, body=throttled.body)
    play = Play(throttled, page([], "9"), refused, Said([])).run()

    assert [pause >= 30 for pause in play.pauses] == [True, True]


def test_a_server_that_ends_each_stream_at_once_is_not_hammered() -> None:
    streams = [Said([]) for _ in range(5)]
    for stream in streams:
        stream.lasts = 0.01  # type: ignore[attr-defined]
    play = Play(page([], "9"), *streams).run()

    assert len(play.pauses) >= 4


@pytest.mark.parametrize("refusal", [status(403, "Forbidden"), status(401, "Unauthorized")])
def test_a_credential_that_may_not_is_tried_again_and_shown(refusal: Any) -> None:
    play = Play(refusal, refusal)
    play.run()

    assert play.asked == ["list", "list"]
    assert play.reflector.trouble is not None
    assert not play.reflector.is_following


def test_a_mistake_in_taking_in_ends_nothing_and_is_followed_by_a_list() -> None:
    play = Play(
        page(["a"], "9"),
        Said([event("ADDED", lease("b", "10")), event("ADDED", lease("c", "11"))]),
        page(["a", "b", "c"], "11"),
        Said([]),
    )
    play.fails_on = "+b"
    play.run()

    assert play.told == ["=a", "+b", "=a,b,c"]
    assert play.reflector.restarts == 1


def test_it_lists_anew_in_time_whatever_the_streams_say() -> None:
    streams = [Said([bookmark(str(number))]) for number in range(10, 13)]
    play = Play(
        page(["a"], "9"), *streams, page(["b"], "20"), Said([]), pace=Pace(resync=250)
    ).run()

    assert play.asked == ["list", "9", "10", "11", "list", "20"]
    assert play.told == ["=a", "=b"]
    assert play.reflector.restarts == 0


def test_a_stream_with_much_to_tell_does_not_put_off_the_list() -> None:
    endless = Said([event("MODIFIED", lease("a", str(number))) for number in range(10, 50)])
    endless.lasts = 1000.0  # type: ignore[attr-defined]
    play = Play(page(["a"], "9"), endless, page(["b"], "60"), Said([]))
    play.run()

    assert play.told == ["=a", "+a", "=b"]


def test_it_follows_from_the_first_list_on_until_a_stream_breaks() -> None:
    play = Play(page([], "9"), Said([]))
    assert not play.reflector.is_following

    play.run()

    assert play.reflector.is_following


def test_a_loop_that_hangs_is_not_believed_to_follow() -> None:
    play = Play(page([], "9"), Said([]), pace=Pace(quiet=90)).run()

    play.now += 179
    assert play.reflector.is_following
    play.now += 2
    assert not play.reflector.is_following
