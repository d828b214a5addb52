"""Extraction in parts: which passages a shard has, where its files are, and one file made of all."""

import glob
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from hipporag_torch.datasets.rows import read_rows
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.export.files import drafts
from hipporag_torch.export.upstream import write_docs
from hipporag_torch.extractors.stored import EXTRACTED, docs_by_passage
from hipporag_torch.reports import FailedPassage
from hipporag_torch.text import TextOptions

Item = TypeVar("Item")
_SHARD_NAME = re.compile(r"\.(\d+)-of-(\d+)$")


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 1, of `count`."""

    number: int
    count: int

    @staticmethod
    def parse(text: object) -> "Shard":
        """`3/8`. Raises `ConfigError` for anything else."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text))
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ConfigError(f"shard must be NUMBER/COUNT, such as 1/8 to 8/8, got {text!r}")
        return Shard(int(match[1]), int(match[2]))

    def of(self, items: Sequence[Item]) -> list[Item]:
        """Every `count`-th item."""
        return list(items[self.number - 1 :: self.count])


@dataclass(frozen=True)
class OutputFiles:
    """The extractions, and beside them the journal and the failures."""

    output: Path

    @staticmethod
    def at(output: str | Path, shard: Shard | None) -> "OutputFiles":
        """`extractions.json` is, for a shard, `extractions.3-of-8.json`."""
        path = Path(output)
        if path.suffix != ".json":
            raise ConfigError(f"output must be the name of a .json file, got {str(output)!r}")
        if shard is None:
            return OutputFiles(path)
        return OutputFiles(path.with_name(f"{path.stem}.{shard.number}-of-{shard.count}.json"))

    @property
    def journal(self) -> Path:
        return self.output.with_suffix(".journal.jsonl")

    @property
    def failed(self) -> Path:
        return self.output.with_suffix(".failed.jsonl")

    def write_failed(self, failed: Iterable[FailedPassage]) -> None:
        """One failure a line; no file where there is none."""
        lines = [json.dumps(asdict(failure)) for failure in failed]
        if not lines:
            self.failed.unlink(missing_ok=True)
            return
        with drafts([self.failed], overwrite=True) as (draft,):
            draft.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def read_failed(self) -> list[FailedPassage]:
        """What `write_failed` wrote. Raises `DatasetError` for other rows."""
        if not self.failed.exists():
            return []
        return [
            FailedPassage(
                row.text("passage_id"),
                tuple(row.texts("source_ids")),
                row.text("reason"),
                row.text("reply"),
                row.flag("permanent"),
            )
            for row in read_rows(self.failed)
        ]


@dataclass(frozen=True)
class Merged:
    """What merging gave."""

    files: tuple[Path, ...]
    num_docs: int
    failed: tuple[FailedPassage, ...]


def found_files(patterns: Sequence[str]) -> list[Path]:
    """The files that paths and patterns such as `extractions.*-of-8.json` name, each once, sorted.

    Raises `ConfigError` for one that names none, and if shards of a set are missing.
    """
    paths: set[Path] = set()
    for pattern in patterns:
        found = {Path(name) for name in glob.glob(pattern)} or {
            Path(p) for p in [pattern] if Path(p).exists()
        }
        if not found:
            raise ConfigError(f"merge: there is no file {pattern} (looked from {Path.cwd()})")
        paths |= found
    there: dict[int, set[int]] = {}
    for path in paths:
        if match := _SHARD_NAME.search(path.stem):
            there.setdefault(int(match[2]), set()).add(int(match[1]))
    for count, numbers in sorted(there.items()):
        if missing := sorted(set(range(1, count + 1)) - numbers):
            raise ConfigError(
                f"merge: of {count} shards, {', '.join(map(str, missing))} are missing; run "
                f"extract.py shard={missing[0]}/{count} first, or name all files"
            )
    return sorted(paths)


def merge(files: Sequence[Path], into: OutputFiles, text: TextOptions, *, overwrite: bool) -> Merged:
    """Write the documents of all files into one, by ascending id, and the failures that no file healed.

    The same passages give the same bytes, however they were divided. Raises `InputError` if two files have
    different extractions of a passage, or the output is one of them.
    """
    if into.output.resolve() in {path.resolve() for path in files}:
        raise InputError(f"{into.output} is among the files to merge; give another output")
    docs: dict[str, dict[str, Any]] = {}
    came_from: dict[str, Path] = {}
    failed: dict[str, FailedPassage] = {}
    for path in files:
        for passage, doc in docs_by_passage(path).items():
            # Sentences stand in a file only where an extractor gave some.
            kept = {
                key: doc.get(key) or [] for key in EXTRACTED if doc.get(key) or key != "extracted_sentences"
            }
            entry = {"idx": text.passage_id(passage), "passage": passage, **kept}
            if docs.setdefault(entry["idx"], entry) != entry:
                raise InputError(
                    f"{path} and {came_from[entry['idx']]} have different extractions of the passage "
                    f"{passage!r:.80}; merge one of them"
                )
            came_from.setdefault(entry["idx"], path)
        failed |= {failure.passage_id: failure for failure in OutputFiles(path).read_failed()}
    write_docs((docs[key] for key in sorted(docs)), into.output, overwrite=overwrite)
    left = tuple(failed[key] for key in sorted(failed.keys() - docs.keys()))
    into.write_failed(left)
    return Merged(tuple(files), len(docs), left)
