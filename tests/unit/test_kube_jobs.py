"""Jobs are followed while they live, and what becomes of them is told."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from kube_memory import JOBS as JOBS_PATH
from kube_memory import NAMESPACE, SOON, Cluster, eventually

from blastyard.admission.kubernetes.job_sight import JobSight
from blastyard.domain.clock import SystemClock
from blastyard.kube.reflector import Pace
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES

QUICK = {"shortest_pause": 0.01, "longest_pause": 0.05}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(SystemClock())
    yield cluster
    cluster.close()


def job(name: str, app: str = "finalizer", search: str = "s", **metadata: Any) -> dict[str, Any]:
    """A Job of a search."""
    labels = {"app": app, "elb-job-id": search}
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name, "labels": labels, **metadata}, "spec": {"template": pod}}


def settled(cluster: Cluster, informer: Any) -> None:
    """Wait until all three streams are open."""
    opened = Event()
    while not all(cluster.api.watches.count(name) for name in ("leases", "configmaps", "jobs")):
        opened.wait(0.005)
    while informer.follows(LEASES) + informer.follows(CONFIGMAPS) + informer.follows(JOBS) < 3:
        opened.wait(0.005)


# -- Jobs ----------------------------------------------------------------------------------------


class Deserted:
    """Who was told of Jobs that were deleted unfinished."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.told = Event()

    def __call__(self, job: JobSight) -> None:
        self.names.append(job.name)
        self.told.set()


def test_jobs_are_kept_while_they_live_and_their_coming_and_going_rings(cluster: Cluster) -> None:
    deserted = Deserted()
    informer = cluster.informer(deserted=deserted)
    informer.start()
    watch = informer.bell.watch()
    settled(cluster, informer)

    cluster.send("POST", JOBS_PATH, job("a"))
    eventually(watch, lambda: [each.name for each in informer.jobs.all()] == ["a"])
    (seen,) = informer.jobs.all()
    assert (seen.app, seen.search, seen.has_ended) == ("finalizer", "s", False)

    cluster.send("POST", JOBS_PATH, job("b", app="blast"))
    cluster.api.fail(NAMESPACE, "b")
    eventually(watch, lambda: any(each.has_ended for each in informer.jobs.all()))

    cluster.api.complete(NAMESPACE, "a")
    eventually(watch, lambda: [each.name for each in informer.jobs.all()] == ["b"])

    cluster.send("DELETE", f"{JOBS_PATH}/a", {"propagationPolicy": "Background"})
    cluster.send("DELETE", f"{JOBS_PATH}/b", {"propagationPolicy": "Background"})
    eventually(watch, lambda: not informer.jobs.all())
    assert deserted.names == []


def test_a_job_that_is_deleted_unfinished_is_told_of(cluster: Cluster) -> None:
    cluster.send("POST", JOBS_PATH, job("before", app="blast"))
    deserted = Deserted()
    informer = cluster.informer(deserted=deserted)
    informer.start()
    settled(cluster, informer)

    cluster.send("DELETE", f"{JOBS_PATH}/before", {"propagationPolicy": "Background"})

    assert deserted.told.wait(SOON)
    assert deserted.names == ["before"]


def test_a_job_that_is_missing_from_a_list_was_not_seen_to_be_deleted(cluster: Cluster) -> None:
    cluster.send("POST", JOBS_PATH, job("a", app="blast"))
    deserted = Deserted()
    informer = cluster.informer(deserted=deserted, pace=Pace(resync=0.3, **QUICK))
    informer.start()
    watch = informer.bell.watch()
    settled(cluster, informer)
    cluster.api.watches.drop_next("jobs", "DELETED")

    cluster.send("DELETE", f"{JOBS_PATH}/a", {"propagationPolicy": "Background"})
    cluster.send("POST", JOBS_PATH, job("b", app="blast"))
    eventually(watch, lambda: len(informer.jobs.all()) == 2)
    cluster.api.watches.end("jobs")

    eventually(watch, lambda: [each.name for each in informer.jobs.all()] == ["b"])
    assert deserted.names == []


def test_a_change_of_a_job_that_matters_to_nobody_rings_for_nobody(cluster: Cluster) -> None:
    informer = cluster.informer()
    informer.start()
    watch = informer.bell.watch()
    settled(cluster, informer)
    cluster.send("POST", JOBS_PATH, job("a", annotations={"other/x": "1", "blastyard/y": "2"}))
    eventually(watch, lambda: any(each.counted.started_at for each in informer.jobs.all()))
    assert not watch.wait(0)

    change = {"metadata": {"annotations": {"other/x": "3"}}}
    cluster.send("PATCH", f"{JOBS_PATH}/a", change)
    cluster.send("POST", JOBS_PATH, job("b", annotations={"blastyard/y": "2"}))
    eventually(watch, lambda: len(informer.jobs.all()) == 2)

    assert dict(informer.jobs.all()[0].annotations) == {"blastyard/y": "2"}
