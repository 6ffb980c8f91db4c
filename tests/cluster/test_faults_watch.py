"""Watches that end, stand still, are refused, or leave something out: late, never silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Event

import pytest
from waiting_stage import CLOCK, through, until

from blastyard.admission.kubernetes.bell import BellWatch
from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.port import ABSENT, LEDGER, SUBMITTER
from blastyard.kube.client import Client
from blastyard.kube.config import Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.kube.reflector import Pace
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES
from blastyard.kube.wire import Call, Stream, Wire
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.proxy import FaultProxy
from blastyard.testing.proxy_fault import HalfOpen, Rule, too_many

NAMESPACE = "watched"
WATCH = "watch=true"
LIST = r"/(leases|configmaps|jobs)\?(?!.*watch=)"
KINDS = 3
"""Of objects, each followed by a stream of its own."""
BRISK = Pace(quiet=2.0, shortest_pause=0.05, longest_pause=0.5)


class Ear:
    """A wire that counts what streams tell of deletions, which may be left out, and of 410."""

    def __init__(self, wire: Wire, *, deaf: bool) -> None:
        self.send = wire.send
        self.close = wire.close
        self._wire = wire
        self._deaf = deaf
        self.deletions = 0
        self.expired = 0

    def stream(self, call: Call) -> Stream:
        stream = self._wire.stream(call)
        self.expired += stream.status == HTTPStatus.GONE
        return _Changed(stream, lambda quiet: self._heard(stream.lines(quiet)))

    def _heard(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            deletes = line.startswith(b'{"type":"DELETED"')
            self.deletions += deletes
            self.expired += line.startswith(b'{"type":"ERROR"') and b'"code":410' in line
            if not (deletes and self._deaf):
                yield line


class _Changed:
    def __init__(self, stream: Stream, lines: Callable[[float], Iterator[bytes]]) -> None:
        self.status, self.body, self.close = stream.status, stream.body, stream.close
        self.retry_after = stream.retry_after
        self.lines = lines


@dataclass
class Follower:
    """A process that follows the namespace, through a proxy of its own."""

    proxy: FaultProxy
    informer: Informer
    store: KubernetesDocumentStore
    watch: BellWatch
    ear: Ear
    pauses: list[float] = field(default_factory=list)
    """How long it waited before it tried again."""

    def follows(self) -> bool:
        return all(map(self.informer.follows, (LEASES, CONFIGMAPS, JOBS)))

    def sees(self, body: bytes) -> bool:
        return self.store.glance(LEDGER).body == body

    @property
    def lists(self) -> int:
        """How many lists it was given so far."""
        return sum(each.status == 200 for each in self.proxy.log.records("GET", LIST))

    @property
    def tries(self) -> int:
        """How often it asked for a list or a stream so far."""
        return len(self.proxy.log.records("GET", f"{LIST}|{WATCH}"))


@dataclass
class World:
    """A namespace of a control plane that may be mistreated."""

    plane: ControlPlane
    folder: Path
    stack: ExitStack

    def client(self, url: FaultProxy | ControlPlane, around: Callable[[Wire], Wire]) -> Client:
        path = self.folder / f"kubeconfig-{len(list(self.folder.iterdir()))}"
        url.write_kubeconfig(path, self.plane.admin_token, NAMESPACE)
        target = find(Wanted({}, self.folder, str(path)), CLOCK.now)
        wire = HttpWire(target.endpoint, CLOCK.monotonic)
        self.stack.callback(wire.close)
        return Client(around(wire), NAMESPACE, CLOCK.monotonic)

    def store(self) -> KubernetesDocumentStore:
        """One that follows nothing, and goes to the server directly."""
        client = self.client(self.plane, lambda wire: wire)
        return KubernetesDocumentStore(client, Informer(client, CLOCK.monotonic), CLOCK.monotonic)

    def follower(self, pace: Pace = BRISK, *rules: Rule, deaf: bool = False) -> Follower:
        """One that follows, or begins to, under the faults of these rules."""
        proxy = self.stack.enter_context(FaultProxy.before(self.plane))
        for rule in rules:
            proxy.plan.add(rule)
        ears: list[Ear] = []

        def around(wire: Wire) -> Wire:
            ears.append(Ear(wire, deaf=deaf))
            return ears[-1]

        client = self.client(proxy, around)
        pauses: list[float] = []
        stopped = Event()

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            stopped.wait(seconds)

        informer = Informer(client, CLOCK.monotonic, pace=pace, pause=pause)
        store = KubernetesDocumentStore(client, informer, CLOCK.monotonic)
        made = Follower(proxy, informer, store, informer.bell.watch(), ears[0], pauses)
        informer.start()
        self.stack.callback(informer.close)
        self.stack.callback(stopped.set)
        until(made.follows)
        return made


def written(store: KubernetesDocumentStore, name: str, body: bytes | None) -> None:
    assert store.swap(name, store.read(name).version, body) is not None


@pytest.fixture(scope="module")
def watched(own_control_plane: ControlPlane) -> ControlPlane:
    own_control_plane.create_namespace(NAMESPACE)
    return own_control_plane


@pytest.fixture
def world(watched: ControlPlane, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        made = World(watched, tmp_path, stack)
        written(made.store(), LEDGER, b"as it was")
        yield made


def test_a_version_that_the_server_has_forgotten_is_listed_anew_once(world: World) -> None:
    """Fault Q10: 410 for the version that was seen last, after a compaction and a restart."""
    follower, writer = world.follower(), world.store()
    written(writer, SUBMITTER + "goes", b"there")
    written(writer, LEDGER, b"told by the stream")
    until(lambda: follower.store.glance(SUBMITTER + "goes").body)
    until(lambda: follower.sees(b"told by the stream"))  # so both go on from there
    follower.proxy.cut()
    written(writer, SUBMITTER + "goes", None)
    for number in range(3):
        written(writer, LEDGER, b"number %d" % number)
    world.plane.restart_api()
    follower.proxy.log.clear()
    while follower.watch.wait(0.0):
        pass
    follower.proxy.heal()

    until(follower.follows)
    until(lambda: follower.sees(b"number 2"))
    assert follower.watch.wait(0.0)  # the difference wakes who waits
    assert follower.store.glance(SUBMITTER + "goes").version == ABSENT
    assert follower.ear.expired == 2
    through(1.0, lambda: follower.lists <= KINDS)
    assert follower.lists == KINDS


def test_a_stream_that_stands_still_is_found_out_and_left(world: World) -> None:
    """Fault Q10: half open. It stands open, and nothing comes: no bookmark either."""
    stands = Rule(HalfOpen(), "GET", WATCH, times=KINDS)
    follower, writer = world.follower(BRISK, stands), world.store()
    stands.wait(KINDS)
    began = CLOCK.monotonic()
    written(writer, LEDGER, b"unheard")

    until(lambda: follower.sees(b"unheard"))

    assert CLOCK.monotonic() - began < BRISK.quiet + 3.0
    assert follower.watch.wait(1.0)
    until(follower.follows)
    written(writer, LEDGER, b"heard")
    until(lambda: follower.sees(b"heard"), 1.0)
    assert follower.lists == 2 * KINDS


def test_a_server_that_says_too_many_is_left_alone_for_as_long_as_it_says(world: World) -> None:
    """Fault Q10: 429 with ``Retry-After``, to streams and to lists."""
    proxied = Rule(too_many(1), "GET", WATCH, times=KINDS)
    lists = Rule(too_many(1), "GET", LIST, times=KINDS)
    began = CLOCK.monotonic()

    follower = world.follower(BRISK, proxied, lists)

    assert CLOCK.monotonic() - began > 2.0
    assert min(follower.pauses) >= 1.0
    assert len(follower.pauses) == 2 * KINDS
    assert (follower.lists, follower.tries) == (KINDS, 4 * KINDS)
    written(world.store(), LEDGER, b"heard")
    until(lambda: follower.sees(b"heard"), 2.0)


def test_many_followers_of_a_server_that_comes_back_do_not_come_together(world: World) -> None:
    """Fault Q10: no storm. Pauses are drawn, and lists are few: a stream that broke without having
    told anything is not gone on with, and a server that comes back may break one more.
    """
    followers = [world.follower() for _ in range(8)]
    for each in followers:
        each.proxy.log.clear()
        each.pauses.clear()

    world.plane.stop_api()
    try:
        until(lambda: all(len(each.pauses) >= 2 * KINDS for each in followers))
    finally:
        world.plane.start_api()
    written(world.store(), LEDGER, b"after it")

    until(lambda: all(each.follows() and each.sees(b"after it") for each in followers))
    through(1.0, lambda: all(each.lists <= 2 * KINDS for each in followers))
    drawn = [seconds for each in followers for seconds in each.pauses]
    below = [seconds for seconds in drawn if seconds < BRISK.longest_pause]
    assert len(set(below)) == len(below) > 2 * len(followers)
    assert BRISK.shortest_pause <= min(drawn) < max(drawn) <= BRISK.longest_pause
    for each in followers:  # whatever did not go well was followed by a pause
        assert each.tries <= len(each.pauses) + each.lists + KINDS


def test_what_a_stream_left_out_is_found_by_the_list_that_comes_now_and_then(
    world: World,
) -> None:
    """Fault Q10: a deletion that nobody told of. The list is compared with what is known."""
    pace = Pace(resync=3.0, quiet=10.0, shortest_pause=0.05)
    follower, writer = world.follower(pace, deaf=True), world.store()
    written(writer, SUBMITTER + "goes", b"there")
    until(lambda: follower.store.glance(SUBMITTER + "goes").body)
    while follower.watch.wait(0.0):
        pass
    written(writer, SUBMITTER + "goes", None)
    until(lambda: follower.ear.deletions)
    assert follower.store.glance(SUBMITTER + "goes").body
    began, lists = CLOCK.monotonic(), follower.lists

    until(lambda: follower.store.glance(SUBMITTER + "goes").version == ABSENT)

    assert follower.watch.wait(1.0)
    assert CLOCK.monotonic() - began < pace.resync + 2.0
    assert follower.lists - lists <= KINDS
