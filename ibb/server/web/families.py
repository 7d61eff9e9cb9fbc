"""Metrics as Prometheus has them: one value, values by label, and durations in buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.utils import floatToGoString

from ibb.server.latencies import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.core import Metric

    from ibb.server.latencies import Latencies

Labelled: TypeAlias = "Iterable[tuple[tuple[str, ...], float]]"


def gauge(name: str, text: str, value: float | None) -> Metric:
    """Return what goes up and down; None: nobody knows, and no line is written."""
    family = GaugeMetricFamily(name, text)
    if value is not None:
        family.add_metric([], value)
    return family


def gauges(name: str, text: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    """Return the same by *labels*."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for words, value in values:
        family.add_metric(words, value)
    return family


def counter(name: str, text: str, value: float) -> Metric:
    """Return what only goes up; Prometheus adds `_total` to its name."""
    return CounterMetricFamily(name, text, value=value)


def counters(name: str, text: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    """Return the same by *labels*."""
    family = CounterMetricFamily(name, text, labels=labels)
    for words, value in values:
        family.add_metric(words, value)
    return family


def histogram(name: str, text: str, latencies: Latencies) -> Metric:
    """Return durations."""
    return histograms(name, text, (), [((), latencies)])


def histograms(
    name: str,
    text: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], Latencies]],
) -> Metric:
    """Return the same by *labels*."""
    family = HistogramMetricFamily(name, text, labels=labels)
    bounds = [*map(floatToGoString, BOUNDS), "+Inf"]
    for words, latencies in values:
        counted = latencies.counted()
        buckets = list(zip(bounds, map(float, counted.up_to), strict=True))
        family.add_metric(words, buckets, counted.seconds)
    return family
