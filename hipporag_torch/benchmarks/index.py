"""A durable index with its vectors given: seconds to open and to change it, megabytes, and growth."""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Literal

import torch

from hipporag_torch.benchmarks.corpora import Corpus, golden_corpus, synthetic_corpus
from hipporag_torch.benchmarks.golden import GoldenEmbedder, GoldenVectors
from hipporag_torch.benchmarks.timing import Row, interleaved_ms, interleaved_seconds
from hipporag_torch.errors import ConfigError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.protocols import Progress, no_progress
from hipporag_torch.statistics import directory_bytes
from hipporag_torch.store.vectors import VectorType
from hipporag_torch.types import Document

_CHANGED = 10
_PER_ADD = 100
_BATCH = 32
_TOP_K = 20
# The sizes that the growth targets are stated for are that far apart.
_STATED_GROWTH = 10


@dataclass(frozen=True)
class Target:
    """The most that a column of a row may be."""

    column: Literal["seconds", "megabytes", "ratio"]
    most: float

    def __str__(self) -> str:
        unit = {"seconds": " s", "megabytes": " MB", "ratio": "×"}[self.column]
        return f"≤ {self.most:g}{unit}"


class IndexBenchmark:
    """Opening, changing and keeping an index in a directory, and how that grows.

    corpus: `musique` (the golden vectors and triples), or a number of passages of a synthetic corpus,
        for which no targets are stated.
    growth: numbers of passages of synthetic corpora, ascending; ratios are to the first. Empty for none.
    rounds: of each; the medians count, and what is compared takes turns.
    directory: where the temporary directories are made; None takes the system's place for them.

    Each change is a commit, on the disk when it returns. Each round adds ten passages that were never
    there, so that their vectors are written, and the index of n passages has n − 10 · rounds before the
    first. Opening goes on to the first answer; in a new process imports are excluded. Queries are per
    question, alone or in a batch. Building in many adds has its ratio to building in one, and `equal` says
    whether both end in the same index, to the bit. Megabytes are 10⁶ bytes.
    """

    columns = ("what", "target", "passages", "seconds", "megabytes", "ratio", "met", "equal")

    def __init__(
        self,
        *,
        device: torch.device,
        corpus: str | int = "musique",
        growth: Sequence[int] = (2000, 20000),
        rounds: int = 5,
        directory: str | Path | None = None,
    ) -> None:
        if device.type != "cpu":
            raise ConfigError(f"an index is kept on the CPU; set runtime.device=cpu, got {device}")
        if rounds < 1:
            raise ConfigError(f"benchmark.rounds must be at least 1, got {rounds}")
        if isinstance(corpus, str) and corpus != "musique":
            raise ConfigError(f"benchmark.corpus must be musique or a number of passages, got {corpus!r}")
        if len(growth) == 1 or list(growth) != sorted(set(growth)):
            raise ConfigError(
                f"benchmark.growth must be empty, or at least two ascending numbers, got {list(growth)}"
            )
        least = _CHANGED * rounds + 1
        for name, size in [("corpus", corpus), *(("growth", size) for size in growth)]:
            if isinstance(size, int) and size < least:
                raise ConfigError(
                    f"benchmark.{name} must be at least {least} passages, ten for each of {rounds} rounds "
                    f"and one before them, got {size}"
                )
        if directory is not None and not Path(directory).is_dir():
            raise ConfigError(f"benchmark.directory must be a directory or null, got {directory}")
        self._corpus = corpus
        self._growth = growth
        self._rounds = rounds
        self._directory = directory

    def run(self, progress: Progress = no_progress) -> list[Row]:
        """One row for each thing measured."""
        real = isinstance(self._corpus, str)
        corpus = golden_corpus() if isinstance(self._corpus, str) else synthetic_corpus(self._corpus)
        measures = [_keeping, _opening, _changing]
        num_parts = len(measures) + bool(self._growth)
        rows: list[Row] = []
        for number, measure in enumerate(measures):
            with self._folder() as folder:
                found = measure(corpus, Path(folder), self._rounds)
            rows += found if real else [row | {"target": "", "met": None} for row in found]
            progress("benchmark", number + 1, num_parts)
        if self._growth:
            with self._folder() as folder:
                rows += _growing(self._growth, Path(folder), self._rounds)
            progress("benchmark", num_parts, num_parts)
        return rows

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(dir=self._directory, prefix="hipporag-benchmark-")


def _keeping(corpus: Corpus, folder: Path, rounds: int) -> list[Row]:
    """Building at once and in many adds, which must end in the same index; and the size on the disk."""
    documents = corpus.documents
    count = len(documents)
    starts = range(0, count, _PER_ADD)

    def build(path: Path, per_add: int, vectors: VectorType | None = None) -> None:
        with corpus.open(path, vectors=vectors) as memory:
            for start in range(0, count, per_add):
                memory.add(documents[start : start + per_add])

    once, many = interleaved_seconds(
        [
            lambda number: build(folder / f"once-{number}", count),
            lambda number: build(folder / f"many-{number}", _PER_ADD),
        ],
        rounds=rounds,
    )
    build(folder / "half", count, "float16")
    with corpus.open(folder / "once-0") as first, corpus.open(folder / "many-0") as second:
        equal = same_index(first.index, second.index)
    full, half = directory_bytes(folder / "once-0") / 1e6, directory_bytes(folder / "half") / 1e6
    return [
        _row("build, one add", count, seconds=once),
        _row(
            f"build, {len(starts)} adds",
            count,
            seconds=many,
            ratio=many / once,
            target=Target("ratio", 2),
            equal=equal,
        ),
        _row("disk, float32", count, megabytes=full, target=Target("megabytes", 62)),
        _row("disk, float16", count, megabytes=half, target=Target("megabytes", 35)),
    ]


def _opening(corpus: Corpus, folder: Path, rounds: int) -> list[Row]:
    """A saved index to its first answer, in this process and in a new one."""
    path, question = folder / "index", corpus.questions[0]
    with corpus.open(path) as memory:
        memory.add(corpus.documents)
    (here,) = interleaved_seconds([lambda _: _first_answer(corpus, path)], rounds=rounds)
    vector = corpus.indexer.embedder.embed([question], "question_to_fact").tolist()
    elsewhere = median(_seconds_in_new_process(path, question, vector) for _ in range(rounds))
    target, count = Target("seconds", 0.3), len(corpus.documents)
    return [
        _row("open to answer", count, seconds=here, target=target),
        _row("open in new process", count, seconds=elsewhere, target=target),
    ]


def _changing(corpus: Corpus, folder: Path, rounds: int) -> list[Row]:
    """Ten passages more and less, then upkeep of what that left."""
    path, count = folder / "index", len(corpus.documents)
    tens = _tens(corpus, rounds)
    with corpus.open(path) as memory:
        memory.add(corpus.documents[: -_CHANGED * rounds])
        works: list[Callable[[int], object]] = [
            lambda number: memory.add(tens[number]),
            lambda number: memory.remove(texts=[document.text for document in tens[number]]),
            lambda _: memory.check(),
            lambda _: memory.compact(),
        ]
        # One kind of work after the other: these are not compared.
        add, remove, check, compact = (interleaved_seconds([work], rounds=rounds)[0] for work in works)
    (reopen,) = interleaved_seconds([lambda _: _first_answer(corpus, path)], rounds=rounds)
    least = count - _CHANGED * rounds
    return [
        _row(f"add {_CHANGED}", count - _CHANGED, seconds=add, target=Target("seconds", 0.5)),
        _row(f"remove {_CHANGED}", count, seconds=remove, target=Target("seconds", 0.3)),
        _row("check", least, seconds=check),
        _row("compact", least, seconds=compact),
        _row("open after compact", least, seconds=reopen),
    ]


def _growing(sizes: Sequence[int], folder: Path, rounds: int) -> list[Row]:
    """The same work on synthetic indexes of several sizes, which take turns; ratios to the first."""
    corpora = [synthetic_corpus(size) for size in sizes]
    paths = [folder / str(size) for size in sizes]
    rows: list[Row] = []

    def note(what: str, seconds: Sequence[float], most: float | None = None) -> None:
        for size, value in zip(sizes, seconds, strict=True):
            target = Target("ratio", most) if most and size == _STATED_GROWTH * sizes[0] else None
            ratio = None if size == sizes[0] else value / seconds[0]
            rows.append(_row(f"synthetic: {what}", size, seconds=value, ratio=ratio, target=target))

    with ExitStack() as stack:
        memories = [
            stack.enter_context(corpus.open(path)) for corpus, path in zip(corpora, paths, strict=True)
        ]
        pairs = list(zip(memories, corpora, strict=True))
        note(
            "build",
            interleaved_seconds(
                [lambda _, m=m, c=c: m.add(c.documents[: -_CHANGED * rounds]) for m, c in pairs], rounds=1
            ),
        )
        changes: list[Callable[[int], object]] = []
        removals: list[Callable[[int], object]] = []
        for memory, corpus in pairs:
            tens = _tens(corpus, rounds)
            changes.append(lambda number, m=memory, t=tens: m.add(t[number]))
            removals.append(lambda number, m=memory, t=tens: m.remove(texts=[d.text for d in t[number]]))
        note(f"add {_CHANGED}", interleaved_seconds(changes, rounds=rounds), 10)
        for batch, most in ((1, 12), (_BATCH, 10)):
            asked = [lambda m=m, c=c, b=batch: m.retrieve(c.questions[:b], top_k=_TOP_K) for m, c in pairs]
            times = interleaved_ms(asked, rounds=rounds, device=torch.device("cpu"))
            what = "query" if batch == 1 else f"query of {batch}"
            note(what, [milliseconds / 1e3 / batch for milliseconds in times], most)
        note(f"remove {_CHANGED}", interleaved_seconds(removals, rounds=rounds))
    opens = [lambda _, c=c, p=p: _first_answer(c, p) for c, p in zip(corpora, paths, strict=True)]
    note("open", interleaved_seconds(opens, rounds=rounds))
    return rows


def same_index(first: Index, second: Index) -> bool:
    """Whether two indexes hold the same rows, vectors, pairs and weights, to the bit."""
    tensors = [
        (one, other)
        for a, b in (
            (first, second),
            (first.statements, second.statements),
            (first.synonyms, second.synonyms),
            (first.graph.adjacency, second.graph.adjacency),
        )
        for field in fields(a)
        if isinstance(one := getattr(a, field.name), torch.Tensor)
        and isinstance(other := getattr(b, field.name), torch.Tensor)
    ]
    names = ("embedder", "text", "graph_options", "passages", "extractions", "failed", "phrases", "facts")
    return all(getattr(first, name) == getattr(second, name) for name in names) and all(
        torch.equal(one, other) for one, other in tensors
    )


def _tens(corpus: Corpus, rounds: int) -> list[Sequence[Document]]:
    """The last documents, ten for each round."""
    last = corpus.documents[-_CHANGED * rounds :]
    return [last[start : start + _CHANGED] for start in range(0, len(last), _CHANGED)]


def _first_answer(corpus: Corpus, path: Path) -> None:
    with corpus.open(path) as memory:
        memory.retrieve(corpus.questions[:1], top_k=_TOP_K)


def _seconds_in_new_process(path: Path, question: str, vector: list[list[float]]) -> float:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_seconds_alone, path, question, vector, torch.get_num_threads()).result()


def _seconds_alone(path: Path, question: str, vector: list[list[float]], threads: int) -> float:
    """Open and answer in a process whose imports are done, and which has done nothing else."""
    torch.set_num_threads(threads)
    embedder = GoldenEmbedder(GoldenVectors((question,), torch.tensor(vector)))
    start = time.perf_counter()
    with HippoRAG.open(path, embedder=embedder) as memory:
        memory.retrieve([question], top_k=_TOP_K)
        return time.perf_counter() - start


def _row(
    what: str,
    passages: int,
    *,
    seconds: float | None = None,
    megabytes: float | None = None,
    ratio: float | None = None,
    target: Target | None = None,
    equal: bool | None = None,
) -> Row:
    row: Row = {
        "what": what,
        "target": "" if target is None else str(target),
        "passages": passages,
        "seconds": seconds,
        "megabytes": megabytes,
        "ratio": ratio,
        "equal": equal,
    }
    return row | {"met": None if target is None else row[target.column] <= target.most}
