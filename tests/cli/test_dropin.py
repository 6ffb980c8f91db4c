"""``blastyard blastn …`` is BLAST+, apart from what leaves the machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def dropin(environment: dict[str, str], blast: Path, tmp_path: Path) -> Run:
    """``dropin("blastn", …)`` runs the drop-in; ``bare=True`` runs BLAST+ itself."""

    def run(
        *words: str | Path, bare: bool = False, stdin: bytes = b"", **more: str
    ) -> subprocess.CompletedProcess[bytes]:
        start = [] if bare else [sys.executable, "-m", "blastyard"]
        return subprocess.run(
            [*start, *map(str, words)],
            env={**environment, **more},
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def subject(tmp_path: Path) -> Path:
    path = tmp_path / "subject.fa"
    path.write_text(">s1\nACGTAGCTAGCTAGCATCGATCGATCGATCAGCTACGACTAGCATCAGCATCAGCATC\n")
    return path


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("-h",),
        ("-help",),
        ("-version",),
        ("-xmlhelp",),
        ("-bogus", "1"),
        ("-db", "nowhere", "-bogus"),
        ("stray",),
        ("-db", "nowhere", "-evalue", "many"),
        ("-query", "nowhere.fa", "-db", "nowhere"),
        ("-db", "nowhere"),
        ("-db", 'nowhere "no where"'),
        ("-subject", "subject.fa", "-query", "subject.fa", "-evalue", "-1"),
        ("-subject", "subject.fa", "-query", "subject.fa", "-out", "/nowhere/out"),
    ],
)
def test_what_blast_says_about_itself_and_about_mistakes_is_the_same(
    dropin: Run, subject: Path, words: tuple[str, ...]
) -> None:
    ours, bare = dropin("blastn", *words), dropin("blastn", *words, bare=True)

    assert (ours.returncode, ours.stdout, ours.stderr) == (
        bare.returncode,
        bare.stdout,
        bare.stderr,
    )


def test_help_begins_with_what_is_different_and_goes_on_with_blasts_own(dropin: Run) -> None:
    ours, bare = dropin("tblastn", "--help"), dropin("tblastn", "-help", bare=True)

    assert ours.returncode == 0
    assert ours.stdout.endswith(bare.stdout)
    note = ours.stdout.removesuffix(bare.stdout).decode()
    assert note.startswith("blastyard tblastn:")
    assert "-remote" in note
    assert "accession" in note


@pytest.mark.parametrize("words", [("-remote",), ("-remote", "-outfmt", "6"), ("-remote=true",)])
def test_a_remote_search_is_refused(dropin: Run, subject: Path, words: tuple[str, ...]) -> None:
    refused = dropin("blastn", "-query", subject, "-db", "nt", *words)

    assert (refused.returncode, refused.stdout) == (1, b"")
    assert b"-remote sends the query to NCBI" in refused.stderr


@pytest.mark.parametrize("text", ["NM_000546\n", "\n\n  NM_000546.6", "# c\nsp|P04637|P53_HUMAN\n"])
def test_an_accession_as_query_file_is_refused(
    dropin: Run, subject: Path, tmp_path: Path, text: str
) -> None:
    query = tmp_path / "accession.txt"
    query.write_text(text)
    refused = dropin("blastn", "-query", query, "-subject", subject)

    assert (refused.returncode, refused.stdout) == (1, b"")
    assert b"is a name, not a sequence" in refused.stderr


@pytest.mark.parametrize("place", ["query", "subject"])
def test_no_accession_anywhere_makes_blast_use_the_network(
    environment: dict[str, str], subject: Path, require: Callable[[str], Path], place: str
) -> None:
    strace = require("strace")
    traces = subject.parent / "trace"
    words = ("-subject", subject) if place == "query" else ("-subject", "-", "-query", subject)
    traced = subprocess.run(
        [strace, "-ff", "-qq", "-e", "trace=socket", "-o", traces, sys.executable, "-m",
         "blastyard", "blastn", *words],
        env=environment, input=b"NM_000546\n", capture_output=True, check=False, timeout=120,
    )  # fmt: skip

    calls = "".join(path.read_text() for path in subject.parent.glob("trace.*"))
    assert "AF_UNIX" in calls
    assert "AF_INET" not in calls
    assert traced.returncode != 0


def test_the_reported_usage_is_switched_off(dropin: Run, subject: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = dropin(
            "blastn", "-query", subject, "-subject", subject,
            BLAST_USAGE_REPORT="true", NCBI_USAGE_REPORT_URL=address,
        )  # fmt: skip
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert done.returncode == 0


def test_what_blast_would_answer_wrongly_is_a_warning(
    dropin: Run, subject: Path, tmp_path: Path
) -> None:
    query = tmp_path / "stop.fa"
    query.write_text(">q1\n" + "ACGTAGCTAGCTAGCATCGA*TCGATCGATCAGCTACGACTAGC\n")
    words = ("blastn", "-query", query, "-subject", subject, "-outfmt", "6")
    ours, bare = dropin(*words), dropin(*words, bare=True)

    assert (ours.returncode, ours.stdout) == (0, bare.stdout)
    assert f"warning: {query}, line 2, column 21: '*'".encode() in ours.stderr


@pytest.mark.parametrize("how", ["file", "pipe"])
def test_strict_makes_the_warning_a_refusal(
    dropin: Run, subject: Path, tmp_path: Path, how: str
) -> None:
    text = b">q1\nACGTAGCTAGCTAGCATCGA*TCGATCGATCAGCTACGACTAGC\n"
    query = tmp_path / "stop.fa"
    query.write_bytes(text)
    words = ("-query", str(query)) if how == "file" else ()
    stdin = b"" if how == "file" else text
    refused = dropin("blastn", "-subject", subject, *words, stdin=stdin, BLASTYARD_STRICT="1")

    assert (refused.returncode, refused.stdout) == (1, b"")
    assert b"line 2, column 21" in refused.stderr


def test_strict_lets_a_clean_query_through_a_pipe(dropin: Run, subject: Path) -> None:
    words = ("blastn", "-subject", subject, "-outfmt", "6")
    ours = dropin(*words, stdin=subject.read_bytes(), BLASTYARD_STRICT="1")
    bare = dropin(*words, stdin=subject.read_bytes(), bare=True)

    assert (ours.returncode, ours.stdout, ours.stderr) == (0, bare.stdout, b"")
    assert bare.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-outfmt", "6 qseqid nosuchfield"), b"nosuchfield"),
        (("-evalue", "1e"), b"-evalue"),
    ],
)
def test_options_that_blast_takes_and_misunderstands_are_warned_of(
    dropin: Run, subject: Path, words: tuple[str, ...], said: bytes
) -> None:
    done = dropin("blastn", "-query", subject, "-subject", subject, *words)

    assert b"blastyard: warning: " in done.stderr
    assert said in done.stderr


def test_blastdb_of_the_environment_is_honoured(
    dropin: Run, sample_databases: object, sample_fasta: object
) -> None:
    folder = sample_databases.nucl.parent  # type: ignore[attr-defined]
    words = ("blastn", "-query", sample_fasta.nucl_query, "-db", "sample-nucl", "-outfmt", "7")  # type: ignore[attr-defined]
    ours = dropin(*words, BLASTDB=str(folder))
    bare = dropin(*words, BLASTDB=str(folder), bare=True)

    assert (ours.returncode, ours.stdout) == (0, bare.stdout)
    assert b"# Database: sample-nucl" in ours.stdout


def test_a_registered_name_is_searched_at_its_path(
    dropin: Run, sample_databases: object, sample_fasta: object
) -> None:
    path = sample_databases.nucl  # type: ignore[attr-defined]
    query = sample_fasta.nucl_query  # type: ignore[attr-defined]
    added = dropin(
        sys.executable, "-m", "blastyard", "db", "add", "genes", "--path", path, bare=True
    )
    assert added.returncode == 0, added.stderr

    ours = dropin("blastn", "-query", query, "-db", "genes", "-outfmt", "7")
    bare = dropin("blastn", "-query", query, "-db", path, "-outfmt", "7", bare=True)

    assert (ours.returncode, ours.stdout, ours.stderr) == (0, bare.stdout, bare.stderr)


def test_a_query_from_process_substitution_is_read(
    environment: dict[str, str], subject: Path
) -> None:
    script = '"$0" -m blastyard blastn -query <(cat "$1") -subject <(cat "$1") -outfmt 6'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, subject],
        env=environment,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"s1\ts1\t100.000")


def test_a_reader_that_stops_early_ends_blast_as_usual(
    environment: dict[str, str], subject: Path, tmp_path: Path
) -> None:
    query = tmp_path / "many.fa"
    query.write_text("".join(f">q{i}\n{subject.read_text().split()[1]}\n" for i in range(20_000)))
    script = '%s -query "$1" -subject "$2" -outfmt 6 | head -n 1; echo "${PIPESTATUS[*]}"'

    def said(program: str) -> bytes:
        return subprocess.run(
            ["bash", "-c", script % program, sys.executable, query, subject],
            env=environment, capture_output=True, check=True,
        ).stdout  # fmt: skip

    assert said('"$0" -m blastyard blastn') == said("blastn")


def test_without_blast_the_package_is_named(dropin: Run, tmp_path: Path) -> None:
    done = dropin("blastn", "-db", "nt", PATH=str(tmp_path))

    assert done.returncode == 7
    assert b"apt-get install ncbi-blast+" in done.stderr
