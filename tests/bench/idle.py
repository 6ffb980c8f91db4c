"""What a service costs while nothing happens."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from figure import BLASTYARD, Figure, Setting


def measure(setting: Setting) -> list[Figure]:
    """CPU and memory of an idle service over half a minute."""
    environment = setting.environment("home")
    with subprocess.Popen(
        [str(BLASTYARD), "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as service:
        assert service.stdout is not None
        service.stdout.readline()
        time.sleep(3)
        seconds = 5 if setting.quick else 30
        before = _cpu(service.pid)
        time.sleep(seconds)
        share = (_cpu(service.pid) - before) / seconds * 100
        memory = _resident(service.pid)
        service.send_signal(signal.SIGTERM)
    return [
        Figure("service idle, CPU", share, "% of a core", "< 1", 1),
        Figure("service idle, memory", memory, "MiB", "< 120", 1),
    ]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
