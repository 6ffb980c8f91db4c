"""Gate A: who was inside, how they came in, and how they left."""

from __future__ import annotations

from typing import Final

from blastyard.testing.recorded.cast import OURS
from blastyard.testing.recorded.deed import DELETED, Change, Deed
from blastyard.testing.recorded.rule import Before, Court
from blastyard.testing.recorded.scene import JobSight, LeaseSight

LATE_SECONDS: Final = 10.0
"""A write of a command that was killed may still land so long after its turn: one a turn."""


class LeaseRule:
    """One at a time; in only when it is free or expired; out only by one's own hand."""

    def __init__(self, court: Court) -> None:
        self._court = court
        self._turns: dict[int, tuple[str, str]] = {}
        """Version of the submit Lease to its holder before and after."""
        self._taken_from: dict[str, float] = {}
        """Holder to when somebody took over from it."""

    def saw(self, change: Change, before: Before) -> None:
        """See the rule."""
        if change.kind == "Job":
            job = self._court.scene.jobs.get(change.document["metadata"]["uid"])
            if job is not None and before.job is None:
                self._made(job, change.at)
        elif change.name == f"elb-blast-submit-{self._court.scene.namespace}":
            after = self._court.scene.lease
            self._turns[change.version] = (before.lease.holder, after.holder)
            self._passed(change, before.lease, after)

    def closed(self) -> None:
        """See the rule."""
        for deed in self._court.cast.those("acquired"):
            turn = self._turn(deed)
            if turn and turn[1] != deed.holder:
                detail = f"{deed.holder} says so, and {turn[1] or 'nobody'} was inside"
                self._court.accuse("acquired without the lease", detail, deed.at)
        for deed in self._court.cast.those("released"):
            turn = self._turn(deed)
            if turn and turn[0] != deed.holder:
                detail = f"{deed.holder} cleared the turn of {turn[0] or 'nobody'}"
                self._court.accuse("released without a hold", detail, deed.at)
        self._interleaved()

    def _turn(self, deed: Deed) -> tuple[str, str] | None:
        version = str(deed.more.get("version") or "")
        return self._turns.get(int(version)) if version.isdigit() else None

    def _passed(self, change: Change, before: LeaseSight, after: LeaseSight) -> None:
        court = self._court
        if before.holder == after.holder or not before.holder:
            return
        if change.what == DELETED:
            court.counts["leases deleted"] += 1
        elif not after.holder:
            self._cleared(before, change.at)
        else:
            self._taken_from[before.holder] = change.at
            court.counts["takeovers"] += 1
            early = self._early(before, after, change.at)
            if early > court.terms.tolerance:
                detail = f"{after.holder} took over from {before.holder} {early:.1f} s too early"
                court.accuse("taken over too early", detail, change.at)

    def _cleared(self, before: LeaseSight, at: float) -> None:
        cast = self._court.cast
        if before.holder in cast.letting_go:
            self._court.counts["releases"] += 1
        elif before.holder in cast.known:
            detail = f"{before.holder} never let go, and was cleared"
            self._court.accuse("cleared by somebody else", detail, at)
        else:
            self._court.counts["releases of strangers"] += 1

    def _early(self, before: LeaseSight, after: LeaseSight, at: float) -> float:
        """By how many seconds the takeover came before its time; negative when it did not."""
        terms = self._court.terms
        if before.holder.startswith(OURS) and after.holder.startswith(OURS):
            return before.at + terms.takeover - at
        if before.renewed_at is None:
            return 0.0
        ahead = 0.0 if after.holder.startswith(OURS) else terms.peers_ahead
        return before.renewed_at + (before.seconds or 900) + terms.skew - ahead - at

    def _made(self, job: JobSight, at: float) -> None:
        """A Job was made: only by who is inside, unless it never passes Gate A."""
        court, inside = self._court, self._court.scene.lease.holder
        noted = job.notes.get("blastyard/holder") if job.app == "finalizer" else None
        holders = {noted} if noted else court.cast.holders_of.get(court.search_of(job), set())
        if inside in holders or (not noted and (job.marker or self._comes_later(job))):
            return
        if not holders:
            court.counts["made past Gate A"] += 1
            return
        if any(self._may_be_late(holder, at) for holder in holders):
            court.counts["late writes"] += 1
            return
        detail = f"{job.name} of {', '.join(sorted(holders))}; {inside or 'nobody'} was inside"
        court.accuse("written outside its turn", detail, at)

    def _comes_later(self, job: JobSight) -> bool:
        """A submit Job makes the Jobs that compute by itself, in its own time."""
        return job.app == "blast" and any(
            other.id == job.id and other.app == "submit" and not other.marker
            for other in self._court.scene.jobs.values()
        )

    def _may_be_late(self, holder: str, at: float) -> bool:
        taken_at = self._taken_from.pop(holder, None)
        return taken_at is not None and at - taken_at <= LATE_SECONDS

    def _interleaved(self) -> None:
        """Commands of two holders, by what they say themselves."""
        running: dict[str, Deed] = {}
        for deed in self._court.cast.deeds:
            if not deed.more.get("gate", True):
                continue
            if deed.what == "submitting":
                for other in running.values():
                    detail = f"{deed.holder} began while the command of {other.holder} ran"
                    self._court.accuse("overlap", detail, deed.at)
                running[deed.holder] = deed
            elif deed.what == "submitted":
                running.pop(deed.holder, None)
            elif deed.what == "died":
                running = {name: one for name, one in running.items() if one.who != deed.who}
