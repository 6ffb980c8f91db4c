"""Gates over a real Redis, each on a client of its own as in a process of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread
from typing import Final

from redis_stage import AT_ONCE, NAMESPACE, until

from blastyard.admission.census import NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.ledger import HoldState, Policy, Submitter
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Granted
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import RedisDocumentStore
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.admission.timing import Timings
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.testing.redis_server import RedisServer


def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


TIMINGS: Final = Timings(
    request_timeout=_seconds(0.4),
    margin=_seconds(0.5),
    beat=_seconds(0.1),
    takeover=_seconds(1.2),
    lapse=_seconds(1.5),
    ending=_seconds(0.1),
)
"""The relations of the real ones, thirty times as fast."""
PACE: Final = replace(AT_ONCE, timeout=_seconds(0.3), grace=TIMINGS.lapse)


class Site:
    """One process: its client, its gate, and what it runs."""

    def __init__(self, name: str, url: str, ceiling: int) -> None:
        self.clock = SystemClock()
        self.running: set[str] = set()
        self.documents = RedisDocumentStore(Address.parse(url), NAMESPACE, PACE)
        around = Surroundings(
            self.clock.monotonic,
            lambda _: False,
            NothingForeign(),
            lambda: uuid.uuid4().hex,
            self._claims,
        )
        me = Submitter(name, "serve", 1000)
        settings = GateSettings(Policy(ceiling=ceiling), TIMINGS)
        self.gate = Gate(self.documents, me, settings, around)
        self._ended = Event()
        self._silent = Event()
        self._thread = Thread(target=self._beat)
        self._thread.start()

    def _claims(self) -> Sequence[Claim]:
        return [
            Claim(search, "ada", 1, 1, HoldState.SUBMITTED, self.gate.me.name)
            for search in sorted(self.running)
        ]

    def _beat(self) -> None:
        while not self._ended.wait(TIMINGS.beat.total_seconds()):
            with suppress(Unavailable):
                if not self._silent.is_set():
                    self.gate.beat()

    def fall_silent(self) -> None:
        """Give no sign of life, as a process that is stopped or cut off."""
        self._silent.set()

    def come_back(self) -> None:
        self._silent.clear()

    def asks(self, search: str) -> Granted | None:
        """One try to have a search admitted; it runs then."""
        with suppress(Unavailable, LeaseLost):
            self.gate.publish([Wish(search, "ada", 1)])
            if not isinstance(self.gate.turn(search), Turn):
                return None
            stay = self.gate.enter(search, 1)
            if isinstance(stay, Stay):
                try:
                    return self._reserved(stay, search)
                finally:
                    self.gate.leave(stay)
        return None

    def _reserved(self, stay: Stay, search: str) -> Granted | None:
        outcome = stay.reserve(Attempt(search, 1, self.gate.me.name))
        if not isinstance(outcome, Granted):
            return None
        self.running.add(search)
        stay.confirm(search, outcome.fence)
        return outcome

    def runs(self, search: str) -> Granted:
        """Ask until it is admitted."""
        return until(lambda: self.asks(search))

    def ends(self, search: str) -> None:
        """The search has ended."""
        self.running.discard(search)
        until(lambda: self._told(search))

    def _told(self, search: str) -> bool:
        try:
            self.gate.end(search)
        except Unavailable:
            return False
        return True

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.documents.close()


class Yard:
    """The sites on one server."""

    def __init__(self, server: RedisServer, ceiling: int) -> None:
        self.server = server
        self.sites: list[Site] = []
        self._ceiling = ceiling

    def site(self, name: str) -> Site:
        """One more process, signed on."""
        made = Site(name, self.server.url, self._ceiling)
        self.sites.append(made)
        until(lambda: name in _names(made))
        return made

    @property
    def running(self) -> int:
        """How many searches run, whoever knows of them."""
        return sum(len(site.running) for site in self.sites)


def _names(site: Site) -> set[str]:
    try:
        return set(site.gate.submitters())
    except Unavailable:
        return set()


@contextmanager
def yard(server: RedisServer, ceiling: int = 1) -> Iterator[Yard]:
    """Sites on a server where nobody holds anything; closed in the end."""
    made = Yard(server, ceiling)
    first = RedisDocumentStore(Address.parse(server.url), NAMESPACE, PACE)
    first.inaugurate()
    first.close()
    try:
        yield made
    finally:
        for site in made.sites:
            site.close()
