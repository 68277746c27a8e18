"""Prometheus metrics, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """What the daemon counts. No label takes a caller's text."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.turns = Counter(
            "tacid_turns", "Turns by outcome: call, say, or an error's code.", ["outcome"], registry=self.registry
        )
        self.turn_seconds = Histogram(
            "tacid_turn_seconds", "Seconds of a turn, waiting included.", buckets=_SECONDS, registry=self.registry
        )
        self.compile_seconds = Histogram(
            "tacid_compile_seconds", "Seconds to build a turn.", buckets=_SECONDS, registry=self.registry
        )
        self.grammar_bytes = Histogram(
            "tacid_grammar_bytes",
            "Bytes of a turn's grammar.",
            buckets=(1e3, 1e4, 1e5, 1e6, 1e7),
            registry=self.registry,
        )
        self.cache_hits = Counter(
            "tacid_turn_cache_hits", "Turns whose tools had been compiled before.", registry=self.registry
        )
        self.engine_up = Gauge("tacid_engine_up", "Whether the engine serves turns.", registry=self.registry)
        self.engine_restarts = Counter(
            "tacid_engine_restarts", "Ends of the engine by cause.", ["cause"], registry=self.registry
        )
        self.gpu_layers = Gauge(
            "tacid_engine_gpu_layers", "Layers on a GPU; NaN if the engine does not say.", registry=self.registry
        )
        self.model_layers = Gauge(
            "tacid_engine_model_layers", "Layers of the model; NaN if the engine does not say.", registry=self.registry
        )
        self.gpu_missing = Gauge(
            "tacid_engine_gpu_missing",
            "Whether a GPU is wanted, and the engine reports no layer on one.",
            registry=self.registry,
        )
        self.queue_depth = Gauge("tacid_queue_depth", "Turns that wait for the engine.", registry=self.registry)
        self.turns_running = Gauge("tacid_turns_running", "Turns that the engine answers.", registry=self.registry)
        self.allow_list_size = Gauge("tacid_allow_list_services", "Names on the allow-list.", registry=self.registry)
        self.allow_list_narrows = Gauge(
            "tacid_allow_list_narrows", "Whether service names are held to the allow-list.", registry=self.registry
        )
        self.allow_list_degraded = Gauge(
            "tacid_allow_list_degraded",
            "Whether the file cannot be read, and an earlier list holds.",
            registry=self.registry,
        )
        self.allow_list_age = Gauge(
            "tacid_allow_list_age_seconds", "Seconds since the allow-list in force changed.", registry=self.registry
        )

    def value(self, counter: Counter) -> int:
        """A counter's count."""
        return int(_samples(counter)["_total"])

    def count_and_sum(self, histogram: Histogram) -> tuple[int, float]:
        """How often a histogram was told something, and the sum of it."""
        samples = _samples(histogram)
        return int(samples["_count"]), samples["_sum"]

    def text(self) -> bytes:
        """Prometheus text."""
        return generate_latest(self.registry)


def _samples(metric: Counter | Histogram) -> dict[str, float]:
    (family,) = metric.collect()
    return {sample.name.removeprefix(family.name): sample.value for sample in family.samples}
