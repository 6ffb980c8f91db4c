"""The invariants of admission on a cluster, checked against what really runs there."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from blastyard.admission.kubernetes import codec
from blastyard.admission.lease import holder_name
from blastyard.admission.ledger import Fence, Hold, HoldState, Ledger
from blastyard.admission.port import ABSENT, LEASE, LEDGER, Snapshot
from blastyard.kube.rbac import ledger_name, submit_lease_name
from blastyard.testing.cluster.lease_rules import ClusterLeaseRules
from blastyard.testing.cluster.wire import NAMESPACE
from blastyard.testing.invariant import Observer
from blastyard.testing.ledger_invariant import Confirming, LedgerInvariant
from blastyard.testing.wire_fault import Ailment

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.cluster.command import SubmitCommand
    from blastyard.testing.cluster.stranger import StrangerProcess
    from blastyard.testing.cluster.world import ClusterWorld

TURN_SECONDS: Final = 1.0
TOLERANCE: Final = 0.01


class ClusterLedgerRules(LedgerInvariant):
    """The ceiling, the order, the fences, where others submit as well."""

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__(world)
        self._cluster = world
        self._submitted: set[Fence] = set()
        self.slot_free_at = 0.0
        """Since when a run slot has been free."""
        self._used = 0
        self._was_whole = True

    def changed(self, actor: Actor | None, before: Snapshot, after: Snapshot) -> None:
        """See the machine's."""
        old = self.ledger
        self._was_whole = old is None or old.is_whole
        super().changed(actor, before, after)
        new = self.ledger
        if new is None:
            return
        self._submitted |= {
            Fence(new.uid, hold.fence)
            for hold in new.holds.values()
            if hold.state is HoldState.SUBMITTED
        }
        if old is not None and actor is not None:
            self._dropped(old, new)
        self.slots_changed()

    def slots_changed(self) -> None:
        """Something began or ended: since when is a slot free?"""
        if self.ledger is None:
            return
        used = len(set(self.ledger.holds) | self._cluster.live()) - self.ledger.policy.ceiling
        if used < 0 <= self._used or used < self._used:
            self.slot_free_at = self._world.now
        self._used = used

    def job_made(self, search: str, id_: str) -> None:
        """Something of ours appears in the cluster: never without a hold, however late it is."""
        ledger = self.ledger
        if ledger is not None and ledger.is_whole and not {search, id_} & ledger.holds.keys():
            self._world.accuse("appears without a hold", f"{search} as {id_}")

    def believes(self, search: str, fence: Fence) -> None:
        """See the machine's."""
        if fence not in self._submitted:
            self._world.accuse("stale grant believed", f"{search} fence {fence.number}")

    def _dropped(self, old: Ledger, new: Ledger) -> None:
        """No hold ends while its search goes on."""
        for name in old.holds.keys() - new.holds.keys():
            if self._goes_on(name):
                self._world.accuse("hold dropped while it lives", name)

    def _goes_on(self, name: str) -> bool:
        """Whether more of it runs than what ends before its stay in Gate A may be another's."""
        world = self._cluster
        if name in world.observer.cancelled:
            return False
        local = any(
            run.is_live and run.deadline is None and run.task.search_id == name
            for run in world.machine.runs
        )
        return local or world.complete(name)

    def _granted_one(self, old: Ledger, new: Ledger, name: str, now: datetime) -> None:
        hold = new.holds[name]
        if isinstance(self.deed(), Confirming) and hold.state is HoldState.SUBMITTED:
            return  # what a command submitted besides its search
        super()._granted_one(old, new, name, now)

    def _room(self, old: Ledger, new: Ledger, name: str) -> None:
        """The union of holds and of what has run since before the census, under the ceiling."""
        world = self._cluster
        hold = old.holds.get(name)
        claimed = {
            other
            for other, one in new.holds.items()
            if hold is None or one.state is HoldState.SUBMITTED or one.fence < hold.fence
        }
        covered = {
            other
            for other, one in new.holds.items()
            if one.state is HoldState.RESERVED and other not in claimed
        }
        live = world.live()
        seen = (world.observer.gate_a.live_at_entry & live) - covered
        counted = {one for one in seen if one in new.holds or not world.is_phantom(one)}
        slots = claimed | counted | {name}
        if len(slots) > new.policy.ceiling:
            detail = f"{sorted(slots)} at a ceiling of {new.policy.ceiling}"
            world.accuse("over the ceiling", detail)
        running = any(one.is_live and one.order.name == name for one in world.commands)
        if running or world.complete(name) or name in world.machine.live():
            world.accuse("granted while it runs", name)

    def _order(self, old: Ledger, name: str, now: datetime) -> None:  # noqa: ARG002
        """Nobody of the same user and priority is overtaken, unless its turn was over."""
        ticket = old.tickets.get(name)
        if ticket is None:
            self._world.accuse("granted without a ticket", name)
            return
        if ticket.parked_by is not None or ticket.blocked is not None:
            self._world.accuse("granted though set aside", name)
        if self._world.clock_was_set or self.landing is not None:
            return
        if Ailment.SILENT in self._cluster.schedule.ailments:
            return  # one stream after the other half open: everybody else may seem to have ended
        since = max(self._cluster.observer.gate_a.free_at, self.slot_free_at)
        had = self._world.now - since
        for other, one in old.tickets.items():
            ahead = one.sequence < ticket.sequence and one.user == ticket.user
            same = ahead and one.level == ticket.level
            able = same and self._is_able(one.submitter, one.parked_by)
            if able and had < TURN_SECONDS - TOLERANCE:
                self._world.accuse("overtaken", f"{name} overtook {other} after {had:.3f} s")

    def _is_able(self, submitter: str, parked_by: str | None) -> bool:
        actor = self._world.everyone.get(submitter)
        if actor is None or actor.dead or parked_by is not None:
            return False
        stopped = max(actor.frozen_until, actor.stalled_until)
        return self._world.now - stopped > self._world.timings.lapse.total_seconds()

    def _time(self, old: Ledger | None, new: Ledger, now: datetime) -> None:
        """See :meth:`slots_changed`."""

    def _confirmed(self, name: str, hold: Hold) -> None:
        """While claims are brought back, a companion tells that a search was submitted; and what a
        dead command has left complete, others adopt."""
        adopted = self.deed() is None and self._cluster.complete(name)
        if self._was_whole and not adopted:
            super()._confirmed(name, hold)


class ClusterObserver(Observer):
    """Checks everything that happens in a cluster."""

    _world: ClusterWorld

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__(world)
        self.gate_a: ClusterLeaseRules = ClusterLeaseRules(world)
        self.ledger_rules: ClusterLedgerRules = ClusterLedgerRules(world)
        self._seen = {name: _absent(name, world.clock.now()) for name in (LEASE, LEDGER)}

    # -- documents -----------------------------------------------------------------------------

    def lease_written(self, who: Actor | None) -> None:
        """The submit lease was written."""
        before, after = self._took(LEASE, "leases", submit_lease_name(NAMESPACE))
        if after.body is None:
            self.gate_a.removed()
        self.gate_a.changed(who, before, after)

    def ledger_written(self, who: Actor | None) -> None:
        """The ledger was written."""
        before, after = self._took(LEDGER, "configmaps", ledger_name(NAMESPACE))
        self.ledger_rules.changed(who, before, after)

    def _took(self, name: str, plural: str, object_name: str) -> tuple[Snapshot, Snapshot]:
        world = self._world
        now = world.clock.now()
        before = replace(self._seen[name], now=now)
        found = world.api.documents(plural, NAMESPACE).get(object_name)
        after = _absent(name, now)
        if found is not None:
            version = codec.version_in(found)
            after = Snapshot(name, codec.body_in(name, found), version, now, now)
        self._seen[name] = after
        return before, after

    def slots_changed(self) -> None:
        """Something began or ended in the cluster."""
        self._world.look_for_company()
        self.ledger_rules.slots_changed()

    def listed(self) -> None:
        """Somebody has listed Jobs."""

    # -- commands and strangers ----------------------------------------------------------------

    def command_starts(self, command: SubmitCommand) -> None:
        """A submit command starts."""
        world, name = self._world, command.order.name
        world.note(f"START {name} attempt {command.attempt} until {command.deadline:.3f}")
        stay = self.gate_a.stay_of(name, command.attempt)
        if stay is None or stay.deadline <= world.now:
            world.accuse("started without trust", name)
        elif command.deadline > stay.deadline:
            world.accuse("started beyond the lease", name)
        if any(
            one.is_live and one.order.name == name for one in world.commands if one is not command
        ):
            world.accuse("runs twice at once", name)
        if world.complete(name):
            world.accuse("submitted again while it lives", name)
        if not self.ledger_rules.was_granted(name, command.attempt, command.owner.name):
            world.accuse("started without a grant", name)
        if not self._is_inside(holder_name(name, command.attempt)):
            world.accuse("started beside the lease", name)
        self.gate_a.check()

    def _is_inside(self, holder: str) -> bool:
        """Nobody can know at once that the lease was removed by hand."""
        return super()._is_inside(holder) or holder in self.gate_a.pardoned

    def stranger_starts(self, stranger: StrangerProcess, counted: frozenset[str]) -> None:
        """Somebody who counted by the rules is about to submit: did it count all of ours?"""
        world = self._world
        for name in sorted((world.ours() & self.gate_a.live_at_entry) - self.cancelled):
            if not world.shown_as(name) & counted:
                world.accuse("a peer did not count ours", f"{stranger.name}: {name}")


def _absent(name: str, now: datetime) -> Snapshot:
    return Snapshot(name, None, ABSENT, None, now)
