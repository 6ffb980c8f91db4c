"""The SQLite file of an installation: where it may lie, how it is opened, what its errors mean.

Everything that is true of the file itself, whoever uses it, stands here: the document store opens
it with the standard library, the search store through SQLAlchemy, both with :func:`connect`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock
from typing import Final
from urllib.parse import quote

from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable

SCHEMA_VERSION: Final = 1
"""``PRAGMA user_version`` of a file this program can use: the number of the last migration."""

NOW: Final = "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
"""SQL for the database's clock: UTC, milliseconds, in the form SQLAlchemy stores a DateTime."""

PATIENCE: Final = timedelta(seconds=5)
"""How long a write waits for another process's before the store counts as unavailable."""

UPGRADE_PATIENCE: Final = timedelta(seconds=60)

_NETWORK_TYPES: Final = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs"),
        *("lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb2", "smb3"),
        *("smbfs", "vboxsf", "fuse.ceph", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs"),
        *("fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse"),
    )
)

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")

_turns: dict[Path, Lock] = {}
_turns_lock = Lock()


def connect(path: Path, patience: timedelta = PATIENCE) -> sqlite3.Connection:
    """Open an existing file, in autocommit mode, for use by any thread (one at a time).

    A commit survives the death of the process, not a power cut: the write-ahead log is flushed to
    the disk by those who ask for ``synchronous=FULL``. Raises ``sqlite3.Error``.
    """
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=patience.total_seconds(),
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def schema_version(connection: sqlite3.Connection) -> int:
    """The number of the last migration that ran on this file; 0 for a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def stored_version(path: Path) -> int:
    """Like :func:`schema_version`, of a file; 0 when there is none. Raises ``Unavailable``."""
    if not path.exists():
        return 0
    with translated(path), closing(connect(path)) as connection:
        return schema_version(connection)


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; ``None`` when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def refuse_replaced(path: Path, opened: tuple[int, int] | None) -> None:
    """Raise ``Unavailable`` when the file is not the one that was opened.

    Those who have the old one open and those who open the new one would not see each other.
    """
    if identity(path) != opened:
        step = "Stop every blastyard that uses it, then start again."
        raise _unavailable(path, "was removed or replaced while it was in use", step)


def refuse_newer(version: int, path: Path) -> None:
    """Raise ``Misconfigured('store_newer')`` for a schema this program does not know."""
    if version > SCHEMA_VERSION:
        raise Misconfigured(
            "store_newer",
            f"{path} has schema {version}; this blastyard knows schema {SCHEMA_VERSION}",
            "Install the blastyard that wrote it, or a newer one, and restart what is still old.",
        )


def _forget_turns() -> None:
    """In a forked child: the threads that held these locks are not here."""
    global _turns_lock  # noqa: PLW0603
    _turns_lock = Lock()
    _turns.clear()


os.register_at_fork(after_in_child=_forget_turns)


@contextmanager
def turn(path: Path, patience: timedelta = PATIENCE) -> Iterator[None]:
    """One writer of this process at a time.

    SQLite itself makes writers wait, by sleeping longer and longer; that is for other processes.
    Threads queue here, where the next one starts at once.
    """
    with _turns_lock:
        lock = _turns.setdefault(path, Lock())
    if not lock.acquire(timeout=patience.total_seconds()):
        raise _unavailable(path, "was written by another thread all the time", _BUSY_STEP)
    try:
        yield
    finally:
        lock.release()


def create(path: Path) -> None:
    """Make an empty file, and its directory, when missing.

    The file may be used by those who may write in its directory: by its group when the directory
    is group-writable. SQLite gives ``-wal`` and ``-shm`` the file's own mode.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(_open_shared(path))


@contextmanager
def upgrading(path: Path) -> Iterator[None]:
    """Keep other processes from upgrading the file at ``path`` meanwhile.

    Raises ``Unavailable`` after a minute. The lock is the kernel's and ends with the process.
    """
    create(path)
    descriptor = _open_shared(path.with_name(path.name + ".upgrade"))
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    # flock has no timeout. Looking again every 20 ms happens only while another process upgrades.
    pause = timedelta(milliseconds=20)
    for _ in range(UPGRADE_PATIENCE // pause):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            Event().wait(pause.total_seconds())
        else:
            return
    raise _unavailable(path, "is being upgraded by another process that does not end", _BUSY_STEP)


def _open_shared(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    owner, directory = os.fstat(descriptor), path.parent.stat()
    mode = 0o600 | directory.st_mode & 0o060
    if owner.st_uid == os.geteuid() and stat.S_IMODE(owner.st_mode) != mode:
        if directory.st_mode & stat.S_IWGRP and owner.st_gid != directory.st_gid:
            _give_to_group(descriptor, directory.st_gid)
        os.fchmod(descriptor, mode)
    return descriptor


def _give_to_group(descriptor: int, group: int) -> None:
    try:
        os.fchown(descriptor, -1, group)
    except PermissionError:
        return  # not a member of the directory's group: others will be told when they meet it


def check_place(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Refuse a network file system: its locks and shared memory do not reach other machines.

    Raises ``Misconfigured('settings_invalid')``.
    """
    kind = filesystem_type(path, mounts.read_text(errors="surrogateescape"))
    if kind in _NETWORK_TYPES:
        raise Misconfigured(
            "settings_invalid",
            f"{path.parent} is on a network file system ({kind}), where SQLite cannot keep the "
            "queue safely",
            "Set BLASTYARD_HOME to a directory on a disk of this machine.",
        )


def filesystem_type(path: Path, mountinfo: str) -> str:
    """The type of the file system ``path`` is, or would be made, on; '' when not listed.

    ``mountinfo`` is the text of ``/proc/<pid>/mountinfo`` (proc(5)); of mounts on one point the
    last one covers the others.
    """
    place, best, kind = path.resolve(), -1, ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if not after or len(before.split(" ")) < 5:
            continue
        point = Path(_ESCAPE.sub(lambda found: chr(int(found[1], 8)), before.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ", 1)[0]
    return kind


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the errors of ``sqlite3`` and the operating system inside into ``Unavailable``."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unavailable(error, path) from error


_BUSY_STEP: Final = "Try again; if it stays, see which process has the file open (fuser, lsof)."
_SHARE_STEP: Final = (
    "Ask its owner to let your group in: chgrp -R GROUP, chmod -R g+rwX and chmod g+s on the "
    "directory; or set BLASTYARD_HOME to a directory of your own."
)
_REASONS: Final[dict[int, tuple[str, str]]] = {
    sqlite3.SQLITE_BUSY: ("is locked by another process", _BUSY_STEP),
    sqlite3.SQLITE_LOCKED: ("is locked by another process", _BUSY_STEP),
    sqlite3.SQLITE_PROTOCOL: ("is locked by another process", _BUSY_STEP),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "Free some space and try again."),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk reports an error",
        "Look at the kernel's log (dmesg) and at the free space of the disk.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "Stop every blastyard, keep a copy, and restore it from a backup or move it away.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "is not a database of blastyard",
        "Move the file away, or set BLASTYARD_HOME to another directory.",
    ),
}
_ACCESS: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})


def unavailable(error: sqlite3.Error | OSError, path: Path) -> BlastyardError:
    """What an error of SQLite or of the operating system on this file means, and what to do."""
    if isinstance(error, OSError):
        return _of_access(error.errno or 0, error.strerror or str(error), path)
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary in _ACCESS:
        return _of_access(0, str(error), path)
    reason, step = _REASONS.get(primary, ("did not answer as it must", _BUSY_STEP))
    return _unavailable(path, f"{reason} ({error})", step)


def _of_access(number: int, words: str, path: Path) -> Unavailable:
    directory = path.parent
    if not directory.is_dir():
        return _unavailable(
            path, f"cannot be opened: there is no directory {directory}", "Make it."
        )
    if number == errno.EROFS or os.statvfs(directory).f_flag & os.ST_RDONLY:
        step = "Mount it for writing, or set BLASTYARD_HOME to another directory."
        return _unavailable(path, "is on a read-only file system", step)
    for place in (directory, path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if place.exists() and not os.access(place, os.R_OK | os.W_OK):
            who = f"this account (user id {os.geteuid()}) may not write {place}"
            return _unavailable(path, f"cannot be used: {who}", _SHARE_STEP)
    return _unavailable(path, f"cannot be used: {words}", _SHARE_STEP)


def _unavailable(path: Path, reason: str, step: str) -> Unavailable:
    return Unavailable("store_unavailable", f"The database {path} {reason}.", step)
