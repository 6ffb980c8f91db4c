"""What `doctor` shows."""

from __future__ import annotations

from collections.abc import Iterator

from blastyard.bootstrap.gate import Home
from blastyard.bootstrap.yard import search_memory
from blastyard.cli import report, table
from blastyard.cli.session import visited
from blastyard.domain.errors import DEPENDENCY, NOT_READY, BlastyardError
from blastyard.engine.toolchain import Toolchain
from blastyard.service.checkup import Checkup
from blastyard.service.doctor import Finding, Machine, Verdict, examine_machine
from blastyard.settings import Settings


def run(settings: Settings, *, as_json: bool) -> int:
    """Examine and show; 0 unless something is broken, 7 for BLAST+, 10 for the rest."""
    findings = []
    for finding in _findings(settings):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        report.print_json({"findings": [_shape(finding) for finding in findings]})
    broken = [finding.check for finding in findings if finding.verdict is Verdict.BROKEN]
    if not broken:
        return 0
    return DEPENDENCY if broken[0] == "BLAST+" else NOT_READY


def _findings(settings: Settings) -> Iterator[Finding]:
    home = Home(settings.directory)
    try:
        home.make()
    except BlastyardError as error:
        yield Finding("data directory", Verdict.BROKEN, error.message, error.next_step)
        return
    yield from examine_machine(_machine(settings, home))
    try:
        with visited(settings) as yard:
            yield from Checkup(yard.store, yard.gate, yard.files, yard.databases)()
    except BlastyardError as error:
        yield Finding("store", Verdict.BROKEN, error.message, error.next_step)


def _machine(settings: Settings, home: Home) -> Machine:
    return Machine(
        root=home.root,
        database=home.database,
        run=home.run,
        searches=home.searches,
        toolchain=Toolchain(settings.path),
        memory_bytes=search_memory(settings),
        ceiling=_ceiling(settings),
    )


def _ceiling(settings: Settings) -> int:
    """How many searches may run at a time; what it began with where no ledger can be read."""
    try:
        with visited(settings) as yard:
            return yard.gate.ledger().policy.ceiling
    except BlastyardError:  # the checks of the store say why
        return settings.max_run_concurrency


def _print(finding: Finding) -> None:
    table.print_facts([(f"{finding.verdict:<8} {finding.check:<15}", finding.message)])
    if finding.next_step:
        print(f"{'':<26}mend it: {finding.next_step}")


def _shape(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "message": finding.message,
        "next_step": finding.next_step,
    }
