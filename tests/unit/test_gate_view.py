"""What an operator is shown of the gates, and when a waiting search may start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from admission_stage import ME, NOW, TIMINGS, new_ledger, queued, reserved, seconds, wish

from blastyard.admission.census import UNLABELLED, Marker, MarkerKind, SeenJob, take
from blastyard.admission.hold import Submission, confirm
from blastyard.admission.lease import Seen, SubmitLease, format_time
from blastyard.admission.ledger import Courtesy, Fence, Ledger, Policy, Submitter
from blastyard.admission.picture import Picture
from blastyard.admission.roster import Presence
from blastyard.cli.gate_change import changes, lasting
from blastyard.cli.gate_status import lines
from blastyard.service.estimate import Slots, starts
from blastyard.service.gate_view import Outside, Where, gate_shape
from blastyard.service.view import Shape

WHERE = Where("lab")
FREE = SubmitLease()
LIFETIMES = tuple(seconds(number) for number in (100, 200, 300))


def presence(name: str = ME, silent: float = 1.0) -> Presence:
    submitter = Submitter(name, "serve", 0, label=f"serve of {name}")
    return Presence(submitter, seconds(silent), gone=False, gone_for=timedelta(0), version=1)


def job(app: str, search: str | None, marker: Marker | None = None, at: datetime = NOW) -> SeenJob:
    name = f"{app}-{search}-{'m' if marker else 'j'}"
    labels = {"app": app} | ({"elb-job-id": search} if search else {})
    return SeenJob(name, f"uid-{name}", app, search, at, True, marker, labels=labels)


def shape_of(
    ledger: Ledger | None,
    jobs: Iterable[SeenJob] = (),
    *,
    lease: SubmitLease = FREE,
    submitters: Sequence[Presence] = (presence(),),
    now: datetime = NOW,
    lifetimes: tuple[timedelta, ...] = (),
    where: Where | None = WHERE,
) -> Shape:
    """What is shown of these documents; the lease was written a second ago."""
    present = {each.submitter.name: each for each in submitters}
    seen = Seen(lease, now - seconds(1), now)
    picture = Picture(ledger, seen, present, take(jobs), now)
    view = picture.view(Policy(ceiling=3), TIMINGS)
    return gate_shape(view, seen, TIMINGS, Outside(where, lifetimes=lifetimes))


def submitted(ledger: Ledger, search: str, alias: str | None = None) -> Ledger:
    """``ledger`` after ``search`` was submitted; the cluster shows when it ends."""
    after = reserved(ledger, search)
    fence = Fence(after.uid, after.holds[search].fence)
    confirmed = confirm(after, search, fence, NOW, Submission(alias))
    assert isinstance(confirmed, Ledger)
    return confirmed


def one(shapes: Sequence[Shape]) -> Shape:
    [found] = shapes
    return found


# -- what occupies a slot --------------------------------------------------------------------------


def test_a_search_is_told_by_the_id_it_has_in_the_cluster() -> None:
    ledger = submitted(queued(new_ledger(), "search-1"), "search-1", alias="job-9")

    shape = shape_of(ledger, [job("finalizer", "job-9"), job("blast", "job-9")])

    running = one(shape["running"])
    assert (running["search"], running["id"], running["seen"]) == ("search-1", "job-9", True)
    assert shape["foreign"] == []
    assert shape["occupied"] == 1


def test_the_marker_that_peers_count_by_is_named_and_what_is_missing_of_it() -> None:
    ledger = reserved(queued(new_ledger(), "search-1"), "search-1")
    stand_in = Marker(MarkerKind.STAND_IN, "search-1")
    both = [job("finalizer", "r-search-1", stand_in), job("submit", "r-search-1", stand_in)]

    none, half, whole = (
        one(shape_of(ledger, jobs)["running"])["marker"] for jobs in ([], both[:1], both)
    )

    assert none == {"needed": "stand-in", "up": [], "complete": False}
    assert half == {"needed": "stand-in", "up": ["stand-in"], "complete": False}
    assert whole == {"needed": "stand-in", "up": ["stand-in"], "complete": True}


def test_what_has_ended_is_said_to_have_though_it_still_stands_in_the_ledger() -> None:
    ledger = submitted(queued(new_ledger(1), "search-1", "search-2"), "search-1")

    fresh = shape_of(ledger)
    later = shape_of(ledger, now=NOW + TIMINGS.settle)

    assert (one(fresh["running"])["ended"], one(later["running"])["ended"]) == (False, True)
    assert (fresh["occupied"], later["occupied"]) == (1, 0)
    assert fresh["waiting"][0]["reason"] == "1 of at most 1 are running"
    assert later["waiting"][0]["reason"] == "its turn is about to come"


def test_a_foreign_search_is_shown_with_its_labels_and_counts() -> None:
    jobs = [job("finalizer", "theirs"), job("blast", "theirs"), job("submit", None)]
    ledger = queued(new_ledger(2), "search-1")

    shape = shape_of(ledger, jobs)

    found = {each["id"]: each for each in shape["foreign"]}
    assert found["theirs"]["labels"] == {"app": "finalizer", "elb-job-id": "theirs"}
    assert (found[UNLABELLED]["finalizer"], found[UNLABELLED]["companions"]) == (False, True)
    assert one(shape["waiting"])["reason"] == (
        "2 of at most 2 are running, 2 of them started by other programs"
    )


def test_a_lone_finalizer_counts_until_two_hours_have_passed_and_is_a_phantom_then() -> None:
    alone = [job("finalizer", "alone", at=NOW - seconds(900))]
    known = msgspec.structs.replace(new_ledger(), lone={"alone": NOW - seconds(600)})

    unknown = one(shape_of(new_ledger(), alone)["lone"])
    counted = one(shape_of(known, alone)["lone"])
    phantom = shape_of(known, alone, now=NOW + TIMINGS.forgotten)

    assert (unknown["counted"], unknown["counted_until"]) == (True, None)
    assert counted["counted_until"] == "2024-05-06T08:58:09.000Z"
    assert counted["remove"] == "kubectl -n lab delete job finalizer-alone-j"
    assert (one(phantom["lone"])["counted"], phantom["occupied"]) == (False, 0)
    assert "no: a phantom" in "\n".join(lines(phantom))


def test_a_finalizer_without_a_label_is_removed_by_its_name() -> None:
    assert one(shape_of(new_ledger(), [job("finalizer", None)])["lone"])["remove"].endswith(
        "delete job finalizer-None-j"
    )


@pytest.mark.parametrize(
    ("where", "command"),
    [
        (Where("lab", "kind"), "kubectl -n lab delete jobs -l elb-job-id=x"),
        (Where("lab", "kind", True), "kubectl --context kind -n lab delete jobs -l elb-job-id=x"),
    ],
)
def test_a_context_is_named_where_kubectl_would_take_another(where: Where, command: str) -> None:
    assert where.deletes("x") == command


def test_jobs_without_an_id_are_deleted_by_the_lack_of_it() -> None:
    assert WHERE.deletes(UNLABELLED) == (
        "kubectl -n lab delete jobs -l 'app in (blast,submit),!elb-job-id'"
    )


# -- the submit lease ------------------------------------------------------------------------------


def held(holder: str, renewed: datetime | str | None = NOW, lasts: int | None = 900) -> SubmitLease:
    text = format_time(renewed) if isinstance(renewed, datetime) else renewed
    return SubmitLease(holder, lasts, format_time(NOW), text)


def slot_of(lease: SubmitLease) -> Mapping[str, Any]:
    slot: Mapping[str, Any] = shape_of(new_ledger(), lease=lease)["submit_slot"]
    return slot


def test_a_foreign_holder_lasts_as_long_as_its_own_record_says() -> None:
    slot = slot_of(held("dashboard-1", lasts=60))

    assert (slot["kind"], slot["until"]) == ("foreign", "2024-05-06T07:09:39.000Z")
    assert slot["rule"] == "its renewTime, the 60 s that it says, and 30 s for clocks that differ"


def test_a_record_without_a_duration_is_given_ours() -> None:
    slot = slot_of(held("dashboard-1", lasts=None))

    assert slot["until"] == "2024-05-06T07:23:39.000Z"
    assert "900 s, as it says no duration" in slot["rule"]


def test_a_blastyard_holder_lasts_until_it_has_been_silent_for_the_takeover() -> None:
    slot = slot_of(held("blastyard-search-1-1"))

    assert (slot["kind"], slot["until"]) == ("blastyard", "2024-05-06T07:08:38.000Z")
    assert "silent for 30 s" in slot["rule"]


def test_a_holder_whose_time_cannot_be_read_is_shown_with_a_note_and_without_an_end() -> None:
    slot = slot_of(held("dashboard-1", "yesterday"))
    text = lines(shape_of(new_ledger(), lease=held("dashboard-1", "yesterday")))

    assert (slot["holder"], slot["until"]) == ("dashboard-1", None)
    assert "'yesterday' cannot be read" in slot["note"]
    assert any("its holder lets it go" in line for line in text)


def test_who_has_lost_the_slot_is_named_though_it_is_free() -> None:
    slot = slot_of(held("dashboard-1", NOW - seconds(2000)))

    assert (slot["holder"], slot["left_by"]) == (None, "dashboard-1")
    assert "dashboard-1 has lost it" in "\n".join(
        lines(shape_of(new_ledger(), lease=held("dashboard-1", NOW - seconds(2000))))
    )


# -- who waits -------------------------------------------------------------------------------------


def reasons(shape: Shape) -> list[str]:
    return [each["reason"] for each in shape["waiting"]]


def test_each_that_waits_is_told_how_many_are_ahead_of_it() -> None:
    ledger = queued(new_ledger(), "search-1", "search-2", "search-3")

    assert reasons(shape_of(ledger)) == [
        "its turn is about to come",
        "1 ahead of it may claim the free slot first",
        "2 ahead of it may claim the free slot first",
    ]
    assert set(reasons(shape_of(ledger, lease=held("dashboard-1")))) == {
        "dashboard-1 is submitting"
    }


def test_a_slot_that_is_left_to_others_is_said_to_be() -> None:
    ledger = queued(new_ledger(1), "search-1")
    owed = Courtesy(owed_at=NOW - seconds(9), slot_at=NOW - seconds(5))
    used = Courtesy(used_since=NOW - seconds(700), used_at=NOW - seconds(5))

    slot = shape_of(msgspec.structs.replace(ledger, courtesy=owed))
    pause = shape_of(msgspec.structs.replace(ledger, courtesy=used))

    assert reasons(slot) == [
        "the free slot is left to a program that was denied, until 07:08:49 UTC"
    ]
    assert one(slot["waiting"])["phase"] == "waiting_for_capacity"
    assert reasons(pause) == ["the submit slot is left to programs that poll, until 07:08:49 UTC"]
    assert one(pause["waiting"])["phase"] == "waiting_for_submit_slot"
    assert slot["courtesy"]["slot_until"] == "2024-05-06T07:08:49.000Z"


def test_a_ceiling_of_zero_is_said_to_be_drained() -> None:
    shape = shape_of(queued(new_ledger(0), "search-1"))

    assert reasons(shape) == ["the ceiling is 0: an operator has drained the queue"]
    assert any("drained" in line for line in lines(shape)[:2])


def test_whoever_has_not_brought_back_its_claims_is_waited_for_by_name() -> None:
    restoring = msgspec.structs.replace(queued(new_ledger(), "search-1"), restored=("serve-2",))

    shape = shape_of(restoring, submitters=[presence(), presence("serve-2")])

    assert (shape["ledger"], shape["waited_for"]) == ("restoring", [f"serve of {ME}"])
    assert reasons(shape) == ["the ledger was lost; claims are being collected"]


def test_without_a_ledger_the_policy_is_the_one_it_would_begin_with() -> None:
    shape = shape_of(None, [job("finalizer", "theirs"), job("blast", "theirs")])

    assert (shape["ledger"], shape["ceiling"], shape["whole"]) == ("absent", 3, False)
    assert (shape["occupied"], one(shape["foreign"])["counted"]) == (1, True)


# -- when it starts --------------------------------------------------------------------------------


def at(*started: float) -> dict[str, datetime]:
    return {f"w{number}": NOW + seconds(each) for number, each in enumerate(started, start=1)}


@pytest.mark.parametrize(
    ("ceiling", "ages", "expected"),
    [
        (2, [], at(0, 0, 200)),  # two free slots, then one after the median
        (1, [50], at(150, 350, 550)),  # 200 is the median of those that lasted more than 50
        (2, [50, 150], at(100, 150, 300)),  # 250 is the median of those above 150
        (1, [300], {}),  # none lasted so long: nothing is known of its end
        (2, [300, 50], at(150, 350, 550)),  # but of the other slot
        (1, [50, 150], at(150, 350, 550)),  # more run than may: the first end makes no room
        (0, [], {}),
        (0, [50], {}),
    ],
)
def test_a_start_is_guessed_from_the_median_of_those_that_lasted_longer(
    ceiling: int, ages: Sequence[float], expected: Mapping[str, datetime]
) -> None:
    slots = Slots(ceiling, [NOW - seconds(age) for age in ages], NOW)

    assert starts(["w1", "w2", "w3"], slots, LIFETIMES) == expected


def test_nothing_is_guessed_from_two_searches() -> None:
    assert starts(["w1"], Slots(3, [], NOW), LIFETIMES[:2]) == {}


def test_who_cannot_go_has_no_estimated_start_and_holds_nobody_up() -> None:
    ledger = queued(new_ledger(1), "search-1", wish("search-2", "bob"), submitter=ME)
    parked = msgspec.structs.replace(
        ledger,
        tickets={
            **ledger.tickets,
            "search-1": msgspec.structs.replace(ledger.tickets["search-1"], parked_by="olga"),
        },
    )

    shape = shape_of(parked, lifetimes=LIFETIMES)

    found = {each["search"]: each["estimated_start"] for each in shape["waiting"]}
    assert found == {"search-1": None, "search-2": "2024-05-06T07:08:09.000Z"}
    assert shape["estimate"] == {"searches": 3, "median_seconds": 200.0}


# -- on one machine --------------------------------------------------------------------------------


def test_one_machine_has_the_same_shape_with_nothing_foreign_in_it() -> None:
    ledger = reserved(queued(new_ledger(1), "search-1", "search-2"), "search-1")

    machine = shape_of(ledger, where=None)
    cluster = shape_of(ledger)

    assert machine.keys() == cluster.keys()
    assert machine["running"][0].keys() == cluster["running"][0].keys()
    assert machine["waiting"] == cluster["waiting"]
    assert (machine["namespace"], machine["foreign"], machine["lone"]) == (None, [], [])
    assert machine["running"][0]["marker"] is None


# -- what happened ---------------------------------------------------------------------------------


def test_nothing_happens_while_only_time_passes() -> None:
    ledger = reserved(queued(new_ledger(1), "search-1", "search-2"), "search-1")
    before = shape_of(ledger, lease=held("blastyard-x-1"), lifetimes=LIFETIMES)
    after = shape_of(
        ledger,
        lease=held("blastyard-x-1", NOW + seconds(3)),
        lifetimes=LIFETIMES,
        now=NOW + seconds(3),
        submitters=[presence(silent=4.0)],
    )

    assert before != after
    assert lasting(before) == lasting(after)
    assert changes(before, after) == []


def test_each_thing_that_happens_is_told_in_a_sentence() -> None:
    first = queued(new_ledger(2), "search-1", "search-2")
    second = submitted(first, "search-1")
    third = msgspec.structs.replace(second, holds={})
    theirs = [job("finalizer", "theirs"), job("blast", "theirs")]

    began = changes(shape_of(first), shape_of(second, theirs, lease=held("dashboard-1")))
    ended = changes(
        shape_of(second, theirs, lease=held("dashboard-1")), shape_of(third, submitters=[])
    )

    assert began == [
        "dashboard-1 is inside the submit slot",
        "search-1 of ada has a run slot (submitted, fence 101)",
        "theirs is seen running, started by another program",
    ]
    assert ended == [
        "the submit slot is free",
        "search-1 has no run slot any more",
        "search-2 waits: no live process looks after it",
        "theirs is seen no more",
        f"serve of {ME} has signed off",
    ]


def test_a_search_that_goes_on_without_its_hold_is_not_called_another_programs() -> None:
    ledger = submitted(queued(new_ledger(), "search-1"), "search-1")
    jobs = [job("finalizer", "search-1"), job("blast", "search-1")]
    without = msgspec.structs.replace(ledger, holds={})

    assert changes(shape_of(ledger, jobs), shape_of(without, jobs)) == [
        "search-1 has no run slot any more",
        "search-1 is still seen running",
    ]
    assert changes(shape_of(without, jobs), shape_of(ledger, jobs)) == [
        "search-1 of ada has a run slot (submitted, fence 101)"
    ]
