"""Counting and logging what happens at the gates: the observer of a service, or of ``exec``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from threading import Event as Flag
from typing import Final

from blastyard.admission import observer as told
from blastyard.admission.census import MarkerKind
from blastyard.admission.idle import Idle
from blastyard.admission.ledger import Submitter
from blastyard.admission.markers import Markers
from blastyard.admission.marking import Extend, Put, Take
from blastyard.admission.observer import Event, News, Observer
from blastyard.admission.onlooker import Passed
from blastyard.admission.outcome import Reason, Refused
from blastyard.admission.tally import Tally, tally
from blastyard.bootstrap.instrument import Followed, Instruments
from blastyard.domain.errors import BlastyardError
from blastyard.logline import note
from blastyard.metrics import table
from blastyard.metrics.registry import Reading, Registry
from blastyard.metrics.textfile import NotMetrics, add_to
from blastyard.settings import Settings

LOG: Final = logging.getLogger(__name__)

BUSY: Final = "blast_submit_gate_unavailable"
"""The code of a denial: it will drain. Other submitters on the cluster use the same."""
BROKEN: Final = "blast_submit_lease_api_error"
"""The code where the API server or the credential keeps it from being told."""
CANNOT_TELL: Final = "cannot_tell"
_ANY: Final = "any"
_LEASE_EVENTS: Final = {
    told.Renewed: "renewed",
    told.Lost: "lost",
    told.Left: "released",
    told.ReleaseFailed: "release_retry",
    told.Abandoned: "abandoned",
}
ACQUIRED: Final = "acquired"
TAKEN_OVER: Final = "taken_over"


def observing(settings: Settings, me: Submitter, *, counts: bool, logs: bool) -> Instruments:
    """The instruments of a process: it ``counts``, it ``logs``, or both."""
    log = Log(on_cluster=settings.on_cluster) if logs else told.nobody
    if not counts:
        return Instruments(Newly([log]))
    meter = Meter(new_registry())
    file = Path(settings.metrics_file) if settings.metrics_file and me.kind != "serve" else None
    return Instruments(
        Newly([log, meter]),
        meter.called,
        meter.passed,
        lambda markers: CountedMarkers(markers, meter.registry),
        meter.follow,
        meter.registry.exposition,
        lambda: leave(meter.registry, file) if file else None,
    )


class Newly:
    """Passes on what is news: a denial for the same reason as before is not."""

    def __init__(self, sinks: Iterable[Observer]) -> None:
        self._sinks = tuple(sinks)
        self._news = News()

    def __call__(self, event: Event, /) -> None:
        """See the observer."""
        match event:
            case told.Denied(search=search) if not self._news(search, event.rule):
                return
            case told.Undecided(search=search) if not self._news(search, CANNOT_TELL):
                return
            case told.Granted(search=search):
                self._news.forget(search)
        for sink in self._sinks:
            sink(event)


class Log:
    """Writes events as log lines; names begin with ``k8s_`` where the gate is a namespace's."""

    def __init__(self, *, on_cluster: bool) -> None:
        self._prefix = "k8s_" if on_cluster else ""

    def __call__(self, event: Event, /) -> None:
        """See the observer."""
        match event:
            case told.Denied():
                self._denied(event)
            case told.Undecided(search=search, error=error):
                code = BROKEN if error.code.startswith("cluster_") else error.code
                said = {"search": search, "code": code, "rule": CANNOT_TELL}
                self._note(logging.WARNING, "gate_deny", **said, detail=error.message)
            case told.Granted(search=search, fence=fence, waited=waited):
                seconds = None if waited is None else round(waited, 3)
                self._note(logging.INFO, "gate_grant", search=search, fence=fence, waited=seconds)
            case told.Entered(holder=holder, taken_over=True):
                self._note(logging.WARNING, "lease_taken_over", holder=holder)
            case told.Lost(holder=holder):
                self._note(logging.WARNING, "lease_lost", holder=holder)
            case told.ReleaseFailed(holder=holder):
                self._note(logging.WARNING, "lease_release_retry", holder=holder)
            case told.Abandoned(holder=holder):
                self._note(logging.WARNING, "lease_abandoned", holder=holder)
            case told.Retired(searches=searches):
                self._note(logging.INFO, "gate_retire", searches=", ".join(sorted(searches)))

    def _denied(self, event: told.Denied) -> None:
        outcome, inputs = event.outcome, event.inputs
        refused = isinstance(outcome, Refused)
        self._note(
            logging.INFO,
            "gate_deny",
            search=event.search,
            code=told.REFUSED if refused else BUSY,
            rule=event.rule,
            phase=None if isinstance(outcome, Refused) else outcome.phase.value,
            position=event.position,
            until=event.until,
            ceiling=inputs and inputs.ceiling,
            user_cap=inputs and inputs.user_cap,
            holds=inputs and inputs.holds,
            seen=inputs and inputs.seen,
            waiting=inputs and inputs.waiting,
            fence=inputs and inputs.fence,
            detail=outcome.detail,
        )

    def _note(self, level: int, event: str, **fields: object) -> None:
        note(LOG, level, self._prefix + event, **fields)


def new_registry() -> Registry:
    """A registry in which everything that can be counted says 0."""
    registry = Registry(
        each
        for each in table.ALL
        if each.kind is not table.Kind.GAUGE and each is not table.RESTARTS
    )
    for event in (ACQUIRED, TAKEN_OVER, *_LEASE_EVENTS.values()):
        registry.prepare(table.LEASE, event)
    for rule in (*Reason, told.REFUSED, CANNOT_TELL):
        registry.prepare(table.DENIALS, str(rule))
    for kind in ("new", "resumed"):
        registry.prepare(table.GRANTS, kind)
    return registry


class Meter:
    """Counts events."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._idle = Idle()

    def __call__(self, event: Event, /) -> None:
        """See the observer."""
        match event:
            case told.Looked():
                self._idle.look(event)
            case told.Granted():
                self._granted(event)
            case told.Denied():
                self.registry.count(table.DENIALS, event.rule)
            case told.Undecided():
                self.registry.count(table.DENIALS, CANNOT_TELL)
            case told.Entered(taken_over=taken_over):
                self.registry.count(table.LEASE, ACQUIRED)
                if taken_over:
                    self.registry.count(table.LEASE, TAKEN_OVER)
            case told.Retired(searches=searches):
                self.registry.count(table.RETIRED, by=len(searches))
            case _:
                self.registry.count(table.LEASE, _LEASE_EVENTS[type(event)])
                if isinstance(event, told.Left):
                    self.registry.observe(table.HELD, event.seconds)

    def _granted(self, event: told.Granted) -> None:
        self.registry.count(table.GRANTS, "resumed" if event.waited is None else "new")
        if event.waited is not None:
            self.registry.observe(table.WAITED, event.waited)
        idle = self._idle.grant(event)
        if idle is not None:
            self.registry.observe(table.IDLE, idle)

    def called(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """One request to the API server."""
        answer = str(int(status)) if status else "no_answer"
        self.registry.count(table.CALLS, verb, resource, answer)
        self.registry.observe(table.CALL_SECONDS, seconds, verb)

    def passed(self, _: Passed) -> None:
        """A search came past Gate A."""
        self.registry.count(table.PASSED)

    def follow(self, followed: Followed) -> None:
        """Read gauges from a gate whenever somebody looks."""
        restarts = followed.restarts
        if restarts is not None:
            self.registry.follow_total(table.RESTARTS, restarts)
        self.registry.follow(lambda: gauges(followed))


def gauges(followed: Followed) -> list[Reading]:
    """What stands in the documents now; only that they cannot be read when they cannot."""
    gate = followed.gate
    try:
        picture = gate.picture(lately=True)
        found = tally(picture, followed.seed, gate.timings, shared=gate.is_shared)
    except BlastyardError as error:
        LOG.warning("the gauges cannot be read: %s", error)
        return [Reading(table.READABLE, 0)]
    return [Reading(table.READABLE, 1), *_readings(found)]


def _readings(found: Tally) -> list[Reading]:
    return [
        *(Reading(table.WAITING, count, (name,)) for name, count in found.waiting.items()),
        *(Reading(table.HOLDS, count, (state,)) for state, count in found.holds.items()),
        Reading(table.CEILING, found.ceiling),
        Reading(table.OCCUPIED, found.occupied),
        Reading(table.SEEN, found.seen),
        Reading(table.FOREIGN, found.foreign),
        Reading(table.PHANTOMS, found.phantoms),
        Reading(table.INSIDE, int(found.inside)),
    ]


class CountedMarkers:
    """Markers of which what is asked is counted, once it was done."""

    def __init__(self, inner: Markers, registry: Registry) -> None:
        self._inner = inner
        self._registry = registry

    def put(self, put: Put, *, holder: str = "", fence: str = "") -> None:
        """See the port, as for all below."""
        self._inner.put(put, holder=holder, fence=fence)
        self._count("put", put.marker.kind.value, len(put.apps))

    def extend(self, extend: Extend) -> None:
        self._inner.extend(extend)
        self._count("extend", _ANY)

    def take(self, take: Take) -> None:
        self._inner.take(take)
        self._count("take", _ANY)

    def drop(self, search: str, kind: MarkerKind | None = None) -> None:
        self._inner.drop(search, kind)
        self._count("drop", kind.value if kind else _ANY)

    def drop_known(self, search: str) -> None:
        """See the port."""
        self._inner.drop_known(search)
        self._count("drop", _ANY)

    def delete_search(self, name: str) -> None:
        self._inner.delete_search(name)

    def _count(self, deed: str, kind: str, number: int = 1) -> None:
        self._registry.count(table.MARKERS, deed, kind, by=number)


def _nap(seconds: float) -> None:
    Flag().wait(seconds)


def leave(registry: Registry, file: Path) -> None:
    """Add what was counted to a file; the process's own work is not to fail of it."""
    try:
        add_to(file, registry.totals(), _nap)
    except (OSError, NotMetrics) as error:
        LOG.warning("the metrics could not be added to %s: %s", file, error)
