"""The line that says how things stand while somebody watches; nothing on a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from blastyard.admission.view import View
from blastyard.cli.session import SHORT
from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.service.view import search_shape

if TYPE_CHECKING:
    from rich.live import Live

HOLDERS_SHOWN = 3


class Line(Protocol):
    """Shows one line, again and again."""

    def show(self, text: str) -> None:
        """Show ``text`` in place of what stood there."""
        ...

    def say(self, text: str) -> None:
        """Say something that stays."""
        ...


class SilentLine(AbstractContextManager["SilentLine"]):
    """For pipes and files: what stays is said, what passes is not."""

    is_seen = False

    def show(self, text: str) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Say something that stays."""
        print(text, file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        return None


class TerminalLine(AbstractContextManager["TerminalLine"]):
    """One line at the bottom of a terminal, gone when the block ends."""

    is_seen = True

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  (pipes do without)
        from rich.live import Live  # noqa: PLC0415

        self._console = Console(stderr=True, highlight=False)
        self._live: Live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> TerminalLine:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, text: str) -> None:
        """Replace the line."""
        from rich.text import Text  # noqa: PLC0415

        line = Text(text, no_wrap=True, overflow="ellipsis", style="dim")
        self._live.update(line, refresh=True)

    def say(self, text: str) -> None:
        """Write above the line."""
        self._console.print(text, markup=False, soft_wrap=True)


def new_line() -> SilentLine | TerminalLine:
    """The line that suits standard error."""
    return TerminalLine() if sys.stderr.isatty() else SilentLine()


def describe(searches: Sequence[Search], view: View) -> str:
    """How the searches that are followed stand."""
    if len(searches) == 1:
        return _one(searches[0], view)
    counts = {
        "ended": sum(search.state.is_terminal for search in searches),
        "running": sum(search.state.is_attempt for search in searches),
        "waiting": sum(search.state is State.QUEUED for search in searches),
    }
    return " · ".join(f"{count} {word}" for word, count in counts.items() if count)


def _one(search: Search, view: View) -> str:
    name = search.id[:SHORT]
    if search.state is not State.QUEUED:
        since = search.started_at or search.created_at
        records = search.query.records
        queries = f"{records} quer{'y' if records == 1 else 'ies'}"
        return f"{name} {search.state} · {queries} · {elapsed(since, view.now)}"
    shape = search_shape(search, view)
    place = f"place {shape['position']}" if shape["position"] else "in the queue"
    parts = [f"{name} waiting, {place}", str(shape["reason"]), *holders(view)]
    return " · ".join([*parts, elapsed(search.created_at, view.now)])


def holders(view: View) -> list[str]:
    """Who holds the run slots, in one phrase; none when nobody does."""
    held = [f"{name[:SHORT]} of {hold.ticket.user}" for name, hold in view.ledger.holds.items()]
    more = f" and {len(held) - HOLDERS_SHOWN} more" if len(held) > HOLDERS_SHOWN else ""
    return [f"held by {', '.join(held[:HOLDERS_SHOWN])}{more}"] if held else []


def elapsed(since: datetime, now: datetime) -> str:
    """A span as ``m:ss``, or ``h:mm:ss``."""
    return elapsed_seconds((now - since).total_seconds())


def elapsed_seconds(span: float) -> str:
    """As :func:`elapsed`, of seconds."""
    minutes, seconds = divmod(max(0, int(span)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
