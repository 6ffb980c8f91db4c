"""A blastyard in the test's own process, with the protocol's constants scaled down."""

from __future__ import annotations

from dataclasses import dataclass

from waiting_stage import until

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Granted
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.bootstrap.gate import OpenGate


@dataclass
class Installation:
    """One blastyard in this process. Its heart beats only when the test says so."""

    opened: OpenGate

    @property
    def gate(self) -> Gate:
        return self.opened.gate

    def inside(self, search: str, attempt: int = 1) -> Stay:
        """Go inside Gate A, which must be possible at once."""
        stay = self.gate.enter(search, attempt)
        assert isinstance(stay, Stay), stay.detail
        return stay

    def refused(self, search: str, attempt: int = 1) -> str:
        """What Gate A says, which must be closed."""
        outcome = self.gate.enter(search, attempt)
        assert not isinstance(outcome, Stay)
        return outcome.detail

    def publish(self, search: str) -> None:
        """Give the search a ticket."""
        self.gate.publish([Wish(search, "ada", 1)])

    def entered(self, search: str, attempt: int = 1) -> Stay | None:
        """Go inside Gate A, if nobody is there."""
        outcome = self.gate.enter(search, attempt)
        return outcome if isinstance(outcome, Stay) else None

    def reserved(self, stay: Stay, search: str, attempt: int) -> str:
        """What asking for a slot comes to, as its kind and words."""
        outcome = stay.reserve(Attempt(search, attempt, self.gate.me.name))
        return f"{type(outcome).__name__} {getattr(outcome, 'detail', '')}"

    def admitted(self, search: str, attempt: int = 1) -> tuple[Stay, Granted]:
        """Publish the search, wait for its turn, and get the slot; the caller leaves the stay."""
        self.publish(search)

        def entered() -> tuple[Stay, Granted] | None:
            if not isinstance(self.gate.turn(search), Turn):
                return None
            stay = self.entered(search, attempt)
            if stay is None:
                return None
            outcome = stay.reserve(Attempt(search, attempt, self.gate.me.name))
            if isinstance(outcome, Granted):
                return stay, outcome
            self.gate.leave(stay)
            return None

        return until(entered)
