"""Where the command ``blastyard`` begins: decides what has to be loaded, and loads no more.

BLAST+'s own command line and ``version`` are quick paths: neither the web, nor the ORM, nor the
terminal libraries are imported for them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

PROGRAMS: Final = frozenset({"blastn", "blastp", "blastx", "tblastn", "tblastx"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if argv and argv[0] in PROGRAMS:
        from blastyard.cli.dropin import main as as_blast  # noqa: PLC0415  (each loads its own)

        return as_blast(argv)
    if argv[:1] in (["version"], ["--version"]) and set(argv[1:]) <= {"--json"}:
        from blastyard.cli.version import main as version  # noqa: PLC0415

        return version(as_json="--json" in argv)
    from blastyard.cli.app import run  # noqa: PLC0415

    return run(argv)
