"""Gates over a real Redis: the ceiling holds, also when it forgets who was admitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from redis_gate_stage import PACE, Site, Yard, yard
from redis_stage import KEY, LOSSES, Loss, refused, until

from blastyard.admission.order import Turn
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.port import LEDGER
from blastyard.admission.stay import Stay
from blastyard.domain.errors import Unavailable
from blastyard.testing.redis_pytest import NewRedis
from blastyard.testing.redis_server import RedisServer


@pytest.fixture
def one_slot(own_redis: RedisServer) -> Iterator[Yard]:
    """Room for one search."""
    with yard(own_redis) as made:
        yield made


def never_beyond(site: Site, search: str, back: Callable[[], bool], ceiling: int = 1) -> None:
    """Ask for ``search`` again and again until what ran is back in the ledger."""

    def asked_in_vain() -> bool:
        assert site.asks(search) is None, "admitted beyond the ceiling"
        return back()

    until(asked_in_vain)
    assert site.asks(search) is None


def holds(site: Site) -> set[str]:
    """The holds of a ledger that is whole; none while that cannot be told."""
    try:
        ledger = site.gate.ledger()
    except Unavailable:
        return set()
    return set(ledger.holds) if ledger.is_whole else set()


def test_the_ceiling_holds_for_many_processes(own_redis: RedisServer) -> None:
    ceiling = 2
    with yard(own_redis, ceiling) as made:
        sites = [made.site(f"serve-{number}") for number in range(4)]
        most = []

        def work(site: Site) -> None:
            for number in range(8):
                search = f"{site.gate.me.name}-{number}"
                site.runs(search)
                most.append(made.running)
                site.ends(search)

        with ThreadPoolExecutor(len(sites)) as pool:
            list(pool.map(work, sites))

        assert len(most) == 32
        assert max(most) <= ceiling
        assert holds(sites[0]) == set()


@pytest.mark.parametrize("loss", LOSSES)
def test_after_a_loss_nobody_gets_the_slot_of_a_search_that_runs(
    one_slot: Yard, loss: Loss
) -> None:
    """Faults B12 and B14."""
    holder, other = one_slot.site("serve-1"), one_slot.site("serve-2")
    before = holder.runs("s1")

    loss(one_slot.server)

    never_beyond(other, "s2", lambda: "s1" in holds(other))
    holder.ends("s1")
    after = other.runs("s2")
    assert after.fence.uid != before.fence.uid
    assert after.fence.number > before.fence.number


def test_a_hold_that_was_granted_after_the_last_save_is_not_forgotten(
    new_redis: NewRedis,
) -> None:
    """Fault B14: the server comes back with a whole ledger, which is too old."""
    server = new_redis(appendonly="no")
    with yard(server) as made:
        holder, other = made.site("serve-1"), made.site("serve-2")
        other.runs("s0")
        other.ends("s0")
        server.command("SAVE")
        holder.runs("s1")
        server.restart()
        saved = server.command("HGET", KEY, "=" + LEDGER) or b""  # or it was let go of already
        assert b"s1" not in saved

        never_beyond(other, "s2", lambda: "s1" in holds(other))
        holder.ends("s1")
        other.runs("s2")


def test_who_comes_after_the_loss_waits_for_those_who_were_there(one_slot: Yard) -> None:
    """Faults B12 and B14: a new process knows of nobody."""
    holder = one_slot.site("serve-1")
    holder.runs("s1")
    one_slot.server.restart(empty=True)

    newcomer = one_slot.site("serve-9")

    never_beyond(newcomer, "s2", lambda: "s1" in holds(newcomer))


def test_a_holder_that_is_cut_off_during_the_loss_is_waited_for(one_slot: Yard) -> None:
    """Faults B14 and B22: the others remember it, though the server does not."""
    holder, other = one_slot.site("serve-1"), one_slot.site("serve-2")
    holder.runs("s1")
    until(lambda: "serve-1" in other.gate.submitters())
    holder.fall_silent()
    one_slot.server.restart(empty=True)

    never_beyond(other, "s2", lambda: is_restoring(other))
    holder.come_back()

    never_beyond(other, "s2", lambda: "s1" in holds(other))
    holder.ends("s1")
    other.runs("s2")


def is_restoring(site: Site) -> bool:
    """Whether there is a new ledger that waits for somebody's claims."""
    try:
        outcome = site.gate.turn("s2")
    except Unavailable:
        return False
    assert not isinstance(outcome, Turn)
    return isinstance(outcome, Waiting) and outcome.reason is Reason.RESTORING


@pytest.mark.parametrize("loss", LOSSES)
def test_whoever_is_inside_gate_a_is_out_before_another_comes_in(
    one_slot: Yard, loss: Loss
) -> None:
    """Faults A7 and A10."""
    inside, other = one_slot.site("serve-1"), one_slot.site("serve-2")
    stay = until(lambda: entered(inside, "s1"))

    loss(one_slot.server)

    def comes_in() -> Stay | None:
        came = entered(other, "s2")
        assert came is None or not stay.is_trusted, "two inside"
        return came

    came = until(comes_in)
    assert not stay.renew()
    assert came.renew()
    inside.gate.leave(stay)
    assert came.renew(), "who was lost touched nothing"
    other.gate.leave(came)


def entered(site: Site, search: str) -> Stay | None:
    try:
        stay = site.gate.enter(search, 1)
    except Unavailable:
        return None
    return stay if isinstance(stay, Stay) else None


def test_while_the_server_is_away_nobody_is_admitted_and_everybody_is_told(
    one_slot: Yard,
) -> None:
    """Faults A13 and B7."""
    site = one_slot.site("serve-1")
    one_slot.server.kill()

    for ask in (
        lambda: site.gate.turn("s1"),
        lambda: site.gate.enter("s1", 1),
        site.gate.due,
        site.gate.view,
    ):
        assert "cannot be reached" in refused(ask).message
    one_slot.server.start()
    site.runs("s1")


def test_while_a_loss_is_waited_out_everybody_is_told_how_long(one_slot: Yard) -> None:
    """Fault B7."""
    site = one_slot.site("serve-1")
    one_slot.server.restart(empty=True)

    error = until(lambda: waiting_out(site))

    assert error.retry_after is not None
    assert 0 < error.retry_after <= PACE.grace.total_seconds()


def waiting_out(site: Site) -> Unavailable | None:
    error = refused(site.gate.due)
    return error if "may have forgotten" in error.message else None


def test_a_server_that_stops_now_and_then_costs_time_and_no_slot(own_redis: RedisServer) -> None:
    """Faults A13 and B11."""
    with yard(own_redis, ceiling=2) as made:
        sites = [made.site(f"serve-{number}") for number in range(3)]
        most, done = [], Event()

        def disturb() -> None:
            for _ in range(6):
                own_redis.pause()
                done.wait(0.5)
                own_redis.resume()
                done.wait(0.3)

        def work(site: Site) -> None:
            for number in range(5):
                search = f"{site.gate.me.name}-{number}"
                site.runs(search)
                most.append(made.running)
                site.ends(search)

        with ThreadPoolExecutor(len(sites) + 1) as pool:
            disturbing = pool.submit(disturb)
            list(pool.map(work, sites))
            done.set()
            disturbing.result()

        assert max(most) <= 2
        until(lambda: not sites[0].gate.ledger().holds)
