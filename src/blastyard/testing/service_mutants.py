"""Wrong moves of the services around the rules."""

# ruff: noqa: ARG001, ARG002, ARG005  (a wrong rule ignores what the right one looks at)
from __future__ import annotations

from datetime import timedelta
from typing import Any

from blastyard.admission.ledger import HoldState
from blastyard.admission.restoration import Claim
from blastyard.domain.errors import Failure
from blastyard.service.sweep import Swept, _Round
from blastyard.testing.mutant import Swap, mutant
from blastyard.testing.schedule import Habitat


def _recover_at_once(right: Any) -> Any:
    def recover(self: Any, search: Any, upto: int, *, heir: bool) -> object:
        engine, self._engine = self._engine, _DoesNothing()
        try:
            return right(self, search, upto, heir=heir)
        finally:
            self._engine = engine

    return recover


class _DoesNothing:
    def cancel(self, ref: Any) -> None:
        """Leave it running."""

    def poll(self, task: Any, ref: Any) -> None:
        """See nothing."""


mutant(
    "slot freed before the command is gone",
    "the hold of a dead process's search ends while its guardian still ends the command",
    Swap("service.sweep:Sweep._recover", _recover_at_once),
)


def _presence_first(self: Any, wants: Any) -> Swept:
    present = self._gate.submitters()
    runners = self._store.runners() - {self._gate.me.name}
    ledger = self._gate.ledger()
    round_ = _Round(ledger.fence, present, wants, [])
    for runner in sorted(runners):
        self._left_by(runner, round_)
    self._clear_holds(ledger, present)
    self._clear_tickets(ledger, present)
    self._retire(present)
    return Swept(tuple(round_.adopted))


mutant(
    "presence before rows",
    "who is alive is read before what they have, so a newcomer's searches look orphaned",
    Swap("service.sweep:Sweep.__call__", lambda _: _presence_first),
)


def _take_the_silent(right: Any) -> Any:
    def take(self: Any, search: Any, round_: Any) -> object:
        present = {
            name: seen for name, seen in round_.present.items() if seen.is_alive(self._gate.timings)
        }
        return right(self, search, _Round(round_.upto, present, round_.wants, round_.adopted))

    return take


mutant(
    "the silent are dead",
    "attempts of a process that only stands still are taken over",
    Swap("service.sweep:Sweep._take", _take_the_silent),
    Habitat.STALLS,
)


def _leave_while_running(self: Any, run: Any, stay: Any) -> None:
    """Nothing is ended."""


mutant(
    "gate left while the command runs",
    "an attempt that failed leaves Gate A and lets its command run on until its deadline",
    Swap("service.attempt:Attempts._end", lambda _: _leave_while_running),
)

mutant(
    "cleared although it cannot be ended",
    "Gate A is given free though the command inside could not be ended",
    Swap("admission.stay:Stay.abandon", lambda _: lambda self: None),
)

mutant(
    "no claims",
    "nobody brings back what runs when the ledger was lost",
    Swap("service.sweep:claims", lambda _: lambda store: []),
    Habitat.LOSSES,
)

mutant(
    "the dead are forgotten at once",
    "nobody waits for the guardians of a dead process to end its commands",
    Swap(
        "admission.roster:Roster._gone_for",
        lambda right: (
            lambda self, submitter: None if right(self, submitter) is None else _long_ago()
        ),
    ),
    Habitat.DEATHS,
)


def _long_ago() -> timedelta:
    return timedelta(hours=1)


def _confirm_nothing(right: Any) -> Any:
    def run(self: Any, search: Any, stay: Any, granted: Any, started: Any) -> object:
        stay_ = _Confirmed(stay)
        return right(self, search, stay_, granted, started)

    return run


class _Confirmed:
    """A stay that says yes without asking."""

    def __init__(self, stay: Any) -> None:
        self.holder = stay.holder
        self.is_trusted = True

    def confirm(self, search: str, fence: Any) -> bool:
        """Nothing is asked."""
        return True


mutant(
    "never confirmed",
    "a command runs on without its hold having been confirmed",
    Swap("service.attempt:Attempts._run", _confirm_nothing),
)

mutant(
    "waits are faults",
    "each claim counts as an attempt, so that waiting uses up the attempts",
    Swap(
        "service.ending:Endings.why_given_up",
        lambda right: lambda self, search, why: _given_up(search) or right(self, search, why),
    ),
)


def _given_up(search: Any) -> object:
    return Failure("runner_died", "too many attempts", "") if search.attempt >= 5 else None


def _claim_attempts(right: Any) -> Any:
    def claims(store: Any) -> object:
        reserved = [
            Claim(
                row.id,
                row.request.user,
                row.request.priority.level,
                row.attempt,
                HoldState.RESERVED,
                row.runner,
            )
            for row in store.live()
            if row.state.is_attempt and row.run is None
        ]
        return [*right(store), *reserved]

    return claims


mutant(
    "claims of what never ran",
    "an attempt without a command brings back a hold that it may never have had",
    Swap("service.sweep:claims", _claim_attempts),
    Habitat.LOSSES,
)

mutant(
    "published once",
    "a search whose publication was lost stays in the store",
    Swap(
        "service.window:Window.refill",
        lambda right: lambda self, *, force=False: right(self, force=True) if force else None,
    ),
)


def _whatever_it_is(right: Any) -> Any:
    def give(self: Any, search: Any, heir: str, upto: int) -> object:
        return right(self, search, heir, 1 << 62)

    return give


mutant(
    "handed over whatever it is",
    "a process that ends takes a hold away that its heir was granted since",
    Swap("service.handover:Handover._give", _whatever_it_is),
    Habitat.STALLS,
)
