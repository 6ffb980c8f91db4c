"""What happened at the gates between two looks, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from blastyard.cli.gate_status import marker

if TYPE_CHECKING:
    from blastyard.service.view import Shape

_PASSING: Final = frozenset({"now", "silent_seconds", "renewed_at", "until", "estimated_start"})
"""Parts of a shape that change by themselves, while nothing happens."""

Entries = Mapping[str, dict[str, Any]]


def lasting(value: Any) -> Any:
    """A shape without what changes while nothing happens."""
    if isinstance(value, dict):
        return {key: lasting(each) for key, each in value.items() if key not in _PASSING}
    return [lasting(each) for each in value] if isinstance(value, list) else value


def changes(before: Shape, after: Shape) -> list[str]:
    """A sentence for each thing that happened, those of the ledger first."""
    return [
        *_ledger(before, after),
        *_slot(before["submit_slot"], after["submit_slot"]),
        *_running(_by(before, "running"), _by(after, "running"), _by(after, "waiting")),
        *_waiting(_by(before, "waiting"), _by(after, "waiting"), _by(after, "running")),
        *_foreign(before, after),
        *_submitters(_by(before, "submitters", "name"), _by(after, "submitters", "name")),
    ]


def _by(shape: Shape, key: str, name: str = "search") -> Entries:
    return {each[name]: each for each in shape[key]}


def _ledger(before: Shape, after: Shape) -> Iterator[str]:
    if before["ledger"] != after["ledger"]:
        yield {
            "absent": "the ledger is gone",
            "restoring": "the ledger is new; claims are being collected",
            "whole": "the ledger is whole",
        }[after["ledger"]]
    if before["policy_changes"] != after["policy_changes"]:
        known = [tuple(change.items()) for change in before["policy_changes"]]
        for change in after["policy_changes"]:
            if tuple(change.items()) not in known:
                yield f"{change['what']} by {change['by']}"


def _slot(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    if before["holder"] == after["holder"]:
        return
    if after["holder"]:
        yield f"{after['holder']} is inside the submit slot"
    elif after["left_by"]:
        yield f"{after['left_by']} has lost the submit slot"
    else:
        yield "the submit slot is free"


def _running(before: Entries, after: Entries, waiting: Entries) -> Iterator[str]:
    for search, hold in after.items():
        old = before.get(search)
        if old is None or old["fence"] != hold["fence"]:
            what = f"{hold['state']}, fence {hold['fence']}"
            yield f"{search} of {hold['user']} has a run slot ({what})"
        elif old["state"] != hold["state"]:
            yield f"{search} is {hold['state']}"
        if hold["ended"] and not (old and old["ended"]):
            yield f"{search} has ended"
        if old is not None and old["marker"] != hold["marker"]:
            yield f"{search} is shown to others by: {marker(hold['marker'])}"
    for search in sorted(before.keys() - after.keys()):
        fate = "is back in the queue" if search in waiting else "has no run slot any more"
        yield f"{search} {fate}"


def _waiting(before: Entries, after: Entries, running: Entries) -> Iterator[str]:
    for search, place in after.items():
        old = before.get(search)
        if old is None:
            yield f"{search} of {place['user']} waits, place {place['position']}: {place['reason']}"
        elif old["eligible"] != place["eligible"]:
            yield f"{search} waits: {place['reason']}"
    for search in sorted(before.keys() - after.keys() - running.keys()):
        yield f"{search} waits no more"


def _foreign(earlier: Shape, later: Shape) -> Iterator[str]:
    before, after = _by(earlier, "foreign", "id"), _by(later, "foreign", "id")
    for search, seen in after.items():
        old = before.get(search)
        if old is None and search in _by(earlier, "running", "id"):
            yield f"{search} is still seen running"
        elif old is None:
            yield f"{search} is seen running, started by another program"
        if not seen["counted"] and (old is None or old["counted"]):
            yield f"{search} counts no more: nothing stands behind its finalizer"
    for search in sorted(before.keys() - after.keys() - _by(later, "running", "id").keys()):
        yield f"{search} is seen no more"


def _submitters(before: Entries, after: Entries) -> Iterator[str]:
    for name, each in after.items():
        old = before.get(name)
        if old is None:
            yield f"{each['label'] or name} has signed on"
        elif each["gone"] and not old["gone"]:
            yield f"{each['label'] or name} is gone"
    for name in sorted(before.keys() - after.keys()):
        yield f"{before[name]['label'] or name} has signed off"
