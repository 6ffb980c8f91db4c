"""What must hold whenever the ledger changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from blastyard.admission.hold import Attempt
from blastyard.admission.ledger import Fence, Hold, HoldState, Ledger, decode_ledger
from blastyard.admission.port import SUBMITTER, Snapshot
from blastyard.domain.errors import Unavailable
from blastyard.testing import oracle

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.scheduler import Task
    from blastyard.testing.world import World


@dataclass(frozen=True, slots=True)
class Confirming:
    """Somebody says that the command of this grant runs."""

    search: str
    fence: int


class LedgerInvariant:
    """The ceiling, the order, the fences, and one grant for one attempt."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ledger: Ledger | None = None
        """The ledger as it is; ``None`` while there is none, or none that can be read."""
        self.doing: dict[Task, Attempt | Confirming] = {}
        """What each task is asking the ledger for."""
        self.landing: Attempt | Confirming | None = None
        """The same for a write that lands after its caller gave up."""
        self.entered_at: dict[str, datetime] = {}
        self._granted: dict[tuple[str, int, str], int] = {}
        self.grants: Counter[str] = Counter()
        self._highest: dict[str, int] = {}
        self._room_at: datetime | None = None
        self._read_at: dict[Task, datetime] = {}
        self._read: dict[Task, Ledger | None] = {}
        self._counted: dict[Task, frozenset[str]] = {}

    def read(self) -> None:
        """A task reads it: what it then writes, it decided on at that moment."""
        task = self._world.scheduler.current
        if task is not None:
            self._read_at[task] = self._world.clock.now()
            self._read[task] = self.ledger

    def was_granted(self, search: str, attempt: int, submitter: str) -> bool:
        """Whether this attempt was ever seen to be granted a slot."""
        return (search, attempt, submitter) in self._granted

    def counted(self, seen: frozenset[str]) -> None:
        """A task takes a census."""
        task = self._world.scheduler.current
        if task is not None:
            self._counted[task] = seen

    def changed(self, actor: Actor | None, before: Snapshot, after: Snapshot) -> None:
        """It was written."""
        old, new = self.ledger, _decoded(after)
        unreadable = before.body is not None and _decoded(before) is None
        self.ledger = new
        if actor is not None and unreadable:
            self._world.accuse("unreadable ledger overwritten", actor.name)
        if actor is None:
            self._world.note("ledger written by hand")
        if new is None:
            return
        self._note(old, new)
        self._fences(old, new)
        if old is not None and actor is not None:
            self._holds(old, new, after.now)
        if actor is not None:
            self._time(old, new, after.now)
        self.slots()

    # -- the parts -----------------------------------------------------------------------------

    def _note(self, old: Ledger | None, new: Ledger) -> None:
        holds = ", ".join(
            f"{name}:{hold.state[:3]}:{hold.fence % 100000}" for name, hold in new.holds.items()
        )
        tickets = " ".join(new.tickets)
        whole = "" if new.is_whole else f" restored by {new.restored}"
        if old is None or old.holds != new.holds or old.tickets != new.tickets or whole:
            self._world.note(f"ledger: holds [{holds}] tickets [{tickets}]{whole}")

    def _fences(self, old: Ledger | None, new: Ledger) -> None:
        if old is not None and old.uid == new.uid and new.fence < old.fence:
            self._world.accuse("fence fell", f"{old.fence} -> {new.fence}")
        highest = self._highest.get(new.uid, 0)
        if new.fence < highest:
            self._world.accuse("fence fell", f"{highest} -> {new.fence}")
        self._highest[new.uid] = max(highest, new.fence)
        if any(hold.fence > new.fence for hold in new.holds.values()):
            self._world.accuse("fence of a hold above the ledger's", str(new.fence))

    def _holds(self, old: Ledger, new: Ledger, now: datetime) -> None:
        for name, ticket in new.tickets.items():
            place = old.tickets.get(name) or (old.holds[name].ticket if name in old.holds else None)
            if place is not None and place.sequence != ticket.sequence:
                self._world.accuse("place lost", f"{name}: {place.sequence} -> {ticket.sequence}")
        for name, hold in new.holds.items():
            was = old.holds.get(name)
            if was is None or was.fence != hold.fence:
                self._granted_one(old, new, name, now)
            elif was.state is HoldState.RESERVED and hold.state is HoldState.SUBMITTED:
                self._confirmed(name, hold)
            elif was.state is HoldState.SUBMITTED and hold.state is HoldState.RESERVED:
                self._world.accuse("submitted became reserved", name)

    def _granted_one(self, old: Ledger, new: Ledger, name: str, now: datetime) -> None:
        hold = new.holds[name]
        attempt = self.deed()
        if not isinstance(attempt, Attempt) or attempt.search != name:
            # brought back to a ledger that was made whole without its submitter; it may have ended
            # meanwhile, and its submitter has not seen it yet
            counted_again = hold.state is HoldState.SUBMITTED and self.was_granted(
                name, hold.attempt, hold.submitter
            )
            if old.is_whole and not counted_again:
                self._world.accuse("hold without a grant", name)
            return
        self._world.note(f"GRANT {name} attempt {hold.attempt}")
        if not old.is_whole or not new.is_whole or old.uid != new.uid:
            self._world.accuse("admitted on a ledger that is not whole", name)
        if hold.fence <= old.fence:
            self._world.accuse("fence not raised", f"{name} {hold.fence}")
        self._once(name, hold)
        self._room(old, new, name)
        if name not in old.holds:
            self._order(old, name, now)

    def deed(self) -> Attempt | Confirming | None:
        """What the task that writes now is about."""
        task = self._world.scheduler.current
        return self.landing if task is None else self.doing.get(task)

    def _once(self, name: str, hold: Hold) -> None:
        key = (name, hold.attempt, hold.submitter)
        if key in self._granted:
            self._world.accuse("one attempt granted twice", f"{name} attempt {hold.attempt}")
        self._granted[key] = hold.fence
        self.grants[name] += 1

    def _room(self, old: Ledger, new: Ledger, name: str) -> None:
        """The union of holds and of what really runs, the new one among them, under the ceiling."""
        if name in old.holds:  # resumed: a reserved one gives way to what runs and to older ones
            fence = old.holds[name].fence
            claimed = {
                other
                for other, hold in old.holds.items()
                if hold.state is HoldState.SUBMITTED or hold.fence < fence
            }
        else:
            claimed = set(old.holds)
        self._world.machine.tick()
        running = {run.task.search_id for run in self._world.machine.runs if run.is_live}
        slots = claimed | running | self._intruders() | {name}
        if len(slots) > new.policy.ceiling:
            detail = f"{sorted(slots)} at a ceiling of {new.policy.ceiling}"
            self._world.accuse("over the ceiling", detail)
        if name in running:
            self._world.accuse("granted while it runs", name)
        cap = new.policy.user_cap
        user = new.holds[name].ticket.user
        used = sum(hold.ticket.user == user for other, hold in old.holds.items() if other != name)
        if cap is not None and name not in old.holds and used >= cap:
            self._world.accuse("over the user's cap", name)

    def _intruders(self) -> set[str]:
        """Foreign searches that were there at the census and are still there."""
        task, now = self._world.scheduler.current, self._world.now
        seen = frozenset() if task is None else self._counted.get(task, frozenset())
        return {
            name for name, until in self._world.intruders.items() if until > now and name in seen
        }

    def _order(self, old: Ledger, name: str, now: datetime) -> None:
        ticket = old.tickets.get(name)
        if ticket is None:
            self._world.accuse("granted without a ticket", name)
            return
        if ticket.parked_by is not None or ticket.blocked is not None:
            self._world.accuse("granted though set aside", name)
        if self._world.clock_was_set or self.landing is not None:
            return  # a late write was decided on when Gate A was its writer's
        before = oracle.ahead(old, name, self._able(name, now), now)
        if not before.searches:
            return
        starts = [at for at in (self._room_at, self._world.observer.gate_a.free_since) if at]
        had = (now - max(starts)).total_seconds() if starts else before.seconds
        if had < before.seconds:
            detail = f"{name} went before {before.searches} after {had:.3f} of {before.seconds} s"
            self._world.accuse("out of turn", detail)

    def _able(self, name: str, now: datetime) -> set[str]:
        """Submitters that were alive all through this stay in Gate A, as the store shows it."""
        since = self.entered_at.get(name, now)
        lapse = self._world.timings.lapse
        able = set()
        for snapshot in self._world.documents.scan(SUBMITTER).values():
            who = snapshot.name.removeprefix(SUBMITTER)
            actor = self._world.everyone.get(who)
            stamped_at = snapshot.stamped_at or now
            if actor is None or actor.dead or stamped_at >= since or now - stamped_at >= lapse:
                continue
            able.add(who)
        return able

    def _time(self, old: Ledger | None, new: Ledger, now: datetime) -> None:
        """Since when the present turn can have lasted: as the writer saw the store's clock."""
        if (
            old is None
            or len(new.holds) != len(old.holds)
            or new.policy.ceiling > old.policy.ceiling
        ):
            task = self._world.scheduler.current
            if task is not None:  # a late write was decided on earlier than anybody knows
                self._room_at = self._read_at.get(task, now)

    def _confirmed(self, name: str, hold: Hold) -> None:
        started = (name, hold.attempt) in self._world.machine.started
        if self.deed() != Confirming(name, hold.fence) or not started:
            self._world.accuse("confirmed by a stale holder", f"{name} fence {hold.fence}")

    def believes(self, search: str, fence: Fence) -> None:
        """A task was told that its grant stands: the ledger that it read must say so."""
        task = self._world.scheduler.current
        ledger = None if task is None else self._read.get(task)
        hold = None if ledger is None else ledger.holds.get(search)
        if ledger is None or hold is None or Fence(ledger.uid, hold.fence) != fence:
            self._world.accuse("stale grant believed", f"{search} fence {fence.number}")

    def slots(self) -> None:
        """Whatever runs without a deadline has a hold."""
        ledger = self.ledger
        if ledger is None or not ledger.is_whole:
            return
        self._world.machine.tick()
        for run in self._world.machine.runs:
            name = run.task.search_id
            if run.is_live and run.deadline is None and name not in ledger.holds:
                self._world.accuse("runs without a hold", name)


def _decoded(snapshot: Snapshot) -> Ledger | None:
    if snapshot.body is None:
        return None
    try:
        return decode_ledger(snapshot.body)
    except Unavailable:
        return None
