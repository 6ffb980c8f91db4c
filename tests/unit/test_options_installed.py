"""The option table against the BLAST+ that is installed: its help text, and its behaviour."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from blastyard.domain.errors import CallerMistake
from blastyard.domain.gap_cost import NUCLEOTIDE_GAPS, PROTEIN_DEFAULTS, PROTEIN_GAPS
from blastyard.domain.option_table import ALLOWED, BANNED, Kind, OptionRule
from blastyard.domain.option_value import check_value
from blastyard.domain.options import parse_options
from blastyard.domain.outfmt import FIELDS, FORMAT_KINDS, OutputFormat
from blastyard.domain.program import Program

TABULAR = OutputFormat.parse("tsv")
SIDE_FILES = {13, 14}


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """One option as ``-help`` prints it."""

    name: str
    signature: str
    text: str

    @property
    def default(self) -> str | None:
        found = re.search(r"Default = `([^']*)'", self.text)
        return found[1] if found else None


@pytest.fixture(scope="module")
def helps(blast: Path) -> dict[Program, str]:
    return {
        program: subprocess.run(
            [blast / program, "-help"], check=True, capture_output=True, text=True
        ).stdout
        for program in Program
    }


def entries(text: str) -> dict[str, HelpEntry]:
    body = text[text.index("OPTIONAL ARGUMENTS") :]
    blocks = re.split(r"^ -(?=\w)", body, flags=re.MULTILINE)[1:]
    found: dict[str, HelpEntry] = {}
    for block in blocks:
        match = re.match(r"(\w+)(?: <(.*?)>(?=\n))? *\n(.*)", block, re.DOTALL)
        assert match, block
        signature = " ".join((match[2] or "").split())
        found[match[1]] = HelpEntry(match[1], signature, match[3])
    return found


@pytest.mark.parametrize("program", Program)
def test_every_option_of_the_installed_program_is_allowed_or_forbidden(
    program: Program, helps: dict[Program, str]
) -> None:
    installed = set(entries(helps[program]))
    assert len(installed) > 50
    assert installed - set(ALLOWED[program]) - set(BANNED) == set()
    assert set(ALLOWED[program]) - installed == set()


@pytest.mark.parametrize("program", Program)
def test_the_table_has_the_types_the_help_prints(
    program: Program, helps: dict[Program, str]
) -> None:
    kinds = {"Integer": Kind.INTEGER, "Real": Kind.REAL, "Boolean": Kind.BOOLEAN, "": Kind.FLAG}
    for entry in entries(helps[program]).values():
        rule = ALLOWED[program].get(entry.name)
        word = entry.signature.split(",")[0]
        if rule is not None and word != "String" and rule.kind is not Kind.CHOICE:
            assert rule.kind is kinds[word], entry


def printed_bounds(signature: str) -> tuple[float, float]:
    """The inclusive bounds a signature allows; exclusive ones are nudged."""
    low, high = float("-inf"), float("inf")
    plain = re.search(r"(-?[\d.]+)\.\.([\d.]+)", signature)
    if plain:
        return float(plain[1]), float(plain[2])
    for sign, number in re.findall(r"([<>]=?|=<)(-?[\d.]+\d|\d)", signature):
        value = float(number)
        if sign.startswith(">"):
            low = value if "=" in sign else value + 1e-9
        else:
            high = value if "=" in sign else value - 1e-9
    return low, high


def ours(rule: OptionRule) -> tuple[float, float]:
    low = float("-inf") if rule.low is None else rule.low + (1e-9 if rule.open_low else 0)
    high = float("inf") if rule.high is None else rule.high - (1e-9 if rule.open_high else 0)
    return low, high


@pytest.mark.parametrize("program", Program)
def test_no_range_of_the_table_is_wider_than_the_printed_one(
    program: Program, helps: dict[Program, str]
) -> None:
    bounded = 0
    for entry in entries(helps[program]).values():
        rule = ALLOWED[program].get(entry.name)
        if rule is None or rule.kind not in (Kind.INTEGER, Kind.REAL):
            continue
        low, high = printed_bounds(entry.signature)
        bounded += low > float("-inf")
        assert ours(rule)[0] >= low, entry
        assert ours(rule)[1] <= high, entry
    assert bounded >= 10


@pytest.mark.parametrize("program", Program)
def test_every_printed_default_is_a_value_the_table_allows(
    program: Program, helps: dict[Program, str]
) -> None:
    for entry in entries(helps[program]).values():
        rule = ALLOWED[program].get(entry.name)
        if rule is not None and entry.default is not None:
            check_value(entry.name, rule, entry.default)


@pytest.mark.parametrize("program", Program)
def test_choices_of_the_table_are_the_printed_ones(
    program: Program, helps: dict[Program, str]
) -> None:
    found = entries(helps[program])
    for name in ("task", "strand", "template_type", "template_length"):
        if name in ALLOWED[program]:
            printed = set(re.findall(r"[`']([\w-]+)'", found[name].signature))
            assert set(ALLOWED[program][name].choices) == printed
    if program.tasks:
        assert found["task"].default == program.default_task
    for name in ("query_gencode", "db_gencode"):
        if name in ALLOWED[program]:
            codes: set[int] = set()
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", found[name].signature):
                codes |= set(range(int(first), int(last or first) + 1))
            assert {int(code) for code in ALLOWED[program][name].choices} == codes


def test_formats_and_fields_are_the_printed_ones(helps: dict[Program, str]) -> None:
    text = helps[Program.BLASTN]
    numbers = {int(number) for number in re.findall(r"^ +(\d+) = .*,?$", text, re.MULTILINE)}
    assert set(FORMAT_KINDS) | SIDE_FILES >= numbers
    assert set(FORMAT_KINDS) - numbers == set()
    printed = text[text.index("for options 6, 7 and 10 are:") : text.index("When not provided")]
    assert set(re.findall(r"(\w+) means", printed)) == FIELDS


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("subjects")
    gene = "ATGGCTTGCGATGAATTCGGTCACATCAAACTGATGAACCCGCAGCGTAGCACCGTTTGGTAC" * 4
    (folder / "n.fa").write_text(f">n\n{gene}\n")
    protein = "MACDEFGHIKLMNPQRSTVWY" * 4
    (folder / "p.fa").write_text(f">p\n{protein}\n")
    return folder


def accepted_by_blast(blast: Path, subjects: Path, program: Program, line: str) -> bool:
    query = "p.fa" if program.query_type == "prot" else "n.fa"
    subject = "p.fa" if program.database_type == "prot" else "n.fa"
    done = subprocess.run(
        [blast / program, "-query", query, "-subject", subject, "-outfmt", "6", *line.split()],
        cwd=subjects,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def accepted_by_us(program: Program, line: str) -> bool:
    try:
        parse_options(program, line.split(), outfmt=TABULAR)
    except CallerMistake:
        return False
    return True


def disagreements(
    blast: Path, subjects: Path, program: Program, lines: list[str]
) -> list[tuple[str, bool]]:
    """Lines the installed program and the table judge differently, with the table's judgement."""
    with ThreadPoolExecutor(2) as pool:
        judged = pool.map(lambda line: accepted_by_blast(blast, subjects, program, line), lines)
    pairs = [(line, accepted_by_us(program, line)) for line in lines]
    return [pair for pair, real in zip(pairs, judged, strict=True) if pair[1] != real]


@pytest.mark.slow
@pytest.mark.parametrize("matrix", PROTEIN_GAPS)
def test_gap_costs_of_a_matrix_are_those_of_the_installed_program(
    matrix: str, blast: Path, subjects: Path
) -> None:
    line = f"-query p.fa -subject p.fa -gapopen 3 -gapextend 77 -matrix {matrix}"
    done = subprocess.run(
        [blast / "blastp", *line.split()],
        cwd=subjects,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    printed = {
        (int(a), int(b)) for a, b in re.findall(r"^(\d+), (\d+)$", done.stderr, re.MULTILINE)
    }
    assert printed == {*PROTEIN_GAPS[matrix], (32767, 32767)}
    a, b = PROTEIN_DEFAULTS[matrix]
    lines = [f"-matrix {matrix}", f"-matrix {matrix} -gapopen {a}"]
    lines += [f"-matrix {matrix} -gapextend {b}", f"-matrix {matrix} -gapopen {a - 1}"]
    lines += [f"-matrix {matrix} -gapopen {a} -gapextend {b + 1}"]
    assert disagreements(blast, subjects, Program.BLASTP, lines) == []


@pytest.mark.slow
@pytest.mark.parametrize("score", NUCLEOTIDE_GAPS)
def test_gap_costs_of_a_score_are_those_of_the_installed_program(
    score: tuple[int, int], blast: Path, subjects: Path
) -> None:
    scale = 2 if score == (1, -2) else 1
    given = f"-reward {scale * score[0]} -penalty {scale * score[1]}"
    gaps = {(scale * a, scale * b) for a, b in NUCLEOTIDE_GAPS[score]}
    strict = (scale * NUCLEOTIDE_GAPS[score][-1][0], scale * NUCLEOTIDE_GAPS[score][-1][1])
    gaps |= {(0, scale), (strict[0] + 1, strict[1] + 2), (strict[0] + 3, 1), (1, strict[1] + 1)}
    lines = [f"-task blastn {given} -gapopen {a} -gapextend {b}" for a, b in sorted(gaps)]
    lines += [given, f"-task blastn {given}", f"-task blastn-short {given}"]
    assert disagreements(blast, subjects, Program.BLASTN, lines) == []


@pytest.mark.slow
def test_relations_are_those_of_the_installed_programs(blast: Path, subjects: Path) -> None:
    nucleotide = [
        "-no_greedy", "-no_greedy -gapopen 5 -gapextend 2", "-gapopen 5", "-gapopen 0 -gapextend 0",
        "-task blastn -gapopen 0 -gapextend 0", "-task blastn -gapextend 1", "-penalty -1",
        "-off_diagonal_range 5", "-off_diagonal_range 5 -window_size 40",
        "-task dc-megablast -off_diagonal_range 5", "-task dc-megablast -word_size 12",
        "-task dc-megablast -word_size 13", "-template_type coding -template_length 18",
        "-task dc-megablast -template_type coding -template_length 18",
        "-task dc-megablast -template_type coding", "-task rmblastn", "-task rmblastn -reward 1",
        "-task blastn-short -penalty -1", "-task blastn -penalty -1", "-task blastn -reward 1",
        "-culling_limit 1 -best_hit_overhang 0.1", "-ungapped",
        "-best_hit_overhang 0.1 -best_hit_score_edge 0.1", "-taxids 1 -negative_taxids 2",
        "-evalue 1 -evalue 2", "-task=blastn", "--evalue 1", "-eval 1", "-Evalue 1",
        "-soft_masking YES", "-soft_masking on", "-penalty 0", "-word_size 4", "-word_size 3",
    ]  # fmt: skip
    protein = [
        "-ungapped", "-ungapped -comp_based_stats F", "-ungapped -comp_based_stats 0",
        "-ungapped -comp_based_stats 0 -use_sw_tback", "-use_sw_tback", "-word_size 7",
        "-word_size 8", "-matrix IDENTITY", "-task blastp-fast -matrix IDENTITY",
        "-task blastp-fast -matrix IDENTITY -word_size 5", "-task blastp-short -gapopen 9",
        "-task blastp-short -gapopen 11", "-task blastp-short -matrix BLOSUM62 -gapopen 11",
        "-matrix blosum62", "-threshold 0", "-threshold 11.5", "-gapopen 32767 -gapextend 32767",
    ]  # fmt: skip
    translated = ["-matrix IDENTITY", "-matrix PAM250", "-word_size 7", "-query_gencode 7"]
    twice = ["-word_size 5", "-word_size 6", "-gapopen 9", "-matrix IDENTITY", "-db_gencode 33"]
    assert disagreements(blast, subjects, Program.BLASTN, nucleotide) == []
    assert disagreements(blast, subjects, Program.BLASTP, protein) == []
    assert disagreements(blast, subjects, Program.BLASTX, translated) == []
    assert disagreements(blast, subjects, Program.TBLASTX, twice) == []


@pytest.mark.slow
@pytest.mark.parametrize("program", Program)
def test_every_task_of_every_program_runs(program: Program, blast: Path, subjects: Path) -> None:
    lines = [f"-task {task}" for task in program.tasks] or [""]
    assert all(accepted_by_us(program, line) for line in lines)
    assert disagreements(blast, subjects, program, lines) == []
