"""Fixtures for every test: where BLAST+ is, a data directory, and small deterministic databases."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest

# How many examples a property is tried with: many, or few with `--hypothesis-profile=quick`.
hypothesis.settings.register_profile("all", max_examples=200, deadline=None, derandomize=True)
hypothesis.settings.register_profile(
    "quick", hypothesis.settings.get_profile("all"), max_examples=20
)
hypothesis.settings.load_profile("all")

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"

# One codon for each amino acid, so that proteins and genes of a family find each other.
CODONS = {
    "A": "GCT", "C": "TGC", "D": "GAT", "E": "GAA", "F": "TTC", "G": "GGT", "H": "CAC",
    "I": "ATC", "K": "AAA", "L": "CTG", "M": "ATG", "N": "AAC", "P": "CCG", "Q": "CAG",
    "R": "CGT", "S": "AGC", "T": "ACC", "V": "GTT", "W": "TGG", "Y": "TAC",
}  # fmt: skip

FAMILIES = 6
MEMBERS = 8

# A test run started in the background inherits ignored signals, and its children would too.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


@dataclass(frozen=True, slots=True)
class SampleFasta:
    """Files of one seed: queries resemble the records of both subject files.

    Each of the six families has eight proteins of 150 to 300 residues, copies of one ancestor
    with 0 to 35 % of the residues replaced, and the eight genes that encode them. The queries are
    further copies, one for each family, so all five programs find hits.
    """

    nucl: Path
    prot: Path
    nucl_query: Path
    prot_query: Path


@dataclass(frozen=True, slots=True)
class SampleDatabases:
    """Database prefixes, as ``-db`` takes them, made of the files of :class:`SampleFasta`."""

    nucl: Path
    prot: Path


def _find(program: str) -> Path | None:
    beside_python = Path(sys.executable).parent / program
    found = str(beside_python) if beside_python.exists() else shutil.which(program)
    return Path(found) if found else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """What ``scripts/soak --deaths`` wants."""
    parser.addoption(
        "--every-death",
        action="store_true",
        help="kill processes at every point of their lives, not only at one of each kind",
    )


@pytest.fixture(scope="session", autouse=True)
def _environment_of_the_tester_stays_outside() -> None:
    """Settings of the account that runs the tests must not decide how they end."""
    for name in list(os.environ):
        if name.startswith(("BLASTYARD_", "BLAST_", "BLASTDB")) or name == "BATCH_SIZE":
            del os.environ[name]


@pytest.fixture(scope="session")
def missing() -> Callable[[str], NoReturn]:
    """``missing("a Redis server")`` skips where a person tests at home, and fails in CI."""

    def tell(what: str) -> NoReturn:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{what} is missing, and CI must have it")
        pytest.skip(f"{what} is not here")

    return tell


@pytest.fixture(scope="session")
def require(missing: Callable[[str], NoReturn]) -> Callable[[str], Path]:
    """``require("snakemake")`` is that program's path; without it the test skips, or fails in CI.

    The folder of the running Python comes before PATH.
    """

    def path_of(program: str) -> Path:
        return _find(program) or missing(program)

    return path_of


@pytest.fixture(scope="session")
def blast(require: Callable[[str], Path]) -> Path:
    """The folder that holds BLAST+'s programs."""
    return require("blastn").parent


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty data directory with a path short enough for a socket in it (108 bytes)."""
    with tempfile.TemporaryDirectory(prefix="by-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def tester_environment(_environment_of_the_tester_stays_outside: None) -> dict[str, str]:
    """The environment the tests run in, for programs that need one and no data directory."""
    return dict(os.environ)


@pytest.fixture
def environment(home: Path, tester_environment: dict[str, str]) -> dict[str, str]:
    """What to start blastyard's programs with: this environment, and ``home`` as data directory."""
    return {**tester_environment, "BLASTYARD_HOME": str(home)}


def _protein(chance: random.Random) -> str:
    return "".join(chance.choices(RESIDUES, k=chance.randint(150, 300)))


def _copy(ancestor: str, replaced: float, chance: random.Random) -> str:
    return "".join(
        chance.choice(RESIDUES) if chance.random() < replaced else letter for letter in ancestor
    )


def _gene(protein: str) -> str:
    return "".join(CODONS[residue] for residue in protein)


def _write(path: Path, records: dict[str, str]) -> Path:
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in records.items()))
    return path


@pytest.fixture(scope="session")
def sample_fasta(tmp_path_factory: pytest.TempPathFactory) -> SampleFasta:
    """FASTA files for a nucleotide and a protein database, and queries for each."""
    chance = random.Random(20)
    proteins: dict[str, str] = {}
    queries: dict[str, str] = {}
    for family in range(1, FAMILIES + 1):
        ancestor = _protein(chance)
        for member in range(MEMBERS):
            name = f"fam{family}_{member} copy {member} of family {family}"
            proteins[name] = _copy(ancestor, 0.05 * member, chance)
        queries[f"query{family} of family {family}"] = _copy(ancestor, 0.04, chance)

    folder = tmp_path_factory.mktemp("sample-fasta")
    genes = {name: _gene(protein) for name, protein in proteins.items()}
    gene_queries = {name: _gene(protein) for name, protein in queries.items()}
    return SampleFasta(
        nucl=_write(folder / "nucl.fa", genes),
        prot=_write(folder / "prot.fa", proteins),
        nucl_query=_write(folder / "nucl-query.fa", gene_queries),
        prot_query=_write(folder / "prot-query.fa", queries),
    )


@pytest.fixture(scope="session")
def sample_databases(
    blast: Path, sample_fasta: SampleFasta, tmp_path_factory: pytest.TempPathFactory
) -> SampleDatabases:
    """The sample files as BLAST databases with parsed ids."""
    folder = tmp_path_factory.mktemp("sample-databases")

    def made(fasta: Path, kind: str) -> Path:
        prefix = folder / f"sample-{kind}"
        command: list[str | Path] = [
            blast / "makeblastdb",
            "-in",
            fasta,
            "-dbtype",
            kind,
            "-parse_seqids",
        ]
        subprocess.run(
            [*command, "-title", f"sample {kind}", "-out", prefix], check=True, capture_output=True
        )
        return prefix

    return SampleDatabases(
        nucl=made(sample_fasta.nucl, "nucl"), prot=made(sample_fasta.prot, "prot")
    )
