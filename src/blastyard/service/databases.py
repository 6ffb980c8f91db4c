"""The databases that searches may name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from blastyard.domain.errors import CallerMistake, Conflict, NotFound, Unavailable
from blastyard.domain.program import Program, SequenceType
from blastyard.domain.search import Database, DatabaseState
from blastyard.engine.database import DatabaseFacts, DatabaseFiles
from blastyard.engine.integrity import Problem
from blastyard.engine.shelf import Shelf
from blastyard.store.port import SearchStore

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def require_suitable(program: Program, database: Database) -> None:
    """Raise ``CallerMistake('database_wrong_type')`` when they do not go together."""
    if database.type == program.database_type:
        return
    needed, present = program.database_type.noun, SequenceType(database.type).noun
    fitting = sorted(
        (other for other in Program if other.database_type == database.type),
        key=lambda other: other.query_type != program.query_type,
    )
    told = " or ".join(f"{other} ({other.query_type.noun} query)" for other in fitting)
    raise CallerMistake(
        "database_wrong_type",
        f"{program} needs a {needed} database; {database.name!r} is a {present} database.",
        f"Use {told}, or choose a {needed} database.",
    )


class Databases:
    """Registers, checks and removes databases.

    ``root`` holds those that blastyard builds; ``now`` is the wall clock.
    """

    def __init__(
        self,
        store: SearchStore,
        files: DatabaseFiles,
        root: Path,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._files = files
        self._shelf = Shelf(root, self._is_registered)
        self._now = now

    def add_fasta(
        self,
        name: str,
        fasta: Path,
        type: SequenceType,  # noqa: A002
        title: str = "",
    ) -> tuple[Database, tuple[str, ...]]:
        """Build and register a database; returns it, and what to tell the user.

        Interrupted or killed, nothing is registered, and what was written goes at once or at the
        next add. Raises ``Conflict('database_exists')``, ``CallerMistake('database_invalid')``.
        """
        self._require_free(name)
        _require_printable(title)
        with self._shelf.nest() as nest:
            facts = self._files.build(fasta, nest.path / name, type=type, title=title or name)
            self._shelf.settle(nest, name)
            database = replace(
                self._database(name, nest.path / name, facts),
                built=True,
                blast_version=self._files.toolchain.version(),
            )
            try:
                self._store.add_database(database)
            except Unavailable:
                nest.leave()
                raise
            nest.finish()
        return database, facts.notices

    def add_path(
        self,
        name: str,
        prefix: Path,
        type: SequenceType | None = None,  # noqa: A002
        *,
        copying: bool = False,
    ) -> Database:
        """Register the database that stands at the absolute ``prefix``.

        With ``copying`` it may be incomplete: then it is COPYING until :meth:`refresh` finds it
        whole. ``type`` is needed where the files do not tell. Raises
        ``Conflict('database_exists')``, ``CallerMistake('database_invalid')``.
        """
        self._require_free(name)
        try:
            database = self._database(name, prefix, self._files.inspect(prefix, type))
        except CallerMistake:
            if not copying or not prefix.is_absolute():
                raise
            database = self._arriving(name, prefix, type)
        self._store.add_database(database)
        return database

    def list(self) -> Sequence[Database]:
        """All databases, by name."""
        return self._store.list_databases()

    def get(self, name: str) -> Database:
        """One database. Raises ``NotFound('database_unknown')``."""
        return self._store.get_database(name)

    def ready(self, name: str) -> Database:
        """The database, fit to be searched, or COPYING: then the search has to wait.

        Looks at the size of each file, no further. Raises ``NotFound('database_unknown')``, and
        ``CallerMistake('database_broken')`` naming the file.
        """
        database = self._store.get_database(name)
        if database.state is DatabaseState.COPYING:
            return database
        problems = self._files.changes(database)
        if problems or database.state is DatabaseState.BROKEN:
            raise _broken(database, problems)
        return database

    def refresh(self, name: str) -> Database:
        """Look at a database that is not READY again; READY once it is whole.

        One being copied must also look the same twice: files that BLAST+ can do without may still
        be missing at the first look. Raises ``NotFound('database_unknown')``.
        """
        database = self._store.get_database(name)
        if database.state is DatabaseState.READY:
            return database
        try:
            facts = self._files.inspect(Path(database.path), SequenceType(database.type))
        except CallerMistake:
            return database
        settled = database.state is DatabaseState.BROKEN or database.files == facts.files
        seen = replace(
            self._database(name, Path(database.path), facts),
            built=database.built,
            created_at=database.created_at,
            blast_version=database.blast_version,
            state=DatabaseState.READY if settled else DatabaseState.COPYING,
        )
        self._store.update_database(seen)
        return seen

    def check(self, name: str, *, deep: bool = False) -> Sequence[Problem]:
        """What is wrong with a database; empty when nothing is. Its state follows.

        ``deep`` reads every sequence, and so does the check of a database known as BROKEN.
        Raises ``NotFound('database_unknown')``.
        """
        database = self._store.get_database(name)
        if database.state is DatabaseState.COPYING:
            return ()
        deep = deep or database.state is DatabaseState.BROKEN
        problems = self._files.check(database, deep=deep)
        state = DatabaseState.BROKEN if problems else DatabaseState.READY
        if state is not database.state:
            self._store.update_database(replace(database, state=state))
        return problems

    def remove(self, name: str) -> None:
        """Forget a database, and remove its files when blastyard built them.

        Raises ``NotFound('database_unknown')`` and ``Conflict('database_in_use')``.
        """
        database = self._store.get_database(name)
        if not database.built:
            self._store.remove_database(name)
            return
        with self._shelf.leaving(Path(database.path).parent):
            self._store.remove_database(name)

    def _require_free(self, name: str) -> None:
        """The name can be given to a new database, as far as can be told before the work."""
        if not _NAME.fullmatch(name):
            raise CallerMistake(
                "database_invalid",
                f"{name!r} cannot be the name of a database.",
                "Use 1 to 63 letters, digits, dots, underscores and hyphens, beginning with a"
                " letter or digit, such as nt-2024.",
            )
        try:
            self._store.get_database(name)
        except NotFound:
            return
        raise Conflict(
            "database_exists",
            f"A database called {name!r} is registered already.",
            f"Choose another name, or remove it first: blastyard db remove {name}",
        )

    def _is_registered(self, directory: Path) -> bool:
        return any(
            Path(database.path).parent.resolve() == directory
            for database in self._store.list_databases()
        )

    def _database(self, name: str, prefix: Path, facts: DatabaseFacts) -> Database:
        return Database(
            name=name,
            type=facts.type.value,
            path=str(prefix),
            title=facts.title,
            sequences=facts.sequences,
            letters=facts.letters,
            built=False,
            created_at=self._now(),
            files=facts.files,
        )

    def _arriving(
        self,
        name: str,
        prefix: Path,
        type: SequenceType | None,  # noqa: A002
    ) -> Database:
        kind = self._files.arriving(prefix, type)
        if kind is None:
            raise CallerMistake(
                "database_invalid",
                f"The files at {prefix} do not tell yet whether this is a nucleotide or a protein"
                " database.",
                "Say so: --type nucl or --type prot.",
            )
        facts = DatabaseFacts(kind, "", 0, 0, {}, has_seqids=False, has_taxids=False)
        return replace(self._database(name, prefix, facts), state=DatabaseState.COPYING)


def _require_printable(title: str) -> None:
    if not title.isprintable():
        message = f"{title!r} cannot be the title of a database."
        step = "Leave out line ends and control characters, and write it in UTF-8."
        raise CallerMistake("database_invalid", message, step)


def _broken(database: Database, problems: Sequence[Problem]) -> CallerMistake:
    told = "; ".join(problem.message for problem in problems[:3])
    told = told or "the last check found it damaged"
    return CallerMistake(
        "database_broken",
        f"The database {database.name!r} cannot be searched: {told}.",
        f"See: blastyard db check {database.name}. Restore its files, or, if they were replaced on"
        f" purpose, remove and add it again.",
    )
