"""Finding and running BLAST+'s programs: real processes, some of them stand-ins of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.engine.toolchain import KEPT, Answer, Command, Toolchain

Run = Callable[..., Answer]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a shell script as a program called ``tool``."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def running(script: str, feed: Iterator[bytes] | tuple[bytes, ...] = (), **more: str) -> Answer:
        tool = folder / "tool"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        limit = timedelta(seconds=float(more.pop("limit", "30")))
        path = f"{folder}:/usr/bin:/bin"
        command = Command("tool", ("x",), tmp_path, limit, more, feed)
        return Toolchain(path).run(command)

    return running


def test_the_first_program_on_the_path_is_taken(blast: Path, tmp_path: Path) -> None:
    (tmp_path / "blastn").write_text("not executable")

    toolchain = Toolchain(f"{tmp_path}::{blast}")

    assert toolchain.program("blastn") == blast / "blastn"


def test_the_version_is_blasts_own(blast: Path) -> None:
    version = Toolchain(str(blast)).version()

    assert [part.isdigit() for part in version.removesuffix("+").split(".")] == [True] * 3
    assert version.endswith("+")


def test_a_blast_that_does_not_answer_is_no_blast(tmp_path: Path) -> None:
    (tmp_path / "blastn").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "blastn").chmod(0o755)

    with pytest.raises(Misconfigured, match="does not say its version"):
        Toolchain(f"{tmp_path}:/usr/bin:/bin").version()


def test_a_program_for_another_machine_is_no_blast(tmp_path: Path) -> None:
    (tmp_path / "blastn").write_bytes(b"\x7fELF\x02")
    (tmp_path / "blastn").chmod(0o755)

    with pytest.raises(Misconfigured, match="cannot be started"):
        Toolchain(str(tmp_path)).version()


def test_a_program_sees_only_what_it_is_given(run: Run, tmp_path: Path) -> None:
    answer = run("env | grep -v -E '^(PWD|SHLVL|OLDPWD|_)=' | sort", BLASTDB="/data")

    assert answer.out.splitlines() == [
        "BLASTDB=/data",
        "BLAST_USAGE_REPORT=false",
        f"HOME={tmp_path}",
        "LC_ALL=C",
        f"PATH={tmp_path}/bin:/usr/bin:/bin",
    ]


def test_exit_codes_signals_and_both_streams_are_told(run: Run) -> None:
    assert run("echo out; echo err >&2; exit 3") == Answer(3, "out\n", "err\n")
    assert run("kill -SEGV $$").exit_code == -11


def test_only_the_end_of_a_flood_is_kept(run: Run) -> None:
    answer = run("yes | head -c 1000000 >&2; echo; yes | head -c 1000000; echo last")

    assert len(answer.out) == len(answer.err) == KEPT
    assert answer.out.endswith("last\n")


def test_a_program_that_reads_no_input_ends_in_its_own_words(run: Run) -> None:
    answer = run("echo enough >&2; exit 1", (b"x" * 1_000_000,) * 3)

    assert answer == Answer(1, "", "enough\n")


def test_a_program_is_killed_when_its_time_is_over(run: Run, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="did not finish"):
        run("exec sleep 60", limit="0.2")


def test_a_failing_feed_kills_the_program_before_it_takes_a_part_for_the_whole(
    run: Run, tmp_path: Path
) -> None:
    def feed() -> Iterator[bytes]:
        yield b"first part\n"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run(f"cat > /dev/null; echo done > {tmp_path}/finished", feed())

    assert not (tmp_path / "finished").exists()
