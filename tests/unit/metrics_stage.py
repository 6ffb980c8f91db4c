"""Gates that are observed, and metrics as numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from admission_stage import (
    ME,
    TIMINGS,
    Yard,
    inside,
)

from blastyard.admission import observer as told
from blastyard.admission.census import NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.ledger import Policy, Submitter
from blastyard.admission.observer import Event, Looked
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.testing.faulty import Fault, FaultyDocumentStore, no_fault

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()


def watched(
    yard: Yard,
    observer: told.Observer,
    name: str = ME,
    plan: Callable[[str, str], Fault] = no_fault,
) -> Gate:
    """The gate of one more process of the yard, observed."""
    around = Surroundings(
        yard.clock.monotonic,
        lambda submitter: submitter.name in yard.gone,
        NothingForeign(),
        lambda: "uid-watched",
        tuple,
        observer=observer,
    )
    documents = FaultyDocumentStore(yard.documents, plan)
    settings = GateSettings(Policy(ceiling=1), TIMINGS)
    gate = Gate(documents, Submitter(name, "serve", 1000), settings, around)
    gate.beat()
    return gate


def observed(plan: Callable[[str, str], Fault] = no_fault) -> tuple[Yard, Gate, list[Event]]:
    """A yard, a gate of it, and what was told of it, looks apart."""
    yard = Yard()
    events: list[Event] = []

    def keep(event: Event, /) -> None:
        if not isinstance(event, Looked):
            events.append(event)

    return yard, watched(yard, keep, plan=plan), events


def values(text: bytes) -> dict[str, float]:
    """Samples by name and labels, as they stand in the text."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def reserve(gate: Gate, search: str, attempt: int = 1) -> Granted | Waiting | Refused:
    stay = inside(gate, search, attempt)
    try:
        return stay.reserve(Attempt(search, attempt, gate.me.name))
    finally:
        gate.leave(stay)
