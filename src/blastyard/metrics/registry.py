"""The numbers of one process, in Prometheus' text format. Thread-safe.

Nothing is shared between two registries, so a process may have several installations open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from blastyard.metrics.table import Kind, Metric

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

# a gauge beside every counter that says when it began
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Reading:
    """A gauge as it stands when somebody looks."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


Read = Callable[[], Iterable[Reading]]
"""Asked at every exposition; must not raise."""


class Registry:
    """Counts and measures."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._totals = CollectorRegistry(auto_describe=False)
        self._gauges = CollectorRegistry(auto_describe=False)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in metrics:
            about = (metric.name, metric.meaning, metric.labels)
            if metric.kind is Kind.HISTOGRAM:
                self._histograms[metric.name] = Histogram(
                    *about, registry=self._totals, buckets=metric.buckets
                )
            else:
                self._counters[metric.name] = Counter(*about, registry=self._totals)

    def prepare(self, metric: Metric, *labels: str) -> None:
        """Have a labelled counter say 0 before anything has happened."""
        self._counters[metric.name].labels(*labels)

    def count(self, metric: Metric, *labels: str, by: int = 1) -> None:
        """Add to a counter."""
        counter = self._counters[metric.name]
        (counter.labels(*labels) if labels else counter).inc(by)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Add one measurement to a histogram."""
        histogram = self._histograms[metric.name]
        (histogram.labels(*labels) if labels else histogram).observe(value)

    def follow_total(self, metric: Metric, read: Callable[[], int]) -> None:
        """Show a counter that somebody else keeps."""
        self._totals.register(_Total(metric, read))

    def follow(self, read: Read) -> None:
        """Show the gauges that ``read`` tells."""
        self._gauges.register(_Gauges(read))

    def exposition(self) -> bytes:
        """All of it, as text; of media type :data:`CONTENT_TYPE`."""
        return generate_latest(self._gauges) + generate_latest(self._totals)

    def totals(self) -> list[Family]:
        """What only grows: counters and histograms. Reads no gauge."""
        return list(self._totals.collect())


class _Total(Collector):
    def __init__(self, metric: Metric, read: Callable[[], int]) -> None:
        self._metric = metric
        self._read = read

    def collect(self) -> Iterator[Family]:
        yield CounterMetricFamily(self._metric.name, self._metric.meaning, self._read())


class _Gauges(Collector):
    def __init__(self, read: Read) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        families: dict[str, GaugeMetricFamily] = {}
        for each in self._read():
            metric = each.metric
            if metric.name not in families:
                families[metric.name] = GaugeMetricFamily(
                    metric.name, metric.meaning, labels=metric.labels
                )
            families[metric.name].add_metric(each.labels, each.value)
        yield from families.values()
