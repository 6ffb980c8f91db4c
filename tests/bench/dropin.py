"""The drop-in commands against bare BLAST+, run in turn on the same files."""

from __future__ import annotations

import gzip
import shutil
import subprocess

from figure import BLASTYARD, EXAMPLES, Figure, Setting, median, timed


def measure(setting: Setting) -> list[Figure]:
    """A long search, a short one, and ``version``."""
    setting.root.mkdir(parents=True)
    database = setting.root / "proteins"
    with gzip.open(EXAMPLES / "DB.fasta.gz") as packed, (setting.root / "db.fa").open("wb") as file:
        shutil.copyfileobj(packed, file)
    subprocess.run(
        ["makeblastdb", "-in", "db.fa", "-dbtype", "prot", "-out", database],
        cwd=setting.root,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with gzip.open(EXAMPLES / "QUERY.fasta.gz", "rt") as file:
        records = file.read().split("\n>")
    environment = setting.environment("home")
    timed([BLASTYARD, "blastp", "-version"], environment)
    figures = []
    for name, count, task, target in (
        ("long", 80, "blastp", "<= 1.03"),
        ("short", 1, "blastp-fast", "added <= 0.5 s"),
    ):
        query = setting.root / f"{name}.fa"
        query.write_text("\n>".join(records[:count]) + "\n")
        argv = ["blastp", "-task", task, "-query", query, "-db", database, "-outfmt", "6"]
        timed([BLASTYARD, *argv], environment)
        runs = setting.runs(5 if name == "long" else 15)
        pairs = [
            (timed(argv, environment), timed([BLASTYARD, *argv], environment)) for _ in range(runs)
        ]
        bare = median([pair[0] for pair in pairs])
        figures.append(Figure(f"bare blastp, {name} search", bare, "s", "", runs))
        if name == "long":
            ratio = median([ours / theirs for theirs, ours in pairs])
            figures.append(Figure("drop-in / bare, long search", ratio, "x", target, runs))
        else:
            added = median([ours - theirs for theirs, ours in pairs])
            figures.append(Figure("drop-in adds to a short search", added, "s", target, runs))
    runs = setting.runs(11)
    version = median([timed([BLASTYARD, "version"], environment) for _ in range(runs)])
    figures.append(Figure("blastyard version", version, "s", "<= 0.25 s", runs))
    return figures
