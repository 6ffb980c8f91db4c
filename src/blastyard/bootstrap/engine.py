"""How searches are run here: on this machine, or handed to a cluster.

What steps, sweeps and hands over searches differs with it, since work in a cluster outlives every
process of ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from blastyard.bootstrap.gate import OpenGate
from blastyard.bootstrap.seam import Seam
from blastyard.domain.errors import Misconfigured
from blastyard.engine.local import LocalEngine, LocalSettings
from blastyard.engine.port import Leavings
from blastyard.service.advance import Advance, Stages
from blastyard.service.attempt import Attempts
from blastyard.service.ending import Endings
from blastyard.service.handover import Handover
from blastyard.service.outcome import Done, Wait
from blastyard.service.sweep import Sweep
from blastyard.service.task import Tasks
from blastyard.service.window import Window
from blastyard.settings import Settings, caller_environment
from blastyard.store.port import SearchStore

if TYPE_CHECKING:
    from blastyard.bootstrap.cluster import Connection
    from blastyard.engine.elastic_blast.configuration import Template
    from blastyard.engine.remote import RemoteEngine

Steps = Callable[[str], Done | Wait]


@dataclass(frozen=True, slots=True)
class Parts:
    """What every engine works with."""

    store: SearchStore
    tasks: Tasks
    window: Window
    endings: Endings


@dataclass(frozen=True, slots=True)
class Machinery:
    """What runs searches. ``steps(woken)`` makes the steps of a worker, which is ``woken`` when
    something of a search has ended; ``close`` lets go of sockets."""

    sweep: Sweep
    handover: Handover
    steps: Callable[[Callable[[str], None]], Steps]
    leavings: Leavings
    close: Callable[[], None] = lambda: None


def open_machinery(settings: Settings, opened: OpenGate, parts: Parts, seam: Seam) -> Machinery:
    """What the settings ask for. Raises ``Misconfigured``."""
    if settings.is_remote:
        return _elastic_blast(settings, opened, parts, seam)
    engine = seam.engine(LocalEngine(LocalSettings(nice=settings.nice, path=settings.path)))
    store, gate, tasks = parts.store, opened.gate, parts.tasks

    def steps(woken: Callable[[str], None]) -> Steps:
        attempts = Attempts(store, gate, engine, tasks, woken)
        return Advance(Stages(store, gate, engine, tasks, attempts, parts.window, parts.endings))

    sweep = Sweep(store, gate, engine, tasks, parts.endings)
    return Machinery(sweep, Handover(store, gate, engine), steps, engine)


def _elastic_blast(settings: Settings, opened: OpenGate, parts: Parts, seam: Seam) -> Machinery:
    from blastyard.bootstrap.cluster import connect  # noqa: PLC0415  (brings HTTP)
    from blastyard.service.remote.handover import RemoteHandover  # noqa: PLC0415
    from blastyard.service.remote.sweep import RemoteSweep  # noqa: PLC0415

    connection = connect(settings, opened.instruments)
    engine = seam.remote(_engine(settings, opened, connection))
    sweep, handover = (
        RemoteSweep(parts.store, opened.gate),
        RemoteHandover(parts.store, opened.gate),
    )

    def steps(woken: Callable[[str], None]) -> Steps:  # noqa: ARG001  (what changes, rings anyway)
        return remote_steps(opened, parts, engine)

    return Machinery(sweep, handover, steps, engine, connection.wire.close)


def remote_steps(opened: OpenGate, parts: Parts, engine: RemoteEngine) -> Steps:
    """The steps of searches that are handed to ``engine``."""
    from blastyard.service.remote.advance import RemoteAdvance, RemoteStages  # noqa: PLC0415
    from blastyard.service.remote.attempt import RemoteAttempts  # noqa: PLC0415
    from blastyard.service.remote.errand import Errands  # noqa: PLC0415
    from blastyard.service.remote.submission import Submissions  # noqa: PLC0415
    from blastyard.service.remote.trouble import Troubles  # noqa: PLC0415

    store, gate = parts.store, opened.gate
    errands = Errands(parts.tasks)
    submissions = Submissions(store, gate, engine, gate.timings.command)
    chance = random.Random().random  # noqa: S311  (it spreads load, and guards nothing)
    troubles = Troubles(store, parts.endings, gate.timings.settle, chance)
    attempts = RemoteAttempts(store, gate, engine, errands, submissions, troubles)
    return RemoteAdvance(
        RemoteStages(store, gate, engine, errands, attempts, parts.window, parts.endings)
    )


def _engine(settings: Settings, opened: OpenGate, connection: Connection) -> RemoteEngine:
    from blastyard.engine.elastic_blast.command import DEFAULT, SubmitCommand  # noqa: PLC0415
    from blastyard.engine.elastic_blast.configuration import Template  # noqa: PLC0415
    from blastyard.engine.elastic_blast.engine import ElasticBlastEngine  # noqa: PLC0415
    from blastyard.engine.elastic_blast.followed import Followed  # noqa: PLC0415
    from blastyard.engine.elastic_blast.objects import SearchObjects  # noqa: PLC0415
    from blastyard.engine.elastic_blast.probe import Probe  # noqa: PLC0415
    from blastyard.engine.elastic_blast.runner import Setup, SubmitRunner  # noqa: PLC0415

    clock = opened.clock
    file = settings.submit_template
    template = Template.read(Path(file)) if file else Template()
    setup = Setup(
        SubmitCommand.parse(settings.submit_command or DEFAULT),
        template,
        connection.target,
        {**caller_environment(), "PATH": settings.path},
    )
    runner = SubmitRunner(setup, Probe(clock.monotonic), clock.now)
    objects = SearchObjects(connection.client, clock.monotonic, _nap)
    followed = Followed(objects.look_at, opened.sign, clock.monotonic)
    return ElasticBlastEngine(runner, objects, followed, _results(settings, template))


def _results(settings: Settings, template: Template) -> str:
    results = settings.results_url or template.results
    if not results:
        raise Misconfigured(
            "settings_invalid",
            f"neither BLASTYARD_RESULTS_URL nor `results` in {settings.submit_template} says where "
            "results are put",
            "set BLASTYARD_RESULTS_URL, for example to /data/results or s3://bucket/results",
        )
    return results


def _nap(seconds: float) -> None:
    Event().wait(seconds)
