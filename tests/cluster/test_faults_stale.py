"""Holders that were succeeded, and Leases that somebody deletes, on a real API server."""

from __future__ import annotations

from threading import Thread

import pytest
from lease_site_stage import LEASE, Site, site
from waiting_stage import QUICK, until

from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.outcome import Waiting
from blastyard.admission.stay import Stay
from blastyard.domain.errors import Unavailable
from blastyard.testing.proxy_fault import Delay, Rule

__all__ = ["site"]

FINALIZER = "example.com/kept"


def test_a_holder_that_overran_touches_nothing_of_its_successor(site: Site) -> None:
    """Fault A10: neither its renewal, nor its leaving, nor a beat of its process."""
    slow, quick = site.installation(), site.installation()
    stay, _ = slow.admitted("job-1")
    begun = slow.gate.monotonic()
    until(lambda: slow.gate.monotonic() - begun > QUICK.takeover.total_seconds() + 1)
    next_stay = until(lambda: quick.entered("job-2"))
    assert not stay.is_trusted
    lease, ledger = site.lease(), site.ledger()

    assert not stay.renew()
    with pytest.raises(LeaseLost):
        stay.reserve(Attempt("job-9", 1, slow.gate.me.name))
    slow.gate.leave(stay)
    slow.gate.beat()
    slow.gate.flush()

    assert (site.lease(), site.ledger()) == (lease, ledger)
    assert next_stay.renew()


def test_a_late_claim_makes_no_lease_that_was_deleted_by_hand(site: Site) -> None:
    """Fault A17: a PUT with a version alone would have made it anew, for a second holder."""
    site.put_lease("")
    proxy = site.proxy()
    slow = site.installation(kubeconfig=site.through(proxy))
    quick = site.installation()
    kept = proxy.plan.add(Rule(Delay(), "PUT", LEASE))
    found: list[Stay | Waiting] = []
    asking = Thread(target=lambda: found.append(slow.gate.enter("job-1", 1)))
    asking.start()
    kept.wait()
    site.delete_lease()
    kept.release()
    asking.join()

    assert [each.status for each in proxy.log.records("PUT", LEASE)] == [409]
    assert isinstance(found[0], Stay)  # it read again, and made the Lease that was not there
    assert "blastyard-job-1-1" in quick.refused("job-2")


def test_a_late_claim_does_not_touch_a_lease_that_another_made_anew(site: Site) -> None:
    """Fault A17: deleted and made again between reading and writing."""
    site.put_lease("")
    proxy = site.proxy()
    slow = site.installation(kubeconfig=site.through(proxy))
    quick = site.installation()
    kept = proxy.plan.add(Rule(Delay(), "PUT", LEASE))
    found: list[Stay | Waiting] = []
    asking = Thread(target=lambda: found.append(slow.gate.enter("job-1", 1)))
    asking.start()
    kept.wait()
    site.delete_lease()
    stay = until(lambda: quick.entered("job-2"))
    kept.release()
    asking.join()

    assert isinstance(found[0], Waiting)
    assert stay.holder in found[0].detail
    assert (site.holder(), stay.renew()) == (stay.holder, True)


def test_a_holder_whose_lease_was_deleted_stops_at_its_next_renewal(site: Site) -> None:
    """Fault A17: it does not make the Lease anew, and acts no more: another may be inside."""
    mine, other = site.installation(), site.installation()
    stay, _ = mine.admitted("job-1")
    site.delete_lease()
    next_stay = until(lambda: other.entered("job-2"))

    mine.gate.beat()

    assert not stay.is_trusted
    with pytest.raises(LeaseLost):
        stay.reserve(Attempt("job-1", 1, mine.gate.me.name))
    mine.gate.leave(stay)
    assert site.holder() == next_stay.holder


def test_a_lease_that_is_being_deleted_is_busy_and_said_to_be(site: Site) -> None:
    """Fault A18: it would be gone as soon as its foreign finalizer is."""
    site.put_lease("")
    site.patch_lease(finalizers=[FINALIZER])
    site.delete_lease()
    mine = site.installation()
    assert "being deleted" in mine.refused("job-1")
    assert site.holder() == ""

    site.patch_lease(finalizers=None)

    assert until(lambda: mine.entered("job-1")).is_trusted


def test_a_holder_whose_lease_is_being_deleted_acts_no_more(site: Site) -> None:
    """Fault A18: what it holds is gone when a foreign finalizer is, and anybody may be inside."""
    mine = site.installation()
    stay, _ = mine.admitted("job-1")
    site.patch_lease(finalizers=[FINALIZER])
    site.delete_lease()

    mine.gate.beat()

    assert not stay.is_trusted
    mine.gate.leave(stay)
    site.patch_lease(finalizers=None)
    assert until(lambda: site.installation().entered("job-2")).is_trusted


def test_a_write_that_lands_late_does_not_clear_another_ones_lease(site: Site) -> None:
    """Fault A10: a release is kept on its way until somebody else is inside."""
    proxy = site.proxy()
    slow = site.installation(kubeconfig=site.through(proxy))
    quick = site.installation()
    stay, _ = slow.admitted("job-1")
    kept = proxy.plan.add(Rule(Delay(), "PUT", LEASE))
    leaving = Thread(target=lambda: slow.gate.leave(stay))
    leaving.start()
    kept.wait()
    next_stay = until(lambda: quick.entered("job-2"))
    kept.release()
    leaving.join()

    slow.gate.flush()
    assert (site.holder(), next_stay.renew()) == (next_stay.holder, True)


def test_who_cannot_renew_may_not_act_before_anybody_may_take_over(site: Site) -> None:
    """Fault A7: trust ends a margin before the takeover, whatever the store says or does not."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    stay, _ = mine.admitted("job-1")
    claimed_at = site.acquired_at()
    proxy.cut()
    with pytest.raises(Unavailable):
        stay.renew()

    until(lambda: not stay.is_trusted)

    assert site.now() - claimed_at < QUICK.takeover
    assert site.holder() == stay.holder
