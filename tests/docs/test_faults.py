"""Every fault that can occur is met, where it can, by a test that names it in its docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]

ON_ONE_MACHINE = frozenset(
    [
        *(f"A{number}" for number in (*range(1, 11), 13, 14, 15)),
        *(f"B{number}" for number in range(9, 16)),
        *(f"Q{number}" for number in (*range(1, 10), 11, 12)),
        *(f"R{number}" for number in (1, 2, 4, 5, 6, *range(8, 13))),
    ]
)


IN_A_CLUSTER = frozenset(
    [
        *(f"A{number}" for number in range(1, 19)),
        *(f"B{number}" for number in range(1, 23)),
        *(f"Q{number}" for number in (*range(1, 13), 14)),
    ]
)


def _named_faults(folder: Path) -> Iterator[str]:
    for path in folder.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for sentence in re.findall(r"Faults? ([^.]*)\.", ast.get_docstring(node) or ""):
                    yield from re.findall(r"[ABQSR]\d+", sentence)


def test_every_fault_of_one_machine_has_a_test_that_names_it() -> None:
    assert sorted(ON_ONE_MACHINE - set(_named_faults(TESTS))) == []


def test_every_fault_of_a_cluster_is_met_on_a_real_api_server() -> None:
    assert sorted(IN_A_CLUSTER - set(_named_faults(TESTS / "cluster"))) == []
