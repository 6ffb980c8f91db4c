"""What an API server tells those who watch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Call, Stream
from blastyard.testing.contract_api import ApiContract, ApiUnderTest, Caller, lease

QUIET = 10.0
"""Seconds of silence after which a test gives up on a watch."""


class Heard:
    """One event."""

    def __init__(self, line: bytes) -> None:
        event: dict[str, Any] = msgspec.json.decode(line)
        self.type: str = event["type"]
        self.document: dict[str, Any] = event["object"]

    @property
    def said(self) -> tuple[str, str, str]:
        """The event's type, the object's name, and who holds it."""
        spec = self.document["spec"]
        return self.type, self.document["metadata"]["name"], spec.get("holderIdentity", "")

    @property
    def version(self) -> str:
        """The resourceVersion that goes with it."""
        version: str = self.document["metadata"]["resourceVersion"]
        return version


class _WatchedLeases(ApiContract):
    """Watches of Leases, of which an empty namespace has none."""

    @pytest.fixture
    def leases(self, api: ApiUnderTest) -> Caller:
        """Leases."""
        return Caller(api, "leases")

    @pytest.fixture
    def opened(self, api: ApiUnderTest) -> Iterator[Opener]:
        """Opens watches, which are closed at the end."""
        opener = Opener(api)
        yield opener
        for stream in opener.streams:
            stream.close()


class WatchContract(_WatchedLeases):
    """What a watch tells, and how it ends."""

    def test_a_watch_tells_what_happens_after_its_version(
        self, leases: Caller, opened: Opener
    ) -> None:
        leases.post(lease("early", {}))
        begin = leases.list().version
        stream = opened.at(begin)
        made = leases.post(lease("a", {"holderIdentity": "1"}))
        changed = leases.patch("a", {"spec": {"holderIdentity": "2"}})
        leases.delete("a")

        events = heard(stream, 3)

        assert [event.said for event in events] == [
            ("ADDED", "a", "1"),
            ("MODIFIED", "a", "2"),
            ("DELETED", "a", "2"),
        ]
        assert [event.version for event in events[:2]] == [made.version, changed.version]
        assert events[0].document == made.document

    def test_a_watch_tells_first_what_happened_before_it_was_opened(
        self, leases: Caller, opened: Opener
    ) -> None:
        begin = leases.list().version
        leases.post(lease("a", {"holderIdentity": "1"}))
        leases.delete("a")

        events = heard(opened.at(begin), 2)

        assert [event.said for event in events] == [("ADDED", "a", "1"), ("DELETED", "a", "1")]

    def test_a_deletion_has_a_version_of_its_own(self, leases: Caller, opened: Opener) -> None:
        made = leases.post(lease("a", {}))
        leases.delete("a")

        (event,) = heard(opened.at(made.version), 1)

        assert event.type == "DELETED"
        assert int(event.version) > int(made.version)
        assert event.document["metadata"]["uid"] == made.uid
        assert int(leases.list().version) >= int(event.version)

    def test_the_mark_of_a_deletion_is_a_change(self, leases: Caller, opened: Opener) -> None:
        made = leases.post(lease("a", {}, finalizers=["blastyard.test/held"]))
        leases.delete("a")
        leases.patch("a", {"metadata": {"finalizers": None}})

        marked, gone = heard(opened.at(made.version), 2)

        assert (marked.type, gone.type) == ("MODIFIED", "DELETED")
        assert "deletionTimestamp" in marked.document["metadata"]

    def test_a_write_that_changes_nothing_is_not_told(self, leases: Caller, opened: Opener) -> None:
        made = leases.post(lease("a", {"holderIdentity": "1"}))
        leases.patch("a", {"spec": {"holderIdentity": "1"}})
        leases.post(lease("b", {}))

        (event,) = heard(opened.at(made.version), 1)

        assert event.said == ("ADDED", "b", "")

    def test_what_enters_and_leaves_a_selection_is_added_and_deleted(
        self, leases: Caller, opened: Opener
    ) -> None:
        begin = leases.list().version
        leases.post(lease("a", {"holderIdentity": "0"}))
        for step, label in enumerate(("in", "in", "out", "in"), 1):
            labels = {"is": label}
            changed = {"metadata": {"labels": labels}, "spec": {"holderIdentity": str(step)}}
            leases.patch("a", changed)
        leases.delete("a")

        events = heard(opened.at(begin, labelSelector="is=in"), 5)

        assert [event.said for event in events] == [
            ("ADDED", "a", "1"),
            ("MODIFIED", "a", "2"),
            ("DELETED", "a", "2"),  # as it was when it was selected
            ("ADDED", "a", "4"),
            ("DELETED", "a", "4"),
        ]
        versions = [int(event.version) for event in events]
        assert versions == sorted(set(versions))

    def test_one_object_can_be_watched(self, leases: Caller, opened: Opener) -> None:
        begin = leases.list().version
        for name in ("a", "b"):
            leases.post(lease(name, {}))

        (event,) = heard(opened.at(begin, fieldSelector="metadata.name=b"), 1)

        assert event.said == ("ADDED", "b", "")

    @pytest.mark.parametrize("version", ["", "0"])
    def test_a_watch_of_no_version_tells_first_what_is_there(
        self, leases: Caller, opened: Opener, version: str
    ) -> None:
        for name in ("b", "a"):
            leases.post(lease(name, {}))

        stream = opened.at(version)
        leases.post(lease("c", {}))

        events = heard(stream, 3)
        assert {event.said for event in events[:2]} == {("ADDED", "a", ""), ("ADDED", "b", "")}
        assert events[2].said == ("ADDED", "c", "")

    def test_bookmarks_that_are_allowed_tell_when_all_is_told(
        self, leases: Caller, opened: Opener
    ) -> None:
        made = leases.post(lease("a", {}))

        events = heard(opened.at("0", allowWatchBookmarks="true"), 2)

        assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
        assert int(events[1].version) >= int(made.version)
        assert events[1].document["kind"] == "Lease"
        assert "name" not in events[1].document["metadata"]

    def test_a_watch_ends_at_its_time(self, leases: Caller, opened: Opener) -> None:
        stream = opened.at(leases.list().version, timeoutSeconds="1")

        assert list(stream.lines(QUIET)) == []

    def test_a_watch_that_hears_nothing_for_long_enough_says_so(
        self, leases: Caller, opened: Opener
    ) -> None:
        stream = opened.at(leases.list().version)

        with pytest.raises(Unavailable) as error:
            list(stream.lines(0.2))
        assert error.value.code == "cluster_unavailable"

    def test_a_watch_from_a_version_to_come_is_silent(self, leases: Caller, opened: Opener) -> None:
        version = str(int(leases.list().version) + 1_000_000)
        stream = opened.at(version, timeoutSeconds="1", allowWatchBookmarks="true")
        leases.post(lease("a", {}))

        assert list(stream.lines(QUIET)) == []

    def test_another_thread_can_close_a_watch(self, leases: Caller, opened: Opener) -> None:
        stream = opened.at(leases.list().version)
        listening = Event()
        told: list[bytes] = []

        def listen() -> None:
            for line in stream.lines(QUIET):
                told.append(line)
                listening.set()
            told.append(b"end")

        thread = Thread(target=listen)
        thread.start()
        leases.post(lease("a", {}))
        assert listening.wait(QUIET)
        stream.close()
        thread.join(QUIET / 2)

        assert not thread.is_alive()
        assert len(told) == 2
        assert told[1] == b"end"

    @pytest.mark.parametrize(
        ("version", "selectors", "status"),
        [
            ("0", {"labelSelector": "a in ("}, 400),
            ("0", {"fieldSelector": "spec.x=y"}, 400),
            ("abc", {}, 500),
        ],
    )
    def test_a_watch_that_cannot_be_understood_is_not_opened(
        self, opened: Opener, version: str, selectors: dict[str, str], status: int
    ) -> None:
        stream = opened.at(version, **selectors)

        assert stream.status == status
        assert msgspec.json.decode(stream.body)["code"] == status
        assert list(stream.lines(QUIET)) == []


class ForgetfulWatchContract(_WatchedLeases):
    """What a watch tells when the API server has forgotten what it asks for."""

    def test_it_cannot_be_watched_from_a_version_that_is_forgotten(
        self, api: ApiUnderTest, leases: Caller, opened: Opener
    ) -> None:
        begin = leases.list().version
        leases.post(lease("a", {}))
        leases.delete("a")
        api.forget()

        stream = opened.at(begin)
        events = [Heard(line) for line in stream.lines(QUIET)]

        assert stream.status == 200
        assert [event.type for event in events] == ["ERROR"]
        told = events[0].document
        assert (told["kind"], told["code"], told["reason"]) == ("Status", 410, "Expired")


class Opener:
    """Opens watches of Leases."""

    def __init__(self, api: ApiUnderTest) -> None:
        self._wire = api.wire
        self._path = Caller(api, "leases").collection
        self.streams: list[Stream] = []

    def at(self, version: str, **query: str) -> Stream:
        """Watch from a version on."""
        whole = {"watch": "1", "timeoutSeconds": "60", "resourceVersion": version, **query}
        if not version:
            del whole["resourceVersion"]
        stream = self._wire.stream(Call("GET", self._path, whole))
        self.streams.append(stream)
        return stream


def heard(stream: Stream, count: int) -> list[Heard]:
    """The next events, of which there must be so many."""
    assert stream.status == 200
    events = [Heard(line) for line in islice(stream.lines(QUIET), count)]
    assert len(events) == count
    return events
