"""How long a freed run slot stays idle while searches wait.

BLAST+ is replaced by a program that notes when it begins and ends, so that nothing but blastyard's
own time lies between the end of one search and the beginning of the next.
"""

from __future__ import annotations

import json
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

from figure import BLASTYARD, Figure, Setting, percentile, timed

NOTING = """#!/bin/sh
case "$*" in *-version*) exec {real} "$@";; esac
begun=$(date +%s.%N)
out=
while [ $# -gt 0 ]; do [ "$1" = -out ] && out=$2; shift; done
sleep 0.02
[ -n "$out" ] && : > "$out"
echo "$begun $(date +%s.%N)" >> {notes}
"""


def measure(setting: Setting) -> list[Figure]:
    """In one process, and across two."""
    setting.root.mkdir(parents=True)
    count = 20 if setting.quick else 120
    return [
        *_figures("one process", _one_process(setting, count)),
        *_figures("two processes", _two_processes(setting, count // 2)),
    ]


def _figures(where: str, gaps: list[float]) -> list[Figure]:
    milliseconds = [gap * 1000 for gap in gaps]
    return [
        Figure(f"slot idle, {where}, p50", percentile(milliseconds, 0.5), "ms", "< 50", len(gaps)),
        Figure(
            f"slot idle, {where}, p99", percentile(milliseconds, 0.99), "ms", "< 250", len(gaps)
        ),
    ]


def _prepared(setting: Setting, name: str) -> tuple[dict[str, str], Path, Path]:
    notes = setting.root / f"{name}.notes"
    programs = setting.root / f"{name}.bin"
    programs.mkdir()
    environment = setting.environment(name, BLAST_MAX_RUN_CONCURRENCY="1", BLASTYARD_PORT="0")
    query = setting.root / f"{name}.fa"
    query.write_text(">q\n" + "ACGTTGCAAC" * 6 + "\n")
    timed(
        [BLASTYARD, "db", "add", "small", query, "--type", "nucl"],
        environment,
    )
    real = subprocess.run(["which", "blastn"], check=True, capture_output=True, text=True).stdout
    program = programs / "blastn"
    program.write_text(NOTING.format(real=real.strip(), notes=notes))
    program.chmod(0o755)
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    return environment, notes, query


def _one_process(setting: Setting, count: int) -> list[float]:
    environment, notes, query = _prepared(setting, "one")
    submit = [BLASTYARD, "submit", "-p", "blastn", "-d", "small", *(["-q", query] * count)]
    timed(submit, environment)
    with subprocess.Popen(
        [BLASTYARD, "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as service:
        ids = json.loads(_output([BLASTYARD, "list", "--json", "--limit", "1000"], environment))
        names = [search["id"] for search in _searches(ids)]
        timed([BLASTYARD, "wait", *names], environment)
        service.send_signal(signal.SIGTERM)
    return _gaps(notes)


def _two_processes(setting: Setting, count: int) -> list[float]:
    """Two shells that run the drop-in over and over: every other search is another process's."""
    environment, notes, query = _prepared(setting, "two")
    words = [str(word) for word in (BLASTYARD, "blastn", "-query", query, "-db", "small")]
    loop = f"for i in $(seq {count}); do {' '.join(words)} >/dev/null; done"
    shells = [
        subprocess.Popen(["sh", "-c", loop], env=environment, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    for shell in shells:
        shell.wait()
    return _gaps(notes)


def _searches(listed: object) -> list[dict[str, str]]:
    return listed["searches"] if isinstance(listed, dict) else listed  # type: ignore[return-value]


def _output(argv: list[object], environment: dict[str, str]) -> str:
    words = [str(word) for word in argv]
    return subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout


def _gaps(notes: Path) -> list[float]:
    spans = [tuple(map(float, line.split())) for line in notes.read_text().splitlines()]
    spans.sort()
    return [begun - ended for (_, ended), (begun, _) in pairwise(spans)]
