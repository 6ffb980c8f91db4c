"""Each command: what it does, what it prints, and how it fails."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_stage import COMMAND, Commands

from blastyard.cli.report import fail_unexpectedly

SEARCH = ("search", "-p", "blastn", "-d", "genomes", "-q", "query.fa")
SUBMIT = ("submit", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


def bare(blast: Path, database: Path, query: Path, *more: str) -> bytes:
    """What BLAST+ itself answers."""
    command = [blast / "blastn", "-db", database, "-query", query, *more]
    return subprocess.run(command, check=True, capture_output=True).stdout


# -- db ----------------------------------------------------------------------------------------


def test_a_database_is_built_from_fasta_searched_and_removed_with_its_files(
    empty: Commands, sample_fasta: Any
) -> None:
    added = empty.json("db", "add", "mine", sample_fasta.nucl, "--type", "nucl", "--title", "Mine")
    files = Path(added["path"]).parent

    assert (added["name"], added["title"], added["sequences"], added["built"]) == (
        *("mine", "Mine", 48, True),
    )
    query = sample_fasta.nucl_query
    assert empty("search", "-p", "blastn", "-d", "mine", "-q", query).returncode == 0
    assert files.is_dir()
    assert empty("db", "remove", "mine").stdout == "mine removed\n"
    assert not files.exists()
    assert empty.json("db", "list") == {"databases": []}


def test_a_database_that_stands_somewhere_is_used_where_it_stands(
    blastyard: Commands, sample_databases: Any
) -> None:
    shown = blastyard("db", "show", "proteins").stdout

    assert str(sample_databases.prot) in shown
    assert "48 sequences" in shown
    assert "proteins" in blastyard("db", "list").stdout
    assert "nothing wrong" in blastyard("db", "check", "proteins", "--deep").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("db", "show", "genome"), 2, "genomes"),
        (("db", "remove", "nothing"), 2, "no database"),
        (("db", "add", "genomes", "genomes.fa", "--type", "nucl"), 2, "registered already"),
        (("db", "add", "new", "genomes.fa"), 2, "--type nucl"),
        (("db", "add", "new"), 2, "--path PREFIX"),
        (("db", "add", "new", "absent.fa", "--type", "nucl"), 2, "absent.fa"),
        (("db", "add", "new", "--path", "/nowhere/nt"), 2, "/nowhere/nt"),
        (("db", "add", "new", "--path", "/nowhere/nt", "--title", "T"), 2, "--title"),
        (("db", "add", "new", "genomes.fa", "--type", "nucl", "--copying"), 2, "--copying"),
        (("db", "add", "new", "genomes.fa", "--type", "rna"), 1, "'--type': 'rna' is not one of"),
    ],
)
def test_what_is_wrong_with_a_database_is_said_with_the_codes_of_blast(
    blastyard: Commands, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = blastyard(*arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_in_use_is_not_removed(blastyard: Commands) -> None:
    assert blastyard(*SUBMIT).returncode == 0

    done = blastyard("db", "remove", "genomes")

    assert (done.returncode, "genomes" in done.stderr) == (2, True)


def test_a_truncated_volume_is_found_by_check(empty: Commands, sample_fasta: Any) -> None:
    added = empty.json("db", "add", "mine", sample_fasta.nucl, "--type", "nucl")
    volume = Path(added["path"] + ".nsq")
    volume.write_bytes(volume.read_bytes()[:-10])

    done = empty("db", "check", "mine", "--json")

    assert done.returncode == 2
    assert json.loads(done.stdout)["problems"] != []
    assert "mine.nsq is shorter" in done.stderr


# -- search ------------------------------------------------------------------------------------


@pytest.mark.parametrize("output_format", ["tsv", "pairwise", "xml", "6 qseqid sseqid evalue"])
def test_a_result_is_byte_for_byte_that_of_blast(
    blastyard: Commands, blast: Path, sample_databases: Any, output_format: str
) -> None:
    numbers = {"tsv": "6", "pairwise": "0", "xml": "5"}
    result = blastyard.bytes(*SEARCH, "--format", output_format, "--", "-evalue", "1e-20")

    query = next(Path(blastyard.environment["BLASTYARD_HOME"]).glob("searches/*/query.fa"))
    outfmt = numbers.get(output_format, output_format)
    arguments = ("-outfmt", outfmt, "-evalue", "1e-20")
    assert result == bare(blast, sample_databases.nucl, query, *arguments)


def test_a_result_goes_to_a_file_whole_and_nothing_is_printed(blastyard: Commands) -> None:
    (blastyard.folder / "hits.tsv").write_text("an older result")

    done = blastyard(*SEARCH, "-o", "hits.tsv")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (blastyard.folder / "hits.tsv").read_bytes() == blastyard.bytes(*SEARCH)
    assert not list(blastyard.folder.glob(".blastyard-*"))


def test_json_tells_of_the_search_and_where_its_result_is(blastyard: Commands) -> None:
    shape = blastyard.json(*SEARCH, "--title", "Plate 7", "--tag", "a", "--tag", "b")

    assert (shape["state"], shape["title"], shape["tags"]) == ("completed", "Plate 7", ["a", "b"])
    assert shape["progress"] == {"done": 6, "total": 6}
    assert Path(shape["output"]).read_bytes() == blastyard.bytes(*SEARCH)
    moved = blastyard.json(*SEARCH, "-o", "hits.tsv")
    assert moved["output"] == str(blastyard.folder / "hits.tsv")


def test_a_query_is_read_from_standard_input_and_its_repairs_are_said(blastyard: Commands) -> None:
    query = (blastyard.folder / "query.fa").read_bytes()

    done = blastyard(*SEARCH[:-1], "-", stdin=gzip.compress(query))

    assert done.returncode == 0
    assert "note: standard input" in done.stderr
    assert "gzip" in done.stderr
    assert done.stdout == blastyard(*SEARCH).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-o", "absent/hits.tsv"), 1, "mkdir -p absent"),
        (("-o", "."), 1, "is a directory"),
        (("-d", "genomez"), 2, "genomes"),
        (("-d", "proteins"), 2, "nucleotide database"),
        (("-p", "blastz"), 1, "blastz"),
        (("-q", "absent.fa"), 1, "absent.fa"),
        (("-q", "proteins.fa"), 1, "proteins.fa"),
        (("--format", "excel"), 1, "excel"),
        (("--priority", "urgent"), 1, "low, normal, high"),
        (("--", "-evalu", "1"), 1, "-evalue"),
        (("--", "-remote"), 1, "-remote"),
        (("--", "-evalue", "0,1"), 1, "0,1"),
        (("--", "-taxids", "9606"), 1, "taxon 9606"),
        (("--", "-negative_taxids", "9606"), 1, "taxon 9606"),
        (("-evalue", "1"), 1, "after --"),
    ],
)
def test_a_search_that_cannot_be_right_is_refused_before_it_is_queued(
    blastyard: Commands, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = blastyard(*SEARCH, *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert blastyard.json("list")["searches"] == []


def test_an_error_is_json_too(blastyard: Commands) -> None:
    done = blastyard("search", "-p", "blastn", "-d", "nothing", "-q", "query.fa", "--json")

    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2
    assert error["code"] == "database_unknown"
    assert error["message"] in done.stderr
    assert error["next_step"]


def test_the_same_key_returns_to_the_same_search_and_its_result(blastyard: Commands) -> None:
    first = blastyard.json(*SEARCH, "--key", "k-1")
    second = blastyard.json(*SEARCH, "--key", "k-1")
    other = blastyard(*SEARCH, "--key", "k-1", "--", "-evalue", "1")

    assert second["id"] == first["id"]
    assert "the key was used before" in blastyard(*SUBMIT, "--key", "k-1").stderr
    assert (other.returncode, "k-1" in other.stderr) == (1, True)
    assert len(blastyard.json("list")["searches"]) == 1


def test_nobody_reading_the_result_is_no_reason_for_words(blastyard: Commands) -> None:
    with subprocess.Popen(
        [*COMMAND, *SEARCH, "--format", "pairwise"],
        env=blastyard.environment,
        cwd=blastyard.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()

    assert said == b""
    assert process.returncode == 141
    assert blastyard.json("list")["searches"][0]["state"] == "completed"


def test_a_failed_search_says_why_and_ends_with_the_code_of_its_cause(
    empty: Commands, sample_fasta: Any
) -> None:
    tight = empty.with_environment(BLASTYARD_SEARCH_OUTPUT_MB="1")
    empty.json("db", "add", "mine", sample_fasta.nucl, "--type", "nucl")
    query = empty.folder / "many.fa"
    text = sample_fasta.nucl_query.read_text()
    query.write_text("".join(text.replace(">query", f">copy{n}-query") for n in range(60)))

    done = tight("search", "-p", "blastn", "-d", "mine", "-q", query, "--format", "xml", "--json")

    assert done.returncode == 3, done.stderr
    shape = json.loads(done.stdout)
    assert (shape["state"], shape["error"]["code"]) == ("failed", "output_limit")
    assert shape["error"]["message"] in done.stderr
    assert empty("results", shape["id"]).returncode == 3


# -- after submitting --------------------------------------------------------------------------


def test_submit_queues_each_file_and_says_who_will_run_them(blastyard: Commands) -> None:
    done = blastyard(*SUBMIT, "more.fa", "--tag", "t", "--", "-evalue", "1e-5")
    ids = done.stdout.split()

    assert (done.returncode, len(ids)) == (0, 2)
    assert "nobody is running them: start `blastyard serve`" in done.stderr
    assert f"blastyard wait {ids[0][:8]} {ids[1][:8]}" in done.stderr
    waited = blastyard("wait", "--tag", "t")
    assert waited.returncode == 0
    assert waited.stdout.splitlines() == [f"{each} completed" for each in ids]


def test_submit_goes_on_after_a_refused_file_and_fails_in_the_end(blastyard: Commands) -> None:
    (blastyard.folder / "bad.fa").write_text(">x\nAC!GT\n")

    done = blastyard(*SUBMIT, "bad.fa", "more.fa", "--json")

    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert len(answer["searches"]) == 2
    assert [each["file"] for each in answer["refused"]] == ["bad.fa"]
    assert "bad.fa" in done.stderr


def test_results_status_events_and_rerun_of_an_ended_search(blastyard: Commands) -> None:
    output = blastyard.bytes(*SEARCH)
    [search] = blastyard.json("list")["searches"]
    short = search["id"][:6]

    assert blastyard.bytes("results", short) == output
    blastyard.json("results", short, "-o", "again.tsv")
    assert (blastyard.folder / "again.tsv").read_bytes() == output
    assert "completed" in blastyard("status", short).stdout
    states = [each["state"] for each in blastyard.json("events", short)["events"]]
    assert (states[0], states[-1]) == ("queued", "completed")
    assert "accepted" in blastyard("events", short).stdout
    again = blastyard.json("rerun", short)
    assert again["rerun_of"] == search["id"]
    assert blastyard("wait", again["id"]).returncode == 0
    assert blastyard.bytes("results", again["id"]) == output


def test_a_waiting_search_is_cancelled_and_an_ended_one_deleted(blastyard: Commands) -> None:
    [search_id] = blastyard(*SUBMIT, "--tag", "t").stdout.split()

    unfinished = blastyard("delete", search_id)
    results = blastyard("results", search_id)
    cancelled = blastyard("cancel", "--tag", "t")

    assert (unfinished.returncode, results.returncode) == (10, 10)
    assert cancelled.stdout == f"{search_id} cancelled\n"
    assert blastyard("cancel", search_id).returncode == 0
    assert blastyard("wait", search_id).returncode == 9
    assert blastyard("results", search_id).returncode == 9
    assert blastyard.json("gate", "status")["waiting"] == []
    assert blastyard("delete", search_id).returncode == 0
    assert blastyard("status", search_id).returncode == 1


def test_list_filters_and_pages(blastyard: Commands) -> None:
    ids = blastyard(*SUBMIT, "more.fa", "--tag", "t", "--user", "ada").stdout.split()
    blastyard("cancel", ids[0])

    assert [each["id"] for each in blastyard.json("list")["searches"]] == ids[::-1]
    only = blastyard.json("list", "--state", "cancelled", "--user", "ada", "--tag", "t")
    assert [each["id"] for each in only["searches"]] == ids[:1]
    first = blastyard.json("list", "--limit", "1")
    second = blastyard.json("list", "--limit", "1", "--before", str(first["next"]))
    assert [each["searches"][0]["id"] for each in (first, second)] == ids[::-1]
    assert blastyard.json("list", "--user", "bob")["searches"] == []
    assert "--before" in blastyard("list", "--limit", "1").stderr


def test_list_announces_which_results_go_and_when(blastyard: Commands) -> None:
    blastyard.json(*SEARCH)
    kept = blastyard.json("list")
    going = blastyard.with_environment(BLASTYARD_RETENTION_DAYS="30")

    listed = going("list")

    assert (kept["retention"], kept["searches"][0]["result_goes_at"]) == ("", None)
    assert "result goes " in listed.stdout
    assert "older than 30 days" in listed.stderr


@pytest.mark.parametrize("command", ["status", "events", "results", "rerun", "delete", "wait"])
def test_an_unknown_id_is_said_to_be_unknown(blastyard: Commands, command: str) -> None:
    done = blastyard(command, "feedbeef", "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "search_unknown"


# -- gate --------------------------------------------------------------------------------------


def test_the_gate_tells_who_waits_why_and_who_changed_the_ceiling(blastyard: Commands) -> None:
    operator = blastyard.with_environment(BLASTYARD_USER="olga")
    [search_id] = blastyard(*SUBMIT).stdout.split()
    assert operator("gate", "ceiling", "0").stdout == "ceiling 0, per-user cap none\n"
    assert operator.json("gate", "user-cap", "2") == {"ceiling": 0, "user_cap": 2}

    shape = blastyard.json("gate", "status")
    shown = blastyard("gate", "status").stdout

    assert (shape["ceiling"], shape["user_cap"]) == (0, 2)
    assert [each["search"] for each in shape["waiting"]] == [search_id]
    assert "ceiling 3 -> 0 by olga at " in shown
    assert "no live process looks after it" in shown


def test_a_parked_search_lets_others_go_until_it_is_unparked(blastyard: Commands) -> None:
    operator = blastyard.with_environment(BLASTYARD_USER="olga")
    [search_id] = blastyard(*SUBMIT).stdout.split()

    parked = operator.json("gate", "park", search_id[:8])
    assert (parked["phase"], parked["reason"]) == ("parked", "set aside by olga")
    assert blastyard(*SEARCH).returncode == 0
    assert blastyard.json("status", search_id)["state"] == "queued"

    assert operator("gate", "unpark", search_id).returncode == 0
    assert blastyard("wait", search_id).returncode == 0
    done = operator("gate", "park", search_id)
    assert (done.returncode, "no place in the queue" in done.stderr) == (1, True)


# -- the installation --------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(empty: Commands, shell: str) -> None:
    assert "_BLASTYARD_COMPLETE" in empty("completion", shell).stdout


def test_bash_completes_commands(empty: Commands) -> None:
    asking = empty.with_environment(
        _BLASTYARD_COMPLETE="complete_bash", COMP_WORDS="blastyard ga", COMP_CWORD="1"
    )

    assert asking().stdout.split() == ["gate"]


def test_version_names_both_programs(empty: Commands, blast: Path) -> None:
    assert "BLAST+ 2." in empty("version").stdout
    assert set(empty.json("version")) == {"blastyard", "blast"}
    without = empty.with_environment(PATH="/nonexistent")
    done = without("version")
    assert (done.returncode, "ncbi-blast+" in done.stderr) == (7, True)


def test_wrong_settings_are_named_before_anything_is_done(empty: Commands) -> None:
    wrong = empty.with_environment(BLAST_MAX_RUN_CONCURRENCY="many", BLASTYARD_PORT="0x")

    done = wrong("list")

    assert done.returncode == 1
    assert "BLAST_MAX_RUN_CONCURRENCY" in done.stderr
    assert "BLASTYARD_PORT" in done.stderr


def test_the_unexpected_is_one_sentence_and_a_traceback_only_for_those_who_ask(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("a fault of the program")
    codes = [fail_unexpectedly(caught.value, as_json=False, debug=debug) for debug in (False, True)]

    short, _, long = capsys.readouterr().err.partition("Traceback")
    assert codes == [255, 255]
    assert "ValueError: invalid literal" in short
    assert "BLASTYARD_DEBUG=1" in short
    assert "test_commands.py" in long


def test_a_home_that_cannot_be_made_is_no_riddle(empty: Commands) -> None:
    (empty.folder / "file").touch()
    done = empty.with_environment(BLASTYARD_HOME=str(empty.folder / "file" / "home"))("list")

    assert done.returncode == 1
    assert "BLASTYARD_HOME" in done.stderr
