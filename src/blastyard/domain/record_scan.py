"""One pass over the records of a FASTA text: counts, repairs and mistakes with their places.

BLAST+ 2.12 is the measure of what is harmless: blank lines, blanks inside sequences and comment
lines (``;``, ``#``, ``!``) it leaves out rightly, an empty record among others it reports.
Whatever else it drops would move coordinates and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from blastyard.domain.alphabet import (
    BLANKS,
    CORE,
    MISTYPED_SHARE,
    PROTEIN_SHARE,
    alphabet_of,
    bases_in,
    is_nucleotide,
    is_protein,
)
from blastyard.domain.finding import Place, Repair, Report
from blastyard.domain.id_table import IdTable
from blastyard.domain.program import Program, SequenceType
from blastyard.domain.query_mistake import LONG_TITLE, NUL_IN_TITLE, headless, stray, wrong_type
from blastyard.domain.record_count import Record, Totals, Weak

# A longer line is read in pieces; only a sequence may be that long.
_LINE: Final = 1 << 20

_INDENTED: Final = re.compile(rb"\n(?:[ \t\x0b\x0c]|\xc2\xa0|\xef\xbb\xbf)+>")
_COMMENT: Final = re.compile(rb"^[ \t\x0b\x0c]*[;#!][^\n]*", re.MULTILINE)
_NUMBERING: Final = re.compile(
    rb"^[ \t]*[0-9]+(?=[ \t]+[A-Za-z*])|[ \t]+[0-9]+[ \t]*$", re.MULTILINE
)
_ODD_TITLE: Final = re.compile(rb"\n>[^\n]*?[\x80-\xff]")
_NUL_TITLE: Final = re.compile(rb"\n>[^\n]*?\x00")


_INDENT: Final = Repair(
    "blanks_before_title", "blanks before the '>' of a title", "they were removed", misread=True
)
_NUMBERS: Final = Repair("numbering", "numbers beside the sequence", "they were left out")

# Repeated ids named in a notice.
_NAMED: Final = 5
_CORE_LINES: Final = CORE + b"\n"


def _blanked(match: re.Match[bytes]) -> bytes:
    return b" " * len(match.group())


def _character(raw: bytes) -> str:
    """The first character of ``raw``: as UTF-8 where it is, else as Latin-1."""
    text = raw.decode("utf-8", "replace")[0]
    return raw[:1].decode("latin-1") if text == "\ufffd" else text


class RecordScan:
    """Reads records of LF text for ``program``; ``least`` letters are needed to find anything."""

    def __init__(self, program: Program, least: int, report: Report) -> None:
        self.totals = Totals(least)
        self.odd_title: Place | None = None
        self.repeated: list[bytes] = []
        self.repeats = Weak()
        self.ids = IdTable()
        self._program = program
        self._is_protein = program.query_type is SequenceType.PROT
        alphabet = alphabet_of(program.query_type)
        self._legal = alphabet.letters
        self._vague = alphabet.vague + BLANKS + b"\n"
        self._illegal = re.compile(rb"[^" + re.escape(alphabet.letters + BLANKS + b"\n") + rb"]")
        self._report = report
        self._record: Record | None = None
        self._line = 0
        self._column = 0
        self._stopped = False

    def scan(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The text again, repaired. Mistakes go to the report as they are met."""
        carry = b""
        for block in blocks:
            cut = block.rfind(b"\n") + 1
            if cut:
                yield self._take(carry + block[:cut])
                carry = block[cut:]
            else:
                carry += block
                if len(carry) >= _LINE:
                    yield self._take(carry)
                    carry = b""
            if self._stopped:
                return
        if carry:
            yield self._take(carry)
        self._close()

    def _take(self, text: bytes) -> bytes:
        """Whole lines, or a piece of a very long one."""
        done = b""
        if self._column:
            cut = text.find(b"\n") + 1 or len(text)
            done, text = text[:cut], text[cut:]
            self._body(done, len(done.rstrip(b"\n")), b"", 0)
            self._move(done)
        if not text:
            return done
        repaired = self._lines(text)
        self._move(text)
        if self._column >= _LINE and text.startswith(b">"):
            self._report.refuse(self._report.place(self._line + 1, 1), LONG_TITLE)
            self._stopped = True
        return done + repaired

    def _move(self, text: bytes) -> None:
        lines = text.count(b"\n")
        self._line += lines
        self._column = len(text) - text.rfind(b"\n") - 1 + (0 if lines else self._column)

    def _lines(self, text: bytes) -> bytes:
        """Read text that begins at the start of a line."""
        whole = b"\n" + text
        if b" >" in text or b"\t>" in text or b"\x00" in text or not text.isascii():
            whole = self._titles(whole)
        changed = len(whole) != len(text) + 1
        parts = whole.split(b"\n>")
        line = self._line + parts[0].count(b"\n")
        if parts[0]:
            changed |= self._lead(parts, whole)
        at = len(parts[0]) + 2
        for index in range(1, len(parts)):
            part = parts[index]
            title, _, body = part.partition(b"\n")
            lines = part.count(b"\n")
            self._open(title, line + 1)
            if body:
                fixed = self._body(body, len(body) - lines + 1, whole, at + len(title) + 1)
                if fixed is not body:
                    parts[index] = title + b"\n" + fixed
                    changed = True
            line += lines + 1
            at += len(part) + 2
        return b"\n>".join(parts)[1:] if changed else text

    def _titles(self, whole: bytes) -> bytes:
        """Look at what is unusual in titles; take away what stands before a ``>``."""
        nul = _NUL_TITLE.search(whole)
        if nul:
            self._report.refuse(self._place(whole, nul.end() - 1), NUL_IN_TITLE)
        if self.odd_title is None:
            odd = _ODD_TITLE.search(whole)
            self.odd_title = self._place(whole, odd.end() - 1) if odd else None
        indented = _INDENTED.search(whole)
        if indented is None:
            return whole
        place = self._place(whole, indented.start() + 1)
        self._report.note(place, _INDENT, len(_INDENTED.findall(whole)))
        return _INDENTED.sub(b"\n>", whole)

    def _lead(self, parts: list[bytes], whole: bytes) -> bool:
        """The text before the first title here: more of the last record, or no FASTA."""
        lead = parts[0]
        if self._record is None:
            bare = _COMMENT.sub(_blanked, lead)
            at = len(bare) - len(bare.lstrip())
            if at == len(bare) or not self._headless(bare[at:], self._place(whole, at)):
                return False
        parts[0] = self._body(lead, len(lead) - lead.count(b"\n"), whole, 0)
        return parts[0] is not lead

    def _headless(self, text: bytes, place: Place) -> bool:
        """The file does not begin with ``>``; true when it can be read on all the same."""
        first = text.split(b"\n", 1)[0].rstrip()
        legal = not self._illegal.search(first)
        mistake = headless(first, legal=legal)
        self._report.refuse(place, mistake)
        readable = legal and mistake.code == "query_not_fasta"
        self._stopped = not readable
        if readable:
            self._record = Record(place.line)
        return readable

    def _open(self, title: bytes, line: int) -> None:
        if self._record is not None:
            self._close()
        self._record = Record(line)
        words = title.split(None, 1)
        if words and self.ids.add(words[0]):
            self.repeats.add(line)
            if len(self.repeated) < _NAMED and words[0] not in self.repeated:
                self.repeated.append(words[0])

    def _body(self, body: bytes, letters: int, whole: bytes, at: int) -> bytes:
        """Count sequence lines that stand at ``at`` in ``whole``; the lines, repaired."""
        record = self._record
        if record is None or self._stopped:
            return body
        rest = body.translate(None, _CORE_LINES)
        core = letters - len(rest)
        if rest and rest.translate(None, self._legal):
            body, letters, core = self._odd(body, whole, at)
        record.letters += letters
        record.core += core
        if not record.sure:
            record.sure = bool(body.lstrip(self._vague))
        if self._is_protein and core > PROTEIN_SHARE * letters:
            record.bases |= bases_in(body)
        return body

    def _odd(self, body: bytes, whole: bytes, at: int) -> tuple[bytes, int, int]:
        """Lines with something but letters in them: what is left out, what is wrong."""
        checked = body
        if whole:
            checked = _COMMENT.sub(_blanked, body)
            numbering = _NUMBERING.search(checked)
            if numbering:
                self._report.note(self._place(whole, at + numbering.start()), _NUMBERS)
                body = checked = _NUMBERING.sub(_blanked, checked)
        present = checked.translate(None, BLANKS + b"\n")
        core = len(present) - len(present.translate(None, CORE))
        bad = self._illegal.search(checked)
        if bad:
            self._refuse_letter(checked, bad.start(), whole, at, core / len(present))
        return body, len(present), core

    def _refuse_letter(self, text: bytes, index: int, whole: bytes, at: int, share: float) -> None:
        character = _character(text[index : index + 4])
        place = self._place(whole, at + index)
        is_letter = character.isascii() and (character.isalpha() or character == "*")
        if is_letter and share < MISTYPED_SHARE:
            reason = f" ({character!r} is no nucleotide)"
            self._report.refuse(place, wrong_type(self._program, reason))
        else:
            self._report.refuse(place, stray(character, self._program))

    def _close(self) -> None:
        """Judge the record that ends here."""
        record = self._record
        if record is None:
            return
        letters = record.letters
        self.totals.add(record)
        if (
            is_nucleotide(letters, record.core, record.bases)
            if self._is_protein
            else record.sure and is_protein(letters, record.core)
        ):
            self._report.refuse(self._report.place(record.line, 1), wrong_type(self._program))

    def _place(self, whole: bytes, at: int) -> Place:
        """Where index ``at`` of ``whole`` is, which has one line end too many in front.

        Without ``whole``, index ``at`` of a piece of a very long line.
        """
        if not whole:
            return self._report.place(self._line + 1, self._column + at + 1)
        start = whole.rfind(b"\n", 0, at) + 1
        column = len(whole[start:at].decode("utf-8", "replace")) + 1
        return self._report.place(self._line + whole.count(b"\n", 0, at), column)
