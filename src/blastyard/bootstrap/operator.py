"""What an operator's commands work with in a shared namespace: no store, no data directory.

An operator is no submitter: nobody waits for it, and nothing is taken for its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from blastyard.admission.gate import Gate
from blastyard.admission.kubernetes.lifetime import lifetimes
from blastyard.admission.ledger import Policy
from blastyard.admission.port import DocumentStore
from blastyard.admission.tending import Tending
from blastyard.bootstrap.cluster import assembled, connect
from blastyard.bootstrap.gate import this_process
from blastyard.domain.clock import Clock
from blastyard.settings import Settings


@dataclass(frozen=True, slots=True)
class Operator:
    """A gate for looking and deciding. ``close`` lets go of the connection."""

    gate: Gate
    documents: DocumentStore
    clock: Clock
    seed: Policy
    """What a ledger that nobody remembers begins with here."""
    namespace: str
    context: str
    lifetimes: Callable[[], tuple[timedelta, ...]]
    """How long the searches lasted that ended last."""
    tend: Tending
    """Keeps the namespace in order at once: what needs a hand gets it in the first call."""

    def close(self) -> None:
        """Let go of threads and connections."""
        self.documents.close()


def open_operator(settings: Settings, *, follows: bool = False) -> Operator:
    """The gate of the namespace; ``follows``: what is asked ``lately`` comes from a watch.

    Raises ``Misconfigured`` when the settings cannot mean a cluster; asks it nothing yet.
    """
    connection = connect(settings)
    # of the kind that has no store: any other would make itself a data directory
    made = assembled(connection, settings, this_process("exec"))
    if follows:
        made.informer.start()
    opened = made.opened
    return Operator(
        opened.gate,
        opened.documents,
        opened.clock,
        Policy(ceiling=settings.max_run_concurrency),
        connection.target.namespace,
        connection.target.context,
        lambda: lifetimes(connection.client),
        Tending(opened.gate, lambda: uuid.uuid4().hex[:12], patience=0.0),
    )
