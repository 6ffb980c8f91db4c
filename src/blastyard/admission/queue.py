"""The queue as one process asks for changes of it: places in it, and what an operator decides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from blastyard.admission import ending
from blastyard.admission import ticket as tickets
from blastyard.admission.ledger import Ledger, Policy, Submitter
from blastyard.admission.outlook import Outlook


class Queue:
    """The tickets of the ledger, on behalf of the submitter ``me``."""

    def __init__(self, me: Submitter, outlook: Outlook) -> None:
        self.me = me
        self.outlook = outlook

    def publish(self, wishes: Sequence[tickets.Wish], submitter: str | None = None) -> Ledger:
        """Give tickets to as many of ``wishes`` as may have one; the ledger tells which have.

        ``submitter`` is who looks after them when it is not ourselves.
        """
        whose = self.me.name if submitter is None else submitter

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            return tickets.publish(ledger, whose, tickets.window(ledger, whose, wishes), now)

        return self.outlook.change(rule)

    def withdraw(self, search: str) -> None:
        """Take a waiting search out of the queue."""
        self.outlook.change(lambda ledger, now: tickets.withdraw(ledger, search, now))

    def park(
        self, search: str, by: str, wish: tickets.Wish | None = None, submitter: str = ""
    ) -> bool:
        """Set a waiting search aside; whether it has a ticket.

        With a ``wish`` it is given one if need be, whatever waits before it: ``submitter`` looks
        after it.
        """

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            published = wish and tickets.publish(ledger, submitter, [wish], now)
            return tickets.park(published or ledger, search, by, now)

        after = self.outlook.change(rule)
        return search in after.tickets

    def unpark(self, search: str) -> bool:
        """Let a parked search go on; whether it has a ticket."""
        after = self.outlook.change(lambda ledger, now: tickets.unpark(ledger, search, now))
        return search in after.tickets

    def block(self, search: str, phase: str | None) -> None:
        """Say what the search waits for besides its turn; ``None`` = nothing any more."""
        self.outlook.change(lambda ledger, now: tickets.block(ledger, search, phase, now))

    def adopt(self, search: str, submitter: str | None = None) -> None:
        """Let ``submitter`` (ourselves, when none is named) look after a waiting search."""
        heir = self.me.name if submitter is None else submitter
        self.outlook.change(lambda ledger, now: tickets.adopt(ledger, search, heir, now))

    def inherit(self, search: str, submitter: str | None = None) -> None:
        """As :meth:`adopt`, and where it has a run slot that too: its work goes on."""
        heir = self.me.name if submitter is None else submitter
        self.outlook.change(lambda ledger, now: ending.inherit(ledger, search, heir, now))

    def take_up(self, search: str) -> None:
        """Inside Gate A: the submission that was found of it is complete, and goes on.

        One that has no hold any more is counted as what is seen without one.
        """

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            hold = ledger.holds.get(search)
            if hold is None:
                return tickets.withdraw(ledger, search, now)
            return ending.take_up(ledger, search, hold.fence, now)

        self.outlook.change(rule)

    def change_policy(
        self, by: str, *, ceiling: int | None = None, cap: int | None = None
    ) -> Policy:
        """Change what an operator decides. Raises ``ValueError`` for negative numbers."""
        after = self.outlook.change(
            lambda ledger, now: tickets.change_policy(ledger, by, now, ceiling=ceiling, cap=cap)
        )
        return after.policy
