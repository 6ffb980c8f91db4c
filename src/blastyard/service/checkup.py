"""The doctor's second half: what stands in an open store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from blastyard.admission.gate import Gate
from blastyard.domain.errors import CallerMistake
from blastyard.domain.job import State
from blastyard.results.files import SearchFiles
from blastyard.service.databases import Databases
from blastyard.service.doctor import Finding, Verdict, fine, found
from blastyard.service.sweep import SERVICE
from blastyard.store.port import Filter, SearchStore

ABANDONED: Final = timedelta(days=1)
"""How old a folder without a search must be to be called left behind."""
_PAGE: Final = 500


class Checkup:
    """Examines the queue, the registered databases and what searches have left."""

    def __init__(
        self, store: SearchStore, gate: Gate, files: SearchFiles, databases: Databases
    ) -> None:
        self._store = store
        self._gate = gate
        self._files = files
        self._databases = databases

    def __call__(self) -> Iterator[Finding]:
        """Each check's finding; what a check raises is one."""
        yield found("ledger", self._ledger)
        yield found("processes", self._processes)
        yield found("databases", self._registered)
        yield found("searches", self._searches)
        yield found("leftovers", self._leftovers)

    def _ledger(self) -> Finding:
        ledger = self._gate.ledger()
        ceiling = ledger.policy.ceiling
        message = f"{len(ledger.holds)} running of at most {ceiling}, {len(ledger.tickets)} waiting"
        if not ledger.is_whole:
            return Finding(
                "ledger",
                Verdict.WARNING,
                "it was lost; the claims of live processes are being collected",
                "wait a moment; processes that are stopped delay it (`blastyard gate status`)",
            )
        if ceiling == 0:
            step = "`blastyard gate ceiling 1` or more lets searches start again"
            return Finding("ledger", Verdict.WARNING, "the ceiling is 0: nothing starts", step)
        return fine("ledger", message)

    def _processes(self) -> Finding:
        present = self._gate.siblings().values()
        alive = [seen for seen in present if seen.is_alive(self._gate.timings)]
        silent = [seen for seen in present if not seen.gone and seen not in alive]
        if silent:
            names = ", ".join(seen.submitter.label or seen.submitter.name for seen in silent)
            step = "it is stopped or overloaded: continue it, or end it"
            return Finding("processes", Verdict.WARNING, f"no sign of life from {names}", step)
        service = next((seen for seen in alive if seen.submitter.kind == SERVICE), None)
        if service is None:
            return fine("processes", "no service: searches run in the processes that ask for them")
        where = service.submitter.address or service.submitter.label
        return fine("processes", f"a service is running ({where}); {len(alive)} in all")

    def _registered(self) -> Finding:
        names = [database.name for database in self._databases.list()]
        if not names:
            step = "`blastyard db add NAME FASTA --type nucl` makes one"
            return Finding("databases", Verdict.WARNING, "none is registered yet", step)
        damage = [problem for name in names if (problem := self._damage(name))]
        if damage:
            message, step = " ".join(each.message for each in damage), damage[0].next_step
            return Finding("databases", Verdict.BROKEN, message, step)
        return fine("databases", f"{len(names)} registered, with all their files")

    def _damage(self, name: str) -> CallerMistake | None:
        try:
            self._databases.ready(name)
        except CallerMistake as mistake:
            return mistake
        return None

    def _searches(self) -> Finding:
        present = self._gate.submitters()
        alive = {name for name, seen in present.items() if not seen.gone}
        left = [search for search in self._store.live() if search.runner not in alive]
        if not left:
            counts = Counter({state: n for state, n in self._store.counts().items() if n})
            told = ", ".join(f"{n} {state}" for state, n in counts.most_common())
            return fine("searches", told or "none yet")
        running = sum(search.state is not State.QUEUED for search in left)
        message = f"{len(left)} searches have nobody to run them"
        message += f", {running} of them begun by a process that is gone" if running else ""
        step = "`blastyard serve` runs them; `blastyard wait ID` runs one"
        return Finding("searches", Verdict.WARNING, message, step)

    def _leftovers(self) -> Finding:
        ids = list(self._files.ids())
        known: set[str] = set()
        for start in range(0, len(ids), _PAGE):
            page = tuple(ids[start : start + _PAGE])
            known |= {each.id for each in self._store.list(Filter(ids=page, limit=len(page)))}
        stale = [each for each in ids if each not in known and self._is_old(each)]
        if not stale:
            return fine("leftovers", f"none; {len(known)} searches have files")
        paths = " ".join(str(self._files.directory(each)) for each in stale[:3])
        more = " …" if len(stale) > 3 else ""
        message = f"{len(stale)} folders belong to no search"
        return Finding("leftovers", Verdict.WARNING, message, f"rm -r {paths}{more}")

    def _is_old(self, search_id: str) -> bool:
        """A search that is being submitted has a folder before it has a row."""
        changed = self._files.directory(search_id).stat().st_mtime
        return self._store.now().timestamp() - changed > ABANDONED.total_seconds()
