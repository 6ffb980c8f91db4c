"""What a submit command left in the cluster, told from what was there before. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from blastyard.admission.census import UNLABELLED, Census, slot_names
from blastyard.admission.hold import Submission
from blastyard.admission.ledger import Hold


def made(
    search: str, before: Census, after: Census, holds: Mapping[str, Hold]
) -> Submission | None:
    """What the command of ``search`` submitted; ``None`` when nothing is seen of it yet.

    The command either took the id it was given, or minted ids of its own: everything that appeared
    while it was inside Gate A and that nobody has claimed. What carries no id at all is taken for
    its search only when nothing else appeared.
    """
    known = slot_names(holds)
    new = sorted(
        (seen.since, name)
        for name, seen in after.sightings.items()
        if name not in before.families and name not in known
    )
    names = [name for _, name in new if name != UNLABELLED]
    # an earlier search of the same id may have ended long ago
    if search in after.families or search in after.finished - before.finished:
        return Submission(None, tuple(names))
    if names:
        return Submission(names[0], tuple(names[1:]))
    if any(name == UNLABELLED for _, name in new):
        return Submission(UNLABELLED)
    return None
