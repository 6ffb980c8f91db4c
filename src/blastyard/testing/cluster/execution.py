"""`blastyard exec` in a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from blastyard.admission.restoration import Claim
from blastyard.admission.ticket import Wish
from blastyard.domain.errors import BlastyardError, Unavailable
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.service.submitting import Submitting
from blastyard.testing.cluster.actor import OnCluster
from blastyard.testing.cluster.command import SubmitCommand
from blastyard.testing.cluster.schedule import ClusterOrder
from blastyard.testing.schedule import Role
from blastyard.testing.scheduler import Signal, VirtualThread

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld

NOT_SUBMITTED: Final = ("unavailable", "lease_lost", "failed", "killed", "timeout")


class VirtualSubmitting(Submitting):
    """The passage of a submit command, with tasks for its threads and virtual waits."""

    def __init__(self, execution: Execution, order: ClusterOrder) -> None:
        scheduler = execution.world.scheduler
        entrance = Entrance(
            execution.gate,
            execution.watch,
            execution.world.clock.monotonic,
            execution.tend,
            execution.tend,
        )
        super().__init__(
            entrance,
            Wish(order.name, order.user, order.level),
            Patience(),
            lambda *_: None,
            limit=execution.world.timings.command,
            watched=True,
            first=execution.number * 1000,
        )
        self._stopped = Signal(scheduler)  # type: ignore[assignment]
        self._ended = Signal(scheduler)  # type: ignore[assignment]
        self._never = Signal(scheduler)  # type: ignore[assignment]
        self._heart = VirtualThread(scheduler, execution, self._beat)  # type: ignore[assignment]

    @property
    def attempt(self) -> int:
        """The number of the attempt under way."""
        return self._attempt


class Execution(OnCluster):
    """One command line: waits, runs its command inside Gate A, and ends."""

    def __init__(self, world: ClusterWorld, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)
        order = next(order for order in world.schedule.orders if order.slot == slot)
        assert isinstance(order, ClusterOrder)
        self._order = order
        self.number = number
        self._passage = VirtualSubmitting(self, order)
        self.on_end: Callable[[str], None] = lambda _: None

    def _claims(self) -> Sequence[Claim]:
        return self._passage.claims()

    def begin(self, live: Callable[[], None]) -> None:
        """Let it live, from now on."""
        self.world.scheduler.spawn(self, "main", live)

    def live(self) -> None:
        """All of it."""
        self.world.scheduler.sleep(max(0.0, self._order.at - self.world.now))
        self.world.note(f"{self.name} begins")
        self.world.begun.add(self._order.name)
        self.follow()
        outcome = self._outcome()
        self.world.note(f"outcome {outcome}")
        with suppress(Unavailable):
            self.gate.retire()
        self.end()
        self.on_end(outcome)

    def stop(self) -> None:
        """Ctrl-C."""
        self._passage.stop()

    def _outcome(self) -> str:
        try:
            self.gate.beat()
            with self._passage as passage:
                passage.admit(self._start).wait()
        except Stopped:
            return "interrupted"
        except BlastyardError as error:
            return error.code
        result = self._passage.result
        return "unavailable" if result is None else str(result.fate)

    def _start(self, deadline: float) -> SubmitCommand:
        return SubmitCommand(self, self._order, self._passage.attempt, deadline)
