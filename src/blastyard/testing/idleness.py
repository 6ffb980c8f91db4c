"""No slot stays free while somebody could use it.

Looked at once a second, from the moment when nothing goes wrong any more. What is allowed is what
the rules say a head may take for its turn, and some seconds for a worker to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from blastyard.admission.ledger import Ledger
from blastyard.domain.job import State
from blastyard.testing import oracle

if TYPE_CHECKING:
    from blastyard.testing.world import World

SLACK_SECONDS: Final = 12.0
_STEADY_SECONDS: Final = 15.0


class Idleness:
    """Watches for free slots beside tickets whose processes work."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: float | None = None
        self._turn = ("", 0, 0)

    def look(self) -> None:
        """Look now, and again in a second."""
        world = self._world
        waiter = self._waiting_for_nothing()
        if waiter is None:
            self._since = None
        elif self._since is None or self._turn_of(waiter[0]) != self._turn:
            self._turn, self._since = self._turn_of(waiter[0]), world.now
        elif world.now - self._since > waiter[1] + SLACK_SECONDS:
            seconds = world.now - self._since
            world.accuse("idle slot", f"{waiter[0]} could run for {seconds:.0f} s")
        world.scheduler.at(world.now + 1.0, self.look)

    def _turn_of(self, waiter: str) -> tuple[str, int, int]:
        """Each grant, and each slot that falls free, begins another turn."""
        ledger = self._world.observer.ledger_rules.ledger
        return (waiter, 0, 0) if ledger is None else (waiter, ledger.fence, len(ledger.holds))

    def _waiting_for_nothing(self) -> tuple[str, float] | None:
        """A search that could go now, and how long those before it may take for their turns."""
        world = self._world
        ledger = world.observer.ledger_rules.ledger
        if ledger is None or not ledger.is_whole or world.observer.gate_a.lease.holder_identity:
            return None
        used = set(ledger.holds) | {name for name, at in world.intruders.items() if at > world.now}
        if len(used) >= ledger.policy.ceiling:
            return None
        now = world.clock.now()
        for name in oracle.fair_order(ledger, now):
            if self._is_able(ledger, name):
                return name, oracle.ahead(ledger, name, set(world.everyone), now).seconds
        return None

    def _is_able(self, ledger: Ledger, name: str) -> bool:
        world, ticket = self._world, ledger.tickets[name]
        actor = world.everyone.get(ticket.submitter)
        if actor is None or actor.dead:
            return False
        if world.now - max(actor.frozen_until, actor.stalled_until) < _STEADY_SECONDS:
            return False
        row = world.searches.rows.get(name)
        if row is not None and (row.runner != actor.name or row.state is not State.QUEUED):
            return False
        cap = ledger.policy.user_cap
        running = sum(hold.ticket.user == ticket.user for hold in ledger.holds.values())
        at_cap = cap is not None and running >= cap
        return ticket.parked_by is None and ticket.blocked is None and not at_cap
