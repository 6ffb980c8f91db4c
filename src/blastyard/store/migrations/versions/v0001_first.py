"""Searches, their tags and events, databases, and the documents of admission."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None

_number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_instant = sa.DateTime(timezone=True)
_word = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make every table."""
    _make_searches()
    _make_tags()
    _make_events()
    op.create_table(
        "databases",
        sa.Column("name", _word, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "documents",
        sa.Column("version", _number, primary_key=True, autoincrement=True),
        sa.Column("name", _word, nullable=False, unique=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("stamped_at", _instant, nullable=False),
        sqlite_autoincrement=True,
    )


def _make_searches() -> None:
    op.create_table(
        "searches",
        sa.Column("sequence", _number, primary_key=True, autoincrement=True),
        sa.Column("id", _word, nullable=False, unique=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("state", _word, nullable=False),
        sa.Column("live", sa.Boolean, nullable=False),
        sa.Column("runner", _word, nullable=False),
        sa.Column("user", _word, nullable=False),
        sa.Column("key", _word),
        sa.Column("database", _word, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("searches_by_key", "searches", ["user", "key"], unique=True)
    op.create_index("searches_by_state", "searches", ["state", "sequence"])
    op.create_index("searches_by_user", "searches", ["user", "sequence"])
    op.create_index("searches_by_database", "searches", ["database", "sequence", "live"])
    op.create_index("searches_live", "searches", ["live", "sequence", "runner"])
    op.create_index(
        "searches_waiting",
        "searches",
        ["runner", "state", "user", sa.text("level DESC"), "sequence"],
    )


def _make_tags() -> None:
    op.create_table(
        "search_tags",
        sa.Column("tag", _word, primary_key=True),
        _search(primary_key=True),
    )
    op.create_index("search_tags_by_search", "search_tags", ["sequence"])


def _make_events() -> None:
    op.create_table(
        "search_events",
        sa.Column("number", _number, primary_key=True, autoincrement=True),
        _search(nullable=False),
        sa.Column("at", _instant, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("search_events_by_search", "search_events", ["sequence", "number"])


def _search(*, primary_key: bool = False, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(
        "sequence",
        _number,
        sa.ForeignKey("searches.sequence", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=nullable,
        autoincrement=False,
    )
