"""What must hold whenever the submit lease changes, and who is inside Gate A."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from blastyard.admission.lease import SubmitLease, holder_name, is_blastyard, parse_time
from blastyard.admission.port import Snapshot
from blastyard.admission.stay import Stay

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.world import World


class LeaseInvariant:
    """Never two inside Gate A; nobody touches what is another's."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lease = SubmitLease()
        self.free_since: datetime | None = None
        """Since when, by the store's clock, Gate A was free before its present holder."""
        self.forward = 0.0
        """By how many seconds the store's clock was put forward."""
        self.foreign_until = 0.0
        self._written_at = 0.0
        self._owners: dict[str, Actor] = {}
        self._inside: dict[str, tuple[Actor, Stay]] = {}

    # -- who is inside -------------------------------------------------------------------------

    def entered(self, actor: Actor, stay: Stay) -> None:
        """A process was told that it is inside."""
        self._inside[stay.holder] = (actor, stay)
        self.check()

    def left(self, stay: Stay) -> None:
        """A process does nothing any more on the strength of this stay."""
        self._inside.pop(stay.holder, None)

    def stay_of(self, search: str, attempt: int) -> Stay | None:
        """The stay that an attempt is in."""
        entry = self._inside.get(holder_name(search, attempt))
        return None if entry is None else entry[1]

    def check(self) -> None:
        """At most one is inside: a trusted stay, a command begun in one, or somebody foreign."""
        now = self._world.now
        inside = {
            holder
            for holder, (actor, stay) in self._inside.items()
            if not actor.dead and stay.deadline > now
        }
        self._world.machine.tick()
        inside |= {
            holder_name(run.task.search_id, run.task.attempt)
            for run in self._world.machine.runs
            if run.is_live and run.deadline is not None
        }
        if self.foreign_until > now:
            inside.add("somebody foreign")
        if len(inside) > 1:
            self._world.accuse("two inside Gate A", ", ".join(sorted(inside)))

    # -- the record ----------------------------------------------------------------------------

    def changed(self, actor: Actor | None, before: Snapshot, after: Snapshot) -> None:
        """The record was written."""
        old, new = self.lease, _decoded(after)
        age = self._world.now - self._written_at
        self.lease, self._written_at = new, self._world.now
        holder = new.holder_identity
        self._world.note(f"lease: {old.holder_identity or 'free'} -> {holder or 'free'}")
        if actor is not None:
            if holder == old.holder_identity:
                self._renewed(actor, old, new)
            elif not holder:
                self._released(actor, old)
            else:
                self._claimed(actor, before, old, age)
                self._owners[holder] = actor
        if holder and holder != old.holder_identity:
            self.free_since = self._freed_at(before, old)

    def _renewed(self, actor: Actor, old: SubmitLease, new: SubmitLease) -> None:
        if old == new:
            return  # stamped anew, because its stamp was in the future
        if self._owners.get(old.holder_identity) is not actor:
            self._world.accuse("lease of another", f"{actor.name} renewed {old.holder_identity}")

    def _released(self, actor: Actor, old: SubmitLease) -> None:
        if self._owners.get(old.holder_identity) is not actor:
            self._world.accuse("lease of another", f"{actor.name} cleared {old.holder_identity}")

    def _claimed(self, actor: Actor, before: Snapshot, old: SubmitLease, age: float) -> None:
        holder = old.holder_identity
        timings = self._world.timings
        if not holder:
            return
        if is_blastyard(holder):
            if age < timings.takeover.total_seconds() - self.forward - 0.001:
                self._world.accuse("live lease taken", f"{actor.name}: {holder} after {age:.3f} s")
        elif old.renew_time is not None:
            renewed_at = parse_time(old.renew_time)
            duration = timedelta(seconds=old.lease_duration_seconds or 0)
            if renewed_at is None or before.now <= renewed_at + duration + timings.skew:
                self._world.accuse("live lease taken", f"{actor.name}: foreign {holder}")

    def _freed_at(self, before: Snapshot, old: SubmitLease) -> datetime | None:
        if not old.holder_identity:
            return before.stamped_at
        if is_blastyard(old.holder_identity) and before.stamped_at is not None:
            return before.stamped_at + self._world.timings.takeover
        return None


def _decoded(snapshot: Snapshot) -> SubmitLease:
    if snapshot.body is None:
        return SubmitLease()
    return msgspec.json.decode(snapshot.body, type=SubmitLease)
