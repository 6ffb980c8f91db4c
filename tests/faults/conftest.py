"""Installations of real processes, with a ``blastn`` that the test can watch and hold."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import pytest
from azure_stage import azure_proxy, tables  # noqa: F401
from death_stage import Deaths, every_one, one_of_each_kind
from machine_stage import Actors, Machine, bare_answer
from redis_stage import open_redis, redis_wire  # noqa: F401

from blastyard.testing.azurite_pytest import (  # noqa: F401
    azurite,
    azurite_program,
    own_azurite,
    pytest_collection_finish,
)
from blastyard.testing.installation import SHORT, Installation, Nursery
from blastyard.testing.postgres_pytest import (  # noqa: F401
    module_postgres,
    own_postgres,
    postgres_programs,
    postgres_server,
    postgres_url,
)
from blastyard.testing.redis_pytest import (  # noqa: F401
    new_redis,
    own_redis,
    redis_namespace,
    redis_program,
    redis_server,
)


class SampleFiles(Protocol):
    """The fixtures of sample FASTA files, and of databases made of them."""

    nucl: Path
    nucl_query: Path


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Forks blastyard processes quickly."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def deaths(request: pytest.FixtureRequest) -> Deaths:
    """All points with ``--every-death``, otherwise one of each kind."""
    return every_one if request.config.getoption("every_death") else one_of_each_kind


@pytest.fixture(scope="session")
def sample_answer(blast: Path, sample_databases: SampleFiles, sample_fasta: SampleFiles) -> bytes:
    """What bare BLAST+ says to the sample queries."""
    answer = bare_answer(blast / "blastn", sample_databases.nucl, sample_fasta.nucl_query)
    assert answer
    return answer


@pytest.fixture
def new_machine(
    blast: Path,
    nursery: Nursery,
    sample_databases: SampleFiles,
    sample_fasta: SampleFiles,
    sample_answer: bytes,
    tester_environment: dict[str, str],
) -> Iterator[Callable[..., Machine]]:
    """``new_machine(ceiling=2)``: an installation with a home of its own and one database."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="by-", dir="/tmp")))
        folder.chmod(0o755)
        numbers = itertools.count()
        one_at_a_time = Lock()  # a process makes one new home at a time

        def make(
            ceiling: int = 1, timings: Any = SHORT, group: int | None = None, **environment: str
        ) -> Machine:
            place = folder / str(next(numbers))
            if group is not None:
                (place / "home").mkdir(parents=True)
                os.chown(place / "home", 0, group)
                (place / "home").chmod(0o2770)
            actors = Actors(place / "stage", blast / "blastn")
            words = {
                **tester_environment,
                "PATH": f"{actors.program.parent}:{blast}:/usr/bin:/bin",
                "BLAST_MAX_RUN_CONCURRENCY": str(ceiling),
                **environment,
            }
            with one_at_a_time:
                installation = Installation(place / "home", nursery, words, timings)
                installation.yard.databases.add_path("genes", sample_databases.nucl)
            machine = Machine(installation, actors, sample_fasta.nucl_query, sample_answer)
            stack.callback(machine.close)
            return machine

        yield make


@pytest.fixture
def machine(new_machine: Callable[..., Machine]) -> Machine:
    """A machine with room for one search at a time."""
    return new_machine()
