"""Gate A on a real API server: lost answers, races, and what a record says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from lease_site_stage import LEASE, Site, site
from waiting_stage import QUICK, until

from blastyard.admission.outcome import Waiting
from blastyard.admission.stay import Stay
from blastyard.domain.errors import Unavailable
from blastyard.kube.client import Client, Selection
from blastyard.kube.resource import CONFIGMAPS, LEASES
from blastyard.testing.proxy_fault import Delay, LostAnswer, LostRequest, Reset, Rule

__all__ = ["site"]

Call = Callable[[Client], Any]
SECOND = timedelta(seconds=1)
DURATION = "leaseDurationSeconds"


def config_map(**metadata: str) -> dict[str, Any]:
    return {"metadata": {"name": "some", **metadata}}


# -- lost answers and races ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_a_claim_whose_answer_was_lost_is_adopted(site: Site, verb: str) -> None:
    """Fault A1: it is ours, and nobody has to wait for it to expire."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    if verb == "PUT":
        site.put_lease("")
        until(lambda: mine.gate.record.lease().stamped_at)
    rule = proxy.plan.add(Rule(LostAnswer(), verb, "/leases"))

    stay = mine.inside("job-1")

    assert (rule.hits, site.holder()) == (1, "blastyard-job-1-1")
    assert stay.is_trusted
    assert [each.status for each in proxy.log.records("PUT|POST", LEASE)][-1] == 200
    mine.gate.leave(stay)
    assert site.holder() == ""


def test_a_claim_is_adopted_by_the_next_call_when_all_of_one_were_lost(site: Site) -> None:
    """Fault A1: more answers in a row are lost than one call asks again for."""
    proxy = site.proxy()
    mine, other = site.installation(kubeconfig=site.through(proxy)), site.installation()
    site.put_lease("")
    lost = proxy.plan.add(Rule(LostAnswer(), "PUT", LEASE, times=None))

    with pytest.raises(Unavailable):
        mine.gate.enter("job-1", 1)
    assert lost.hits >= 1
    assert "blastyard-job-1-1" in other.refused("job-2")
    proxy.plan.clear()

    assert mine.inside("job-1").is_trusted


def test_a_claim_nobody_asks_for_again_is_released_with_the_next_beat(site: Site) -> None:
    """Fault A1: what was claimed unheard does not block the others until it lapses."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    site.put_lease("")
    proxy.plan.add(Rule(LostAnswer(), "PUT", LEASE, times=None))
    with pytest.raises(Unavailable):
        mine.gate.enter("job-1", 1)
    assert site.holder() == "blastyard-job-1-1"
    proxy.plan.clear()

    mine.gate.beat()

    assert site.holder() == ""


VERBS: dict[str, Call] = {
    "GET": lambda client: client.get(CONFIGMAPS, "some"),
    "POST": lambda client: client.create(CONFIGMAPS, config_map()),
    "PUT": lambda client: client.replace(CONFIGMAPS, config_map(uid="u", resourceVersion="1")),
    "PATCH": lambda client: client.patch(LEASES, "some", {"spec": {}}),
    "DELETE": lambda client: client.delete(LEASES, "some", "u"),
    "LIST": lambda client: client.listing(LEASES, dict, Selection()),
}


@pytest.mark.parametrize("fault", [LostAnswer(), LostRequest(), Reset()], ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_no_request_is_sent_twice_behind_our_back(
    site: Site, verb: str, fault: LostAnswer | LostRequest | Reset
) -> None:
    """Fault A2: counted at the proxy, on a connection that was kept and on a new one."""
    proxy = site.proxy()
    client = site.connection(site.through(proxy)).client
    for is_kept in (True, False):
        if is_kept:
            client.get(LEASES, "some")
        proxy.log.clear()
        proxy.plan.add(Rule(fault))

        with pytest.raises(Unavailable):
            VERBS[verb](client)

        assert [each.fault for each in proxy.log.records()] == [fault]


def test_after_a_conflict_the_lease_is_read_again(site: Site) -> None:
    """Fault A2: a write of somebody's in between is no reason to believe that they are inside."""
    proxy = site.proxy()
    site.put_lease("")
    mine = site.installation(kubeconfig=site.through(proxy))
    kept = proxy.plan.add(Rule(Delay(), "PUT", LEASE))
    found: list[Stay | Waiting] = []
    asking = Thread(target=lambda: found.append(mine.gate.enter("job-1", 1)))
    asking.start()
    kept.wait()
    site.patch_lease(labels={"changed": "meanwhile"})
    kept.release()
    asking.join()

    assert isinstance(found[0], Stay)
    assert [each.status for each in proxy.log.records("PUT", LEASE)] == [409, 200]
    assert site.lease()["metadata"]["labels"]["changed"] == "meanwhile"


def test_a_conflict_with_ones_own_late_write_is_a_claim_that_stands(site: Site) -> None:
    """Fault A2: the 409 says that somebody was quicker, and it was ourselves."""
    proxy = site.proxy()
    site.put_lease("")
    mine = site.installation(kubeconfig=site.through(proxy))
    late, second = (proxy.plan.add(Rule(Delay(), "PUT", LEASE)) for _ in range(2))
    found: list[Stay | Waiting] = []
    asking = Thread(target=lambda: found.append(mine.gate.enter("job-1", 1)))
    asking.start()
    second.wait()  # the first was given up after the time-out, and read again
    late.release()
    until(lambda: site.holder() == "blastyard-job-1-1")
    second.release()
    asking.join()

    assert isinstance(found[0], Stay)
    assert found[0].is_trusted


def test_two_attempts_at_one_search_are_never_both_inside(site: Site) -> None:
    """Fault A14: the store decides, and who was second does not renew the first one's lease."""
    first, second = site.installation(), site.installation()
    stay, granted = first.admitted("job-1", 1)

    assert "blastyard-job-1-1 is submitting" in second.refused("job-1", 2)
    assert stay.confirm("job-1", granted.fence)
    first.gate.leave(stay)
    late = second.inside("job-1", 2)
    assert second.reserved(late, "job-1", 2).startswith("Refused")
    assert site.ledger().holds["job-1"].attempt == 1


# -- what the record says ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "ours", "is_held"),
    [(30, 10, True), (8, 900, False), (None, 900, True), (None, 10, False)],
)
def test_a_foreign_lease_lasts_as_long_as_it_says(
    site: Site, declared: int | None, ours: int, is_held: bool
) -> None:
    """Fault A3: ours counts only where it says nothing."""
    site.put_lease("peer-1", renewTime=20 * SECOND, **({DURATION: declared} if declared else {}))
    timings = replace(QUICK, wire=ours * SECOND, command=9 * SECOND, skew=SECOND)
    mine = site.installation(timings)

    if is_held:
        assert "peer-1" in mine.refused("job-1")
    else:
        assert mine.inside("job-1").is_trusted


FORMS = [
    "{:%Y-%m-%dT%H:%M:%S}.000000Z",
    "{:%Y-%m-%dT%H:%M:%S},000000Z",
    "{:%Y-%m-%dT%H:%M:%S}.123456+00:00",
    "{:%Y-%m-%dT%H:%M:%S}.000000-00:00",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_time_that_the_server_takes_is_understood(site: Site, form: str) -> None:
    """Fault A4: held while it lasts, free when it is over."""
    now = site.now()
    site.put_lease("peer-1", renewTime=form.format(now - 100 * SECOND), **{DURATION: 900})
    mine = site.installation()
    assert "peer-1" in mine.refused("job-1")

    site.put_lease("peer-1", renewTime=form.format(now - 1000 * SECOND), **{DURATION: 900})

    assert until(lambda: isinstance(mine.gate.enter("job-1", 1), Stay))


@pytest.mark.parametrize("hours", [-11, 5, 13])
def test_a_time_in_another_zone_is_the_same_instant(site: Site, hours: int) -> None:
    """Fault A4: read as the instant that it is."""
    local = f"{site.now() - 1000 * SECOND + hours * timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"
    site.put_lease("peer-1", renewTime=f"{local}.250000{hours:+03d}:00", **{DURATION: 900})
    assert site.installation().inside("job-1").is_trusted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0000-01-01T00:00:00.000000Z", "cannot be read, so it counts as held"),
        ("0001-01-01T00:30:00.000000+01:00", "cannot be read, so it counts as held"),
        ("9999-12-31T23:59:59.000000Z", "beyond the end of the calendar"),
    ],
)
def test_a_time_that_cannot_be_read_is_held_and_reported(site: Site, text: str, said: str) -> None:
    """Fault A4: the server takes years that no calendar of ours has."""
    site.put_lease("peer-1", renewTime=text, **{DURATION: 900})
    mine = site.installation()
    detail = mine.refused("job-1")
    assert "peer-1" in detail
    assert said in detail


def test_a_foreign_lease_that_expired_hours_ago_is_taken_at_once(site: Site) -> None:
    """Fault A6: whoever has just started does not wait another duration."""
    site.put_lease("peer-1", renewTime=timedelta(hours=5), **{DURATION: 900})
    assert site.installation().inside("job-1").is_trusted


def test_a_holder_that_is_long_silent_is_succeeded_at_once_by_whoever_starts(site: Site) -> None:
    """Fault A6: how long it has been silent is told by the server, and need not be watched."""
    gone = site.installation()
    gone.inside("job-1")
    begun = gone.gate.monotonic()
    until(lambda: gone.gate.monotonic() - begun > QUICK.takeover.total_seconds() + 1.5)
    assert site.installation().inside("job-2").is_trusted
