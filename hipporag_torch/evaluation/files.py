"""A run on disk: `metrics.json` and `predictions.jsonl`."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from hipporag_torch.chat import Usage
from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.gold import GoldCoverage
from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.evaluation.run import Evaluation

METRICS = "metrics.json"
PREDICTIONS = "predictions.jsonl"
_OWN_KEYS = ("routes", "gold")

Record = TypeVar("Record", QuestionRow, GoldCoverage, Usage)


def write_run(directory: str | Path, evaluation: Evaluation, *, extra: Mapping[str, Any]) -> None:
    """Write `evaluation` into `directory`, which is made if need be; each file appears whole or not at all.

    `metrics.json` holds every metric by its name (`recall@5`, `title/mrr`, …), `routes` and `gold`, and
    the keys of `extra` (JSON-like), such as seconds. `predictions.jsonl` holds one question per line,
    in order.

    Raises `InputError` for an extra key that is taken or whose value is a bare number, and for what JSON
    cannot hold, NaN included.
    """
    own = {**evaluation.metrics, "routes": evaluation.routes, "gold": asdict(evaluation.gold)}
    if taken := sorted(own.keys() & extra.keys()):
        raise InputError(f"extra must not use the names of metrics, got {', '.join(taken)}; rename it")
    if bare := [key for key, value in extra.items() if isinstance(value, int | float)]:
        raise InputError(f"extra must hold objects, lists or text, got a bare number for {', '.join(bare)}")
    summary = {**own, **extra}
    # The summary comes last: where it stands, the run is complete.
    contents = {
        PREDICTIONS: "".join(row_line(row, PREDICTIONS) for row in evaluation.rows),
        METRICS: _encode(summary, METRICS, indent=2) + "\n",
    }
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content)


def read_run(directory: str | Path) -> Evaluation:
    """The run that `write_run` wrote into `directory`, without its extras.

    Raises `InputError` if a file is missing, is not valid JSON or lacks a field.
    """
    folder = Path(directory)
    for name in (METRICS, PREDICTIONS):
        if not (folder / name).is_file():
            there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
            raise InputError(
                f"{folder} holds no {name}, so it is not a finished run; it holds "
                f"{', '.join(there[:20]) or 'nothing'}. Give the folder that an evaluation wrote"
            )
    summary = _decode(_read(folder / METRICS), str(folder / METRICS))
    if lacking := [key for key in _OWN_KEYS if not isinstance(summary.get(key), dict)]:
        raise InputError(f"{folder / METRICS} lacks {', '.join(lacking)}; expected one object for each")
    # Not splitlines(): U+2028 and its like stand unescaped inside the strings.
    lines = _read(folder / PREDICTIONS).split("\n")
    rows = tuple(
        row_from(line, f"{folder / PREDICTIONS}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line
    )
    gold = _record(GoldCoverage, summary["gold"], f"{folder / METRICS}, gold")
    # A number at the top is a metric: extras are objects, so that this stays true.
    metrics = {name: float(value) for name, value in summary.items() if isinstance(value, int | float)}
    return Evaluation(metrics=metrics, rows=rows, routes=summary["routes"], gold=gold)


def row_line(row: QuestionRow, name: str) -> str:
    """A row as a line of the file `name`, with its end. Raises `InputError` for what JSON cannot hold."""
    return _encode(asdict(row), name) + "\n"


def row_from(line: str, place: str) -> QuestionRow:
    """The row of a line. Raises `InputError` that names `place` for anything else."""
    values = _decode(line, place)
    values |= {key: _tuples(value) for key, value in values.items() if isinstance(value, list)}
    if isinstance(values.get("usage"), dict):
        values["usage"] = _record(Usage, values["usage"], f"{place}, usage")
    return _record(QuestionRow, values, place)


def _tuples(values: list[Any]) -> tuple[Any, ...]:
    return tuple(_tuples(value) if isinstance(value, list) else value for value in values)


def _record(kind: type[Record], values: Mapping[str, Any], place: str) -> Record:
    names = {field.name for field in fields(kind)}
    if names != values.keys():
        raise InputError(
            f"{place}: expected the fields {', '.join(sorted(names))}, got {', '.join(sorted(values))}; "
            "was it written by another version? Run the evaluation again"
        )
    return kind(**values)


def _encode(value: Mapping[str, Any], name: str, indent: int | None = None) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=indent)
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} cannot hold this run: {error}; expected finite numbers and valid text in {value!r:.120}"
        ) from error
    return text


def _decode(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{place} is not valid JSON: {error}; it was damaged or cut off: run the evaluation again"
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"{place}: expected an object, got {type(value).__name__}")
    return value


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error}; it was damaged: run the evaluation again") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
