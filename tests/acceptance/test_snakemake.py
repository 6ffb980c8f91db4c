"""The Snakemake example runs as it stands, and its searches share the machine's queue."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "snakemake" / "Snakefile"
COPIES = 3


def test_the_example_gives_what_blast_gives(
    environment: dict[str, str],
    require: Callable[[str], Path],
    blast: Path,
    sample_fasta: object,
    sample_databases: object,
    tmp_path: Path,
) -> None:
    query, database = sample_fasta.nucl_query, sample_databases.nucl  # type: ignore[attr-defined]
    queries = tmp_path / "queries"
    queries.mkdir()
    for number in range(COPIES):
        shutil.copy(query, queries / f"nucl-{number}.fa")
    tools = {
        **environment,
        "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
        "HOME": str(tmp_path),
        "BLAST_MAX_RUN_CONCURRENCY": "1",
    }
    done = subprocess.run(
        [require("snakemake"), "--snakefile", EXAMPLE, "--directory", tmp_path / "work",
         "--cores", str(COPIES), "--config", f"database={database}", f"queries={queries}"],
        env=tools, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    bare = subprocess.run(
        [blast / "blastn", "-query", query, "-db", database, "-outfmt", "6", "-evalue", "1e-10"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    hits = tmp_path / "work" / "hits"
    assert {path.name for path in hits.iterdir()} == {f"nucl-{n}.tsv" for n in range(COPIES)}
    assert {path.read_text() for path in hits.iterdir()} == {bare}
    best = (tmp_path / "work" / "best-hits.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in best] == [f"query{n}" for n in range(1, 7)]
    assert set(best) <= set(bare.splitlines())
