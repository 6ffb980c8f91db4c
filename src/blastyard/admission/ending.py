"""When a run slot is free again without a word from whoever held it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from blastyard.admission.census import UNLABELLED, Census, slot_names
from blastyard.admission.ledger import HoldState, Ledger, family
from blastyard.admission.order import Situation
from blastyard.admission.ticket import adopt, replaced
from blastyard.admission.timing import Timings


def ended(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> frozenset[str]:
    """Searches that have ended as far as the cluster tells.

    They are seen no more, and their finalizer was seen to end, or has had its time to appear.
    """
    return frozenset(
        name
        for name, hold in ledger.holds.items()
        if hold.watched
        and hold.state is HoldState.SUBMITTED
        and (hold.alias or name) not in census.families
        and ((hold.alias or name) in census.finished or now - hold.since >= timings.settle)
    )


def unseen(ledger: Ledger, census: Census) -> frozenset[str]:
    """Ids of which it would help to know whether they have ended."""
    ids = (
        hold.alias or name
        for name, hold in ledger.holds.items()
        if hold.watched and hold.state is HoldState.SUBMITTED
    )
    return frozenset(ids) - census.families - census.finished - {UNLABELLED}


def retired(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> Ledger:
    """The ledger without the searches that have ended; the same one when none has."""
    gone = ended(ledger, census, now, timings)
    if not gone:
        return ledger
    holds = {name: hold for name, hold in ledger.holds.items() if name not in gone}
    return replaced(ledger, now, holds=holds)


def settled(ledger: Ledger, now: datetime, timings: Timings) -> dict[str, tuple[str, int]]:
    """Searches whose command failed so long ago that nothing of it can arrive any more.

    By search: the id that may be deleted once more, and the fence of the hold that then ends.
    """
    return {
        name: (hold.alias or name, hold.fence)
        for name, hold in ledger.holds.items()
        if hold.state is HoldState.RESERVED
        and hold.failed_at is not None
        and now - hold.failed_at >= timings.settle
    }


def left_complete(
    ledger: Ledger, silent_for: Mapping[str, timedelta], seen: Situation, timings: Timings
) -> dict[str, int]:
    """Reserved holds of submitters that can have no command alive, whose submission is complete:
    the finalizer is there. With their fences. Only a complete submission is ever adopted."""
    limit = timings.takeover + timings.skew
    return {
        search: hold.fence
        for search, hold in ledger.holds.items()
        if hold.state is HoldState.RESERVED
        and hold.failed_at is None
        and silent_for.get(hold.submitter, limit) >= limit
        and seen.now - hold.since >= limit
        and seen.census.has_finalizer(search)
    }


def overdue(
    ledger: Ledger, silent_for: Mapping[str, timedelta], seen: Situation, timings: Timings
) -> dict[str, int]:
    """Reserved holds of submitters that are silent for so long that no command of theirs can be
    alive, with their fences.

    ``silent_for`` says for each submitter how long ago it gave its last sign of life; one that is
    not in it has never been heard of.
    """
    limit = timings.command + timings.takeover + timings.skew
    return {
        search: hold.fence
        for search, hold in ledger.holds.items()
        if hold.state is HoldState.RESERVED
        and silent_for.get(hold.submitter, limit) >= limit
        and seen.now - hold.since >= limit
        and (hold.alias or search) not in seen.census.families
    }


def forsaken(
    ledger: Ledger, silent_for: Mapping[str, timedelta], seen: Situation, timings: Timings
) -> frozenset[str]:
    """Submitted holds that only their submitter could end, which has been silent for hours, while
    nothing of the search or its family is seen."""
    slots = slot_names(ledger.holds)
    seen_families = {slots.get(name, name) for name in seen.census.families}
    return frozenset(
        name
        for name, hold in ledger.holds.items()
        if hold.state is HoldState.SUBMITTED
        and not hold.watched
        and silent_for.get(hold.submitter, timings.forgotten) >= timings.forgotten
        and seen.now - hold.since >= timings.forgotten
        and family(name, hold) not in seen_families
    )


def take_up(ledger: Ledger, search: str, fence: int, now: datetime) -> Ledger | None:
    """The submission of this grant is complete, and whoever made it is gone: it goes on alone."""
    hold = ledger.holds.get(search)
    if hold is None or hold.fence != fence or hold.state is HoldState.SUBMITTED:
        return None
    after = msgspec.structs.replace(hold, state=HoldState.SUBMITTED, since=now, watched=True)
    return msgspec.structs.replace(ledger, holds={**ledger.holds, search: after})


def inherit(ledger: Ledger, search: str, submitter: str, now: datetime) -> Ledger | None:
    """Let another submitter look after a search wherever it is; its hold stays what it is."""
    hold = ledger.holds.get(search)
    if hold is None:
        return adopt(ledger, search, submitter, now)
    if hold.submitter == submitter:
        return None
    after = msgspec.structs.replace(hold, submitter=submitter)
    return msgspec.structs.replace(ledger, holds={**ledger.holds, search: after})
