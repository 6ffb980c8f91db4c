"""What one process sees of admission, all of it fresh: ledger, submitters, census.

A ledger that was lost is restored before anything is decided on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from blastyard.admission import courtesy, restoration
from blastyard.admission.census import Census, CensusReader, counted, room
from blastyard.admission.ledger import Ledger, Policy, Submitter
from blastyard.admission.markers import Markers, NoMarkers
from blastyard.admission.observer import Observer, nobody
from blastyard.admission.order import Situation
from blastyard.admission.record import LedgerLost, LedgerRule, Record
from blastyard.admission.reservation import brought_up
from blastyard.admission.roster import Presence, Roster, is_rowless
from blastyard.admission.timing import Timings


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a gate is told besides its store."""

    seed: Policy
    """The policy of a ledger that has never been."""
    timings: Timings = field(default_factory=Timings)
    shared: bool = False
    """Programs that are no blastyards use the same gates."""


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
    markers: Markers = field(default_factory=NoMarkers)
    observer: Observer = nobody
    """Is told of what happens; no rule depends on it."""


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
        self.room_since: datetime | None = None
        """Since when a slot was there for us, in a shared namespace; ``None`` = none is."""
        self._record = record
        self._roster = roster
        self._me = me
        self._settings = settings
        self._around = surroundings

    def ledger(self) -> tuple[Ledger, datetime]:
        """The ledger as it is now, our claims brought back if it was lost; the store's clock."""
        return self._whole(*self._record.ledger())

    def look(self) -> Look:
        """All of it, fresh. What is to be judged is read before who is alive."""
        ledger, now = self.ledger()
        submitters = self._roster.read()
        census = counted(ledger, self._around.census.read(), now, self._settings.timings)
        return Look(ledger, now, submitters, self._alive(submitters), census)

    def glance(self) -> Look:
        """All of it, as it was lately: tells whether asking is worthwhile, and costs no call where
        something watches the store."""
        ledger, now = self._whole(*self._record.ledger(glance=True))
        submitters = self._roster.glance()
        alive, census = self._alive(submitters), self._around.census.glance()
        seen = Situation(now, alive, census, room_since=self.room_since)
        timings = self._settings.timings
        ledger = brought_up(ledger, seen, timings, shared=self._settings.shared)
        census = counted(ledger, census, now, timings)
        if self._settings.shared:
            free = courtesy.usable(ledger, room(ledger, census), now, timings)
            self.room_since = (self.room_since or now) if free else None
        return Look(ledger, now, submitters, alive, census)

    def observe(self) -> tuple[frozenset[str], Census]:
        """Who is alive, lately; and what runs, now."""
        return self.alive(), self._around.census.read(urgent=True)

    def alive(self) -> frozenset[str]:
        """Who is alive, lately."""
        return self._alive(self._roster.glance())

    def later(self, census: Census) -> Census:
        """A census read before, with what was seen to end since."""
        return self._around.census.later(census)

    def finished(self, names: Iterable[str]) -> frozenset[str]:
        """Which of these searches, seen no more, have certainly ended."""
        return self._around.census.finished(names)

    def _whole(self, ledger: Ledger | None, now: datetime) -> tuple[Ledger, datetime]:
        if ledger is None or not ledger.is_whole:
            ledger = self._restore()
        if self.policy is None or ledger.policy.version >= self.policy.version:
            self.policy = ledger.policy
        return ledger, now

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
        submitters = self._known()
        marked = [job.marker for job in self._around.census.read().markers if job.marker]
        claims = [*self._around.claims(), *map(restoration.claim_of, marked)]
        everybody = self._roster.read()
        missing = {
            mark.submitter for mark in marked if not mark.watched and not is_rowless(mark.submitter)
        } - everybody.keys()
        known = restoration.Known(submitters, self._settings.seed, uid, frozenset(missing))
        patience = self._settings.timings.forgotten

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            return restoration.restore(ledger, self._me.name, claims, known, now, patience)

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
        mine = {self._me.name: msgspec.structs.replace(self._me, policy=self.policy)}
        return mine | {
            name: seen.submitter
            for name, seen in self._roster.read().items()
            if seen.gone_for < timings.ending
            and (seen.gone or seen.silent_for < self._waited_for(name))
            and name != self._me.name
        }

    def _waited_for(self, submitter: str) -> timedelta:
        """How long the claims of a silent submitter are waited for. In a shared namespace, markers
        tell all that one without a store could claim; only a live one has more to say."""
        timings = self._settings.timings
        mine = self._me.installation
        if mine and submitter.endswith(mine):
            return timings.lapse  # it has our store, from which we claim what it ran
        if self._settings.shared and is_rowless(submitter):
            return timings.lapse
        return timings.forgotten
