"""One process of a run, whatever is started by it, and what it has told so far."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Final

from blastyard.domain.clock import SystemClock
from blastyard.testing.recorded.deed import Deed, read_deeds

TAG: Final = "SOAK_ACTOR"
"""Variable that tells whose a process is; everything that is started by it inherits it."""
GONE_SECONDS: Final = 15.0
"""In which guardians have ended the commands of who was killed."""
_LOOK: Final = 0.03


@dataclass
class Actor:
    """A process that is started, stopped, killed and started again.

    ``say(who, what, search, **more)`` tells deeds in its name, since the dead tell none.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    say: Callable[..., None]
    returns: bool = False
    """Started again when it was killed."""
    number: int = 0
    """How often it was started."""
    killed: int = 0
    left_behind: list[str] = field(default_factory=list)
    fate: Lock = field(default_factory=Lock)
    """Held by who makes something happen to it."""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def deeds_file(self) -> Path:
        """What it prints."""
        return self.folder / f"{self.name}.deeds.jsonl"

    @property
    def is_running(self) -> bool:
        """Whether its process is there, moving or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_begun(self) -> bool:
        """Whether it was ever started."""
        return self._process is not None

    @property
    def code(self) -> int | None:
        """The exit code; ``None`` while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it, for the first time or again."""
        self.number += 1
        with (
            self.deeds_file.open("ab") as out,
            (self.folder / f"{self.name}.log").open("ab") as log,
        ):
            self._process = subprocess.Popen(
                self.command,
                env={**self.environment, TAG: self._tag},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )

    @property
    def _tag(self) -> str:
        return f"{self.folder.name}/{self.name}/{self.number}"

    def deeds(self) -> list[Deed]:
        """What it has told so far."""
        if not self.deeds_file.exists():
            return []
        return read_deeds(self.deeds_file.read_text().splitlines())

    def searches(self) -> list[str]:
        """What it was asked for that has not ended, as far as it knows."""
        deeds = self.deeds()
        ended = {deed.search for deed in deeds if deed.what == "ended"}
        return [one.search for one in deeds if one.what == "accepted" and one.search not in ended]

    def kill(self) -> None:
        """SIGKILL; returns when its guardians have ended what it ran, and says so."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self.killed += 1
        if not _until(lambda: not self._others(), GONE_SECONDS):
            self.left_behind += [
                f"{self.name}: process {pid} outlived it" for pid in self._others()
            ]
        self.say(self.name, "died", "")

    def terminate(self, seconds: float) -> int | None:
        """SIGTERM; its exit code, or ``None`` when it had to be killed."""
        if self._process is None or self._process.poll() is not None:
            return self.code
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def stand_still(self, over: Event, seconds: float) -> None:
        """SIGSTOP for so long, at most until ``over``. Its guardians go on: when they have ended
        its command, that is told in its name."""
        if self._process is None:
            return
        clock = SystemClock()
        self._process.send_signal(signal.SIGSTOP)
        until = clock.monotonic() + seconds
        told = False
        while clock.monotonic() < until and not over.wait(_LOOK):
            if not told and not self._others():
                told = True
                self._tell_ended_commands()
        self._process.send_signal(signal.SIGCONT)

    def _tell_ended_commands(self) -> None:
        running: dict[str, Deed] = {}
        for deed in self.deeds():
            if deed.what == "submitting":
                running[deed.holder] = deed
            elif deed.what == "submitted":
                running.pop(deed.holder, None)
        for deed in running.values():
            self.say(self.name, "submitted", deed.search, **{**deed.more, "code": None})

    def _others(self) -> list[int]:
        """Processes that were started by it, or by those, and are there; without its own."""
        wanted = f"{TAG}={self._tag}".encode()
        own = self._process.pid if self._process else 0
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == own:
                continue
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


def _until(true: Callable[[], bool], seconds: float) -> bool:
    clock = SystemClock()
    latest = clock.monotonic() + seconds
    never = Event()
    while not true():
        if clock.monotonic() > latest:
            return False
        never.wait(_LOOK)
    return True
