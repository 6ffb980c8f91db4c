"""`completion`: the script that teaches a shell to complete blastyard's commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from blastyard.cli import option, report


class Shell(StrEnum):
    """The shells that are taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    as_json: option.AsJson = False,
) -> int:
    """Print the completion script of a shell."""
    from typer._completion_shared import get_completion_script  # noqa: PLC0415

    script = get_completion_script(
        prog_name="blastyard", complete_var="_BLASTYARD_COMPLETE", shell=shell.value
    )
    if as_json:
        report.print_json({"shell": shell.value, "script": script})
    else:
        print(script)
    return 0
