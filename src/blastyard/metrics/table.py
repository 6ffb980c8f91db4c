"""Every metric: its name, kind, labels and meaning. ``docs/metrics.md`` says the same.

Seconds are seconds, and every counter begins at 0 with the process. What a *gauge* shows stands in
documents that all processes of a namespace share, so that each of them shows the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The types of Prometheus that are used here."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``buckets`` are upper bounds, of a histogram only."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


_WAITS: Final = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 900, 1800, 3600, 14400, 86400)
_IDLE: Final = (0.003, 0.01, 0.03, 0.06, 0.09, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_HELD: Final = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 900)
_CALLS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

# -- what stands in the shared documents -----------------------------------------------------------

READABLE: Final = Metric(
    "blastyard_admission_readable",
    Kind.GAUGE,
    "1 when ledger, lease and census could be read for this answer; otherwise 0, and the other "
    "gauges are missing",
)
WAITING: Final = Metric(
    "blastyard_waiting_searches",
    Kind.GAUGE,
    "Searches with a ticket, by what keeps them from going now",
    ("reason",),
)
HOLDS: Final = Metric(
    "blastyard_holds", Kind.GAUGE, "Run slots that the ledger has given away, by state", ("state",)
)
CEILING: Final = Metric(
    "blastyard_ceiling", Kind.GAUGE, "How many searches may run at once; 0 = drained"
)
OCCUPIED: Final = Metric(
    "blastyard_occupied_slots",
    Kind.GAUGE,
    "Run slots in use: the union of the holds and of what is observed running",
)
SEEN: Final = Metric(
    "blastyard_seen_searches",
    Kind.GAUGE,
    "Searches that the census observes running, phantoms among them; 0 on a single machine",
)
FOREIGN: Final = Metric(
    "blastyard_foreign_searches",
    Kind.GAUGE,
    "Searches observed running that count and have no hold: other programs started them",
)
PHANTOMS: Final = Metric(
    "blastyard_phantom_searches",
    Kind.GAUGE,
    "Finalizers that nothing stands behind any more, and that do not count",
)
INSIDE: Final = Metric(
    "blastyard_lease_held", Kind.GAUGE, "1 while somebody holds the submit lease, else 0"
)

# -- what this process did and saw -----------------------------------------------------------------

GRANTS: Final = Metric(
    "blastyard_grants_total",
    Kind.COUNTER,
    "Run slots granted to this process, new or resumed after an attempt that came to nothing",
    ("kind",),
)
WAITED: Final = Metric(
    "blastyard_wait_seconds",
    Kind.HISTOGRAM,
    "From a search's ticket to its run slot",
    buckets=_WAITS,
)
IDLE: Final = Metric(
    "blastyard_slot_idle_seconds",
    Kind.HISTOGRAM,
    "From the moment at which this process saw a run slot free while somebody eligible waited to "
    "the grant that used it",
    buckets=_IDLE,
)
DENIALS: Final = Metric(
    "blastyard_denials_total",
    Kind.COUNTER,
    "Denials by rule; one for each change of the rule by which a search is denied",
    ("rule",),
)
RETIRED: Final = Metric(
    "blastyard_retired_holds_total",
    Kind.COUNTER,
    "Holds that this process ended because the census showed that their search had ended",
)
LEASE: Final = Metric(
    "blastyard_lease_events_total",
    Kind.COUNTER,
    "What happened to the submit lease in this process's hands",
    ("event",),
)
HELD: Final = Metric(
    "blastyard_lease_held_seconds",
    Kind.HISTOGRAM,
    "From acquiring the submit lease to its release",
    buckets=_HELD,
)

# -- the cluster -----------------------------------------------------------------------------------

CALLS: Final = Metric(
    "blastyard_api_requests_total",
    Kind.COUNTER,
    "Requests to the API server; status is that of HTTP, or no_answer",
    ("verb", "resource", "status"),
)
CALL_SECONDS: Final = Metric(
    "blastyard_api_request_seconds",
    Kind.HISTOGRAM,
    "How long they took; of a watch, until it began",
    ("verb",),
    _CALLS,
)
RESTARTS: Final = Metric(
    "blastyard_watch_restarts_total",
    Kind.COUNTER,
    "Watches and lists of the informer that failed and were begun anew",
)
PASSED: Final = Metric(
    "blastyard_passed_searches_total",
    Kind.COUNTER,
    "Searches that this process saw appear while nobody was inside Gate A",
)
MARKERS: Final = Metric(
    "blastyard_marker_requests_total",
    Kind.COUNTER,
    "Jobs that stand in for searches: had up (put), given longer (extend), removed (take), or "
    "removed with all others of a search (drop, counted once)",
    ("deed", "kind"),
)

ALL: Final = (
    READABLE,
    WAITING,
    HOLDS,
    CEILING,
    OCCUPIED,
    SEEN,
    FOREIGN,
    PHANTOMS,
    INSIDE,
    GRANTS,
    WAITED,
    IDLE,
    DENIALS,
    RETIRED,
    LEASE,
    HELD,
    CALLS,
    CALL_SECONDS,
    RESTARTS,
    PASSED,
    MARKERS,
)
