"""Wrong rules of who is waited for: programs that poll, and a head that learns late of its turn."""

# ruff: noqa: ARG005  (a wrong rule ignores what the right one looks at)
from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from blastyard.admission.ledger import Ledger
from blastyard.testing.cluster.mutants import cluster_mutant as _mutant


def _changed(ledger: Ledger | None, **courtesy: Any) -> Ledger | None:
    if ledger is None:
        return None
    changed = msgspec.structs.replace(ledger.courtesy, **courtesy)
    return msgspec.structs.replace(ledger, courtesy=changed)


def _from_the_denial(right: Any) -> Any:
    def owe(ledger: Ledger, now: datetime) -> Ledger | None:
        return _changed(right(ledger, now), slot_at=now)

    return owe


def _again_and_again(right: Any) -> Any:
    def owe(ledger: Ledger, now: datetime) -> Ledger | None:
        owed: Ledger | None = right(_changed(ledger, owed_at=None), now)
        return owed

    return owe


_mutant(
    "courtesy counted from the denial",
    "what is owed to a program that polls is over while every slot is still taken",
    "admission.courtesy:owe",
    _from_the_denial,
)
_mutant(
    "a denial starts the debt again",
    "a program that is denied again and again has the free slot left alone for ever",
    "admission.courtesy:owe",
    _again_and_again,
)
_mutant(
    "no pause after long use",
    "a program that always finds the lease taken never gets in",
    "admission.courtesy:paused_until",
    lambda _: lambda ledger, now, timings: None,
)
_mutant(
    "no patient turn",
    "a head that always learns late of a free slot is passed over for ever",
    "admission.order:patience",
    lambda _: lambda ticket, timings: timings.turn,
)
