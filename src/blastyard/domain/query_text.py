"""From the bytes somebody sent to plain text with LF line ends, streaming.

Repairs that keep the meaning are made and noted: gzip (also of several members) is inflated
under a cap, UTF-16 with its mark becomes UTF-8, a byte-order mark goes, CR and CR LF become LF.
Anything else that is not text is named and refused.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from blastyard.domain.finding import Mistake, Repair, Report

BLOCK: Final = 1 << 18
_HEAD: Final = 512
_GZIP: Final = 31  # zlib's wbits: a gzip member with the largest window

# Magic bytes -> what a person calls the thing, and what to do.
_FOREIGN: Final[tuple[tuple[bytes, str, str], ...]] = (
    (b"\x1f\x8b", "gzip inside gzip", "Unpack it once (gunzip) and try again."),
    (b"BZh", "a bzip2 file", "Unpack it with bunzip2."),
    (b"\xfd7zXZ\x00", "an xz file", "Unpack it with unxz."),
    (b"(\xb5/\xfd", "a zstd file", "Unpack it with unzstd."),
    (
        b"PK\x03\x04",
        "a ZIP archive or an office document",
        "Unpack it, or save the document as plain text.",
    ),
    (b"%PDF", "a PDF", "Copy the sequence out into a plain text file."),
    (b"{\\rtf", "a rich-text document", "Save it as plain text."),
    (b"\xd0\xcf\x11\xe0", "an office document", "Save it as plain text."),
    (b"\xff\xfe\x00\x00", "UTF-32 text", "Save it as UTF-8."),
    (b"\x00\x00\xfe\xff", "UTF-32 text", "Save it as UTF-8."),
    (b"<?xml", "an XML document", "Download the sequence as FASTA."),
    (b"<!DOCTYPE", "a web page", "Download the sequence as FASTA."),
    (b"<html", "a web page", "Download the sequence as FASTA."),
    (b"LOCUS ", "a GenBank record", "Convert it to FASTA, or download it as FASTA."),
    (b"ID   ", "an EMBL or UniProt record", "Convert it to FASTA, or download it as FASTA."),
    (b"CLUSTAL", "a Clustal alignment", "Export the sequences as FASTA without gaps."),
    (b"#NEXUS", "a NEXUS file", "Export the sequences as FASTA without gaps."),
    (b"# STOCKHOLM", "a Stockholm alignment", "Export the sequences as FASTA without gaps."),
    (b"@HD\t", "a SAM file", "Convert it: samtools fasta reads.sam > reads.fa"),
    (b"@SQ\t", "a SAM file", "Convert it: samtools fasta reads.sam > reads.fa"),
)
_UTF16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIPPED: Final = Repair("gzip", "a gzip file", "it was inflated", misread=True)
_UTF16: Final = Repair("utf16", "UTF-16 text", "it was read as such", misread=True)
_MARKED: Final = Repair(
    "byte_order_mark", "an invisible byte-order mark", "it was removed", misread=True
)
_LINE_ENDS: Final = Repair(
    "line_ends", "line ends of Windows or old Macintosh (CR)", "they were replaced by LF"
)
_MIXED_LINE_ENDS: Final = Repair(
    "line_ends_mixed",
    "some lines end with CR alone and others with LF",
    "all were replaced by LF",
    misread=True,
)
_SAVE: Final = "Save it as plain text in UTF-8."


@dataclass(frozen=True, slots=True)
class FastaLimits:
    """How much is taken, in bytes: as received, and after inflating a gzip file."""

    max_bytes: int = 2 << 30
    max_inflated: int = 2 << 30


class QueryText:
    """One text on its way in; mistakes and repairs go to ``report``."""

    def __init__(self, limits: FastaLimits, report: Report) -> None:
        self._limits = limits
        self._report = report
        self._ends: set[bytes] = set()

    def blocks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The text, in pieces of about :data:`BLOCK` bytes that depend on the bytes alone.

        Raises :class:`CallerMistake` (``query_encoding``, ``query_too_large``); a report that
        does not raise ends the text there.
        """
        return self._line_ends(_blocks(self._decoded(self._inflated(self._counted(chunks)))))

    def _refuse(self, code: str, what: str, next_step: str) -> None:
        self._report.refuse(self._report.place(), Mistake(code, what, next_step))

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        left = self._limits.max_bytes
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                limit = self._limits.max_bytes
                self._refuse(
                    "query_too_large",
                    f"the query is larger than {limit:,} bytes",
                    "Split it into several searches.",
                )
                return
            yield bytes(chunk)

    def _inflated(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        head, chunks = _peeked(chunks, 2)
        if not head.startswith(b"\x1f\x8b"):
            yield from chunks
            return
        self._report.note(self._report.place(), _GZIPPED)
        left = self._limits.max_inflated
        try:
            for piece in _gunzipped(chunks):
                left -= len(piece)
                if left < 0:
                    limit = self._limits.max_inflated
                    self._refuse(
                        "query_too_large",
                        f"the gzip file inflates to more than {limit:,} bytes",
                        "Split it into several searches.",
                    )
                    return
                yield piece
        except EOFError:
            self._refuse(
                "query_encoding",
                "the gzip file is cut short: its end is missing",
                "Copy or download the file again.",
            )
        except zlib.error:
            self._refuse(
                "query_encoding", "the gzip file is damaged", "Copy or download the file again."
            )

    def _decoded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        head, chunks = _peeked(chunks, _HEAD)
        if head.startswith(codecs.BOM_UTF8):
            self._report.note(self._report.place(1, 1), _MARKED)
            chunks = _without_start(chunks, len(codecs.BOM_UTF8))
            head = head.removeprefix(codecs.BOM_UTF8)
        if self._is_foreign(head):
            return
        if head.startswith(_UTF16_MARKS):
            yield from self._from_utf16(chunks)
        else:
            yield from chunks

    def _is_foreign(self, head: bytes) -> bool:
        text = head.lstrip()
        for magic, noun, next_step in _FOREIGN:
            if text.startswith(magic):
                self._refuse("query_encoding", f"this is {noun}, not FASTA", next_step)
                return True
        if b"\x00" in head[:4] and not head.startswith(_UTF16_MARKS):
            what = "this is UTF-16 text without its mark, or no text at all"
            self._refuse("query_encoding", what, _SAVE)
            return True
        return False

    def _from_utf16(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        self._report.note(self._report.place(), _UTF16)
        decoder = codecs.getincrementaldecoder("utf-16")()
        try:
            for chunk in chunks:
                yield decoder.decode(chunk).encode("utf-8")
            yield decoder.decode(b"", final=True).encode("utf-8")
        except UnicodeError:
            self._refuse("query_encoding", "this looks like UTF-16 text but is damaged", _SAVE)

    def _line_ends(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        held = b""
        line = 1
        for chunk in chunks:
            text = held + chunk if held else chunk
            held = b""
            if b"\r" in text:
                if text.endswith(b"\r"):
                    text, held = text[:-1], b"\r"
                self._note_line_ends(text + held, line)
                text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            elif b"\n" in text:
                self._ends.add(b"\n")
            if not self._report.seen(_LINE_ENDS.code):
                line += text.count(b"\n")
            if text:
                yield text
        if held:
            self._ends.add(b"\r")
            yield b"\n"
        if self._ends > {b"\r"}:
            self._report.note(self._report.place(), _MIXED_LINE_ENDS)

    def _note_line_ends(self, text: bytes, line: int) -> None:
        """``text`` has a CR; a last one may be half of a CR LF."""
        windows = text.count(b"\r\n")
        if windows or text.count(b"\n") > windows:
            self._ends.add(b"\n")
        if text.count(b"\r") - text.endswith(b"\r") > windows:
            self._ends.add(b"\r")
        if not self._report.seen(_LINE_ENDS.code):
            at = text.index(b"\r")
            column = at - (text.rfind(b"\n", 0, at) + 1) + 1
            place = self._report.place(line + text.count(b"\n", 0, at), column)
            self._report.note(place, _LINE_ENDS)


def _blocks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Even sizes: small chunks are joined, large ones cut."""
    gathered: list[bytes] = []
    size = 0
    for chunk in chunks:
        gathered.append(chunk)
        size += len(chunk)
        if size >= BLOCK:
            whole = b"".join(gathered)
            cut = size - size % BLOCK
            for start in range(0, cut, BLOCK):
                yield whole[start : start + BLOCK]
            gathered, size = [whole[cut:]], size - cut
    if size:
        yield b"".join(gathered)


def _peeked(chunks: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first ``size`` bytes (or all), and the chunks from the start again."""
    taken: list[bytes] = []
    have = 0
    for chunk in chunks:
        taken.append(chunk)
        have += len(chunk)
        if have >= size:
            break
    head = b"".join(taken)

    def again() -> Iterator[bytes]:
        yield head
        yield from chunks

    return head[:size], again()


def _without_start(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    yield next(chunks)[size:]
    yield from chunks


def _gunzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Inflate all members; zeros after the last one are padding. EOFError: cut short."""
    inflater = zlib.decompressobj(_GZIP)
    begun = False
    for chunk in chunks:
        data = chunk
        while True:
            if not begun:
                data = data.lstrip(b"\x00")
                if not data:
                    break
                begun = True
            piece = inflater.decompress(data, BLOCK)
            if piece:
                yield piece
            data = inflater.unconsumed_tail
            if inflater.eof:
                data, begun = inflater.unused_data, False
                inflater = zlib.decompressobj(_GZIP)
            elif not data and len(piece) < BLOCK:
                break
    if begun:
        raise EOFError
