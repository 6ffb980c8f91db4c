"""One command's way through both gates, for commands that have no row in a search store.

The caller's thread waits for the turn, starts the command inside Gate A and gets it back once its
slot is confirmed; leaving the passage gives the slot back. Light on purpose: the drop-in commands
import this, and neither a store nor a worker.

What is not promised: that a command which was started and then lost the submit lease (its process
stood still for longer than the lease) is tried again. It may have read its input and written
output, so it is ended and said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Final, TypeVar

from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.ledger import Fence, Hold, HoldState
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.admission.view import Due
from blastyard.domain.errors import PASSING, CallerMistake, Misconfigured, Unavailable
from blastyard.service.entrance import Entrance, Patience, Running, Stopped, lease_lost

FLOOR: Final = 2.0
"""Seconds between two looks when nothing wakes us: a process that is killed tells nobody."""
SWEEP_AGAIN: Final = 5.0
"""Seconds between two sweeps for the same dead."""
BEAT_AGAIN: Final = 1.0
"""Seconds after a beat that failed until the next: the lease may end before a whole one is over."""
RETRIES: Final = 12
"""How often a store that does not answer is asked again, about 20 s beside its own patience."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 3.0
_LONGEST_WANTED: Final = 10.0


R = TypeVar("R", bound=Running)
T = TypeVar("T")


def _nothing_told(waiting: Waiting, seconds: float) -> None:
    """Nobody wants to know."""


class Passage:
    """A context; what was admitted in it is let go at its end. Use an instance once.

    ``told(waiting, seconds)`` hears at every look why the command waits, and for how long it has
    done so; what it raises ends the passage.
    """

    def __init__(
        self,
        entrance: Entrance,
        wish: Wish,
        patience: Patience | None = None,
        told: Callable[[Waiting, float], None] = _nothing_told,
    ) -> None:
        self._gate = entrance.gate
        self._entrance = entrance
        self._wish = wish
        self._patience = patience or Patience()
        self._told = told
        self._attempt = 0
        self._is_known = False
        self._claim: Claim | None = None
        self._running: Running | None = None
        self._lock = Lock()
        self._stopped = Event()
        self._ended = Event()
        self._never = Event()
        self._heart = Thread(target=self._beat, name="heartbeat", daemon=True)
        self._began = entrance.monotonic()
        self._looked_at = self._swept_at = float("-inf")

    def __enter__(self) -> Passage:
        self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End what still runs, then give the slot back. A store that stays silent is left to the
        sweep of others."""
        self._ended.set()
        if self._running is not None:
            self._running.end()
            self._running.wait()
        self._heart.join()
        with suppress(Unavailable):
            self._let_go()

    def _let_go(self) -> None:
        def let_go() -> None:
            self._gate.let_go(self._wish.search)

        if self._is_known:
            self._patiently(let_go)
        else:  # a store that never answered knows nothing of it, most likely
            let_go()

    def claims(self) -> Sequence[Claim]:
        """What this passage has a slot for, for the day the ledger is lost."""
        return () if self._claim is None else (self._claim,)

    def stop(self) -> None:
        """From any thread: stop waiting, or end the command that runs."""
        with self._lock:
            self._stopped.set()
            running = self._running
        if running is not None:
            running.end()
        self._entrance.watch.wake()

    def admit(self, start: Callable[[float], R]) -> R:
        """Wait for the turn and start the command; it runs, confirmed, when this returns.

        ``start(deadline)`` starts it under a guardian that ends it at ``deadline`` (monotonic
        seconds). Raises :class:`Stopped`, what ``start`` and ``told`` raise, and ``Unavailable``:
        a store that does not answer, a wait that took too long (``…_timeout``), or a lease that was
        lost after the start (``interrupted``; the command was ended).
        """
        self._patiently(lambda: self._gate.publish([self._wish]))
        self._is_known = True
        while True:
            if self._stopped.is_set():
                raise Stopped
            due = self._patiently(self._due)
            if due.searches:
                running = self._patiently(lambda: self._try(start))
                if running is not None:
                    return running
            self._wait(due)

    # -- waiting -------------------------------------------------------------------------------

    def _due(self) -> Due:
        due = self._gate.due()
        if self._wish.search in due.waiting:
            return due
        ledger = self._gate.ledger()
        hold = ledger.holds.get(self._wish.search)
        if hold is not None and hold.submitter != self._gate.me.name:
            return self._behind(hold, due)
        ticket, me = ledger.tickets.get(self._wish.search), self._gate.me.name
        if ticket and ticket.submitter in self._gate.outlook.glance().alive - {me}:
            return due  # taken back and forth, it would be written again and again
        # No place in the queue: it was full, or the answer to an earlier grant got lost. Nothing
        # of ours runs, so a hold would be such a grant.
        self._gate.give_back(self._wish.search)
        self._gate.publish([self._wish])
        return self._gate.due()

    def _behind(self, hold: Hold, due: Due) -> Due:
        """Somebody else has, or had, a search of this id inside: it must not run twice."""
        if hold.state is HoldState.RESERVED:
            return due
        raise CallerMistake(
            "request_invalid",
            f"a search with the id {self._wish.search} has been submitted already, and runs",
            "see `blastyard gate status`; give another id to submit another one",
        )

    def _wait(self, due: Due) -> None:
        outcome = self._patiently(lambda: self._gate.turn(self._wish.search))
        waited = self._entrance.monotonic() - self._began
        if isinstance(outcome, Waiting):
            self._patience.require(outcome, waited)
            self._told(outcome, waited)
        pauses = [FLOOR]
        if due.until is not None:
            pauses.append((due.until - due.now).total_seconds())
        pauses += [left - waited for left in self._patience.limits() if left > waited]
        self._entrance.watch.wait(max(0.0, min(pauses)))
        if self._entrance.monotonic() - self._looked_at >= FLOOR:
            self._sweep_orphans()

    def _sweep_orphans(self) -> None:
        """Have the slots of dead processes freed: with no service here, nobody else may do it."""
        now = self._looked_at = self._entrance.monotonic()
        with suppress(Unavailable):
            self._entrance.tend()
        if self._patiently(self._sees_orphan) and now - self._swept_at >= SWEEP_AGAIN:
            self._swept_at = now
            with suppress(Unavailable):
                self._entrance.sweep()

    def _sees_orphan(self) -> bool:
        """Whether something in the ledger belongs to a process that ended a while ago."""
        look = self._gate.outlook.glance()
        ledger, present = look.ledger, look.submitters
        owners = {hold.submitter for hold in ledger.holds.values()}
        owners |= {ticket.submitter for ticket in ledger.tickets.values()}
        owners = set(filter(self._gate.is_ours, owners))
        return any(
            seen is None or seen.gone_for >= self._gate.timings.ending
            for seen in map(present.get, owners)
        )

    # -- inside Gate A -------------------------------------------------------------------------

    def _try(self, start: Callable[[float], R]) -> R | None:
        attempt = Attempt(self._wish.search, self._attempt + 1, self._gate.me.name)
        stay = self._gate.enter(attempt.search, attempt.number)
        if isinstance(stay, Waiting):
            return None
        # only now: a claim whose answer got lost is adopted by asking again under its name
        self._attempt = attempt.number
        try:
            match stay.reserve(attempt):
                case Granted(fence=fence):
                    return self._submit(stay, fence, start)
                case Waiting() | Refused():
                    return None
        except LeaseLost:
            return None
        finally:
            self._gate.leave(stay)

    def _submit(self, stay: Stay, fence: Fence, start: Callable[[float], R]) -> R:
        self._require_trust(stay)
        running = start(stay.deadline)
        with self._lock:
            self._running = running
        wish, me = self._wish, self._gate.me.name
        self._claim = Claim(  # before it is confirmed: from then on it must not be forgotten
            wish.search, wish.user, wish.level, self._attempt, HoldState.SUBMITTED, me
        )
        if self._stopped.is_set():
            running.end()
        if not self._confirmed(stay, fence):
            running.end()
            running.wait()
            self._claim = None
            raise lease_lost()
        running.extend(None)
        return running

    def _require_trust(self, stay: Stay) -> None:
        if not stay.is_trusted:
            raise LeaseLost(stay.holder)

    def _confirmed(self, stay: Stay, fence: Fence) -> bool:
        """Whether the slot is certainly ours; asked again while nobody else can be inside."""
        while stay.is_trusted:
            with suppress(Unavailable):
                return stay.confirm(self._wish.search, fence) and stay.is_trusted
            self._ended.wait(_FIRST_PAUSE)
        return False

    # -- beside it -----------------------------------------------------------------------------

    def _beat(self) -> None:
        every = pause = self._gate.timings.beat.total_seconds()
        while not self._ended.wait(pause):
            pause = min(every, BEAT_AGAIN)
            with suppress(Exception):  # the next beat is the remedy for whatever this one met
                self._gate.beat()
                pause = every

    def _patiently(self, call: Callable[[], T]) -> T:
        """``call()``, again while the store does not answer; the last refusal is raised."""
        pause = _FIRST_PAUSE
        for _ in range(RETRIES):
            try:
                return call()
            except Unavailable as error:
                if error.code not in PASSING or self._is_over(error):
                    raise
                wanted = min(error.retry_after or 0.0, _LONGEST_WANTED)
            except Misconfigured as error:
                if error.code != "cluster_forbidden" or not self._is_known:
                    raise
                wanted = 0.0  # a server that has just started has not read its roles
            if self._ended.is_set():
                self._never.wait(max(pause, wanted))
            elif self._stopped.wait(max(pause, wanted)):
                raise Stopped
            pause = min(2 * pause, _LONGEST_PAUSE)
        return call()

    def _is_over(self, error: Unavailable) -> bool:
        """Whether it has waited for as long as it may; until then it is told for what."""
        if self._running is not None or self._ended.is_set():
            return False
        waited = self._entrance.monotonic() - self._began
        self._told(Waiting(Reason.SUBMIT_SLOT, error.message), waited)
        limit = self._patience.submit_slot
        return limit is not None and waited >= limit.total_seconds()
