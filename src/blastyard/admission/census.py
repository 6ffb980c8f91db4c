"""What runs, whoever started it: the union of the ledger's holds and what was observed.

Counting is by identity. A search that has a hold and is also seen running counts once; one that is
seen without a hold counts too; one whose hold nobody can see yet counts as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from blastyard.admission.ledger import Hold, HoldState, Ledger, families


@dataclass(frozen=True, slots=True)
class Census:
    """The families observed running. Only a fresh and complete observation becomes a census."""

    families: frozenset[str] = frozenset()


class CensusReader(Protocol):
    """Observes what runs. Raises ``Unavailable`` rather than answer in part."""

    def read(self) -> Census:
        """A fresh and complete census."""
        ...


class NothingForeign:
    """The census of a machine where everything passes through the ledger."""

    def read(self) -> Census:
        return Census()


def occupied(holds: Mapping[str, Hold], census: Census) -> frozenset[str]:
    """The run slots in use, each named by its family."""
    return families(holds) | census.families


def room(ledger: Ledger, census: Census) -> int:
    """How many more searches may start; 0 also when more run than the ceiling allows."""
    return max(0, ledger.policy.ceiling - len(occupied(ledger.holds, census)))


def room_to_resume(ledger: Ledger, census: Census, search_id: str) -> bool:
    """Whether a reserved hold may still be submitted, counted anew.

    While it was reserved and nothing of it ran, somebody else may have started, or the ceiling may
    have been lowered: it gives way to everything that runs, to all older reservations, and to
    everything seen that no hold covers.
    """
    hold = ledger.holds[search_id]
    before = {
        name: other
        for name, other in ledger.holds.items()
        if name != search_id and (other.state is HoldState.SUBMITTED or other.fence < hold.fence)
    }
    uncovered = census.families - families(ledger.holds)
    return 1 + len(families(before) | uncovered) <= ledger.policy.ceiling
