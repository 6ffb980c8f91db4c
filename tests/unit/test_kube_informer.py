"""One informer follows everything, so that waiting costs nothing; its death costs time only."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from kube_memory import LEASES as LEASES_PATH
from kube_memory import SOON, Cluster, eventually, record

from blastyard.admission.port import ABSENT, LEASE, LEDGER
from blastyard.domain.clock import SystemClock
from blastyard.kube.reflector import Pace
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES

AT = "2026-12-01T00:16:40.000000Z"
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


# -- glances -------------------------------------------------------------------------------------


def test_glances_ask_nothing_while_the_informer_follows(cluster: Cluster) -> None:
    other = cluster.store()
    store, informer = cluster.following()
    watch = store.watch()
    settled(cluster, informer)
    other.swap(LEASE, ABSENT, record("blastyard-1-1", AT))
    other.swap(LEDGER, ABSENT, b"{}")
    other.swap("submitter/other", ABSENT, b"other")
    eventually(watch, lambda: store.glance(LEDGER).body is not None)
    while not store.glance_all("submitter/"):  # it rings for nobody
        watch.wait(0.005)
    cluster.requests.clear()

    for _ in range(100):
        assert store.glance(LEASE).body == record("blastyard-1-1", AT)
        assert store.glance(LEDGER).body == b"{}"
        assert list(store.glance_all("submitter/")) == ["submitter/other"]
        assert list(store.glance_all("")) == [LEASE, LEDGER, "submitter/other"]
        assert store.glance("submitter/nobody").version == ABSENT

    assert cluster.requests == []
    assert not store.glance(LEASE).is_fresh


def test_what_was_glanced_is_swapped_in_one_request(cluster: Cluster) -> None:
    store, informer = cluster.following()
    watch = store.watch()
    settled(cluster, informer)
    cluster.put_lease({"holderIdentity": "peer"})
    eventually(watch, lambda: store.glance(LEASE).body == record("peer"))
    cluster.requests.clear()

    assert store.swap(LEASE, store.glance(LEASE).version, record("blastyard-1-1", AT)) is not None

    assert cluster.requests == [("update", "leases", 200)]


def test_before_the_first_list_a_glance_is_a_read(cluster: Cluster) -> None:
    cluster.store().swap(LEDGER, ABSENT, b"{}")
    store = cluster.store()

    assert store.glance(LEDGER).body == b"{}"
    assert list(store.glance_all("")) == [LEDGER]


def test_a_dead_informer_costs_time_only(cluster: Cluster) -> None:
    store, informer = cluster.following()
    settled(cluster, informer)
    cluster.api.access.forbidden |= {("watch", "*"), ("list", "*")}
    watch = store.watch()
    for name in ("leases", "configmaps", "jobs"):
        cluster.api.watches.cut(name)
    while informer.follows(LEASES) or informer.follows(CONFIGMAPS):
        watch.wait(0.005)

    cluster.put_lease({"holderIdentity": "peer"})
    while store.glance(LEASE).body != record("peer"):  # at most a second later, without a ring
        watch.wait(0.05)

    assert informer.trouble is not None


# -- the bell ------------------------------------------------------------------------------------


def test_others_wake_who_waits_and_a_sign_of_life_wakes_nobody(cluster: Cluster) -> None:
    other = cluster.store()
    store, informer = cluster.following()
    settled(cluster, informer)
    watch = store.watch()
    version: Any = ABSENT
    for _ in range(5):
        done = other.swap("submitter/other", version, b"other")
        assert done is not None
        version = done.version
    while [each.version for each in store.glance_all("submitter/").values()] != [version]:
        assert not watch.wait(0.005)
    assert not watch.wait(0)

    other.swap("submitter/other", version, None)

    assert watch.wait(SOON)
    assert store.glance_all("submitter/") == {}


def test_ones_own_sign_of_life_wakes_nobody(cluster: Cluster) -> None:
    store = cluster.store()
    watch = store.watch()
    made = store.swap("submitter/me", ABSENT, b"me")
    assert made is not None
    again = store.swap("submitter/me", made.version, b"me")
    assert again is not None
    assert not watch.wait(0)

    store.swap("submitter/me", again.version, None)

    assert watch.wait(0)


@pytest.mark.parametrize("name", ["foreign", "elb-blast-submit-other"])
def test_leases_of_other_programs_wake_nobody(cluster: Cluster, name: str) -> None:
    store, informer = cluster.following()
    settled(cluster, informer)
    watch = store.watch()

    cluster.send("POST", LEASES_PATH, {"metadata": {"name": name}, "spec": {"holderIdentity": "x"}})
    cluster.send("DELETE", f"{LEASES_PATH}/{name}")
    cluster.put_lease({"holderIdentity": "peer"})

    eventually(watch, lambda: store.glance(LEASE).body == record("peer"))
    assert not watch.wait(0)


def test_ones_own_swap_wakes_once_though_its_event_comes_too(cluster: Cluster) -> None:
    store, informer = cluster.following()
    settled(cluster, informer)
    watch, marker = store.watch(), cluster.store()
    made = store.swap(LEDGER, ABSENT, b"1")
    assert made is not None
    assert watch.wait(SOON)

    marker.swap(LEDGER, made.version, b"2")  # its event comes after the one of our swap
    eventually(watch, lambda: store.glance(LEDGER).body == b"2")

    assert not watch.wait(0)


@pytest.mark.parametrize("trouble", ["end", "cut", "compact"])
def test_what_happened_while_a_stream_was_broken_is_heard_of(
    cluster: Cluster, trouble: str
) -> None:
    store, informer = cluster.following(**QUICK)
    settled(cluster, informer)
    watch = store.watch()
    if trouble == "compact":
        cluster.api.compact()
    else:
        getattr(cluster.api.watches, trouble)("leases")
    cluster.put_lease({"holderIdentity": "peer"})

    eventually(watch, lambda: store.glance(LEASE).body == record("peer"))


def test_a_deletion_that_was_not_told_is_found_by_listing_anew(cluster: Cluster) -> None:
    other = cluster.store()
    made = other.swap("submitter/other", ABSENT, b"other")
    assert made is not None
    store, informer = cluster.following(resync=0.3, **QUICK)
    settled(cluster, informer)
    assert list(store.glance_all("submitter/")) == ["submitter/other"]
    watch = store.watch()
    cluster.api.watches.drop_next("leases", "DELETED")

    other.swap("submitter/other", made.version, None)
    cluster.put_lease({"holderIdentity": "peer"})  # after which the stream goes on
    eventually(watch, lambda: store.glance(LEASE).body == record("peer"))
    assert list(store.glance_all("submitter/")) == ["submitter/other"]
    cluster.api.watches.end("leases")

    eventually(watch, lambda: not store.glance_all("submitter/"))


def test_a_half_open_stream_is_found_by_its_silence(cluster: Cluster) -> None:
    store, informer = cluster.following(quiet=0.2, **QUICK)
    settled(cluster, informer)
    watch = store.watch()
    cluster.api.watches.silence("leases")
    cluster.put_lease({"holderIdentity": "peer"})

    eventually(watch, lambda: store.glance(LEASE).body == record("peer"))
    assert informer.restarts >= 1


def test_closing_ends_all_loops(cluster: Cluster) -> None:
    _, informer = cluster.following()
    settled(cluster, informer)

    informer.close()

    assert [thread.is_alive() for thread in informer._threads] == [False] * 3


def test_a_simulator_may_run_the_loops_itself(cluster: Cluster) -> None:
    slept: list[float] = []

    def pause(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            informer.close()

    cluster.api.access.forbidden.add(("list", "leases"))
    informer = cluster.informer(pause=pause, pace=Pace(shortest_pause=1.0))

    informer.loops[0]()

    assert len(slept) == 5
    assert min(slept) >= 1.0
