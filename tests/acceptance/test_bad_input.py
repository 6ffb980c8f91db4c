"""Each kind of bad input: what BLAST+ makes of it, and that blastyard refuses or repairs it.

The BLAST+ half of each test is the reason for the other half: should a version mend its ways,
the test says so.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import FastaCheck, QuerySummary, require_writable_titles
from blastyard.domain.options import parse_options, require_query_range
from blastyard.domain.outfmt import FORMAT_KINDS, OutputFormat
from blastyard.domain.program import Program

DNA = "".join(random.Random(3).choices("ACGT", k=200)).encode()
PROTEIN = "".join(random.Random(4).choices("ACDEFGHIKLMNPQRSTVWY", k=120)).encode()
ROW = "6 qseqid qlen qstart qend"
TABULAR = OutputFormat.parse("tsv")


class Bare:
    """BLAST+ by itself, each search in one folder against the sequence the query was made of."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        (folder / "nucl.fa").write_bytes(b">s\n" + DNA + b"\n")
        (folder / "prot.fa").write_bytes(b">s\n" + PROTEIN + b"\n")

    def search(
        self,
        query: bytes,
        program: Program = Program.BLASTN,
        outfmt: str = ROW,
        *,
        options: str = "",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        (self._folder / "query.fa").write_bytes(query)
        command = [str(self._programs / program), "-query", "query.fa", "-subject"]
        command += [f"{program.database_type}.fa", "-outfmt", outfmt, *options.split()]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=environment,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def rows(self, query: bytes, program: Program = Program.BLASTN) -> list[bytes]:
        done = self.search(query, program)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def bare(blast: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    return Bare(blast, tmp_path_factory.mktemp("bare"))


def repaired(query: bytes, program: Program = Program.BLASTN) -> tuple[bytes, QuerySummary]:
    check = FastaCheck(program, source="reads.fa")
    return b"".join(check.repaired([query])), check.summary


def refused(query: bytes, program: Program = Program.BLASTN) -> str:
    with pytest.raises(CallerMistake) as caught:
        repaired(query, program)
    assert caught.value.message.startswith("reads.fa")
    assert caught.value.next_step
    return caught.value.code


def option_refused(*argv: str, program: Program = Program.BLASTN) -> bool:
    with pytest.raises(CallerMistake) as caught:
        parse_options(program, argv, outfmt=TABULAR)
    return caught.value.code == "option_value"


CLEAN = b">q\n" + DNA + b"\n"
WHOLE = [b"q\t200\t1\t200"]


@pytest.mark.parametrize(
    "query",
    [
        gzip.compress(CLEAN),
        CLEAN.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + CLEAN,
    ],
    ids=["gzip", "utf-16", "byte-order mark"],
)
def test_blast_cannot_read_it_and_the_repaired_query_gives_what_the_clean_one_gives(
    query: bytes, bare: Bare
) -> None:
    assert bare.search(query).returncode != 0
    out, summary = repaired(query)
    assert out == CLEAN
    assert summary.notices
    assert bare.rows(out) == WHOLE


def test_mixed_line_ends_lose_a_record_in_blast_and_are_mended(bare: Bare) -> None:
    query = b">q\n" + DNA + b"\r>r\n" + DNA + b"\n>t\r" + DNA + b"\r>u\n" + DNA + b"\n"
    assert len(bare.rows(query)) < 4
    assert bare.rows(repaired(query)[0]) == [
        name + b"\t200\t1\t200" for name in (b"q", b"r", b"t", b"u")
    ]


def test_blanks_before_a_title_join_two_records_in_blast_and_are_removed(bare: Bare) -> None:
    query = CLEAN + b"  >r\n" + DNA + b"\n"
    assert b"q\t401\t1\t200" in bare.rows(query)  # the r of ">r" is read as a base
    assert bare.rows(repaired(query)[0]) == [*WHOLE, b"r\t200\t1\t200"]


def test_fastq_is_searched_by_blast_with_its_name_and_is_refused(bare: Bare) -> None:
    query = b"@r1\n" + DNA + b"\n+\n" + b"I" * 200 + b"\n"
    assert bare.rows(query) == [b"Query_1\t201\t2\t201"]
    assert refused(query) == "query_not_fasta"


def test_two_sequences_without_titles_become_one_in_blast_and_are_refused(bare: Bare) -> None:
    query = DNA + b"\n" + DNA + b"\n"
    assert b"Query_1\t400\t1\t200" in bare.rows(query)
    assert refused(query) == "query_not_fasta"


def test_protein_in_blastn_ends_well_without_hits_and_is_refused(bare: Bare) -> None:
    query = b">p\n" + PROTEIN + b"\n"
    assert bare.rows(query) == []
    assert refused(query) == "query_wrong_type"


def test_nucleotide_in_blastp_ends_well_without_a_warning_and_is_refused(bare: Bare) -> None:
    done = bare.search(CLEAN, Program.BLASTP)
    assert (done.returncode, done.stderr) == (0, b"")
    assert refused(CLEAN, Program.BLASTP) == "query_wrong_type"


def test_a_sequence_of_n_only_ends_well_in_blast_and_is_refused(bare: Bare) -> None:
    query = b">q\n" + b"N" * 200 + b"\n"
    assert bare.rows(query) == []
    assert refused(query) == "query_ambiguous"


def test_a_query_below_the_word_size_finds_nothing_of_itself_and_is_refused(bare: Bare) -> None:
    query = b">q\n" + DNA[50:70] + b"\n"
    assert bare.rows(query) == []
    assert refused(query) == "query_too_short"
    short = bare.search(query, options="-task blastn-short")
    assert b"q\t20\t1\t20" in short.stdout.splitlines()


@pytest.mark.parametrize(
    "stray",
    [b"*", b".", b"-", b"\x00", "\u00a0".encode(), b"X", b"E", b"?", b"4", b">", b";x"],
)
def test_a_stray_letter_is_dropped_by_blast_and_refused_with_its_position(
    stray: bytes, bare: Bare
) -> None:
    query = b">q\n" + DNA[:100] + stray + DNA[100:] + b"\n"
    # qlen has lost the letter (and what follows ';'), so coordinates after it are not the file's.
    assert int(bare.rows(query)[0].split(b"\t")[1]) < 200 + len(stray)
    with pytest.raises(CallerMistake) as caught:
        repaired(query)
    assert caught.value.code == "query_letters"
    assert caught.value.message.startswith("reads.fa, line 2, column 101: ")


@pytest.mark.parametrize(("program", "letters"), [(Program.BLASTN, DNA), (Program.BLASTP, PROTEIN)])
def test_every_byte_is_accepted_exactly_where_blast_keeps_it_or_rightly_skips_it(
    program: Program, letters: bytes, bare: Bare
) -> None:
    half = len(letters) // 2
    skipped = set(b" \t\x0b\x0c\n\r")
    tried = [byte for byte in range(256) if byte not in skipped]
    queries = {byte: letters[:half] + bytes([byte]) + letters[half:] for byte in tried}
    whole = b"".join(b">b%d\n%b\n" % item for item in queries.items())
    kept = {
        int(row.split(b"\t")[0][1:])
        for row in bare.rows(whole, program)
        if int(row.split(b"\t")[1]) == len(letters) + 1
    }
    assert len(kept) > 30
    accepted = {
        byte
        for byte, query in queries.items()
        if not FastaCheck(program).findings([b">q\n" + query + b"\n"])
    }
    assert accepted == kept


def test_blanks_comments_and_blank_lines_are_skipped_by_blast_and_by_us(bare: Bare) -> None:
    query = b";c\n#c\n>q\n" + DNA[:50] + b" \t" + DNA[50:90] + b"\n\n;ACGT\n!ACGT\n  #ACGT\n"
    query += DNA[90:] + b"  \n"
    assert bare.rows(query) == WHOLE
    out, summary = repaired(query)
    assert out == query
    assert summary.residues == 200


def test_a_genbank_listing_keeps_its_letters_and_loses_its_numbers(bare: Bare) -> None:
    query = b">q\n   1 " + DNA[:100] + b"\n 101 " + DNA[100:] + b"\n"
    done = bare.search(repaired(query)[0])
    assert done.stdout.splitlines() == WHOLE
    assert done.stderr == b""


def test_a_bare_accession_makes_blast_call_ncbi_and_is_refused(
    bare: Bare, tester_environment: dict[str, str]
) -> None:
    # A proxy of ours on the loopback hears whom BLAST+ wants to talk to, and hangs up.
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor(1) as pool:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    connection = proxy.accept()[0]
                    with connection:
                        asked.append(connection.recv(200))

        heard = pool.submit(listen)
        done = bare.search(
            b"NM_000546\n",
            environment={
                **tester_environment,
                "CONN_HTTP_PROXY_HOST": "127.0.0.1",
                "CONN_HTTP_PROXY_PORT": str(proxy.getsockname()[1]),
                "CONN_MAX_TRY": "1",
            },
        )
        proxy.shutdown(socket.SHUT_RDWR)
        heard.result()
    assert done.returncode != 0
    assert asked[0].startswith(b"CONNECT www.ncbi.nlm.nih.gov")
    assert refused(b"NM_000546\n") == "query_accession"


def test_repeated_ids_cannot_be_told_apart_in_blast_and_are_named(bare: Bare) -> None:
    query = CLEAN + CLEAN
    assert bare.rows(query) == WHOLE * 2
    out, summary = repaired(query)
    assert out == query
    assert summary.repeated_ids == ("q",)


def is_sound(outfmt: str, done: subprocess.CompletedProcess[bytes], title: str) -> bool:
    try:
        text = done.stdout.decode()
        if outfmt in ("5", "16"):
            ElementTree.fromstring(text)
        if outfmt in ("12", "15"):
            json.loads(text)
    except (UnicodeDecodeError, ElementTree.ParseError, ValueError):
        return False
    return done.returncode == 0 and bool(text) and (outfmt != "11" or title in text)


@pytest.mark.parametrize("outfmt", [str(number) for number in FORMAT_KINDS if number != 9])
@pytest.mark.parametrize("title", ["Bär µ", "日本"])
def test_a_title_beyond_ascii_is_refused_exactly_where_blast_breaks_the_format(
    outfmt: str, title: str, bare: Bare
) -> None:
    query = f">q {title}\n".encode() + DNA + b"\n"
    done = bare.search(query, outfmt=outfmt)
    summary = repaired(query)[1]
    try:
        require_writable_titles(summary, OutputFormat.parse(outfmt))
        accepted = True
    except CallerMistake:
        accepted = False
    assert is_sound(outfmt, done, title) == accepted


def test_an_empty_record_alone_fails_in_blast_and_is_refused(bare: Bare) -> None:
    assert bare.search(b">q\n").returncode == 3
    assert refused(b">q\n") == "query_empty"


def test_an_empty_query_ends_well_in_blast_and_is_refused(bare: Bare) -> None:
    assert bare.rows(b"\n") == []
    assert refused(b"\n") == "query_empty"


@pytest.mark.parametrize("weak", [b">e\n", b">n\n" + b"N" * 60 + b"\n", b">s\nACGT\n"])
def test_a_hopeless_record_among_others_is_kept_and_blast_reports_the_others(
    weak: bytes, bare: Bare
) -> None:
    query = weak + CLEAN
    assert repaired(query)[0] == query
    assert bare.rows(query) == WHOLE
    assert bare.search(query, outfmt="7").stdout.count(b"hits found") == 2


def test_unknown_and_repeated_fields_vanish_in_blast_and_are_refused(bare: Bare) -> None:
    assert bare.search(CLEAN, outfmt="6 qseqid nosuch sseqid").stdout == b"q\ts\n"
    assert bare.search(CLEAN, outfmt="6 qseqid qseqid").stdout == b"q\n"
    assert bare.search(CLEAN, outfmt="17 qseqid").returncode == 0
    for text in ("6 qseqid nosuch sseqid", "6 qseqid qseqid", "17 qseqid"):
        with pytest.raises(CallerMistake):
            OutputFormat.parse(text)


@pytest.mark.parametrize("value", ["1e-400", "-1", "nan", "inf", "0,1", "0"])
def test_an_evalue_that_means_nothing_fails_in_blast_only_when_it_runs_and_is_refused(
    value: str, bare: Bare
) -> None:
    assert bare.search(CLEAN, options=f"-evalue {value}").returncode != 0
    assert option_refused("-evalue", value)


@pytest.mark.parametrize("value", ["1e400", "0x1", "1e"])
def test_a_number_blast_takes_without_a_meaning_is_refused(value: str, bare: Bare) -> None:
    assert bare.search(CLEAN, options=f"-evalue {value}").stdout.splitlines() == WHOLE
    assert option_refused("-evalue", value)


def test_a_query_range_beyond_the_sequence_is_cut_by_blast_and_refused(bare: Bare) -> None:
    done = bare.search(CLEAN, options="-query_loc 101-5000")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].endswith(b"\t101\t200")
    options = parse_options(Program.BLASTN, ["-query_loc", "101-5000"], outfmt=TABULAR)
    with pytest.raises(CallerMistake):
        require_query_range(options, repaired(CLEAN)[1])


def test_a_meaningless_choice_is_swallowed_by_blast_and_refused(bare: Bare) -> None:
    query = b">p\n" + PROTEIN + b"\n"
    done = bare.search(query, Program.BLASTP, options="-comp_based_stats 2005")
    assert done.returncode == 0
    assert option_refused("-comp_based_stats", "2005", program=Program.BLASTP)


def test_options_that_crash_blast_are_refused(bare: Bare) -> None:
    query = b">p\n" + PROTEIN + b"\n"
    options = "-ungapped -use_sw_tback -comp_based_stats F"
    assert bare.search(query, Program.BLASTP, options=options).returncode < 0
    assert option_refused(*options.split(), program=Program.BLASTP)


@pytest.mark.parametrize("program", Program)
@pytest.mark.parametrize("outfmt", ["0", "5", "6", "7", "10", "15"])
def test_a_clean_query_gives_the_same_bytes_with_and_without_the_check(
    program: Program, outfmt: str, bare: Bare
) -> None:
    letters = PROTEIN if program.query_type == "prot" else DNA
    query = b">q one\n" + letters + b"\n>r two\n" + letters[20:].lower() + b"\n"
    out = repaired(query, program)[0]
    assert bare.search(out, program, outfmt).stdout == bare.search(query, program, outfmt).stdout
