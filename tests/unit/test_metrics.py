"""What is counted is what docs/metrics.md says, and Prometheus understands it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from admission_stage import (
    ME,
    NOW,
    TIMINGS,
    Script,
    Yard,
    inside,
    new_ledger,
    queued,
    reserved,
    seconds,
    wish,
)
from metrics_stage import PAGE, values, watched
from prometheus_client.parser import text_string_to_metric_families

from blastyard.admission.census import Census, MarkerKind, SeenJob, take
from blastyard.admission.hold import Attempt
from blastyard.admission.lease import Seen, SubmitLease
from blastyard.admission.ledger import HoldState, Ledger, Policy, Submitter
from blastyard.admission.markers import NoMarkers
from blastyard.admission.marking import Put, Take, marker
from blastyard.admission.picture import Picture
from blastyard.admission.roster import Presence
from blastyard.admission.tally import tally
from blastyard.bootstrap.instrument import SILENT, Followed, instruments_of
from blastyard.bootstrap.observing import CountedMarkers, Meter, Newly, new_registry
from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.metrics import table
from blastyard.metrics.registry import Reading
from blastyard.metrics.table import Kind
from blastyard.settings import Settings, read_settings

ROW = re.compile(r"^\| `(blastyard_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", re.MULTILINE)


# -- the table -------------------------------------------------------------------------------------


def test_every_metric_is_documented_and_no_other() -> None:
    documented = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), meaning.rstrip("."))
        for name, kind, labels, meaning in ROW.findall(PAGE)
    }

    assert documented == {
        each.name: (each.kind.value, each.labels, each.meaning) for each in table.ALL
    }


def test_the_documented_words_of_rules_and_of_the_lease_are_those_that_are_counted() -> None:
    counted = values(new_registry().exposition())
    for metric, label in ((table.DENIALS, "rule"), (table.LEASE, "event"), (table.GRANTS, "kind")):
        pattern = re.compile(rf'{metric.name}{{{label}="(\w+)"}}')
        words = {found[1] for name in counted if (found := pattern.fullmatch(name))}
        assert words
        assert {word for word in words if f"`{word}`" not in PAGE} == set()


def test_names_and_buckets_are_as_prometheus_asks_for() -> None:
    for each in table.ALL:
        assert each.name.endswith("_total") == (each.kind is Kind.COUNTER), each.name
        assert bool(each.buckets) == (each.kind is Kind.HISTOGRAM), each.name
        assert list(each.buckets) == sorted(each.buckets), each.name


# -- counting --------------------------------------------------------------------------------------


def test_a_life_at_the_gates_in_numbers() -> None:
    yard, meter = Yard(), Meter(new_registry())
    gate = watched(yard, Newly([meter]))
    gate.publish([wish("s1"), wish("s2")])
    yard.clock.leap(5)
    stay = inside(gate, "s1")
    stay.reserve(Attempt("s1", 1, ME))
    gate.beat()
    yard.clock.leap(3)
    gate.leave(stay)
    gate.turn("s2")
    gate.turn("s2")

    counted = values(meter.registry.exposition())
    assert counted['blastyard_grants_total{kind="new"}'] == 1
    assert counted["blastyard_wait_seconds_sum"] == 5
    assert counted["blastyard_lease_held_seconds_sum"] == 3
    assert counted['blastyard_denials_total{rule="capacity"}'] == 1
    assert {
        name: counted[f'blastyard_lease_events_total{{event="{name}"}}']
        for name in ("acquired", "renewed", "released", "lost", "taken_over", "release_retry")
    } == {
        "acquired": 1,
        "renewed": 1,
        "released": 1,
        "lost": 0,
        "taken_over": 0,
        "release_retry": 0,
    }


def test_requests_are_counted_by_verb_resource_and_status() -> None:
    meter = Meter(new_registry())
    meter.called("update", "leases", 409, 0.004)
    meter.called("update", "leases", 409, 0.004)
    meter.called("list", "jobs", 0, 5.0)

    counted = values(meter.registry.exposition())
    name = "blastyard_api_requests_total"
    assert counted[f'{name}{{resource="leases",status="409",verb="update"}}'] == 2
    assert counted[f'{name}{{resource="jobs",status="no_answer",verb="list"}}'] == 1
    assert counted['blastyard_api_request_seconds_count{verb="update"}'] == 2


class RefusingMarkers(NoMarkers):
    def take(self, take: Take) -> None:
        raise Unavailable("cluster_unavailable", "no answer")


def test_markers_are_counted_when_it_was_done() -> None:
    registry = new_registry()
    markers = CountedMarkers(RefusingMarkers(), registry)
    ledger = reserved(queued(new_ledger(), "s1"), "s1")
    stand_in = marker("s1", ledger.holds["s1"], MarkerKind.STAND_IN)

    markers.put(Put(stand_in, ("finalizer", "submit")))
    markers.drop("s1")
    with pytest.raises(Unavailable):
        markers.take(Take("job", "uid"))

    counted = values(registry.exposition())
    name = "blastyard_marker_requests_total"
    assert {key: value for key, value in counted.items() if key.startswith(name)} == {
        f'{name}{{deed="put",kind="stand-in"}}': 2,
        f'{name}{{deed="drop",kind="any"}}': 1,
    }


# -- gauges ----------------------------------------------------------------------------------------


def picture(ledger: Ledger, census: Census | None = None, holder: str = "") -> Picture:
    me = Submitter(ME, "serve", 1000)
    presence = Presence(me, seconds(0), gone=False, gone_for=seconds(0), version=1)
    lease = Seen(SubmitLease(holder), NOW, NOW)
    return Picture(ledger, lease, {ME: presence}, census or Census(), NOW)


def counts(shown: Picture, *, shared: bool = False) -> dict[str, int]:
    found = tally(shown, Policy(), TIMINGS, shared=shared)
    return {reason.value: count for reason, count in found.waiting.items() if count}


def test_searches_that_wait_are_counted_by_what_keeps_them() -> None:
    full = reserved(queued(new_ledger(ceiling=1), "s1", "s2", "s3", "s4"), "s1")
    parked = msgspec.structs.replace(full.tickets["s2"], parked_by="ada")
    orphan = msgspec.structs.replace(full.tickets["s3"], submitter="dead")
    full = msgspec.structs.replace(full, tickets={**full.tickets, "s2": parked, "s3": orphan})
    free = queued(new_ledger(ceiling=1), "s1", "s2")

    assert counts(picture(full)) == {"parked": 1, "submitter": 1, "capacity": 1}
    assert counts(picture(queued(new_ledger(ceiling=0), "s1"))) == {"drained": 1}
    assert counts(picture(free, holder="blastyard-x-1")) == {"submit_slot": 2}
    assert counts(picture(free)) == {"turn": 2}
    assert counts(picture(msgspec.structs.replace(free, restored=()))) == {"restoring": 2}


def test_the_census_is_counted_apart_from_the_holds() -> None:
    ledger = reserved(queued(new_ledger(ceiling=3), "ours"), "ours")
    ledger = msgspec.structs.replace(ledger, lone={"ghost": NOW - TIMINGS.forgotten})
    jobs = [
        _job("ours", "finalizer"),
        _job("theirs", "finalizer"),
        _job("theirs", "blast"),
        _job("ghost", "finalizer"),
    ]

    found = tally(picture(ledger, take(jobs)), Policy(), TIMINGS, shared=True)

    assert (found.seen, found.foreign, found.phantoms, found.occupied) == (3, 1, 1, 2)
    assert found.holds == {HoldState.RESERVED: 1, HoldState.SUBMITTED: 0}


def _job(search: str, app: str) -> SeenJob:
    return SeenJob(f"{app}-{search}", f"uid-{app}-{search}", app, search, NOW, is_live=True)


def test_gauges_are_read_when_somebody_looks_and_change_nothing() -> None:
    yard, script, meter = Yard(), Script(), Meter(new_registry())
    gate = watched(yard, meter, plan=script)
    gate.publish([wish("s1")])
    meter.follow(Followed(gate, Policy(ceiling=1), lambda: 4))
    before = script.swaps

    counted = values(meter.registry.exposition())

    assert counted["blastyard_admission_readable"] == 1
    assert counted['blastyard_waiting_searches{reason="turn"}'] == 1
    assert counted['blastyard_waiting_searches{reason="capacity"}'] == 0
    assert counted["blastyard_ceiling"] == 1
    assert counted["blastyard_watch_restarts_total"] == 4
    assert script.swaps == before


def test_totals_are_there_when_no_gauge_can_be_read_any_more() -> None:
    def closed() -> list[Reading]:
        raise AssertionError("the store is closed")

    registry = new_registry()
    registry.follow(closed)

    assert "blastyard_grants" in {each.name for each in registry.totals()}


def test_documents_that_cannot_be_read_leave_the_counters_readable() -> None:
    yard, script, meter = Yard(), Script(), Meter(new_registry())
    gate = watched(yard, meter, plan=script)
    gate.publish([wish("s1")])
    meter.follow(Followed(gate, Policy(ceiling=1)))
    yard.write("ledger", b"{")

    counted = values(meter.registry.exposition())

    assert counted["blastyard_admission_readable"] == 0
    assert "blastyard_ceiling" not in counted
    assert counted['blastyard_grants_total{kind="new"}'] == 0


def test_the_whole_text_is_understood_by_prometheus_own_parser() -> None:
    yard, meter = Yard(), Meter(new_registry())
    meter.follow(Followed(watched(yard, meter), Policy(ceiling=1), lambda: 0))
    meter.called("get", "leases", 200, 0.01)
    CountedMarkers(NoMarkers(), meter.registry).drop("s1")

    families = list(text_string_to_metric_families(meter.registry.exposition().decode()))

    named = {each.name: each.type for each in families}
    assert named == {each.name.removesuffix("_total"): each.kind.value for each in table.ALL}


# -- who counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["command", "test"])
def test_whoever_only_visits_counts_nothing(kind: str) -> None:
    settings = Settings(metrics_file="/nowhere/x.prom", log_format="json")

    assert instruments_of(settings, Submitter("x-1", kind, 1000)) is SILENT


def test_a_service_counts_and_leaves_no_file(tmp_path: Path) -> None:
    settings = Settings(metrics_file=str(tmp_path / "x.prom"))

    instruments = instruments_of(settings, Submitter("serve-1", "serve", 1000))
    instruments.close()

    assert b"blastyard_grants_total" in instruments.exposition()
    assert list(tmp_path.iterdir()) == []


def test_a_command_counts_only_when_it_has_somewhere_to_leave_it() -> None:
    assert instruments_of(Settings(), Submitter("exec-1", "exec", 1000)) is SILENT


@pytest.mark.parametrize("value", ["metrics.prom", "/var/metrics.txt"])
def test_a_file_that_no_collector_would_read_is_refused(value: str) -> None:
    with pytest.raises(Misconfigured, match=r"absolute path that ends in \.prom"):
        read_settings({"BLASTYARD_METRICS_FILE": value})
