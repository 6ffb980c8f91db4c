"""A search that can never fit is refused before it is queued, with the numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import FastaLimits
from blastyard.domain.memory import BASE_BYTES, BYTES_PER_RESIDUE, least_memory
from blastyard.domain.program import Program
from blastyard.domain.search import Database, DatabaseState, Request
from blastyard.service.draft import Draft
from blastyard.service.intake import Intake, Room
from blastyard.testing.sample import database

MIB = 1 << 20


class Shelf:
    """Every database is there and has the type that the program wants."""

    def ready(self, name: str) -> Database:
        kind = "nucl" if name == "genes" else "prot"
        return replace(database(name), type=kind, state=DatabaseState.READY)

    def has_taxid(self, database: Database, taxid: int) -> bool:
        return True


def submit(program: str, lengths: list[int], memory_bytes: int | None) -> Request:
    """Pass a query with records of these lengths through intake."""
    intake = Intake(Shelf(), Room(memory_bytes), FastaLimits())
    protein = program in ("blastp", "tblastn")
    name = "genes" if program in ("blastn", "tblastn", "tblastx") else "proteins"
    accepted = intake.check(Draft(program, name, user="ada"))
    letters = b"MKVLAWHECDFGIPQRSTNY" if protein else b"ACGTTGCAGCTAGGATCCAT"
    records = (
        b">q%d\n%s\n" % (number, (letters * (length // 20 + 1))[:length])
        for number, length in enumerate(lengths)
    )
    for _ in accepted.repaired(records):
        pass
    return accepted.finish()


@pytest.mark.parametrize("program", list(Program))
def test_a_query_that_needs_more_than_a_search_may_use_is_refused_with_both_numbers(
    program: Program,
) -> None:
    """Fault B15."""
    longest = 300_000
    needed = least_memory(program, longest)

    with pytest.raises(CallerMistake) as caught:
        submit(program, [60, longest, 60], needed - 1)

    assert caught.value.code == "never_fits"
    assert (caught.value.meaning.http_status, caught.value.meaning.exit_code) == (422, 4)
    assert f"about {needed / MIB:,.0f} MiB" in caught.value.message
    assert f"{longest:,} residues" in caught.value.message
    assert re.search(r"one search may use [\d,]+$", caught.value.message)
    assert "BLASTYARD_SEARCH_MEMORY_MB" in caught.value.next_step
    assert submit(program, [60, longest, 60], needed).program is program


def test_many_short_queries_need_no_more_than_the_longest_of_them() -> None:
    """Fault B15."""
    limit = least_memory(Program.TBLASTX, 5_000)

    assert submit("tblastx", [5_000] * 30, limit)
    with pytest.raises(CallerMistake, match="needs about"):
        submit("tblastx", [150_000], limit)


def test_without_a_limit_nothing_is_too_large() -> None:
    """Fault B15."""
    assert submit("blastn", [200_000], None)


@given(program=st.sampled_from(Program), length=st.integers(0, 10**9), more=st.integers(0, 10**6))
def test_a_longer_query_never_needs_less(program: Program, length: int, more: int) -> None:
    least = least_memory(program, length)

    assert least_memory(program, 0) == BASE_BYTES
    assert least_memory(program, length + more) - least == more * BYTES_PER_RESIDUE[program]


def test_every_program_has_a_measured_need() -> None:
    assert set(BYTES_PER_RESIDUE) == set(Program)
