"""A file that cannot be used is named, with the reason and what to do; nothing is made up."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from blastyard import sqlite
from blastyard.admission.port import LEDGER
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.store.migrations import upgrade
from blastyard.store.port import Filter
from blastyard.store.sql import SqlSearchStore
from blastyard.testing import sample

MOMENT = timedelta(milliseconds=20)


def documents(home: Path) -> SqliteDocumentStore:
    """A document store without patience."""
    wakeup = Wakeup(home / "run")
    return SqliteDocumentStore(
        home / "blastyard.db", wakeup=wakeup, upgrade=upgrade, patience=MOMENT
    )


def refusal(call: Callable[[], object], kind: type[BlastyardError] = Unavailable) -> BlastyardError:
    """The error a call raises; it names the file's directory and a next step."""
    with pytest.raises(kind) as refused:
        call()
    assert refused.value.next_step
    return refused.value


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "blastyard.db").write_text("These are my notes, not a database.\n" * 100)
    store = documents(tmp_path)

    for call in (lambda: store.read(LEDGER), lambda: SqlSearchStore(tmp_path / "blastyard.db")):
        error = refusal(call)
        assert error.code == "store_unavailable"
        assert f"{tmp_path}/blastyard.db is not a database of blastyard" in error.message


def test_a_damaged_page_is_reported_and_not_read_as_empty(tmp_path: Path) -> None:
    store = documents(tmp_path)
    assert store.swap(LEDGER, 0, b"x" * 100_000) is not None
    store.close()
    path = tmp_path / "blastyard.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))

    error = refusal(lambda: documents(tmp_path).read(LEDGER))

    assert "is damaged" in error.message


def test_a_lock_held_too_long_is_unavailable_and_reads_go_on(tmp_path: Path) -> None:
    store = documents(tmp_path)
    done = store.swap(LEDGER, 0, b"x")
    assert done is not None
    with (
        closing(SqlSearchStore(tmp_path / "blastyard.db", patience=MOMENT)) as searches,
        closing(sqlite3.connect(tmp_path / "blastyard.db", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        for call in (
            lambda: store.swap(LEDGER, done.version, b"y"),
            lambda: searches.add_database(sample.database()),
        ):
            assert "is locked by another process" in refusal(call).message
        assert (
            store.read(LEDGER)
            == store.read(LEDGER).__class__(
                LEDGER, b"x", done.version, done.stamped_at, store.read(LEDGER).now
            )
            or store.read(LEDGER).body == b"x"
        )
        assert searches.list(Filter()) == []
        other.execute("ROLLBACK")

        assert store.swap(LEDGER, done.version, b"y") is not None
        searches.add_database(sample.database())
    store.close()


def test_a_newer_schema_is_refused_at_the_start_and_at_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    store = documents(tmp_path)
    store.read(LEDGER)
    with closing(SqlSearchStore(path)) as searches:
        with closing(sqlite3.connect(path)) as newer:
            newer.execute(f"PRAGMA user_version={sqlite.SCHEMA_VERSION + 1}")

        for call in (
            lambda: store.swap(LEDGER, 0, b"x"),
            lambda: searches.add_database(sample.database()),
            lambda: documents(tmp_path).read(LEDGER),
            lambda: SqlSearchStore(path),
            lambda: upgrade(path),
        ):
            error = refusal(call, Misconfigured)
            assert error.code == "store_newer"
            assert str(path) in error.message
        assert store.read(LEDGER).body is None
    store.close()


def test_a_file_removed_or_replaced_in_use_is_not_taken_for_an_empty_store(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    store = documents(tmp_path)
    assert store.swap(LEDGER, 0, b"x") is not None
    with closing(SqlSearchStore(path)) as searches:
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink()
        for _ in range(2):
            for call in (lambda: store.read(LEDGER), searches.counts):
                assert "was removed or replaced" in refusal(call).message
            upgrade(path)
    store.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = documents(tmp_path)
    searches = SqlSearchStore(tmp_path / "blastyard.db")
    for closed in (store, searches):
        closed.close()
        closed.close()

    for call in (lambda: store.read(LEDGER), searches.counts):
        with pytest.raises(Unavailable, match="was closed"):
            call()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    error = refusal(lambda: documents(tmp_path / "file" / "home").read(LEDGER))

    assert str(tmp_path / "file" / "home") in error.message


WRITE = """
import sys
from pathlib import Path
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import Unavailable
from blastyard.store.migrations import upgrade
home = Path(sys.argv[1])
store = SqliteDocumentStore(home / "blastyard.db", wakeup=Wakeup(home / "run"), upgrade=upgrade)
written = 0
try:
    while written < 100:
        assert store.swap(f"d{written}", 0, b"x" * 100_000)
        written += 1
except Unavailable as error:
    print(error.code, error.message, error.next_step)
if written:
    assert store.scan("d").keys() == {f"d{number}" for number in range(written)}
store.close()
"""


def write_much(home: Path, prelude: str = "") -> str:
    """What a process says that writes 10 MB."""
    command = [sys.executable, "-W", "error", "-c", prelude + WRITE, str(home)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def in_own_mounts(script: str, home: Path, missing: Callable[[str], NoReturn]) -> str:
    """What the writing process says after ``script`` changed the mounts that it alone sees."""
    unshare = shutil.which("unshare") or missing("unshare")
    probe = subprocess.run([unshare, "-m", "true"], check=False, capture_output=True)
    if probe.returncode != 0:
        missing("the right to mount")
    shell = f'{script} && exec "$0" -W error -c "$1" "$2"'
    command = [unshare, "-m", "sh", "-c", shell, sys.executable, WRITE, str(home)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_full_disk_is_named_and_what_was_written_stays_readable(
    home: Path, missing: Callable[[str], NoReturn]
) -> None:
    said = in_own_mounts(f"mount -t tmpfs -o size=2m none {home}", home, missing)

    assert said.startswith("store_unavailable")
    assert "the disk is full" in said
    assert str(home) in said


def test_a_read_only_file_system_is_named(home: Path, missing: Callable[[str], NoReturn]) -> None:
    write_much(home)
    mount = f"mount --bind {home} {home} && mount -o remount,ro,bind {home}"

    said = in_own_mounts(mount, home, missing)

    assert said.startswith("store_unavailable")
    assert "is on a read-only file system" in said


def test_an_error_of_the_disk_is_named(home: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))\n"

    said = write_much(home, limit)

    assert said.startswith("store_unavailable")
    assert "the disk reports an error" in said


MOUNTS = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 0:50 / /home rw shared:1 - nfs4 server:/home rw
41 40 0:51 / /home/local\\040disk rw - xfs /dev/vdb rw
42 27 0:52 / /mnt rw - fuse.sshfs me@there:/ rw
43 27 0:53 / /over rw - nfs server:/x rw
44 43 0:54 / /over rw - tmpfs none rw
unreadable
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/var/lib/blastyard/blastyard.db", "ext4"),
        ("/home/ada/new/blastyard.db", "nfs4"),
        ("/home/local disk/blastyard.db", "xfs"),
        ("/homely/blastyard.db", "ext4"),
        ("/mnt/x", "fuse.sshfs"),
        ("/over/x", "tmpfs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(place: str, kind: str) -> None:
    assert sqlite.filesystem_type(Path(place), MOUNTS) == kind


def test_a_network_file_system_is_refused_with_its_name(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"27 1 0:1 / / rw - ext4 a rw\n28 27 0:2 / {tmp_path} rw - cifs b rw\n")

    error = refusal(lambda: sqlite.check_place(tmp_path / "h" / "b.db", mounts), Misconfigured)

    assert "cifs" in error.message
    assert "BLASTYARD_HOME" in error.next_step
    sqlite.check_place(Path("/elsewhere/b.db"), mounts)
    sqlite.check_place(Path(os.devnull))
