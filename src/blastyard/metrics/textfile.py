"""Numbers of processes that end soon, added up in a file that a collector of Prometheus reads.

The file has the format of the node exporter's textfile collector. Each process adds what it counted
when it ends; the file is replaced as a whole, so that no reader ever sees half of one, and those
who write do so one after another. Only what grows is kept: how full a queue was when some process
ended would soon be wrong.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

_TRIES: Final = 100
_PAUSE_SECONDS: Final = 0.05
_LIMIT: Final = 4 << 20

_Key = tuple[str, tuple[tuple[str, str], ...]]


class NotMetrics(Exception):
    """The file that is there was not written by this program, and stays as it is."""


def add_to(path: Path, families: Iterable[Family], pause: Callable[[float], None]) -> None:
    """Add the families to those in the file; make the file if it is not there.

    Raises ``OSError``, :class:`NotMetrics`, and ``TimeoutError`` when others write for seconds.
    """
    with _alone(path.parent, pause):
        merged = _sums(_read(path), list(families))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Given(merged))
        _replace(path, generate_latest(registry))


@contextmanager
def _alone(folder: Path, pause: Callable[[float], None]) -> Iterator[None]:
    """Lock the folder: it is there before the file, and nothing is left behind."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pause(_PAUSE_SECONDS)
        else:
            raise TimeoutError(f"others were writing in {folder} all the time")
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> list[Family]:
    try:
        with path.open("rb") as file:
            text = file.read(_LIMIT + 1)
    except FileNotFoundError:
        return []
    if len(text) > _LIMIT:
        raise NotMetrics(f"{path} is larger than any that is written here")
    try:
        found = list(text_string_to_metric_families(text.decode()))
    except (ValueError, UnicodeDecodeError) as error:
        raise NotMetrics(f"{path} holds something else than metrics") from error
    if any(family.type not in ("counter", "histogram") for family in found):
        raise NotMetrics(f"{path} holds metrics that are not kept here")
    return found


def _sums(before: list[Family], new: list[Family]) -> list[Family]:
    """Samples of one name and the same labels added up; a histogram whose buckets are others by
    now begins anew."""
    known = {family.name: family for family in before}
    for family in new:
        old = known.get(family.name)
        samples = {_key(sample): sample for sample in family.samples}
        if old is not None and _fit(_bounds(old), _bounds(family)):
            for sample in old.samples:
                key = _key(sample)
                here = samples.get(key)
                value = sample.value + (here.value if here else 0.0)
                samples[key] = Sample(sample.name, sample.labels, value)
        merged = Family(family.name, family.documentation, family.type)
        merged.samples = list(samples.values())
        known[family.name] = merged
    return list(known.values())


def _key(sample: Sample) -> _Key:
    return sample.name, tuple(sorted(sample.labels.items()))


def _fit(old: frozenset[str], new: frozenset[str]) -> bool:
    return not old or not new or old == new  # without a measurement there are none


def _bounds(family: Family) -> frozenset[str]:
    return frozenset(sample.labels["le"] for sample in family.samples if "le" in sample.labels)


def _replace(path: Path, text: bytes) -> None:
    """Readable for all: the collector runs under another account."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_bytes(text)
        new.chmod(0o644)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


class _Given(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families
