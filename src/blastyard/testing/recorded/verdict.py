"""Reads a recording and says what must not have happened in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blastyard.testing.history import Violation
from blastyard.testing.recorded.capacity_rule import CapacityRule
from blastyard.testing.recorded.cast import Cast
from blastyard.testing.recorded.deed import GAP, Change, Deed, changes_of, deeds_of
from blastyard.testing.recorded.lease_rule import LeaseRule
from blastyard.testing.recorded.ledger_rule import FenceRule, OrderRule
from blastyard.testing.recorded.rule import Before, Court, Rule, Terms
from blastyard.testing.recorded.scene import Scene
from blastyard.testing.recorded.search_rule import SearchRule


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. ``counts`` says how much there was to be found in."""

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.violations

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing in the recording. Over a gap nothing is judged."""
        return not self.counts.get("gaps")

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        head = f"{len(self.violations)} violations in: {counts}"
        return "\n".join([head, *(str(violation) for violation in self.violations)])


def check(
    namespace: str, changes: Iterable[Change], deeds: Iterable[Deed], terms: Terms | None = None
) -> Verdict:
    """Judge a history: ``changes`` in the server's order, ``deeds`` in any."""
    scene = Scene(namespace)
    court = Court(scene, Cast(deeds), terms or Terms())
    rules: list[Rule] = [
        LeaseRule(court),
        CapacityRule(court),
        FenceRule(court),
        OrderRule(court),
        SearchRule(court),
    ]
    for change in changes:
        uid = change.document.get("metadata", {}).get("uid", "")
        before = Before(scene.lease, scene.ledger, scene.jobs.get(uid))
        scene.take(change)
        court.counts["changes"] += 1
        for rule in () if change.bridged or change.what == GAP else rules:
            rule.saw(change, before)
    for rule in rules:
        rule.closed()
    court.counts["gaps"] = scene.gaps
    found = sorted(court.violations, key=lambda violation: violation.at)
    return Verdict(tuple(found), dict(court.counts))


def check_recording(recording: Path, namespace: str, terms: Terms | None = None) -> Verdict:
    """Judge the recording in a directory."""
    return check(namespace, changes_of(recording), deeds_of(recording), terms)
