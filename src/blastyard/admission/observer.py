"""What happens at the gates, told to whoever counts it or writes it down. No rule depends on it.

An :class:`Observer` is called by the thread that does what it is told of, sometimes inside Gate A:
it must neither raise nor wait. Events may come from several threads at once. Moments are monotonic
seconds of the gate's clock.

The events are structs and no dataclasses, since every drop-in command loads them: those take
milliseconds to define.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from blastyard.admission.outcome import Refused, Waiting

if TYPE_CHECKING:
    from blastyard.admission.census import Census
    from blastyard.admission.ledger import Ledger
    from blastyard.domain.errors import Unavailable

REFUSED: Final = "refused"
"""The rule of a denial that no waiting changes."""


class Looked(msgspec.Struct, frozen=True):
    """This process looked whether a search of its own may claim; nothing was decided on it."""

    ledger: Ledger
    census: Census
    alive: Set[str]
    at: float


class Inputs(msgspec.Struct, frozen=True):
    """What a rule went by when it denied."""

    ceiling: int
    user_cap: int | None
    holds: int
    seen: int
    """Searches observed running that count, whoever's they are."""
    waiting: int
    fence: int

    @classmethod
    def of(cls, ledger: Ledger, census: Census) -> Inputs:
        """Those of a decision on this ledger and census."""
        policy = ledger.policy
        return cls(
            policy.ceiling,
            policy.user_cap,
            len(ledger.holds),
            len(census.families),
            len(ledger.tickets),
            ledger.fence,
        )


class Denied(msgspec.Struct, frozen=True):
    """A search may not go on now. Told at every look: whoever listens tells news from repetition.

    ``inputs`` is ``None`` where nothing but the submit lease was looked at.
    """

    search: str
    outcome: Waiting | Refused
    inputs: Inputs | None = None

    @property
    def rule(self) -> str:
        """The reason as one word."""
        return REFUSED if isinstance(self.outcome, Refused) else self.outcome.reason.value

    @property
    def position(self) -> int | None:
        """Its place in the queue, from 1."""
        return None if isinstance(self.outcome, Refused) else self.outcome.position

    @property
    def until(self) -> datetime | None:
        """When asking again could help by itself."""
        return None if isinstance(self.outcome, Refused) else self.outcome.until


class Undecided(msgspec.Struct, frozen=True):
    """It could not be told whether a search may go inside Gate A."""

    search: str
    error: Unavailable


class Entered(msgspec.Struct, frozen=True):
    """The submit lease was acquired; ``taken_over`` from somebody who had not let it go."""

    holder: str
    taken_over: bool


class Renewed(msgspec.Struct, frozen=True):
    """The submit lease was renewed."""

    holder: str


class Lost(msgspec.Struct, frozen=True):
    """The holder can no longer be sure that nobody else is inside; told once for each stay."""

    holder: str


class Left(msgspec.Struct, frozen=True):
    """The submit lease was released, after so long."""

    holder: str
    seconds: float


class ReleaseFailed(msgspec.Struct, frozen=True):
    """A release could not be written; it is tried again with the next beat or claim."""

    holder: str


class Abandoned(msgspec.Struct, frozen=True):
    """The submit lease is left to lapse, since something may still act in its name."""

    holder: str


class Granted(msgspec.Struct, frozen=True):
    """A search was given a run slot. ``waited`` is the time since its ticket, in seconds; ``None``
    for one that had its slot already, and resumes."""

    search: str
    fence: int
    waited: float | None
    at: float


class Retired(msgspec.Struct, frozen=True):
    """The holds of these searches ended because the census showed that they had."""

    searches: frozenset[str]


Event = (
    Looked
    | Denied
    | Undecided
    | Entered
    | Renewed
    | Lost
    | Left
    | ReleaseFailed
    | Abandoned
    | Granted
    | Retired
)


class Observer(Protocol):
    """Is told of events; see the module for what it owes."""

    def __call__(self, event: Event, /) -> None:
        """Take note."""
        ...


def nobody(event: Event, /) -> None:
    """Where nobody wants to know."""


class News:
    """Tells a denial for another reason than last time from one that is repeated. Thread-safe.

    Remembers the searches that were denied last; of one that it has forgotten anything is news.
    """

    def __init__(self, kept: int = 20_000) -> None:
        self._lock = Lock()
        self._kept = kept
        self._rules: dict[str, str] = {}

    def __call__(self, search: str, rule: str) -> bool:
        """Whether this rule is news of the search."""
        with self._lock:
            if self._rules.get(search) == rule:
                return False
            self._rules.pop(search, None)
            self._rules[search] = rule
            if len(self._rules) > self._kept:
                del self._rules[next(iter(self._rules))]
            return True

    def forget(self, search: str) -> None:
        """It waits no more."""
        with self._lock:
            self._rules.pop(search, None)
