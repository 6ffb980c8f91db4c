"""`gate status`: who holds what, who waits and why, in text or as one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from blastyard.cli import option, report, table
from blastyard.cli.gate_scene import scene
from blastyard.cli.session import SHORT, settings_of_command

if TYPE_CHECKING:
    from blastyard.service.view import Shape

_STATES: Final = {
    "absent": "there is none yet, or it was removed; the first submitter makes one",
    "restoring": "was lost; claims are being collected, and nobody is admitted meanwhile",
}


def status(as_json: option.AsJson = False) -> int:
    """Show who holds the submit lease and the run slots, what else runs, who waits and why.

    On a cluster this reads only, and needs no data directory.
    """
    with scene(settings_of_command()) as seen:
        shape = seen.shape()
    if as_json:
        report.print_json(shape)
    else:
        print("\n".join(lines(shape)))
    return 0


def lines(shape: Shape) -> list[str]:
    """The whole of it as text."""
    text = table.fact_lines(_facts(shape))
    for key, block in _BLOCKS:
        if shape[key]:
            text += ["", *block(shape)]
    return text


# -- facts -----------------------------------------------------------------------------------------


def _facts(shape: Shape) -> Iterator[tuple[str, object]]:
    context = f" (context {shape['context']})" if shape["context"] else ""
    yield "namespace", shape["namespace"] and f"{shape['namespace']}{context}"
    yield "ceiling", _ceiling(shape)
    yield "per user", shape["user_cap"] or "no cap"
    yield from _slot(shape["submit_slot"])
    yield "ledger", _STATES.get(shape["ledger"])
    for each in shape["waited_for"]:
        yield "waited for", each
    for change in shape["policy_changes"][-3:]:
        yield "changed", f"{change['what']} by {change['by']} at {table.at(change['at'])}"
    for each in shape["submitters"]:
        yield "submitter", _submitter(each)
    if shape["waiting"]:
        yield "estimate", _estimate(shape["estimate"])


def _ceiling(shape: Shape) -> str:
    counted = sum(each["counted"] for each in shape["foreign"])
    parts = [
        f"{len(shape['running'])} running",
        *([f"{counted} of other programs"] if counted else []),
        f"{len(shape['waiting']) + shape['behind']} waiting",
    ]
    drained = ", drained: nothing more starts until it is raised" if not shape["ceiling"] else ""
    return f"{shape['ceiling']} ({', '.join(parts)}){drained}"


def _slot(slot: dict[str, Any]) -> Iterator[tuple[str, object]]:
    if not slot["holder"]:
        left = f"; {slot['left_by']} has lost it" if slot["left_by"] else ""
        yield "submit slot", f"free{left}"
        yield "  judged by", slot["left_by"] and slot["rule"]
        return
    silent = f", silent for {slot['silent_seconds']:.0f} s" if slot["kind"] == "blastyard" else ""
    since = f" since {table.at(slot['since'])}" if slot["since"] else ""
    yield "submit slot", f"held by {slot['holder']} ({slot['kind']}){since}{silent}"
    yield "  until", table.at(slot["until"]) or "its holder lets it go"
    yield "  judged by", slot["rule"]
    yield "  note", slot["note"]


def _submitter(each: dict[str, Any]) -> str:
    silent = f"silent for {each['silent_seconds']:.0f} s"
    address = f", {each['address']}" if each["address"] else ""
    return f"{each['label'] or each['name']}{address}: {'gone' if each['gone'] else silent}"


def _estimate(estimate: dict[str, Any] | None) -> str:
    if estimate is None:
        return "unknown: too few searches have ended lately"
    return f"from {estimate['searches']} that ended lately, median {estimate['median_seconds']} s"


# -- tables ----------------------------------------------------------------------------------------


def _running(shape: Shape) -> list[str]:
    if not shape["namespace"]:
        heads = ["RUNNING", "USER", "SINCE", "HOLD", "RUN BY"]
        rows: list[list[object]] = [
            [
                each["search"][:SHORT],
                each["user"],
                table.at(each["since"]),
                f"{each['state']}, fence {each['fence']}",
                each["submitter"],
            ]
            for each in shape["running"]
        ]
        return table.table_lines(heads, rows)
    heads = ["HOLD", "USER", "STATE", "FENCE", "SINCE", "ID", "FAMILY", "MARKER", "RUN BY"]
    rows = [
        [
            each["search"],
            each["user"],
            _state(each),
            each["fence"],
            table.at(each["since"]),
            "" if each["id"] == each["search"] else each["id"],
            each["family"],
            marker(each["marker"]),
            each["submitter"],
        ]
        for each in shape["running"]
    ]
    return table.table_lines(heads, rows)


def _state(each: dict[str, Any]) -> str:
    """The state of a hold, and what will become of it."""
    if each["ended"]:
        return "ended"
    if each["failed_at"]:
        return "failed, settling"
    return f"{each['state']}, cancelled" if each["cancelled"] else str(each["state"])


def marker(found: dict[str, Any] | None) -> str:
    """What makes other programs count a hold."""
    if found is None:
        return ""
    if found["complete"]:
        return str(found["needed"])
    return f"{found['needed']} missing"


def _foreign(shape: Shape) -> list[str]:
    rows = [
        [
            each["id"],
            table.at(each["since"]),
            _seen(each),
            "yes" if each["counted"] else "no",
            ", ".join(f"{key}={value}" for key, value in each["labels"].items()),
        ]
        for each in shape["foreign"]
    ]
    return table.table_lines(["FOREIGN", "SINCE", "SEEN", "COUNTS", "LABELS"], rows)


def _seen(each: dict[str, Any]) -> str:
    if each["finalizer"] and each["companions"]:
        return "finalizer, companions"
    return "finalizer alone" if each["finalizer"] else "no finalizer"


def _lone(shape: Shape) -> list[str]:
    rows = [[each["id"], _counts(each), each["remove"]] for each in shape["lone"]]
    return table.table_lines(["ALONE", "COUNTS", "REMOVE IT WITH"], rows)


def _counts(each: dict[str, Any]) -> str:
    if not each["counted"]:
        return "no: a phantom"
    if each["counted_until"]:
        return f"until {table.at(each['counted_until'])}"
    return "for 2 h from when a submitter meets it"


def _waiting(shape: Shape) -> list[str]:
    rows = [
        [
            each["position"],
            each["search"] if shape["namespace"] else each["search"][:SHORT],
            each["user"],
            table.at(each["since"]),
            table.at(each["estimated_start"]) or "unknown",
            each["phase"],
            each["reason"],
        ]
        for each in shape["waiting"]
    ]
    heads = ["PLACE", "WAITING", "USER", "SINCE", "STARTS", "PHASE", "WHY"]
    behind = f"and {shape['behind']} behind them, to follow as places fall free"
    return table.table_lines(heads, rows) + ([behind] if shape["behind"] else [])


_BLOCKS: Final[tuple[tuple[str, Callable[[Shape], list[str]]], ...]] = (
    ("running", _running),
    ("foreign", _foreign),
    ("lone", _lone),
    ("waiting", _waiting),
)
