"""The interface of watchers."""

from typing import Any


class Watcher:
    """Observes a training while it runs: see Elastic.watch."""

    def begin(self, elastic: Any) -> None:
        """Called by Elastic.watch with its training, before the first step, on every learner."""

    def on_metrics(self, line: dict[str, Any]) -> None:
        """Called with each line of metrics.jsonl, on one learner at a time."""

    def end(self) -> None:
        """Called on every learner when it ends, for any reason."""
