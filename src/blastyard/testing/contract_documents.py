"""What every ``DocumentStore`` must do: subclass, give ``open_store``, and let pytest collect.

::

    class TestMyStore(DocumentStoreContract):
        @pytest.fixture
        def open_store(self): ...

``open_store()`` returns another client of one and the same store, empty at the beginning of a test.
A store that can keep only certain documents, or stamps them coarsely, says so by overriding what
stands first in the class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blastyard.admission.port import ABSENT, LEASE, LEDGER, SUBMITTER, DocumentStore, Version

OpenStore = Callable[[], DocumentStore]

SOON = 10.0
"""Seconds that a test waits for what must happen at once before it fails."""

MOVES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 2),
        st.sampled_from(("current", "stale", "absent", "future")),
        st.none() | st.binary(max_size=40),
    ),
    max_size=30,
)

INHERITED = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors)
"""Checks that do not suit a property inherited by several test classes."""


def written(store: DocumentStore, name: str, body: bytes) -> Version:
    """Swap, whatever is there; the version it has afterwards."""
    done = store.swap(name, store.read(name).version, body)
    assert done is not None
    return done.version


class DocumentStoreContract:
    """The obligations of :mod:`blastyard.admission.port`, as tests."""

    DOCUMENT: ClassVar = LEASE
    """One that may hold any body and may be deleted."""
    NAMES: ClassVar = (LEASE, LEDGER, "submitter/a")
    """Three of them."""
    SCANNED: ClassVar = (
        "submitter/b",
        "submitter/a_%",
        "submitter/ü\U0001f9ec",
        "submitter",
        LEASE,
    )
    """Names to scan for: three submitters, and two that are none."""
    BODIES: ClassVar = (b"", b"\0\xff\n'\"", bytes(range(256)) * 4096)
    COARSE: ClassVar = timedelta(0)
    """By how much two clients may differ about a stamp, or about the time."""

    def body(self, raw: bytes) -> bytes:
        """A body of the store's kind, made from any bytes; different ones from different bytes."""
        return raw

    def unused(self, versions: Collection[Version]) -> Version:
        """A version that the store has not given out, and that looks as if it were later."""
        numbers = [version for version in versions if isinstance(version, int)]
        return max(numbers, default=ABSENT) + 1

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Another client of the store under test."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_store: OpenStore) -> DocumentStore:
        """A client of the store under test."""
        return open_store()

    def test_an_absent_document_has_version_0_and_no_body(self, store: DocumentStore) -> None:
        found = store.read(self.DOCUMENT)

        name = self.DOCUMENT
        assert (found.name, found.version, found.body, found.stamped_at) == (name, 0, None, None)

    def test_every_client_reads_what_one_of_them_swapped(self, open_store: OpenStore) -> None:
        one, other = open_store(), open_store()

        done = one.swap(self.DOCUMENT, 0, self.body(b"mine"))

        assert done is not None
        assert done.stamped_at is not None
        for reader in (one, other):
            found = reader.read(self.DOCUMENT)
            assert (found.version, found.body) == (done.version, self.body(b"mine"))
            assert found.stamped_at is not None
            assert abs(found.stamped_at - done.stamped_at) <= self.COARSE

    def test_a_body_comes_back_byte_for_byte(self, store: DocumentStore) -> None:
        for body in self.BODIES:
            written(store, LEDGER, body)

            assert store.read(LEDGER).body == body

    def test_a_swap_at_another_version_conflicts_and_changes_nothing(
        self, open_store: OpenStore
    ) -> None:
        one, other = open_store(), open_store()
        old = written(one, self.DOCUMENT, self.body(b"1"))
        now = written(other, self.DOCUMENT, self.body(b"2"))

        for version in (ABSENT, old, self.unused((old, now))):
            for body in (self.body(b"3"), None):
                assert one.swap(self.DOCUMENT, version, body) is None

        assert other.read(self.DOCUMENT).body == self.body(b"2")
        assert other.read(self.DOCUMENT).version == now

    def test_an_absent_document_cannot_be_swapped_at_a_version(self, store: DocumentStore) -> None:
        version = self.unused(())

        assert store.swap(self.DOCUMENT, version, self.body(b"x")) is None
        assert store.swap(self.DOCUMENT, version, None) is None
        assert store.read(self.DOCUMENT).version == 0

    def test_deleting_what_is_absent_succeeds(self, store: DocumentStore) -> None:
        done = store.swap(self.DOCUMENT, 0, None)

        assert done is not None
        assert (done.version, done.body) == (0, None)

    def test_a_deleted_document_is_absent_and_its_versions_never_return(
        self, store: DocumentStore
    ) -> None:
        seen: set[Version] = set()
        for _ in range(5):
            version = written(store, self.DOCUMENT, self.body(b"same"))
            assert version != ABSENT
            assert version not in seen
            seen.add(version)
            gone = store.swap(self.DOCUMENT, version, None)
            assert gone is not None
            assert (gone.version, gone.body, gone.stamped_at) == (0, None, None)
            assert store.read(self.DOCUMENT).version == 0

        for version in seen:
            assert store.swap(self.DOCUMENT, version, self.body(b"late")) is None

    def test_a_stamp_is_of_the_write_and_of_the_clock_that_reads_tell(
        self, open_store: OpenStore
    ) -> None:
        one, other = open_store(), open_store()
        before = one.read(self.DOCUMENT).now
        written(one, self.DOCUMENT, self.body(b"x"))
        first, second = other.read(self.DOCUMENT), one.read(self.DOCUMENT)

        assert first.stamped_at is not None
        assert second.stamped_at is not None
        assert abs(first.stamped_at - second.stamped_at) <= self.COARSE
        assert before - self.COARSE <= first.stamped_at <= first.now <= second.now + self.COARSE
        assert first.now.utcoffset() is not None

    def test_a_scan_gives_the_documents_under_a_prefix_by_name(self, store: DocumentStore) -> None:
        for name in self.SCANNED:
            written(store, name, self.body(name.encode()))

        found = store.scan(SUBMITTER)

        assert list(found) == sorted(name for name in self.SCANNED if name.startswith(SUBMITTER))
        for name, snapshot in found.items():
            assert (snapshot.name, snapshot.body) == (name, self.body(name.encode()))
            assert snapshot.version == store.read(name).version
            assert snapshot.stamped_at is not None
        assert store.scan("nothing/") == {}
        assert len(store.scan("")) == 5

    @settings(max_examples=30, deadline=None, suppress_health_check=INHERITED)
    @given(moves=MOVES)
    def test_any_interleaving_of_two_clients_agrees_with_a_dictionary(
        self, open_store: OpenStore, moves: list[tuple[int, int, str, bytes | None]]
    ) -> None:
        clients = (open_store(), open_store())
        model = {name: clients[0].read(name) for name in self.NAMES}
        used = {snapshot.version for snapshot in model.values()}
        for client, place, which, raw in moves:
            name = self.NAMES[place]
            body = None if raw is None else self.body(raw)
            current = model[name].version
            stale = min(used - {ABSENT, current}, default=ABSENT, key=str)
            version = {
                "current": current,
                "absent": ABSENT,
                "future": self.unused(used),
                "stale": stale,
            }[which]
            done = clients[client].swap(name, version, body)
            assert (done is not None) == (version == current)
            if done is not None:
                assert done.body == body
                assert (done.version == 0) if body is None else (done.version not in used)
                used.add(done.version)
                model[name] = done
            found = clients[1 - client].read(name)
            assert (found.version, found.body) == (model[name].version, model[name].body)

    def test_threads_that_count_together_lose_nothing(self, open_store: OpenStore) -> None:
        shared = open_store()
        clients = (shared, shared, open_store(), open_store())
        barrier = Barrier(len(clients))

        def count(client: DocumentStore) -> list[Version]:
            barrier.wait()
            return [_raised(client) for _ in range(50)]

        with ThreadPoolExecutor(len(clients)) as pool:
            versions = [one for mine in pool.map(count, clients) for one in mine]

        assert shared.read(LEDGER).body == b"200"
        assert len(set(versions)) == 200

    def test_a_watch_wakes_when_any_client_swapped(self, open_store: OpenStore) -> None:
        one, other = open_store(), open_store()
        watch = one.watch()
        for writer in (one, other):
            written(writer, LEDGER, self.body(b"x"))
            assert watch.wait(SOON)
        watch.close()

    def test_a_watch_wakes_when_a_document_was_deleted(self, store: DocumentStore) -> None:
        version = written(store, LEDGER, self.body(b"x"))
        watch = store.watch()

        store.swap(LEDGER, version, None)

        assert watch.wait(SOON)
        watch.close()

    def test_a_notice_wakes_every_watch(self, open_store: OpenStore) -> None:
        one, other = open_store(), open_store()
        watches = [one.watch(), one.watch(), other.watch()]

        other.notify()

        assert all([watch.wait(SOON) for watch in watches])  # noqa: C419  (all of them wait)
        for watch in watches:
            watch.close()

    def test_many_changes_are_one_wake_up_and_then_it_is_quiet(self, store: DocumentStore) -> None:
        watch = store.watch()
        for _ in range(20):
            written(store, LEDGER, self.body(b"x"))

        assert watch.wait(SOON)
        assert not watch.wait(0)
        watch.close()

    def test_a_thread_ends_the_wait_of_another(self, store: DocumentStore) -> None:
        watch = store.watch()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(watch.wait, SOON)
            watch.wake()
            assert waiting.result()
        watch.close()

    def test_closing_a_watch_ends_its_wait(self, store: DocumentStore) -> None:
        watch = store.watch()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(watch.wait, 10 * SOON)
            watch.close()
            waiting.result(SOON)
        store.notify()


def _raised(client: DocumentStore) -> Version:
    """Add one to the number in the ledger; the version that made it."""
    while True:
        found = client.read(LEDGER)
        done = client.swap(LEDGER, found.version, b"%d" % (int(found.body or 0) + 1))
        if done is not None:
            return done.version
