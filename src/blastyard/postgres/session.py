"""One connection to a PostgreSQL server, set up the same way whoever opens it.

What a caller may rely on: statements are ended after a while by the server, and where the server
itself has stopped, by us; a commit that was answered is on the server's disk, whatever is usual
there; instants come in UTC. Connections must not be shared with a forked child.
"""

from __future__ import annotations

import select
from datetime import timedelta
from typing import Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from blastyard.domain.errors import Misconfigured
from blastyard.postgres.address import Address

T = TypeVar("T")

PATIENCE: Final = timedelta(seconds=5)
"""How long a statement waits for another's lock before the store counts as unavailable."""
LONGEST: Final = timedelta(seconds=20)
"""How long a statement of the search store may take, locks and all."""

_OLDEST: Final = 120_000
_WAIT_SECONDS: Final = 0.1  # psycopg's own: how soon Ctrl-C is noticed

# jit: compiling takes longer than any statement of ours. plan_cache_mode: how a list is best found
# depends on what is asked for. synchronous_commit: a commit that was answered and lost would have
# its version numbers given out again, to others.
_SET_UP: Final = """
    SELECT set_config('timezone', 'UTC', false),
        set_config('datestyle', 'ISO', false),
        set_config('jit', 'off', false),
        set_config('plan_cache_mode', 'force_custom_plan', false),
        set_config('default_transaction_isolation', 'read committed', false),
        set_config('lock_timeout', %s, false),
        set_config('statement_timeout', %s, false),
        set_config('idle_in_transaction_session_timeout', %s, false),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""


class Session(psycopg.Connection[tuple[object, ...]]):
    """A connection that is never waited on for ever."""

    answer_seconds = (LONGEST + PATIENCE).total_seconds()
    """Longer than the server allows itself: this is for a server that stands still."""
    stalled = False
    """The server did not answer in that time; the connection is closed."""

    def wait(
        self, gen: PQGen[T], interval: float = _WAIT_SECONDS, timeout: float | None = None
    ) -> T:
        """As psycopg's, but never without a limit."""
        try:
            return super().wait(gen, interval, self.answer_seconds if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status is TransactionStatus.ACTIVE:  # still no answer
                self.stalled = True
                self.pgconn.finish()
            raise


def connect(
    address: Address, patience: timedelta = PATIENCE, *, longest: timedelta = LONGEST
) -> Session:
    """Open a connection, in autocommit mode, for use by any thread (one at a time).

    A statement waits for a lock up to ``patience``, and takes up to ``longest``; a server that says
    nothing for both of them together is given up.

    Raises ``psycopg.Error``, and ``Misconfigured`` for a server that cannot hold our data.
    """
    session = Session.connect(address.conninfo, autocommit=True)
    try:
        session.answer_seconds = (longest + patience).total_seconds()
        _check(session, address)
        end = _milliseconds(longest)
        session.execute(_SET_UP, (_milliseconds(patience), end, end), prepare=False)
    except BaseException:
        session.close()
        raise
    return session


def is_silent(session: Session) -> bool:
    """Whether nothing has come on an idle connection.

    What comes there is the server's farewell, or the end of the stream: so a server that restarted
    is noticed without asking it anything.
    """
    if session.closed:
        return False
    poll = select.poll()
    poll.register(session.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


def _check(session: Session, address: Address) -> None:
    if session.info.server_version < _OLDEST:
        raise Misconfigured(
            "settings_invalid",
            f"{address} is of version {session.info.server_version // 10_000}, which is too old.",
            "Use a server of version 12 or newer.",
        )
    encoding = session.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise Misconfigured(
            "settings_invalid",
            f"{address} has the encoding {encoding}, which cannot hold every text.",
            "Make a database for blastyard: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
        )


def _milliseconds(span: timedelta) -> str:
    return str(max(1, span // timedelta(milliseconds=1)))
