"""What the first word of the command line decides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from command_stage import Commands

from blastyard.cli.entry import PROGRAMS
from blastyard.domain.program import Program

HEAVY = {"alembic", "fastapi", "pydantic", "rich", "sqlalchemy", "starlette", "typer"}


def test_the_programs_of_the_quick_path_are_those_that_exist() -> None:
    assert {program.value for program in Program} == PROGRAMS


def packages_after(commands: Commands, *words: str) -> set[str]:
    """The packages that one command line has loaded when it ends."""
    program = (
        f"import sys; from blastyard.cli.entry import main; main({list(words)}); "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=commands.environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_version_loads_neither_web_nor_orm_nor_terminal_libraries(empty: Commands) -> None:
    assert packages_after(empty, "version") & HEAVY == set()


def test_help_loads_no_orm(empty: Commands) -> None:
    assert packages_after(empty, "search", "--help") & {"sqlalchemy", "fastapi"} == set()


def test_each_command_shows_its_example_in_its_help(empty: Commands) -> None:
    assert "Example: blastyard gate ceiling 4" in empty("gate", "ceiling", "--help").stdout
    assert empty("--help").returncode == 0
    assert (empty().returncode, "Usage" in empty().stdout) == (1, True)
    assert empty("--version").stdout == empty("version").stdout


def test_a_mistyped_command_is_answered_with_the_nearest(empty: Commands) -> None:
    done = empty("stauts")

    assert done.returncode == 1
    assert "status" in done.stderr


def test_the_module_is_the_command(empty: Commands) -> None:
    script = Path(sys.executable).with_name("blastyard")
    done = subprocess.run(
        [script, "version"], env=empty.environment, check=True, capture_output=True, text=True
    )

    assert done.stdout == empty("version").stdout
