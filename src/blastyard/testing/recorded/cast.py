"""Who did what, as far as the deeds tell: the index that the rules look things up in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from blastyard.testing.recorded.deed import Deed

OURS = "blastyard-"


class Cast:
    """All deeds of a recording."""

    def __init__(self, deeds: Iterable[Deed]) -> None:
        self.deeds = sorted(deeds, key=lambda deed: deed.at)
        self.search_of: dict[str, str] = {}
        """Label of objects to search."""
        self.holders_of: dict[str, set[str]] = defaultdict(set)
        """Search to the holders that submitted it."""
        self.rude: set[str] = set()
        """Labels, and searches, of submitters that do not pass Gate A."""
        self.letting_go: set[str] = set()
        """Holders that said so."""
        self.known: set[str] = set()
        """Holders that tell what they do."""
        self.foreign: set[str] = set()
        """Searches of other programs than blastyard."""
        self.owner_of: dict[str, str] = {}
        """Search to who has accepted it."""
        for deed in self.deeds:
            self._take(deed)

    def _take(self, deed: Deed) -> None:
        if deed.what in ("submitting", "submitted"):
            for name in (deed.search, *deed.ids):
                self.search_of.setdefault(name, deed.search)
            if deed.more.get("gate", True):
                self.holders_of[deed.search].add(deed.holder)
                if not deed.holder.startswith(OURS):
                    self.foreign.add(deed.search)
            else:
                self.rude.update((deed.search, *deed.ids))
        elif deed.what == "accepted":
            self.owner_of.setdefault(deed.search, deed.who)
        elif deed.what in ("releasing", "released"):
            self.letting_go.add(deed.holder)
        elif deed.what == "acquired":
            self.known.add(deed.holder)

    def is_dead(self, search: str, at: float, tolerance: float) -> bool:
        """Whether all processes of who looks after the search are dead: whoever can see that, need
        not wait until their signs of life have lapsed."""
        who = self.owner_of.get(search)
        dead = False
        for deed in self.deeds:
            if deed.at > at + (tolerance if deed.what == "died" else 0.0):
                continue
            if deed.who == who and deed.what != "fault":
                dead = deed.what == "died"
        return dead

    def those(self, what: str) -> list[Deed]:
        """The deeds of one sort, by time."""
        return [deed for deed in self.deeds if deed.what == what]
