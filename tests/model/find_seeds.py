"""Looks for the schedules in which wrong rules are seen, and keeps their seeds: after a change of
the rules or of the simulator, ``python tests/model/find_seeds.py`` (it takes a while).

The tests try the kept seed first, and look further only when it does not show the mutant any more.
"""

from __future__ import annotations

import json
from typing import Any

from test_cluster_mutants import BY_CHANCE, QUICK
from test_mutants import BY_POINTS
from verdict_stage import SEEDS_FILE, killing_seed

from blastyard.testing.cluster import maker as cluster_maker
from blastyard.testing.cluster import simulator as cluster_simulator
from blastyard.testing.cluster.mutants import cluster_mutants
from blastyard.testing.maker import make
from blastyard.testing.mutant import mutants
from blastyard.testing.simulator import run

MOST = 4000


def main() -> None:
    """Writes the file anew."""
    cluster = {name: cluster_mutants()[name] for name in [*QUICK, *BY_CHANCE]}
    single = {name: mutant for name, mutant in mutants().items() if name not in BY_POINTS}
    play: Any = (cluster_maker.make, cluster_simulator.run)
    found = {
        "cluster": {name: killing_seed(mutant, MOST, *play) for name, mutant in cluster.items()},
        "one machine": {
            name: killing_seed(mutant, MOST, make, run) for name, mutant in single.items()
        },
    }
    SEEDS_FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
