"""What is known of a running control plane, as its keeper writes it into the directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from blastyard.engine.process import Process


class Running(msgspec.Struct, frozen=True):
    """One process: its number, and when it started in clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Running:
        """The process that has this number. Raises ``ProcessLookupError``."""
        found = Process.find(pid)
        if found is None:
            raise ProcessLookupError(f"process {pid} is gone")
        return cls(found.pid, found.started)

    @property
    def process(self) -> Process:
        return Process(self.pid, self.started)


class State(msgspec.Struct, frozen=True):
    """A control plane that was ready when this was written."""

    url: str
    port: int
    admin_token: str
    keeper: Running
    programs: dict[str, Running]

    @classmethod
    def read(cls, path: Path) -> State | None:
        """What the file says; ``None`` when there is none, or it is of another version."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, path: Path) -> None:
        """Put it where others find it whole or not at all, readable by this account only."""
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_bytes(msgspec.json.encode(self))
        new.replace(path)

    @property
    def is_kept(self) -> bool:
        """Whether its keeper is alive. Without one, none of its programs is."""
        return self.keeper.process.is_alive()
