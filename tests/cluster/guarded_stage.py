"""Submit commands that are hard to end, what is left of them, and a submission in this process."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread

import msgspec
from inside_stage import Installation
from lease_site_stage import Site
from waiting_stage import CLOCK, PATIENCE, until

from blastyard.admission.lease import SubmitLease
from blastyard.admission.port import LEASE, DocumentStore, Snapshot, Version, Watch
from blastyard.admission.ticket import Wish
from blastyard.domain.errors import BlastyardError
from blastyard.engine.guarded import Command, GuardedCommand
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.service.submitting import Fate, Submitting
from blastyard.settings import caller_environment

IGNORED = 'trap "" TERM INT HUP'
BEGUN = 3
"""Processes of which a stubborn command consists."""


class Stubborn:
    """A submit command that ignores signals and leaves processes behind, one of them in a session
    of its own. It goes on when it is let, and ends as ``after`` says.
    """

    def __init__(self, site: Site, after: str = "") -> None:
        self._pids = site.folder / "pids"
        self._go = site.folder / "go"
        os.mkfifo(self._go)
        self.script = site.script(
            f"{IGNORED}\n"
            f"setsid sh -c '{IGNORED}; echo $$ >>{self._pids}; exec sleep 600' &\n"
            f"sleep 600 &\necho $! >>{self._pids}\necho $$ >>{self._pids}\n"
            f"read word <{self._go}\n{after}"
        )

    def begun(self) -> Descendants:
        """All of it runs."""

        def pids() -> list[str]:
            found = self._pids.read_text().split() if self._pids.exists() else []
            return found if len(found) == BEGUN else []

        return Descendants([int(pid) for pid in until(pids)])

    def let(self) -> None:
        """Let it go on to its end."""
        self._go.write_text("on\n")


class Descendants:
    """The processes of a command, whoever has become their parent."""

    def __init__(self, pids: list[int]) -> None:
        self._descriptors = [os.pidfd_open(pid) for pid in pids]
        self.gone_at: datetime | None = None
        """When the last of them had ended."""
        self._watch = Thread(target=self._look, daemon=True)
        self._watch.start()

    @property
    def alive(self) -> int:
        """How many there are now."""
        return len(self._descriptors) - len(select.select(self._descriptors, [], [], 0)[0])

    def wait_gone(self, seconds: float = PATIENCE) -> datetime:
        """When the last of them had ended, after waiting for that."""
        self._watch.join(seconds)
        assert self.gone_at is not None, f"{self.alive} are alive after {seconds} s"
        return self.gone_at

    def _look(self) -> None:
        for descriptor in self._descriptors:
            select.select([descriptor], [], [])
        self.gone_at = CLOCK.now()


class Releases:
    """A document store that notes how much of a command is alive at each release of the lease."""

    def __init__(self, inner: DocumentStore, alive: Callable[[], int]) -> None:
        self._inner = inner
        self._alive = alive
        self.seen: list[int] = []
        self.read = inner.read
        self.scan = inner.scan
        self.glance = inner.glance
        self.glance_all = inner.glance_all
        self.notify = inner.notify
        self.close = inner.close

    def watch(self) -> Watch:
        return self._inner.watch()

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        if name == LEASE and body is not None:
            lease = msgspec.json.decode(body, type=SubmitLease)
            if not lease.holder_identity:
                self.seen.append(self._alive())
        return self._inner.swap(name, version, body)


class Submission:
    """A submit command behind both gates, as `exec` has it, in threads of this process."""

    def __init__(
        self, installation: Installation, search: str, script: Path, limit: float = 60.0
    ) -> None:
        gate = installation.gate
        self._script = script
        self._search = search
        self._watch = installation.opened.documents.watch()
        entrance = Entrance(
            gate, self._watch, gate.monotonic, lambda: None, installation.opened.tend
        )
        self.passage = Submitting(
            entrance,
            Wish(search, "ada", 1),
            Patience(),
            lambda *_: None,
            limit=timedelta(seconds=limit),
            watched=True,
        )
        self.error: BlastyardError | Stopped | None = None
        self._running: list[GuardedCommand] = []
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def fate(self, seconds: float = PATIENCE) -> Fate | None:
        """What became of it, after waiting for its end."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"it goes on after {seconds} s"
        return self.passage.result.fate if self.passage.result else None

    def _run(self) -> None:
        with closing(self._watch):
            try:
                with self.passage:
                    self.passage.admit(self._start)
            except (BlastyardError, Stopped) as error:
                self.error = error
            for command in self._running:
                command.close()

    def _start(self, deadline: float) -> GuardedCommand:
        words = [str(self._script), self._search]
        self._running.append(GuardedCommand.start(Command(words, caller_environment()), deadline))
        return self._running[-1]
