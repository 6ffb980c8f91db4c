"""A search, a queue, a database, as every front shows them: one shape everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from blastyard.admission import lease as gate_a
from blastyard.admission.census import occupied, uncovered
from blastyard.admission.order import Place
from blastyard.admission.outcome import Reason
from blastyard.admission.view import View
from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search

Shape = dict[str, Any]

_REASONS: Mapping[Reason, str] = {
    Reason.PARKED: "set aside by an operator",
    Reason.BLOCKED: "its database is not ready",
    Reason.SUBMITTER: "no live process looks after it",
    Reason.USER_CAP: "its user is at the per-user cap",
}


def search_shape(search: Search, view: View | None = None) -> Shape:
    """One search. ``view`` is the queue of the same moment, when the search is not yet ended."""
    request = search.request
    phase, reason, position = _waiting(search, view)
    error = search.error
    return {
        "id": search.id,
        "state": search.state.value,
        "phase": phase,
        "reason": reason,
        "position": position,
        "program": request.program.value,
        "database": request.database,
        "user": request.user,
        "priority": request.priority.value,
        "title": request.title,
        "tags": list(request.tags),
        "key": request.key,
        "created_at": instant(search.created_at),
        "started_at": instant(search.started_at),
        "finished_at": instant(search.finished_at),
        "progress": {"done": search.progress_done, "total": search.query.records},
        "error": error
        and {"code": error.code, "message": error.message, "next_step": error.next_step},
        "exactness": search.exactness,
        "command": list(search.command),
        "blast_version": search.blast_version,
        "format": request.output_format,
        "options": list(request.options),
        "query": {
            "records": search.query.records,
            "residues": search.query.residues,
            "longest": search.query.longest,
            "notices": list(search.query.notices),
        },
        "attempt": search.attempt,
        "result": search.result
        and {
            "size": search.result.size,
            "sha256": search.result.sha256,
            "extension": search.result.extension,
            "deleted_at": instant(search.result_deleted_at),
        },
        "rerun_of": search.rerun_of,
    }


def instant(at: datetime | None) -> str | None:
    """RFC 3339, UTC, milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None


def _waiting(search: Search, view: View | None) -> tuple[str | None, str | None, int | None]:
    if search.state is not State.QUEUED or view is None:
        return search.phase, None, None
    place = next((place for place in view.queue if place.search == search.id), None)
    if place is None:
        behind = f"behind the {len(view.queue)} searches that are published" if view.queue else ""
        return search.phase, behind or "about to be published", None
    reason = why(place, view)
    return reason[0], reason[1], place.position


def why(place: Place, view: View) -> tuple[str, str]:
    """The phase and, in words, the reason for which a place waits."""
    if place.obstacle is not None:
        reason = place.obstacle
        text = _REASONS.get(reason, reason.value)
        if place.ticket.parked_by:
            text = f"set aside by {place.ticket.parked_by}"
        return reason.phase.value, text
    ceiling = view.ledger.policy.ceiling
    running = len(occupied(view.ledger.holds, view.census))
    if not view.ledger.is_whole:
        return Reason.RESTORING.phase.value, "the ledger was lost; claims are being collected"
    if ceiling == 0:
        return Reason.DRAINED.phase.value, "the ceiling is 0: an operator has drained the queue"
    if running >= ceiling:
        others = len(uncovered(view.ledger.holds, view.census))
        foreign = f", {others} of them started by other programs" if others else ""
        return Reason.CAPACITY.phase.value, f"{running} of at most {ceiling} are running{foreign}"
    if isinstance(view.gate, gate_a.Held):
        return Reason.SUBMIT_SLOT.phase.value, f"{view.gate.holder} is submitting"
    return Reason.TURN.phase.value, "its turn is about to come"


def event_shape(event: Event) -> Shape:
    """One change in a search's life."""
    return {
        "at": instant(event.at),
        "state": event.state.value,
        "phase": event.phase,
        "reason": event.reason,
        "code": event.code,
    }


def database_shape(database: Database) -> Shape:
    """One registered database."""
    return {
        "name": database.name,
        "type": database.type,
        "title": database.title,
        "path": database.path,
        "sequences": database.sequences,
        "letters": database.letters,
        "state": database.state.value,
        "built": database.built,
        "created_at": instant(database.created_at),
        "size": sum(database.files.values()),
    }


def queue_shape(view: View, behind: int) -> Shape:
    """Who is inside Gate A, what runs, who waits and why, and how many wait behind those."""
    ledger = view.ledger
    policy = ledger.policy
    return {
        "now": instant(view.now),
        "ceiling": policy.ceiling,
        "user_cap": policy.user_cap,
        "policy_changes": [
            {"at": instant(change.at), "by": change.by, "what": change.what}
            for change in policy.changes
        ],
        "whole": ledger.is_whole,
        "submit_slot": _slot_shape(view.gate),
        "running": [
            {
                "search": name,
                "user": hold.ticket.user,
                "state": hold.state.value,
                "fence": hold.fence,
                "since": instant(hold.since),
                "submitter": _label(hold.submitter, view),
            }
            for name, hold in sorted(ledger.holds.items(), key=lambda item: item[1].fence)
        ],
        "waiting": [_place_shape(place, view) for place in view.queue],
        "behind": behind,
        "submitters": [
            {
                "name": seen.submitter.name,
                "kind": seen.submitter.kind,
                "label": seen.submitter.label,
                "account": seen.submitter.account,
                "silent_seconds": round(seen.silent_for.total_seconds(), 1),
                "gone": seen.gone,
                "address": seen.submitter.address,
            }
            for seen in view.submitters.values()
        ],
    }


def _slot_shape(gate: gate_a.Free | gate_a.Held) -> Shape:
    if isinstance(gate, gate_a.Free):
        return {"holder": None, "since": instant(gate.since)}
    return {
        "holder": gate.holder,
        "since": gate.since,
        "until": instant(gate.until),
        "note": gate.note,
    }


def _place_shape(place: Place, view: View) -> Shape:
    phase, reason = why(place, view)
    ticket = place.ticket
    return {
        "search": place.search,
        "position": place.position,
        "user": ticket.user,
        "phase": phase,
        "reason": reason,
        "eligible": place.obstacle is None,
        "since": instant(ticket.ticketed_at),
        "submitter": _label(ticket.submitter, view),
    }


def _label(name: str, view: View) -> str:
    seen = view.submitters.get(name)
    return seen.submitter.label or name if seen else name
