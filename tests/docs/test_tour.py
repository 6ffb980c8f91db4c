"""The tour of the README, typed as it stands there, prints what it says."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "README.md").read_text().partition("<!-- tour: begin -->")[2]
BLOCKS = re.findall(r"```console\n(.*?)```", TOUR, re.DOTALL)


@pytest.fixture
def service(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """``scripts/run`` in another terminal, on an empty data directory."""
    around = {**environment, "BLASTYARD_PORT": "0"}
    with subprocess.Popen(
        ["scripts/run"],
        cwd=ROOT,
        env=around,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "is served at" in line:
                break
        else:
            pytest.fail("".join(said))
        try:
            yield around
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode == 0


def _typed() -> list[tuple[str, str]]:
    """Each command of the tour with what it is said to print."""
    parts = re.split(r"^\$ ", "".join(BLOCKS), flags=re.MULTILINE)[1:]
    return [(command, said) for command, _, said in (part.partition("\n") for part in parts)]


def _as_pattern(said: str) -> str:
    """The text, where a lone ``…`` stands for any lines and one inside a line for any words."""
    lines = ["(?:.*\n)*?" if line == "…" else _line(line) + "\n" for line in said.splitlines()]
    return "".join(lines)


def _line(line: str) -> str:
    return ".*".join(re.sub(r"(\\ )+", " +", re.escape(part)) for part in line.split("…")) + " *"


@pytest.mark.slow
def test_every_command_of_the_tour_prints_what_it_says(service: dict[str, str]) -> None:
    typed = _typed()
    assert len(typed) >= 10
    for command, said in typed:
        ran = subprocess.run(
            ["bash", "-c", f"source .venv/bin/activate; {command}"],
            cwd=ROOT,
            env=service,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        printed = ran.stdout + ran.stderr
        assert re.fullmatch(_as_pattern(said), printed), (command, printed, said)
