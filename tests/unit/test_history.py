"""The judge of recordings: a clean history passes, and each planted violation is found."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from history_stage import Story

from blastyard.testing.recorded.__main__ import main
from blastyard.testing.recorded.deed import GAP, Change, changes_of, read_deeds
from blastyard.testing.recorded.verdict import check_recording


@pytest.fixture
def story() -> Story:
    return Story()


def clean(story: Story) -> None:
    """Three of ours and a foreign one in turn, and one that came past Gate A, at a ceiling of 3."""
    for name in ("s1", "s2", "s3"):
        story.ticket(name)
    first, second = story.admit("s1"), story.admit("s2")
    peer = story.foreign("f1")
    story.end("s1", first)
    third = story.admit("s3")
    rude = story.foreign("r1", gate=False)
    story.end("s2", second)
    story.foreign_end("f1", peer)
    story.foreign_end("r1", rude)
    story.end("s3", third)


def test_a_clean_history_passes(story: Story) -> None:
    clean(story)
    verdict = story.verdict()
    assert verdict.violations == ()
    assert verdict.is_clean
    assert verdict.is_whole
    expected = {
        "admissions": 3,
        "foreign admissions": 1,
        "most at once": 3,
        "releases": 4,
        "made past Gate A": 2,
        "submissions": 5,
        "accepted": 5,
        "ended": 5,
    }
    assert expected.items() <= verdict.counts.items()


# -- Gate A ------------------------------------------------------------------------------------


def test_commands_that_interleave_are_found(story: Story) -> None:
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    story.say("submitting", "s1", holder=holder, ids=["s1"])
    story.say("submitting", "f1", "dash", holder="dash-f1", ids=["f1"])
    story.say("submitted", "s1", holder=holder, ids=["s1"])
    story.say("ended", "s1")
    assert "overlap" in story.rules()


def test_a_command_that_died_with_its_process_overlaps_with_nobody(story: Story) -> None:
    story.say("submitting", "s1", holder="blastyard-s1-1")
    story.say("died", "", "serve-1")
    story.say("submitting", "f1", "dash", holder="dash-f1")
    assert "overlap" not in story.rules()


def test_a_job_made_while_somebody_else_is_inside_is_found(story: Story) -> None:
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    story.say("submitting", "s1", holder=holder, ids=["s1"])
    story.wait(31)
    story.lease("blastyard-s2-1")
    story.wait(11)
    story.job("submit", "s1")
    story.say("submitted", "s1", holder=holder, ids=["s1"])
    story.say("ended", "s1")
    assert story.rules() == ["written outside its turn"]


def test_one_write_that_was_in_flight_may_land_after_a_takeover_and_no_second(
    story: Story,
) -> None:
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    story.say("submitting", "s1", holder=holder, ids=["s1"])
    story.say("died", "", "serve-1")
    story.wait(31)
    story.lease("blastyard-s2-1")
    story.job("submit", "s1")
    story.say("ended", "s1")
    verdict = story.verdict()
    assert (verdict.violations, verdict.counts["late writes"]) == ((), 1)
    story.job("submit", "s1")
    assert story.rules() == ["written outside its turn"]


def test_a_finalizer_that_names_another_holder_is_found(story: Story) -> None:
    story.lease("blastyard-s2-1")
    story.job("finalizer", "s1", marker=True, holder="blastyard-s1-1")
    assert story.rules() == ["written outside its turn"]


def test_jobs_that_a_submit_job_makes_in_its_own_time_are_no_violation(story: Story) -> None:
    story.ticket("s1")
    made = story.admit("s1")
    late = story.job("blast", "s1")
    story.end("s1", [*made, late])
    assert story.rules() == []


@pytest.mark.parametrize(("waited", "found"), [(20, ["taken over too early"]), (31, [])])
def test_a_blastyard_takes_over_after_its_time_only(
    story: Story, waited: int, found: list[str]
) -> None:
    story.lease("blastyard-s1-1")
    story.wait(waited)
    story.lease("blastyard-s2-1")
    assert story.rules() == found


@pytest.mark.parametrize(
    ("waited", "ahead", "found"),
    [
        (31, 0, ["taken over too early"]),
        (931, 0, []),
        (880, 0, ["taken over too early"]),
        (880, 61, []),
    ],
)
def test_a_foreign_holder_is_given_what_its_record_says(
    story: Story, waited: int, ahead: int, found: list[str]
) -> None:
    story.lease("blastyard-s1-1")
    story.wait(waited)
    story.lease("dash-f1")
    assert story.rules(peers_ahead=ahead) == found


def test_a_foreign_holder_with_a_short_record_is_not_given_more(story: Story) -> None:
    story.lease("dash-f1", seconds=15)
    story.wait(46)
    story.lease("blastyard-s1-1")
    assert story.rules() == []


def test_a_lease_that_its_holder_did_not_clear_is_found(story: Story) -> None:
    story.enter("s1")
    story.lease("")
    assert story.rules() == ["cleared by somebody else"]


def test_a_release_of_somebody_elses_turn_is_found(story: Story) -> None:
    story.lease("blastyard-s2-1")
    story.say("releasing", "s2", holder="blastyard-s2-1")
    story.say("released", "s1", holder="blastyard-s1-1", version=story.lease(""))
    assert story.rules() == ["released without a hold"]


def test_a_claim_that_the_lease_does_not_show_is_found(story: Story) -> None:
    version = story.lease("blastyard-s2-1")
    story.say("acquired", "s1", holder="blastyard-s1-1", version=version)
    assert story.rules() == ["acquired without the lease"]


# -- searches ----------------------------------------------------------------------------------


def test_a_search_that_never_ends_is_lost(story: Story) -> None:
    story.ticket("s1")
    story.admit("s1")
    assert story.rules() == ["lost"]


def test_a_search_that_is_submitted_beside_itself_is_doubled(story: Story) -> None:
    story.ticket("s1")
    made = story.admit("s1")
    holder = story.enter("s1")
    made += story.make("s1", holder)
    story.leave("s1", holder)
    story.end("s1", made)
    assert story.rules() == ["doubled"]


def test_a_search_under_two_ids_is_doubled(story: Story) -> None:
    for name in ("job-1", "job-2"):
        holder = f"dash-{name}"
        story.lease(holder)
        story.say("submitting", "f1", "dash", holder=holder, ids=[name])
        story.job("finalizer", name)
        story.say("submitted", "f1", "dash", holder=holder, ids=[name])
        story.say("releasing", "f1", "dash", holder=holder)
        story.lease("")
    assert story.rules() == ["doubled"]


def test_a_command_may_submit_several_searches(story: Story) -> None:
    story.lease("dash-1")
    story.say("submitting", "f1", "dash", holder="dash-1", ids=["job-1", "job-2"])
    story.job("finalizer", "job-1")
    story.job("finalizer", "job-2")
    assert "doubled" not in story.rules()


def test_a_search_that_is_run_again_after_it_completed_is_doubled(story: Story) -> None:
    story.ticket("s1")
    story.end("s1", story.admit("s1"))
    story.ticket("s1")
    story.end("s1", story.admit("s1"))
    assert "doubled" in story.rules()


def test_a_submission_that_failed_and_was_deleted_may_be_made_anew(story: Story) -> None:
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    for title in story.make("s1", holder):
        story.delete(title)
    made = story.make("s1", holder)
    story.leave("s1", holder)
    story.end("s1", made)
    assert story.rules() == []


def test_a_search_that_is_submitted_after_its_end_is_found(story: Story) -> None:
    story.ticket("s1")
    story.say("ended", "s1", outcome="cancelled")
    story.admit("s1")
    assert "submitted after its end" in story.rules()


# -- recordings --------------------------------------------------------------------------------


def written(story: Story, folder: Path) -> Path:
    for change in story.changes:
        with (folder / f"{change.kind}.changes.jsonl").open("a") as file:
            file.write(change.line())
    with (folder / "one.deeds.jsonl").open("w") as file:
        file.write("what a process may print besides\n")
        for deed in story.deeds:
            line = {**asdict(deed), **deed.more}
            line.pop("more")
            file.write(json.dumps(line) + "\n")
    return folder


def test_a_recording_is_read_back_in_the_servers_order(story: Story, tmp_path: Path) -> None:
    clean(story)
    folder = written(story, tmp_path)
    assert list(changes_of(folder)) == story.changes
    assert check_recording(folder, "lab") == story.verdict()
    assert main([str(folder), "--namespace", "lab"]) == 0


def test_the_command_says_what_was_found(
    story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story.ticket("s1")
    assert main([str(written(story, tmp_path)), "--namespace", "lab"]) == 1
    assert "lost at 1800000001.100: s1" in capsys.readouterr().out


def test_what_happened_in_a_gap_is_not_judged_and_the_gap_is_told(
    story: Story, tmp_path: Path
) -> None:
    story.enter("s1")
    story.gap()
    story.lease("blastyard-s2-1")
    story.changes[-1] = type(story.changes[-1])(**{**asdict(story.changes[-1]), "bridged": True})
    verdict = story.verdict()
    assert verdict.is_clean
    assert not verdict.is_whole
    assert main([str(written(story, tmp_path)), "--namespace", "lab"]) == 2


def test_a_gap_is_a_line_without_an_object_whatever_its_kind(story: Story) -> None:
    story.enter("s1")
    last = story.changes[-1]
    for kind in ("Job", "ConfigMap", "Lease"):
        story.changes.append(Change(last.version + 1, last.at, GAP, kind, "", {}))
    assert story.verdict().counts["gaps"] == 3


def test_lines_that_are_no_deeds_are_passed_over() -> None:
    lines = ["", "text", "[1]", '{"at": 1}', '{"at":1,"who":"a","what":"b","search":"c","x":2}']
    assert [(deed.who, deed.more) for deed in read_deeds(lines)] == [("a", {"x": 2})]
