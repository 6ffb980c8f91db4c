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
from blastyard.testing.passerby import move_to_virtual_time
from blastyard.testing.schedule import Role

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld

NOT_SUBMITTED: Final = ("unavailable", "lease_lost", "failed", "killed", "timeout")


class VirtualSubmitting(Submitting):
    """The passage of a submit command, in virtual time."""

    def __init__(self, execution: Execution, order: ClusterOrder) -> None:
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
        move_to_virtual_time(self, execution.world.scheduler, execution)

    @property
    def attempt(self) -> int:
        """The number of the attempt under way."""
        return self._attempt


class Execution(OnCluster):
    """One command line of the schedule: waits, runs its command inside Gate A, and ends."""

    def __init__(self, world: ClusterWorld, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)
        order = next(order for order in world.schedule.orders if order.slot == slot)
        assert isinstance(order, ClusterOrder)
        self.order = order
        self.number = number
        self._passage = VirtualSubmitting(self, order)
        self.on_end: Callable[[str], None] = lambda _: None

    def _claims(self) -> Sequence[Claim]:
        return self._passage.claims()

    def live(self) -> None:
        """All of it."""
        self.world.scheduler.sleep(max(0.0, self.order.at - self.world.now))
        self.world.note(f"{self.name} begins")
        self.world.begun.add(self.order.name)
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
        return SubmitCommand(self, self.order, self._passage.attempt, deadline)
