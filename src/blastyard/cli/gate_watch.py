"""`gate watch`: the gates, live."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, Final, Protocol

from blastyard.cli import option, report, table
from blastyard.cli.gate_change import changes, lasting
from blastyard.cli.gate_scene import Scene, scene
from blastyard.cli.gate_status import lines
from blastyard.cli.session import settings_of_command
from blastyard.domain.errors import Unavailable

if TYPE_CHECKING:
    from rich.live import Live

    from blastyard.service.view import Shape

FLOOR_SECONDS: Final = 5.0
"""So often it is looked at though nothing rang: what falls silent makes no event."""
TERMINAL_SECONDS: Final = 1.0
"""The same where somebody watches the seconds pass."""


def watch(as_json: option.AsJson = False) -> int:
    """Follow live what `gate status` shows, until Ctrl-C.

    On a terminal the whole of it, kept up to date; elsewhere a line for each thing that happens.
    With `--json` a line with the whole document whenever something has happened.
    """
    try:
        with scene(settings_of_command(), follows=True) as seen, _display(as_json) as display:
            _follow(seen, display)
    except KeyboardInterrupt:  # the way to end it
        return 0
    return 0


class Display(Protocol):
    """Shows how things stand, again and again."""

    floor_seconds: float

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, shape: Shape) -> None:
        """Show what is new."""
        ...

    def tell(self, trouble: str) -> None:
        """Say that nothing can be seen at the moment, and why."""
        ...


def _display(as_json: bool) -> Display:
    if as_json:
        return _JsonLines()
    return _Screen() if sys.stdout.isatty() else _TextLines()


def _follow(seen: Scene, display: Display) -> None:
    """Until interrupted. A server that does not answer, and a ledger that cannot be read, are
    waited for: to see when that is over is what one watches for."""
    trouble = ""
    with closing(seen.documents.watch()) as bell:
        is_first = True
        while True:
            try:
                display.show(seen.shape(lately=not is_first))
                is_first = False
                trouble = ""
            except Unavailable as error:
                if error.message != trouble:
                    trouble = error.message
                    display.tell(f"{error.message} ({error.next_step})")
            bell.wait(display.floor_seconds)


class _Lines(AbstractContextManager["_Lines"]):
    """For pipes and files."""

    floor_seconds = FLOOR_SECONDS

    def __init__(self) -> None:
        self._last: Shape | None = None

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, shape: Shape) -> None:
        """Print what is new since the last time."""
        for line in self._news(shape):
            print(line, flush=True)
        self._last = shape

    def tell(self, trouble: str) -> None:
        """Trouble is no news of the gates: it goes where errors go."""
        report.tell(f"blastyard: {trouble}; going on")

    def _news(self, shape: Shape) -> Iterator[str]:
        raise NotImplementedError


class _JsonLines(_Lines):
    """The whole document on one line, whenever something has happened."""

    def _news(self, shape: Shape) -> Iterator[str]:
        if self._last is None or lasting(shape) != lasting(self._last):
            text = json.dumps(shape, ensure_ascii=False)
            yield text.encode(errors="backslashreplace").decode()


class _TextLines(_Lines):
    """How things stand, and then a line for each thing that happens."""

    def _news(self, shape: Shape) -> Iterator[str]:
        if self._last is None:
            yield from lines(shape)
            return
        for change in changes(self._last, shape):
            yield f"{table.at(shape['now'])}  {change}"


class _Screen:
    """A terminal: all of it, in place."""

    floor_seconds = TERMINAL_SECONDS

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  (pipes do without)
        from rich.live import Live  # noqa: PLC0415

        console = Console(highlight=False)
        self._live: Live = Live(console=console, auto_refresh=False, vertical_overflow="ellipsis")
        self._text: list[str] = []

    def __enter__(self) -> _Screen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, shape: Shape) -> None:
        """See the port."""
        self._text = lines(shape)
        self._put([*self._text, "", f"as of {table.at(shape['now'])}; Ctrl-C ends it"])

    def tell(self, trouble: str) -> None:
        """See the port."""
        self._put([*self._text, "", f"{trouble}; going on"])

    def _put(self, text: list[str]) -> None:
        from rich.text import Text  # noqa: PLC0415

        self._live.update(Text("\n".join(text), no_wrap=True, overflow="ellipsis"), refresh=True)
