"""What came of a submit command. Pure.

Its own answer decides before its exit code does, since a program that ElasticBLAST runs may end in
a way that ElasticBLAST knows to be passing. But it takes every error of its own but two for passing
(``azure_api.py``, ``_map_exception``), a missing database and a forbidden bucket too: so a few exit
codes decide before the answer. Exit codes: ``elastic_blast/constants.py``, and the
shell's 126, 127 and 128 + signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from blastyard.domain.errors import Failure
from blastyard.engine.command import Ending
from blastyard.engine.elastic_blast.said import Said, plain_last_line, said_last, seconds_to_wait
from blastyard.engine.remote import Failed, NoAnswer, Outcome, Retryable, Submitted

NO_ANSWER: Final = "terminal_exec_unavailable"

_DONE: Final = frozenset({"accepted", "resumed", "already_done"})
_RETRY_CATEGORIES: Final = frozenset({"transient", "capacity", "conflict"})
_RETRY_DECISIONS: Final = MappingProxyType({"rejected_capacity": "capacity", "queued": "queued"})
_RETRY_EXITS: Final = MappingProxyType({5: "timeout", 8: "cluster", 10: "not_ready"})
_REFUSALS: Final = MappingProxyType({"rejected_invalid": 1, "rejected_permanent": 7})
_CATEGORIES: Final = MappingProxyType(
    {"invalid": 1, "not_found": 1, "auth": 6, "permanent": 7, "internal": 3}
)
"""Which exit code means the same as a category."""

_DEFINITE: Final = frozenset({2, 4, 6})
"""Exit codes that say what is wrong, whatever is said beside."""
_DEPENDENCY: Final = 7
_INTERRUPTED: Final = 9
_LOST: Final = 255
"""What ``ssh`` and ``kubectl exec`` give when the connection breaks, too."""
_NOT_FOUND: Final = frozenset({126, 127})
_BY_SIGNAL: Final = 128
_SIGNALS: Final = 64

_MEANING: Final[Mapping[int, tuple[str, str, str]]] = MappingProxyType(
    {
        1: (
            "submit_input",
            "the query, an option or the configuration",
            "Correct what it names; what is not the search's own stands in the template of its "
            "configuration file.",
        ),
        2: (
            "submit_database",
            "the database",
            "Look whether the database is where the configuration's `db` says, and of the right "
            "kind for the program.",
        ),
        3: (
            "submit_failed",
            "its own working",
            "Run the search again; if it stays so, run the command by hand.",
        ),
        4: (
            "submit_memory",
            "memory",
            "Choose machines with more memory, or lower `mem-limit`, in the template of its "
            "configuration file.",
        ),
        6: (
            "submit_permission",
            "a permission",
            "Grant what it names to the account it runs as; its results location is written too.",
        ),
        7: (
            "submit_dependency",
            "a program or a cloud resource that it needs",
            "Install or grant what it names (kubectl, the cloud's tools, a quota), then run the "
            "search again.",
        ),
    }
)
_NAME_TAKEN: Final = ("already exists", "field is immutable")
_TOO_LARGE: Final = ("exceed memory available", "exceeds memory available")
_CRASH: Final = ("Traceback (most recent call last)",)
"""Python's own exit code after one is 1, which is not about the input."""
_LOOKED_AT: Final = 4096
"""Characters at the end of standard error in which a sign is looked for."""


@dataclass(frozen=True, slots=True)
class _Case:
    ending: Ending
    said: Said
    words: str
    """For a person: its answer's message, or the last thing it said."""
    now: datetime

    @property
    def saying(self) -> str:
        return f" It said: {self.words}" if self.words else ""

    @property
    def is_name_taken(self) -> bool:
        return self.ending.exit_code == _DEPENDENCY and self.says(_NAME_TAKEN)

    def says(self, signs: tuple[str, ...]) -> bool:
        told = f"{self.said.message}\n{self.ending.stderr[-_LOOKED_AT:]}"
        return any(sign in told for sign in signs)


def outcome(ending: Ending, out: bytes, now: datetime) -> Outcome:
    """What came of the command, from how it ended and the end of its standard output.

    ``now`` is wall-clock time, for a ``retry_after`` that is a date.
    """
    said = said_last(out)
    words = said.message if said else ""
    words = (
        words or plain_last_line(ending.stderr) or plain_last_line(out.decode("utf-8", "replace"))
    )
    case = _Case(ending, said or Said(), words, now)
    if (lost := _lost(case, answered=said is not None)) is not None:
        return lost
    if (retry := _retry(case)) is not None:
        return retry
    meaning = _REFUSALS.get(case.said.decision) or _CATEGORIES.get(case.said.category)
    if ending.exit_code in _DEFINITE:
        meaning = ending.exit_code
    if ending.exit_code == 0 and meaning is None and case.said.kind != "error":
        return Submitted(case.said.ids, case.said.decision, case.said.terminal)
    return Failed(_failure(case, meaning or ending.exit_code or 3))


def _lost(case: _Case, *, answered: bool) -> NoAnswer | None:
    """Whether nobody knows how far it came."""
    ending = case.ending
    if not ending.by_itself:
        how = _ENDED_BY.get(ending.ended_by, ending.ended_by)
    elif ending.signal is not None:
        how = f"it was killed by signal {ending.signal}"
    elif _BY_SIGNAL < ending.shell_code <= _BY_SIGNAL + _SIGNALS:
        how = f"it was killed by signal {ending.shell_code - _BY_SIGNAL}"
    elif ending.exit_code == _INTERRUPTED:
        how = "it was interrupted (exit code 9)"
    elif ending.exit_code == _LOST and not answered:
        how = "it ended with exit code 255, without an answer"
    elif ending.exit_code != 0 and case.said.decision in _DONE:
        how = f"it said {case.said.decision}, and then ended with exit code {ending.exit_code}"
    else:
        return None
    return NoAnswer(
        Failure(
            NO_ANSWER,
            f"The submit command did not finish: {how}.{case.saying}",
            "It is tried again; if it stays so, look what ends it (a time limit, memory, a lost "
            "connection).",
        )
    )


_ENDED_BY: Final = MappingProxyType(
    {
        "deadline": "its time was over, or its turn at the gate was",
        "end": "it was asked to end",
        "owner_gone": "the blastyard that ran it is gone",
        "guardian_gone": "its guardian was killed, and it with it",
    }
)


def _retry(case: _Case) -> Retryable | None:
    said, code = case.said, case.ending.exit_code
    if code in _DEFINITE or case.is_name_taken:
        return None  # as long as the other search lives, it cannot come out otherwise
    if said.category in _RETRY_CATEGORIES:
        reason: str | None = said.category
    elif said.decision in _RETRY_DECISIONS:
        reason = _RETRY_DECISIONS[said.decision]
    elif said.category in _CATEGORIES or said.decision in _REFUSALS:
        reason = None
    else:
        reason = _RETRY_EXITS.get(code or 0)
    if reason is None:
        return None
    message = f"The submit command cannot submit now ({reason}, exit code {code}).{case.saying}"
    return Retryable(reason, message, seconds_to_wait(said.retry_after, case.now))


def _failure(case: _Case, meaning: int) -> Failure:
    code = case.ending.exit_code
    if case.is_name_taken:
        return Failure(
            "submit_name_taken",
            f"The submit command ended with exit code {code}: another live search has an id with "
            f"the same last 8 characters.{case.saying}",
            "Run the search again, which gives it another id; or wait until the other has ended.",
        )
    if case.says(_TOO_LARGE):
        meaning = 4
    elif meaning == 1 and not case.said.category and case.says(_CRASH):
        meaning = 3
    if meaning in _NOT_FOUND:
        return Failure(
            "dependency_missing",
            f"The submit command could not be run (exit code {code}).{case.saying}",
            "Install what it needs, or correct the command that is set.",
        )
    name, about, step = _MEANING.get(meaning, _MEANING[3])
    known = f", about {about}" if meaning in _MEANING else ", which is none of elastic-blast's"
    return Failure(
        name, f"The submit command ended with exit code {code}{known}.{case.saying}", step
    )
