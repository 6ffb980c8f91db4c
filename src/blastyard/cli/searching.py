"""One search, asked for and followed to its result by this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from blastyard.bootstrap.yard import Yard
from blastyard.cli import report
from blastyard.cli.destination import Destination
from blastyard.cli.follow import Detached, Follower
from blastyard.cli.interrupt import Interrupt
from blastyard.cli.labour import Labour
from blastyard.cli.line import new_line
from blastyard.cli.session import SHORT, opened
from blastyard.domain.errors import BlastyardError
from blastyard.domain.search import Search
from blastyard.service.draft import Draft


def run(draft: Draft, query: Iterable[bytes], output: Path | None, *, as_json: bool) -> int:
    """Submit and follow; the exit code."""
    destination = Destination.named(output)
    destination.check()
    with Interrupt() as interrupt, opened("search", runs=True) as yard:
        search = _submit(yard, draft, interrupt.through(query))
        labour = Labour(yard, report.tell)
        try:
            [ended] = _follow(yard, [search], labour, interrupt)
            with interrupt.breakable():
                code = _deliver(yard, ended, destination, as_json=as_json)
            return code or _finish(yard, labour, interrupt)
        except KeyboardInterrupt:
            step = f"fetch it with `blastyard results {search.id[:SHORT]}`"
            raise report.interrupted("interrupted; the result is stored", step) from None
        finally:
            labour.stop()


def _submit(yard: Yard, draft: Draft, query: Iterable[bytes]) -> Search:
    runner = yard.searches.service() or yard.gate.me.name
    try:
        submitted = yard.searches.submit(draft, query, runner=runner)
    except KeyboardInterrupt:
        raise report.interrupted("interrupted before the search was queued") from None
    report.tell_accepted(submitted)
    return submitted.search


def wait(yard: Yard, searches: Sequence[Search], interrupt: Interrupt) -> list[Search]:
    """Follow searches that were asked for before; as they ended."""
    labour = Labour(yard, report.tell)
    try:
        return _follow(yard, searches, labour, interrupt)
    finally:
        labour.stop()


def _follow(
    yard: Yard, searches: Sequence[Search], labour: Labour, interrupt: Interrupt
) -> list[Search]:
    mine = [each.id for each in searches if each.runner == yard.gate.me.name]
    if mine:
        labour.take(mine)
    try:
        with new_line() as line:
            follower = Follower(yard, labour, interrupt, line)
            return follower.until_ended([each.id for each in searches])
    except Detached:
        labour.stop()
        raise _detached(yard, searches) from None


def _detached(yard: Yard, searches: Sequence[Search]) -> BlastyardError:
    """Hand over what ran here, and say who runs it now and how to return to it."""
    yard.handover()
    ids = " ".join(each.id[:SHORT] for each in searches)
    runners = {yard.store.get(each.id).runner for each in searches}
    present = yard.gate.submitters()
    present = {name: seen for name, seen in present.items() if name in runners and not seen.gone}
    labels = " and ".join(seen.submitter.label or name for name, seen in present.items())
    if any(seen.is_alive(yard.gate.timings) for seen in present.values()):
        said = f"stopped waiting; {labels} goes on"
    elif present:
        said = f"stopped waiting; {labels} has the search, and gives no sign of life"
    else:
        said = "stopped waiting; the search is back in the queue, and nobody runs it now"
    return report.interrupted(said, f"return with `blastyard wait {ids}`")


def _deliver(yard: Yard, ended: Search, destination: Destination, *, as_json: bool) -> int:
    shape = yard.searches.shape(ended)
    failed = failure(ended)
    if failed is None:
        result = yard.searches.result(ended.id)
        if destination.path is not None or not as_json:
            destination.take(result)
        shape["output"] = str((destination.path or result).absolute())
    if as_json:
        report.print_json(shape)
    if failed is not None:
        return report.fail(failed, as_json=as_json, shown=True)
    return 0


def failure(ended: Search) -> BlastyardError | None:
    """Why a search has no result; ``None`` when it has."""
    if ended.error is None:
        return None
    known = ended.error.code if report.is_known(ended.error.code) else "internal"
    message = f"search {ended.id[:SHORT]} {ended.state}: {ended.error.message}"
    return BlastyardError(known, message, ended.error.next_step)


def _finish(yard: Yard, labour: Labour, interrupt: Interrupt) -> int:
    """Finish what was taken on from a dead process and runs; the result is out already."""
    labour.is_waiting = False
    left = labour.unfinished()
    if left is None:
        return 0
    report.tell(f"finishing search {left.id[:SHORT]}, begun meanwhile; Ctrl-C leaves it to others")
    try:
        with new_line() as line:
            Follower(yard, labour, interrupt, line).until_ended([left.id])
    except Detached:
        return 0
    return 0
