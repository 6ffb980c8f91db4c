"""What a queue that never ends leaves to programs that poll. Pure.

A program that cannot be changed looks every half minute or so whether Gate A is free and a slot is;
beside a queue that uses every slot within milliseconds it would never find one. Two things help it:

* It was *denied* when it took the lease and cleared it without a new search. That is a debt: the
  first slot that falls free afterwards is left alone for ``courtesy``, at most one slot in as many
  as the ceiling and one more.
* One that always finds the lease taken leaves no trace. So after ``unbroken_use`` of Gate A without
  a pause of ``courtesy``, such a pause is made.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from blastyard.admission.census import APART, Census, slot_names
from blastyard.admission.ledger import Ledger
from blastyard.admission.timing import Timings


def owe(ledger: Ledger, now: datetime) -> Ledger | None:
    """Somebody was denied; a second denial is the same debt."""
    if ledger.courtesy.owed_at is not None:
        return None
    return _changed(ledger, owed_at=now, slot_at=None)


def is_owed(ledger: Ledger) -> bool:
    """Whether the next free slot is left alone; not so soon after the last one."""
    courtesy = ledger.courtesy
    if courtesy.owed_at is None:
        return False
    return courtesy.slot_at is not None or ledger.fence - courtesy.paid > ledger.policy.ceiling


def slot_left_until(ledger: Ledger, timings: Timings) -> datetime | None:
    """Until when the slot that is free now is left alone; ``None`` = it is not."""
    slot_at = ledger.courtesy.slot_at
    return slot_at + timings.courtesy if slot_at is not None and is_owed(ledger) else None


def is_left(ledger: Ledger, now: datetime, timings: Timings) -> bool:
    """Whether the slot that is free is still left alone."""
    slot_at, until = ledger.courtesy.slot_at, slot_left_until(ledger, timings)
    if slot_at is None or until is None or _lies_ahead(slot_at, now):
        return False
    return now < until


def cleared(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> Ledger:
    """The ledger without a debt that is paid, or whose slot was left alone for long enough."""
    courtesy = ledger.courtesy
    if courtesy.owed_at is None:
        return ledger
    over = courtesy.slot_at is not None and now >= courtesy.slot_at + timings.courtesy
    if not over and not _has_come(ledger, census):
        return ledger
    return _changed(ledger, owed_at=None, slot_at=None, paid=ledger.fence)


def left(ledger: Ledger, free: int, now: datetime) -> Ledger:
    """The ledger on which the slot that is free now is left alone from now on, if one is owed.

    Only for who writes it: in a copy that nobody keeps the slot would be left alone for ever.
    """
    slot_at = ledger.courtesy.slot_at
    is_left = slot_at is not None and not _lies_ahead(slot_at, now)
    if free <= 0 or is_left or not is_owed(ledger):
        return ledger
    return _changed(ledger, slot_at=now)


def _has_come(ledger: Ledger, census: Census) -> bool:
    """Whether a search that is not ours began after the debt."""
    owed_at = ledger.courtesy.owed_at
    known = slot_names(ledger.holds)
    return owed_at is not None and any(
        name not in known and seen.since > owed_at for name, seen in census.sightings.items()
    )


def paused_until(ledger: Ledger, now: datetime, timings: Timings) -> datetime | None:
    """Until when Gate A is left free after long use; ``None`` = it may be taken."""
    since, at = ledger.courtesy.used_since, ledger.courtesy.used_at
    if since is None or at is None or at - since < timings.unbroken_use or _lies_ahead(at, now):
        return None
    until = at + timings.courtesy
    return until if now < until else None


def usable(ledger: Ledger, free: int, now: datetime, timings: Timings) -> int:
    """How many of the free slots searches of ours may take now."""
    if paused_until(ledger, now, timings) is not None:
        return 0
    return 0 if free == 1 and is_left(ledger, now, timings) else free


def used(ledger: Ledger, now: datetime, timings: Timings) -> Ledger:
    """Gate A is used from now on."""
    since, at = ledger.courtesy.used_since, ledger.courtesy.used_at
    begins = since is None or at is None or now - at >= timings.courtesy
    begins = begins or (since is not None and _lies_ahead(since, now))
    return _changed(ledger, used_since=now if begins else since, used_at=now)


def used_until(ledger: Ledger, now: datetime) -> Ledger:
    """Gate A has been used until now; a command may take longer than a pause does."""
    return ledger if ledger.courtesy.used_at is None else _changed(ledger, used_at=now)


def _lies_ahead(at: datetime, now: datetime) -> bool:
    """Whether it was written before the store's clock was put back, and says nothing any more."""
    return at > now + APART


def _changed(ledger: Ledger, **changes: object) -> Ledger:
    return msgspec.structs.replace(
        ledger, courtesy=msgspec.structs.replace(ledger.courtesy, **changes)
    )
