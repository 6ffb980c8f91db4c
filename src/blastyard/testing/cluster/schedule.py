"""What happens in one simulated run of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from blastyard.testing.foreign.kind import SERVICE, Kind
from blastyard.testing.schedule import Order, Schedule
from blastyard.testing.wire_fault import Ailment


class Script(StrEnum):
    """What a submit command does."""

    COMPLETE = "complete"
    """Makes the Jobs and the finalizer under the id it was given."""
    SLOW = "slow"
    """The same, and takes longer than a lease lasts without renewal."""
    MINT = "mint"
    """The same under an id of its own."""
    PAIR = "pair"
    """Two searches, under ids of its own."""
    FAIL = "fail"
    """Makes some Jobs, then ends with an error."""
    NOTHING = "nothing"
    """Ends well, and made nothing."""
    LATER = "later"
    """Ends well at once; what it has asked for is made some seconds later."""
    HANG = "hang"
    """Makes some Jobs, and then never ends."""


@dataclass(frozen=True, slots=True)
class ClusterOrder(Order):
    """One search. ``seconds`` is how long its Jobs run, or its command on a machine of its own."""

    script: Script = Script.COMPLETE
    merge: float = 1.0
    """How long its finalizer goes on after its Jobs."""
    again: bool = False
    """Whoever started the command starts it once more, under the same id, when it came to nothing
    or was killed."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """One program that is no blastyard."""

    name: str
    kind: Kind = SERVICE
    searches: int = 1
    ceiling: int = 1
    clock_error: float = 0.0
    arrives_at: float = 0.0
    life: tuple[float, float] = (10.0, 60.0)
    cancel_every: int = 0


@dataclass(frozen=True, slots=True)
class ClusterSchedule(Schedule):
    """One run. ``seed`` and ``picks`` as on one machine."""

    strangers: tuple[Stranger, ...] = ()
    ailments: Mapping[Ailment, float] = field(default_factory=dict)
    """How likely each line of a watch suffers so."""
    marker_seconds: float = 300.0
    """How long a marker stands that nobody extends."""
    page_size: int | None = None
    """At most so many objects are on a page of a list; ``None`` = as many as are asked for."""
    command_faults: float = 0.0
    """How likely each request of a submit command goes wrong."""
    keeper: bool = True
    """Whether a service looks after what is left, once nothing goes wrong any more."""

    def described(self) -> list[str]:
        """See the machine's."""
        lines = Schedule.described(self)
        lines += [f"stranger: {one}" for one in self.strangers]
        if self.ailments:
            lines.append(f"watches: {dict(self.ailments)}")
        return lines
