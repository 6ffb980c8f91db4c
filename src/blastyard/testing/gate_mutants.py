"""Wrong rules of the submit lease, and of what happens inside Gate A."""

# ruff: noqa: ARG005  (a wrong rule ignores what the right one looks at)
from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from blastyard.admission import lease as leases
from blastyard.admission.hold import Attempt, Reserved
from blastyard.admission.ledger import Fence, Ledger
from blastyard.admission.outcome import Granted
from blastyard.admission.timing import Timings
from blastyard.engine.port import Exited
from blastyard.testing.mutant import Swap, mutant
from blastyard.testing.schedule import Habitat

mutant(
    "takeover without waiting",
    "a blastyard's lease is taken after one second of silence",
    Swap(
        "admission.lease:_judge_blastyard",
        lambda _: (
            lambda seen, timings: (
                leases.Free(seen.stamped_at)
                if seen.unchanged_for >= timedelta(seconds=1)
                else leases.Held(seen.lease.holder_identity, None, None)
            )
        ),
    ),
)


def _without_skew(right: Any) -> Any:
    def judge(seen: leases.Seen, timings: Timings) -> object:
        return right(seen, replace(timings, skew=timedelta(microseconds=1)))

    return judge


mutant(
    "no skew",
    "a foreign lease counts as expired at once when its time is over by our clock",
    Swap("admission.lease:_judge_foreign", _without_skew),
)

mutant(
    "release without a holder check",
    "whoever leaves clears the lease, whose ever it is",
    Swap("admission.lease:released", lambda _: lambda seen, holder: leases.SubmitLease()),
)

mutant(
    "renewal without a holder check",
    "whoever renews writes the lease, whose ever it is",
    Swap(
        "admission.lease:renewed",
        lambda _: (
            lambda seen, holder, timings: msgspec.structs.replace(
                seen.lease, holder_identity=holder, renew_time=leases.format_time(seen.now)
            )
        ),
    ),
)

mutant(
    "trust for ever",
    "a stay is trusted however long ago its lease was renewed",
    Swap("admission.stay:Stay.is_trusted", lambda _: property(lambda self: True)),
)

mutant(
    "trust beyond takeover",
    "the deadline lies behind the moment at which others may take over",
    Swap(
        "admission.lease:trusted_until",
        lambda _: (
            lambda asked_at, timings: asked_at + (timings.takeover + timings.margin).total_seconds()
        ),
    ),
)

mutant(
    "no guardian deadline",
    "the machine lets a command run on past its deadline",
    Swap("testing.engine:FakeMachine.tick", lambda _: _tick_without_deadline),
    Habitat.STALLS,
)


def _tick_without_deadline(self: Any) -> None:
    now = self.clock.monotonic()
    for run in self.runs:
        if run.is_live and run.finishes_at is not None and run.finishes_at <= now:
            self._end(run, Exited(0, None))


mutant(
    "no fence check",
    "a confirmation counts for whatever hold the search has now",
    Swap("admission.hold:_mine", lambda _: lambda ledger, search, fence: ledger.holds.get(search)),
    Habitat.DELIVERIES,
)


def _always_anew(right: Any) -> Any:
    def resume(ledger: Ledger, hold: Any, attempt: Attempt, seen: Any) -> object:
        forgotten = msgspec.structs.replace(hold, attempt=min(hold.attempt, attempt.number) - 1)
        return right(ledger, forgotten, attempt, seen)

    return resume


mutant(
    "no idempotence",
    "asking again for the same attempt is a new grant",
    Swap("admission.hold:_resume", _always_anew),
)

mutant(
    "fence not raised",
    "a grant has the number of the grant before",
    Swap(
        "admission.hold:_grant",
        lambda right: lambda ledger, *rest: _with_fence_of(right(ledger, *rest), ledger, rest[1]),
    ),
)


def _with_fence_of(reserved: Any, before: Ledger, attempt: Attempt) -> object:
    hold = msgspec.structs.replace(reserved.ledger.holds[attempt.search], fence=before.fence)
    ledger = msgspec.structs.replace(
        reserved.ledger, fence=before.fence, holds={**reserved.ledger.holds, attempt.search: hold}
    )
    return Reserved(ledger, Granted(Fence(before.uid, before.fence)))


mutant(
    "no recount",
    "a reserved hold is resumed whatever has started meanwhile",
    Swap("admission.census:room_to_resume", lambda _: lambda ledger, census, search: True),
    Habitat.INTRUDERS,
)

mutant(
    "holds only",
    "what runs without a hold is not counted",
    Swap(
        "admission.census:occupied",
        lambda _: (
            lambda holds, census: frozenset(
                hold.ticket.family or search for search, hold in holds.items()
            )
        ),
    ),
    Habitat.INTRUDERS,
)

mutant(
    "census only",
    "what has a hold and cannot be seen yet is not counted",
    Swap("admission.census:occupied", lambda _: lambda holds, census: census.families),
)

mutant(
    "the larger of both",
    "holds and census are counted apart, and the larger number taken",
    Swap(
        "admission.census:room",
        lambda _: (
            lambda ledger, census: max(
                0, ledger.policy.ceiling - max(len(ledger.holds), len(census.families))
            )
        ),
    ),
    Habitat.INTRUDERS,
)

mutant(
    "the sum of both",
    "a search that has a hold and is seen running counts twice",
    Swap(
        "admission.census:room",
        lambda _: (
            lambda ledger, census: max(
                0, ledger.policy.ceiling - len(ledger.holds) - len(census.families)
            )
        ),
    ),
)


def _give_back_at_the_end(right: Any) -> Any:
    def give_back(
        ledger: Ledger, search: str, submitter: str, upto: int | None, now: datetime
    ) -> object:
        after = right(ledger, search, submitter, upto, now)
        if after is None or search not in ledger.holds:
            return after
        ticket = msgspec.structs.replace(
            after.tickets[search], sequence=after.sequence + 1, ticketed_at=now
        )
        return msgspec.structs.replace(
            after, sequence=after.sequence + 1, tickets={**after.tickets, search: ticket}
        )

    return give_back


mutant(
    "lost hold",
    "a hold that is given back is a new ticket at the end of the queue",
    Swap("admission.hold:give_back", _give_back_at_the_end),
)
