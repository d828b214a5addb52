"""A real folder of some hundred documents, kept in step with an index on the disk."""

import hashlib
import json
import os
import shutil
import sysconfig
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.folders import plan_folder, source_id_of, sync_folder
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.types import Extraction, Passage, Progress, Triple, no_progress

NUM_FILES = 300
SUFFIXES = {".md", ".rst", ".txt", ""}


class Interrupted(Exception):  # noqa: N818  it stands for Ctrl-C
    """The sync is stopped."""


class CountingExtractor:
    """A few triples of a passage's longest words. Stops after `until` passages of its life."""

    producer = "counting"
    calls_per_passage = 0

    def __init__(self, until: int | None = None) -> None:
        self.until = until
        self.asked: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        found: list[Extraction] = []
        for passage in passages:
            if self.until is not None and len(self.asked) >= self.until:
                raise Interrupted
            self.asked.append(passage.id)
            words = sorted({w for w in passage.text.split() if w.isalpha()}, key=lambda w: (-len(w), w))[:4]
            triples = tuple(Triple(a, "beside", b) for a, b in pairwise(words))
            found.append(Extraction(triples=triples, producer=self.producer))
        return found


def documents() -> Iterator[Path]:
    """Documentation, READMEs and licences inside the installed packages, by path."""
    packages = Path(sysconfig.get_paths()["purelib"])
    for path in sorted(packages.rglob("*")):
        named = path.suffix.lower() in SUFFIXES - {""} or path.name.startswith(
            ("LICENSE", "README", "NOTICE")
        )
        if (
            named
            and path.suffix.lower() in SUFFIXES
            and path.is_file()
            and 200 < path.stat().st_size < 20_000
        ):
            yield path


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 of them, each text once, in the folders of their packages. Not to be changed."""
    packages = Path(sysconfig.get_paths()["purelib"])
    root = tmp_path_factory.mktemp("library") / "docs"
    seen: set[bytes] = set()
    for path in documents():
        content = path.read_bytes()
        digest = hashlib.sha256(content).digest()
        if digest in seen or b"\0" in content or not content.isascii():
            continue
        seen.add(digest)
        package, *rest = path.relative_to(packages).parts
        target = root / package.removesuffix(".dist-info") / f"{'-'.join(rest) or package}.txt".lstrip(".")
        if path.suffix.lower() in (".md", ".rst"):
            target = target.with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if len(seen) == NUM_FILES:
            return root
    pytest.skip(f"the installed packages have only {len(seen)} documents, {NUM_FILES} are needed")


@pytest.fixture
def tree(library: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(library, tmp_path / "docs"))


def opened(index: Path, extractor: CountingExtractor) -> HippoRAG:
    return HippoRAG.open(index, embedder=HashingEmbedder(dim=32), extractor=extractor)


def state(memory: HippoRAG) -> dict[str, Any]:
    """All that the memory holds: passages with their sources, statements, graph and vectors."""
    index = memory.index
    return {
        "passages": [
            [
                passage.text,
                [
                    [s.source_id, s.position, s.start, s.end, json.dumps(s.metadata, sort_keys=True)]
                    for s in passage.sources
                ],
            ]
            for passage in index.passages
        ],
        "facts": [fact.parts for fact in index.facts],
        "edges": [index.graph.adjacency.row_ptr.tolist(), index.graph.adjacency.col.tolist()],
        "weights": index.graph.adjacency.weight.tolist(),
        "vectors": [emb.tolist() for emb in (index.passage_emb, index.phrase_emb, index.fact_emb)],
    }


@pytest.mark.slow
def test_a_second_sync_does_what_changed_and_nothing_else(tree: Path, tmp_path: Path) -> None:
    extractor = CountingExtractor()
    with opened(tmp_path / "index", extractor) as memory:
        first = sync_folder(memory, tree)
        assert (first.counts, first.ok) == ({"added": NUM_FILES}, True)
        assert sorted(extractor.asked) == [passage.id for passage in memory.index.passages]
        extractor.asked.clear()

        generation = memory.stats().disk
        start = time.perf_counter()
        assert sync_folder(memory, tree, prune=True).counts == {"unchanged": NUM_FILES}
        assert time.perf_counter() - start < 3
        assert memory.stats().disk == generation
        assert extractor.asked == []

        paths = [file.path for file in first.files]
        touched, edited, renamed, deleted = paths[0:20], paths[20:40], paths[40:50], paths[50:60]
        new_names = [f"moved/{number}.txt" for number in range(10)]
        for path in touched:
            os.utime(tree / path, (1, 1))
        for number, path in enumerate(edited):
            with (tree / path).open("a") as file:
                file.write(f"\n\nThe {number}th addition says something that nobody had said.\n")
        (tree / "moved").mkdir()
        for path, name in zip(renamed, new_names, strict=True):
            (tree / path).rename(tree / name)
        for path in deleted:
            (tree / path).unlink()

        plan = plan_folder(memory, tree, prune=True)
        before = {passage.id for passage in memory.index.passages}
        report = sync_folder(memory, tree, prune=True)
        by_status = {status: [f.path for f in report.files if f.status == status] for status in report.counts}
        assert by_status["replaced"] == edited
        assert by_status["added"] == sorted(new_names)
        assert by_status["removed"] == sorted(renamed + deleted)
        assert report.counts["unchanged"] == NUM_FILES - 40
        assert report.counts.keys() == {"added", "removed", "replaced", "unchanged"}

        new = {passage.id for passage in memory.index.passages} - before
        assert set(extractor.asked) == new
        assert len(extractor.asked) == len(new) == plan.passages_new == report.passages_added
        assert (
            plan.passages_removed
            == report.passages_removed
            == len(before) + len(new) - len(memory.index.passages)
        )
        held = {source.source_id for passage in memory.index.passages for source in passage.sources}
        assert held == {source_id_of(tree, f.path) for f in report.files if f.status != "removed"}
        changed = state(memory)

        with opened(tmp_path / "fresh", CountingExtractor()) as fresh:
            for path in touched:  # what is touched keeps the time of its content
                os.utime(tree / path, (0, mtime_held(memory, tree, path)))
            sync_folder(fresh, tree)
            assert state(fresh) == changed


def mtime_held(memory: HippoRAG, tree: Path, path: str) -> int:
    """When the memory holds that a file was changed, in seconds."""
    wanted = source_id_of(tree, path)
    told = next(
        source.metadata["mtime"]
        for passage in memory.index.passages
        for source in passage.sources
        if source.source_id == wanted
    )
    return int(datetime.fromisoformat(told).timestamp())


@pytest.mark.slow
def test_stopped_at_ten_points_and_gone_on_with_it_is_the_same(tree: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "whole", CountingExtractor()) as memory:
        sync_folder(memory, tree)
        expected = state(memory)
    asked: list[str] = []
    for point in range(10):
        # In turn between two files, and amid the extraction of one.
        extractor = CountingExtractor(until=7 if point % 2 else None)

        def stop(stage: str, done: int, total: int, point: int = point) -> None:
            if stage == "sync" and point % 2 == 0 and done == 11 + 3 * point:
                raise Interrupted

        with opened(tmp_path / "index", extractor) as memory:
            with pytest.raises(Interrupted):
                sync_folder(memory, tree, progress=stop)
            asked += extractor.asked
    extractor = CountingExtractor()
    with opened(tmp_path / "index", extractor) as memory:
        report = sync_folder(memory, tree)
        assert report.ok
        assert report.counts["unchanged"] >= 5 * 11
        assert state(memory) == expected
    asked += extractor.asked
    assert len(set(asked)) == len(expected["passages"])
