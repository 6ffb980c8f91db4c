"""Who is inside Gate A of a cluster, strangers among them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from blastyard.admission.lease import holder_name, is_blastyard, parse_time
from blastyard.admission.port import Snapshot
from blastyard.testing.lease_invariant import LeaseInvariant

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.cluster.world import ClusterWorld


class ClusterLeaseRules(LeaseInvariant):
    """Never two inside Gate A, strangers among them."""

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__(world)
        self._cluster = world
        self.live_at_entry: frozenset[str] = frozenset()
        """What ran when the present holder came in."""
        self.free_at = 0.0
        """Since when Gate A was free before its present holder came in."""
        self.pardoned: set[str] = set()

    def foreign_until_by_record(self) -> datetime:
        """When the record that stands is over by its own word."""
        renewed = parse_time(self.lease.renew_time or "") or self._world.clock.now()
        seconds = self.lease.lease_duration_seconds or 0
        return renewed + timedelta(seconds=seconds) + self._world.timings.skew

    def changed(self, actor: Actor | None, before: Snapshot, after: Snapshot) -> None:
        """See the machine's."""
        old, written_at = self.lease, self._written_at
        super().changed(actor, before, after)
        holder = self.lease.holder_identity
        if not holder:
            self.free_at = self._world.now
        elif holder != old.holder_identity:
            if is_blastyard(old.holder_identity):
                self.free_at = written_at + self._world.timings.takeover.total_seconds()
            self.live_at_entry = self._cluster.live()

    def removed(self) -> None:
        """By hand: whoever was inside cannot know yet."""
        self.pardoned |= self._who()

    def _who(self) -> set[str]:
        world, now = self._cluster, self._world.now
        inside = {
            holder
            for holder, (actor, stay) in self._inside.items()
            if not actor.dead and stay.deadline > now
        }
        world.machine.tick()
        inside |= {
            holder_name(run.task.search_id, run.task.attempt)
            for run in world.machine.runs
            if run.is_live and run.deadline is not None
        }
        inside |= {
            holder_name(command.order.name, command.attempt)
            for command in world.commands
            if command.is_live
        }
        server_now = world.server_now()
        inside |= {
            one.name
            for one in world.strangers.values()
            if one.inside_until is not None and one.inside_until > server_now and not one.dead
        }
        return inside

    def check(self) -> None:
        """See the machine's."""
        inside = self._who() - self.pardoned
        if len(inside) > 1:
            self._world.accuse("two inside Gate A", ", ".join(sorted(inside)))
