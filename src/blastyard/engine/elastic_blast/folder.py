"""The files of one run of the submit command, below the folder of its attempt.

::

    attempt-<n>/elastic-blast/search.ini        the configuration file
    attempt-<n>/elastic-blast/submission.json   which search this is, and under which id it goes
    attempt-<n>/elastic-blast/exit.json         how the command ended, written by its guardian
    attempt-<n>/elastic-blast/home/             HOME, with .kube/config
    attempt-<n>/elastic-blast/work/             the working directory, where it leaves its log
    attempt-<n>/elastic-blast/tmp/              TMPDIR

Only this account can read them: both configurations may have secrets in them.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from blastyard.domain.errors import Unavailable
from blastyard.engine.command import Ending, read_ending
from blastyard.engine.elastic_blast.name import ClusterName


@dataclass(frozen=True, slots=True)
class SubmitFolder:
    """Where one run keeps what."""

    path: Path

    @classmethod
    def below(cls, attempt: Path) -> SubmitFolder:
        """The one in the folder of an attempt, which carries the search's id and a number."""
        return cls(attempt.absolute() / "elastic-blast")

    @property
    def configuration(self) -> Path:
        """What the command reads."""
        return self.path / "search.ini"

    @property
    def home(self) -> Path:
        """All that the command may take for its account's."""
        return self.path / "home"

    @property
    def kubeconfig(self) -> Path:
        """Where ``kubectl`` looks for it, and where the command rewrites it."""
        return self.home / ".kube" / "config"

    @property
    def work(self) -> Path:
        """Where the command runs."""
        return self.path / "work"

    @property
    def temporary(self) -> Path:
        """Where the command puts what it wants to forget."""
        return self.path / "tmp"

    @property
    def record(self) -> Path:
        """How the command ended, for processes that come later."""
        return self.path / "exit.json"

    def create(self, name: ClusterName, configuration: str, kubeconfig: bytes) -> None:
        """Make everything anew.

        Raises ``Unavailable`` when the disk does not do its part, and when a command has ended here
        before: how it ended is what an attempt is resumed by.
        """
        if self.record.exists():
            raise Unavailable("internal", f"the attempt in {self.path} was made before")
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(mode=0o700, parents=True)
            for each in (self.kubeconfig.parent, self.work, self.temporary):
                each.mkdir(parents=True)
            said = {"id": name.id, "search": name.search, "key": name.key}
            _write(self.path / "submission.json", json.dumps(said).encode())
            _write(self.configuration, configuration.encode())
            _write(self.kubeconfig, kubeconfig)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise Unavailable(
                "disk_full" if full else "internal",
                f"{self.path} cannot be made: {error}",
                "make room, or look who may write there",
            ) from error

    def ending(self) -> Ending | None:
        """How the command ended, if its guardian saw that; ``None`` = it cannot be told."""
        try:
            return read_ending(json.loads(self.record.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor has no path)
        file.write(data)
