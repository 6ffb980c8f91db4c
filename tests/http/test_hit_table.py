"""The table of hits: what it shows, and how it tells "no hits" from "no output"."""

from __future__ import annotations

from pathlib import Path

import pytest

from blastyard.domain.outfmt import OutputFormat
from blastyard.http.hit import QUERIES, ROWS, HitTable, read_hits

COMMENTED = OutputFormat.parse("7 std stitle")
HIT = "q\tsub{0}\t98.5\t100\t1\t0\t1\t100\t7\t106\t1e-50\t185\ta title"


def head(name: str, hits: int) -> list[str]:
    return ["# BLASTN 2.12.0+", f"# Query: {name}", "# Database: db", f"# {hits} hits found"]


def table(tmp_path: Path, lines: list[str], output_format: OutputFormat = COMMENTED) -> HitTable:
    path = tmp_path / "result"
    path.write_text("".join(f"{line}\n" for line in lines))
    found = read_hits(path, output_format)
    assert found is not None
    return found


def test_a_row_shows_score_identity_and_coordinates(tmp_path: Path) -> None:
    lines = [*head("q one", 1), HIT.format(1), "# BLAST processed 1 queries"]

    found = table(tmp_path, lines)

    row = dict(zip(found.headings, found.queries[0].rows[0], strict=True))
    assert row == {
        "Subject": "sub1",
        "E-value": "1e-50",
        "Bit score": "185",
        "Identity": "98.5",
        "Length": "100",
        "Query range": "1 – 100",
        "Subject range": "7 – 106",
        "Title": "a title",
    }
    assert found.queries[0].name == "q one"
    assert found.whole


def test_a_query_without_hits_is_told_from_one_whose_hits_are_missing(tmp_path: Path) -> None:
    found = table(tmp_path, [*head("a", 0), *head("b", 2)])

    assert [(query.name, query.found) for query in found.queries] == [("a", 0), ("b", 2)]
    assert not found.whole


def test_queries_of_one_name_are_told_apart_by_their_number(tmp_path: Path) -> None:
    found = table(tmp_path, [*head("a", 1), HIT.format(1), *head("b", 0), *head("a", 0)])

    assert [query.label for query in found.queries] == ["a", "b", "a (2)"]


def test_an_empty_commented_file_is_no_answer(tmp_path: Path) -> None:
    assert not table(tmp_path, []).whole


def test_an_empty_plain_file_says_no_hits(tmp_path: Path) -> None:
    found = table(tmp_path, [], OutputFormat.parse("6"))

    assert found.whole
    assert found.queries == []
    assert not found.names_all


def test_only_the_first_rows_are_shown(tmp_path: Path) -> None:
    lines = [*head("q", ROWS + 5), *(HIT.format(n) for n in range(ROWS + 5))]

    found = table(tmp_path, lines)

    assert found.shown == len(found.queries[0].rows) == ROWS
    assert found.more
    assert found.whole


def test_only_the_first_queries_are_shown(tmp_path: Path) -> None:
    lines = [line for n in range(QUERIES + 1) for line in head(f"q{n}", 0)]

    found = table(tmp_path, lines)

    assert len(found.queries) == QUERIES
    assert found.more


def test_a_title_that_looks_like_a_comment_stays_a_title(tmp_path: Path) -> None:
    row = HIT.format(1).replace("q\t", "#\t", 1)
    lines = [*head("# 0 hits found", 1), row, "# BLAST processed 1 queries"]

    found = table(tmp_path, lines)

    assert [(query.name, query.found) for query in found.queries] == [("# 0 hits found", 1)]
    assert found.shown == 1


def test_a_torn_last_row_is_not_shown_and_said(tmp_path: Path) -> None:
    found = table(tmp_path, [HIT.format(1), "q\tsub2\t98"], OutputFormat.parse("6 std stitle"))

    assert found.shown == 1
    assert not found.whole


def test_plain_rows_are_grouped_by_query(tmp_path: Path) -> None:
    lines = ["a,s1,1e-9", "a,s2,1e-8", "b,s1,1e-7"]

    found = table(tmp_path, lines, OutputFormat.parse("10 qseqid sseqid evalue"))

    assert [(query.name, len(query.rows)) for query in found.queries] == [("a", 2), ("b", 1)]
    assert found.headings == ("Subject", "E-value")


@pytest.mark.parametrize("text", ["xml", "pairwise", "json", "6 qseqid"])
def test_a_format_without_columns_to_show_has_no_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result"
    path.write_text("")

    assert read_hits(path, OutputFormat.parse(text)) is None
