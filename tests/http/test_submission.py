"""A search comes in by JSON, by form and as plain FASTA; what is wrong with it is said."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

API = "/api/v1/searches"


def test_a_new_search_is_created_and_its_address_given(front: Any, gene: str) -> None:
    answer = front.client.post(
        API, json={"program": "blastn", "database": "genes", "query": gene, "title": "first"}
    )

    assert answer.status_code == 201
    search = answer.json()
    assert answer.headers["location"] == f"{API}/{search['id']}"
    assert front.client.get(answer.headers["location"]).json()["title"] == "first"


def test_plain_fasta_takes_its_words_from_the_address(front: Any, gene: str) -> None:
    words = {"program": "blastn", "database": "genes", "options": ["-evalue", "1e-5"], "tags": "a"}

    answer = front.client.post(
        API, params=words, content=gene, headers={"content-type": "text/x-fasta"}
    )

    assert answer.status_code == 201
    assert answer.json()["options"] == ["-evalue", "1e-5"]
    assert answer.json()["tags"] == ["a"]


def test_a_form_brings_a_gzipped_file_and_its_name_is_in_the_notice(front: Any, gene: str) -> None:
    answer = front.client.post(
        API,
        data={"program": "blastn", "database": "genes"},
        files={"query": ("reads.fa.gz", gzip.compress(gene.encode()))},
    )

    assert answer.status_code == 201
    assert answer.json()["query"]["records"] == 1
    assert any("reads.fa.gz" in notice for notice in answer.json()["query"]["notices"])


def test_line_ends_that_a_browser_made_of_typed_text_are_no_repair(front: Any, gene: str) -> None:
    typed = {
        "program": (None, "blastn"),
        "database": (None, "genes"),
        "query": (None, gene.replace("\n", "\r\n")),
    }

    answer = front.client.post(API, files=typed)

    assert answer.status_code == 201
    assert answer.json()["query"]["notices"] == []


def test_the_same_key_and_question_bring_the_same_search(front: Any, gene: str) -> None:
    asked = {"program": "blastn", "database": "genes", "query": gene}
    headers = {"idempotency-key": "one"}

    first = front.client.post(API, json=asked, headers=headers)
    second = front.client.post(API, json=asked, headers=headers)
    other = front.client.post(API, json={**asked, "format": "xml"}, headers=headers)

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert other.status_code == 409
    assert other.json()["code"] == "key_conflict"


def test_a_letter_that_blast_would_drop_is_named_with_its_place(front: Any) -> None:
    query = ">a\nACGTACGTACGTACGTACGTACGTACGTACGT\nACGTA-CGT\n"

    answer = front.client.post(API, json={"program": "blastn", "database": "genes", "query": query})

    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "query_letters"
    assert problem["position"] == {"line": 3, "column": 6}
    assert problem["next_step"]


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        ({"program": "blastz"}, 422, "program_unknown"),
        ({"database": "gnes"}, 404, "database_unknown"),
        ({"program": "blastp", "database": "genes"}, 422, "database_wrong_type"),
        ({"options": ["-remote"]}, 422, "option_forbidden"),
        ({"options": ["-evalu", "1"]}, 422, "option_unknown"),
        ({"format": "pdf"}, 422, "format_unknown"),
        ({"priority": "urgent"}, 422, "request_invalid"),
        ({"querry": "x"}, 422, "request_invalid"),
        ({"tags": "not a list"}, 422, "request_invalid"),
        ({"user": "a\nb"}, 422, "request_invalid"),
        ({"query": ""}, 422, "query_empty"),
    ],
)
def test_a_wrong_word_is_refused_with_its_code(
    front: Any, gene: str, words: dict[str, Any], status: int, code: str
) -> None:
    asked = {"program": "blastn", "database": "genes", "query": gene, **words}

    answer = front.client.post(API, json=asked)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"content-type": "image/png"}, b"x", 415, "media_type"),
        ({}, b"x", 415, "media_type"),
        ({"content-type": "application/json"}, b"{", 422, "request_invalid"),
        ({"content-type": "application/json"}, b'{"query": "\xff"}', 422, "request_invalid"),
        ({"content-type": "multipart/form-data"}, b"x", 422, "request_invalid"),
        ({"content-type": "multipart/form-data; boundary=b"}, b"junk", 422, "request_invalid"),
        ({"content-type": "multipart/form-data; boundary=b"}, b"--b\r\n", 422, "request_invalid"),
        (
            {"content-type": "application/json", "content-length": str(1 << 40)},
            b"{}",
            413,
            "query_too_large",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_a_problem(
    front: Any, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    answer = front.client.post(API, content=body, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_pasted_query_beside_a_file_is_refused(front: Any, gene: str) -> None:
    answer = front.client.post(
        API,
        data={"program": "blastn", "database": "genes", "query": gene},
        files={"file": ("q.fa", gene)},
    )

    assert answer.json()["code"] == "request_invalid"
    assert "more than one query" in answer.json()["detail"]


def test_a_json_body_without_declared_length_is_cut_off(front: Any) -> None:
    async def endless() -> Any:
        yield b'{"query": "'
        for _ in range(40):
            yield b"A" * (1 << 20)

    answer = front.client.post(API, content=endless(), headers={"content-type": "application/json"})

    assert answer.status_code == 413
    assert "text/x-fasta" in answer.json()["next_step"]


def test_nothing_is_kept_of_a_refused_search(idle: Any) -> None:
    folder = idle.yard.home.searches
    asked = {"program": "blastn", "database": "genes", "query": ">a\nACG-T\n"}

    idle.client.post(API, content=json.dumps(asked), headers={"content-type": "application/json"})

    assert list(folder.iterdir()) == []
    assert idle.client.get(API).json()["searches"] == []
