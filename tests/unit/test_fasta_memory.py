"""The query checker streams: memory does not follow the size of the query."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from blastyard.domain.fasta import FastaCheck
from blastyard.domain.program import Program

SEQUENCE = "".join(random.Random(1).choices("ACGT", k=600)).encode()


def stream(megabytes: int) -> Iterator[bytes]:
    """Reads of 600 letters, in chunks of about 64 kB."""
    for block in range(megabytes * 16):
        yield b"".join(b">read_%d_%d\n%b\n" % (block, read, SEQUENCE) for read in range(105))


def peak_megabytes(megabytes: int) -> float:
    check = FastaCheck(Program.BLASTN)
    tracemalloc.start()
    try:
        for _ in check.repaired(stream(megabytes)):
            pass
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_fifty_megabytes_need_little_more_memory_than_five() -> None:
    # The table of ids grows by at most 16 bytes a record (85,000 more of them), doubling.
    small, large = peak_megabytes(5), peak_megabytes(50)
    assert large < 12
    assert large - small < 6


LARGE = """
import re
from pathlib import Path
from blastyard.domain.fasta import FastaCheck
from blastyard.domain.program import Program
reads = b"ACGTTGCATTGACCAGTA" * 6
def stream():
    for block in range(1700):
        yield b"".join(b">r%d_%d\\n%b\\n" % (block, read, reads) for read in range(1000))
check = FastaCheck(Program.BLASTN)
size = sum(map(len, check.repaired(stream())))
# not ru_maxrss, which a process inherits from the one that started it
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(size, check.summary.records, peak[1])
"""


@pytest.mark.slow
def test_two_hundred_megabytes_of_reads_stay_far_under_the_memory_allowed() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], check=True, capture_output=True, text=True)
    size, records, kilobytes = (int(word) for word in done.stdout.split())
    assert size > 200_000_000
    assert records == 1_700_000
    assert kilobytes < 110_000
