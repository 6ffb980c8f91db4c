"""One run: the plan is played, everything comes to its end, and the recording is judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

from blastyard.admission.timing import Timings
from blastyard.domain.clock import SystemClock
from blastyard.testing.cluster_soak.fault import Weather
from blastyard.testing.cluster_soak.plan import SHORT, Plan
from blastyard.testing.cluster_soak.stage import PEERS_CEILING, Stage, staged
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.foreign.count import is_terminal
from blastyard.testing.plain_wire import Access, PlainWire
from blastyard.testing.recorded.deed import deeds_of
from blastyard.testing.recorded.recorder import Recorder
from blastyard.testing.recorded.rule import Terms
from blastyard.testing.recorded.verdict import Verdict, check_recording

SHORT_DRAIN: Final = 150.0
REAL_DRAIN: Final = 1500.0
_SIGN_OFF_SECONDS: Final = 20.0
_LOOK: Final = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    verdict: Verdict
    leftovers: tuple[str, ...]
    """What should not be there any more when everything has ended."""
    faults: Counter[str]
    seconds: float
    drain: float
    """Seconds from the last fault until everything had ended."""
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return self.verdict.is_clean and not self.leftovers


def run(
    plan: Plan, plane: ControlPlane, folder: Path, *, namespace: str, real_timings: bool = False
) -> Outcome:
    """Play the plan in a new namespace; the recording is in ``folder``."""
    clock = SystemClock()
    began = clock.monotonic()
    with staged(plane, plan, folder, namespace=namespace, real_timings=real_timings) as stage:
        access = Access.read(stage.direct("recorder", plane.admin_token))
        wire = PlainWire(access, "soak-recorder")
        with Recorder(wire, namespace, folder) as recorder:
            weather = _play(stage, clock)
            calm_at = clock.monotonic()
            leftovers = _drain(stage, REAL_DRAIN if real_timings else SHORT_DRAIN)
            drain = clock.monotonic() - calm_at
            leftovers += _sign_off(stage)
            recorder.reach()
        wire.close()
        leftovers += [line for each in stage.actors.values() for line in each.left_behind]
    verdict = check_recording(folder, namespace, _terms(Timings() if real_timings else SHORT))
    deeds = deeds_of(folder)
    ends = Counter(str(deed.more.get("outcome")) for deed in deeds if deed.what == "ended")
    weather.counts["processes killed"] = sum(each.killed for each in stage.actors.values())
    seconds = clock.monotonic() - began
    return Outcome(verdict, tuple(leftovers), weather.counts, seconds, drain, ends)


def _terms(timings: Timings) -> Terms:
    return Terms(
        takeover=timings.takeover.total_seconds(),
        lapse=timings.lapse.total_seconds(),
        peers_ceiling=PEERS_CEILING,
        skew=timings.skew.total_seconds(),
    )


def _play(stage: Stage, clock: SystemClock) -> Weather:
    plan = stage.plan
    stage.actors["controller"].start()
    for worker in plan.workers:
        stage.actors[worker.name].start()
    weather = Weather(stage)
    for program in plan.programs:
        weather.at(program.starts, stage.actors[program.name].start)
    for order in plan.commands:
        weather.at(order.arrives, stage.actors[f"x-{order.search}"].start)
    for at, ceiling in plan.ceilings:
        if at < plan.seconds:
            weather.at(at, partial(weather.change_ceiling, ceiling))
    for fault in plan.faults:
        weather.at(fault.at, partial(weather.strike, fault))
    began = clock.monotonic()
    Event().wait(max(0.0, plan.seconds - (clock.monotonic() - began)))
    weather.clear()
    weather.change_ceiling(plan.ceilings[-1][1])
    return weather


def _drain(stage: Stage, seconds: float) -> list[str]:
    """Wait until nothing is left; what is left when that takes too long."""
    clock, never = SystemClock(), Event()
    latest = clock.monotonic() + seconds
    while True:
        left = ["the API server does not answer"]
        with suppress(OSError):
            left = _left(stage)
        if not left or clock.monotonic() > latest:
            return left
        never.wait(_LOOK)


def _left(stage: Stage) -> list[str]:
    """What has to go before everything has ended."""
    lasting = {"controller", *(worker.name for worker in stage.plan.workers)}
    found = [
        f"{actor.name} still runs"
        for actor in stage.actors.values()
        if actor.is_running and actor.name not in lasting
    ]
    deeds = deeds_of(stage.folder)
    ended = {deed.search for deed in deeds if deed.what == "ended"}
    accepted = {deed.search for deed in deeds if deed.what == "accepted"}
    found += [f"{search} has not ended" for search in sorted(accepted - ended)]
    if found:
        return found
    return [*_left_in_documents(stage), *_left_markers(stage)]


def _left_in_documents(stage: Stage) -> Iterable[str]:
    answer = stage.plane.admin.send("GET", stage.ledger())
    if answer.ok:
        ledger: dict[str, Any] = json.loads(answer.document["data"]["ledger"])
        for kind in ("holds", "tickets"):
            for search in ledger.get(kind) or {}:
                yield f"{search} is among the {kind} of the ledger"
        if ledger.get("restored") is not None:
            yield "the ledger is not whole"
    holder = (stage.lease().get("spec") or {}).get("holderIdentity")
    if holder:
        yield f"{holder} is inside Gate A"
    selector = "?labelSelector=blastyard/kind=submitter"
    items = stage.plane.admin.send("GET", stage.leases() + selector).expect(200)["items"]
    workers = {f"serve-{worker.name}-" for worker in stage.plan.workers}
    for item in items:
        name = str((item.get("spec") or {}).get("holderIdentity"))
        if not any(name.startswith(worker) for worker in workers):
            yield f"the submitter {name} is still known"


def _left_markers(stage: Stage) -> Iterable[str]:
    items = stage.plane.admin.send("GET", stage.jobs()).expect(200)["items"]
    for job in items:
        labels = job["metadata"].get("labels") or {}
        if "blastyard/marker" in labels and not is_terminal(job):
            yield f"the marker {job['metadata']['name']} stands"


def _sign_off(stage: Stage) -> list[str]:
    """End the workers in order; none of them may need force, or leave its lease behind."""
    found = []
    for worker in stage.plan.workers:
        code = stage.actors[worker.name].terminate(_SIGN_OFF_SECONDS)
        if code != 0:
            found.append(f"{worker.name} ended with {code}")
    stage.actors["controller"].terminate(_SIGN_OFF_SECONDS)
    selector = "?labelSelector=blastyard/kind=submitter"
    items = stage.plane.admin.send("GET", stage.leases() + selector).expect(200)["items"]
    return found + [f"{item['spec']['holderIdentity']} never signed off" for item in items]
