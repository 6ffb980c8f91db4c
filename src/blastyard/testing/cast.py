"""Simulated processes that keep searches in rows: services, searching commands, operators."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from blastyard.domain.errors import NotFound, Unavailable
from blastyard.domain.job import State
from blastyard.domain.program import Program
from blastyard.domain.search import Event, Priority, Query, Request, Search
from blastyard.service.advance import Advance, Stages
from blastyard.service.attempt import Attempts
from blastyard.service.ending import Endings
from blastyard.service.handover import Handover
from blastyard.service.outcome import Done, Wait
from blastyard.service.searches import Desk, Person, Searches
from blastyard.service.sweep import SERVICE, Sweep, claims, may_look_after
from blastyard.service.window import Window
from blastyard.testing.actor import Actor
from blastyard.testing.schedule import Kind, Order
from blastyard.testing.scheduler import Signal
from blastyard.worker.driver import Driver, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from blastyard.admission.restoration import Claim
    from blastyard.testing.schedule import Role
    from blastyard.testing.world import World

_LONG = 3600.0
_LEVELS = {priority.level: priority for priority in Priority}


class Player(Actor):
    """A process with all the services, as ``bootstrap.yard`` puts them together."""

    def __init__(self, world: World, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)
        self.endings = Endings(self.store, lambda: "simulated")
        self.window = Window(self.store, self.gate, world.clock.monotonic)
        nothing = cast("Any", None)  # files and intake: nothing of them is simulated
        person = Person(role.account, "somebody")
        desk = Desk(
            self.store,
            self.gate,
            nothing,
            nothing,
            self.window,
            self.endings,
            person,
            nothing,
        )
        self.searches = Searches(desk)
        self.sweep = Sweep(self.store, self.gate, self.engine, self.tasks, self.endings)

    def _claims(self) -> Sequence[Claim]:
        return claims(self.store)

    def begin(self, live: Callable[[], None]) -> None:
        """See the actor."""
        self.world.note(f"{self.name} begins")
        super().begin(live)

    def sign_on(self) -> None:
        """Give the first sign of life; a process that cannot is no submitter yet."""
        while True:
            try:
                self.gate.beat()
            except Unavailable:
                self.world.scheduler.sleep(1.0)
            else:
                return

    def submit(self, order: Order, runner: str) -> Search | None:
        """Store and publish a search as ``Searches.submit`` does; ``None`` = an error was told."""
        try:
            search = self._stored(order, runner)
        except (Unavailable, NotFound):
            return None
        with suppress(Unavailable):
            self.window.offer(search)
        return search

    def _stored(self, order: Order, runner: str) -> Search:
        asked = self._row(order, runner)
        try:
            return self.store.add(asked, Event(State.QUEUED, reason="accepted"))
        except Unavailable:
            return self.store.get(asked.id)

    def _row(self, order: Order, runner: str) -> Search:
        now = self.store.now()
        until = None if order.patience is None else now + timedelta(seconds=order.patience)
        request = Request(Program.BLASTN, "nt", (), "6", order.user, _LEVELS[order.level])
        return Search(
            order.name,
            request,
            Query(1, 100, 100, 100, "ab" * 32),
            self.role.account,
            now,
            runner=runner,
            submit_deadline_at=until,
            capacity_deadline_at=until,
        )


class Runner(Player):
    """A service, or a command that runs what it submitted."""

    def __init__(self, world: World, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)
        attempts = Attempts(self.store, self.gate, self.engine, self.tasks, self._wake)
        stages = Stages(
            self.store, self.gate, self.engine, self.tasks, attempts, self.window, self.endings
        )
        self._advance = Advance(stages)
        work = Work(self._step, self.sweep, self.gate, self.watch, self._wants, self._upkeep)
        self.driver = Driver(work, world.clock.monotonic)
        self._stopping = Signal(world.scheduler)
        self._steps = 0
        self._orders = [
            order
            for order in world.schedule.orders
            if order.slot == slot and not order.posted and order.name not in world.begun
        ]
        self._asked = 0

    @property
    def has_orders(self) -> bool:
        """Whether it has yet to submit something."""
        return self._asked < len(self._orders)

    def live(self) -> None:
        """Submit what is ordered, and work as ``worker.inprocess`` does with threads."""
        self.sign_on()
        for order in self._orders:
            self.world.scheduler.spawn(self, order.name, partial(self._order, order))
        self.world.scheduler.spawn(self, "heart", self._beat)
        while not self._stopping.is_set() and not self._is_finished():
            self._round()
        self._leave()

    def stop(self) -> None:
        """Stop in order."""
        self._stopping.set()
        self.watch.wake()

    def _round(self) -> None:
        self.world.observer.planned(self.name)
        planned = self.driver.plan()
        for search_id in self.driver.begin():
            self._steps += 1
            self.world.scheduler.spawn(self, search_id, partial(self._drive, search_id))
        delay = self.driver.pause(planned)
        if delay > 0:
            self.watch.wait(delay)
            self.driver.resume()
        else:
            self.world.scheduler.sleep(0.0)

    def _drive(self, search_id: str) -> None:
        again = self.driver.step(search_id)
        self._steps -= 1
        if again or self._stopping.is_set():
            self.watch.wake()

    def _step(self, search_id: str) -> Done | Wait:
        rows = self.world.searches.rows
        before = rows.get(search_id)
        outcome = self._advance(search_id)
        self.world.observer.stepped(search_id, before, rows.get(search_id))
        return outcome

    def _order(self, order: Order) -> None:
        self.world.scheduler.sleep(max(0.0, order.at - self.world.now))
        self.world.begun.add(order.name)
        search = self.submit(order, self.name)
        self._asked += 1
        if search is not None:
            self.driver.take([search.id])
            self.watch.wake()

    def _beat(self) -> None:
        every = self.world.timings.beat.total_seconds()
        while not self._stopping.wait(every):
            self.driver.beat()

    def _wake(self, search_id: str) -> None:
        self.driver.take([search_id])
        self.watch.wake()

    def _upkeep(self) -> None:
        self.window.refill()

    def _wants(self, search: Search) -> bool:
        return may_look_after(self.me, search)

    def _is_finished(self) -> bool:
        if self.role.kind is Kind.SERVE or self.has_orders:
            return False
        return self.driver.active == 0

    def _leave(self) -> None:
        """Finish the steps under way, hand over what is left, sign off."""
        self._stopping.set()
        while self._steps:
            self.watch.wait(_LONG)
        try:
            Handover(self.store, self.gate, self.engine)()
            self.gate.retire()
        except Unavailable:
            self.world.note("could not leave in order")
        self.end()


class Errand(Player):
    """A short process of an operator or a submitting command: does one thing and ends.

    A store that does not answer is asked again a few times, as a person would.
    """

    def run(self, call: Callable[[Errand], None], tries: int = 5) -> None:
        """Do it, and end."""
        self.begin(lambda: self._do(call, tries))

    def _do(self, call: Callable[[Errand], None], tries: int) -> None:
        for _ in range(tries):
            try:
                call(self)
                break
            except Unavailable:
                self.world.scheduler.sleep(2.0)
        self.end()

    def post(self, order: Order) -> None:
        """Submit for the service, or for nobody, as ``blastyard submit`` does."""
        self.world.begun.add(order.name)
        runner = ""
        for name, seen in self.gate.submitters().items():
            if seen.submitter.kind == SERVICE and seen.is_alive(self.world.timings):
                runner = name
        self.submit(order, runner)
