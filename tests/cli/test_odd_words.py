"""Words of a command line that are no text, or would act on the terminals of others."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from command_stage import PATIENCE, Commands

NO_TEXT = os.fsdecode(b"\xff\xfe\xfd\xfc")
RED = "\x1b[31mroot"
SUBMIT = ("submit", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


@pytest.mark.parametrize(
    "words",
    [
        ("status", NO_TEXT),
        ("wait", "--tag", NO_TEXT),
        ("list", "--user", NO_TEXT),
        (*SUBMIT, "--key", NO_TEXT),
        (*SUBMIT, "--user", NO_TEXT),
        (*SUBMIT, "-d", NO_TEXT),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_words(
    blastyard: Commands, words: tuple[str, ...]
) -> None:
    done = blastyard(*words)

    assert (done.returncode, done.stdout) == (1, "")
    assert "unexpected" not in done.stderr
    assert blastyard.json("list")["searches"] == []


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_file_may_be_called_what_is_no_text(blastyard: Commands, locale: str) -> None:
    name = os.fsdecode(b"wrong\xff.fa")
    (blastyard.folder / name).write_text(">x\nAC!GT\n")

    done = blastyard.with_environment(LC_ALL=locale)(*SUBMIT, name, "--json")

    answer = json.loads(done.stdout)
    assert (done.returncode, len(answer["searches"])) == (1, 1)
    assert [each["file"] for each in answer["refused"]] == [name]


@pytest.mark.parametrize("user", [RED, "a\nb", "u" * 201])
def test_a_user_that_would_spoil_the_queue_for_others_is_refused(
    blastyard: Commands, user: str
) -> None:
    asked = blastyard(*SUBMIT, "--user", user)
    set_up = blastyard.with_environment(BLASTYARD_USER=user)("gate", "ceiling", "2")

    assert (asked.returncode, set_up.returncode) == (1, 1)
    assert "at most 200 printable characters" in asked.stderr
    assert "BLASTYARD_USER must be at most 200 printable characters" in set_up.stderr
    assert blastyard.json("gate", "status")["waiting"] == []


def test_a_database_has_no_title_that_acts_on_a_terminal(
    empty: Commands, sample_fasta: Any
) -> None:
    done = empty("db", "add", "mine", sample_fasta.nucl, "--type", "nucl", "--title", RED)

    assert done.returncode == 2
    assert empty.json("db", "list") == {"databases": []}


def test_the_drop_in_leaves_a_database_it_cannot_know_to_blast(blastyard: Commands) -> None:
    process = blastyard.start("blastn", "-query", "query.fa", "-db", os.fsdecode(b"no\xfftext"))

    _, said = process.communicate(timeout=PATIENCE)

    assert process.returncode == 2
    assert b"BLAST Database error" in said
