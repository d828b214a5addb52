"""The means over the questions so far."""

import time
from collections.abc import Mapping, Sequence

from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.tracking.machine import memory
from hipporag_torch.tracking.protocol import Tracker


class RunningMeans:
    """Tells a tracker after each batch how the run stands; `keep` is what `evaluate` takes under that name.

    The values are the mean of each metric over the questions that have it, `seconds` since this was made,
    and the memory of `machine.memory`.

    done: the rows of an earlier, unfinished run, which count in the means.
    device: whose memory is told, such as cuda:0.
    """

    def __init__(self, tracker: Tracker, *, done: Sequence[QuestionRow] = (), device: str = "cpu") -> None:
        self._tracker, self._device = tracker, device
        self._questions = 0
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._add(done)
        self._began = time.perf_counter()

    def keep(self, rows: Sequence[QuestionRow]) -> None:
        """Count `rows` in, and tell."""
        self._add(rows)
        seconds = time.perf_counter() - self._began
        self._tracker.progress(self._questions, {**self.means, "seconds": seconds, **memory(self._device)})

    @property
    def means(self) -> Mapping[str, float]:
        """Metric → mean so far."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}

    def _add(self, rows: Sequence[QuestionRow]) -> None:
        self._questions += len(rows)
        for row in rows:
            for name, value in row.metrics.items():
                self._sums[name] = self._sums.get(name, 0.0) + value
                self._counts[name] = self._counts.get(name, 0) + 1
