"""Who is inside Gate A, as the record tells."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from admission_stage import NOW, TIMINGS, seconds
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from blastyard.admission.lease import (
    Free,
    Held,
    Seen,
    SubmitLease,
    claim,
    format_time,
    holder_name,
    is_blastyard,
    judge,
    parse_time,
    released,
    renewed,
    stamped_anew,
    trusted_until,
)
from blastyard.admission.ledger import encode
from blastyard.admission.timing import Timings

OURS = holder_name("s1", 1)
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def blastyard_lease(stamped_at: datetime, now: datetime, renew_time: str | None = None) -> Seen:
    text = renew_time or format_time(stamped_at)
    return Seen(SubmitLease(OURS, 900, text, text), stamped_at, now)


def foreign_lease(renew_time: str | None, now: datetime = NOW, duration: int | None = 900) -> Seen:
    return Seen(SubmitLease("dashboard-7", duration, renew_time, renew_time), NOW, now)


def test_a_record_without_a_holder_is_free_since_it_was_written() -> None:
    assert judge(Seen(SubmitLease(), None, NOW), TIMINGS) == Free(None)
    assert judge(Seen(SubmitLease(), NOW, NOW + seconds(9)), TIMINGS) == Free(NOW)


def test_the_name_of_a_holder_tells_search_attempt_and_kind() -> None:
    assert OURS == "blastyard-s1-1"
    assert is_blastyard(OURS)
    assert not is_blastyard("dashboard-blastyard-1")


def test_a_silent_blastyard_holder_may_be_followed_after_the_takeover_time_and_no_earlier() -> None:
    until = NOW + TIMINGS.takeover
    almost = blastyard_lease(NOW, until - timedelta(microseconds=1))

    assert judge(almost, TIMINGS) == Held(OURS, format_time(NOW), until)
    assert judge(blastyard_lease(NOW, until), TIMINGS) == Free(until)


def test_a_holder_whose_record_was_never_stamped_is_not_followed() -> None:
    never = Seen(SubmitLease(OURS, 900, None, None), None, NOW)

    assert isinstance(judge(never, TIMINGS), Held)


def test_the_duration_in_a_foreign_record_counts_and_not_ours() -> None:
    """Fault A3."""
    short_here = Timings(wire=seconds(60), command=seconds(30))
    ends = NOW + seconds(900) + short_here.skew

    assert isinstance(judge(foreign_lease(format_time(NOW), ends), short_here), Held)
    after = foreign_lease(format_time(NOW), ends + seconds(1))
    assert judge(after, short_here) == Free(ends)


def test_a_foreign_record_with_a_short_duration_ends_sooner_than_ours_would() -> None:
    """Fault A3."""
    ends = NOW + seconds(30) + TIMINGS.skew

    assert isinstance(judge(foreign_lease(format_time(NOW), ends, 30), TIMINGS), Held)
    after = foreign_lease(format_time(NOW), ends + seconds(1), 30)
    assert isinstance(judge(after, TIMINGS), Free)


def test_a_foreign_record_without_a_duration_is_given_the_wire_duration() -> None:
    ends = NOW + TIMINGS.wire + TIMINGS.skew

    assert judge(foreign_lease(format_time(NOW), duration=None), TIMINGS) == Held(
        "dashboard-7", format_time(NOW), ends
    )


def test_a_foreign_holder_that_never_wrote_a_time_is_free() -> None:
    assert isinstance(judge(foreign_lease(None), TIMINGS), Free)


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2024-05-06T07:08:09.000000Z", 0),
        ("2024-05-06T07:08:09Z", 0),
        ("2024-05-06T07:08:09+00:00", 0),
        ("2024-05-06T09:08:09+02:00", 0),
        ("2024-05-06T02:08:09.250-05:00", 250_000),
        ("2024-05-06T07:08:09.123Z", 123_000),
        ("2024-05-06T07:08:09.1234567Z", 123_456),
        ("2024-05-06T07:08:09.123456789Z", 123_456),
        (" 2024-05-06T07:08:09.5Z ", 500_000),
    ],
)
def test_a_time_is_read_however_it_is_written(text: str, microsecond: int) -> None:
    """Fault A4."""
    at = NOW.replace(microsecond=microsecond)

    assert parse_time(text) == at
    held = judge(foreign_lease(text), TIMINGS)
    assert isinstance(held, Held)
    assert (held.until, held.note) == (at + TIMINGS.wire + TIMINGS.skew, "")
    late = foreign_lease(text, NOW + TIMINGS.wire + TIMINGS.skew + seconds(2))
    assert isinstance(judge(late, TIMINGS), Free)


@pytest.mark.parametrize(
    "text", ["", " ", "yesterday", "2024-05-06T07:08:09", "2024-13-06T07:08:09Z", "1714979289"]
)
def test_a_time_that_cannot_be_read_is_held_for_ever_and_said(text: str) -> None:
    """Fault A4."""
    years_later = NOW + timedelta(days=3650)

    held = judge(foreign_lease(text, years_later), TIMINGS)

    assert isinstance(held, Held)
    assert held.until is None
    assert repr(text) in held.note
    assert "cannot be read" in held.note
    assert claim(foreign_lease(text, years_later), OURS, TIMINGS) == held


@pytest.mark.parametrize(
    ("text", "duration"), [("9999-12-31T23:59:59Z", 900), ("2024-05-06T07:08:09Z", 2**62)]
)
def test_a_foreign_lease_that_ends_after_the_calendar_is_held(text: str, duration: int) -> None:
    """Fault A4."""
    assert isinstance(judge(foreign_lease(text, duration=duration), TIMINGS), Held)


@given(
    stamped_at=INSTANTS,
    silent=st.integers(0, 60_000),
    shift=st.sampled_from([60.0, -600.0, 86_400.0]),
)
def test_only_the_clock_of_the_store_decides_about_a_blastyard_holder(
    stamped_at: datetime, silent: int, shift: float
) -> None:
    """Fault A5."""
    now = stamped_at + timedelta(milliseconds=silent)
    by_another_clock = format_time(stamped_at + seconds(shift))

    verdict = judge(blastyard_lease(stamped_at, now), TIMINGS)

    assert isinstance(verdict, Free) == (silent >= 30_000)
    told = judge(blastyard_lease(stamped_at, now, by_another_clock), TIMINGS)
    assert type(told) is type(verdict)
    assert claim(blastyard_lease(stamped_at, now), "blastyard-s2-1", TIMINGS) == (
        SubmitLease("blastyard-s2-1", 900, format_time(now), format_time(now))
        if isinstance(verdict, Free)
        else verdict
    )


@pytest.mark.parametrize("hours", [1, 5, 1000])
def test_a_lease_that_ended_hours_ago_is_taken_at_once(hours: int) -> None:
    """Fault A6."""
    now = NOW + timedelta(hours=hours)
    at = format_time(now)

    for left in (blastyard_lease(NOW, now), foreign_lease(format_time(NOW), now)):
        assert claim(left, "blastyard-s2-1", TIMINGS) == SubmitLease("blastyard-s2-1", 900, at, at)


def test_the_holder_that_asks_again_claims_again_and_keeps_when_it_came() -> None:
    """Fault A1."""
    now = NOW + seconds(12)

    again = claim(blastyard_lease(NOW, now), OURS, TIMINGS)

    assert again == SubmitLease(OURS, 900, format_time(NOW), format_time(now))


def test_another_attempt_at_the_same_search_is_somebody_else() -> None:
    """Fault A14."""
    held = claim(blastyard_lease(NOW, NOW + seconds(1)), holder_name("s1", 2), TIMINGS)

    assert isinstance(held, Held)
    assert held.holder == OURS


def test_an_old_holder_can_neither_renew_nor_clear_what_another_took() -> None:
    """Fault A10."""
    taken = Seen(SubmitLease("blastyard-s2-1", 900, None, format_time(NOW)), NOW, NOW)

    assert renewed(taken, OURS, TIMINGS) is None
    assert released(taken, OURS) is None


def test_a_record_that_is_free_is_neither_renewed_nor_cleared() -> None:
    free = Seen(SubmitLease(), NOW, NOW)

    assert renewed(free, OURS, TIMINGS) is None
    assert released(free, OURS) is None


def test_where_stamps_are_coarse_a_release_says_itself_when_it_was() -> None:
    cleared = SubmitLease(renew_time=format_time(NOW))
    stamped_at, now = NOW + seconds(1), NOW + seconds(2)

    assert judge(Seen(cleared, stamped_at, now, is_coarse=True), TIMINGS) == Free(NOW)
    assert judge(Seen(cleared, stamped_at, now), TIMINGS) == Free(stamped_at)
    long_ago = SubmitLease(renew_time=format_time(NOW - seconds(60)))
    assert judge(Seen(long_ago, stamped_at, now, is_coarse=True), TIMINGS) == Free(stamped_at)


def test_a_release_leaves_nothing_of_its_holder() -> None:
    after = released(blastyard_lease(NOW, NOW), OURS)

    assert after == SubmitLease(renew_time=format_time(NOW))
    assert after.holder_identity == ""


def test_the_record_has_the_names_and_the_duration_that_peers_expect() -> None:
    record = claim(Seen(SubmitLease(), None, NOW), OURS, TIMINGS)

    assert isinstance(record, SubmitLease)
    assert encode(record) == (
        b'{"holderIdentity":"blastyard-s1-1","leaseDurationSeconds":900,'
        b'"acquireTime":"2024-05-06T07:08:09.000000Z","renewTime":"2024-05-06T07:08:09.000000Z"}'
    )


@given(instant=INSTANTS, hours=st.integers(-12, 14))
def test_a_written_time_has_six_digits_and_reads_back_as_the_same_instant(
    instant: datetime, hours: int
) -> None:
    text = format_time(instant.astimezone(timezone(timedelta(hours=hours))))

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", text)
    assert parse_time(text) == instant


def test_a_record_from_the_future_is_stamped_anew_so_that_nobody_waits_for_the_clock() -> None:
    ahead = blastyard_lease(NOW + seconds(600), NOW)

    assert stamped_anew(ahead) == ahead.lease
    assert stamped_anew(blastyard_lease(NOW, NOW)) is None
    assert stamped_anew(Seen(SubmitLease(), NOW + seconds(600), NOW)) is None
    assert stamped_anew(Seen(ahead.lease, None, NOW)) is None


class GateA(RuleBasedStateMachine):
    """Three processes at one record; requests take time and answers get lost."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lease = SubmitLease()
        self.stamped_at: datetime | None = None
        self.deadlines = [0.0, 0.0, 0.0]

    def seen(self) -> Seen:
        return Seen(self.lease, self.stamped_at, NOW + seconds(self.now))

    def write(self, lease: SubmitLease) -> None:
        self.lease = lease
        self.stamped_at = NOW + seconds(self.now)

    @rule(by=st.sampled_from([0.5, 4.9, 8.0, 21.9, 22.0, 29.9, 30.0, 400.0]))
    def time_passes(self, by: float) -> None:
        self.now += by

    @rule(who=st.integers(0, 2), takes=st.sampled_from([0.0, 4.9]), heard=st.booleans())
    def ask(self, who: int, takes: float, heard: bool) -> None:
        asked_at = self.now
        self.now += takes
        match claim(self.seen(), holder_name("s", who), TIMINGS):
            case SubmitLease() as record:
                self.write(record)
                if heard:
                    self.deadlines[who] = trusted_until(asked_at, TIMINGS)
            case held:
                assert held.holder != holder_name("s", who)
                assert held.until is not None
                assert self.seen().now < held.until

    @rule(who=st.integers(0, 2), takes=st.sampled_from([0.0, 4.9]))
    def renew(self, who: int, takes: float) -> None:
        asked_at = self.now
        self.now += takes
        record = renewed(self.seen(), holder_name("s", who), TIMINGS)
        if record is not None:
            self.write(record)
            self.deadlines[who] = trusted_until(asked_at, TIMINGS)

    @rule(who=st.integers(0, 2))
    def release(self, who: int) -> None:
        self.deadlines[who] = self.now
        record = released(self.seen(), holder_name("s", who))
        if record is not None:
            self.write(record)

    @invariant()
    def at_most_one_trusts_its_claim(self) -> None:
        trusting = [who for who in range(3) if self.now < self.deadlines[who]]
        assert len(trusting) <= 1
        if trusting:
            assert self.lease.holder_identity == holder_name("s", trusting[0])


TestGateA = GateA.TestCase
TestGateA.settings = settings(stateful_step_count=25)
