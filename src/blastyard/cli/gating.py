"""`gate ceiling`, `user-cap`, `park`, `unpark`: what an operator decides about who may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from blastyard.cli import option, report
from blastyard.cli.gate_scene import on_cluster, scene
from blastyard.cli.session import person, settings_of_command, visited

if TYPE_CHECKING:
    from blastyard.service.view import Shape
    from blastyard.settings import Settings


def ceiling(
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="0 starts nothing more.")],
    as_json: option.AsJson = False,
) -> int:
    """Change how many searches run at a time; takes effect at once, and stops none."""
    return _change_policy(as_json, ceiling=number)


def user_cap(
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="0 removes the cap.")],
    as_json: option.AsJson = False,
) -> int:
    """Change how many searches of one user run at a time."""
    return _change_policy(as_json, cap=number)


def _change_policy(as_json: bool, *, ceiling: int | None = None, cap: int | None = None) -> int:
    settings = settings_of_command()
    with scene(settings) as seen:
        policy = seen.gate.change_policy(person(settings), ceiling=ceiling, cap=cap)
    if as_json:
        report.print_json({"ceiling": policy.ceiling, "user_cap": policy.user_cap})
    else:
        print(f"ceiling {policy.ceiling}, per-user cap {policy.user_cap or 'none'}")
    if policy.ceiling == 0:
        report.tell("note: the queue is drained: nothing more starts until the ceiling is raised")
    return 0


def park(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Set a waiting search aside: it keeps its place, and others go first."""
    return _set_aside(search_id, as_json, is_aside=True)


def unpark(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Let a search that was set aside take its turn again."""
    return _set_aside(search_id, as_json, is_aside=False)


def _set_aside(search_id: str, as_json: bool, *, is_aside: bool) -> int:
    settings = settings_of_command()
    act = _on_cluster if settings.on_cluster else _on_machine
    shape = act(settings, search_id, is_aside=is_aside)
    if as_json:
        report.print_json(shape)
    else:
        print(f"{shape['id']} {shape['reason'] or shape['state']}")
    return 0


def _on_machine(settings: Settings, search_id: str, *, is_aside: bool) -> Shape:
    with visited(settings) as yard:
        searches = yard.searches
        if is_aside:
            return searches.shape(searches.park(search_id, person(settings)))
        return searches.shape(searches.unpark(search_id))


def _on_cluster(settings: Settings, search_id: str, *, is_aside: bool) -> Shape:
    """Only what is published can be set aside: who published it may be any other program."""
    from blastyard.service.operating import Operating  # noqa: PLC0415  (help needs none of it)

    with on_cluster(settings) as seen:
        operating = Operating(seen.gate, seen.documents, seen.where)
        if is_aside:
            search = operating.park(search_id, person(settings))
        else:
            search = operating.unpark(search_id)
        places = seen.shape()["waiting"]
    place = next((each for each in places if each["search"] == search), None)
    gone: Shape = {"search": search, "phase": None, "reason": "waits no more"}
    return {"id": search, **(place or gone)}
