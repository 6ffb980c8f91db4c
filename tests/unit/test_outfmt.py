"""Output formats: aliases, BLAST+'s own strings, and what is refused about them."""

from __future__ import annotations

import pytest

from blastyard.domain.errors import CallerMistake
from blastyard.domain.outfmt import ALIASES, FORMAT_KINDS, STANDARD_FIELDS, OutputFormat
from blastyard.domain.program import Program


def refusal(text: str, program: Program | None = None) -> CallerMistake:
    with pytest.raises(CallerMistake) as caught:
        OutputFormat.parse(text, program)
    assert caught.value.code == "format_unknown"
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize(("alias", "number"), ALIASES.items())
def test_an_alias_is_its_number_and_keeps_its_name(alias: str, number: int) -> None:
    outfmt = OutputFormat.parse(alias)
    assert outfmt.argument == str(number)
    assert outfmt.name == alias
    assert OutputFormat.parse(str(number)) == outfmt


@pytest.mark.parametrize("number", FORMAT_KINDS)
def test_every_format_has_an_extension_and_a_media_type(number: int) -> None:
    outfmt = OutputFormat.parse(str(number))
    assert outfmt.extension.startswith(".")
    assert "/" in outfmt.media_type
    assert outfmt.title
    assert outfmt.is_tabular == (number in (6, 7, 10))
    assert outfmt.counts_by_description == (number <= 4)


def test_fields_are_kept_in_order_and_std_is_written_out() -> None:
    outfmt = OutputFormat.parse("6  std   qlen")
    assert outfmt.argument == "6 std qlen"
    assert outfmt.fields == (*STANDARD_FIELDS, "qlen")
    assert OutputFormat.parse("tsv").fields == STANDARD_FIELDS
    assert OutputFormat.parse("xml").fields == ()
    assert OutputFormat.parse("csv qseqid sseqid").argument == "10 qseqid sseqid"


def test_a_delimiter_is_kept_where_blast_looks_for_it() -> None:
    outfmt = OutputFormat.parse("6 delim=; qseqid sseqid")
    assert outfmt.argument == "6 delim=; qseqid sseqid"
    assert (outfmt.delimiter, outfmt.fields) == (";", ("qseqid", "sseqid"))
    assert outfmt.extension == ".txt"
    assert OutputFormat.parse("7").delimiter == "\t"
    assert OutputFormat.parse("10").delimiter == ","
    assert "right after" in refusal("6 qseqid delim=; sseqid").message
    assert "no delimiter" in refusal("6 delim= qseqid").message
    assert "no delimiter" in refusal("5 delim=;").message


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("6 qseqid sseqid evlaue", "evalue"),
        ("6 QSEQID", "qseqid"),
        ("7 bit_score", "bitscore"),
        ("10 percent_identity pident", None),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest_name(text: str, near: str | None) -> None:
    message = refusal(text).message
    assert "leave the column out" in message
    if near:
        assert f"Did you mean {near}?" in message


def test_fields_with_commas_are_refused_with_the_way_to_write_them() -> None:
    assert "blanks" in refusal("6 qseqid,sseqid").next_step


@pytest.mark.parametrize("text", ["6 qseqid qseqid", "6 std evalue"])
def test_a_field_named_twice_is_refused(text: str) -> None:
    assert "twice" in refusal(text).message


@pytest.mark.parametrize("text", ["", "  ", "19", "99", "-1", "6.0", "tab", "six", "²"])
def test_a_format_that_is_none_is_refused_with_the_list(text: str) -> None:
    assert "tsv" in refusal(text).next_step


def test_a_mistyped_alias_is_corrected() -> None:
    assert "Did you mean json?" in refusal("jsn").message


@pytest.mark.parametrize(("text", "single"), [("13", "15"), ("14", "16")])
def test_formats_that_write_side_files_are_refused_with_their_single_file(
    text: str, single: str
) -> None:
    assert f"Use {single}" in refusal(text).next_step


def test_only_tabular_formats_take_fields() -> None:
    assert "no fields" in refusal("5 qseqid").message
    assert OutputFormat.parse("17 SQ SR").argument == "17 SQ SR"
    assert "no field" in refusal("17 qseqid").message
    assert "twice" in refusal("17 SQ SQ").message


def test_sam_is_for_blastn_only() -> None:
    assert OutputFormat.parse("sam", Program.BLASTN).number == 17
    assert "blastn" in refusal("sam", Program.BLASTP).message


def test_a_field_that_is_always_empty_for_the_program_is_refused() -> None:
    assert OutputFormat.parse("6 qcovus", Program.BLASTN)
    assert "N/A" in refusal("6 qcovus", Program.BLASTP).message
