"""The gate of a simulated process, telling the observer who is inside and what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt, Submission
from blastyard.admission.ledger import Fence, Policy
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.testing.ledger_invariant import Confirming
from blastyard.testing.scheduler import Crashed
from blastyard.testing.simulated_engine import ActorCensus

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor

R = TypeVar("R")


class ObservedGate(Gate):
    """A gate that tells the observer who is inside."""

    def __init__(self, actor: Actor, claims: Callable[[], Sequence[Claim]]) -> None:
        world, schedule = actor.world, actor.world.schedule
        seed = Policy(schedule.ceiling, schedule.cap, schedule.ageing)
        around = Surroundings(
            world.clock.monotonic, world.is_gone, ActorCensus(actor), world.new_uid, claims
        )
        super().__init__(actor.documents, actor.me, GateSettings(seed, world.timings), around)
        self._actor = actor

    def enter(self, search: str, attempt: int) -> Stay | Waiting:
        """See the gate."""
        began_at = self._actor.world.clock.now()
        stay = super().enter(search, attempt)
        if isinstance(stay, Waiting):
            return stay
        observer = self._actor.world.observer
        observer.ledger_rules.entered_at[search] = began_at
        observer.gate_a.entered(self._actor, stay)
        self._actor.inside += 1
        return ObservedStay(stay, self._actor)

    def leave(self, stay: Stay) -> None:
        """See the gate."""
        if self._actor.dead:
            raise Crashed
        self._actor.world.observer.gate_a.left(stay)
        super().leave(stay.inner if isinstance(stay, ObservedStay) else stay)
        self._actor.inside -= 1


class ObservedStay(Stay):
    """A stay that tells the observer what is asked for in it."""

    def __init__(self, inner: Stay, actor: Actor) -> None:
        self.inner = inner
        self._actor = actor
        self.holder = inner.holder

    @property
    def deadline(self) -> float:  # type: ignore[override]
        """See the stay."""
        return self.inner.deadline

    @property
    def is_trusted(self) -> bool:
        """See the stay."""
        return self.inner.is_trusted

    def renew(self) -> bool:
        """See the stay."""
        return self.inner.renew()

    def close(self) -> bool:
        """See the stay."""
        return self.inner.close()

    def abandon(self) -> None:
        """See the stay."""
        self.inner.abandon()

    def reserve(self, attempt: Attempt, *, stands_in: bool = True) -> Granted | Waiting | Refused:
        """See the stay."""
        return self._doing(attempt, lambda: self.inner.reserve(attempt, stands_in=stands_in))

    def confirm(self, search: str, fence: Fence, made: Submission | None = None) -> bool:
        """See the stay."""
        confirming = Confirming(search, fence.number)
        confirmed = self._doing(confirming, lambda: self.inner.confirm(search, fence, made))
        if confirmed:
            self._actor.world.observer.ledger_rules.believes(search, fence)
        return confirmed

    def _doing(self, deed: Attempt | Confirming, call: Callable[[], R]) -> R:
        world = self._actor.world
        task = world.scheduler.current
        if task is None:
            raise RuntimeError("only a task can be inside")
        doing = world.observer.ledger_rules.doing
        doing[task] = deed
        try:
            return call()
        finally:
            doing.pop(task, None)
