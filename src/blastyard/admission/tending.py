"""Keeping a shared namespace in order: what dead submitters left, what has ended, what peers see.

Done now and then by every live process, and so by whichever comes first. All of it looks at what
was seen lately, at no cost; only what seems to need a hand is then read afresh and acted upon. What
it never does is to admit anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from blastyard.admission import courtesy, ending
from blastyard.admission import lease as gate_a
from blastyard.admission.census import Census
from blastyard.admission.ledger import Ledger
from blastyard.admission.observer import Retired
from blastyard.admission.onlooker import Onlooker, Passed
from blastyard.admission.order import Situation
from blastyard.admission.outlook import Look
from blastyard.admission.reservation import brought_up
from blastyard.admission.roster import is_rowless
from blastyard.admission.stay import Stay

if TYPE_CHECKING:
    from blastyard.admission.gate import Gate

PATIENCE: Final = 5.0
"""Seconds that something may seem to need a hand before it gets one: most is under way."""


class Tending:
    """The upkeep of one process. Call it every few seconds, from one thread at a time.

    ``passed`` is told of each search that came past Gate A.
    """

    def __init__(
        self,
        gate: Gate,
        new_token: Callable[[], str],
        onlooker: Onlooker | None = None,
        passed: Callable[[Passed], None] = lambda _: None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self.done: list[str] = []
        """What needed a hand in the latest call, in the order in which it got it."""
        self._gate = gate
        self._new_token = new_token
        self._onlooker = onlooker or Onlooker()
        self._passed = passed
        self._patience = patience
        self._since: dict[str, float] = {}

    def __call__(self) -> None:
        """Do what is necessary. Raises ``Unavailable``; the next call is the remedy."""
        self.done = []
        self._reckon()
        look = self._gate.outlook.glance()
        self._when("lease", self._lease_is_stale(), self._take_stale_lease)
        self._when("failed", bool(self._settled(look)), self._clear_failed)
        self._when("ended", self._has_moved(look), self._bring_up)
        self._when("unseen", bool(ending.unseen(look.ledger, look.census)), self._bring_up)
        self._when("silent", bool(self._silent(look)), self._clear_silent)
        self._when("markers", self._gate.marking.is_needed(), self._mark)

    def _when(self, what: str, needed: bool, act: Callable[[], None]) -> None:
        now = self._gate.monotonic()
        if not needed:
            self._since.pop(what, None)
        elif now - self._since.setdefault(what, now) >= self._patience:
            del self._since[what]
            self.done.append(what)
            act()

    def _reckon(self) -> None:
        """What was seen to happen at Gate A: a program that was denied is owed a slot."""
        reckoning = self._onlooker.reckon(self._gate.monotonic())
        for each in reckoning.passed:
            self._passed(each)
        if reckoning.denied and self._gate.lately().tickets:
            self._gate.outlook.change(courtesy.owe)

    # -- the submit lease ----------------------------------------------------------------------

    def _lease_is_stale(self) -> bool:
        seen = self._gate.record.lease()
        holder = seen.lease.holder_identity
        if not gate_a.is_blastyard(holder):
            return False
        return isinstance(gate_a.judge(seen, self._gate.timings), gate_a.Free)

    def _take_stale_lease(self) -> None:
        """A lease is never merely cleared: who held it may not have shown its hold to peers."""
        self._inside(lambda _: None)

    # -- holds ---------------------------------------------------------------------------------

    def _settled(self, look: Look) -> Mapping[str, tuple[str, int]]:
        return ending.settled(look.ledger, look.now, self._gate.timings)

    def _clear_failed(self) -> None:
        """Inside Gate A: an attempt that resumes one of them makes its Jobs there too."""
        self._inside(self._delete_failed)

    def _delete_failed(self, stay: Stay) -> None:
        ledger, now = self._gate.outlook.ledger()
        for search, (name, fence) in ending.settled(ledger, now, self._gate.timings).items():
            if not stay.is_trusted:
                return
            self._gate.marking.markers.delete_search(name)
            submitter = ledger.holds[search].submitter
            if is_rowless(submitter):
                self._gate.give_up(search, fence)
            else:
                self._gate.give_back(search, submitter, upto=fence)

    def _inside(self, act: Callable[[Stay], None]) -> None:
        stay = self._gate.enter(f"sweep-{self._new_token()}", 1)
        if isinstance(stay, Stay):
            try:
                stay.assert_markers()
                act(stay)
            finally:
                self._gate.leave(stay)

    def _has_moved(self, look: Look) -> bool:
        """A glance has brought its copy of the ledger up to what is seen; nobody may be admitted
        for long, and so write it: who has ended, who is alone, what is owed."""
        ledger, _ = self._gate.record.ledger(glance=True)
        if ledger is None:
            return False
        seen = look.ledger
        same = ledger.holds.keys() == seen.holds.keys() and ledger.lone == seen.lone
        return not (same and ledger.courtesy == seen.courtesy)

    def _bring_up(self) -> None:
        alive, census = self._gate.outlook.observe()
        census = self._with_ends(census)
        timings = self._gate.timings
        gone: frozenset[str] = frozenset()

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            nonlocal gone
            after = brought_up(ledger, Situation(now, alive, census), timings, shared=True)
            gone = frozenset(ledger.holds.keys() - after.holds.keys())
            return None if after is ledger else after

        self._gate.outlook.change(rule)
        if gone:
            self._gate.observer(Retired(gone))

    def _with_ends(self, census: Census) -> Census:
        """Who is seen no more may have ended while nothing was followed: look for its finalizer."""
        ledger, _ = self._gate.record.ledger(glance=True)
        names = ending.unseen(ledger, census) if ledger is not None else frozenset()
        if not names:
            return census
        return replace(census, finished=census.finished | self._gate.outlook.finished(names))

    # -- submitters that are gone --------------------------------------------------------------

    def _silent(self, look: Look) -> frozenset[str]:
        """Holds, tickets and submitters that nobody alive stands behind any more.

        On a ledger that is not whole, whoever is silent is waited for.
        """
        if not look.ledger.is_whole:
            return frozenset()
        timings = self._gate.timings
        silent = {name: seen.silent_for for name, seen in look.submitters.items()}
        situation = Situation(look.now, look.alive, look.census)
        forsaken = ending.forsaken(look.ledger, silent, situation, timings)
        overdue = ending.overdue(look.ledger, silent, situation, timings)
        complete = self._complete(look, silent)
        gone = self._dead_tickets(look) | self._dead_submitters(look)
        return forsaken | overdue.keys() | complete.keys() | gone

    def _complete(self, look: Look, silent: Mapping[str, timedelta]) -> dict[str, int]:
        """Complete submissions of submitters that will never say so."""
        situation = Situation(look.now, look.alive, look.census)
        found = ending.left_complete(look.ledger, silent, situation, self._gate.timings)
        holds = look.ledger.holds
        return {name: n for name, n in found.items() if is_rowless(holds[name].submitter)}

    def _dead_tickets(self, look: Look) -> frozenset[str]:
        return frozenset(
            name
            for name, ticket in look.ledger.tickets.items()
            if self._has_left(look, ticket.submitter)
        )

    def _has_left(self, look: Look, submitter: str) -> bool:
        """Whether a submitter will certainly not come back for what waits in its name."""
        seen = look.submitters.get(submitter)
        if seen is None:
            return is_rowless(submitter)
        return (seen.gone and is_rowless(submitter)) or (
            seen.silent_for >= self._gate.timings.forgotten
        )

    def _dead_submitters(self, look: Look) -> frozenset[str]:
        owners = {hold.submitter for hold in look.ledger.holds.values()}
        owners |= {ticket.submitter for ticket in look.ledger.tickets.values()}
        return frozenset(
            name
            for name, seen in look.submitters.items()
            if name not in owners and self._has_left(look, name) and name != self._gate.me.name
        )

    def _clear_silent(self) -> None:
        look = self._gate.outlook.look()
        if not look.ledger.is_whole:
            return
        timings = self._gate.timings
        silent = {name: seen.silent_for for name, seen in look.submitters.items()}
        situation = Situation(look.now, look.alive, look.census)
        for name in ending.forsaken(look.ledger, silent, situation, timings):
            self._gate.end(name)
        for name, fence in ending.overdue(look.ledger, silent, situation, timings).items():
            if is_rowless(look.ledger.holds[name].submitter):
                self._gate.give_up(name, fence)
            else:
                self._gate.give_back(name, "", upto=fence)
        if complete := self._complete(look, silent):
            self._inside(lambda stay: self._take_up(stay, complete))
        for name in self._dead_tickets(look):
            self._gate.withdraw(name)
        for name in self._dead_submitters(look):
            self._gate.forget(name)

    def _take_up(self, stay: Stay, complete: Mapping[str, int]) -> None:
        """Inside Gate A, where none of their commands can be: they go on by themselves."""
        for search, fence in complete.items():
            if stay.is_trusted:
                self._gate.outlook.change(partial(_taken_up, search, fence))

    # -- markers -------------------------------------------------------------------------------

    def _mark(self) -> None:
        for search in self._gate.marking.sweep().cancelled:
            self._gate.cancelled_by_peer(search)


def _taken_up(search: str, fence: int, ledger: Ledger, now: datetime) -> Ledger | None:
    return ending.take_up(ledger, search, fence, now)
