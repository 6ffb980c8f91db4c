"""The query checker, row by row: what is refused, what is repaired, and what is said."""

from __future__ import annotations

import gzip
import hashlib
import random

import pytest

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import (
    FastaCheck,
    FastaLimits,
    QuerySummary,
    require_writable_titles,
)
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program

BLASTN, BLASTP, BLASTX = Program.BLASTN, Program.BLASTP, Program.BLASTX
DNA = "".join(random.Random(3).choices("ACGT", k=120)).encode()
PROTEIN = "".join(random.Random(4).choices("ACDEFGHIKLMNPQRSTVWY", k=80)).encode()
CLEAN = b">q a title\n" + DNA + b"\n"


def checked(
    data: bytes, program: Program = BLASTN, task: str | None = None
) -> tuple[bytes, QuerySummary]:
    check = FastaCheck(program, task=task, source="reads.fa")
    return b"".join(check.repaired([data])), check.summary


def refusal(data: bytes, program: Program = BLASTN, task: str | None = None) -> CallerMistake:
    with pytest.raises(CallerMistake) as caught:
        checked(data, program, task)
    return caught.value


def notices(data: bytes, program: Program = BLASTN) -> dict[str, str]:
    return {notice.code: notice.message for notice in checked(data, program)[1].notices}


def test_clean_fasta_passes_byte_for_byte_and_is_counted() -> None:
    data = CLEAN + b"\n>second\n" + DNA[:60] + b"\n" + DNA[60:90].lower()
    out, summary = checked(data)
    assert out == data
    assert (summary.records, summary.residues, summary.longest) == (2, 210, 120)
    assert (summary.shortest, summary.shortest_line) == (90, 4)
    assert (summary.size, summary.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert summary.notices == ()


def test_the_summary_is_not_there_before_the_query_was_read() -> None:
    with pytest.raises(RuntimeError):
        _ = FastaCheck(BLASTN).summary


def test_a_gzipped_query_is_inflated_and_said() -> None:
    out, summary = checked(gzip.compress(CLEAN))
    assert out == CLEAN
    assert [notice.code for notice in summary.notices] == ["gzip"]
    assert summary.notices[0].message.startswith("reads.fa: ")


def test_a_gzip_file_of_several_members_is_inflated_whole() -> None:
    data = gzip.compress(CLEAN) + gzip.compress(b">r\n" + DNA) + b"\x00" * 512
    assert checked(data)[0] == CLEAN + b">r\n" + DNA


def test_a_gzip_file_cut_short_is_named() -> None:
    mistake = refusal(gzip.compress(CLEAN)[:-9])
    assert mistake.code == "query_encoding"
    assert "cut short" in mistake.message
    assert mistake.next_step


def test_a_damaged_gzip_file_is_named() -> None:
    data = bytearray(gzip.compress(CLEAN))
    data[len(data) // 2] ^= 0xFF
    assert "damaged" in refusal(bytes(data)).message


def test_gzip_inside_gzip_is_refused() -> None:
    assert "gzip inside gzip" in refusal(gzip.compress(gzip.compress(CLEAN))).message


def test_inflating_stops_at_its_cap() -> None:
    bomb = gzip.compress(b">q\n" + b"A" * 5_000_000)
    check = FastaCheck(BLASTN, limits=FastaLimits(max_inflated=1_000_000))
    pieces: list[bytes] = []
    with pytest.raises(CallerMistake) as caught:
        pieces.extend(check.repaired([bomb]))
    assert caught.value.code == "query_too_large"
    assert "1,000,000" in caught.value.message
    assert sum(map(len, pieces)) <= 1_000_000


def test_a_query_beyond_the_limit_is_refused_while_it_arrives() -> None:
    check = FastaCheck(BLASTN, limits=FastaLimits(max_bytes=1000))
    asked = 0

    def endless() -> object:
        nonlocal asked
        yield b">q\n"
        while True:
            asked += 1
            yield b"ACGT" * 25

    with pytest.raises(CallerMistake) as caught:
        list(check.repaired(endless()))  # type: ignore[arg-type]
    assert caught.value.code == "query_too_large"
    assert asked <= 11


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
def test_utf_16_with_its_mark_is_read_and_said(codec: str) -> None:
    text = CLEAN.decode()
    data = ("\ufeff" + text).encode(codec) if codec.endswith("be") else text.encode(codec)
    assert checked(data)[0] == CLEAN
    assert "utf16" in notices(data)


def test_utf_16_without_its_mark_is_refused() -> None:
    assert refusal(CLEAN.decode().encode("utf-16-le")).code == "query_encoding"


def test_half_a_utf_16_letter_is_refused() -> None:
    assert refusal(CLEAN.decode().encode("utf-16")[:-1]).code == "query_encoding"


def test_a_byte_order_mark_is_removed_and_said() -> None:
    assert checked(b"\xef\xbb\xbf" + CLEAN)[0] == CLEAN
    assert notices(b"\xef\xbb\xbf" + CLEAN)["byte_order_mark"].startswith("reads.fa, line 1")


def test_a_byte_order_mark_between_joined_files_is_removed() -> None:
    assert checked(CLEAN + b"\xef\xbb\xbf>r\n" + DNA)[0] == CLEAN + b">r\n" + DNA


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_line_ends_of_windows_and_old_macintosh_are_replaced_and_said(end: bytes) -> None:
    data = b">q" + end + DNA[:60] + end + DNA[60:] + end
    assert checked(data)[0] == b">q\n" + DNA[:60] + b"\n" + DNA[60:] + b"\n"
    assert "line 1, column 3" in notices(data)["line_ends"]


def test_a_file_that_mixes_line_ends_is_mended_and_said() -> None:
    data = b">q\n" + DNA + b"\r>r\r" + DNA + b"\n"
    assert checked(data)[0] == b">q\n" + DNA + b"\n>r\n" + DNA + b"\n"
    assert "line_ends_mixed" in notices(data)
    assert "line_ends_mixed" not in notices(b">q\r\n" + DNA + b"\r\n>r\n" + DNA + b"\n")


def test_positions_are_right_whatever_the_line_ends() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        data = b">q" + end + DNA + end + DNA[:5] + b"*" + DNA + end
        assert "line 3, column 6:" in refusal(data).message


def test_blanks_before_a_title_are_removed_and_said() -> None:
    data = b"  >q\n" + DNA + b"\n\t >r\n" + DNA + "\n\u00a0>s\n".encode() + DNA
    out, summary = checked(data)
    assert out == b">q\n" + DNA + b"\n>r\n" + DNA + b"\n>s\n" + DNA
    assert summary.records == 3
    assert "line 1, column 1" in notices(data)["blanks_before_title"]
    assert "2 more" in notices(data)["blanks_before_title"]


def test_fastq_is_named_with_the_way_to_convert_it() -> None:
    mistake = refusal(b"@r1\n" + DNA + b"\n+\n" + b"I" * 120 + b"\n")
    assert mistake.code == "query_not_fasta"
    assert "FASTQ" in mistake.message
    assert "sed -n" in mistake.next_step


def test_a_sequence_without_a_title_line_is_refused_with_the_line_to_add() -> None:
    mistake = refusal(b"\n" + DNA + b"\n")
    assert mistake.code == "query_not_fasta"
    assert "line 2, column 1" in mistake.message
    assert ">my_sequence" in mistake.next_step


@pytest.mark.parametrize(
    "word", ["NM_000546.6", "P04637", "12345", "gi|4557757", "1ABC_A", "lcl|foo", "  TP53"]
)
def test_a_bare_accession_is_refused(word: str) -> None:
    for program in (BLASTN, BLASTP):
        mistake = refusal(word.encode() + b"\n", program)
        assert mistake.code == "query_accession"
        assert word.strip() in mistake.message


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"PK\x03\x04rest", "ZIP"),
        (b"BZh91AY", "bzip2"),
        (b"%PDF-1.7", "PDF"),
        (b"LOCUS       SCU49845", "GenBank"),
        (b"<!DOCTYPE html>", "web page"),
        (b"CLUSTAL W", "Clustal"),
        (b"#NEXUS\n", "NEXUS"),
    ],
)
def test_another_kind_of_file_is_named(data: bytes, word: str) -> None:
    mistake = refusal(data)
    assert mistake.code == "query_encoding"
    assert word in mistake.message
    assert mistake.next_step


def test_protein_into_a_nucleotide_program_is_refused_at_its_first_impossible_letter() -> None:
    for program in (BLASTN, BLASTX, Program.TBLASTX):
        mistake = refusal(b">p\nACGT\nMKVLLE\n", program)
        assert mistake.code == "query_wrong_type"
        assert "line 3, column 4" in mistake.message
        assert "blastp" in mistake.next_step


def test_a_protein_of_letters_that_nucleotides_have_too_is_recognised_by_its_share() -> None:
    assert refusal(b">p\n" + b"MKVSRDHWYA" * 4 + b"\n", BLASTN).code == "query_wrong_type"


def test_one_mistyped_letter_in_a_nucleotide_is_a_letter_not_a_protein() -> None:
    mistake = refusal(b">q\n" + DNA + b"E" + DNA)
    assert mistake.code == "query_letters"
    assert "line 2, column 121" in mistake.message


def test_nucleotide_into_a_protein_program_is_refused() -> None:
    for program in (BLASTP, Program.TBLASTN):
        mistake = refusal(b">p\n" + PROTEIN + b"\n>q\n" + DNA, program)
        assert mistake.code == "query_wrong_type"
        assert "line 3, column 1" in mistake.message
        assert "blastn" in mistake.next_step


@pytest.mark.parametrize(
    "peptide", [b"GATTACA", b"ACGTACGTACGTACGTACGT", b"GAGAGS" * 20, b"N" * 40]
)
def test_a_peptide_of_nucleotide_letters_is_not_taken_for_a_nucleotide(peptide: bytes) -> None:
    assert checked(b">p\n" + peptide + b"\n", BLASTP)[1].records == 1


@pytest.mark.parametrize(
    ("letters", "program"), [(b"N" * 60, BLASTN), (b"RYKM" * 20, BLASTN), (b"X" * 60, BLASTP)]
)
def test_a_query_of_unknown_letters_only_is_refused(letters: bytes, program: Program) -> None:
    mistake = refusal(b">q\n" + letters + b"\n", program)
    assert mistake.code == "query_ambiguous"
    assert "line 1" in mistake.message


def test_a_query_too_short_for_the_word_size_is_refused_with_the_short_task() -> None:
    mistake = refusal(b">q\n" + DNA[:27] + b"\n")
    assert mistake.code == "query_too_short"
    assert "28" in mistake.message
    assert "-task blastn-short" in mistake.next_step
    assert refusal(b">p\nMK\n", BLASTP).next_step.startswith("Use -task blastp-short")


@pytest.mark.parametrize(
    ("program", "task", "least"),
    [
        (BLASTN, None, 28),
        (BLASTN, "blastn", 11),
        (BLASTN, "dc-megablast", 18),
        (BLASTN, "blastn-short", 7),
        (BLASTX, None, 9),
        (Program.TBLASTX, None, 9),
    ],
)
def test_the_shortest_useful_query_depends_on_program_and_task(
    program: Program, task: str | None, least: int
) -> None:
    assert checked(b">q\n" + DNA[:least], program, task)[1].records == 1
    assert refusal(b">q\n" + DNA[: least - 1], program, task).code == "query_too_short"


def test_the_word_size_asked_for_counts() -> None:
    data = b">q\n" + DNA[:12] + b"\n"
    assert b"".join(FastaCheck(BLASTN, word_size=12).repaired([data])) == data
    with pytest.raises(CallerMistake):
        list(FastaCheck(BLASTN, word_size=13).repaired([data]))


def test_records_without_hits_are_kept_with_a_notice_beside_a_good_one() -> None:
    data = b">e\n>s\nACGT\n>n\n" + b"N" * 50 + b"\n>ss\nAC\n" + CLEAN
    out, summary = checked(data)
    assert out == data
    assert summary.records == 5
    said = notices(data)
    assert "line 1," in said["empty_record"]
    assert "line 2," in said["short_record"]
    assert "1 more" in said["short_record"]
    assert "line 4," in said["vague_record"]


@pytest.mark.parametrize("data", [b"", b"\n\n", b">q\n", b">q\n>r\n   \n", b"; comment\n"])
def test_a_query_without_any_sequence_is_refused(data: bytes) -> None:
    assert refusal(data).code == "query_empty"


@pytest.mark.parametrize(
    ("stray", "words"),
    [
        (b"*", "stop"),
        (b".", "gap"),
        (b"-", "gap"),
        (b"\x00", "NUL"),
        ("\u00a0".encode(), "no-break space"),
        ("\u2028".encode(), "line separator"),
        (b"X", "no nucleotide"),
        (b"7", "'7'"),
        (b"/", "'/'"),
        (b">", "inside a line"),
        (b";", "hides the rest"),
        (b"\xe4", "U+00E4"),
    ],
)
def test_a_letter_blast_would_drop_is_refused_with_its_position(stray: bytes, words: str) -> None:
    mistake = refusal(b">q\n" + DNA + b"\n" + DNA[:10] + stray + DNA + b"\n")
    assert mistake.code == "query_letters"
    assert mistake.message.startswith("reads.fa, line 3, column 11: ")
    assert words in mistake.message
    assert mistake.next_step


def test_a_stop_in_a_protein_keeps_its_place_and_is_let_through() -> None:
    data = b">p\n" + PROTEIN + b"*\n>r\nMUOJBZX" + PROTEIN.lower()
    assert checked(data, BLASTP)[0] == data


@pytest.mark.parametrize("stray", [b".", b"-", b"?", b"\x00", "\u00a0".encode()])
def test_letters_outside_the_protein_alphabet_are_refused(stray: bytes) -> None:
    assert refusal(b">p\n" + PROTEIN + stray, BLASTP).code == "query_letters"


def test_iupac_codes_uracil_and_lower_case_are_kept() -> None:
    data = b">q\n" + DNA + b"RYKMSWBDHVNUryu" + DNA.lower() + b"\n"
    assert checked(data)[0] == data


def test_blanks_blank_lines_and_comment_lines_stay_and_do_not_count() -> None:
    data = b";c\n\n#c\n>q\n" + DNA + b" \t" + DNA + b"\n\n  ; note 1\n!x\n" + DNA + b"  \n"
    out, summary = checked(data)
    assert out == data
    assert summary.residues == 360


def test_numbers_of_a_genbank_listing_are_left_out_and_said() -> None:
    data = b">q\n        1 " + DNA[:60] + b"\n       61 " + DNA[60:] + b" 120\n"
    out, summary = checked(data)
    assert summary.residues == 120
    assert not any(digit in out for digit in b"0123456789")
    assert "numbering" in notices(data)


def test_a_nul_byte_in_a_title_is_refused_with_its_position() -> None:
    mistake = refusal(CLEAN + b">r a\x00b\n" + DNA)
    assert mistake.code == "query_encoding"
    assert "line 3, column 5" in mistake.message


def test_repeated_ids_are_accepted_and_named() -> None:
    data = CLEAN + b">r\n" + DNA + b"\n>q other\n" + DNA + b"\n>q\n" + DNA + b"\n"
    out, summary = checked(data)
    assert out == data
    assert summary.repeated_ids == ("q",)
    assert "line 5" in notices(data)["repeated_id"]
    assert "(q)" in notices(data)["repeated_id"]


def test_a_title_beyond_ascii_is_noticed_with_its_position() -> None:
    data = CLEAN + ">r Bär\n".encode() + DNA
    summary = checked(data)[1]
    assert str(summary.odd_title) == "reads.fa, line 3, column 5"
    assert "title_not_ascii" in notices(data)


@pytest.mark.parametrize("outfmt", ["xml", "json", "11", "16"])
def test_a_title_that_breaks_the_format_is_refused(outfmt: str) -> None:
    summary = checked(">r Bär\n".encode() + DNA)[1]
    with pytest.raises(CallerMistake) as caught:
        require_writable_titles(summary, OutputFormat.parse(outfmt))
    assert caught.value.code == "query_title"
    assert "line 1, column 5" in caught.value.message
    require_writable_titles(checked(CLEAN)[1], OutputFormat.parse(outfmt))


@pytest.mark.parametrize("outfmt", ["tsv", "tsv-comments", "csv", "sam", "pairwise", "4"])
def test_a_title_beyond_ascii_is_accepted_where_it_is_sound(outfmt: str) -> None:
    summary = checked(">r Bär\n".encode() + DNA)[1]
    require_writable_titles(summary, OutputFormat.parse(outfmt))


def test_a_title_line_without_an_end_is_refused_in_bounded_memory() -> None:
    mistake = refusal(b">" + b"x" * 3_000_000)
    assert mistake.code == "query_not_fasta"


def test_a_sequence_in_one_very_long_line_is_read_and_positions_are_right() -> None:
    line = DNA * 30_000
    data = b">q\n" + line + b"\n>r\n" + DNA
    assert checked(data)[0] == data
    assert checked(data)[1].longest == len(line)
    assert f"line 2, column {len(line) + 1}:" in refusal(b">q\n" + line + b"*" + DNA).message


def test_standard_input_is_called_so_in_messages() -> None:
    with pytest.raises(CallerMistake) as caught:
        list(FastaCheck(BLASTN).repaired([b">q\nAC*GT\n"]))
    assert caught.value.message.startswith("standard input, line 2, column 3: ")


def test_findings_list_every_mistake_and_repair_without_raising() -> None:
    data = b"\xef\xbb\xbf>q\n" + DNA + b"*\n  >r\n" + DNA + b".\n>s\nMKVLLE\n"
    found = FastaCheck(BLASTN, source="reads.fa").findings([data])
    assert [(finding.code, finding.refused) for finding in found] == [
        ("query_letters", True),
        ("query_letters", True),
        ("query_wrong_type", True),
        ("byte_order_mark", False),
        ("blanks_before_title", False),
    ]
    assert all(finding.misread for finding in found)
    assert "line 4, column 121" in found[1].message


def test_findings_of_a_clean_query_are_empty() -> None:
    assert FastaCheck(BLASTN).findings([CLEAN]) == []


def test_findings_say_which_oddities_blast_reads_rightly_by_itself() -> None:
    data = b">q\r\n" + DNA + b"\r\n>q\r\n" + DNA + b"\r\n"
    found = FastaCheck(BLASTN).findings([data])
    assert {finding.code for finding in found} == {"line_ends", "repeated_id"}
    assert not any(finding.misread or finding.refused for finding in found)


@pytest.mark.parametrize("data", [b"NM_000546\n", b"@r\nACGT\n+\nIIII\n", DNA, b"PK\x03\x04", b""])
def test_findings_of_something_that_is_no_fasta_hold_the_one_mistake(data: bytes) -> None:
    found = FastaCheck(BLASTN).findings([data])
    assert [finding.refused for finding in found] == [True]


def test_findings_know_the_titles_a_format_breaks() -> None:
    data = ">r Bär\n".encode() + DNA
    found = FastaCheck(BLASTN).findings([data], OutputFormat.parse("xml"))
    assert found[0].code == "query_title"
    assert found[0].refused


def test_findings_of_one_kind_are_bounded() -> None:
    data = b"".join(b">q%d\n" % number + DNA + b"*\n" for number in range(50))
    assert len(FastaCheck(BLASTN).findings([data])) == 5
