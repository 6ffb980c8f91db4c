"""One decision inside Gate A: what the census says is brought into the ledger, then the slot. Pure.

Retiring holds whose search has ended, remembering who is alone, and what is owed to programs that
poll all ride on the swap that reserves; a denial writes them only when they changed.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from blastyard.admission import courtesy
from blastyard.admission.census import counted, noted, room
from blastyard.admission.ending import retired
from blastyard.admission.hold import Attempt, Reserved, reserve
from blastyard.admission.ledger import Ledger
from blastyard.admission.order import Situation
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.timing import Timings


def brought_up(ledger: Ledger, seen: Situation, timings: Timings, *, shared: bool) -> Ledger:
    """The ledger as the census shows it; ``shared`` = with programs that are no blastyards.

    Good for a glance as well, which writes nothing.
    """
    if not ledger.is_whole:
        return ledger
    before, ledger = ledger, retired(ledger, seen.census, seen.now, timings)
    if not shared:
        return ledger
    if ledger is not before and seen.room_since is not None:
        # the turn began when the end was seen, not when it is written
        ledger = msgspec.structs.replace(ledger, turn_at=seen.room_since)
    ledger = noted(ledger, seen.census, seen.now, timings)
    census = counted(ledger, seen.census, seen.now, timings)
    return courtesy.cleared(ledger, census, seen.now, timings)


def decide(
    ledger: Ledger, attempt: Attempt, seen: Situation, timings: Timings, *, shared: bool
) -> tuple[Ledger, Granted | Waiting | Refused]:
    """The ledger to write (the same one when nothing changes), and what the attempt is told."""
    current = brought_up(ledger, seen, timings, shared=shared)
    seen = replace(seen, census=counted(current, seen.census, seen.now, timings))
    if shared and current.is_whole:
        current = courtesy.left(current, room(current, seen.census), seen.now)
    match reserve(current, attempt, seen, timings):
        case Reserved(ledger=after, granted=granted):
            is_new = after is not current
            return (
                courtesy.used(after, seen.now, timings) if shared and is_new else after
            ), granted
        case denied:
            return current, denied
