"""A very large query on standard input: it streams, so memory stays small."""

from __future__ import annotations

import os
import subprocess
import time

from figure import BLASTYARD, Figure, Setting, timed

LINE = b"ACGTTGCAACGGATCTTAGCAGGTCCATTGACGGATACCGTTAGCATCGGATTCAGGCTAA\n" * 4


def measure(setting: Setting) -> list[Figure]:
    """Peak memory and time of ``submit`` with 200 MB of FASTA."""
    setting.root.mkdir(parents=True)
    megabytes = 20 if setting.quick else 200
    environment = setting.environment("home")
    small = setting.root / "db.fa"
    small.write_bytes(b">s\n" + LINE)
    timed([BLASTYARD, "db", "add", "small", small, "--type", "nucl"], environment)
    begun = time.perf_counter()
    with subprocess.Popen(
        [str(BLASTYARD), "submit", "-p", "blastn", "-d", "small", "-q", "-"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        record = LINE * 400
        for number in range(megabytes * 1_000_000 // len(record)):
            process.stdin.write(b">read%d\n" % number + record)
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"submit ended with {process.returncode}")
    seconds = time.perf_counter() - begun
    return [
        Figure(f"memory of submit, {megabytes} MB", usage.ru_maxrss / 1024, "MiB", "< 150", 1),
        Figure(f"time of submit, {megabytes} MB", seconds, "s", "", 1),
    ]
