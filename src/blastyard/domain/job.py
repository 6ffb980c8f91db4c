"""The states of a search and the moves between them.

The table below, the chart in ``docs/states.md`` and the test that compares them are one. Terminal
states absorb: nothing leaves them, and a write that tries to is a programming error.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a search is in its life."""

    QUEUED = "queued"
    ADMITTING = "admitting"
    SUBMITTING = "submitting"
    RUNNING = "running"
    COLLECTING = "collecting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the search has ended."""
        return self in TERMINAL

    @property
    def is_attempt(self) -> bool:
        """Whether some process is, or was, at work on the search."""
        return self in ATTEMPT


class Phase(StrEnum):
    """Why a search is where it is; operators grep for these words."""

    WAITING_FOR_SUBMIT_SLOT = "waiting_for_submit_slot"
    WAITING_FOR_CAPACITY = "waiting_for_capacity"
    WAITING_FOR_DATABASE = "waiting_for_database"
    WAITING_FOR_RUNNER = "waiting_for_runner"
    PARKED = "parked"


TERMINAL: Final = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
ATTEMPT: Final = frozenset(
    {State.ADMITTING, State.SUBMITTING, State.RUNNING, State.COLLECTING},
)

_ENDS: Final = frozenset({State.FAILED, State.CANCELLED})

TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.QUEUED: frozenset({State.ADMITTING}) | _ENDS,
    # back to queued: the turn was lost, or the attempt was handed back unstarted
    State.ADMITTING: frozenset({State.SUBMITTING, State.QUEUED}) | _ENDS,
    State.SUBMITTING: frozenset({State.RUNNING, State.QUEUED}) | _ENDS,
    # back to queued: the process that ran it is gone, or gave it back
    State.RUNNING: frozenset({State.COLLECTING, State.QUEUED}) | _ENDS,
    State.COLLECTING: frozenset({State.COMPLETED, State.QUEUED}) | _ENDS,
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}


class IllegalTransition(AssertionError):
    """A move the table does not have: a fault of the program, never of a caller."""


def check_transition(before: State, after: State) -> None:
    """Allow staying, and the moves of :data:`TRANSITIONS`; raise :class:`IllegalTransition`."""
    if after is not before and after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a search cannot go from {before} to {after}")
