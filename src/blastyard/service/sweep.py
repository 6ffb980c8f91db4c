"""Putting right what a dead process left behind.

Bookkeeping may be done by anybody on the store: a slot whose command is certainly gone is free, an
ended search has no hold. Looking after a search from then on is another matter: a service does it
for every account, any other process only for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from blastyard.admission.gate import Gate
from blastyard.admission.ledger import Hold, HoldState, Ledger, Submitter
from blastyard.admission.restoration import Claim
from blastyard.admission.roster import Presence, is_rowless
from blastyard.domain.errors import PASSING, NotFound, Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.engine.port import Engine, Running
from blastyard.service.ending import Endings
from blastyard.service.task import Tasks
from blastyard.store.port import SearchStore, Stale

SERVICE = "serve"
WORKER = "worker"
WEB = "web"
"""What accepts and shows searches, and looks after none."""
PUBLIC: Final = frozenset({SERVICE, WORKER})
"""What looks after searches of everybody."""


def may_look_after(submitter: Submitter, search: Search) -> bool:
    """Whether a process may run a search that another process left behind."""
    return submitter.kind in PUBLIC or submitter.account == search.account


def claims(store: SearchStore) -> list[Claim]:
    """What the store knows to be running, for a ledger that was lost.

    Only what has a recorded run: an attempt that has not got so far is still inside Gate A, and
    ends there when it does not find its hold again.
    """
    return [
        Claim(
            search.id,
            search.request.user,
            search.request.priority.level,
            search.attempt,
            HoldState.SUBMITTED,
            search.runner,
            alias=search.remote.id if search.remote else None,
            watched=search.remote is not None,
        )
        for search in store.live()
        if search.state.is_attempt and (search.run is not None or _goes_on(search))
    ]


def _goes_on(search: Search) -> bool:
    """Whether its submission to a cluster is known to be complete."""
    return search.remote is not None and search.state in (State.RUNNING, State.COLLECTING)


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep found: the searches that this process looks after from now on."""

    adopted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Round:
    """One sweep: what was known when it began, and what it has taken on."""

    upto: int
    """The ledger's fence at the beginning; grants above it are not judged."""
    present: Mapping[str, Presence]
    wants: Callable[[Search], bool]
    adopted: list[str]


class Sweep:
    """Looks for what dead processes left. ``wants(search)`` says whether to adopt one more."""

    def __init__(
        self,
        store: SearchStore,
        gate: Gate,
        engine: Engine,
        tasks: Tasks,
        endings: Endings,
    ) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine
        self._tasks = tasks
        self._endings = endings

    def __call__(self, wants: Callable[[Search], bool]) -> Swept:
        """Sweep once. Safe to run in several processes at a time: rows decide.

        What is to be judged is read *before* who is alive: a submitter signs on before it writes
        anything, so nothing of a newcomer is ever taken for an orphan. Raises ``Unavailable``, but
        not when something was adopted by then: who drives it must hear of it.
        """
        runners = self._store.runners() - {self._gate.me.name}
        if not self._seems_necessary(runners):
            return Swept(())
        ledger = self._gate.ledger()
        present = self._gate.submitters()
        round_ = _Round(ledger.fence, present, wants, [])
        try:
            for runner in sorted(runners):
                self._left_by(runner, round_)
            self._clear_holds(ledger, present)
            self._clear_tickets(ledger, present)
            self._retire(present)
        except Unavailable:
            if not round_.adopted:
                raise
        return Swept(tuple(round_.adopted))

    def _seems_necessary(self, runners: Set[str]) -> bool:
        """Whether anything looks left behind, as things were seen lately."""
        look = self._gate.outlook.glance()
        owners = {hold.submitter for hold in look.ledger.holds.values()}
        owners |= {ticket.submitter for ticket in look.ledger.tickets.values()}
        owners = {name for name in owners if self._gate.is_ours(name)} | runners
        if not owners <= look.alive:  # a search that was left to nobody has a runner without name
            return True
        mine = self._gate.me.name
        own = [name for name, hold in look.ledger.holds.items() if hold.submitter == mine]
        return self._may_retire(look.submitters, owners) or any(
            row is not None and row.state.is_terminal for row in map(self._row, own)
        )

    def _may_retire(self, present: Mapping[str, Presence], owners: Set[str]) -> bool:
        ending = self._gate.timings.ending
        return any(
            seen.gone_for >= ending and name not in owners and self._gate.is_ours(name)
            for name, seen in present.items()
        )

    def adopt(self, search_id: str) -> bool:
        """Look after one search that nobody alive looks after; whether it is ours now."""
        upto = self._gate.ledger().fence
        search = self._store.get(search_id)
        present = self._gate.submitters()
        if search.runner == self._gate.me.name:
            return True
        if search.state.is_terminal:
            return False
        seen = present.get(search.runner)
        if seen is not None and seen.is_alive(self._gate.timings):
            return False
        round_ = _Round(upto, present, lambda _: True, [])
        self._take(search, round_)
        return search_id in round_.adopted

    def _left_by(self, runner: str, round_: _Round) -> None:
        seen = round_.present.get(runner)
        if seen is None or not seen.is_alive(self._gate.timings):
            for search in self._store.live(runner):
                self._take(search, round_)

    def _is_ours(self, search: Search) -> bool:
        """Whether it can be judged here; what was handed to a cluster, not."""
        return search.remote is None

    def _take(self, search: Search, round_: _Round) -> None:
        if not self._is_ours(search):
            return
        seen = round_.present.get(search.runner)
        gone = seen is None or seen.gone
        heir = may_look_after(self._gate.me, search) and round_.wants(search)
        try:
            if search.state is State.QUEUED:
                taken = heir and self._adopt_queued(search, round_.upto)
            else:
                taken = gone and self._recover(search, round_.upto, heir=heir)
        except (Stale, NotFound):
            return
        except Unavailable as error:
            if heir:  # whether it is ours now cannot be told; its next step will
                round_.adopted.append(search.id)
            if error.code in PASSING:
                raise
            return  # one command that cannot be ended must not keep all others waiting
        if taken:
            round_.adopted.append(search.id)

    def _adopt_queued(self, search: Search, upto: int) -> bool:
        self._store.update(
            replace(search, runner=self._gate.me.name),
            Event(State.QUEUED, reason=f"{self._gate.me.label} looks after it now"),
        )
        self._gate.give_back(search.id, upto=upto)
        return True

    def _recover(self, search: Search, upto: int, *, heir: bool) -> bool:
        """End an attempt whose process is gone; back to the queue, to its old place."""
        if search.run is not None:
            self._engine.cancel(search.run)
            if isinstance(self._engine.poll(self._tasks.remains(search), search.run), Running):
                return False
        why = "the process that ran it is gone"
        failure = self._endings.why_given_up(search, why)
        if search.cancel_requested or failure is not None:
            if failure is None:
                self._endings.cancel(search)
            else:
                self._endings.fail(search, failure)
            self._gate.end(search.id)
            return False
        runner = self._gate.me.name if heir else ""
        self._store.update(
            replace(search, state=State.QUEUED, phase=None, run=None, runner=runner),
            Event(State.QUEUED, reason=why),
        )
        self._gate.give_back(search.id, runner, upto=upto)
        return heir

    def _clear_holds(self, ledger: Ledger, present: Mapping[str, Presence]) -> None:
        """Free the slots of searches that have ended, or of which nothing is alive any more.

        A hold without a row is a command's; its guardian may still be ending it for a moment after
        the command's process is gone.
        """
        me = self._gate.me.name
        for name, hold in ledger.holds.items():
            if not self._gate.is_ours(hold.submitter) or _is_settling(hold):
                continue
            seen = present.get(hold.submitter)
            if seen is not None and not seen.gone and hold.submitter != me:
                continue
            row = self._row(name)
            if row is None:
                ended = seen is None or seen.gone_for >= self._gate.timings.ending
                if ended and hold.submitter != me:
                    self._gate.end(name)
            elif row.state.is_terminal:
                self._gate.end(name)
            elif row.state is State.QUEUED and hold.submitter != me:
                self._gate.give_back(name, row.runner, upto=hold.fence)
        if self._gate.is_shared:
            return  # the overdue ones are everybody's to tend
        for name, fence in self._gate.overdue().items():
            self._gate.give_back(name, "", upto=fence)

    def _clear_tickets(self, ledger: Ledger, present: Mapping[str, Presence]) -> None:
        """Take out what waits for nobody. Our own tickets are met by their searches' steps."""
        for name, ticket in ledger.tickets.items():
            if not self._gate.is_ours(ticket.submitter):
                continue
            seen = present.get(ticket.submitter)
            if (seen is not None and not seen.gone) or ticket.submitter == self._gate.me.name:
                continue
            row = self._row(name)
            if row is None or row.state.is_terminal:
                self._gate.end(name)

    def _row(self, search_id: str) -> Search | None:
        try:
            return self._store.get(search_id)
        except NotFound:
            return None

    def _retire(self, present: Mapping[str, Presence]) -> None:
        """Remove submitters that ended a while ago and left nothing.

        Until then a lost ledger waits for what their guardians are still ending.
        """
        ledger = self._gate.ledger()
        owners = {hold.submitter for hold in ledger.holds.values()}
        owners |= {ticket.submitter for ticket in ledger.tickets.values()}
        owners |= self._store.runners()
        for name, seen in present.items():
            if not self._gate.is_ours(name) or name in owners:
                continue
            if seen.gone_for >= self._gate.timings.ending:
                self._gate.forget(name)


def _is_settling(hold: Hold) -> bool:
    """Whether something of its attempt in a cluster may still arrive; then it is tended."""
    return hold.failed_at is not None and not is_rowless(hold.submitter)
