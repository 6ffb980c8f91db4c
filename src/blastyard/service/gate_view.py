"""Both gates as an operator sees them: the queue's shape, and all that concerns other programs.

What :func:`~blastyard.service.view.queue_shape` says has the same names here. One shape for one
machine and for a shared namespace; on a machine nothing foreign is seen, so those parts are empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from blastyard.admission import lease as gate_a
from blastyard.admission.census import UNLABELLED, Sighting, is_lone, occupied, slot_names
from blastyard.admission.ending import ended
from blastyard.admission.ledger import Hold, Ledger, family
from blastyard.admission.marking import apps_of, kind_needed
from blastyard.admission.order import Situation
from blastyard.admission.reservation import brought_up
from blastyard.admission.timing import Timings
from blastyard.admission.view import View
from blastyard.service.gate_queue import Waiters
from blastyard.service.view import Shape, instant, queue_shape

LEDGER_ABSENT: Final = "absent"
LEDGER_RESTORING: Final = "restoring"
LEDGER_WHOLE: Final = "whole"


@dataclass(frozen=True, slots=True)
class Where:
    """A shared namespace, and how ``kubectl`` is told of it."""

    namespace: str
    context: str = ""
    is_named: bool = False
    """The context is not the one that ``kubectl`` takes by itself."""

    def kubectl(self, words: str) -> str:
        """A command line about this namespace."""
        context = f" --context {self.context}" if self.is_named else ""
        return f"kubectl{context} -n {self.namespace} {words}"

    def deletes(self, name: str) -> str:
        """The command that deletes all Jobs of a search, by the id it is seen under."""
        if name == UNLABELLED:
            return self.kubectl("delete jobs -l 'app in (blast,submit),!elb-job-id'")
        return self.kubectl(f"delete jobs -l elb-job-id={name}")


@dataclass(frozen=True, slots=True)
class Outside:
    """What the documents of admission do not tell."""

    where: Where | None = None
    """``None`` = this machine, where everything passes through the ledger."""
    behind: int = 0
    lifetimes: tuple[timedelta, ...] = ()
    """How long the searches lasted that ended last."""


def gate_shape(view: View, lease: gate_a.Seen, timings: Timings, outside: Outside) -> Shape:
    """Both gates, everything that occupies a run slot, and who waits, why and until when."""
    shape = queue_shape(view, outside.behind)
    return _Gates(view, lease, timings, outside).added_to(shape)


class _Gates:
    """Says what :func:`gate_shape` adds, from one view."""

    def __init__(self, view: View, lease: gate_a.Seen, timings: Timings, outside: Outside) -> None:
        self._view = view
        self._lease = lease
        self._timings = timings
        self._outside = outside
        alive = {name for name, seen in view.submitters.items() if seen.is_alive(timings)}
        situation = Situation(view.now, alive, view.census)
        shared = outside.where is not None
        # what the next decision will see: without what has ended
        self._current = replace(
            view, ledger=brought_up(view.ledger, situation, timings, shared=shared)
        )
        self._ended = ended(view.ledger, view.census, view.now, timings) if shared else frozenset()

    def added_to(self, shape: Shape) -> Shape:
        where = self._outside.where
        holds = sorted(self._view.ledger.holds.items(), key=lambda item: item[1].fence)
        foreign = self._foreign()
        shape |= {
            "namespace": where and where.namespace,
            "context": (where and where.context) or None,
            "ledger": ledger_state(self._view.ledger),
            "waited_for": self._waited_for(),
            "occupied": len(occupied(self._current.ledger.holds, self._view.census)),
            "submit_slot": shape["submit_slot"] | self._slot(),
            "running": [
                each | self._hold(search, hold)
                for each, (search, hold) in zip(shape["running"], holds, strict=True)
            ],
            "foreign": [self._foreign_shape(seen) for seen in foreign],
            "lone": [self._lone_shape(seen) for seen in foreign if self._is_lone(seen)],
        }
        waiting = Waiters(self._current, self._timings, self._outside.lifetimes)
        return shape | waiting.shape(shape["waiting"])

    # -- the submit lease ----------------------------------------------------------------------

    def _slot(self) -> Shape:
        lease, gate = self._lease.lease, self._view.gate
        holder = lease.holder_identity
        is_held = isinstance(gate, gate_a.Held)
        added = {
            "kind": ("blastyard" if gate_a.is_blastyard(holder) else "foreign") if holder else None,
            "renewed_at": lease.renew_time,
            "rule": self._rule() if holder else None,
            "silent_seconds": round(self._lease.unchanged_for.total_seconds(), 1),
            "left_by": holder if holder and not is_held else None,
        }
        return added if is_held else {"until": None, "note": "", **added}

    def _rule(self) -> str:
        """By what it is judged until when the holder is inside."""
        lease, timings = self._lease.lease, self._timings
        duration = lease.lease_duration_seconds
        if gate_a.is_blastyard(lease.holder_identity):
            return (
                f"blastyards follow one that is silent for {_seconds(timings.takeover)}; other "
                f"programs go by its renewTime and {duration} s"
            )
        if lease.renew_time is None:
            return "it was never stamped, so it counts as free"
        own = f"the {duration} s that it says"
        if duration is None:
            own = f"{_seconds(timings.wire)}, as it says no duration"
        return f"its renewTime, {own}, and {_seconds(timings.skew)} for clocks that differ"

    # -- what runs -----------------------------------------------------------------------------

    def _hold(self, search: str, hold: Hold) -> Shape:
        name = hold.alias or search
        return {
            "id": name,
            "family": family(search, hold) if hold.ticket.family else None,
            "attempt": hold.attempt,
            "cancelled": hold.cancelled,
            "failed_at": instant(hold.failed_at),
            "seen": name in self._view.census.sightings,
            "ended": search in self._ended,
            "marker": self._marker(search, hold),
        }

    def _marker(self, search: str, hold: Hold) -> Shape | None:
        """What makes other programs count it; ``None`` where there are none."""
        if self._outside.where is None:
            return None
        kind = kind_needed(search, hold, self._view.census)
        up: dict[str, set[str]] = {}
        for job in self._view.census.markers:
            if job.marker is not None and job.marker.search == search:
                up.setdefault(job.marker.kind.value, set()).add(job.app)
        is_complete = up.get(kind.value, set()) >= set(apps_of(kind))
        return {"needed": kind.value, "up": sorted(up), "complete": is_complete}

    # -- what other programs run ---------------------------------------------------------------

    def _foreign(self) -> list[Sighting]:
        known = slot_names(self._view.ledger.holds)
        seen = self._view.census.sightings.values()
        return sorted((each for each in seen if each.name not in known), key=lambda s: s.since)

    def _is_lone(self, seen: Sighting) -> bool:
        return is_lone(self._view.ledger, seen)

    def _counts(self, seen: Sighting) -> bool:
        return seen.name in self._view.census.families

    def _foreign_shape(self, seen: Sighting) -> Shape:
        return {
            "id": seen.name,
            "since": instant(seen.since),
            "finalizer": seen.finalizer,
            "companions": seen.companions,
            "counted": self._counts(seen),
            "labels": dict(sorted(seen.labels.items())),
        }

    def _lone_shape(self, seen: Sighting) -> Shape:
        alone_since = self._view.ledger.lone.get(seen.name)
        counts = self._counts(seen)
        until = alone_since + self._timings.forgotten if alone_since and counts else None
        where = self._outside.where
        return {
            "id": seen.name,
            "since": instant(seen.since),
            "alone_since": instant(alone_since),
            "counted": counts,
            "counted_until": instant(until),
            "finalizers": list(seen.finalizers),
            "remove": where and where.kubectl("delete job " + " ".join(seen.finalizers)),
        }

    # -- the rest ------------------------------------------------------------------------------

    def _waited_for(self) -> list[str]:
        """Who has still to bring back its claims before a lost ledger is whole."""
        ledger = self._view.ledger
        if ledger_state(ledger) != LEDGER_RESTORING:
            return []
        done = ledger.restored or ()
        return sorted(
            seen.submitter.label or name
            for name, seen in self._view.submitters.items()
            if name not in done and not seen.gone and seen.silent_for < self._timings.forgotten
        )


def ledger_state(ledger: Ledger) -> str:
    """``absent``, ``restoring`` or ``whole``."""
    if not ledger.uid:
        return LEDGER_ABSENT
    return LEDGER_WHOLE if ledger.is_whole else LEDGER_RESTORING


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"
