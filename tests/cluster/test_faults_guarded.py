"""A submit command and its descendants end before anybody else may be inside; in this process, at
a scaled pace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread

import pytest
from guarded_stage import Descendants, Releases, Stubborn, Submission
from lease_site_stage import LEASE, Site, site
from waiting_stage import CLOCK, QUICK, until

from blastyard.admission.hold import Attempt
from blastyard.admission.ledger import HoldState
from blastyard.admission.outcome import Granted
from blastyard.admission.port import DocumentStore
from blastyard.bootstrap.seam import Seam
from blastyard.service.submitting import Fate
from blastyard.testing.proxy_fault import Delay, Rule, unavailable

__all__ = ["site"]

SECOND = timedelta(seconds=1)
TAKEOVER = QUICK.takeover.total_seconds()
COMPANION = {("companion", "submit")}
STAND_IN = {("stand-in", "finalizer"), ("stand-in", "submit")}

Deed = Callable[[Submission, Stubborn], object]
ENDS: dict[str, tuple[float, Deed, str, Fate]] = {
    "cancelled": (60.0, lambda mine, _: mine.passage.stop(), "", Fate.FAILED),
    "took too long": (0.5, lambda *_: None, "", Fate.FAILED),
    "failed": (60.0, lambda _, command: command.let(), "exit 3", Fate.FAILED),
    "succeeded": (60.0, lambda _, command: command.let(), "", Fate.COMPLETE),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_lease_is_released_after_the_last_descendant_has_gone(site: Site, end: str) -> None:
    """Fault A8: however the command ends, though it ignores signals and leaves processes."""
    limit, deed, after, fate = ENDS[end]
    command = Stubborn(site, after)
    running: list[Descendants] = []
    stores: list[Releases] = []

    def watched(inner: DocumentStore) -> DocumentStore:
        stores.append(Releases(inner, lambda: sum(each.alive for each in running)))
        return stores[-1]

    mine = site.installation(seam=Seam(timings=QUICK, documents=watched))
    submission = Submission(mine, "job-1", command.script, limit=limit)
    running.append(command.begun())
    deed(submission, command)

    assert submission.fate() is fate
    assert running[0].alive == 0
    assert stores[0].seen == [0]
    assert site.holder() == ""
    hold = site.ledger().holds["job-1"]
    if fate is Fate.COMPLETE:
        assert (hold.state, site.markers("job-1")) == (HoldState.SUBMITTED, COMPANION)
        assert site.made_by("job-1") == {"submit", "finalizer"}
    else:
        assert (hold.state, site.markers("job-1")) == (HoldState.RESERVED, STAND_IN)
        assert site.made_by("job-1") == set()


@pytest.mark.parametrize("trouble", ["cut", "stalled renewals"])
def test_a_command_whose_lease_cannot_be_renewed_ends_before_a_takeover(
    site: Site, trouble: str
) -> None:
    """Faults A7 and A15: and what becomes of it is told, with nothing touched."""
    proxy, command = site.proxy(), Stubborn(site)
    mine = site.installation(kubeconfig=site.through(proxy))
    submission = Submission(mine, "job-1", command.script)
    running = command.begun()
    other = site.installation()
    if trouble == "cut":
        proxy.cut()
    else:
        proxy.plan.add(Rule(Delay(), "PUT", LEASE, times=None))

    stay = until(lambda: other.entered("job-2"))

    assert running.alive == 0
    assert running.wait_gone() < site.acquired_at()
    proxy.plan.clear()
    proxy.heal()
    assert submission.fate() is Fate.LEASE_LOST
    assert site.holder() == stay.holder
    assert site.ledger().holds["job-1"].state is HoldState.RESERVED
    assert site.made_by("job-1") == {"submit"}


def test_a_command_whose_lease_was_deleted_by_hand_is_ended_at_once(site: Site) -> None:
    """Fault A17: anybody may be inside from then on, so nothing is waited for."""
    command = Stubborn(site)
    mine = site.installation()
    submission = Submission(mine, "job-1", command.script)
    running = command.begun()
    began = CLOCK.monotonic()

    site.delete_lease()

    running.wait_gone()
    assert CLOCK.monotonic() - began < TAKEOVER - QUICK.margin.total_seconds()
    assert submission.fate() is Fate.LEASE_LOST
    assert site.lease() == {}


def test_a_renewal_that_meets_bad_weather_is_tried_again_before_the_lease_is_over(
    site: Site,
) -> None:
    """Fault A15: not only with the next beat, when the command would have been ended."""
    proxy, command = site.proxy(), Stubborn(site)
    slow = replace(QUICK, takeover=8 * SECOND, margin=2 * SECOND, beat=4 * SECOND, lapse=9 * SECOND)
    mine = site.installation(slow, kubeconfig=site.through(proxy))
    submission = Submission(mine, "job-1", command.script)
    running = command.begun()
    rule = proxy.plan.add(Rule(unavailable(), "PUT", LEASE, times=3))
    acquired = site.acquired_at()

    until(lambda: site.now() - acquired > slow.takeover)

    assert (rule.hits, running.alive) == (3, 3)
    command.let()
    assert submission.fate() is Fate.COMPLETE


@contextmanager
def busy(threads: int) -> Iterator[None]:
    """Threads that never let go of the interpreter by themselves."""
    over = Event()

    def burn() -> None:
        while not over.is_set():
            sum(range(20_000))

    burning = [Thread(target=burn) for _ in range(threads)]
    for thread in burning:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in burning:
            thread.join()


def test_a_lease_is_kept_by_a_process_that_is_busy(site: Site) -> None:
    """Fault A15: the heartbeat has a thread of its own."""
    command = Stubborn(site)
    mine = site.installation()
    submission = Submission(mine, "job-1", command.script)
    running = command.begun()
    holder, acquired = site.holder(), site.acquired_at()
    began = CLOCK.monotonic()

    with busy(4):
        until(lambda: CLOCK.monotonic() - began > 1.5 * TAKEOVER)

    assert site.now() - acquired > QUICK.takeover
    assert (site.holder(), running.alive) == (holder, 3)
    command.let()
    assert submission.fate() is Fate.COMPLETE


def test_the_dead_ones_slot_is_shown_to_peers_before_the_next_goes_on(site: Site) -> None:
    """Fault A11: it died after its slot was reserved, and before its stand-in was up."""
    proxy = site.proxy()
    dead, next_one = site.installation(), site.installation(kubeconfig=site.through(proxy))
    stay, _ = dead.admitted("job-0")
    dead.gate.leave(stay)
    site.delete_markers("job-0")
    silent = dead.inside("job-1")
    dead.publish("job-1")
    got = silent.reserve(Attempt("job-1", 1, dead.gate.me.name), stands_in=False)
    assert isinstance(got, Granted)
    assert site.markers("job-1") == set()
    next_one.publish("job-2")
    next_stay = until(lambda: next_one.entered("job-2"))
    proxy.log.clear()

    granted = next_stay.reserve(Attempt("job-2", 1, next_one.gate.me.name))

    assert isinstance(granted, Granted)
    assert site.markers("job-0") == site.markers("job-1") == STAND_IN
    asked = [each.verb + each.target for each in proxy.log.records("POST|PUT")]
    slot = next(at for at, each in enumerate(asked) if "elb-blast-ledger" in each)
    assert sum("/jobs" in each for each in asked[:slot]) == 4
