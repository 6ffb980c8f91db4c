"""The suite that every engine must pass to which searches are handed over.

A test module subclasses :class:`RemoteContract` and gives it a fixture ``rig``.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import pytest

from blastyard.domain.errors import Failure
from blastyard.engine.remote import (
    Absent,
    AtWork,
    Broken,
    Collected,
    Errand,
    NoAnswer,
    Over,
    Partial,
    RemoteEngine,
    Retryable,
    Submission,
    Submitted,
)
from blastyard.testing.remote_engine import Makes

SECONDS = 30.0


class RemoteRig(Protocol):
    """An engine, and the means to make what it handed over end."""

    engine: RemoteEngine
    other: RemoteEngine
    """That of another process of the installation."""

    def errand(self, search_id: str, attempt: int = 1) -> Errand:
        """A search with a query of its own."""
        ...

    def makes(self, what: Makes, *, waits: bool = False) -> None:
        """What commands make from now on; ``PART`` and ``NOTHING`` end with a wish to be tried
        again. With ``waits`` they make it and do not end by themselves."""
        ...

    def made(self, errand: Errand) -> None:
        """Wait until a command that does not end has made what it makes."""
        ...

    def finish(self, name: str) -> None:
        """All of it ends well, and the results are there."""
        ...

    def fail(self, name: str) -> None:
        """A part of it fails for good."""
        ...


def begun(rig: RemoteRig, errand: Errand) -> Submission:
    """Its submit command, which runs."""
    return rig.engine.prepare(errand).start(None)


def submitted(rig: RemoteRig, errand: Errand) -> object:
    """What came of its submit command."""
    submission = begun(rig, errand)
    try:
        assert submission.wait(SECONDS) is not None
        return submission.outcome()
    finally:
        submission.close()


class RemoteContract:
    """What :mod:`blastyard.engine.remote` promises."""

    @pytest.fixture
    def rig(self) -> RemoteRig:
        """The engine under test; a subclass provides it."""
        raise NotImplementedError

    def test_an_attempt_has_a_name_and_no_other_has_it(self, rig: RemoteRig) -> None:
        names = [rig.engine.name(search, number) for search in ("one", "two") for number in (1, 2)]

        assert len(set(names)) == 4
        assert rig.other.name("one", 2) == names[1]

    def test_nothing_carries_a_name_before_it_is_submitted(self, rig: RemoteRig) -> None:
        errand = rig.errand("one")
        rig.engine.prepare(errand)

        assert rig.engine.look(errand.name) == Absent()
        assert rig.other.left(errand) == Absent()

    def test_what_is_submitted_is_at_work_for_everybody(self, rig: RemoteRig) -> None:
        errand = rig.errand("one")

        assert isinstance(submitted(rig, errand), Submitted)
        for engine in (rig.engine, rig.other):
            assert isinstance(engine.look(errand.name), AtWork)
            assert isinstance(engine.poll(errand.name), AtWork)
            assert isinstance(engine.left(errand), AtWork)

    def test_what_was_made_in_part_is_not_complete_for_anybody(self, rig: RemoteRig) -> None:
        rig.makes(Makes.PART)
        errand = rig.errand("one")

        assert isinstance(submitted(rig, errand), Retryable)
        assert isinstance(rig.engine.look(errand.name), Partial)
        assert isinstance(rig.other.left(errand), Partial)

    @pytest.mark.parametrize("makes", list(Makes))
    def test_what_a_command_made_that_was_ended_is_never_adopted(
        self, rig: RemoteRig, makes: Makes
    ) -> None:
        """Fault R1."""
        rig.makes(makes, waits=True)
        errand = rig.errand("one")
        submission = begun(rig, errand)
        rig.made(errand)
        submission.end()
        assert submission.wait(SECONDS) is not None

        assert isinstance(submission.outcome(), NoAnswer)
        submission.close()
        for engine in (rig.engine, rig.other):
            assert isinstance(engine.left(errand), Absent | Partial)

    def test_its_result_is_there_when_it_is_over(self, rig: RemoteRig) -> None:
        """Fault R6."""
        errand = rig.errand("one")
        submitted(rig, errand)
        rig.finish(errand.name)

        assert isinstance(rig.other.poll(errand.name), Over)
        first = rig.other.collect(errand, 0)
        assert isinstance(first, Collected)
        content = first.output.path.read_bytes()
        assert first.output.size == len(content) > 0
        assert first.output.sha256 == hashlib.sha256(content).hexdigest()
        assert rig.engine.collect(errand, 0) == first

    def test_two_searches_share_nothing(self, rig: RemoteRig) -> None:
        """Fault R12."""
        errands = [rig.errand(search) for search in ("one", "two")]
        texts = set()
        for errand in errands:
            submitted(rig, errand)
            rig.finish(errand.name)
            found = rig.engine.collect(errand, 0)
            assert isinstance(found, Collected)
            texts.add(found.output.path.read_text())

        assert len(texts) == 2

    def test_what_has_failed_is_broken_for_a_named_cause(self, rig: RemoteRig) -> None:
        errand = rig.errand("one")
        submitted(rig, errand)
        rig.fail(errand.name)

        state = rig.other.poll(errand.name)
        assert isinstance(state, Broken)
        assert state.failure.message
        assert state.failure.next_step

    def test_a_result_that_is_not_there_is_a_failure(self, rig: RemoteRig) -> None:
        submitted(rig, rig.errand("one"))

        assert isinstance(rig.engine.collect(rig.errand("one", 2), 0), Failure)

    @pytest.mark.parametrize("makes", list(Makes))
    def test_nothing_is_left_of_what_was_cancelled(self, rig: RemoteRig, makes: Makes) -> None:
        """Fault R8."""
        rig.makes(makes)
        errand, bystander = rig.errand("one"), rig.errand("two")
        submitted(rig, errand)
        rig.makes(Makes.ALL)
        submitted(rig, bystander)

        rig.other.cancel(errand.name)
        rig.engine.cancel(errand.name)

        for engine in (rig.engine, rig.other):
            assert engine.look(errand.name) == Absent()
        assert rig.other.poll(errand.name) == Absent()
        assert isinstance(rig.engine.look(bystander.name), AtWork)

    def test_a_second_attempt_is_another_submission(self, rig: RemoteRig) -> None:
        first, second = rig.errand("one"), rig.errand("one", 2)
        submitted(rig, first)
        submitted(rig, second)
        rig.engine.cancel(first.name)

        assert rig.engine.look(first.name) == Absent()
        assert isinstance(rig.engine.look(second.name), AtWork)

    def test_discarding_keeps_the_published_result(self, rig: RemoteRig) -> None:
        errand = rig.errand("one")
        submitted(rig, errand)
        rig.finish(errand.name)
        found = rig.engine.collect(errand, 0)
        assert isinstance(found, Collected)
        rig.engine.discard(errand.task)

        assert [path.name for path in errand.task.directory.iterdir()] == [found.output.path.name]
