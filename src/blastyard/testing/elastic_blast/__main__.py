"""The command line of the stand-in: as much of ElasticBLAST's as is used.

Ends with one of ElasticBLAST's exit codes: 9 after SIGINT, by the signal after SIGTERM, without any
clean-up.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from blastyard.settings import caller_environment
from blastyard.testing.elastic_blast.answer import refuse
from blastyard.testing.elastic_blast.plan import VARIABLE, Plan
from blastyard.testing.elastic_blast.submission import Asked, submit
from blastyard.testing.foreign.time import RealTime

INTERRUPTED = 9


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        refuse(message)


def _parser(*, able: bool) -> argparse.ArgumentParser:
    parser = _Parser(prog="elastic-blast", description="Runs BLAST in a cluster (a stand-in).")
    parser.add_argument("--version", action="version", version="elastic-blast 1.5.0 (stand-in)")
    commands = parser.add_subparsers(dest="subcommand", parser_class=_Parser)
    add = commands.add_parser("submit", help="Submit a search").add_argument
    add("--cfg", metavar="FILE", type=Path, required=True, help="configuration file")
    add("--loglevel", default="INFO", help="how much is logged")
    add("--logfile", default="elastic-blast.log", help="where it is logged")
    add("--dry-run", action="store_true", help="do not perform any actions")
    if able:
        add("--json", action="store_true", help="one line of JSON in the end")
        add("--idempotency-key", metavar="KEY", help="submit under this id")
    return parser


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The command; returns its exit code."""
    plan = environment.get(VARIABLE, "")
    options = _parser(able=Plan.read(plan).each.able).parse_args(arguments)
    if options.subcommand is None:
        refuse("the task was not specified: submit, status, delete, or run-summary")
    if not options.cfg.is_file():
        refuse(f"File {options.cfg} was not found")
    if options.dry_run:
        return 0
    home = Path(environment.get("HOME", "/"))
    kubeconfig = Path(environment.get("KUBECONFIG") or home / ".kube" / "config")
    key, as_json = getattr(options, "idempotency_key", None), getattr(options, "json", False)
    try:
        return submit(Asked(options.cfg, key, as_json, home, kubeconfig, plan), RealTime())
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = main(sys.argv[1:], caller_environment())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
