"""docs/cli.md: written from the commands, and every example in it works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_stage import Commands

from blastyard.cli.manual import examples, render

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
PLACEHOLDER = "3f2a91c7"
SUBMIT = ("submit", "-p", "blastn", "-d", "genomes", "-q", "query.fa", "--tag", "plate-7")
ON_WAITING = {"cancel", "gate park", "gate unpark"}
APART = {
    *("serve", "worker", "beat", "db add", "db remove", "exec"),
    *("gate watch", "gate forget", "gate install", "gate check"),
}
"""Run by other tests: what has to be stopped, commands on the fixture's database, and what needs a
cluster or a submit command."""


def test_the_page_is_what_the_commands_say_of_themselves() -> None:
    assert PAGE.read_text() == render(), "python -m blastyard.cli.manual > docs/cli.md"


def test_each_command_has_an_example_that_begins_with_it() -> None:
    assert all(example.startswith(words) for words, example in examples().items())
    assert set(re.findall(r"^## blastyard (.+)$", PAGE.read_text(), re.MULTILINE)) == set(
        examples()
    )


@pytest.mark.parametrize("words", sorted(set(examples()) - APART))
def test_the_example_works(blastyard: Commands, words: str) -> None:
    [search_id] = blastyard(*SUBMIT).stdout.split()
    if words == "gate unpark":
        blastyard.json("gate", "park", search_id)
    elif words not in ON_WAITING:
        assert blastyard("wait", search_id).returncode == 0
    example = examples()[words].replace(PLACEHOLDER, search_id[:8])

    done = blastyard(*shlex.split(example))

    assert done.returncode == 0, done.stderr


def test_the_examples_of_adding_and_removing_a_database_work(
    blastyard: Commands,
) -> None:
    assert blastyard("db", "remove", "genomes").returncode == 0
    added = blastyard(*shlex.split(examples()["db add"]))
    removed = blastyard(*shlex.split(examples()["db remove"]))

    assert (added.returncode, removed.returncode) == (0, 0), (added.stderr, removed.stderr)
