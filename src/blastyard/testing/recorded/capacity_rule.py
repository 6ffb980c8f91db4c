"""Gate B: never more than the ceiling at the moment when somebody is let in."""

from __future__ import annotations

from blastyard.testing.recorded.cast import OURS
from blastyard.testing.recorded.deed import Change, Document
from blastyard.testing.recorded.rule import Before, Court
from blastyard.testing.recorded.scene import JobSight, LedgerSight


class CapacityRule:
    """Counts from the Jobs themselves and from the ledger, and takes the union."""

    def __init__(self, court: Court) -> None:
        self._court = court
        self._begun: set[str] = set()
        """Foreign searches that have been admitted."""

    def saw(self, change: Change, before: Before) -> None:
        """See the rule."""
        court = self._court
        if change.kind == "Job" and before.job is None:
            job = court.scene.jobs.get(change.document["metadata"]["uid"])
            if job is not None:
                self._foreign(job, change.at)
        elif change.kind == "ConfigMap" and before.ledger and court.scene.ledger:
            self._ours(before.ledger, court.scene.ledger, change.at)
        elif change.kind == "Lease" and before.lease.holder.startswith(OURS):
            self._left(before.lease.holder, change.at)

    def closed(self) -> None:
        """See the rule."""

    def _ours(self, before: LedgerSight, after: LedgerSight, at: float) -> None:
        if before.uid != after.uid or not (before.whole and after.whole):
            return
        for search, hold in after.holds.items():
            old = before.holds.get(search)
            if old is None and search in before.tickets:
                self._court.counts["admissions"] += 1
                self._judge("over-admission", search, after.families(), after, at)
            elif old is not None and hold["fence"] > old["fence"]:
                self._court.counts["resumptions"] += 1
                claimed = {
                    after.family(name)
                    for name, other in after.holds.items()
                    if other["state"] == "submitted" or other["fence"] < old["fence"]
                }
                self._judge("over-resumption", search, claimed, after, at)

    def _judge(
        self, rule: str, search: str, claimed: set[str], ledger: LedgerSight, at: float
    ) -> None:
        seen = self._uncovered(ledger)
        union = claimed | seen | {ledger.family(search)}
        most = self._court.counts["most at once"]
        self._court.counts["most at once"] = max(most, len(union))
        if len(union) > ledger.ceiling:
            names = ", ".join(sorted(union))
            detail = f"{search} was let in at a ceiling of {ledger.ceiling}, beside {names}"
            self._court.accuse(rule, detail, at)

    def _uncovered(self, ledger: LedgerSight) -> set[str]:
        """Searches that run without a hold, as a census inside the present turn could see them."""
        court = self._court
        turn_began = court.scene.lease.since_version
        held = ledger.searches()
        found = set()
        for job in court.scene.live():
            search = court.search_of(job)
            if search in held or job.slot in held:
                continue
            if job.version > turn_began and court.is_rude(job):
                continue  # it came past Gate A in this turn, and nobody could know
            found.add(search)
        return found

    def _foreign(self, job: JobSight, at: float) -> None:
        """The first Job of a foreign search that passed Gate A is its admission."""
        court = self._court
        search = court.search_of(job)
        if job.marker or search not in court.cast.foreign or search in self._begun:
            return
        self._begun.add(search)
        court.counts["foreign admissions"] += 1
        turn_began = court.scene.lease.since_version
        union = {search}
        for other in court.scene.live():
            seen = other.app == "finalizer" and other.version < turn_began  # what peers go by
            if seen or not court.is_rude(other):
                union.add(self._slot(other))
        union |= self._held(at)
        if len(union) > court.terms.peers_ceiling:
            names = ", ".join(sorted(union))
            detail = f"{search} began at a ceiling of {court.terms.peers_ceiling}, among {names}"
            court.accuse("over-admission by a peer", detail, at)

    def _slot(self, job: JobSight) -> str:
        search, ledger = self._court.search_of(job), self._court.scene.ledger
        return ledger.family(search) if ledger and search in ledger.holds else search

    def _held(self, at: float) -> set[str]:
        """Run slots of holds that are about to be used, or are visible to peers: by a finalizer."""
        ledger = self._court.scene.ledger
        if ledger is None:
            return set()
        jobs = self._court.scene.jobs.values()
        shown = [job for job in jobs if job.live and job.app == "finalizer"]
        visible = {self._court.search_of(job) for job in shown}
        return {
            ledger.family(search)
            for search, hold in ledger.holds.items()
            if search in visible
            or (hold["state"] == "reserved" and not self._never_began(search, hold, at))
        }

    def _left(self, holder: str, at: float) -> None:
        """Who leaves Gate A free leaves something that peers count for every reserved hold.

        A blastyard that takes over makes it good before it leaves in its turn.
        """
        court, ledger = self._court, self._court.scene.ledger
        if court.scene.lease.holder.startswith(OURS) or ledger is None:
            return
        own = holder.removeprefix(OURS).rpartition("-")[0]
        shown: set[str | None] = set()
        for job in court.scene.jobs.values():
            if job.app == "finalizer":  # alive, or it has ended already
                shown |= {court.search_of(job), job.notes.get("blastyard/family")}
        for search, hold in ledger.holds.items():
            judged = hold["state"] == "reserved" or search == own
            if judged and not hold.get("cancelled") and not shown & {search, ledger.family(search)}:
                if self._never_began(search, hold, at):
                    court.counts["unseen before any command"] += 1
                    continue
                detail = f"{holder} left, and no finalizer tells of {search}"
                court.accuse("unseen by peers", detail, at)

    def _never_began(self, search: str, hold: Document, at: float) -> bool:
        """Whether certainly no command of it ran: its resumption counts anew, so nobody is hurt."""
        cast = self._court.cast
        is_told = f"{OURS}{search}-{hold['attempt']}" in cast.known
        began = (deed.at for deed in cast.those("submitting") if deed.search == search)
        return is_told and min(began, default=at) >= at
