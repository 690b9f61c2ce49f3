"""Figures for Prometheus. No label ever holds an id, a key or a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from memagent.turns import Status

if TYPE_CHECKING:
    from memagent.service.receipt import RecallNote, Receipt

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0)
MODEL_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Meters:
    """One process's figures, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(f"memagent_{name}", words, labels, registry=registry)

        def gauge(name: str, words: str) -> Gauge:
            return Gauge(f"memagent_{name}", words, registry=registry)

        def histogram(name: str, words: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"memagent_{name}", words, buckets=buckets, registry=registry)

        self.turns = counter("turns", "Turns that ended, by outcome and reason.", "outcome", "reason")
        self.retries = counter("turn_retries", "Attempts that failed and are tried again.", "code")
        self.refused = counter("turns_refused", "Turns refused because a queue was full.")
        self.waiting = gauge("turns_waiting", "Turns that wait or run, of all processes.")
        self.age = gauge("queue_age_seconds", "How long the oldest of them has waited.")
        self.dead = gauge("dead_letters", "Turns that were given up and can be replayed.")
        self.workers = gauge("workers", "Workers that are alive.")
        self.model = histogram("model_seconds", "Time in the memory agent's model, per turn.", MODEL_SECONDS)
        self.tokens = counter("tokens", "Tokens of the memory agent's model.", "direction")
        self.usd = counter("cost_usd", "What the memory agent's model cost, as far as known.")
        self.recall = histogram("recall_seconds", "Time until memories for an answer were there.", SECONDS)
        self.fail_opens = counter("recall_fail_opens", "Answers that went ahead without memories.", "code")
        self.passed_on = counter(
            "gateway_requests", "Requests that the gateway passed on: turns, or what else they were.", "kind"
        )
        self.lost = counter(
            "gateway_turns_lost", "Turns of the gateway that could not be handed over.", "code"
        )
        self.refusals = counter("memories_refused", "Edits of the agent that were refused.", "why")
        self.changes = counter("memories_changed", "Memories changed by turns.", "how")
        self.forgotten = counter("memories_forgotten", "Memories forgotten to make room.")

    def ended(self, receipt: Receipt, status: Status) -> None:
        """Count a turn that is over."""
        outcome = "dead" if status is Status.DEAD else receipt.decision.value
        code = str((receipt.error or {}).get("code", ""))
        self.turns.labels(outcome, code if status is Status.DEAD else receipt.reason).inc()
        if receipt.cost.calls:
            self.model.observe(receipt.timings_ms.get("model", 0.0) / 1000)
            self.tokens.labels("input").inc(receipt.cost.input_tokens)
            self.tokens.labels("output").inc(receipt.cost.output_tokens)
            self.usd.inc(receipt.cost.usd or 0.0)
        for how in ("set", "refreshed", "deleted"):
            self.changes.labels(how).inc(len(getattr(receipt, how)))
        self.forgotten.inc(len(receipt.forgotten))
        for refusal in receipt.refused:
            self.refusals.labels(refusal["why"]).inc()

    def recalled(self, note: RecallNote, *, seconds: float) -> None:
        """Count one look for memories on the way to an answer."""
        self.recall.observe(seconds)
        if note.error is not None:
            self.fail_opens.labels(note.error).inc()
