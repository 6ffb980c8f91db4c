"""BLAST+'s command line is read as BLAST+ reads it."""

from __future__ import annotations

import pytest

from blastyard.cli.dropin.line import Line


def read(*words: str) -> Line:
    return Line.read("blastn", words)


def test_both_spellings_of_an_option_are_read() -> None:
    line = read("-query", "q.fa", "-db=nt", "-outfmt", "6 std")

    assert (line.query, line.get("db"), line.get("outfmt")) == ("q.fa", "nt", "6 std")


def test_a_negative_number_and_a_dash_are_values() -> None:
    line = read("-penalty", "-3", "-query", "-", "-ungapped", "-evalue", "1e-5")

    assert line.get("penalty") == "-3"
    assert line.query == "-"
    assert line.has("ungapped")
    assert line.get("evalue") == "1e-5"


def test_an_option_without_its_value_does_not_swallow_the_next_one() -> None:
    line = read("-evalue", "-db", "nt")

    assert line.databases == ("nt",)


def test_standard_input_is_the_query_where_none_is_named() -> None:
    assert read("-db", "nt").query == "-"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("-h",),
        ("-help",),
        ("-version",),
        ("-db", "nt", "-version"),
        ("-db", "nt", "-help"),
        ("-version-full",),
        ("-query", "q.fa"),
        ("-db", "nt", "-dryrun"),
    ],
)
def test_a_line_that_only_asks_or_cannot_search_is_no_search(words: tuple[str, ...]) -> None:
    assert not read(*words).searches


@pytest.mark.parametrize("name", ["db", "subject", "import_search_strategy"])
def test_a_line_that_names_what_to_search_is_a_search(name: str) -> None:
    assert read(f"-{name}", "x").searches
    assert read(f"-{name}=x").searches


def test_several_databases_are_replaced_one_by_one() -> None:
    line = read("-db", 'a "/my data/b" ./c', "-evalue", "1")

    assert line.databases == ("a", "/my data/b", "./c")
    changed = line.with_databases({"a": "/new place/a"}.get)
    assert changed.words == ("-db", '"/new place/a" "/my data/b" ./c', "-evalue", "1")


def test_a_database_after_an_equals_sign_is_replaced_too() -> None:
    assert read("-db=a").with_databases({"a": "/x/a"}.get).words == ("-db=/x/a",)


def test_a_database_nobody_knows_stays_as_it_was_written() -> None:
    line = read("-db", 'a  "b"')

    assert line.with_databases(lambda _: None) is line
