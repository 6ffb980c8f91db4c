"""All of admission as it stands in its documents, for whoever may only look.

A :class:`~blastyard.admission.view.View` is for those who take part: it restores a ledger that was
lost. A picture changes nothing and restores nothing; the right to read is enough for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from blastyard.admission.census import Census, counted
from blastyard.admission.lease import Seen, judge
from blastyard.admission.ledger import Ledger, Policy
from blastyard.admission.order import places
from blastyard.admission.roster import Presence
from blastyard.admission.timing import Timings
from blastyard.admission.view import View


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read, nothing of it judged yet."""

    ledger: Ledger | None
    """``None`` = there is none: it was never made, or somebody removed it."""
    lease: Seen
    submitters: Mapping[str, Presence]
    census: Census
    now: datetime
    """The store's clock."""

    def view(self, seed: Policy, timings: Timings) -> View:
        """The same as those see it who take part; ``seed`` stands for a policy nobody knows."""
        nothing = Ledger(uid="", policy=seed, fence=0, restored=())
        ledger = nothing if self.ledger is None else self.ledger
        alive = {name for name, seen in self.submitters.items() if seen.is_alive(timings)}
        census = counted(ledger, self.census, self.now, timings)
        queue = tuple(places(ledger, self.now, alive))
        gate = judge(self.lease, timings)
        return View(ledger, gate, queue, self.submitters, census, self.now)
