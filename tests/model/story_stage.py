"""Stories of one scene, each told twice: by the rules as they are, and by a rule made wrong.

A story is told in order by one function. What it must not come to is said with :func:`must`; with
the rules made wrong that it is there for, it must come to just that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from scene_stage import Scene

from blastyard.testing.cluster.mutants import cluster_mutants
from blastyard.testing.mutant import applied
from blastyard.testing.scheduler import Process

RIGHT: Final = "as it is"
_LONGEST: Final = 1e6


class Broken(AssertionError):
    """What must hold does not."""


def must(holds: bool, otherwise: str) -> None:
    """What the scene is about."""
    if not holds:
        raise Broken(otherwise)


Story = Callable[[Scene], None]
STAGED: Final[dict[str, str]] = {}
"""The mutants that a scene is run with, and which."""


def fails_with(*wrong: str, ceiling: int = 1) -> Callable[[Story], Callable[[str], None]]:
    """Makes a test of a story: it ends well by the rules as they are, and is :class:`Broken` with
    each of these mutants."""

    def told_twice(story: Story) -> Callable[[str], None]:
        def test(rules: str) -> None:
            with ExitStack() as stack:
                if rules != RIGHT:
                    stack.enter_context(pytest.raises(Broken))
                    stack.enter_context(applied(cluster_mutants()[rules]))
                _play(story, Scene(ceiling))

        test.__name__, test.__doc__ = story.__name__, story.__doc__
        STAGED.update(dict.fromkeys(wrong, story.__name__))
        return pytest.mark.parametrize("rules", [RIGHT, *wrong])(test)

    return told_twice


def _play(story: Story, scene: Scene) -> None:
    told: list[bool] = []

    def tell() -> None:
        story(scene)
        told.append(True)

    scene.scheduler.spawn(Process("story"), "story", tell)
    try:
        scene.scheduler.run(lambda: bool(told), _LONGEST)
    finally:
        scene.scheduler.end()
    assert told, "the story did not come to its end"


def staged() -> dict[str, str]:
    """The mutants of all scenes beside this module, and their scenes."""
    for path in sorted(Path(__file__).parent.glob("test_cluster_scenes*.py")):
        importlib.import_module(path.stem)
    return STAGED
