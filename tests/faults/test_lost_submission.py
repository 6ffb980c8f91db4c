"""A submission whose row could not be written, or whose answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from machine_stage import through

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.domain.errors import Unavailable
from blastyard.service.draft import Draft
from blastyard.settings import read_settings
from blastyard.testing.faulty import Fault

DRAFT = Draft("blastn", "genes", key="k-1")


@contextmanager
def opened(environment: dict[str, str], plan: Callable[[str, str], Fault]) -> Iterator[Yard]:
    """An installation whose store meets what the plan says."""
    yard = open_yard(read_settings(environment), this_process("command"), seam=through(plan=plan))
    try:
        yield yard
    finally:
        yard.close()


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.UNAVAILABLE])
def test_a_row_that_could_not_be_written_is_told_as_such_and_may_be_sent_again(
    fault: Fault, environment: dict[str, str], sample_databases: Any, sample_fasta: Any
) -> None:
    adding = [fault]

    def plan(operation: str, _: str) -> Fault:
        return adding.pop() if operation == "add" and adding else Fault.OK

    query: Path = sample_fasta.nucl_query
    with opened(environment, plan) as yard:
        yard.databases.add_path("genes", sample_databases.nucl)
        with query.open("rb") as file, pytest.raises(Unavailable) as caught:
            yard.searches.submit(DRAFT, file, runner="")
        with query.open("rb") as file:
            again = yard.searches.submit(DRAFT, file, runner="")
        rows = yard.searches.page()

    assert caught.value.code == "store_unavailable"
    assert [row.id for row in rows] == [again.search.id]


def test_a_row_whose_answer_was_lost_is_found_again(
    environment: dict[str, str], sample_databases: Any, sample_fasta: Any
) -> None:
    query: Path = sample_fasta.nucl_query
    lost = {"add": Fault.LOST_ANSWER}
    with opened(environment, lambda operation, _: lost.get(operation, Fault.OK)) as yard:
        yard.databases.add_path("genes", sample_databases.nucl)
        with query.open("rb") as file:
            done = yard.searches.submit(DRAFT, file, runner="")
        rows = yard.searches.page()

    assert (done.created, [row.id for row in rows]) == (True, [done.search.id])
