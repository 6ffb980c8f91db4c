"""The port through which a search is handed to what outlives whoever hands it over.

The work goes on in a cluster when the process that submitted it dies, and any other process of the
installation may follow it, end it, and fetch its result. Obligations of an implementer:

* ``name`` is the same for the same attempt, always; no two attempts have one in common.
* ``prepare`` does what takes time and makes nothing outside the folder of its attempt, so that it
  needs no turn at the gate.
* ``Ready.start`` runs the command under a guardian: when its process or its turn ends, the command
  ends, and what it has made by then stays.
* ``look`` asks afresh; ``poll`` may answer from what is followed anyway, and costs no call as long
  as nothing changes. Neither ever answers in part: what cannot be told is ``Unavailable``.
* ``left`` takes for complete only what a submission made that nobody saw fail or be ended.
* ``cancel`` returns only when nothing of the name is left that could run.
* ``collect`` publishes the output atomically, and only whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from blastyard.domain.errors import Failure
from blastyard.engine.port import Output, Task

EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Errand:
    """One attempt at a search, as it is handed over.

    ``task`` has its folder, its query and its limits; its command line is not used.
    """

    task: Task
    name: str
    """The id under which it goes in the cluster."""
    program: str
    database: str
    options: tuple[str, ...]
    output_format: str
    """The value of ``-outfmt``."""


# -- what came of a submit command -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submitted:
    """It ended well. What it made is found by its label: this is what it says, no more."""

    ids: tuple[str, ...] = ()
    """Under which it says it submitted; empty when it did not say."""
    decision: str = ""
    """``accepted``, ``resumed``, ``already_done``, or whatever it said."""
    terminal: str = ""
    """``SUCCESS`` or ``FAILURE``, when it says that this search has ended before."""


@dataclass(frozen=True, slots=True)
class Retryable:
    """It could not submit now, and may be able to later."""

    reason: str
    """``capacity``, ``transient``, ``conflict``, ``queued``, ``timeout``, ``cluster`` or
    ``not_ready``."""
    message: str
    retry_after: float | None = None
    """Seconds after which it wants to be asked again; ``None`` = it did not say."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It will not submit this search as it is."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """It could not run, or was ended before it had finished: what it made cannot be told."""

    failure: Failure
    detail: str = "submit_exec_error"


Outcome = Submitted | Retryable | Failed | NoAnswer


# -- what carries a name in the cluster ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing carries the id."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A submission that was not finished: to be deleted and made anew, never to be adopted."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AtWork:
    """A complete submission that has not ended. Counted are its BLAST Jobs that are there."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Over:
    """All of it has ended well. Whether there is a result, the results location must prove."""

    total: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A part of it has failed for good; the other parts may still run, for nothing."""

    failure: Failure


Sighted = Absent | Partial | AtWork | Over | Broken


@dataclass(frozen=True, slots=True)
class Collected:
    """A published result."""

    output: Output
    exactness: str = EXACT
    """``exact``, or what has been done to it on the way."""


# -- the port --------------------------------------------------------------------------------------


class Submission(Protocol):
    """A submit command that runs. All methods may be called from any thread."""

    def extend(self, deadline: float | None) -> None:
        """Move the deadline (monotonic seconds); ``None`` = none."""
        ...

    def end(self) -> None:
        """Have the command and all its descendants killed."""
        ...

    def wait(self, timeout: float | None = None) -> object | None:
        """Block until nothing of it is left, or for so many seconds; how it ended, if it has."""
        ...

    def outcome(self) -> Outcome | None:
        """What came of it; ``None`` while it runs."""
        ...

    def close(self) -> None:
        """Let go of its pipes; what still runs is killed."""
        ...


class Ready(Protocol):
    """A submission that only needs its turn."""

    def start(self, deadline: float | None) -> Submission:
        """Run the command; returns when it runs. ``deadline`` is in monotonic seconds.

        Raises ``Misconfigured``, and ``Unavailable`` when it certainly did not run.
        """
        ...


class RemoteEngine(Protocol):
    """Hands searches over. See the module docstring for what an implementer owes."""

    def name(self, search_id: str, attempt: int) -> str:
        """Under which id this attempt goes in the cluster."""
        ...

    def prepare(self, errand: Errand) -> Ready:
        """Write the files of a submission, and see whether its command can be run at all.

        Raises ``Misconfigured``, and ``Unavailable`` when the disk or the command does not answer.
        """
        ...

    def look(self, name: str) -> Sighted:
        """What carries the name now, whether its submission is complete or not."""
        ...

    def left(self, errand: Errand) -> Sighted:
        """As :meth:`look`, after an attempt that nobody saw come to its end: what its command has
        made, but was ended in, is ``Partial``."""
        ...

    def poll(self, name: str) -> Sighted:
        """As :meth:`look`, of a submission that was complete; ``Partial`` is no answer then."""
        ...

    def cancel(self, name: str) -> None:
        """Delete all that carries the name; no error when there is nothing."""
        ...

    def collect(self, errand: Errand, seen: int) -> Collected | Failure:
        """Publish the result; the same answer when asked again. ``seen`` BLAST Jobs were there;
        0 when nobody counted them. Raises ``Unavailable``: then it is tried again."""
        ...

    def discard(self, task: Task) -> None:
        """Remove what the attempts of a search left on this machine, published results apart."""
        ...
