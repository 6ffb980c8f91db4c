"""What every ``DocumentStore`` must do: subclass, give ``open_store``, and let pytest collect.

::

    class TestMyStore(DocumentStoreContract):
        @pytest.fixture
        def open_store(self): ...

``open_store()`` returns another client of one and the same store, empty at the beginning of a test.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blastyard.admission.port import LEASE, LEDGER, SUBMITTER, DocumentStore

OpenStore = Callable[[], DocumentStore]

SOON = 10.0
"""Seconds that a test waits for what must happen at once before it fails."""

NAMES = ("lease", "ledger", "submitter/a")
MOVES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(NAMES),
        st.sampled_from(("current", "stale", "absent", "future")),
        st.none() | st.binary(max_size=40),
    ),
    max_size=30,
)

INHERITED = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors)
"""Checks that do not suit a property inherited by several test classes."""


def written(store: DocumentStore, name: str, body: bytes) -> int:
    """Swap, whatever is there; the version it has afterwards."""
    done = store.swap(name, store.read(name).version, body)
    assert done is not None
    return done.version


class DocumentStoreContract:
    """The obligations of :mod:`blastyard.admission.port`, as tests."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Another client of the store under test."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_store: OpenStore) -> DocumentStore:
        """A client of the store under test."""
        return open_store()

    def test_an_absent_document_has_version_0_and_no_body(self, store: DocumentStore) -> None:
        found = store.read(LEASE)

        assert (found.name, found.version, found.body, found.stamped_at) == (LEASE, 0, None, None)

    def test_every_client_reads_what_one_of_them_swapped(self, open_store: OpenStore) -> None:
        one, other = open_store(), open_store()

        done = one.swap(LEASE, 0, b"mine")

        assert done is not None
        for reader in (one, other):
            found = reader.read(LEASE)
            assert (found.version, found.body) == (done.version, b"mine")
            assert found.stamped_at == done.stamped_at

    @pytest.mark.parametrize("body", [b"", b"\0\xff\n'\"", bytes(range(256)) * 4096])
    def test_a_body_comes_back_byte_for_byte(self, store: DocumentStore, body: bytes) -> None:
        written(store, LEDGER, body)

        assert store.read(LEDGER).body == body

    def test_a_swap_at_another_version_conflicts_and_changes_nothing(
        self, open_store: OpenStore
    ) -> None:
        one, other = open_store(), open_store()
        old = written(one, LEASE, b"1")
        now = written(other, LEASE, b"2")

        for version in (0, old, now + 1):
            for body in (b"3", None):
                assert one.swap(LEASE, version, body) is None

        assert other.read(LEASE).body == b"2"
        assert other.read(LEASE).version == now

    def test_an_absent_document_cannot_be_swapped_at_a_version(self, store: DocumentStore) -> None:
        assert store.swap(LEASE, 1, b"x") is None
        assert store.swap(LEASE, 1, None) is None
        assert store.read(LEASE).version == 0

    def test_deleting_what_is_absent_succeeds(self, store: DocumentStore) -> None:
        done = store.swap(LEASE, 0, None)

        assert done is not None
        assert (done.version, done.body) == (0, None)

    def test_a_deleted_document_is_absent_and_its_versions_never_return(
        self, store: DocumentStore
    ) -> None:
        seen: set[int] = set()
        for _ in range(5):
            version = written(store, LEASE, b"same")
            assert version > 0
            assert version not in seen
            seen.add(version)
            gone = store.swap(LEASE, version, None)
            assert gone is not None
            assert (gone.version, gone.body, gone.stamped_at) == (0, None, None)
            assert store.read(LEASE).version == 0

        for version in seen:
            assert store.swap(LEASE, version, b"late") is None

    def test_a_stamp_is_of_the_write_and_of_the_clock_that_reads_tell(
        self, open_store: OpenStore
    ) -> None:
        one, other = open_store(), open_store()
        before = one.read(LEASE).now
        written(one, LEASE, b"x")
        first, second = other.read(LEASE), one.read(LEASE)

        assert first.stamped_at is not None
        assert first.stamped_at == second.stamped_at
        assert before <= first.stamped_at <= first.now <= second.now
        assert first.now.utcoffset() is not None

    def test_a_scan_gives_the_documents_under_a_prefix_by_name(self, store: DocumentStore) -> None:
        for name in ("submitter/b", "submitter/a_%", "submitter/ü\U0001f9ec", "submitter", LEASE):
            written(store, name, name.encode())

        found = store.scan(SUBMITTER)

        assert list(found) == ["submitter/a_%", "submitter/b", "submitter/ü\U0001f9ec"]
        for name, snapshot in found.items():
            assert (snapshot.name, snapshot.body) == (name, name.encode())
            assert snapshot.version == store.read(name).version
            assert snapshot.stamped_at is not None
        assert store.scan("nothing/") == {}
        assert len(store.scan("")) == 5

    @settings(max_examples=30, deadline=None, suppress_health_check=INHERITED)
    @given(moves=MOVES)
    def test_any_interleaving_of_two_clients_agrees_with_a_dictionary(
        self, open_store: OpenStore, moves: list[tuple[int, str, str, bytes | None]]
    ) -> None:
        clients = (open_store(), open_store())
        model = {name: clients[0].read(name) for name in NAMES}
        used = {snapshot.version for snapshot in model.values()}
        for client, name, which, body in moves:
            current = model[name].version
            version = {"current": current, "absent": 0, "future": max(used) + 1}.get(which)
            version = min(used - {0, current}, default=0) if version is None else version
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

        def count(client: DocumentStore) -> list[int]:
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
            written(writer, LEDGER, b"x")
            assert watch.wait(SOON)
        watch.close()

    def test_a_watch_wakes_when_a_document_was_deleted(self, store: DocumentStore) -> None:
        version = written(store, LEDGER, b"x")
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
            written(store, LEDGER, b"x")

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


def _raised(client: DocumentStore) -> int:
    """Add one to the number in the ledger; the version that made it."""
    while True:
        found = client.read(LEDGER)
        done = client.swap(LEDGER, found.version, b"%d" % (int(found.body or 0) + 1))
        if done is not None:
            return done.version
