"""``blastyard version``: which blastyard this is, and which BLAST+ it would run. A quick path."""

from __future__ import annotations

from blastyard import __version__
from blastyard.cli import report
from blastyard.domain.errors import BlastyardError
from blastyard.engine.toolchain import Toolchain
from blastyard.settings import read_settings


def main(*, as_json: bool) -> int:
    """Print both versions; 7 when BLAST+ is missing."""
    try:
        blast = Toolchain(read_settings().path).version()
    except BlastyardError as error:
        if not as_json:
            print(f"blastyard {__version__}")
        return report.fail(error, as_json=as_json)
    if as_json:
        report.print_json({"blastyard": __version__, "blast": blast})
    else:
        print(f"blastyard {__version__}\nBLAST+ {blast}")
    return 0
