"""The machine as one simulated process sees it: its engine, and its census."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from blastyard.admission.census import Census
from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Run
from blastyard.engine.port import Output, RunState, Task
from blastyard.testing.engine import FakeEngine

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor


class ActorCensus:
    """What runs on the world's machine, ours and foreign, as one process can see it."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def read(self, *, urgent: bool = False) -> Census:  # noqa: ARG002
        """See the port."""
        self._actor.reach("before:census:")
        self._actor.refuse_if_planned("census")
        return Census(self._actor.world.take_census())

    def glance(self) -> Census:
        """See the port; there is no cache."""
        return self.read()

    def later(self, census: Census) -> Census:
        """See the port."""
        return census

    def finished(self, names: Iterable[str]) -> frozenset[str]:  # noqa: ARG002
        """See the port; nothing here goes on without its submitter."""
        return frozenset()


class ActorEngine:
    """The engine of one process on the world's machine; commands last as their orders say."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._world = actor.world
        self._inner = FakeEngine(actor.world.machine, owner=actor.name)

    def start(self, task: Task, deadline: float | None, on_exit: Callable[[], None]) -> Run:
        """See the port."""
        world, name = self._world, task.search_id
        world.observer.starts(self._actor, task, deadline)
        self._actor.reach(f"before:start:{name}")
        self._actor.refuse_if_planned(f"start of {name}")
        if deadline is not None and deadline <= world.now:
            raise Unavailable("internal", "its guardian started after the deadline")
        world.observer.started(self._actor, task)
        ref = self._inner.start(task, deadline, self._later(on_exit))
        run = world.machine.runs[-1]
        order = world.orders[name]
        run.finishes_at = None if order.fails else world.now + order.seconds
        world.finish(run, order.seconds, fails=order.fails)
        world.observer.gate_a.check()
        self._actor.reach(f"after:start:{name}")
        return ref

    def _later(self, on_exit: Callable[[], None]) -> Callable[[], None]:
        def tell() -> None:
            if not self._actor.dead:
                self._world.scheduler.spawn(self._actor, "exit", on_exit)

        return tell

    def extend(self, ref: Run, deadline: float | None) -> None:
        """See the port."""
        self._actor.reach(f"before:extend:{ref.attempt}")
        self._inner.extend(ref, deadline)
        self._world.observer.extended(self._world.machine.find(ref))

    def poll(self, task: Task, ref: Run) -> RunState:
        """See the port."""
        self._actor.reach(f"before:poll:{task.search_id}")
        return self._inner.poll(task, ref)

    def cancel(self, ref: Run) -> None:
        """See the port."""
        self._actor.reach(f"before:cancel:{ref.attempt}")
        self._actor.refuse_if_planned("cancel")
        self._inner.cancel(ref)
        self._actor.reach(f"after:cancel:{ref.attempt}")

    def end(self, ref: Run) -> None:
        """Cancel, for whoever asks the guardian itself."""
        self._actor.reach(f"before:end:{ref.attempt}")
        self._inner.cancel(ref)

    def collect(self, task: Task, ref: Run) -> Output:
        """See the port."""
        self._actor.reach(f"before:collect:{task.search_id}")
        self._actor.refuse_if_planned("collect")
        return self._inner.collect(task, ref)

    def discard(self, task: Task) -> None:
        """See the port."""
        self._actor.reach(f"before:discard:{task.search_id}")
