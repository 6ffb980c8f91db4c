"""`blastyard exec` as a process that is killed, stopped, cut off, or interrupted inside Gate A."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from guarded_stage import Descendants, Stubborn
from lease_site_stage import LEASE, Site, site
from waiting_stage import CLOCK, until

from blastyard.admission.lease import parse_time
from blastyard.admission.ledger import HoldState
from blastyard.testing.proxy import FaultProxy
from blastyard.testing.proxy_fault import (
    Delay,
    Fault,
    LostAnswer,
    LostRequest,
    Reset,
    Rule,
    Truncated,
    html,
    too_many,
    unavailable,
)

__all__ = ["site"]

LEASE_LOST = 122
INTERRUPTED = 124
MISUSED = 125
AGAIN = 45.0
"""Seconds within which a blastyard goes on after another was killed inside Gate A."""
FLOORS = 5.0
"""Seconds in which a waiting process looks several times, whether anything wakes it or not."""
WRITES = 8
"""More writes of the ledger than it takes for two processes to sign up with it."""
STAND_IN = {("stand-in", "finalizer"), ("stand-in", "submit")}


def execution(
    site: Site, search: str, script: Path, *options: str, **more: str
) -> subprocess.Popen[str]:
    """`blastyard exec` of a submit command."""
    return site.start("exec", "--search-id", search, *options, "--", str(script), "{id}", **more)


def outcome(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str]:
    """Its exit code, and what it said on standard error."""
    _, said = process.communicate(timeout=seconds)
    return process.returncode, said


class Successor:
    """The next submission, whose command notes what it finds when it begins."""

    def __init__(self, site: Site) -> None:
        self._seen = site.folder / "seen"
        look = f"kubectl get lease,jobs -o json >{self._seen}"
        self.process = execution(site, "job-2", site.script(look), "--wait", "60s")
        until(lambda: "job-2" in site.ledger().tickets)

    def items(self) -> list[dict[str, Any]]:
        """Leases and Jobs as they were when its command began."""
        return list(json.loads(self._seen.read_text())["items"])

    def acquired_at(self) -> datetime:
        """When it took Gate A, by the server's clock."""
        specs = [each["spec"] for each in self.items() if each["kind"] == "Lease"]
        names = [str(spec.get("holderIdentity")) for spec in specs]
        [mine] = [
            spec
            for spec, name in zip(specs, names, strict=True)
            if name.startswith("blastyard-job-2")
        ]
        at = parse_time(mine["acquireTime"])
        assert at is not None
        return at

    def markers(self, search: str) -> set[tuple[str, str]]:
        """What stood for a search."""
        marks = [each["metadata"] for each in self.items() if each["kind"] == "Job"]
        return {
            (each["labels"]["blastyard/marker"], each["labels"]["app"])
            for each in marks
            if each.get("annotations", {}).get("blastyard/id") == search
        }


Strike = Callable[[subprocess.Popen[str], FaultProxy], object]
STRIKES: dict[str, tuple[Strike, Strike]] = {
    "killed": (lambda process, _: process.kill(), lambda *_: None),
    "stopped": (
        lambda process, _: process.send_signal(signal.SIGSTOP),
        lambda process, _: process.send_signal(signal.SIGCONT),
    ),
    "cut off": (lambda _, proxy: proxy.cut(), lambda _, proxy: proxy.heal()),
}


@pytest.mark.slow
@pytest.mark.parametrize("strike", STRIKES)
def test_a_holder_that_is_gone_has_its_command_ended_before_the_next_is_inside(
    site: Site, strike: str
) -> None:
    """Faults A7, A10 and A11: with the takeover of real processes; and one that goes on late
    erases nothing."""
    proxy, command = site.proxy(), Stubborn(site)
    first = execution(site, "job-1", command.script, KUBECONFIG=site.through(proxy))
    running = command.begun()
    successor = Successor(site)
    hit, mend = STRIKES[strike]
    hit(first, proxy)
    began = CLOCK.monotonic()

    assert outcome(successor.process) == (0, "")

    assert CLOCK.monotonic() - began < AGAIN
    assert running.alive == 0
    assert running.wait_gone() < successor.acquired_at()
    assert successor.markers("job-1") == STAND_IN
    lease, fence = site.lease(), site.ledger().fence
    mend(first, proxy)
    code, said = outcome(first)
    if strike == "killed":
        assert code == -signal.SIGKILL
    else:
        assert (code, "the submit lease was lost" in said) == (LEASE_LOST, True)
    assert (site.lease(), site.ledger().fence) == (lease, fence)
    holds = site.ledger().holds
    states = {name: hold.state for name, hold in holds.items()}
    assert states == {"job-1": HoldState.RESERVED, "job-2": HoldState.SUBMITTED}
    assert site.made_by("job-1") == {"submit"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_descendants_and_then_releases(
    site: Site, number: signal.Signals
) -> None:
    """Fault A8: every write of the lease is kept on its way and looked at."""
    proxy, command = site.proxy(), Stubborn(site)
    process = execution(site, "job-1", command.script, KUBECONFIG=site.through(proxy))
    running = command.begun()
    kept = proxy.plan.add(Rule(Delay(), "PUT", LEASE))
    process.send_signal(number)

    while (alive := alive_at_write(running, kept)) and site.holder():
        kept = proxy.plan.add(Rule(Delay(), "PUT", LEASE))  # it was a renewal

    assert alive == 0
    assert outcome(process)[0] == INTERRUPTED
    assert (site.holder(), site.made_by("job-1")) == ("", set())
    hold = site.ledger().holds["job-1"]
    assert hold.state is HoldState.RESERVED
    assert hold.failed_at is not None


def alive_at_write(running: Descendants, kept: Rule) -> int:
    """How many processes were alive when the lease was written; the write goes on."""
    kept.wait()
    alive = running.alive
    kept.release()
    return alive


def test_an_interruption_while_waiting_leaves_nothing_behind(site: Site) -> None:
    """Fault A8: neither ticket nor hold, and no lease that was never taken."""
    site.put_lease("peer-1", renewTime=timedelta(0), leaseDurationSeconds=900)
    process = execution(site, "job-1", site.script())
    until(lambda: site.has_ledger() and "job-1" in site.ledger().tickets)

    process.send_signal(signal.SIGTERM)

    assert outcome(process)[0] == INTERRUPTED
    ledger = site.ledger()
    assert (dict(ledger.tickets), dict(ledger.holds)) == ({}, {})
    assert (site.holder(), site.jobs()) == ("peer-1", [])


WEATHER: dict[str, Fault] = {
    "429": too_many(1),
    "500": html(500),
    "503": unavailable(),
    "lost request": LostRequest(),
    "lost answer": LostAnswer(),
    "reset": Reset(),
    "truncated": Truncated(keep=20),
}


@pytest.mark.parametrize("weather", WEATHER)
def test_a_release_is_tried_again_until_it_stands(site: Site, weather: str) -> None:
    """Fault A9: `exec` does not end before it is certainly out of Gate A."""
    proxy, command = site.proxy(), Stubborn(site)
    process = execution(site, "job-1", command.script, KUBECONFIG=site.through(proxy))
    command.begun()
    rule = proxy.plan.add(Rule(WEATHER[weather], "PUT", LEASE, times=7))
    command.let()

    assert outcome(process) == (0, "")

    assert site.holder() == ""
    assert rule.hits >= 1
    assert rule.hits == 7 or isinstance(rule.fault, LostAnswer | Reset | Truncated)
    assert site.ledger().holds["job-1"].state is HoldState.SUBMITTED


def test_a_release_survives_two_conflicts(site: Site) -> None:
    """Fault A9: somebody else writes the lease while it is being released."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    stay, _ = mine.admitted("job-1")
    rules = [proxy.plan.add(Rule(Delay(), "PUT", LEASE)) for _ in range(2)]
    leaving = site.beside(lambda: mine.gate.leave(stay))
    for number, rule in enumerate(rules):
        rule.wait()
        site.patch_lease(labels={"changed": str(number)})
        rule.release()
    leaving()

    assert site.holder() == ""
    assert [each.status for each in proxy.log.records("PUT", LEASE)] == [409, 409, 200]


def test_two_commands_for_one_search_never_run_both(site: Site) -> None:
    """Fault A14: the second waits behind the first, and is told that it has been submitted."""
    command = Stubborn(site)
    first = execution(site, "job-1", command.script)
    running = command.begun()
    ran = site.folder / "second-ran"
    second = execution(site, "job-1", site.script(f": >{ran}"))
    until(lambda: len(site.submitters()) == 2)
    holder = site.holder()
    command.let()

    assert outcome(first) == (0, "")
    code, said = outcome(second)

    assert (code, ran.exists()) == (MISUSED, False)
    assert "has been submitted already" in said
    assert running.alive == 0
    assert holder.startswith("blastyard-job-1-")
    assert site.ledger().holds["job-1"].state is HoldState.SUBMITTED


def test_of_two_commands_that_wait_for_one_search_one_runs(site: Site) -> None:
    """Fault A14: and waiting, they do not fight for its ticket."""
    site.put_lease("peer-1", renewTime=timedelta(0), leaseDurationSeconds=900)
    proxy, ran = site.proxy(), site.folder / "ran"
    script = site.script(f"echo $1 >>{ran}")
    where = site.through(proxy)
    both = [execution(site, "job-1", script, KUBECONFIG=where) for _ in range(2)]
    until(lambda: len(site.submitters()) == 2 and "job-1" in site.ledger().tickets)
    began = CLOCK.monotonic()
    until(lambda: CLOCK.monotonic() - began > FLOORS)
    written = len(proxy.log.records("PUT", "/configmaps"))
    site.put_lease("")

    codes = sorted(outcome(each)[0] for each in both)

    assert (codes, ran.read_text().split()) == ([0, MISUSED], ["job-1"])
    assert written < WRITES
