"""Running ``makeblastdb``, and what it means when it fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from blastyard.domain.errors import CallerMistake, Unavailable
from blastyard.domain.program import SequenceType
from blastyard.engine.subject import Subjects
from blastyard.engine.toolchain import Answer, Command, Toolchain

_TIMEOUT: Final = timedelta(days=1)
_ERROR: Final = re.compile(r"BLAST Database creation error: (?:Error: )?(.*)", re.DOTALL)
_REMARK: Final = re.compile(r"^Near line .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build: files called ``prefix.*`` in a directory of the caller's."""

    fasta: Path
    prefix: Path
    type: SequenceType
    title: str


@dataclass(frozen=True, slots=True)
class Made:
    """What went in, and what the user should know."""

    residues: int
    notices: tuple[str, ...]


def make(toolchain: Toolchain, plan: Plan, environment: Mapping[str, str]) -> Made:
    """Build a database, with parsed ids unless some id forbids it.

    The program reads from a pipe that this process feeds, so it ends when this process does.
    Raises ``CallerMistake('database_invalid')``, ``Unavailable('disk_full')`` and
    ``Misconfigured('blast_missing')``; then files may be left over.
    """
    before = set(plan.prefix.parent.iterdir())
    subjects = Subjects(plan.fasta, plan.type)
    answer = _run(toolchain, plan, subjects, ("-parse_seqids",), environment)
    said: tuple[str, ...] = ()
    if answer.exit_code != 0:
        _refuse_full_disk(answer, plan)
        said = (
            "The database was built without looking sequences up by id, because"
            f" {_id_trouble(answer)}; searches work, options that name sequences by id do not.",
        )
        for path in set(plan.prefix.parent.iterdir()) - before:
            path.unlink()
        subjects = Subjects(plan.fasta, plan.type)
        answer = _run(toolchain, plan, subjects, (), environment)
    if answer.exit_code != 0:
        _refuse_full_disk(answer, plan)
        raise CallerMistake(
            "database_invalid",
            f"makeblastdb cannot build a database of {plan.fasta}: {last_words(answer)}",
            "Check the file; it must be FASTA.",
        )
    remarks = tuple(_REMARK.findall(answer.err)[:3])
    return Made(subjects.residues, (*subjects.notices, *said, *remarks))


def last_words(answer: Answer) -> str:
    """How a program ended, in its own words where it had any."""
    if answer.exit_code < 0:
        return f"it was ended by signal {-answer.exit_code}"
    told = _ERROR.search(answer.err)
    words = " ".join((told[1] if told else answer.err or answer.out).split())
    return words[-500:] or f"it ended with exit code {answer.exit_code} without a word"


def _run(
    toolchain: Toolchain,
    plan: Plan,
    subjects: Subjects,
    more: tuple[str, ...],
    environment: Mapping[str, str],
) -> Answer:
    title = " ".join(plan.title.split()) or plan.prefix.name
    # A relative name: in an absolute one, BLAST+ would take a blank for an end.
    arguments = ("-in", "-", "-dbtype", plan.type.value, "-out", plan.prefix.name)
    return toolchain.run(
        Command(
            "makeblastdb",
            (*arguments, "-title", title, *more),
            plan.prefix.parent,
            _TIMEOUT,
            environment,
            subjects.blocks(),
        )
    )


def _refuse_full_disk(answer: Answer, plan: Plan) -> None:
    if "No space left" in answer.err or "Disk quota" in answer.err:
        raise Unavailable(
            "disk_full",
            f"The disk of {plan.prefix.parent} is full; the database does not fit on it.",
            "Make room, or put BLASTYARD_HOME on a larger disk; a database takes about a third of"
            " its nucleotide FASTA, or as much as its protein FASTA.",
        )


def _id_trouble(answer: Answer) -> str:
    words = last_words(answer)
    if "Duplicate seq_ids" in words:
        name = words.rpartition("|")[2].strip()
        return f"ids occur more than once, upper and lower case taken as equal (such as {name})"
    if "id is too long" in words:
        return "an id is longer than 50 characters"
    if "lacks a proper ID" in words:
        return "a record has no id"
    return f"an id cannot be read ({words})"
