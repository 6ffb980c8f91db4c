"""What a database must be able to do for :class:`~blastyard.store.sql.SqlSearchStore`.

Obligations of an implementer:

* ``reading`` gives a connection whose statements each see one committed state.
* ``writing`` gives a transaction that is committed at the end of the block, or rolled back when the
  block raises. Rows read in it with a lock stay as they are until then; other rows may change
  between two statements, unless the database has but one writer at a time.
* A write that meets a unique value of a transaction that was committed meanwhile raises
  :class:`Taken`; whoever asks again finds what is there.
* Errors leave as ``Unavailable``, or as ``Misconfigured`` where they would not go away. After
  either, the commit may have happened.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import sqlalchemy as sa


class Taken(Exception):
    """Somebody else has just stored something under the same key."""


class SqlEngine(Protocol):
    """Transactions on one database. See the module docstring for what an implementer owes."""

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """For questions."""
        ...

    def writing(self, *, flush: bool = False) -> AbstractContextManager[sa.Connection]:
        """For changes; with ``flush`` the commit is safe from a power cut when the block ends."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
