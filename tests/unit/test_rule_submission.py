"""What a submit command left in the cluster."""

from __future__ import annotations

from admission_stage import NOW, new_ledger, seconds
from hypothesis import given
from hypothesis import strategies as st
from shared_stage import census, held, job, marks, merging, running

from blastyard.admission.census import UNLABELLED, occupied
from blastyard.admission.hold import Submission, confirm
from blastyard.admission.ledger import Fence, HoldState, Ledger
from blastyard.admission.submission import made

LATER = NOW + seconds(2)
LEDGER = held(held(new_ledger(), "s1", state=HoldState.RESERVED), "s0", alias="job-0", watched=True)
HOLDS = LEDGER.holds
BEFORE = census(running("job-0", "foreign"))


def test_a_command_that_took_the_id_it_was_given_made_that() -> None:
    after = census(running("job-0", "foreign", "s1"))

    assert made("s1", BEFORE, after, HOLDS) == Submission()


def test_a_command_that_minted_an_id_of_its_own_made_what_appeared() -> None:
    after = census([*running("job-0", "foreign"), *running("job-1", at=LATER)])

    assert made("s1", BEFORE, after, HOLDS) == Submission("job-1")


def test_a_command_that_made_several_has_the_first_and_names_the_others() -> None:
    jobs = [*running("b", at=LATER), *running("a", at=LATER + seconds(1)), *running("c", at=NOW)]

    assert made("s1", BEFORE, census(jobs), HOLDS) == Submission("c", ("b", "a"))
    given_id = census([*jobs, *running("s1")])
    assert made("s1", BEFORE, given_id, HOLDS) == Submission(None, ("c", "b", "a"))


def test_what_was_there_before_or_belongs_to_another_hold_is_not_its_work() -> None:
    """Fault B1."""
    assert made("s1", BEFORE, BEFORE, HOLDS) is None
    assert made("s1", census(), census(running("job-0")), HOLDS) is None
    assert made("s1", census(), census(running("s0")), HOLDS) is None


def test_markers_are_nobody_s_work() -> None:
    """Clause: our census ignores markers."""
    after = census([*running("job-0", "foreign"), *marks("s1", HOLDS["s1"])])

    assert made("s1", BEFORE, after, HOLDS) is None


def test_jobs_without_an_id_are_its_work_only_when_nothing_else_appeared() -> None:
    """The upstream command: no id, and one search in a namespace."""
    blank = [job(None, "blast", LATER), job(None, "submit", LATER)]

    assert made("s1", BEFORE, census(blank), HOLDS) == Submission(UNLABELLED)
    both = census([*blank, *running("job-1", at=LATER)])
    assert made("s1", BEFORE, both, HOLDS) == Submission("job-1")
    assert made("s1", census(blank), census(blank), HOLDS) is None


def test_a_search_that_has_ended_already_was_complete() -> None:
    assert made("s1", BEFORE, census([job("s1", live=False)]), HOLDS) == Submission()


def test_that_an_earlier_search_of_the_same_id_has_ended_says_nothing_of_this_one() -> None:
    """Fault R1."""
    before = census(running("foreign"), finished={"s1"})

    assert made("s1", before, census(running("foreign"), finished={"s1"}), HOLDS) is None
    assert made("s1", before, census(merging("s1"), finished={"s1"}), HOLDS) == Submission()


NAMES = st.sets(st.sampled_from(("s1", "s0", "job-0", "x", "y", "z")))


@given(there=NAMES, appeared=NAMES)
def test_confirmed_as_it_was_seen_a_submission_leaves_nothing_uncovered(
    there: set[str], appeared: set[str]
) -> None:
    """Fault B8: nothing of it counts twice, and nothing is claimed that was there before."""
    before, after = census(running(*there)), census(running(*there, *appeared))

    submission = made("s1", before, after, HOLDS)

    claimed = {submission.alias or "s1", *submission.others} if submission else set()
    assert not (claimed - {"s1"}) & (there | {"s0", "job-0"})
    if submission is None:
        assert "s1" not in there | appeared
        return
    confirmed = confirm(
        LEDGER, "s1", Fence(LEDGER.uid, LEDGER.holds["s1"].fence), LATER, submission
    )
    assert isinstance(confirmed, Ledger)
    foreign = there - {"s1", "s0", "job-0"}
    names = set(confirmed.holds)
    assert occupied(confirmed.holds, after) == names | foreign
    assert len(confirmed.holds) == 2 + len(submission.others)
