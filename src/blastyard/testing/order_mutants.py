"""Wrong rules of the queue and of the ledger."""

# ruff: noqa: ARG001, ARG005  (a wrong rule ignores what the right one looks at)
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from blastyard.admission.ledger import Ledger, Policy
from blastyard.admission.order import Situation, Turn, patience
from blastyard.admission.outcome import Reason, Waiting
from blastyard.domain.errors import Unavailable
from blastyard.testing.mutant import Swap, mutant
from blastyard.testing.schedule import Habitat

mutant(
    "no ageing",
    "waiting makes no search more urgent",
    Swap("admission.order:aged_level", lambda _: lambda ticket, ageing, now: ticket.level),
)


def _in_order_of_arrival(queues: dict[str, Any], served: Any, turn: int) -> Iterator[Any]:
    entries = sorted(entry for queue in queues.values() for entry in queue)
    for _, search, ticket in entries:
        yield search, ticket


mutant(
    "no round-robin",
    "who submits much and early is served first",
    Swap("admission.order:_round_robin", lambda _: _in_order_of_arrival),
)


def _nobody_is_passed(place: Any, ahead: Any, ledger: Any, seen: Situation, timings: Any) -> object:
    if not ahead:
        return Turn(place.position)
    return Waiting(Reason.TURN, "somebody is ahead", place.position)


mutant(
    "nobody is passed over",
    "a head that does not claim holds everybody up",
    Swap("admission.order:_in_turn", lambda _: _nobody_is_passed),
    Habitat.STALLS,
)


def _first_come(place: Any, ahead: Any, ledger: Any, seen: Situation, timings: Any) -> object:
    return Turn(place.position, tuple(other.search for other in ahead))


mutant(
    "no turn",
    "whoever asks first goes first, the head has no time to claim",
    Swap("admission.order:_in_turn", lambda _: _first_come),
)


def _obstacle_free(reason: Reason) -> Any:
    def made(right: Any) -> Any:
        def places(*arguments: Any) -> object:
            return [
                place if place.obstacle is not reason else _without_obstacle(place)
                for place in right(*arguments)
            ]

        return places

    return made


def _without_obstacle(place: Any) -> Any:
    return replace(place, obstacle=None)


for _reason in (Reason.PARKED, Reason.USER_CAP):
    mutant(
        f"{_reason} goes on",
        f"a search with the obstacle {_reason} is admitted all the same",
        Swap("admission.order:places", _obstacle_free(_reason)),
    )

mutant(
    "part of a ledger will do",
    "admission goes on while the claims of a lost ledger are being collected",
    Swap("admission.ledger:Ledger.is_whole", lambda _: property(lambda self: True)),
)


def _whole_at_once(right: Any) -> Any:
    def restore(ledger: Any, me: str, claims: Any, known: Any, now: datetime) -> object:
        after = right(ledger, me, claims, known, now)
        return None if after is None else msgspec.structs.replace(after, restored=None)

    return restore


mutant(
    "restored by one",
    "a lost ledger is whole as soon as one submitter has brought back its claims",
    Swap("admission.restoration:restore", _whole_at_once),
    Habitat.LOSSES,
)


def _empty_if_unreadable(right: Any) -> Any:
    def decode(body: bytes) -> Ledger:
        try:
            made: Ledger = right(body)
        except Unavailable:
            return Ledger(uid="guessed", policy=Policy(), fence=0)
        return made

    return decode


mutant(
    "unreadable is empty",
    "a ledger that cannot be read is taken for an empty one",
    Swap("admission.record:decode_ledger", _empty_if_unreadable),
)


def _conflict_is_success(right: Any) -> Any:
    def change(self: Any, name: str, step: Any) -> object:
        snapshot = self.documents.read(name)
        body, outcome = step(snapshot)
        if body is not None:
            self.documents.swap(name, snapshot.version, body)
        return outcome

    return change


mutant(
    "conflict is success",
    "nobody looks whether a swap was refused",
    Swap("admission.record:Record._change", _conflict_is_success),
)


def _ends_in(column: str) -> Any:
    """Ending a search changes nothing unless it stands in this column of the ledger."""

    def made(right: Any) -> Any:
        def end(ledger: Ledger, search: str, now: datetime) -> object:
            return right(ledger, search, now) if search in getattr(ledger, column) else None

        return end

    return made


for _ended, _left in (("hold", "ticket"), ("ticket", "hold")):
    mutant(
        f"{_left} left behind",
        f"the end of a search ends its {_ended} and leaves its {_left}",
        Swap("admission.hold:end", _ends_in(f"{_ended}s")),
    )

mutant(
    "given back whatever it is",
    "a late return takes away a hold that was granted since",
    Swap(
        "admission.hold:give_back",
        lambda right: (
            lambda ledger, search, submitter, upto, now: right(ledger, search, submitter, None, now)
        ),
    ),
    Habitat.STALLS,
)

mutant(
    "stamp from the future",
    "after the clock was put back, the silence of a dead holder lasts until it has caught up",
    Swap("admission.lease:stamped_anew", lambda _: lambda seen: None),
    Habitat.CLOCKS,
)


def _cap_by_the_queue(right: Any) -> Any:
    def places(ledger: Ledger, now: datetime, alive: Any) -> object:
        cap = ledger.policy.user_cap
        running = Counter(hold.ticket.user for hold in ledger.holds.values())
        queue = []
        for place in right(ledger, now, alive):
            user = place.ticket.user
            at_cap = cap is not None and running[user] >= cap
            if place.obstacle is None and at_cap:
                queue.append(replace(place, obstacle=Reason.USER_CAP))
                continue
            if place.obstacle is None:
                running[user] += 1
            queue.append(place)
        return queue

    return places


mutant(
    "the cap counts who waits",
    "a search that is first and does not claim stops the others of its user",
    Swap("admission.order:places", _cap_by_the_queue),
    Habitat.STALLS,
)


def _turns_of_the_future(
    place: Any, ahead: Any, ledger: Any, seen: Situation, timings: Any
) -> object:
    grace = sum((patience(other.ticket, timings) for other in ahead), timedelta(0))
    starts = [at for at in (ledger.turn_at, seen.gate_free_since) if at is not None]
    opens_at = max(starts, default=seen.now - grace) + grace
    if seen.now >= opens_at:
        return Turn(place.position, tuple(other.search for other in ahead))
    return Waiting(Reason.TURN, "later", place.position, opens_at)


mutant(
    "turns of the future",
    "after the clock was put back nobody's turn comes until it has caught up",
    Swap("admission.order:_in_turn", lambda _: _turns_of_the_future),
    Habitat.CLOCKS,
)


def _one_name(right: Any) -> Any:
    def restore(self: Any) -> object:
        around, name = self._around, self._around.new_uid()
        self._around = replace(around, new_uid=lambda: name)
        try:
            return right(self)
        finally:
            self._around = around

    return restore


mutant(
    "one name for two ledgers",
    "a ledger that is made again in one go has the name of the one that was lost again",
    Swap("admission.outlook:Outlook._begun", _one_name),
    Habitat.LOSSES,
)


def _only_older(ledger: Ledger, census: Any, search: str) -> bool:
    older = {name for name, hold in ledger.holds.items() if hold.fence < ledger.holds[search].fence}
    uncovered = census.families - set(ledger.holds)
    return 1 + len(older | uncovered) <= ledger.policy.ceiling


mutant(
    "only older holds",
    "a resumed reservation does not count what was granted after it and runs",
    Swap("admission.census:room_to_resume", lambda _: _only_older),
    Habitat.INTRUDERS,
)
