"""An installation with a store: ``… worker --name w0``, its rows in BLASTYARD_HOME/rows.json.

Many searches wait in one process, over the real gate. Killed and started again, it takes up what
its rows and the ledger tell: a slot that was reserved is resumed as the protocol says. It goes on
when all has ended, and keeps the namespace in order until SIGTERM.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Final

from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.ledger import HoldState, Ledger
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.engine.guarded import Command, GuardedCommand
from blastyard.service.entrance import Entrance, Patience
from blastyard.service.submitting import Fate, Result, Submitting
from blastyard.settings import caller_environment, read_settings
from blastyard.testing.cluster_soak.deeds import Teller, ToldCommand
from blastyard.testing.cluster_soak.row import ENDED, OPEN, SUBMITTED, Row, Rows
from blastyard.testing.cluster_soak.site import open_site, timings_of

LONGEST_WAIT: Final = 1.0
TEND_EVERY: Final = 1.5
AGAIN: Final = 0.3


class Turn(Submitting):
    """One submission by whoever is inside Gate A already."""

    def submit(self, stay: Stay, granted: Granted, start: Start) -> Result | None:
        """Run the command; what became of it. Raises as the passage does."""
        self._submit(stay, granted.fence, start).close()
        return self.result

    def adopt(self, stay: Stay, granted: Granted) -> Result | None:
        """An earlier attempt has submitted it completely."""
        return self._while_trusted(stay, lambda: self._complete(stay, granted.fence))


class Start:
    """Starts the submit command of a row."""

    def __init__(self, row: Row, tell: Teller, holder: str) -> None:
        self._row = row
        self._tell = tell
        self._holder = holder

    def __call__(self, deadline: float) -> ToldCommand:
        search = self._row.search
        environment = {**caller_environment(), "BLASTYARD_SEARCH_ID": search}
        self._tell("submitting", search, holder=self._holder, gate=True, ids=[search])
        running = GuardedCommand.start(Command(self._row.words, environment), deadline)
        return ToldCommand(running, self._tell, search, self._holder)


class Worker:
    """All of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        settings = read_settings()
        self._timings = timings_of(options)
        self._tell = Teller(options.name)
        self._rows = Rows(settings.directory / "rows.json")
        site = open_site(
            settings, self._timings, self._tell, name=options.name, claims=self._claims
        )
        self._opened = site.opened
        self._gate = site.opened.gate
        self._watch = site.opened.documents.watch()
        self._clock = SystemClock()
        self._stopping = Event()
        self._tended_at = self._clock.monotonic()
        self._entrance = Entrance(
            self._gate, self._watch, self._clock.monotonic, lambda: None, self._opened.tend
        )

    def _claims(self) -> Sequence[Claim]:
        return self._rows.claims(self._gate.me.name)

    def stop(self) -> None:
        """From a signal handler."""
        self._stopping.set()
        self._watch.wake()

    def run(self) -> None:
        """Until stopped."""
        heart = Thread(target=self._beat)
        self._say_accepted()
        heart.start()
        while not self._stopping.is_set():
            try:
                self._step()
            except Unavailable as error:
                sys.stderr.write(f"{error.code}: {error.message}\n")
                self._stopping.wait(AGAIN)
        heart.join()  # a beat would sign on again
        with suppress(Unavailable):
            self._gate.flush()
        with suppress(Unavailable):
            self._gate.retire()
        self._opened.documents.close()

    def _say_accepted(self) -> None:
        for row in self._rows:
            if not row.attempt:
                self._tell("accepted", row.search, user=row.user, level=row.level)

    def _beat(self) -> None:
        every = self._timings.beat.total_seconds()
        while not self._stopping.is_set():
            with suppress(Exception):  # the next beat is the remedy
                self._gate.beat()
            self._stopping.wait(every)

    def _step(self) -> None:
        self._compare(self._gate.lately())
        self._publish()
        due = self._gate.due()
        row = next(filter(None, map(self._open, due.searches)), None)
        if row is not None:
            self._attempt(row)
        else:
            pause = LONGEST_WAIT if due.until is None else (due.until - due.now).total_seconds()
            self._watch.wait(max(0.0, min(LONGEST_WAIT, pause)))
        if self._clock.monotonic() - self._tended_at > TEND_EVERY:
            self._tended_at = self._clock.monotonic()
            self._opened.tend()

    def _open(self, search: str) -> Row | None:
        row = self._rows.find(search)
        return row if row is not None and row.state == OPEN else None

    # -- rows and the ledger ---------------------------------------------------------------------

    def _compare(self, ledger: Ledger) -> None:
        """Bring the rows up to what the ledger tells."""
        for row in self._rows:
            hold = ledger.holds.get(row.search)
            if row.state == ENDED and row.search in ledger.tickets:
                self._gate.end(row.search)  # its slot was kept for a while after it had failed
            elif row.state == SUBMITTED and hold is None:
                self._end(row)
            elif row.state == OPEN and hold is not None and hold.state is HoldState.SUBMITTED:
                self._change(row, SUBMITTED)
            elif (
                row.state == OPEN and row.attempt and not hold and row.search not in ledger.tickets
            ):
                self._look_for(row)

    def _look_for(self, row: Row) -> None:
        """Neither hold nor ticket: it may have been submitted, and have ended, without a word."""
        if row.search in self._gate.lately().tickets:
            return
        ledger = self._gate.ledger()
        if not ledger.is_whole or row.search in ledger.holds or row.search in ledger.tickets:
            return
        _, census = self._gate.outlook.observe()
        finished = self._gate.outlook.finished([row.search])
        if row.search in finished or census.has_finalizer(row.search):
            self._change(row, SUBMITTED)
            return
        row.reserved = False
        self._rows.save()

    def _end(self, row: Row) -> None:
        ledger = self._gate.ledger()
        if ledger.is_whole and row.search not in ledger.holds:
            self._change(row, ENDED)

    def _change(self, row: Row, state: str) -> None:
        row.state = state
        row.reserved = False
        self._rows.save()

    def _publish(self) -> None:
        ledger = self._gate.lately()
        known = ledger.tickets.keys() | ledger.holds.keys()
        for row in self._rows:
            ticket = ledger.tickets.get(row.search)
            if row.state == OPEN and ticket and ticket.submitter != self._gate.me.name:
                self._gate.adopt(row.search)  # given back for us while we were silent
        wishes = [
            Wish(row.search, row.user, row.level)
            for row in self._rows
            if row.state == OPEN and not row.reserved and row.search not in known
        ]
        if wishes and ledger.is_whole:
            self._gate.publish(wishes)

    # -- submitting ------------------------------------------------------------------------------

    def _attempt(self, row: Row) -> None:
        row.attempt += 1
        self._rows.save()
        stay = self._gate.enter(row.search, row.attempt)
        if isinstance(stay, Waiting):
            return
        try:
            outcome = stay.reserve(Attempt(row.search, row.attempt, self._gate.me.name))
            match outcome:
                case Granted():
                    row.reserved = True
                    self._rows.save()
                    self._inside(row, stay, outcome)
                case Waiting() | Refused():
                    return
        except LeaseLost:
            return
        finally:
            self._gate.leave(stay)

    def _inside(self, row: Row, stay: Stay, granted: Granted) -> None:
        turn = Turn(
            self._entrance,
            Wish(row.search, row.user, row.level),
            Patience(),
            lambda *_: None,
            limit=self._timings.command,
            watched=True,
        )
        if self._is_complete(row, stay):
            self._came_to(row, turn.adopt(stay, granted))
        elif row.search in stay.census.families:
            self._gate.marking.markers.delete_search(row.search)
            stay.fail(row.search, granted.fence)
        else:
            start = Start(row, self._tell, stay.holder)
            self._came_to(row, turn.submit(stay, granted, start))

    def _is_complete(self, row: Row, stay: Stay) -> bool:
        """Whether an earlier attempt has submitted it after all; it may even have ended since."""
        if row.attempt == 1:
            return False
        name = row.search
        return stay.census.has_finalizer(name) or name in self._gate.outlook.finished([name])

    def _came_to(self, row: Row, result: Result | None) -> None:
        if result is None:
            return
        if result.fate in (Fate.COMPLETE, Fate.UNSEEN):
            self._change(row, SUBMITTED)
        elif result.fate is Fate.FAILED and row.is_hopeless:
            self._change(row, ENDED)
            self._tell("ended", row.search, outcome="failed")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--real-timings", action="store_true")
    worker = Worker(parser.parse_args(arguments))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
