"""A forked command is what the interpreter runs: these tests stand for all that fork theirs."""

from __future__ import annotations

import subprocess

import pytest
from command_stage import COMMAND, Commands

from blastyard.testing.forked_command import run_command

COMMANDS = {
    "succeeds": ["db", "list"],
    "is a quick path": ["version"],
    "is refused": ["status", "abcd"],
    "is mistyped": ["serach"],
    "is refused in JSON": ["search", "-p", "blastz", "-d", "genomes", "-q", "query.fa", "--json"],
    "reads its standard input": ["blastn", "-db", "genomes", "-outfmt", "6"],
}


@pytest.mark.parametrize("what", COMMANDS)
def test_a_forked_command_says_and_returns_what_one_with_an_interpreter_does(
    blastyard: Commands, what: str
) -> None:
    words, query = COMMANDS[what], (blastyard.folder / "query.fa").read_bytes()
    plain = subprocess.run(
        [*COMMAND, *words],
        env=blastyard.environment,
        cwd=blastyard.folder,
        input=query,
        capture_output=True,
        check=False,
    )

    forked = run_command(words, env=blastyard.environment, cwd=blastyard.folder, stdin=query)

    assert forked.returncode == plain.returncode
    assert (forked.stdout, forked.stderr) == (plain.stdout, plain.stderr)


def test_a_forked_command_that_takes_too_long_is_ended(held: Commands) -> None:
    words = ["search", "-p", "blastn", "-d", "genomes", "-q", "query.fa"]
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(words, env=held.environment, cwd=held.folder, timeout=1.0)
