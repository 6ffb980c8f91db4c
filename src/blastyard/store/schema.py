"""The tables, and the database's clock.

What SQL is asked about has a column of its own; the rest of a search is one JSON text (see
:mod:`blastyard.store.row`), so that a new field needs no migration. The table ``documents`` belongs
to :mod:`blastyard.admission.sql` and stands here because one file has one schema.

What differs between databases is in this module alone: the clock, how it is stored, and what a
text may be that is looked for.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from blastyard import sqlite

metadata: Final = sa.MetaData()


class Instant(sa.types.TypeDecorator[datetime]):
    """An aware datetime in UTC, also where the database keeps no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Stored as UTC; a naive value is a fault of the program."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("an instant without a time zone")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Read as UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Word(sa.types.TypeDecorator[str]):
    """A text that is compared and sorted letter by letter, whatever the language of the database.

    PostgreSQL takes no text with a NUL in it, and none of more than 2,704 bytes into an index. What
    it would not take is stored, and looked for, as its digest; nothing else looks like one.
    """

    impl = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """As it is in SQLite; elsewhere, too, unless it is odd."""
        if value is None or dialect.name == "sqlite" or not _is_odd(value):
            return value
        return _DIGEST + hashlib.sha256(value.encode()).hexdigest()


_DIGEST: Final = "\x01sha256:"
_LONGEST: Final = 300
"""Characters, of four bytes at most: two such texts fit into an index."""


def _is_odd(value: str) -> bool:
    return len(value) > _LONGEST or "\0" in value or value.startswith(_DIGEST)


class StoreNow(FunctionElement[datetime]):
    """The database's own clock at this moment, whatever the transaction began with."""

    type = Instant()
    inherit_cache = True


@compiles(StoreNow)
def _now_elsewhere(element: StoreNow, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ARG001
    return "clock_timestamp()"


@compiles(StoreNow, "sqlite")
def _now_in_sqlite(element: StoreNow, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ARG001
    return sqlite.NOW


Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""64 bits everywhere; SQLite counts up only what is called INTEGER."""

searches: Final = sa.Table(
    "searches",
    metadata,
    sa.Column("sequence", Number, primary_key=True, autoincrement=True),
    sa.Column("id", Word, nullable=False, unique=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("state", Word, nullable=False),
    sa.Column("live", sa.Boolean, nullable=False),
    sa.Column("runner", Word, nullable=False),
    sa.Column("user", Word, nullable=False),
    sa.Column("key", Word),
    sa.Column("database", Word, nullable=False),
    sa.Column("level", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("searches_by_key", searches.c.user, searches.c.key, unique=True)
sa.Index("searches_by_state", searches.c.state, searches.c.sequence)
sa.Index("searches_by_user", searches.c.user, searches.c.sequence)
sa.Index("searches_by_database", searches.c.database, searches.c.sequence, searches.c.live)
sa.Index("searches_live", searches.c.live, searches.c.sequence, searches.c.runner)
sa.Index(
    "searches_waiting",
    searches.c.runner,
    searches.c.state,
    searches.c.user,
    searches.c.level.desc(),
    searches.c.sequence,
)

tags: Final = sa.Table(
    "search_tags",
    metadata,
    sa.Column("tag", Word, primary_key=True),
    sa.Column(
        "sequence",
        Number,
        sa.ForeignKey(searches.c.sequence, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
)
sa.Index("search_tags_by_search", tags.c.sequence)

events: Final = sa.Table(
    "search_events",
    metadata,
    sa.Column("number", Number, primary_key=True, autoincrement=True),
    sa.Column(
        "sequence", Number, sa.ForeignKey(searches.c.sequence, ondelete="CASCADE"), nullable=False
    ),
    sa.Column("at", Instant, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("search_events_by_search", events.c.sequence, events.c.number)

databases: Final = sa.Table(
    "databases",
    metadata,
    sa.Column("name", Word, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

documents: Final = sa.Table(
    "documents",
    metadata,
    sa.Column("version", Number, primary_key=True, autoincrement=True),
    sa.Column("name", Word, nullable=False, unique=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("stamped_at", Instant, nullable=False),
    sqlite_autoincrement=True,
)
