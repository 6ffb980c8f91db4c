"""The Table service that tests run against ends with whoever started it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from blastyard.testing.azurite import Azurite
from blastyard.testing.azurite_install import Program

OWNER = """
import os, signal
from blastyard.testing.azurite import Azurite
with Azurite() as azurite:
    print(azurite.pid, azurite._folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_service_ends_with_its_owner_also_when_that_is_killed(azurite_program: Program) -> None:
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        handle = os.pidfd_open(int(pid))
    assert owner.returncode == -signal.SIGKILL

    ended, _, _ = select.select([handle], [], [], 20.0)

    os.close(handle)
    assert ended
    assert not Path(folder).exists()


def test_a_service_that_is_closed_leaves_nothing(azurite_program: Program) -> None:
    with Azurite(azurite_program) as running:
        folder = Path(running._folder)
        handle = os.pidfd_open(running.pid)
        assert folder.exists()

    assert select.select([handle], [], [], 0.0)[0]
    os.close(handle)
    assert not folder.exists()
