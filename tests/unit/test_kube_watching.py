"""What a watch tells, one event after another, and what breaks it."""

from __future__ import annotations

import msgspec
import pytest
from kube_script import Said, Script, bookmark, event, lease, status

from blastyard.domain.errors import Misconfigured
from blastyard.kube.client import Selection
from blastyard.kube.error import ServerTrouble
from blastyard.kube.outcome import (
    Object,
)
from blastyard.kube.resource import LEASES
from blastyard.kube.watching import Bookmark, Changed, Expired, Gone

# -- watches -------------------------------------------------------------------------------------


def test_a_watch_tells_what_happens_in_its_order() -> None:
    told = [
        event("ADDED", lease(version="6")),
        event("MODIFIED", lease(version="7")),
        b"",
        bookmark("8"),
        event("DELETED", lease(version="9")),
    ]
    script = Script(Said(told))
    watching = script.client().watch(LEASES, Object, "5", Selection("a=b"), 240)

    assert list(watching.events(90)) == [
        Changed(lease(version="6"), "6"),
        Changed(lease(version="7"), "7"),
        Bookmark("8"),
        Gone(lease(version="9"), "9"),
    ]
    assert script.calls[0].query == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "240",
        "labelSelector": "a=b",
    }


def test_a_watch_that_is_too_old_says_so_at_once_or_in_an_event() -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    at_once = Said(status=410, body=msgspec.json.encode(gone))
    later = Said([event("ADDED", lease()), event("ERROR", gone), event("ADDED", lease())])

    assert list(Script(at_once).client().watch(LEASES, Object, "1").events(1)) == [Expired()]
    assert list(Script(later).client().watch(LEASES, Object, "1").events(1)) == [
        Changed(lease(), "5"),
        Expired(),
    ]


def test_other_errors_in_a_watch_are_raised_as_what_they_are() -> None:
    busy = {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 4}}
    inside = Script(Said([event("ERROR", busy)])).client().watch(LEASES, Object, "1")
    with pytest.raises(ServerTrouble) as caught:
        list(inside.events(1))
    assert (caught.value.status, caught.value.retry_after) == (429, 4)

    refused = Said(status=403, body=status(403, "Forbidden").body)
    with pytest.raises(Misconfigured, match="watch leases"):
        Script(refused).client().watch(LEASES, Object, "1")
    assert refused.closed


@pytest.mark.parametrize(
    "line", [b"{", b"<html>", event("ADDED", {}), event("ADDED", lease())[:-9], b'{"type":"ADDED"}']
)
def test_an_event_that_cannot_be_read_breaks_the_watch(line: bytes) -> None:
    watching = Script(Said([line])).client().watch(LEASES, Object, "1")

    with pytest.raises(ServerTrouble, match="cannot be read"):
        list(watching.events(1))
