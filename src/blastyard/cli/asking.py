"""`search`, `submit` and `rerun`: asking for searches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blastyard.cli import option, report
from blastyard.cli.interrupt import Interrupt
from blastyard.cli.session import SHORT, opened
from blastyard.cli.wanted import STANDARD_INPUT, Wanted, spread
from blastyard.domain.errors import BlastyardError, CallerMistake

if TYPE_CHECKING:
    from blastyard.bootstrap.yard import Yard
    from blastyard.domain.search import Search
    from blastyard.service.draft import Draft

CHUNK = 1 << 20

Query = Annotated[
    str, typer.Option("-q", "--query", metavar="FILE", help="FASTA file; - is standard input.")
]
Queries = Annotated[
    list[str], typer.Option("-q", "--query", metavar="FILE", help="FASTA file; may be repeated.")
]
MoreQueries = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="More FASTA files.")
]


@spread
def search(
    context: typer.Context,
    wanted: Wanted,
    query: Query,
    output: option.Output = None,
    as_json: option.AsJson = False,
) -> int:
    """Search, wait for the turn, print the result.

    BLAST+ options follow after `--`. While it waits, a line on the terminal says at which place and
    why. Ctrl-C detaches: the search stays, and `blastyard wait` returns to it.
    """
    from blastyard.cli import searching  # noqa: PLC0415  (help needs none of it)

    draft = wanted.draft(context.obj, query)
    return searching.run(draft, read_query(query), output, as_json=as_json)


@spread
def submit(
    context: typer.Context,
    wanted: Wanted,
    query: Queries,
    more: MoreQueries = None,
    as_json: option.AsJson = False,
) -> int:
    """Queue one search for each file, print their ids, and do not wait.

    BLAST+ options follow after `--`. The running service runs the searches, or whoever waits for
    them with `blastyard wait`.
    """
    files = [*query, *(more or ())]
    if wanted.key is not None and len(files) > 1:
        raise CallerMistake(
            "key_invalid", "one key cannot stand for several searches", "submit them one by one"
        )
    return _submit([wanted.draft(context.obj, file) for file in files], files, as_json)


def _submit(drafts: list[Draft], files: list[str], as_json: bool) -> int:
    accepted: list[Search] = []
    refused: list[tuple[str, BlastyardError]] = []
    with Interrupt() as interrupt, opened() as yard:
        runner = yard.searches.service()
        for draft, file in zip(drafts, files, strict=True):
            query = interrupt.through(read_query(file))
            try:
                done = yard.searches.submit(draft, query, runner=runner)
            except CallerMistake as error:
                refused.append((file, error))
                continue
            except (BlastyardError, KeyboardInterrupt) as error:
                refused.append((file, _stopped(file, error)))
                break  # the others would meet the same
            accepted.append(done.search)
            if not as_json:
                print(done.search.id, flush=True)
            report.tell_accepted(done)
        answer = _answer(yard, accepted, refused)
    return _tell_submitted(answer, refused, as_json=as_json)


def _stopped(file: str, error: BlastyardError | KeyboardInterrupt) -> BlastyardError:
    """Why it ended at this file; what was queued before it stays queued, and is told."""
    left = f"{file} and the files after it were not queued"
    if isinstance(error, BlastyardError):
        return BlastyardError(error.code, f"{error.message}; {left}", error.next_step)
    return report.interrupted(f"interrupted; {left}", "submit them again")


def _answer(
    yard: Yard, accepted: list[Search], refused: list[tuple[str, BlastyardError]]
) -> dict[str, Any]:
    return {
        "searches": yard.searches.shapes(accepted),
        "refused": [{"file": file, "error": report.error_shape(error)} for file, error in refused],
        "runs_them": who_runs(yard, accepted),
    }


def _tell_submitted(
    answer: dict[str, Any], refused: list[tuple[str, BlastyardError]], *, as_json: bool
) -> int:
    if as_json:
        report.print_json(answer)
    elif answer["runs_them"]:
        report.tell(answer["runs_them"])
    codes = [report.fail(error, as_json=as_json, shown=True) for _, error in refused]
    return codes[0] if codes else 0


def rerun(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Ask the same again, as a new search over the stored query."""
    with opened() as yard:
        done = yard.searches.rerun(search_id, runner=yard.searches.service())
        runs = who_runs(yard, [done.search])
        shape = yard.searches.shape(done.search)
    if as_json:
        report.print_json(shape)
    else:
        print(done.search.id)
        report.tell(runs)
    return 0


def who_runs(yard: Yard, searches: list[Search]) -> str:
    """A sentence: who will run what was queued."""
    waiting = [search for search in searches if not search.state.is_terminal]
    if not waiting:
        return ""
    runner = waiting[0].runner
    seen = yard.gate.submitters().get(runner)
    if runner and seen is not None:
        return f"{seen.submitter.label or runner} runs {_it(waiting)}"
    ids = " ".join(search.id[:SHORT] for search in waiting)
    return f"nobody is running {_it(waiting)}: start `blastyard serve` or `blastyard wait {ids}`"


def _it(searches: list[Search]) -> str:
    return "it" if len(searches) == 1 else "them"


def read_query(file: str) -> Iterator[bytes]:
    """The query in chunks. Raises ``CallerMistake('query_unreadable')``."""
    if file == STANDARD_INPUT:
        return iter(lambda: os.read(sys.stdin.fileno(), CHUNK), b"")
    from blastyard.service.intake import query_chunks  # noqa: PLC0415

    return query_chunks(Path(file), CHUNK)
