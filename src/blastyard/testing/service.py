"""A service in a process of its own, for tests that need a real one."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

END_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. ``log`` is its standard error."""

    address: str
    process: subprocess.Popen[str]
    log: Path

    def end(self, how: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(how)
        return self.process.wait(END_SECONDS)


@contextmanager
def service_process(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[Service]:
    """Run ``command``, which prints its address once it answers, until the block ends."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    if process.stdout is None:
        raise AssertionError("the process has no standard output")
    try:
        address = _address(process.stdout)
        if not address:
            raise AssertionError(f"the service did not start: {log.read_text()}")
        yield Service(address, process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        process.stdout.close()


def _address(lines: Iterator[str]) -> str:
    for line in lines:
        _, found, rest = line.partition("http://")
        if found:
            return found + rest.split()[0].rstrip("/.,")
    return ""
