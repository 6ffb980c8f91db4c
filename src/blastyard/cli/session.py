"""What every command begins with: settings, log lines, an open installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from blastyard.cli.report import log_style, log_to_terminal
from blastyard.settings import Settings, account_name, read_settings

if TYPE_CHECKING:
    from blastyard.bootstrap.yard import Yard

SHORT: Final = 8
"""Characters of an id that are shown to a person; any unique beginning is understood."""


def settings_of_command() -> Settings:
    """The settings, with log lines going to the terminal: warnings, or all when asked for."""
    settings = read_settings()
    log_to_terminal(*log_style(settings), debug=settings.is_debug)
    return settings


def person(settings: Settings) -> str:
    """On whose behalf a command changes something."""
    return settings.user or account_name()


@contextmanager
def opened(kind: str = "command", *, runs: bool = False) -> Iterator[Yard]:
    """The installation of the data directory; ``runs``: this process may run searches."""
    settings = settings_of_command()
    if not runs:
        with visited(settings) as yard:
            yield yard
        return
    from blastyard.bootstrap.gate import this_process  # noqa: PLC0415  (help needs none of it)
    from blastyard.bootstrap.yard import open_yard  # noqa: PLC0415

    yard = open_yard(settings, this_process(kind))
    try:
        yield yard
    finally:
        yard.close()


@contextmanager
def visited(settings: Settings) -> Iterator[Yard]:
    """The installation, for looking and for changing rows: this process runs nothing."""
    from blastyard.bootstrap.gate import this_process  # noqa: PLC0415  (help needs none of it)
    from blastyard.bootstrap.yard import open_yard  # noqa: PLC0415

    yard = open_yard(settings, this_process("command"), signed_on=False)
    try:
        yield yard
    finally:  # nothing to hand over, nobody to sign off
        yard.documents.close()
        yard.store.close()
