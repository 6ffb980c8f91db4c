"""What a start must not pay for: modules that the quick paths of the program stay clear of."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "blastyard"

# Each of these costs a tenth of a second or more, and a drop-in BLAST+ needs none of them.
HEAVY = {
    "alembic",
    "fastapi",
    "jinja2",
    "prometheus_client",
    "pydantic",
    "rich",
    "sqlalchemy",
    "starlette",
    "typer",
}


def loaded_by(module: str) -> set[str]:
    """Top-level names in ``sys.modules`` after ``module`` was imported by a fresh interpreter."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["blastyard.cli.entry", "blastyard.cli.dropin"])
def test_the_quick_paths_load_no_web_no_orm_and_no_rich_output(module: str) -> None:
    loaded = loaded_by(module)

    assert "blastyard" in loaded
    assert loaded & HEAVY == set()


def imports_of(path: Path) -> set[str]:
    """Absolute names imported anywhere in a file, in functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module)
            case ast.ImportFrom():
                names.add(f"a relative import in line {node.lineno}")
    return names


def foreign(path: Path, own: str) -> set[str]:
    """What a file imports beyond the standard library and the package ``own``."""
    return {
        name
        for name in imports_of(path)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not f"{name}.".startswith(f"{own}.")
    }


@pytest.mark.parametrize("path", sorted((PACKAGE / "domain").rglob("*.py")), ids=lambda p: p.stem)
def test_the_domain_needs_only_the_standard_library_and_itself(path: Path) -> None:
    assert foreign(path, "blastyard.domain") == set()


def test_the_guardian_is_a_program_of_the_standard_library_alone() -> None:
    guardian = PACKAGE / "guardian.py"

    assert guardian.is_file()
    assert foreign(guardian, "nothing of ours") == set()
