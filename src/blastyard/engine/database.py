"""BLAST databases as files: building, looking at, and checking them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from blastyard.domain.errors import CallerMistake
from blastyard.domain.program import SequenceType
from blastyard.domain.search import Database
from blastyard.engine import volume
from blastyard.engine.integrity import Problem
from blastyard.engine.makeblastdb import Plan, last_words, make
from blastyard.engine.toolchain import Answer, Command, Toolchain
from blastyard.engine.volume import Layout

_CHECK_TIMEOUT: Final = timedelta(hours=6)
_LOOK_TIMEOUT: Final = timedelta(minutes=5)

_COUNTS: Final = re.compile(r"^\s+([\d,]+) sequences?; ([\d,]+) total ", re.MULTILINE)
_ALL_ERRORS: Final = re.compile(r"Total errors: (\d+)")
_ONE_ERROR: Final = re.compile(r"^\s*(\S.*) / \w+:\s+(.*(?:failed|\[ERROR\]).*)$", re.MULTILINE)
# blastdbcheck asks for human taxonomy, and counts an error where BLAST+'s taxonomy files
# (taxdb) are not installed: that is no fault of the database.
_NO_TAXONOMY: Final = re.compile(
    r"^.* / MetaData:\s+\[ERROR\] caught exception\.\n.*\n.*GetTaxInfo\(\).*\n", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What BLAST+ and the directory say about a database.

    ``files`` maps file names to bytes: all volumes and alias files; a name where the file is
    beside the prefix, an absolute path elsewhere.
    """

    type: SequenceType
    title: str
    sequences: int
    letters: int
    files: dict[str, int]
    has_seqids: bool
    """Whether sequences can be asked for by id."""
    has_taxids: bool
    """Whether some sequence has a taxon, so that ``-taxids`` can be used."""
    notices: tuple[str, ...] = ()
    """Repairs made and oddities kept while building, each a sentence."""


def db_argument(prefix: str | Path) -> str:
    """The value of ``-db`` for one database: BLAST+ takes a blank for the start of the next."""
    return f'"{prefix}"' if " " in str(prefix) else str(prefix)


class DatabaseFiles:
    """Runs BLAST+'s database programs. ``environment`` adds to what they see (``BLASTDB``)."""

    def __init__(self, toolchain: Toolchain, environment: Mapping[str, str] | None = None) -> None:
        self.toolchain = toolchain
        self._environment = dict(environment or {})
        places = self._environment.get("BLASTDB", "").split(":")
        self._search_path = [Path(place) for place in places if place]

    def build(
        self,
        fasta: Path,
        prefix: Path,
        *,
        type: SequenceType,  # noqa: A002
        title: str,
    ) -> DatabaseFacts:
        """Build a database at ``prefix``, in a directory that is the caller's and otherwise empty.

        ``fasta`` may be gzip-compressed. Ids are parsed where all of them allow it.

        Raises ``CallerMistake('database_invalid')`` with file, line and column for what BLAST+
        would drop or misread, ``Misconfigured('blast_missing')``, ``Unavailable('disk_full')``.
        """
        made = make(self.toolchain, Plan(fasta, prefix, type, title), self._environment)
        facts = self.inspect(prefix, type)
        if facts.letters != made.residues:
            raise CallerMistake(
                "database_invalid",
                f"makeblastdb kept {facts.letters:,} letters of {fasta}, which has"
                f" {made.residues:,}.",
                "Report this with the file: a database without some letters would be wrong.",
            )
        return replace(facts, notices=made.notices)

    def inspect(self, prefix: Path, type: SequenceType | None = None) -> DatabaseFacts:  # noqa: A002
        """Look at an existing database: a volume, several, or an alias.

        ``type`` is needed only where a nucleotide and a protein database share the prefix.
        Raises ``CallerMistake('database_invalid')`` naming the file that is missing, cut short or
        damaged.
        """
        kind = _type_at(prefix, type)
        found = volume.layout(prefix, kind, self._search_path)
        if found.problems:
            raise _damaged(prefix, found.problems)
        answer = self._ask(
            "blastdbcmd", prefix, kind, ("-info", "-exact_length"), timeout=_LOOK_TIMEOUT
        )
        counts = _COUNTS.search(answer.out)
        if answer.exit_code != 0 or counts is None:
            raise _damaged(prefix, [Problem(str(prefix), last_words(answer))])
        title = answer.out[: counts.start()].removeprefix("Database: ")
        return DatabaseFacts(
            type=kind,
            title=" ".join(title.split()),
            sequences=int(counts[1].replace(",", "")),
            letters=int(counts[2].replace(",", "")),
            files=_names(found, prefix),
            has_seqids=volume.has_seqids(found.volumes, kind),
            has_taxids=self._has_taxids(prefix, kind),
        )

    def arriving(self, prefix: Path, type: SequenceType | None = None) -> SequenceType | None:  # noqa: A002
        """The type of a database whose files may still be copied; ``None``: it cannot be told."""
        found = volume.types_at(prefix)
        return type or (found[0] if len(found) == 1 else None)

    def changes(self, database: Database) -> list[Problem]:
        """Recorded files that are gone or have another size now; one ``stat`` each."""
        problems = []
        for name, size in database.files.items():
            path = Path(database.path).parent / name
            try:
                now = path.stat().st_size
            except OSError as error:
                problems.append(Problem(str(path), f"{name} cannot be read: {error.strerror}"))
                continue
            if now != size:
                word = "shorter" if now < size else "longer"
                message = (
                    f"{name} is {word} than when it was registered: {now:,} bytes, not {size:,}"
                )
                problems.append(Problem(str(path), message))
        return problems

    def check(self, database: Database, *, deep: bool = False) -> list[Problem]:
        """What is wrong with a registered database; empty when nothing is.

        Compares sizes; with ``deep`` also what each index promises, and lets BLAST+ read every
        sequence, which takes minutes for large databases.
        """
        problems = self.changes(database)
        if problems or not deep:
            return problems
        prefix, kind = Path(database.path), SequenceType(database.type)
        found = volume.layout(prefix, kind, self._search_path)
        if found.problems:
            return found.problems
        if any(" " in str(path) for path in (prefix, *found.volumes)):
            return self._read_all(prefix, kind)  # blastdbcheck takes no such name
        return self._test(prefix, kind)

    def _read_all(self, prefix: Path, kind: SequenceType) -> list[Problem]:
        arguments = ("-entry", "all", "-outfmt", "%l %h %t")
        answer = self._ask("blastdbcmd", prefix, kind, arguments, timeout=_CHECK_TIMEOUT)
        if answer.exit_code == 0:
            return []
        return [Problem(str(prefix), f"reading all sequences failed: {last_words(answer)}")]

    def _test(self, prefix: Path, kind: SequenceType) -> list[Problem]:
        answer = self._ask(
            "blastdbcheck", prefix, kind, ("-full", "-verbosity", "3"), timeout=_CHECK_TIMEOUT
        )
        total = _ALL_ERRORS.search(answer.out)
        if total is None:
            return [Problem(str(prefix), last_words(answer))]
        excused = len(_NO_TAXONOMY.findall(answer.out))
        if int(total[1]) <= excused:
            return []
        told = _ONE_ERROR.findall(_NO_TAXONOMY.sub("", answer.out))
        return [Problem(file, f"blastdbcheck says: {what}") for file, what in told] or [
            Problem(str(prefix), f"blastdbcheck found {int(total[1]) - excused} errors")
        ]

    def has_taxid(self, database: Database, taxid: int) -> bool:
        """Whether a sequence of the database carries exactly this taxid.

        BLAST+ 2.12 knows no taxonomy tree here: a genus or family is never found, only what
        sequences are labelled with. Always false for databases of version 4, which cannot be
        filtered. Raises ``CallerMistake('database_broken')``.
        """
        prefix, kind = Path(database.path), SequenceType(database.type)
        arguments = ("-taxids", str(taxid), "-outfmt", "%o")
        answer = self._ask("blastdbcmd", prefix, kind, arguments, timeout=_LOOK_TIMEOUT)
        if answer.exit_code == 0:
            return bool(answer.out.strip())
        if "Taxonomy" in answer.err:
            return False
        raise CallerMistake(
            "database_broken",
            f"The database {database.name!r} cannot be asked for taxa: {last_words(answer)}.",
            f"Look at it with: blastyard db check {database.name}",
        )

    def _has_taxids(self, prefix: Path, kind: SequenceType) -> bool:
        arguments = ("-tax_info", "-outfmt", "%T")
        answer = self._ask("blastdbcmd", prefix, kind, arguments, timeout=_LOOK_TIMEOUT)
        taxids = [line.strip() for line in answer.out.splitlines()]
        return answer.exit_code == 0 and any(taxid.isdigit() and int(taxid) for taxid in taxids)

    def _ask(
        self,
        program: str,
        prefix: Path,
        kind: SequenceType,
        arguments: tuple[str, ...],
        *,
        timeout: timedelta,
    ) -> Answer:
        with TemporaryDirectory(prefix="blastyard-") as empty:
            what = ("-db", db_argument(prefix), "-dbtype", kind.value, *arguments)
            return self.toolchain.run(
                Command(program, what, Path(empty), timeout, self._environment)
            )


def _type_at(prefix: Path, wanted: SequenceType | None) -> SequenceType:
    """The type of the database at ``prefix``, or what is wrong with the prefix."""
    if not prefix.is_absolute() or '"' in str(prefix):
        raise CallerMistake(
            "database_invalid",
            f"{str(prefix)!r} is not an absolute path to a database.",
            "Give the whole path, such as /data/blast/nt, without quotation marks.",
        )
    present = volume.types_at(prefix)
    if wanted is not None and wanted in present:
        return wanted
    if len(present) == 1 and wanted is None:
        return present[0]
    if present and wanted is None:
        raise CallerMistake(
            "database_invalid",
            f"At {prefix} stand a nucleotide and a protein database.",
            "Say which one is meant: --type nucl or --type prot.",
        )
    if present:
        raise CallerMistake(
            "database_invalid",
            f"The database at {prefix} is of type {present[0].value}, not {wanted}.",
            "Leave --type out, or name another database.",
        )
    raise _nothing_at(prefix)


def _nothing_at(prefix: Path) -> CallerMistake:
    message = f"There is no BLAST database at {prefix}."
    if prefix.is_file() and volume.types_at(prefix.with_suffix("")):
        next_step = f"Give the path without the ending: {prefix.with_suffix('')}"
    elif prefix.is_file():
        next_step = "To build a database of a FASTA file, use: db add NAME FILE --type nucl|prot"
    else:
        next_step = f"Look at what is there: ls {prefix.parent}"
    return CallerMistake("database_invalid", message, next_step)


def _damaged(prefix: Path, problems: list[Problem]) -> CallerMistake:
    told = "; ".join(problem.message for problem in problems[:3])
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return CallerMistake(
        "database_invalid",
        f"The database at {prefix} is damaged or incomplete: {told}{more}.",
        "Copy or download its files again; if they are still being copied, wait for the end.",
    )


def _names(found: Layout, prefix: Path) -> dict[str, int]:
    return {
        path.name if path.parent == prefix.parent else str(path.absolute()): size
        for path, size in found.files.items()
    }
