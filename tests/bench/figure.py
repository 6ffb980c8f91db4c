"""One measured figure, and the table of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

BLASTYARD = Path(__file__).parents[2] / ".venv" / "bin" / "blastyard"
EXAMPLES = Path("/usr/share/doc/mmseqs2/example-data")


@dataclass(frozen=True)
class Figure:
    """What was measured, with its target; ``runs`` counts what the median is of."""

    name: str
    value: float
    unit: str
    target: str
    runs: int

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Setting:
    """Where a part may write, and how thorough it is."""

    root: Path
    quick: bool

    def runs(self, thorough: int) -> int:
        """How often to repeat."""
        return 2 if self.quick else thorough

    def environment(self, name: str, **more: str) -> dict[str, str]:
        """An environment with a data directory of its own."""
        home = self.root / name
        home.mkdir(parents=True, exist_ok=True)
        kept = {"PATH": os.environ["PATH"], "HOME": str(self.root), "LC_ALL": "C.UTF-8"}
        return {**kept, "BLASTYARD_HOME": str(home), **more}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0..1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def timed(argv: Sequence[str | Path], environment: dict[str, str]) -> float:
    """Seconds of one whole process, which must succeed."""
    begun = time.perf_counter()
    subprocess.run(
        [str(word) for word in argv],
        env=environment,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    rows = ["| What | Measured | Target | Runs |", "|---|---|---|---|"]
    for figure in figures:
        digits = 3 if abs(figure.value) < 10 else 1
        value = f"{figure.value:.{digits}f} {figure.unit}".strip()
        rows.append(f"| {figure.name} | {value} | {figure.target} | {figure.runs} |")
    return "\n".join(rows)
