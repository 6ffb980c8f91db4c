"""How long a free run slot waits for the next grant, as one process sees it.

A slot is idle from the moment at which this process saw it free while somebody eligible waited,
until a grant uses it. Each grant is measured by the process that got it, so that every slot is
measured once among all processes; what others used is only struck off. Slots that are left to
programs that poll are idle too: that is what the courtesy costs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Set
from itertools import islice
from threading import Lock

from blastyard.admission.census import Census, room
from blastyard.admission.ledger import Ledger
from blastyard.admission.observer import Granted, Looked


def unused(ledger: Ledger, census: Census, alive: Set[str]) -> int:
    """How many run slots are free for which somebody eligible waits. Stops counting at that."""
    if not ledger.is_whole:
        return 0
    free = room(ledger, census)
    if free == 0:
        return 0
    cap = ledger.policy.user_cap
    running = Counter(hold.ticket.user for hold in ledger.holds.values())
    eligible = (
        ticket
        for ticket in ledger.tickets.values()
        if ticket.parked_by is None
        and ticket.blocked is None
        and ticket.submitter in alive
        and (cap is None or running[ticket.user] < cap)
    )
    return sum(1 for _ in islice(eligible, free))


class Idle:
    """Told of every look and of every grant of one process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since: deque[float] = deque()
        self._uid = ""
        self._fence = 0

    def look(self, seen: Looked) -> None:
        """Note which slots are free now."""
        count = unused(seen.ledger, seen.census, seen.alive)
        with self._lock:
            if seen.ledger.uid != self._uid:
                self._uid, self._fence = seen.ledger.uid, seen.ledger.fence
                self._since.clear()
            if seen.ledger.fence < self._fence:
                return  # an old glance
            self._strike_off(seen.ledger.fence)
            while len(self._since) > count:
                self._since.popleft()
            while len(self._since) < count:
                self._since.append(seen.at)

    def grant(self, granted: Granted) -> float | None:
        """For how many seconds the slot was idle that this grant uses; ``None`` if not seen."""
        with self._lock:
            self._strike_off(granted.fence - 1)
            self._fence = max(self._fence, granted.fence)
            if granted.waited is None or not self._since:
                return None
            return max(0.0, granted.at - self._since.popleft())

    def _strike_off(self, fence: int) -> None:
        """Others were granted what was free, oldest first."""
        for _ in range(min(len(self._since), max(0, fence - self._fence))):
            self._since.popleft()
        self._fence = max(self._fence, fence)
