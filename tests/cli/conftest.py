"""Fixtures for the command line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_stage import Brake, Commands, Terminal


@pytest.fixture
def empty(environment: dict[str, str], blast: Path, tmp_path: Path) -> Commands:
    """blastyard with an empty data directory."""
    assert blast.is_dir()
    return Commands(environment, tmp_path)


@pytest.fixture(scope="session")
def furnished(
    tester_environment: dict[str, str],
    sample_databases: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A data directory with the databases ``genomes`` and ``proteins``, to be copied."""
    home = tmp_path_factory.mktemp("furnished")
    command = Commands({**tester_environment, "BLASTYARD_HOME": str(home)}, home)
    command.json("db", "add", "genomes", "--path", sample_databases.nucl)
    command.json("db", "add", "proteins", "--path", sample_databases.prot)
    return home


@pytest.fixture
def blastyard(
    empty: Commands, furnished: Path, home: Path, sample_fasta: Any, tmp_path: Path
) -> Commands:
    """blastyard with the databases ``genomes`` and ``proteins``, and queries in its folder."""
    shutil.copytree(furnished, home, dirs_exist_ok=True)
    shutil.copy(sample_fasta.nucl_query, tmp_path / "query.fa")
    shutil.copy(sample_fasta.nucl_query, tmp_path / "more.fa")
    shutil.copy(sample_fasta.prot_query, tmp_path / "proteins.fa")
    shutil.copy(sample_fasta.nucl, tmp_path / "genomes.fa")
    return empty


@pytest.fixture
def brake(tmp_path: Path, blast: Path) -> Brake:
    """Holds BLAST+ back until released."""
    return Brake.make(tmp_path / "brake", blast)


@pytest.fixture
def held(blastyard: Commands, brake: Brake) -> Commands:
    """blastyard whose searches run until the brake is released."""
    path = f"{brake.folder}{os.pathsep}{blastyard.environment['PATH']}"
    return blastyard.with_environment(PATH=path)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """``terminal(commands, "search", …)`` starts a command on a terminal of its own."""
    opened: list[Terminal] = []

    def start(commands: Commands, *arguments: str | Path) -> Terminal:
        opened.append(Terminal(commands, *arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture
def background() -> Iterator[Callable[..., Any]]:
    """``background(commands, "serve")`` starts a command that ends with the test."""
    started: list[Any] = []

    def start(commands: Commands, *arguments: str | Path) -> Any:
        started.append(commands.start(*arguments))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
