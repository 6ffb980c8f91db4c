"""BLAST+ options as submitters give them: the table, the values, what goes together."""

from __future__ import annotations

import pytest

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import QuerySummary
from blastyard.domain.option_table import ALLOWED, BANNED, MAX_TARGETS
from blastyard.domain.options import OptionSet, parse_options, require_query_range
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program

BLASTN, BLASTP, BLASTX = Program.BLASTN, Program.BLASTP, Program.BLASTX


def parsed(line: str, program: Program = BLASTN, outfmt: str = "tsv") -> OptionSet:
    """Options from a line; an underscore stands for a blank inside a value of -dust or -seg."""
    words = [
        word.replace("_", " ") if word[:1].isdigit() and "_" in word else word
        for word in line.split()
    ]
    return parse_options(program, words, outfmt=OutputFormat.parse(outfmt))


def refusal(
    line: str, program: Program = BLASTN, outfmt: str = "tsv", code: str = "option_value"
) -> CallerMistake:
    with pytest.raises(CallerMistake) as caught:
        parsed(line, program, outfmt)
    assert caught.value.code == code
    return caught.value


def test_options_come_out_in_one_order_with_their_values_untouched() -> None:
    one = parsed("-ungapped -evalue 1.0E-05 -task blastn")
    assert one.argv == ("-evalue", "1.0E-05", "-task", "blastn", "-ungapped")
    assert parsed("-task blastn -ungapped -evalue 1.0E-05") == one
    assert parsed("").argv == ()


def test_an_equals_sign_is_the_other_spelling() -> None:
    assert parsed("-evalue=1e-5").argv == ("-evalue", "1e-5")


def test_values_beginning_with_a_dash_are_values() -> None:
    assert parsed("-penalty -3 -reward 1").get("penalty") == "-3"


def test_what_others_need_to_know_is_read_out() -> None:
    options = parsed("-task blastn -word_size 12 -taxids 9606,10090 -query_loc 10-50")
    assert options.task == "blastn"
    assert options.word_size == 12
    assert options.taxids == (9606, 10090)
    assert options.query_range == (10, 50)
    assert parsed("-negative_taxids 1").negative_taxids == (1,)
    bare = parsed("")
    assert (bare.task, bare.word_size, bare.taxids, bare.query_range) == (
        "megablast", None, (), None,
    )  # fmt: skip
    assert parsed("", Program.TBLASTX).task == "tblastx"


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("-word-size 7", "-word_size"),
        ("--evalue 1", "-evalue"),
        ("-Evalue 1", "-evalue"),
        ("-evaleu 1", "-evalue"),
        ("-max_target_seq 5", "-max_target_seqs"),
        ("-thread 5", "-"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(line: str, near: str) -> None:
    mistake = refusal(line, code="option_unknown")
    assert line.split(maxsplit=1)[0] in mistake.message
    assert near in mistake.next_step


def test_abbreviations_are_not_known() -> None:
    refusal("-eval 1", code="option_unknown")


def test_an_option_of_another_program_names_it() -> None:
    assert "blastp" in refusal("-matrix PAM30", code="option_unknown").message


def test_a_word_that_is_no_option_is_refused() -> None:
    mistake = refusal("-evalue 1 foo", code="option_unknown")
    assert "'foo'" in mistake.message
    assert "quotes" in mistake.next_step


@pytest.mark.parametrize("name", sorted(BANNED))
def test_every_forbidden_option_is_refused_with_its_reason(name: str) -> None:
    for program in Program:
        mistake = refusal(f"-{name} 1", program, code="option_forbidden")
        assert f"-{name}" in mistake.message
        assert BANNED[name].reason in mistake.message
        assert mistake.next_step == BANNED[name].instead


def test_no_option_is_both_allowed_and_forbidden() -> None:
    for table in ALLOWED.values():
        assert not set(table) & set(BANNED)


def test_an_option_given_twice_is_refused() -> None:
    assert "twice" in refusal("-evalue 1 -evalue 2").message


@pytest.mark.parametrize("line", ["-evalue", "-evalue -ungapped", "-evalue -db", "-evalue="])
def test_a_missing_value_is_named(line: str) -> None:
    assert "-evalue" in refusal(line).message


def test_a_flag_takes_no_value() -> None:
    refusal("-ungapped=true")
    refusal("-ungapped true", code="option_unknown")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1e-400", "so small"),
        ("-1", "out of range"),
        ("0", "out of range"),
        ("nan", "no such number"),
        ("NaN", "no such number"),
        ("inf", "no such number"),
        ("1e400", "too large"),
        ("0,1", "0.1"),
        ("1e", "not a number"),
        ("0x1", "not a number"),
        ("1d-5", "not a number"),
        ("", "not a number"),
        ("١", "not a number"),
    ],
)
def test_evalues_that_mean_nothing_are_refused_with_the_reason(value: str, words: str) -> None:
    with pytest.raises(CallerMistake) as caught:
        parse_options(BLASTN, ["-evalue", value], outfmt=OutputFormat.parse("tsv"))
    assert caught.value.code == "option_value"
    assert words in caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize("value", ["1e-5", "1E-180", ".5", "5.", "+1", "1e-320", "10000000"])
def test_evalues_that_mean_something_are_taken(value: str) -> None:
    assert parsed(f"-evalue {value}").get("evalue") == value


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("-word_size 3", BLASTN),
        ("-word_size 8", BLASTP),
        ("-word_size 6", Program.TBLASTX),
        ("-word_size 11.0", BLASTN),
        ("-word_size 1e1", BLASTN),
        ("-word_size 0x10", BLASTN),
        ("-perc_identity 101", BLASTN),
        ("-perc_identity -5", BLASTN),
        ("-perc_identity 97,5", BLASTN),
        ("-qcov_hsp_perc nan", BLASTN),
        ("-max_hsps 0", BLASTN),
        ("-max_target_seqs 0", BLASTN),
        (f"-max_target_seqs {MAX_TARGETS + 1}", BLASTN),
        ("-best_hit_overhang 0.5", BLASTN),
        ("-best_hit_overhang 0", BLASTN),
        ("-window_size 99999999999", BLASTN),
        ("-window_size -1", BLASTN),
        ("-threshold 0", BLASTP),
        ("-xdrop_gap -1", BLASTN),
        ("-xdrop_gap inf", BLASTN),
        ("-strand Plus", BLASTN),
        ("-task Blastn", BLASTN),
        ("-task blastp", BLASTN),
        ("-soft_masking on", BLASTN),
        ("-comp_based_stats 4", BLASTP),
        ("-comp_based_stats 2005", BLASTP),
        ("-matrix BLOSUM65", BLASTP),
        ("-matrix IDENTITY", BLASTX),
        ("-query_gencode 7", BLASTX),
        ("-db_gencode 34", Program.TBLASTN),
        ("-dust Yes", BLASTN),
        ("-dust 20_64", BLASTN),
        ("-dust 1_64_1", BLASTN),
        ("-dust 20,64,1", BLASTN),
        ("-seg 12_2.2", BLASTP),
        ("-seg 12_3_2", BLASTP),
        ("-seg 12_2,2_2,5", BLASTP),
        ("-query_loc 100-1", BLASTN),
        ("-query_loc 0-10", BLASTN),
        ("-query_loc 5-5", BLASTN),
        ("-query_loc 1..20", BLASTN),
        ("-query_loc 5", BLASTN),
        ("-taxids 0", BLASTN),
        ("-taxids human", BLASTN),
        ("-taxids 9606;10090", BLASTN),
        ("-taxids 99999999999", BLASTN),
    ],
)
def test_values_out_of_their_range_are_refused_with_the_range(line: str, program: Program) -> None:
    mistake = refusal(line, program)
    assert line.split(maxsplit=1)[0] in mistake.message
    assert line.split(maxsplit=1)[0] in mistake.next_step


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("-matrix blosum80 -gapopen 9 -gapextend 2", BLASTP),
        ("-dust 20_64_1 -soft_masking FALSE", BLASTN),
        ("-seg 12_2.2_2.5", BLASTP),
        ("-comp_based_stats F -ungapped", BLASTP),
        ("-query_gencode 33 -strand minus", BLASTX),
        ("-task dc-megablast -template_type coding -template_length 18", BLASTN),
        ("-task blastn-short -perc_identity 97.5 -max_hsps 1 -subject_besthit", BLASTN),
        ("-best_hit_overhang 0.1 -best_hit_score_edge 0.1 -lcase_masking", BLASTN),
        ("-no_greedy -gapopen 5 -gapextend 2", BLASTN),
    ],
)
def test_usual_command_lines_are_taken(line: str, program: Program) -> None:
    assert parsed(line, program).values


@pytest.mark.parametrize(
    ("line", "program", "outfmt"),
    [
        ("-max_target_seqs 5 -num_descriptions 5", BLASTN, "pairwise"),
        ("-max_target_seqs 5 -num_alignments 5", BLASTN, "pairwise"),
        ("-num_descriptions 5", BLASTN, "tsv"),
        ("-num_alignments 5", BLASTN, "xml"),
        ("-line_length 80", BLASTN, "tsv"),
        ("-sorthits 1", BLASTN, "tsv"),
        ("-sorthsps 1", BLASTN, "1"),
        ("-culling_limit 1 -best_hit_overhang 0.1", BLASTN, "tsv"),
        ("-taxids 1 -negative_taxids 2", BLASTN, "tsv"),
        ("-template_type coding", BLASTN, "tsv"),
        ("-template_type coding -template_length 18", BLASTN, "tsv"),
        ("-task dc-megablast -template_length 18", BLASTN, "tsv"),
        ("-task dc-megablast -word_size 13", BLASTN, "tsv"),
        ("-off_diagonal_range 5", BLASTN, "tsv"),
        ("-no_greedy", BLASTN, "tsv"),
        ("-ungapped", BLASTP, "tsv"),
        ("-ungapped", BLASTX, "tsv"),
        ("-ungapped -comp_based_stats 0 -use_sw_tback", BLASTP, "tsv"),
        ("-ungapped -gapopen 5", BLASTN, "tsv"),
        ("-task blastp-fast -matrix IDENTITY", BLASTP, "tsv"),
        ("-reward 3 -penalty -1", BLASTN, "tsv"),
        ("-task blastn -penalty -1", BLASTN, "tsv"),
        ("-task rmblastn -penalty -1", BLASTN, "tsv"),
        ("-gapopen 5", BLASTN, "tsv"),
        ("-task blastn -reward 5 -penalty -4", BLASTN, "tsv"),
        ("-gapopen 3 -gapextend 7", BLASTP, "tsv"),
        ("-task blastp-short -gapopen 11", BLASTP, "tsv"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    line: str, program: Program, outfmt: str
) -> None:
    mistake = refusal(line, program, outfmt)
    assert mistake.next_step


def test_limits_by_description_are_taken_where_the_format_has_descriptions() -> None:
    line = "-num_descriptions 5 -num_alignments 3 -line_length 80 -sorthits 1 -sorthsps 2"
    assert parsed(line, BLASTN, "pairwise").get("num_alignments") == "3"
    assert parsed("-max_target_seqs 5", BLASTN, "pairwise").values


def test_gap_costs_are_refused_with_the_pairs_there_are() -> None:
    mistake = refusal("-matrix PAM30 -gapopen 3", BLASTP)
    assert "PAM30" in mistake.message
    assert "9/1" in mistake.next_step


def test_the_format_must_be_one_the_program_writes() -> None:
    assert "SAM" in refusal("", BLASTP, "sam", code="format_unknown").message


def summary(shortest: int, longest: int) -> QuerySummary:
    return QuerySummary(
        records=2, residues=shortest + longest, longest=longest, shortest=shortest,
        shortest_line=3, size=1, sha256="",
    )  # fmt: skip


def test_a_query_range_beyond_a_sequence_is_refused_with_its_line() -> None:
    options = parsed("-query_loc 250-400")
    require_query_range(options, summary(400, 900))
    with pytest.raises(CallerMistake) as caught:
        require_query_range(options, summary(300, 900))
    assert caught.value.code == "option_value"
    assert "line 3" in caught.value.message
    assert "300" in caught.value.message
    require_query_range(parsed(""), summary(1, 1))


def test_a_query_range_too_short_to_find_anything_is_refused() -> None:
    with pytest.raises(CallerMistake):
        require_query_range(parsed("-query_loc 1-20"), summary(300, 900))
    require_query_range(parsed("-query_loc 1-20 -task blastn"), summary(300, 900))


def test_a_program_that_is_none_is_refused_with_the_nearest() -> None:
    assert Program.parse("blastp") is BLASTP
    with pytest.raises(CallerMistake) as caught:
        Program.parse("Blastn ")
    assert caught.value.code == "program_unknown"
    assert "Did you mean blastn?" in caught.value.message
