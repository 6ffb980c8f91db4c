"""`cancel` and `delete`: ending searches and forgetting them."""

from __future__ import annotations

from typing import Annotated

import typer

from blastyard.cli import option, report
from blastyard.cli.looking import choose
from blastyard.cli.session import opened


def cancel(
    search_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids, or their beginnings.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="All searches with this tag.")] = None,
    as_json: option.AsJson = False,
) -> int:
    """End searches, wherever they are; those that have ended already stay as they are.

    One that waits ends at once; one that runs is ended by the process that runs it.
    """
    with opened() as yard:
        after = [yard.searches.cancel(each.id) for each in choose(yard, search_ids or [], tag)]
        shapes = yard.searches.shapes(after)
    if as_json:
        report.print_json({"searches": shapes})
        return 0
    for search in after:
        asked = "" if search.state.is_terminal else ", being cancelled"
        print(f"{search.id} {search.state}{asked}")
    return 0


def delete(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Forget an ended search: its query, its result and its history."""
    with opened() as yard:
        search = yard.searches.get(search_id)
        yard.searches.delete(search.id)
    if as_json:
        report.print_json({"id": search.id, "deleted": True})
    else:
        print(f"{search.id} deleted")
    return 0
