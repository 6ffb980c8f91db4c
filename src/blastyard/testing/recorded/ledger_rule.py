"""The ledger: fences that only grow, and are used only while they stand; the queue's order."""

from __future__ import annotations

from blastyard.testing.recorded.deed import Change, Document
from blastyard.testing.recorded.rule import Before, Court
from blastyard.testing.recorded.scene import JobSight, LedgerSight


class FenceRule:
    """Every grant has a greater number than all before it; a former one can make nothing."""

    def __init__(self, court: Court) -> None:
        self._court = court

    def saw(self, change: Change, before: Before) -> None:
        """See the rule."""
        scene = self._court.scene
        if change.kind == "Job" and before.job is None:
            job = scene.jobs.get(change.document["metadata"]["uid"])
            if job is not None and job.app == "finalizer" and "blastyard/fence" in job.notes:
                self._used(job, job.notes["blastyard/fence"], change.at)
        elif change.kind == "ConfigMap" and before.ledger and scene.ledger:
            if before.ledger.uid == scene.ledger.uid:
                self._grew(before.ledger, scene.ledger, change.at)
            elif before.ledger != scene.ledger:
                self._court.counts["ledgers begun anew"] += 1

    def closed(self) -> None:
        """See the rule."""

    def _grew(self, before: LedgerSight, after: LedgerSight, at: float) -> None:
        if after.fence < before.fence:
            detail = f"from {before.fence} to {after.fence}"
            self._court.accuse("the fence went back", detail, at)
        for search, hold in after.holds.items():
            old = before.holds.get(search)
            if old is not None and old["fence"] == hold["fence"]:
                continue
            restored = not before.whole or not after.whole
            if not restored and not before.fence < hold["fence"] <= after.fence:
                detail = f"{search} was granted {hold['fence']} after {before.fence}"
                self._court.accuse("a fence was used twice", detail, at)

    def _used(self, job: JobSight, fence: str, at: float) -> None:
        ledger = self._court.scene.ledger
        uid, _, number = fence.rpartition("/")
        known = ledger is not None and ledger.uid == uid
        if not known or ledger is None:
            self._court.accuse("stale fence", f"{job.name} was made with {fence}", at)
            return
        held = {str(hold["fence"]) for hold in ledger.holds.values()}
        if number != str(ledger.fence) and number not in held:
            detail = f"{job.name} was made with {fence}, which nobody holds"
            self._court.accuse("stale fence", detail, at)


class OrderRule:
    """Within one user and priority nobody overtakes who could have gone."""

    def __init__(self, court: Court) -> None:
        self._court = court

    def saw(self, change: Change, before: Before) -> None:
        """See the rule."""
        after = self._court.scene.ledger
        if change.kind != "ConfigMap" or before.ledger is None or after is None:
            return
        if before.ledger.uid != after.uid or not (before.ledger.whole and after.whole):
            return
        for search in after.holds.keys() - before.ledger.holds.keys():
            ticket = before.ledger.tickets.get(search)
            if ticket is not None and not ticket.get("family"):
                self._let_in(search, ticket, before.ledger, change.at)

    def closed(self) -> None:
        """See the rule."""

    def _let_in(self, search: str, ticket: Document, before: LedgerSight, at: float) -> None:
        after = self._court.scene.ledger
        for name, other in before.tickets.items():
            later = after.tickets.get(name) if after else None
            if later is None or later.get("passed", 0) != other.get("passed", 0):
                continue  # let in too, withdrawn, or passed over as it did not claim
            if (other["user"], other["level"]) != (ticket["user"], ticket["level"]):
                continue
            if other["sequence"] < ticket["sequence"] and self._could_go(name, other, at):
                detail = f"{search} (ticket {ticket['sequence']}) before {name}"
                detail += f" (ticket {other['sequence']}) of {ticket['user']}"
                self._court.accuse("order", detail, at)

    def _could_go(self, search: str, ticket: Document, at: float) -> bool:
        obstacles = ("parked_by", "blocked", "family")
        if any(ticket.get(name) for name in obstacles):
            return False
        beat_at = self._court.scene.beats.get(ticket["submitter"])
        terms = self._court.terms
        if self._court.cast.is_dead(search, at, terms.tolerance):
            return False
        return beat_at is not None and at - beat_at < terms.lapse - terms.tolerance
