"""What blastyard gives is, byte for byte, what BLAST+ gives, and foreign parsers read it.

Two ways lead to BLAST+: the drop-in command, and ``blastyard search`` with its store. Paths appear
in some formats, so both sides name the same files.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from Bio import SearchIO
from Bio.Blast import NCBIXML

from blastyard.testing.forked_command import run_command

FORMATS = ["0", "5", "6", "6 qseqid sseqid evalue bitscore qcovs btop", "7", "10", "15"]
CASES = [
    (program, outfmt)
    for program in ("blastn", "blastp", "blastx", "tblastn", "tblastx")
    for outfmt in FORMATS + (["17", "17 SQ SR"] if program == "blastn" else [])
]
PROTEIN_QUERY = {"blastp", "tblastn"}
PROTEIN_DATABASE = {"blastp", "blastx"}

Outcome = tuple[int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class Material:
    """The files of the sample, as each program needs them."""

    environment: dict[str, str]
    fasta: object
    databases: object

    def query(self, program: str) -> Path:
        kind = "prot_query" if program in PROTEIN_QUERY else "nucl_query"
        path: Path = getattr(self.fasta, kind)
        return path

    def subject(self, program: str) -> Path:
        path: Path = getattr(self.fasta, "prot" if program in PROTEIN_DATABASE else "nucl")
        return path

    def database(self, program: str) -> Path:
        path: Path = getattr(self.databases, "prot" if program in PROTEIN_DATABASE else "nucl")
        return path

    def run(self, *argv: str | Path, stdin: bytes = b"") -> Outcome:
        done = subprocess.run(
            list(map(str, argv)),
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def blastyard(self, *words: str | Path, stdin: bytes = b"") -> Outcome:
        done = run_command([*map(str, words)], env=self.environment, stdin=stdin, timeout=120)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def material(
    environment: dict[str, str], blast: Path, sample_fasta: object, sample_databases: object
) -> Material:
    return Material(environment, sample_fasta, sample_databases)


@pytest.mark.parametrize(("program", "outfmt"), CASES)
def test_the_drop_in_writes_what_blast_writes(
    material: Material, program: str, outfmt: str
) -> None:
    words = (program, "-query", material.query(program), "-db", material.database(program))
    words += ("-outfmt", outfmt)
    ours, bare = material.blastyard(*words), material.run(*words)

    assert bare[0] == 0
    assert len(bare[1]) > 500
    assert ours == bare


@pytest.mark.parametrize("program", ["blastn", "blastp", "blastx", "tblastn", "tblastx"])
def test_an_output_file_subject_sequences_and_standard_input_are_the_same(
    material: Material, tmp_path: Path, program: str
) -> None:
    query = material.query(program).read_bytes()
    for where in (
        ("-db", material.database(program)),
        ("-subject", material.subject(program)),
    ):
        files = []
        for start in (material.blastyard, material.run):
            file = tmp_path / "out"
            done = start(program, *where, "-outfmt", "5", "-out", file, stdin=query)
            assert done == (0, b"", b"")
            files.append(file.read_bytes())
        assert files[0] == files[1]
        assert files[0].count(b"<Hit>") > 5


@pytest.mark.parametrize(
    "words",
    [
        ("-db", "/nowhere/nt"),
        ("-db", "{prot}"),
        ("-db", "{nucl} /nowhere/nt"),
        ("-db", "{nucl}", "-gapopen", "1", "-gapextend", "9"),
        ("-db", "{nucl}", "-nonsense"),
        ("-db", "{nucl}", "-query", "/nowhere/query.fa"),
    ],
)
def test_errors_are_the_same(material: Material, words: tuple[str, ...]) -> None:
    names = {"nucl": material.database("blastn"), "prot": material.database("blastp")}
    argv = [word.format(**names) for word in words]
    if "-query" not in argv:
        argv += ["-query", str(material.query("blastn"))]
    ours, bare = material.blastyard("blastn", *argv), material.run("blastn", *argv)

    assert bare[0] != 0
    assert ours == bare


def test_several_databases_are_searched_as_one(material: Material) -> None:
    name = str(material.database("blastn"))
    words = ("blastn", "-query", material.query("blastn"), "-db", f'{name} "{name}"')
    ours, bare = material.blastyard(*words), material.run(*words)

    assert bare[0] == 0
    assert ours == bare


@pytest.mark.parametrize(
    "options",
    [
        ("-parse_deflines",),
        ("-html",),
        ("-num_threads", "2"),
        ("-task", "blastn-short", "-max_target_seqs", "3"),
        ("-lcase_masking", "-dust", "no", "-strand", "minus"),
        ("-num_descriptions", "2", "-num_alignments", "1"),
        ("-show_gis", "-sorthits", "3"),
        ("-export_search_strategy", "/dev/stderr"),
    ],
)
def test_every_local_option_is_passed_on(material: Material, options: tuple[str, ...]) -> None:
    words = ("blastn", "-query", material.query("blastn"), "-db", material.database("blastn"))
    ours, bare = material.blastyard(*words, *options), material.run(*words, *options)

    assert bare[0] == 0
    assert ours == bare


# -- through the store ---------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "outfmt"), CASES)
def test_a_stored_search_gives_what_blast_gives(
    material: Material, program: str, outfmt: str
) -> None:
    database = material.database(program)
    added = material.blastyard("db", "add", "sample", "--path", database)
    assert added[0] == 0, added
    query = material.query(program)
    words = ("search", "-p", program, "-d", "sample", "-q", query, "--format", outfmt)
    ours = material.blastyard(*words)
    bare = material.run(program, "-query", query, "-db", database, "-outfmt", outfmt)

    assert (ours[0], _same_command(ours[1])) == (bare[0], _same_command(bare[1]))
    assert len(bare[1]) > 500


def _same_command(sam: bytes) -> bytes:
    """SAM records the whole command line, and a stored search has its own input and output file."""
    return re.sub(rb"(?m)^(@PG\t.*\tCL:)[^\t\n]*", rb"\1", sam)


# -- foreign parsers -----------------------------------------------------------------------------


@pytest.fixture(params=["drop-in", "search"])
def blastp(request: pytest.FixtureRequest, material: Material) -> Callable[[str], str]:
    """``blastp(outfmt)`` is the output of one search, by either way."""
    query, database = material.query("blastp"), material.database("blastp")

    if request.param == "search":
        assert material.blastyard("db", "add", "sample", "--path", database)[0] == 0
        words = ("search", "-p", "blastp", "-d", "sample", "-q", query, "--format")
    else:
        words = ("blastp", "-query", query, "-db", database, "-outfmt")

    def search(outfmt: str) -> str:
        code, out, err = material.blastyard(*words, outfmt)
        assert code == 0, err
        return out.decode()

    return search


def test_biopython_reads_the_xml(blastp: Callable[[str], str]) -> None:
    records = list(NCBIXML.parse(io.StringIO(blastp("5"))))

    assert [record.query.split()[0] for record in records] == [f"query{n}" for n in range(1, 7)]
    assert all(record.alignments[0].hsps[0].expect < 1e-20 for record in records)


@pytest.mark.parametrize(
    ("outfmt", "parser", "comments"), [("6", "blast-tab", False), ("7", "blast-tab", True)]
)
def test_biopython_reads_the_tables(
    blastp: Callable[[str], str], outfmt: str, parser: str, comments: bool
) -> None:
    results = list(SearchIO.parse(io.StringIO(blastp(outfmt)), parser, comments=comments))

    assert [result.id for result in results] == [f"query{n}" for n in range(1, 7)]
    assert all(len(result) >= 8 for result in results)


def test_biopython_finds_the_same_in_xml_and_in_the_table(blastp: Callable[[str], str]) -> None:
    xml = SearchIO.parse(io.StringIO(blastp("5")), "blast-xml")
    table = SearchIO.parse(io.StringIO(blastp("6")), "blast-tab")

    assert [[hit.id for hit in result] for result in xml] == [
        [hit.id for hit in result] for result in table
    ]


def test_the_json_holds_one_report_for_each_query(blastp: Callable[[str], str]) -> None:
    reports = json.loads(blastp("15"))["BlastOutput2"]

    titles = [report["report"]["results"]["search"]["query_title"] for report in reports]
    assert [title.split()[0] for title in titles] == [f"query{n}" for n in range(1, 7)]
