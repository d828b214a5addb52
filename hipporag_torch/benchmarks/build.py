"""Building and changing an index with its vectors given: seconds per stage, and memory."""

import threading
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeVar

import torch

from hipporag_torch.benchmarks.golden import GoldenEmbedder, GoldenVectors, golden_dataset, golden_indexer
from hipporag_torch.benchmarks.timing import Row
from hipporag_torch.errors import ConfigError
from hipporag_torch.protocols import Progress, no_progress

Result = TypeVar("Result")
_CHANGED = 10


class BuildBenchmark:
    """musique_train (1,890 passages) from the golden vectors: a build, an add and a remove of 10 passages.

    rounds: of each; the medians count. Memory is the highest resident size during the first round, over
    that before it, vectors loaded: megabytes of 10⁶ bytes.
    """

    columns = ("what", "seconds", "peak_mb", "stages")

    def __init__(self, *, device: torch.device, rounds: int = 3) -> None:
        if rounds < 1:
            raise ConfigError(f"benchmark.rounds must be at least 1, got {rounds}")
        if device.type != "cpu":
            raise ConfigError(f"an index is built on the CPU; set runtime.device=cpu, got {device}")
        self._rounds = rounds

    def run(self, progress: Progress = no_progress) -> list[Row]:
        """One row for the build, one for the add, one for the remove."""
        indexer = golden_indexer(GoldenEmbedder(GoldenVectors.load()))
        documents = golden_dataset().documents
        empty = indexer.empty()
        rows: list[Row] = []

        def note(row: Row) -> None:
            rows.append(row)
            progress("benchmark", len(rows), 3)

        (_, report), seconds, peak = self._measure(lambda: indexer.add(empty, documents))
        note(_row(f"build {len(documents):,} passages", seconds, peak, report.seconds))
        most, _ = indexer.add(empty, documents[:-_CHANGED])
        (whole, report), seconds, peak = self._measure(lambda: indexer.add(most, documents[-_CHANGED:]))
        note(_row(f"add {_CHANGED} passages", seconds, peak, report.seconds))
        texts = [document.text for document in documents[-_CHANGED:]]
        _, seconds, peak = self._measure(lambda: indexer.remove(whole, texts=texts))
        note(_row(f"remove {_CHANGED} passages", seconds, peak, {}))
        return rows

    def _measure(self, work: Callable[[], Result]) -> tuple[Result, float, float]:
        with _PeakMemory() as memory:
            start = time.perf_counter()
            result = work()
            seconds = [time.perf_counter() - start]
        for _ in range(self._rounds - 1):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return result, median(seconds), memory.peak_mb


class _PeakMemory:
    """Samples the resident size of this process every 2 ms while its block runs."""

    def __enter__(self) -> "_PeakMemory":
        try:
            import psutil
        except ImportError as error:
            raise ConfigError("this benchmark needs psutil: pip install 'hipporag-torch[peers]'") from error
        self._process = psutil.Process()
        self._before = self._highest = self._process.memory_info().rss
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._sampler.join()

    @property
    def peak_mb(self) -> float:
        return (self._highest - self._before) / 1e6

    def _sample(self) -> None:
        while not self._done.wait(0.002):
            self._highest = max(self._highest, self._process.memory_info().rss)


def _row(what: str, seconds: float, peak_mb: float, stages: Mapping[str, float]) -> Row:
    shown = ", ".join(f"{name} {value:.2f}" for name, value in stages.items())
    return {"what": what, "seconds": seconds, "peak_mb": peak_mb, "stages": shown}
