"""Where a result goes, and what is said about it."""

from __future__ import annotations

import json

import pytest
from command_stage import Commands

SEARCH = ("search", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


def test_a_dash_is_standard_output_as_it_is_for_blast(blastyard: Commands) -> None:
    plain = blastyard.bytes(*SEARCH)

    assert plain
    assert blastyard.bytes(*SEARCH, "-o", "-") == plain
    search_id = blastyard.json("list")["searches"][0]["id"]
    assert blastyard.bytes("results", search_id, "-o", "-") == plain
    assert not (blastyard.folder / "-").exists()


def test_json_about_a_result_for_standard_output_is_json_alone(blastyard: Commands) -> None:
    shape = json.loads(blastyard(*SEARCH, "-o", "-", "--json").stdout)

    assert json.loads(blastyard("results", shape["id"], "-o", "-", "--json").stdout)["output"]


@pytest.mark.parametrize("more", [(), ("-o", "hits.tsv")])
def test_no_hits_are_told_from_no_output(blastyard: Commands, more: tuple[str, ...]) -> None:
    none = (*SEARCH, *more, "--", "-evalue", "1e-300", "-perc_identity", "100")
    (blastyard.folder / "query.fa").write_text(f">random\n{'ACGTTGCA' * 3}{'GATTACAC' * 3}\n")

    done = blastyard(*none)

    assert (done.returncode, done.stdout) == (0, "")
    assert "no query has a hit" in done.stderr
    search_id = blastyard.json("list")["searches"][0]["id"]
    assert "no query has a hit" in blastyard("results", search_id).stderr
