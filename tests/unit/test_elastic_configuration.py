"""The configuration file is read by ElasticBLAST as it was meant."""

from __future__ import annotations

import shlex
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.domain.errors import Misconfigured
from blastyard.engine.elastic_blast.configuration import (
    Order,
    Template,
    configuration,
    results_of,
)
from blastyard.engine.elastic_blast.name import cluster_name

NAME = cluster_name("5b0c3a52-3a35-4f6e-8a1b-6c2b7d4d9f10", "1")
ORDER = Order(
    name=NAME,
    program="blastn",
    database="core_nt",
    options=("-evalue", "1e-5"),
    output_format="6",
    query=Path("/data/searches/s/query.fa"),
    results=results_of("gs://bucket/results/", NAME),
)
TEMPLATE = """\
[cloud-provider]
azure-region = koreacentral
azure-storage-account = stg

[cluster]
name = shared
reuse = true
labels = search={id},{unknown}

[blast]
db = https://stg.blob.core.windows.net/blast-db/{db}/{db}
mem-limit = 4G
results = https://stg.blob.core.windows.net/results

[timeouts]
init-pv = 30
"""

printable = st.text(
    st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1
)


def read(text: str) -> ConfigParser:
    """As ElasticBLAST reads it: with interpolation."""
    parser = ConfigParser()
    parser.read_string(text)
    return parser


def test_the_search_stands_in_the_file() -> None:
    blast = read(configuration(ORDER))["blast"]

    assert dict(blast) == {
        "program": "blastn",
        "db": "core_nt",
        "queries": "/data/searches/s/query.fa",
        "results": f"gs://bucket/results/{NAME.id}",
        "options": "-evalue 1e-5 -outfmt 6",
    }


@given(st.lists(printable, max_size=4), printable)
def test_options_come_out_of_a_shells_hands_as_they_went_in(
    options: list[str], output_format: str
) -> None:
    order = replace(ORDER, options=tuple(options), output_format=output_format)

    said = read(configuration(order))["blast"]["options"]

    assert shlex.split(said) == [*options, "-outfmt", output_format]


def test_the_operators_template_is_kept_and_filled() -> None:
    template = Template.parse(TEMPLATE, "elb.ini")

    said = read(configuration(ORDER, template))

    assert said["cluster"]["labels"] == f"search={NAME.id},{{unknown}}"
    assert said["blast"]["db"] == "https://stg.blob.core.windows.net/blast-db/core_nt/core_nt"
    assert said["blast"]["mem-limit"] == "4G"
    assert said["blast"]["results"] == ORDER.results
    assert said["timeouts"]["init-pv"] == "30"
    assert template.results == "https://stg.blob.core.windows.net/results"


def test_all_problems_of_a_template_are_told_at_once() -> None:
    text = (
        "[blast]\nprogram = x\nqueries = y\nresults = https://r?sig=1\n[cluster]\ndry-run = yes\n"
    )

    with pytest.raises(Misconfigured) as caught:
        Template.parse(text + "labels = 5%\n", "elb.ini")

    for word in ("program", "queries", "'?'", "dry-run", "labels has a '%'"):
        assert word in caught.value.message
    assert caught.value.code == "settings_invalid"


@pytest.mark.parametrize("text", ["db = x", "[blast]\ndb", "[blast]\ndb = x\ndb = y", "[blast"])
def test_what_is_no_ini_file_is_named(text: str) -> None:
    with pytest.raises(Misconfigured, match=r"elb\.ini"):
        Template.parse(text, "elb.ini")


def test_a_template_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "elb.ini").write_text(TEMPLATE)
    (tmp_path / "odd.ini").write_bytes(b"[blast]\ndb = \xff\n")

    assert Template.read(tmp_path / "elb.ini") == Template.parse(TEMPLATE, "elb.ini")
    for name in ("missing.ini", "odd.ini"):
        with pytest.raises(Misconfigured, match=name):
            Template.read(tmp_path / name)


@pytest.mark.parametrize("path", ["/with space/query.fa", "/tab\tbed/query.fa", "/寿司/query.fa"])
def test_a_query_that_would_be_taken_for_two_is_refused(path: str) -> None:
    with pytest.raises(Misconfigured, match="cannot read the query"):
        configuration(replace(ORDER, query=Path(path)))


VALUE = f"x/{NAME.id}/y\n[cluster]\nname = other"


@pytest.mark.parametrize(
    "order",
    [
        replace(ORDER, database=VALUE),
        replace(ORDER, output_format=VALUE),
        replace(ORDER, options=("-evalue", VALUE)),
        replace(ORDER, results=VALUE),
    ],
)
def test_a_value_cannot_add_a_line_of_its_own(order: Order) -> None:
    with pytest.raises(ValueError, match="printable"):
        configuration(order)


def test_no_two_searches_share_a_results_location() -> None:
    """Fault R12."""
    other = cluster_name(NAME.search, "2")

    assert results_of("/r", NAME) != results_of("/r", other)
    with pytest.raises(ValueError, match="not the results location"):
        configuration(replace(ORDER, name=other))
