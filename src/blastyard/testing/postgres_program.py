"""The programs of the distribution's PostgreSQL, and the account they may run under."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blastyard.domain.errors import Unavailable

_PLACES: Final = Path("/usr/lib/postgresql")
_NAMES: Final = ("initdb", "pg_basebackup", "postgres")
_ACCOUNTS: Final = ("postgres", "nobody")


def find_programs() -> Path:
    """The folder of the newest server there is. Raises ``Unavailable`` when there is none."""
    folders = [each for each in _PLACES.glob("*/bin") if each.parent.name.isdecimal()]
    for folder in sorted(folders, key=lambda each: int(each.parent.name), reverse=True):
        if all((folder / name).exists() for name in _NAMES):
            return folder
    raise Unavailable(
        "dependency_missing",
        f"There is no PostgreSQL server in {_PLACES}.",
        "scripts/setup dev installs the distribution's.",
    )


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server: this account, or another one where this is root's, which it refuses."""

    user: int
    group: int

    @classmethod
    def for_server(cls) -> Account:
        """Raises ``Unavailable`` when root finds nobody to run it."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        for name in _ACCOUNTS:
            with suppress(KeyError):
                found = pwd.getpwnam(name)
                return cls(found.pw_uid, found.pw_gid)
        raise Unavailable("dependency_missing", "No account here may run a PostgreSQL server.")

    @property
    def prefix(self) -> list[str]:
        """Words before a command: it runs under the account, and ends with who started it.

        SIGQUIT ends a server at once, and it takes its sessions and shared memory along.
        """
        words = [shutil.which("setpriv") or "/usr/bin/setpriv", "--pdeathsig=QUIT"]
        if os.geteuid() == self.user:
            return words
        return [*words, f"--reuid={self.user}", f"--regid={self.group}", "--clear-groups"]

    @property
    def environment(self) -> Mapping[str, str]:
        """What the programs may see of ours: nothing."""
        return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def own(self, path: Path) -> None:
        """Give a file or folder to the account."""
        os.chown(path, self.user, self.group)


def descendants(process: int) -> list[int]:
    """All processes that descend from this one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            parent, _ = _parent_and_state(int(entry.name))
            children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(process, []))
    for each in found:  # grows while it is read
        found += children.get(each, [])
    return found


def is_running(process: int) -> bool:
    """Whether there is such a process, and it is not only waiting to be buried."""
    _, state = _parent_and_state(process)
    return state not in ("", "Z", "X")


def _parent_and_state(process: int) -> tuple[int, str]:
    with suppress(OSError):
        # the name in parentheses may hold anything: proc(5)
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(words[1]), words[0]
    return 0, ""
