"""`gate`: who may run, who waits and why, and what an operator decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blastyard.cli import option, report, table
from blastyard.cli.session import SHORT, opened, person

if TYPE_CHECKING:
    from blastyard.bootstrap.yard import Yard
    from blastyard.domain.search import Search
    from blastyard.service.view import Shape


def status(as_json: option.AsJson = False) -> int:
    """Show who holds the run slots, who waits, in which order, why and since when."""
    from blastyard.service.view import queue_shape  # noqa: PLC0415  (help needs none of it)

    with opened() as yard:
        shape = queue_shape(yard.searches.queue())
    if as_json:
        report.print_json(shape)
    else:
        _print_status(shape)
    return 0


def _print_status(shape: Shape) -> None:
    slot = shape["submit_slot"]
    holder = f"held by {slot['holder']}" if slot["holder"] else "free"
    table.print_facts(
        [
            ("ceiling", _ceiling(shape)),
            ("per user", shape["user_cap"] or "no cap"),
            ("submit slot", f"{holder}{'; ' + slot['note'] if slot.get('note') else ''}"),
            ("ledger", None if shape["whole"] else "was lost; claims are being collected"),
            *(("changed", _change(change)) for change in shape["policy_changes"][-3:]),
            *(("submitter", _submitter(each)) for each in shape["submitters"]),
        ]
    )
    if shape["running"]:
        print()
        _print_running(shape)
    if shape["waiting"]:
        print()
        _print_waiting(shape)


def _ceiling(shape: Shape) -> str:
    return f"{shape['ceiling']} ({len(shape['running'])} running, {len(shape['waiting'])} waiting)"


def _change(change: dict[str, Any]) -> str:
    return f"{change['what']} by {change['by']} at {table.at(change['at'])}"


def _submitter(each: dict[str, Any]) -> str:
    silent = f"silent for {each['silent_seconds']:.0f} s"
    address = f", {each['address']}" if each["address"] else ""
    return f"{each['label'] or each['name']}{address}: {'gone' if each['gone'] else silent}"


def _print_running(shape: Shape) -> None:
    rows = [
        [
            each["search"][:SHORT],
            each["user"],
            table.at(each["since"]),
            f"{each['state']}, fence {each['fence']}",
            each["submitter"],
        ]
        for each in shape["running"]
    ]
    table.print_table(["RUNNING", "USER", "SINCE", "HOLD", "RUN BY"], rows)


def _print_waiting(shape: Shape) -> None:
    rows = [
        [
            each["position"],
            each["search"][:SHORT],
            each["user"],
            table.at(each["since"]),
            each["phase"],
            each["reason"],
        ]
        for each in shape["waiting"]
    ]
    table.print_table(["PLACE", "WAITING", "USER", "SINCE", "PHASE", "WHY"], rows)


def ceiling(
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="0 starts nothing more.")],
    as_json: option.AsJson = False,
) -> int:
    """Change how many searches run at a time; takes effect at once, and stops none."""
    return _change_policy(as_json, lambda yard, by: yard.gate.change_policy(by, ceiling=number))


def user_cap(
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="0 removes the cap.")],
    as_json: option.AsJson = False,
) -> int:
    """Change how many searches of one user run at a time."""
    return _change_policy(as_json, lambda yard, by: yard.gate.change_policy(by, cap=number))


def _change_policy(as_json: bool, change: Callable[[Yard, str], Any]) -> int:
    with opened() as yard:
        policy = change(yard, person(yard.settings))
    if as_json:
        report.print_json({"ceiling": policy.ceiling, "user_cap": policy.user_cap})
    else:
        print(f"ceiling {policy.ceiling}, per-user cap {policy.user_cap or 'none'}")
    return 0


def park(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Set a waiting search aside: it keeps its place, and others go first."""
    return _set_aside(as_json, lambda yard: yard.searches.park(search_id, person(yard.settings)))


def unpark(search_id: option.SearchId, as_json: option.AsJson = False) -> int:
    """Let a search that was set aside take its turn again."""
    return _set_aside(as_json, lambda yard: yard.searches.unpark(search_id))


def _set_aside(as_json: bool, act: Callable[[Yard], Search]) -> int:
    with opened() as yard:
        shape = yard.searches.shape(act(yard))
    if as_json:
        report.print_json(shape)
    else:
        print(f"{shape['id']} {shape['reason'] or shape['state']}")
    return 0
