"""What one process sees of admission, all of it fresh: ledger, submitters, census.

A ledger that was lost is restored before anything is decided on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from blastyard.admission import restoration
from blastyard.admission.census import Census, CensusReader
from blastyard.admission.ledger import Ledger, Policy, Submitter
from blastyard.admission.record import LedgerLost, LedgerRule, Record
from blastyard.admission.roster import Presence, Roster
from blastyard.admission.timing import Timings


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a gate is told besides its store."""

    seed: Policy
    """The policy of a ledger that has never been."""
    timings: Timings = field(default_factory=Timings)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a gate cannot find out from its documents."""

    monotonic: Callable[[], float]
    is_gone: Callable[[Submitter], bool]
    """Whether a submitter has certainly ended."""
    census: CensusReader
    new_uid: Callable[[], str]
    claims: Callable[[], Sequence[restoration.Claim]]
    """What this process knows to be running, for the day the ledger is lost."""


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that decisions are made on, of one moment."""

    ledger: Ledger
    now: datetime
    submitters: Mapping[str, Presence]
    alive: frozenset[str]
    census: Census


class Outlook:
    """Reads and changes the ledger on behalf of the submitter ``me``."""

    def __init__(
        self,
        record: Record,
        roster: Roster,
        me: Submitter,
        settings: GateSettings,
        surroundings: Surroundings,
    ) -> None:
        self.policy: Policy | None = None
        """The latest policy seen."""
        self._record = record
        self._roster = roster
        self._me = me
        self._settings = settings
        self._around = surroundings

    def ledger(self) -> tuple[Ledger, datetime]:
        """The ledger as it is now, our claims brought back if it was lost; the store's clock."""
        ledger, now = self._record.ledger()
        if ledger is None or not ledger.is_whole:
            ledger = self._restore()
        self.policy = ledger.policy
        return ledger, now

    def look(self) -> Look:
        """All of it. What is to be judged is read before who is alive."""
        ledger, now = self.ledger()
        submitters = self._roster.read()
        return Look(ledger, now, submitters, self._alive(submitters), self._around.census.read())

    def observe(self) -> tuple[frozenset[str], Census]:
        """Who is alive, and what runs."""
        return self._alive(self._roster.read()), self._around.census.read()

    def change(self, rule: LedgerRule) -> Ledger:
        """Apply a rule to the ledger, restored first if it was lost."""
        try:
            return self._record.change_ledger(rule)
        except LedgerLost:
            self._restore()
            return self._record.change_ledger(rule)

    def _alive(self, submitters: Mapping[str, Presence]) -> frozenset[str]:
        timings = self._settings.timings
        alive = {name for name, seen in submitters.items() if seen.is_alive(timings)}
        return frozenset(alive | {self._me.name})

    def _restore(self) -> Ledger:
        uid = self._begun().uid
        known = restoration.Known(self._known(), self._settings.seed, uid)
        claims = self._around.claims()

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            return restoration.restore(ledger, self._me.name, claims, known, now)

        return self._record.change_ledger(rule)

    def _begun(self) -> Ledger:
        """The ledger that is there, begun anew if there is none."""
        known = self._known()

        def make(now: datetime) -> Ledger:
            # a name for each try: one that was given up may land after the next was lost again
            uid = self._around.new_uid()
            return restoration.begun(restoration.Known(known, self._settings.seed, uid), now)

        return self._record.create_ledger(make)

    def _known(self) -> dict[str, Submitter]:
        """Everybody whose claims a lost ledger waits for: also a moment for the guardians of the
        dead, whose commands nobody would claim."""
        timings = self._settings.timings
        return {
            name: seen.submitter
            for name, seen in self._roster.read().items()
            if seen.gone_for < timings.ending and (seen.gone or seen.silent_for < timings.forgotten)
        }
