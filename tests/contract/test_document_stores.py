"""The document stores keep the contract; the one on SQLite also across processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.port import ABSENT, LEDGER, DocumentStore, Version, Watch
from blastyard.admission.postgres.documents import PostgresDocumentStore
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import Pace, RedisDocumentStore
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.clock import SystemClock
from blastyard.store.migrations import server, upgrade
from blastyard.testing.contract_documents import (
    SOON,
    DocumentStoreContract,
    OpenStore,
    written,
)
from blastyard.testing.faulty import FaultyDocumentStore
from blastyard.testing.redis_server import RedisServer


class TestMemory(DocumentStoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemoryDocumentStore(SystemClock().now)
        return lambda: store


class TestFaultyWithoutFaults(DocumentStoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemoryDocumentStore(SystemClock().now)
        return lambda: FaultyDocumentStore(store)


@pytest.fixture
def open_sqlite(tmp_path: Path) -> Iterator[Callable[[], SqliteDocumentStore]]:
    """Opens clients of one file; closes them in the end."""
    opened: list[SqliteDocumentStore] = []

    def open_one() -> SqliteDocumentStore:
        opened.append(sqlite_store(tmp_path))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def sqlite_store(home: Path) -> SqliteDocumentStore:
    """A client as bootstrap makes it."""
    wakeup = Wakeup(home / "run")
    return SqliteDocumentStore(home / "blastyard.db", wakeup=wakeup, upgrade=upgrade)


class TestSqlite(DocumentStoreContract):
    @pytest.fixture
    def open_store(self, open_sqlite: Callable[[], SqliteDocumentStore]) -> OpenStore:
        return open_sqlite


class TestPostgres(DocumentStoreContract):
    @pytest.fixture
    def open_store(self, postgres_url: str) -> Iterator[OpenStore]:
        opened: list[DocumentStore] = []

        def open_one() -> DocumentStore:
            opened.append(PostgresDocumentStore(postgres_url, upgrade=server.upgrade))
            return opened[-1]

        yield open_one
        for store in opened:
            store.close()


class TestRedis(DocumentStoreContract):
    def unused(self, versions: Collection[Version]) -> Version:
        given = [str(version) for version in versions if version != ABSENT]
        epochs = {version.rpartition("-")[0] for version in given}
        counts = [int(version.rpartition("-")[2]) for version in given]
        return f"{max(epochs, default='0')}-{max(counts, default=0) + 1000}"

    @pytest.fixture
    def open_store(self, redis_server: RedisServer, redis_namespace: str) -> Iterator[OpenStore]:
        opened: list[DocumentStore] = []
        at_once = Pace(grace=timedelta(0))

        def open_one() -> DocumentStore:
            address = Address.parse(redis_server.url)
            opened.append(RedisDocumentStore(address, redis_namespace, at_once))
            return opened[-1]

        yield open_one
        for store in opened:
            store.close()


OPEN = """
import sys
from pathlib import Path
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.store.migrations import upgrade
home = Path(sys.argv[1])
store = SqliteDocumentStore(home / "blastyard.db", wakeup=Wakeup(home / "run"), upgrade=upgrade)
"""
COUNT = """
for _ in range(int(sys.argv[2])):
    while True:
        found = store.read("ledger")
        done = store.swap("ledger", found.version, b"%d" % (int(found.body or 0) + 1))
        if done is not None:
            print(done.version)
            break
store.close()
"""


def process(home: Path, program: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Another process with ``store`` open on the same file."""
    command = [sys.executable, "-c", OPEN + program, str(home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def output(child: subprocess.Popen[str]) -> str:
    """What the process printed, once it ended well."""
    printed, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return printed


def test_processes_that_count_together_lose_nothing(tmp_path: Path) -> None:
    children = [process(tmp_path, COUNT, "100") for _ in range(4)]
    versions = [line for child in children for line in output(child).split()]

    store = sqlite_store(tmp_path)
    assert store.read(LEDGER).body == b"400"
    assert len(set(versions)) == 400
    store.close()


def test_many_processes_may_start_on_an_empty_directory_at_once(tmp_path: Path) -> None:
    children = [process(tmp_path / "new", COUNT, "1") for _ in range(6)]
    for child in children:
        output(child)

    store = sqlite_store(tmp_path / "new")
    assert store.read(LEDGER).body == b"6"
    store.close()


def test_a_watch_wakes_when_another_process_swapped(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    watch = store.watch()
    assert not watch.wait(0)

    child = process(tmp_path, COUNT, "1")

    assert watch.wait(SOON)
    output(child)
    watch.close()
    store.close()


def test_the_socket_of_a_dead_process_is_cleared_away(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    child = process(tmp_path, "watch = store.watch(); print('up', flush=True); sys.stdin.read()",
                    stdin=subprocess.PIPE)  # fmt: skip
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "up\n"
    store.notify()
    assert len(list((tmp_path / "run").iterdir())) == 1

    child.kill()
    child.wait()
    store.notify()

    assert list((tmp_path / "run").iterdir()) == []
    child.stdout.close()
    child.stdin.close()
    store.close()


def test_a_watch_hears_in_a_home_deeper_than_a_socket_address(tmp_path: Path) -> None:
    home = tmp_path / ("d" * 100) / ("e" * 100)
    store = sqlite_store(home)
    watch = store.watch()
    written(store, LEDGER, b"x")

    assert watch.wait(SOON)
    watch.close()
    store.close()


def test_a_watch_whose_socket_was_swept_away_hears_again(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    watch = store.watch()
    for socket in (tmp_path / "run").iterdir():
        socket.unlink()
    assert watch.wait(0)  # it cannot tell what it missed

    store.notify()

    assert watch.wait(SOON)
    watch.close()
    store.close()


def test_closing_a_watch_removes_its_socket(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    watch = store.watch()
    watch.close()
    watch.close()

    assert list((tmp_path / "run").iterdir()) == []
    assert not watch.wait(SOON)
    store.close()


def test_a_forked_child_shares_neither_connection_nor_wake_up_with_its_parent(
    tmp_path: Path,
) -> None:
    store = sqlite_store(tmp_path)
    watch = store.watch()
    version = written(store, LEDGER, b"parent")
    assert watch.wait(SOON)

    child = os.fork()
    if child == 0:  # it must not return into pytest
        os._exit(0 if _swaps_and_hears(store, version, watch) else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert watch.wait(SOON)
    assert store.read(LEDGER).body == b"child"
    watch.close()
    store.close()


def open_files(name: str) -> list[Path]:
    """Descriptors of this process for files of that name."""
    links = [Path(entry.path) for entry in os.scandir("/proc/self/fd")]
    return [link for link in links if link.is_symlink() and link.readlink().name == name]


def _swaps_and_hears(store: DocumentStore, version: int, watch: Watch) -> bool:
    inherited = open_files("blastyard.db")
    swapped = store.swap(LEDGER, version, b"child") is not None
    if open_files("blastyard.db") == inherited:
        return False
    woken_at_first = watch.wait(0)  # what happened since the fork was not heard
    quiet = not watch.wait(0)
    store.notify()
    return swapped and woken_at_first and quiet and watch.wait(SOON)


def test_time_zone_of_a_process_changes_no_stamp(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    before = store.read(LEDGER).now
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        output(process(tmp_path, COUNT, "1", env={"TZ": zone}))
        found = store.read(LEDGER)
        assert found.stamped_at is not None
        assert before <= found.stamped_at <= found.now
    store.close()


def test_a_watch_that_cannot_listen_still_ends_its_waits(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    watch = store.watch()
    for socket in (tmp_path / "run").iterdir():
        socket.unlink()
    (tmp_path / "run").rmdir()
    (tmp_path / "run").write_text("in the way")

    assert not watch.wait(0)
    watch.wake()
    assert watch.wait(SOON)
    watch.close()
    store.close()
