"""`status`, `list`, `events` and `results`: looking at searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from blastyard.cli import option, report, table
from blastyard.cli.destination import Destination
from blastyard.cli.session import SHORT, opened
from blastyard.domain.errors import CallerMistake
from blastyard.domain.job import State

if TYPE_CHECKING:
    from blastyard.bootstrap.yard import Yard
    from blastyard.domain.search import Search
    from blastyard.service.retention import Retention
    from blastyard.service.view import Shape
    from blastyard.store.port import Filter


def status(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Show one search: its state, its place in the queue and why it waits, its outcome."""
    with opened() as yard:
        shape = yard.searches.shape(yard.searches.get(search_id))
    if as_json:
        report.print_json(shape)
    else:
        _print_status(shape)
    return 0


def _print_status(shape: Shape) -> None:
    error, result, query = shape["error"] or {}, shape["result"] or {}, shape["query"]
    table.print_facts(
        [
            ("id", shape["id"]),
            ("state", shape["state"]),
            ("phase", shape["phase"]),
            ("place", shape["position"]),
            ("reason", shape["reason"]),
            ("program", shape["program"]),
            ("database", shape["database"]),
            ("options", " ".join(shape["options"])),
            ("format", shape["format"]),
            ("query", _query(query)),
            ("title", shape["title"]),
            ("tags", shape["tags"]),
            ("user", shape["user"]),
            ("priority", shape["priority"]),
            ("created", table.at(shape["created_at"])),
            ("started", table.at(shape["started_at"])),
            ("finished", table.at(shape["finished_at"])),
            ("result", f"{result['size']:,} bytes" if result else None),
            ("deleted", table.at(result.get("deleted_at"))),
            ("error", error.get("message")),
            ("code", error.get("code")),
            ("next", error.get("next_step")),
            ("BLAST+", shape["blast_version"]),
            ("rerun of", shape["rerun_of"]),
            *(("note", notice) for notice in query["notices"]),
        ]
    )


def _query(query: dict[str, Any]) -> str:
    records = table.count(query["records"], "record")
    return f"{records}, {table.count(query['residues'], 'residue')}"


def list_(  # noqa: PLR0913, PLR0917  (the conditions a person may set)
    states: Annotated[
        list[State] | None, typer.Option("--state", help="Only these states; may be repeated.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only of this user.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only with this tag.")] = None,
    database: Annotated[
        str | None, typer.Option("-d", "--database", help="Only on this database.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many a page.")] = 20,
    before: Annotated[
        int | None, typer.Option("--before", metavar="CURSOR", help="The next page's beginning.")
    ] = None,
    as_json: option.AsJson = False,
) -> int:
    """List searches, newest first, and say which results will be deleted, and when."""
    from blastyard.store.port import Filter  # noqa: PLC0415  (help needs none of it)

    wanted = Filter(frozenset(states or ()), user, tag, database, before=before, limit=limit)
    with opened() as yard:
        answer = _page(yard, wanted)
    if as_json:
        report.print_json(answer)
    else:
        _print_page(answer)
    return 0


def _page(yard: Yard, wanted: Filter) -> dict[str, Any]:
    page = yard.searches.matching(wanted)
    shapes = yard.searches.shapes(page)
    for shape, search in zip(shapes, page, strict=True):
        shape["result_goes_at"] = _goes_at(search, yard.retention)
    more = page[-1].sequence if len(page) == wanted.limit and page[-1].sequence > 1 else None
    return {"searches": shapes, "next": more, "retention": yard.retention.rule.sentence}


def _goes_at(search: Search, retention: Retention) -> str | None:
    from blastyard.service.view import instant  # noqa: PLC0415

    return None if search.result_deleted_at else instant(retention.goes_at(search))


def _print_page(answer: dict[str, Any]) -> None:
    heads = ["ID", "STATE", "PROGRAM", "DATABASE", "USER", "CREATED", "NOTE"]
    rows = [
        [
            shape["id"][:SHORT],
            shape["state"],
            shape["program"],
            shape["database"],
            shape["user"],
            table.at(shape["created_at"]),
            _note(shape),
        ]
        for shape in answer["searches"]
    ]
    table.print_table(heads, rows)
    if answer["next"]:
        report.tell(f"more: add --before {answer['next']}")
    if answer["retention"]:
        report.tell(f"retention: {answer['retention']}")


def _note(shape: Shape) -> str:
    notes = [shape["title"], *shape["tags"]]
    if shape["state"] == State.QUEUED:
        place = f"place {shape['position']}: " if shape["position"] else ""
        notes.append(f"{place}{shape['reason']}")
    if shape["error"]:
        notes.append(shape["error"]["code"])
    if shape["result"] and shape["result"]["deleted_at"]:
        notes.append("result deleted")
    elif shape["result_goes_at"]:
        notes.append(f"result goes {table.at(shape['result_goes_at'])}")
    return "; ".join(note for note in notes if note)


def events(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Show what has happened to a search, oldest first."""
    with opened() as yard:
        found = yard.searches.events(search_id)
    if as_json:
        report.print_json({"events": found})
    else:
        rows = [
            [table.at(each["at"]), each["state"], each["phase"], each["reason"]] for each in found
        ]
        table.print_table(["AT", "STATE", "PHASE", "REASON"], rows)
    return 0


def results(
    search_id: option.SearchId,
    output: option.Output = None,
    as_json: option.AsJson = False,
) -> int:
    """Print the result of a completed search, as BLAST+ wrote it."""
    destination = Destination.named(output)
    destination.check()
    with opened() as yard:
        path = yard.searches.result(search_id)
        if destination.path is not None or not as_json:
            destination.take(path)
        if as_json:
            shape = yard.searches.shape(yard.searches.get(search_id))
            report.print_json({**shape, "output": str((destination.path or path).absolute())})
    return 0


def wait(
    search_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids, or their beginnings.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="All searches with this tag.")] = None,
    as_json: option.AsJson = False,
) -> int:
    """Wait until searches have ended; run here those that nobody runs.

    The exit code is 0 when all of them completed, else that of the first that did not.
    """
    from blastyard.cli import searching  # noqa: PLC0415
    from blastyard.cli.interrupt import Interrupt  # noqa: PLC0415

    with Interrupt() as interrupt, opened("wait", runs=True) as yard:
        chosen = choose(yard, search_ids or [], tag)
        ended = searching.wait(yard, chosen, interrupt) if chosen else []
        shapes = yard.searches.shapes(ended)
    if as_json:
        report.print_json({"searches": shapes})
    else:
        for search in ended:
            print(f"{search.id} {search.state}")
    failures = [searching.failure(search) for search in ended]
    codes = [report.fail(each, as_json=as_json, shown=True) for each in failures if each]
    return codes[0] if codes else 0


def choose(yard: Yard, search_ids: list[str], tag: str | None) -> list[Search]:
    """The searches that a person names. Raises ``CallerMistake`` when none are named."""
    from blastyard.store.port import Filter  # noqa: PLC0415

    if bool(search_ids) == (tag is not None):
        raise CallerMistake("request_invalid", "name searches: by their ids, or by --tag", "")
    if tag is None:
        found = [yard.searches.get(each) for each in search_ids]
    else:
        found = list(yard.searches.each(Filter(tag=tag)))[::-1]
    if not found:
        raise CallerMistake("search_unknown", f"no search has the tag {tag!r}", "`blastyard list`")
    return list({search.id: search for search in found}.values())
