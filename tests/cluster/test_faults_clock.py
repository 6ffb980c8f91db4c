"""Clocks that are wrong: for one process by the distribution's faketime, never the system's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lease_site_stage import Site, site
from waiting_stage import QUICK, until

from blastyard.admission.lease import parse_time
from blastyard.settings import caller_environment
from blastyard.testing.foreign.api import Api
from blastyard.testing.foreign.kind import Rules
from blastyard.testing.foreign.lease import Acquired, Busy, GateA
from blastyard.testing.plain_wire import Access, PlainWire

__all__ = ["site"]

SECOND = timedelta(seconds=1)
WIRE = {"leaseDurationSeconds": 900}
EXPIRES = 930
"""Seconds after its renewal: the duration that every record of these tests has, and the skew."""
TIMED_OUT = 121


@pytest.fixture(scope="module")
def library() -> str:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if found:
        return str(found[0])
    missing = "the package faketime is not installed; scripts/setup dev does it"
    if caller_environment().get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


class Shifted:
    """`blastyard exec` in processes whose clock is so many seconds wrong."""

    def __init__(self, site: Site, library: str, seconds: int) -> None:
        self._site = site
        self._environment = {
            "LD_PRELOAD": library,
            "FAKETIME": f"{seconds:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self._seen = site.folder / "seen"
        clock, lease = site.folder / "clock", rf"kubectl get lease -o json >{self._seen}"
        self._clock = clock
        self._script = str(site.script(f"date +%s >{clock}\nLD_PRELOAD= {lease}"))

    def exec(self, search: str, *options: str) -> tuple[int, str]:
        """Its exit code, and what it said."""
        words = ("exec", "--search-id", search, *options, "--", self._script, "{id}")
        process = self._site.start(*words, **self._environment)
        _, said = process.communicate(timeout=60)
        return process.returncode, said

    def error_seen(self) -> timedelta:
        """How wrong the clock of its command was."""
        began = datetime.fromtimestamp(int(self._clock.read_text()), UTC)
        return began - datetime.fromtimestamp(self._clock.stat().st_mtime, UTC)

    def times_written(self) -> Iterator[datetime]:
        """What stood on the submit lease while its command ran."""
        items: list[dict[str, Any]] = json.loads(self._seen.read_text())["items"]
        [spec] = [
            each["spec"]
            for each in items
            if str(each["spec"].get("holderIdentity")).startswith("blastyard-job-")
        ]
        for name in ("acquireTime", "renewTime"):
            at = parse_time(spec[name])
            assert at is not None
            yield at


def require_true_times(shifted: Shifted, seconds: int, now: datetime) -> None:
    assert abs(shifted.error_seen() - seconds * SECOND) < 3 * SECOND
    assert all(abs(at - now) < 15 * SECOND for at in shifted.times_written())


@pytest.mark.parametrize("seconds", [60, 600])
def test_a_clock_that_is_ahead_takes_nothing_from_anybody(
    site: Site, library: str, seconds: int
) -> None:
    """Fault A5: the server's clock counts, for what is judged and for what is written."""
    shifted = Shifted(site, library, seconds)
    for holder, renewed in (("peer-1", EXPIRES - seconds // 2), ("blastyard-job-7-1", 1)):
        site.put_lease(holder, renewTime=renewed * SECOND, **WIRE)
        code, said = shifted.exec("job-1", "--wait", "1s")
        assert (code, site.holder()) == (TIMED_OUT, holder), said
        assert holder in said
    site.put_lease("")

    assert shifted.exec("job-2") == (0, "")

    require_true_times(shifted, seconds, site.now())


@pytest.mark.parametrize("seconds", [-60, -600])
def test_a_clock_that_is_behind_waits_for_nobody_who_is_gone(
    site: Site, library: str, seconds: int
) -> None:
    """Fault A5: what has expired by the server's clock has expired."""
    site.put_lease("peer-1", renewTime=(EXPIRES + 5) * SECOND, **WIRE)
    shifted = Shifted(site, library, seconds)

    assert shifted.exec("job-1", "--wait", "10s") == (0, "")

    require_true_times(shifted, seconds, site.now())


class Peers:
    """Foreign programs with clocks of their own."""

    def __init__(self, site: Site) -> None:
        wire = PlainWire(Access.read(site.kubeconfig), "foreign-peer")
        site.stack.callback(wire.close)
        self._api = Api(wire, site.namespace)
        self._now = site.now

    def ask(self, ahead: float, rules: Rules | None = None) -> Acquired | Busy:
        """What one gets whose clock is so many seconds ahead."""
        gate = GateA(self._api, rules or Rules(), lambda: self._now().timestamp() + ahead)
        return gate.acquire("peer-1")


def test_a_peer_whose_clock_is_fast_steals_no_lease_of_ours(site: Site) -> None:
    """Fault A16: 900 s on the wire, though blastyards succeed each other much sooner."""
    mine, peers = site.installation(), Peers(site)
    stay, _ = mine.admitted("job-1")
    assert site.lease()["spec"]["leaseDurationSeconds"] == 900
    expects_less = Rules(lease_seconds=30, skew_seconds=0.0)

    for ahead in (0, 61, 600, 890):
        assert peers.ask(ahead) == Busy(stay.holder)
        assert peers.ask(ahead, expects_less) == Busy(stay.holder)
    assert stay.renew()
    assert peers.ask(61) == Busy(stay.holder)


def test_a_peer_succeeds_a_dead_blastyard_when_the_record_is_over(site: Site) -> None:
    """Fault A11: 930 s after the last renewal, where no blastyard is left; the peer is early."""
    mine, peers = site.installation(), Peers(site)
    stay, _ = mine.admitted("job-1")
    assert peers.ask(EXPIRES - 5) == Busy(stay.holder)

    assert isinstance(peers.ask(EXPIRES + 5), Acquired)

    until(lambda: not stay.is_trusted, 2 * QUICK.takeover.total_seconds())
    mine.gate.leave(stay)
    assert site.holder() == "peer-1"
