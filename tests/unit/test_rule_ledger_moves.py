"""Any sequence of moves on one ledger keeps what admission promises."""

from __future__ import annotations

from datetime import timedelta

from admission_stage import ME, NOW, OTHER, TIMINGS, new_ledger, seconds
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from blastyard.admission import hold as holds
from blastyard.admission import ticket as tickets
from blastyard.admission.census import Census, occupied
from blastyard.admission.hold import Attempt, Reserved
from blastyard.admission.ledger import Fence, HoldState, Ledger, decode_ledger, encode, families
from blastyard.admission.order import Situation, patience
from blastyard.admission.outcome import Granted, Refused, Waiting

SEARCHES = tuple(f"s{number}" for number in range(7))
NAME = st.sampled_from(SEARCHES)
WHO = st.sampled_from((ME, OTHER))


class LedgerMoves(RuleBasedStateMachine):
    """Two submitters, some of whose requests are late, repeated, or made without a right."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = new_ledger(ceiling=2, ageing=300)
        self.now = NOW
        self.gate_free_since = NOW
        self.foreign: frozenset[str] = frozenset()
        self.granted: dict[tuple[str, str, int], Fence] = {}
        self.attempts = dict.fromkeys(SEARCHES, 0)
        self.places: dict[str, int] = {}

    def situation(self, alive: frozenset[str] = frozenset((ME, OTHER))) -> Situation:
        return Situation(self.now, alive, Census(self.foreign), self.gate_free_since)

    def write(self, after: Ledger | None) -> None:
        if after is None:
            return
        assert after != self.ledger, "a write that changes nothing"
        assert after.uid == self.ledger.uid
        assert after.fence >= self.ledger.fence
        assert after.sequence >= self.ledger.sequence
        self.ledger = decode_ledger(encode(after))
        assert self.ledger == after

    # -- the world -----------------------------------------------------------------------------

    @rule(by=st.sampled_from((0.0, 0.4, 1.0, 3.0, 60.0, 700.0)))
    def time_passes(self, by: float) -> None:
        self.now += seconds(by)

    @rule()
    def the_clock_is_put_back(self) -> None:
        self.now -= seconds(20)

    @rule(names=st.sets(st.sampled_from(("f1", "f2", *SEARCHES)), max_size=3))
    def others_run(self, names: set[str]) -> None:
        self.foreign = frozenset(names)

    # -- waiting -------------------------------------------------------------------------------

    @rule(name=NAME, who=WHO, user=st.sampled_from(("ada", "bo")), level=st.integers(0, 2))
    def publish(self, name: str, who: str, user: str, level: int) -> None:
        wishes = [tickets.Wish(name, user, level)]
        is_new = name not in self.ledger.tickets and name not in self.ledger.holds
        self.write(tickets.publish(self.ledger, who, wishes, self.now))
        assert tickets.publish(self.ledger, who, wishes, self.now) is None
        if is_new:
            assert self.ledger.tickets[name].sequence > max(self.places.values(), default=0)
            self.places[name] = self.ledger.tickets[name].sequence

    @rule(name=NAME, who=WHO)
    def adopt(self, name: str, who: str) -> None:
        self.write(tickets.adopt(self.ledger, name, who, self.now))
        assert tickets.adopt(self.ledger, name, who, self.now) is None

    @rule(name=NAME, aside=st.booleans())
    def park(self, name: str, aside: bool) -> None:
        for _ in range(2):
            move = (
                tickets.park(self.ledger, name, "root", self.now)
                if aside
                else tickets.unpark(self.ledger, name, self.now)
            )
            self.write(move)
        assert move is None

    @rule(name=NAME, phase=st.sampled_from((None, "waiting_for_database")))
    def block(self, name: str, phase: str | None) -> None:
        self.write(tickets.block(self.ledger, name, phase, self.now))
        assert tickets.block(self.ledger, name, phase, self.now) is None

    @rule(name=NAME)
    def withdraw(self, name: str) -> None:
        before = self.ledger
        self.write(tickets.withdraw(self.ledger, name, self.now))
        assert tickets.withdraw(self.ledger, name, self.now) is None
        assert self.ledger.holds == before.holds
        if name not in self.ledger.holds:
            self.places.pop(name, None)

    @rule(ceiling=st.integers(0, 4), cap=st.integers(0, 2))
    def change_policy(self, ceiling: int, cap: int) -> None:
        before = self.ledger
        self.write(tickets.change_policy(self.ledger, "root", self.now, ceiling=ceiling, cap=cap))
        assert self.ledger.holds == before.holds, "a lowered ceiling keeps what runs"
        assert self.ledger.policy.ceiling == ceiling

    # -- running -------------------------------------------------------------------------------

    @rule(name=NAME, who=WHO, again=st.booleans(), silent=st.booleans())
    def reserve(self, name: str, who: str, again: bool, silent: bool) -> None:
        self.attempts[name] += 0 if again else 1
        attempt = Attempt(name, self.attempts[name], who)
        alive = frozenset((who,)) if silent else frozenset((ME, OTHER))
        seen = self.situation(alive)
        before = self.ledger
        match holds.reserve(before, attempt, seen, TIMINGS):
            case Reserved(ledger=after, granted=granted) if after is before:
                key = (name, who, attempt.number)
                assert self.granted[key] == granted.fence, "asked again, granted something else"
            case Reserved(ledger=after, granted=granted):
                self.check_grant(before, after, attempt, seen)
                self.write(after)
                self.gate_free_since = self.now
                self.granted[name, who, attempt.number] = granted.fence
                repeated = holds.reserve(self.ledger, attempt, seen, TIMINGS)
                assert repeated == Reserved(self.ledger, Granted(granted.fence))
            case Waiting() | Refused():
                pass

    def check_grant(self, before: Ledger, after: Ledger, attempt: Attempt, seen: Situation) -> None:
        name, ceiling = attempt.search, after.policy.ceiling
        hold = after.holds[name]
        assert hold.fence == after.fence > before.fence
        assert (hold.submitter, hold.attempt) == (attempt.submitter, attempt.number)
        assert hold.state is HoldState.RESERVED
        if name in before.holds:
            was = before.holds[name]
            assert (was.state, was.cancelled) == (HoldState.RESERVED, False)
            earlier = {
                other: one
                for other, one in before.holds.items()
                if other != name and (one.state is HoldState.SUBMITTED or one.fence < was.fence)
            }
            unknown = self.foreign - families(before.holds)
            assert len(families(earlier) | unknown) < ceiling
            return
        assert len(occupied(after.holds, seen.census)) <= ceiling
        self.check_order(before, name, seen)

    def check_order(self, before: Ledger, name: str, seen: Situation) -> None:
        ticket = before.tickets[name]
        assert ticket.parked_by is None
        assert ticket.blocked is None
        assert ticket.submitter in seen.alive
        running = [hold.ticket.user for hold in before.holds.values()]
        assert before.policy.user_cap is None or running.count(ticket.user) < before.policy.user_cap
        overtaken = [
            other
            for other in before.tickets.values()
            if (other.user, other.level) == (ticket.user, ticket.level)
            and other.sequence < ticket.sequence
            and other.parked_by is None
            and other.blocked is None
            and other.submitter in seen.alive
        ]
        assert before.turn_at is not None
        starts = [at for at in (before.turn_at, self.gate_free_since) if at <= self.now]
        if overtaken and starts:
            had = sum((patience(other, TIMINGS) for other in overtaken), timedelta(0))
            assert self.now >= max(starts) + had, f"{name} went out of turn"

    @rule(name=NAME, stale=st.booleans())
    def confirm(self, name: str, stale: bool) -> None:
        hold = self.ledger.holds.get(name)
        number = 1 if hold is None else hold.fence - stale
        outcome = holds.confirm(self.ledger, name, Fence(self.ledger.uid, number), self.now)
        assert isinstance(outcome, Refused) == (hold is None or stale)
        if not isinstance(outcome, Refused):
            self.write(outcome)
            assert self.ledger.holds[name].state is HoldState.SUBMITTED

    @rule(name=NAME)
    def cancel(self, name: str) -> None:
        self.write(holds.flag_cancelled(self.ledger, name))
        assert holds.flag_cancelled(self.ledger, name) is None

    @rule(name=NAME, who=WHO, late=st.booleans())
    def give_back(self, name: str, who: str, late: bool) -> None:
        hold = self.ledger.holds.get(name)
        upto = self.ledger.fence if hold is None else hold.fence - late
        self.write(holds.give_back(self.ledger, name, who, upto, self.now))
        if hold is not None and late:
            assert self.ledger.holds[name] == hold
        elif hold is not None:
            assert self.ledger.tickets[name].sequence == hold.ticket.sequence
        if not late:
            assert holds.give_back(self.ledger, name, who, upto, self.now) is None

    @rule(name=NAME)
    def end(self, name: str) -> None:
        self.write(holds.end(self.ledger, name, self.now))
        assert holds.end(self.ledger, name, self.now) is None
        self.places.pop(name, None)

    # -- what always holds ---------------------------------------------------------------------

    @invariant()
    def a_search_has_a_ticket_or_a_hold(self) -> None:
        assert not self.ledger.tickets.keys() & self.ledger.holds.keys()
        assert self.ledger.tickets.keys() | self.ledger.holds.keys() == self.places.keys()

    @invariant()
    def a_search_keeps_its_place_in_the_queue(self) -> None:
        held = {name: hold.ticket.sequence for name, hold in self.ledger.holds.items()}
        waits = {name: ticket.sequence for name, ticket in self.ledger.tickets.items()}
        assert {**held, **waits} == self.places

    @invariant()
    def fences_are_distinct_and_none_is_above_that_of_the_ledger(self) -> None:
        fences = [hold.fence for hold in self.ledger.holds.values()]
        assert len(set(fences)) == len(fences)
        assert max(fences, default=0) <= self.ledger.fence

    @invariant()
    def later_tickets_never_look_older(self) -> None:
        waiting = sorted(self.ledger.tickets.values(), key=lambda ticket: ticket.sequence)
        instants = [ticket.ticketed_at for ticket in waiting]
        assert instants == sorted(instants)


TestLedgerMoves = LedgerMoves.TestCase
TestLedgerMoves.settings = settings(stateful_step_count=40)
