"""What holds for the query checker whatever the query and however it arrives."""

from __future__ import annotations

import gzip
import itertools

from hypothesis import assume, given
from hypothesis import strategies as st

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import FastaCheck, QuerySummary
from blastyard.domain.id_table import IdTable
from blastyard.domain.program import Program

titles = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
sequences = st.text("ACGTNacgtnRY", min_size=0, max_size=300)
widths = st.integers(1, 100)


@st.composite
def fasta_texts(draw: st.DrawFn) -> bytes:
    """Clean FASTA with LF line ends in which at least one record can have hits."""
    records = draw(st.lists(st.tuples(titles, sequences), max_size=6))
    records.insert(draw(st.integers(0, len(records))), ("good", "ACGTTGCA" * 10))
    width = draw(widths)
    lines: list[str] = []
    for title, letters in records:
        lines.append(">" + title)
        lines += [letters[start : start + width] for start in range(0, len(letters), width)]
    return ("\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))).encode()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def outcome(chunks: list[bytes]) -> tuple[bytes, QuerySummary] | tuple[str, str]:
    check = FastaCheck(Program.BLASTN, source="q.fa")
    try:
        return b"".join(check.repaired(chunks)), check.summary
    except CallerMistake as mistake:
        return mistake.code, mistake.message


places = st.lists(st.integers(0, 10_000), max_size=8)


@given(fasta_texts())
def test_clean_fasta_is_never_changed(data: bytes) -> None:
    result = outcome([data])
    assert result[0] == data


@given(fasta_texts())
def test_counts_agree_with_a_plain_reading(data: bytes) -> None:
    summary = outcome([data])[1]
    assert isinstance(summary, QuerySummary)
    lines = data.decode().split("\n")
    assert summary.records == sum(line.startswith(">") for line in lines)
    assert summary.residues == sum(len(line) for line in lines if not line.startswith(">"))


@given(fasta_texts(), places, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_chunk_boundaries_never_matter(
    data: bytes, where: list[int], end: bytes, packed: bool
) -> None:
    sent = data.replace(b"\n", end)
    if packed:
        sent = gzip.compress(sent)
    assert outcome(cut(sent, where)) == outcome([sent])


@given(st.binary(max_size=400), places)
def test_any_bytes_end_in_a_summary_or_a_named_mistake_wherever_they_are_cut(
    data: bytes, where: list[int]
) -> None:
    assert outcome(cut(data, where)) == outcome([data])
    assert outcome(cut(b">q\n" + data, where)) == outcome([b">q\n" + data])
    FastaCheck(Program.BLASTN).findings(cut(data, where))


@given(fasta_texts(), st.integers(0, 10_000), st.sampled_from(["*", ".", "\x00", "é", "?"]))
def test_the_position_of_a_stray_letter_is_right(data: bytes, where: int, stray: str) -> None:
    lines = data.decode().split("\n")
    inside = [number for number, line in enumerate(lines) if line and not line.startswith(">")]
    number = inside[where % len(inside)]
    column = where % (len(lines[number]) + 1)
    lines[number] = lines[number][:column] + stray + lines[number][column:]
    text = "\n".join(lines)
    assume("\x00" not in text[:4])  # so early it is the mark of a text in UTF-16 or UTF-32
    result = outcome([text.encode()])
    assert result[0] in ("query_letters", "query_wrong_type")
    assert str(result[1]).startswith(f"q.fa, line {number + 1}, column {column + 1}: ")


@given(st.lists(st.binary(max_size=6), max_size=300))
def test_the_id_table_is_a_set(names: list[bytes]) -> None:
    table, known = IdTable(), set[bytes]()
    for name in names:
        assert table.add(name) == (name in known)
        known.add(name)


def test_the_id_table_grows() -> None:
    table = IdTable()
    names = [b"%d" % number for number in range(20_000)]
    assert not any(table.add(name) for name in names)
    assert all(table.add(name) for name in names)
