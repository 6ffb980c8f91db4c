"""Wrong rules of markers, of lost ledgers, and of what dead submitters leave on a cluster."""

# ruff: noqa: ARG005  (a wrong rule ignores what the right one looks at)
from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from blastyard.admission.census import Census, MarkerKind
from blastyard.admission.ledger import Ledger
from blastyard.admission.marking import Plan, plan
from blastyard.testing.cluster.mutants import cluster_mutant as _mutant
from blastyard.testing.cluster.mutants import nothing as _nothing

# -- markers ---------------------------------------------------------------------------------------

_mutant(
    "no stand-in before the command",
    "peers see a reserved slot only when a sweep has shown it",
    "admission.stay:Stay._show",
    lambda _: _nothing,
)
_mutant(
    "submit job before the finalizer",
    "a stand-in that is half up is not counted by peers",
    "admission.marking:apps_of",
    lambda right: lambda kind: tuple(reversed(right(kind))),
)
_mutant(
    "markers say little",
    "a marker names its search, and neither whose nor of which family it is",
    "admission.kubernetes.marker_job:_notes",
    lambda right: (
        lambda marker: {
            name: text for name, text in right(marker).items() if name == "blastyard/id"
        }
    ),
)


def _without_parents(right: Any) -> Any:
    def planned(ledger: Ledger, *rest: Any) -> Plan:
        claims = [hold.ticket for hold in ledger.holds.values()]
        parents = {ticket.family for ticket in (*claims, *ledger.tickets.values())}
        parts = {name: hold for name, hold in ledger.holds.items() if name not in parents}
        found: Plan = right(msgspec.structs.replace(ledger, holds=parts), *rest)
        return found

    return planned


_mutant(
    "a parent is shown by its parts",
    "a search that is split has no stand-in while one of its parts has a marker of its own",
    "admission.marking:plan",
    _without_parents,
)
_mutant(
    "no companions",
    "nothing is put beside a finalizer, which peers take for a phantom after a while",
    "admission.marking:apps_of",
    lambda right: lambda kind: () if kind is MarkerKind.COMPANION else right(kind),
)
_mutant(
    "markers not extended",
    "a marker ends by itself, however long its search goes on",
    "admission.marking:_extended",
    lambda _: lambda kept, now, timings: [],
)
_mutant(
    "markers never swept",
    "markers of searches that have ended stay until they end by themselves",
    "admission.marking:_superfluous",
    lambda _: lambda ledger, census, kept, waiting: [],
)
_mutant(
    "swept while claims are collected",
    "markers are taken down on a ledger that does not know its holds yet",
    "admission.marking:plan",
    lambda right: (
        lambda ledger, *rest: right(msgspec.structs.replace(ledger, restored=None), *rest)
    ),
)


def _ledger_first(self: Any) -> tuple[Plan, str]:
    ledger, now = self._record.ledger()
    census = self._census.read()
    if ledger is None:
        return Plan(), ""
    return plan(ledger, census, now, self._record.timings), ""


_mutant(
    "ledger before list",
    "a marker that was made between the two reads is taken for one that nobody needs",
    "admission.markers:Marking._plan",
    lambda _: _ledger_first,
)


def _unheard(right: Any) -> Any:
    def restore(self: Any) -> Ledger:
        kept = self._around
        self._around = replace(kept, census=_NoMarkers(kept.census))
        try:
            return right(self)  # type: ignore[no-any-return]
        finally:
            self._around = kept

    return restore


class _NoMarkers:
    """A census without the markers in it."""

    def __init__(self, census: Any) -> None:
        self._census = census

    def read(self, *, urgent: bool = False) -> Census:
        census: Census = self._census.read(urgent=urgent)
        return replace(census, markers=())

    def glance(self) -> Census:
        census: Census = self._census.glance()
        return replace(census, markers=())


_mutant(
    "markers not consulted",
    "a lost ledger is made whole without the claims that markers carry",
    "admission.outlook:Outlook._restore",
    _unheard,
)
_mutant(
    "nobody is waited for",
    "a lost ledger is whole as soon as one submitter has made its claims",
    "admission.restoration:restore",
    lambda right: (
        lambda ledger, me, claims, known, *rest: right(
            ledger, me, claims, replace(known, submitters={}, missing=frozenset()), *rest
        )
    ),
)
_mutant(
    "markers make nobody known",
    "a lost ledger is whole though a submitter is missing that only its markers name",
    "admission.restoration:restore",
    lambda right: (
        lambda ledger, me, claims, known, *rest: right(
            ledger, me, claims, replace(known, missing=frozenset()), *rest
        )
    ),
)
_mutant(
    "cancel unnoticed",
    "a companion that a peer has deleted is just put again",
    "admission.marking:_is_lasting",
    lambda _: lambda hold, kind: False,
)
_mutant(
    "markers counted",
    "our own markers are taken for searches",
    "admission.kubernetes.marker_job:read",
    lambda _: lambda labels, annotations: None,
)

# -- who is left -----------------------------------------------------------------------------------

_mutant(
    "tended by nobody",
    "what dead commands leave is nobody's business",
    "admission.tending:Tending._clear_silent",
    lambda _: _nothing,
)
_mutant(
    "failed for ever",
    "the slot of a failed command is never free again",
    "admission.tending:Tending._clear_failed",
    lambda _: _nothing,
)
_mutant(
    "heir of any installation",
    "a service hands its searches over to one that cannot see them",
    "service.handover:Handover._heir",
    lambda _: _any_service,
)


def _any_service(self: Any) -> str:
    for name, seen in self._gate.submitters().items():
        if seen.submitter.kind == "serve" and name != self._gate.me.name:
            return str(name)
    return ""
