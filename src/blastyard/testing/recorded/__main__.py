"""Judges a recording: ``python -m blastyard.testing.recorded DIRECTORY --namespace N``.

Exit code 1 when something must not have happened; 2 when nothing was found in a recording that has
gaps, as the API server's own restart makes them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from blastyard.testing.recorded.rule import Terms
from blastyard.testing.recorded.verdict import check_recording


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    name = "python -m blastyard.testing.recorded"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--takeover", type=float, default=Terms().takeover, metavar="S")
    parser.add_argument("--lapse", type=float, default=Terms().lapse, metavar="S")
    parser.add_argument("--skew", type=float, default=Terms().skew, metavar="S")
    parser.add_argument("--peers-ceiling", type=int, default=Terms().peers_ceiling, metavar="N")
    parser.add_argument("--peers-ahead", type=float, default=0.0, metavar="S")
    options = parser.parse_args(arguments)
    terms = Terms(
        takeover=options.takeover,
        lapse=options.lapse,
        skew=options.skew,
        peers_ceiling=options.peers_ceiling,
        peers_ahead=options.peers_ahead,
    )
    verdict = check_recording(options.recording, options.namespace, terms)
    sys.stdout.write(f"{verdict}\n")
    if not verdict.is_clean:
        return 1
    return 0 if verdict.is_whole else 2


if __name__ == "__main__":
    sys.exit(main())
