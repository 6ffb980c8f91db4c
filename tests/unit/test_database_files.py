"""Building, looking at and checking databases, with real BLAST+."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

from blastyard.domain.errors import CallerMistake, Misconfigured
from blastyard.domain.program import SequenceType
from blastyard.domain.search import Database
from blastyard.engine.database import DatabaseFacts, DatabaseFiles, db_argument
from blastyard.engine.toolchain import Toolchain

NCBI_DATA = Path("/usr/share/ncbi/data")

NUCL, PROT = SequenceType.NUCL, SequenceType.PROT


class SampleDatabases(Protocol):
    """The fixture of that name."""

    nucl: Path
    prot: Path


@pytest.fixture(scope="session")
def files(blast: Path) -> DatabaseFiles:
    return DatabaseFiles(Toolchain(str(blast)))


@pytest.fixture
def build(files: DatabaseFiles, tmp_path: Path) -> Callable[..., DatabaseFacts]:
    """Build a database of a text; the prefix is ``tmp_path/db/made``."""

    def made(text: str | bytes, kind: SequenceType = NUCL) -> DatabaseFacts:
        fasta = tmp_path / "in.fa"
        fasta.write_bytes(text.encode() if isinstance(text, str) else text)
        (tmp_path / "db").mkdir()
        return files.build(fasta, tmp_path / "db" / "made", type=kind, title="made")

    return made


def letters(alphabet: str, count: int, seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=count))


def records(names: list[str]) -> str:
    return "".join(f">{name}\n{letters('ACGT', 60, n)}\n" for n, name in enumerate(names))


def registered(files: DatabaseFiles, prefix: Path) -> Database:
    facts = files.inspect(prefix)
    return Database(
        prefix.name,
        facts.type.value,
        str(prefix),
        facts.title,
        facts.sequences,
        facts.letters,
        built=False,
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
        files=facts.files,
    )


def test_ids_are_parsed_where_all_of_them_allow_it(build: Callable[..., DatabaseFacts]) -> None:
    facts = build(records(["a", "b", "gb|U1.1|"]))

    assert facts.has_seqids
    assert not facts.has_taxids
    assert facts.notices == ()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a", "b", "A"], r"ids occur more than once.*\(such as A\)"),
        (["x" * 51, "b"], "an id is longer than 50 characters"),
        (["gnl|foo", "b"], r"an id cannot be read \(.*gnl\|foo"),
        (["", "b"], "a record has no id"),
    ],
)
def test_ids_that_makeblastdb_refuses_are_kept_unparsed_and_it_is_said(
    build: Callable[..., DatabaseFacts], names: list[str], reason: str
) -> None:
    facts = build(records(names))

    assert facts.sequences == len(names)
    assert not facts.has_seqids
    assert re.search(reason, " ".join(facts.notices))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f">p\n{letters('ACDEFGHIKLMNPQRSTVWY', 80)}\n", NUCL, "looks like a protein"),
        (f">n\n{letters('ACGT', 80)}\n", PROT, "looks like a nucleotide"),
        (">a\nACGTACGTACGT*ACGTACGT\n", NUCL, "line 2, column 13"),
        (">a\nMKVLAAGI\nMK-VLA\n", PROT, "line 3, column 3"),
        ("", NUCL, "no sequence"),
        (">a\n\n>b\n", NUCL, "no sequence"),
        ("just words about it\n", NUCL, "not FASTA"),
        ("@r\nACGT\n+\nIIII\n", NUCL, "FASTQ"),
        (b"\x1f\x8b\x08\x00broken", NUCL, "gzip file is"),
        (b"BZh91AY", NUCL, "bzip2"),
    ],
)
def test_what_makeblastdb_would_take_wrongly_is_refused_with_its_place(
    build: Callable[..., DatabaseFacts], text: str | bytes, kind: SequenceType, message: str
) -> None:
    with pytest.raises(CallerMistake, match=message) as caught:
        build(text, kind)

    assert caught.value.code == "database_invalid"
    assert "in.fa" in caught.value.message
    assert caught.value.next_step


def test_line_ends_marks_and_empty_records_are_repaired_and_said(
    build: Callable[..., DatabaseFacts],
) -> None:
    facts = build(b"\xef\xbb\xbf>a\r\nACGTACGTAC\r\n>none\r\n>b\r\nACGTACGTAC\r\n")

    assert (facts.sequences, facts.letters) == (2, 20)
    told = " ".join(facts.notices)
    assert "byte-order mark" in told
    assert "line ends" in told
    assert "line 3, column 1: a record without a sequence" in told


def test_titles_become_ascii_so_that_every_output_format_stays_valid(
    build: Callable[..., DatabaseFacts], blast: Path, tmp_path: Path
) -> None:
    facts = build(f">a protéine β\n{letters('ACGT', 60)}\n")

    done = subprocess.run(
        [blast / "blastdbcmd", "-db", tmp_path / "db" / "made", "-entry", "a", "-outfmt", "%t"],
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"proteine ?\n"
    assert "beyond ASCII" in facts.notices[0]


def test_stops_and_rare_residues_of_proteins_keep_their_places(
    build: Callable[..., DatabaseFacts],
) -> None:
    facts = build(">a\nMKVLAAGIUOXBZJ*MKVLAAGI*\n", PROT)

    assert facts.letters == 24


def test_a_database_can_be_moved_after_it_was_built(
    files: DatabaseFiles, build: Callable[..., DatabaseFacts], tmp_path: Path
) -> None:
    built = build(records(["a", "b"]))

    (tmp_path / "db").rename(tmp_path / "elsewhere")

    assert files.inspect(tmp_path / "elsewhere" / "made") == built


@pytest.mark.parametrize(
    ("name", "sequences", "residues"),
    [("UniVec_Core", 2822, 536_102), ("16SCore", 1787, 142_950)],
)
def test_a_database_of_the_old_format_is_read(
    files: DatabaseFiles, name: str, sequences: int, residues: int
) -> None:
    if not (NCBI_DATA / f"{name}.nin").exists():
        pytest.skip("ncbi-data is not installed")

    facts = files.inspect(NCBI_DATA / name)

    assert (facts.type, facts.sequences, facts.letters) == (NUCL, sequences, residues)
    assert set(facts.files) == {f"{name}.nhr", f"{name}.nin", f"{name}.nsq"}
    assert not facts.has_seqids
    assert files.check(registered(files, NCBI_DATA / name), deep=True) == []


@pytest.fixture(scope="session")
def volumes(blast: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of three volumes."""
    folder = tmp_path_factory.mktemp("volumes")
    fasta = folder / "in.fa"
    fasta.write_text(
        "".join(f">s{n}\n{letters('ACGT', 20_000, n)}\n" for n in range(400)),
    )
    command = [blast / "makeblastdb", "-in", fasta, "-dbtype", "nucl", "-parse_seqids"]
    command += ["-max_file_sz", "1MB", "-out", folder / "many", "-title", "many"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "many"


def test_all_volumes_and_alias_files_are_counted(files: DatabaseFiles, volumes: Path) -> None:
    facts = files.inspect(volumes)

    assert (facts.sequences, facts.letters) == (400, 8_000_000)
    assert facts.has_seqids
    assert {"many.nal", "many.ndb", "many.00.nsq", "many.01.nin", "many.02.nhr"} <= set(facts.files)
    assert set(facts.files) == {p.name for p in volumes.parent.glob("many.*")}


def test_an_alias_of_databases_elsewhere_names_their_files(
    files: DatabaseFiles, volumes: Path, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    alias = tmp_path / "both.nal"
    alias.write_text(f'TITLE both of them\nDBLIST "{volumes}" {sample_databases.nucl}\n')

    facts = files.inspect(tmp_path / "both")

    assert facts.title == "both of them"
    assert facts.sequences == 400 + files.inspect(sample_databases.nucl).sequences
    assert facts.files["both.nal"] == alias.stat().st_size
    assert f"{volumes}.00.nsq" in facts.files
    assert f"{sample_databases.nucl}.nsq" in facts.files


def test_an_alias_is_looked_up_where_blastdb_says(
    blast: Path, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    (tmp_path / "short.nal").write_text(f"TITLE x\nDBLIST {sample_databases.nucl.name}\n")
    environment = {"BLASTDB": f"/nowhere:{sample_databases.nucl.parent}"}

    facts = DatabaseFiles(Toolchain(str(blast)), environment).inspect(tmp_path / "short")

    assert f"{sample_databases.nucl}.nsq" in facts.files


def test_a_filter_list_of_an_alias_belongs_to_the_database(
    files: DatabaseFiles, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    (tmp_path / "some.ids").write_text("fam1_0\nfam2_0\n")
    alias = tmp_path / "some.nal"
    alias.write_text(f"TITLE some\nDBLIST {sample_databases.nucl}\nSEQIDLIST some.ids\n")

    facts = files.inspect(tmp_path / "some")
    (tmp_path / "some.ids").unlink()

    assert facts.sequences == 2
    assert facts.files["some.ids"] == 14
    with pytest.raises(CallerMistake, match=r"names the list some\.ids, which is not there"):
        files.inspect(tmp_path / "some")


@pytest.mark.parametrize(
    ("alias", "message"),
    [
        ("DBLIST nothere\n", r"odd\.nal names the database nothere"),
        ("DBLIST odd\n", r"odd\.nin is missing"),
    ],
)
def test_an_alias_without_its_database_says_which_is_missing(
    files: DatabaseFiles, tmp_path: Path, alias: str, message: str
) -> None:
    (tmp_path / "odd.nal").write_text(alias)

    with pytest.raises(CallerMistake, match=message):
        files.inspect(tmp_path / "odd")


def test_two_types_at_one_prefix_need_a_choice(
    files: DatabaseFiles, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    for source in (sample_databases.nucl, sample_databases.prot):
        for kind in ("nal", "pal"):
            if source.name.endswith("nucl") == (kind == "nal"):
                (tmp_path / f"x.{kind}").write_text(f"TITLE {kind}\nDBLIST {source}\n")

    with pytest.raises(CallerMistake, match="a nucleotide and a protein database"):
        files.inspect(tmp_path / "x")

    assert files.inspect(tmp_path / "x", PROT).type is PROT
    assert files.inspect(tmp_path / "x", NUCL).type is NUCL


@pytest.mark.parametrize(
    ("ending", "advice"),
    [(".nin", "without the ending: {}"), (".fa", "db add NAME FILE"), ("-other", "ls ")],
)
def test_a_path_that_is_no_prefix_is_answered_with_what_to_type(
    files: DatabaseFiles,
    sample_databases: SampleDatabases,
    tmp_path: Path,
    ending: str,
    advice: str,
) -> None:
    path = Path(f"{sample_databases.nucl}{ending}")
    if ending == ".fa":
        path = tmp_path / "x.fa"
        path.write_text(">a\nACGT\n")

    with pytest.raises(CallerMistake, match="There is no BLAST database at") as caught:
        files.inspect(path)

    assert advice.format(sample_databases.nucl) in caught.value.next_step


@pytest.mark.parametrize("path", ["relative/nt", '/data/"nt"'])
def test_a_prefix_is_an_absolute_path_without_quotation_marks(
    files: DatabaseFiles, path: str
) -> None:
    with pytest.raises(CallerMistake, match="not an absolute path"):
        files.inspect(Path(path))


def test_a_path_with_a_blank_is_one_database(
    files: DatabaseFiles, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    folder = tmp_path / "with blank"
    shutil.copytree(sample_databases.nucl.parent, folder)
    prefix = folder / sample_databases.nucl.name

    assert files.inspect(prefix) == files.inspect(sample_databases.nucl)
    assert files.check(registered(files, prefix), deep=True) == []
    assert db_argument(prefix) == f'"{prefix}"'
    assert db_argument("/data/nt") == "/data/nt"


def test_healthy_databases_have_no_problems(
    files: DatabaseFiles, volumes: Path, sample_databases: SampleDatabases
) -> None:
    for prefix in (volumes, sample_databases.nucl, sample_databases.prot):
        assert files.check(registered(files, prefix), deep=True) == []


@pytest.mark.parametrize("change", ["missing", "shorter", "longer"])
def test_each_changed_file_of_each_volume_is_named(
    files: DatabaseFiles, volumes: Path, tmp_path: Path, change: str
) -> None:
    shutil.copytree(volumes.parent, tmp_path / "copy")
    known = registered(files, tmp_path / "copy" / "many")

    for name, size in known.files.items():
        path = tmp_path / "copy" / name
        whole = path.read_bytes()
        match change:
            case "missing":
                path.unlink()
            case "shorter":
                path.write_bytes(whole[: size // 2])
            case "longer":
                path.write_bytes(whole + b"x")
        [problem] = files.check(known)
        path.write_bytes(whole)

        assert problem.file == str(path)
        assert name in problem.message


def test_damage_that_keeps_the_size_is_found_by_a_deep_check(
    files: DatabaseFiles, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    shutil.copytree(sample_databases.nucl.parent, tmp_path / "copy")
    prefix = tmp_path / "copy" / sample_databases.nucl.name
    known = registered(files, prefix)
    headers = Path(f"{prefix}.nhr")
    whole = headers.read_bytes()
    headers.write_bytes(whole[:300] + bytes(300) + whole[600:])

    assert files.check(known) == []
    assert "blastdbcheck says" in files.check(known, deep=True)[0].message


def test_taxids_are_those_the_sequences_carry(
    files: DatabaseFiles, blast: Path, tmp_path: Path
) -> None:
    fasta = tmp_path / "in.fa"
    fasta.write_text(records(["a", "b"]))
    command = [blast / "makeblastdb", "-in", fasta, "-dbtype", "nucl", "-taxid", "9606"]
    subprocess.run([*command, "-out", tmp_path / "human"], check=True, capture_output=True)
    known = registered(files, tmp_path / "human")

    assert files.inspect(tmp_path / "human").has_taxids
    assert files.has_taxid(known, 9606)
    assert not files.has_taxid(known, 10090)


def test_a_database_of_the_old_format_has_no_taxids(files: DatabaseFiles) -> None:
    if not (NCBI_DATA / "UniVec_Core.nin").exists():
        pytest.skip("ncbi-data is not installed")

    assert not files.inspect(NCBI_DATA / "UniVec_Core").has_taxids
    assert not files.has_taxid(registered(files, NCBI_DATA / "UniVec_Core"), 9606)


def test_blast_that_is_not_there_is_named_with_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="makeblastdb is not on the PATH") as caught:
        Toolchain(str(tmp_path)).program("makeblastdb")

    assert caught.value.code == "blast_missing"
    assert "apt-get install ncbi-blast+" in caught.value.next_step
