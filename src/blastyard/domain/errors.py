"""Everything blastyard can say went wrong.

::

    BlastyardError
    ├── CallerMistake        the request is wrong; nothing was queued, nothing changed
    │   ├── NotFound         no such search, database or result
    │   └── Conflict         the request contradicts something already accepted
    ├── Unavailable          cannot tell: a store, a server or a program did not answer as it must
    └── Misconfigured        the installation cannot work as it is set up

Denials of admission are values, not exceptions (see :mod:`blastyard.admission`). A search that
was accepted and then failed carries a :class:`Failure`, which is a value too.

Every error has a stable ``code`` that programs may grep for, a sentence for a person, and what to
do next. :data:`CODES` says once which exit code and which HTTP status a code becomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CodeMeaning:
    """What a code becomes outside: a process exit code (BLAST-like) and an HTTP status."""

    exit_code: int
    http_status: int
    title: str


INPUT: Final = 1
DATABASE: Final = 2
ENGINE: Final = 3
MEMORY: Final = 4
TIMEOUT: Final = 5
PERMISSION: Final = 6
DEPENDENCY: Final = 7
CLUSTER: Final = 8
INTERRUPTED: Final = 9
NOT_READY: Final = 10
UNKNOWN: Final = 255

CODES: Final[dict[str, CodeMeaning]] = {
    # the query
    "query_empty": CodeMeaning(INPUT, 422, "There is no sequence to search with"),
    "query_not_fasta": CodeMeaning(INPUT, 422, "The query is not FASTA"),
    "query_encoding": CodeMeaning(INPUT, 422, "The query is not plain text"),
    "query_letters": CodeMeaning(INPUT, 422, "The query has letters BLAST would drop"),
    "query_wrong_type": CodeMeaning(INPUT, 422, "The query is of the wrong kind for this program"),
    "query_too_short": CodeMeaning(INPUT, 422, "A query is too short to find anything"),
    "query_ambiguous": CodeMeaning(INPUT, 422, "A query has no informative letter"),
    "query_too_large": CodeMeaning(INPUT, 413, "The query is too large"),
    "query_title": CodeMeaning(INPUT, 422, "A query title cannot be written in this format"),
    "query_accession": CodeMeaning(INPUT, 422, "The query is an accession, not a sequence"),
    "query_unreadable": CodeMeaning(INPUT, 422, "The query cannot be read"),
    # options and formats
    "program_unknown": CodeMeaning(INPUT, 422, "There is no such program"),
    "option_unknown": CodeMeaning(INPUT, 422, "There is no such option"),
    "option_forbidden": CodeMeaning(INPUT, 422, "This option is not the submitter's to set"),
    "option_value": CodeMeaning(INPUT, 422, "An option has a value it cannot have"),
    "format_unknown": CodeMeaning(INPUT, 422, "There is no such output format"),
    "taxid_unknown": CodeMeaning(INPUT, 422, "The database has no sequence of this taxon"),
    "request_invalid": CodeMeaning(INPUT, 422, "The request cannot be understood"),
    "key_invalid": CodeMeaning(INPUT, 422, "The idempotency key cannot be used"),
    "key_conflict": CodeMeaning(INPUT, 409, "The key was used for another search"),
    "never_fits": CodeMeaning(MEMORY, 422, "The search can never run here"),
    # databases
    "database_unknown": CodeMeaning(DATABASE, 404, "There is no such database"),
    "database_exists": CodeMeaning(DATABASE, 409, "The database name is taken"),
    "database_in_use": CodeMeaning(DATABASE, 409, "Searches still use the database"),
    "database_wrong_type": CodeMeaning(DATABASE, 422, "The database does not suit the program"),
    "database_invalid": CodeMeaning(DATABASE, 422, "The database cannot be registered"),
    "database_broken": CodeMeaning(DATABASE, 500, "The database is damaged"),
    # searches
    "search_unknown": CodeMeaning(INPUT, 404, "There is no such search"),
    "search_unfinished": CodeMeaning(NOT_READY, 409, "The search has not finished"),
    "search_finished": CodeMeaning(INPUT, 409, "The search has already ended"),
    "result_gone": CodeMeaning(INPUT, 410, "The result was deleted"),
    "not_yours": CodeMeaning(PERMISSION, 403, "The search belongs to another account"),
    # waiting
    "submit_slot_timeout": CodeMeaning(TIMEOUT, 503, "Waited too long for the submit slot"),
    "capacity_timeout": CodeMeaning(TIMEOUT, 503, "Waited too long for a free run slot"),
    # running
    "cancelled": CodeMeaning(INTERRUPTED, 409, "The search was cancelled"),
    "interrupted": CodeMeaning(INTERRUPTED, 500, "The search was interrupted"),
    "runner_died": CodeMeaning(ENGINE, 500, "The process that ran the search died again and again"),
    "memory_limit": CodeMeaning(MEMORY, 500, "BLAST+ reached its memory limit"),
    "killed": CodeMeaning(MEMORY, 500, "BLAST+ was killed"),
    "cpu_limit": CodeMeaning(TIMEOUT, 500, "BLAST+ reached its CPU-time limit"),
    "output_limit": CodeMeaning(ENGINE, 500, "The output reached its size limit"),
    "disk_full": CodeMeaning(ENGINE, 507, "The disk is full"),
    "blast_crashed": CodeMeaning(ENGINE, 500, "BLAST+ crashed"),
    "blast_failed": CodeMeaning(ENGINE, 500, "BLAST+ reported an error"),
    "no_output": CodeMeaning(ENGINE, 500, "BLAST+ ended well but wrote no output"),
    "result_incomplete": CodeMeaning(ENGINE, 500, "A part of the result is missing or damaged"),
    "result_unmerged": CodeMeaning(ENGINE, 500, "The parts of the result make no whole"),
    "results_unavailable": CodeMeaning(NOT_READY, 503, "The results location did not answer"),
    # the submit command
    "submit_input": CodeMeaning(INPUT, 422, "The submit command refused the search"),
    "submit_database": CodeMeaning(DATABASE, 500, "The submit command cannot use the database"),
    "submit_memory": CodeMeaning(MEMORY, 500, "The search does not fit the cluster's machines"),
    "submit_permission": CodeMeaning(PERMISSION, 403, "The submit command lacks a permission"),
    "submit_dependency": CodeMeaning(DEPENDENCY, 503, "The submit command lacks what it needs"),
    "submit_name_taken": CodeMeaning(CLUSTER, 409, "Another search has names that are too alike"),
    "submit_failed": CodeMeaning(ENGINE, 500, "The submit command failed"),
    "terminal_exec_unavailable": CodeMeaning(NOT_READY, 503, "The submit command could not run"),
    # the front door
    "route_unknown": CodeMeaning(INPUT, 404, "There is nothing at this address"),
    "method_unknown": CodeMeaning(INPUT, 405, "This address does not answer that method"),
    "media_type": CodeMeaning(INPUT, 415, "The request is of a kind that is not read here"),
    "range_unsatisfiable": CodeMeaning(INPUT, 416, "The result has no such bytes"),
    "origin_refused": CodeMeaning(PERMISSION, 403, "The request comes from another site"),
    "port_taken": CodeMeaning(NOT_READY, 503, "The port is in use"),
    "worker_stopped": CodeMeaning(NOT_READY, 503, "The service accepts but does not run searches"),
    # the installation
    "blast_missing": CodeMeaning(DEPENDENCY, 503, "BLAST+ is not installed"),
    "dependency_missing": CodeMeaning(
        DEPENDENCY, 503, "Something blastyard needs is not installed"
    ),
    "store_unavailable": CodeMeaning(NOT_READY, 503, "The store did not answer"),
    "store_newer": CodeMeaning(NOT_READY, 503, "The store was written by a newer blastyard"),
    "ledger_unreadable": CodeMeaning(NOT_READY, 503, "The ledger cannot be read"),
    # the cluster
    "cluster_unavailable": CodeMeaning(CLUSTER, 503, "The cluster's API server did not answer"),
    "cluster_forbidden": CodeMeaning(PERMISSION, 403, "The cluster refuses this credential"),
    "cluster_misconfigured": CodeMeaning(CLUSTER, 500, "The cluster cannot be used as set up"),
    "lease_lost": CodeMeaning(INTERRUPTED, 503, "The submit lease was lost"),
    "settings_invalid": CodeMeaning(INPUT, 500, "The settings contradict each other"),
    "permission_denied": CodeMeaning(PERMISSION, 403, "This account may not do that"),
    "internal": CodeMeaning(UNKNOWN, 500, "Something unexpected happened"),
}


class BlastyardError(Exception):
    """The root. ``code`` is a key of :data:`CODES`."""

    def __init__(self, code: str, message: str, next_step: str = "") -> None:
        super().__init__(message)
        if code not in CODES:
            raise KeyError(f"unregistered error code: {code}")
        self.code = code
        self.message = message
        self.next_step = next_step
        self.position: tuple[int, int] | None = None
        """Line and column in the input, from 1, where the mistake has one; column 0: unknown."""

    @property
    def meaning(self) -> CodeMeaning:
        """The exit code, HTTP status and title of this error's code."""
        return CODES[self.code]


class CallerMistake(BlastyardError):
    """The request is wrong. Nothing was queued and nothing changed."""


class NotFound(CallerMistake):
    """The request names something that is not there."""


class Conflict(CallerMistake):
    """The request contradicts something already accepted."""


class Unavailable(BlastyardError):
    """It cannot be told what is true now; no admission may follow from it."""

    retry_after: float | None = None
    """Seconds after which whoever did not answer wants to be asked again; ``None`` = not said."""


PASSING: Final = frozenset({"store_unavailable", "cluster_unavailable"})
"""Codes of errors that go away by themselves: asking again is the remedy."""


class Misconfigured(BlastyardError):
    """The installation cannot work as it is set up; the message lists every problem."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an accepted search failed, as it is stored and shown."""

    code: str
    message: str
    next_step: str = ""
