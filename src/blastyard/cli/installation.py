"""`serve`, `doctor` and `version`: the installation itself."""

from __future__ import annotations

from typing import Annotated

import typer

from blastyard.cli import option
from blastyard.cli.session import settings_of_command
from blastyard.settings import read_settings


def serve(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on; loopback only.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port; 0 = any free one.")
    ] = None,
    replica: Annotated[
        bool,
        typer.Option("--replica", help="Run no searches: workers do."),
    ] = False,
    as_json: option.AsJson = False,
) -> int:
    """Run the service: a worker, the page and the HTTP API, until Ctrl-C."""
    from blastyard.cli import serving  # noqa: PLC0415  (help needs none of it)

    settings = read_settings()
    chosen = settings.port if port is None else port
    run = serving.replica if replica else serving.run
    return run(settings, host or settings.host, chosen, as_json=as_json)


def doctor(as_json: option.AsJson = False) -> int:
    """Check everything the product needs, and say how to mend what is wrong."""
    from blastyard.cli import surgery  # noqa: PLC0415  (help needs none of it)

    return surgery.run(settings_of_command(), as_json=as_json)


def version(as_json: option.AsJson = False) -> int:
    """Print the versions of blastyard and of BLAST+."""
    from blastyard.cli.version import main  # noqa: PLC0415

    return main(as_json=as_json)
