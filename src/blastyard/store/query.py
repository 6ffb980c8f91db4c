"""The questions that are asked of the table of searches."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from blastyard.domain.job import State
from blastyard.store import row
from blastyard.store.port import Filter
from blastyard.store.schema import StoreNow, events, searches, tags

Rows = sa.Select[int, int, str]

_columns: Final = searches.c
_all: Final[Rows] = sa.select(*row.SEARCH)

COUNTS: Final = sa.select(_columns.state, sa.func.count().label("number")).group_by(_columns.state)

RUNNERS: Final = sa.select(_columns.runner).distinct().where(_columns.live.is_(sa.true()))


BY_ID: Final[Rows] = _all.where(_columns.id == sa.bindparam("id"))
"""The search with this id. What has no choices is built once: that costs more than running it."""


def by_key(user: str, key: str) -> Rows:
    """The search of this user with this idempotency key."""
    return _all.where(_columns.user == user, _columns.key == key)


_has_id = _columns.id == sa.bindparam("id")
_has_key = sa.and_(_columns.user == sa.bindparam("user"), _columns.key == sa.bindparam("key"))

SAME: Final[Rows] = (
    _all.where(sa.or_(_has_id, _has_key)).order_by(sa.case((_has_id, 0), else_=1)).limit(1)
)
"""What is stored under the id of a new search, or under its user and key; no key is no one's."""


def starting_with(prefix: str) -> sa.Select[str]:
    """Up to two ids that start with ``prefix``."""
    first_beyond = prefix + "\U0010ffff"
    inside = sa.and_(_columns.id >= prefix, _columns.id < first_beyond)
    return sa.select(_columns.id).where(inside).order_by(_columns.id).limit(2)


def listed(wanted: Filter) -> Rows:
    """What a filter wants, newest first."""
    rows = _all.order_by(_columns.sequence.desc()).limit(wanted.limit)
    if wanted.states:
        rows = rows.where(_columns.state.in_(sorted(wanted.states)))
    if wanted.user is not None:
        rows = rows.where(_columns.user == wanted.user)
    if wanted.database is not None:
        rows = rows.where(_columns.database == wanted.database)
    if wanted.ids:
        rows = rows.where(_columns.id.in_(wanted.ids))
    if wanted.before is not None:
        rows = rows.where(_columns.sequence < wanted.before)
    if wanted.tag is not None:
        tagged = sa.select(tags.c.sequence).where(tags.c.tag == wanted.tag)
        rows = rows.where(_columns.sequence.in_(tagged))
    return rows


def live(runner: str | None, limit: int | None) -> Rows:
    """Searches that have not ended, oldest first."""
    rows = _all.where(_columns.live.is_(sa.true())).order_by(_columns.sequence)
    if runner is not None:
        rows = rows.where(_columns.runner == runner)
    return rows if limit is None else rows.limit(limit)


def waiting(runner: str, per_user: int) -> Rows:
    """Of each user the ``per_user`` first of the queued ones, by priority and arrival."""
    order = (_columns.level.desc(), _columns.sequence)
    place = sa.func.row_number().over(partition_by=_columns.user, order_by=order)
    ranked = (
        sa.select(_columns.sequence, place.label("place"))
        .where(_columns.runner == runner, _columns.state == State.QUEUED.value)
        .subquery()
    )
    return (
        _all.join(ranked, ranked.c.sequence == _columns.sequence)
        .where(ranked.c.place <= per_user)
        .order_by(*order)
    )


def using(database: str) -> sa.Select[str]:
    """The ids of up to three searches that have not ended and name this database."""
    named = sa.and_(_columns.database == database, _columns.live.is_(sa.true()))
    return sa.select(_columns.id).where(named).order_by(_columns.sequence).limit(3)


NOW: Final = sa.select(StoreNow())
"""The database's clock."""

NEW: Final = searches.insert().returning(_columns.sequence)
"""Add a search."""

EVENTS: Final = (
    sa.select(*row.EVENT)
    .join(searches, searches.c.sequence == events.c.sequence)
    .where(_columns.id == sa.bindparam("id"))
    .order_by(events.c.number)
)
"""The events of the search with this id, oldest first; there is always one."""

OVER: Final = searches.update().where(
    _columns.id == sa.bindparam("same_id"), _columns.version == sa.bindparam("same_version")
)
"""Write the other parameters over the row that still is at that version."""

EVENT: Final = events.insert().values(at=StoreNow())
"""Append an event, stamped by the database."""
