"""How the time limits of a team installation must stand to each other. Pure.

A submit command must have ended before its task may be ended, a task before the broker hands its
message to somebody else, and the command before anybody may take its place at the gate. Redis'
own default for the visibility of a message equals Celery's usual hard limit, which is too short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VISIBILITY_SECONDS: Final = 7200
"""How long a message that was taken and not acknowledged is nobody else's."""
REQUEUE_SECONDS: Final = 30
"""After so long a waiting search is looked at when no event wakes it."""
JITTER_SECONDS: Final = 10
"""Up to so much is added, so that those denied together do not ask together."""
LONGEST_COUNTDOWN: Final = REQUEUE_SECONDS + JITTER_SECONDS


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """In seconds; the task's limits as the environment words them."""

    submit_exec: int
    lease: int
    soft: str
    hard: str
    visibility: int = VISIBILITY_SECONDS
    countdown: int = LONGEST_COUNTDOWN

    @property
    def task(self) -> tuple[int, int]:
        """The soft and the hard limit, as the worker reads them. Raises ``ValueError``."""
        return int(self.soft), int(self.hard)


def violations(limits: TimeLimits) -> list[str]:
    """Every relation that does not hold, each a sentence; empty when all is well."""
    try:
        soft, hard = limits.task
    except ValueError:
        return [
            "CELERY_TASK_SOFT_TIME_LIMIT and CELERY_TASK_TIME_LIMIT must be whole numbers of "
            f"seconds, and are {limits.soft!r} and {limits.hard!r}"
        ]
    exec_is = f"SUBMIT_EXEC_TIMEOUT_SECONDS ({limits.submit_exec})"
    soft_is = f"CELERY_TASK_SOFT_TIME_LIMIT ({soft})"
    hard_is = f"CELERY_TASK_TIME_LIMIT ({hard})"
    visibility_is = f"the visibility timeout of the broker ({limits.visibility})"
    relations = (
        (limits.submit_exec < soft, f"{exec_is} must be below {soft_is}"),
        (soft < hard, f"{soft_is} must be below {hard_is}"),
        (
            limits.submit_exec < limits.lease,
            f"{exec_is} must be below BLAST_SUBMIT_LEASE_TTL_SECONDS ({limits.lease})",
        ),
        (hard < limits.visibility, f"{hard_is} must be below {visibility_is}"),
        (
            limits.countdown < limits.visibility,
            f"the longest countdown ({limits.countdown}) must be below {visibility_is}",
        ),
    )
    return [sentence for holds, sentence in relations if not holds]
