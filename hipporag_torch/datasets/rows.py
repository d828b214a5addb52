"""The rows of a JSON, JSON Lines or Parquet file, with look-ups whose errors name file, row and key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipporag_torch.datasets.parquet import read_records
from hipporag_torch.errors import DatasetError

SUFFIXES = (".json", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Row:
    """One JSON object; `place` says where it stands, such as `questions.json, row 3` (from 0)."""

    place: str
    fields: Mapping[str, Any]

    def value(self, *keys: str) -> Any:
        """What stands under the first of `keys` that the row has."""
        for key in keys:
            if key in self.fields:
                return self.fields[key]
        got = ", ".join(sorted(self.fields)) or "none"
        raise self.error(
            f"there is no {' or '.join(map(repr, keys))}; the keys are {got}. "
            "Correct the row, or state another question shape with `shape`"
        )

    def text(self, *keys: str) -> str:
        value = self.value(*keys)
        if not isinstance(value, str):
            raise self._wrong(keys, "a string", value)
        return value

    def texts(self, *keys: str) -> list[str]:
        """A list of strings; a lone string is a list of one."""
        value = self.value(*keys)
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(keys, "a string or a list of strings", value)
        return value

    def flag(self, key: str) -> bool:
        value = self.value(key)
        if not isinstance(value, bool):
            raise self._wrong((key,), "true or false", value)
        return value

    def rows(self, key: str) -> list["Row"]:
        value = self.value(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._wrong((key,), "a list of objects", value)
        return [Row(f"{self.place}, {key}[{i}]", item) for i, item in enumerate(value)]

    def pairs(self, key: str) -> list[tuple[str, Any]]:
        """A list of `[name, anything]`; or, as in Parquet, two lists: {title: [names], other: [anything]}."""
        value = self.value(key)
        if isinstance(value, dict):
            value = self._zipped(key, value)
        if not isinstance(value, list) or not all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value
        ):
            raise self._wrong((key,), "a list of pairs [title, ...]", value)
        return [(name, other) for name, other in value]

    def _zipped(self, key: str, columns: dict[str, Any]) -> list[list[Any]]:
        others = [column for column in columns if column != "title"]
        lists = [columns.get("title"), *(columns[column] for column in others)]
        if len(lists) != 2 or not all(isinstance(column, list) for column in lists):
            raise self._wrong(
                (key,), "a list of pairs [title, ...], or two lists, one of them title", columns
            )
        titles, values = lists
        if len(titles) != len(values):
            raise self.error(
                f"{key!r} has {len(titles)} in title, {len(values)} in {others[0]}; expected as many in both"
            )
        return [list(pair) for pair in zip(titles, values, strict=True)]

    def error(self, message: str) -> DatasetError:
        return DatasetError(f"{self.place}: {message}")

    def _wrong(self, keys: tuple[str, ...], expected: str, value: Any) -> DatasetError:
        key = next(key for key in keys if key in self.fields)
        return self.error(f"{key!r} must be {expected}, got {type(value).__name__}: {value!r:.80}")


def read_rows(path: Path) -> list[Row]:
    """The objects of a `.json` file (a list), a `.jsonl` file (one a line) or a `.parquet` file, in order.

    Raises `DatasetError` for another suffix, text that is not UTF-8, invalid JSON or another shape.
    """
    return as_rows(path, read_values(path))


def read_values(path: Path) -> Any:
    """What a file holds: anything if it is `.json`, else a list. Raises as `read_rows` does."""
    if path.suffix == ".json":
        return _parse(_text(path), str(path))
    if path.suffix == ".jsonl":
        # Not splitlines(): U+2028 and its like may stand unescaped inside a JSON string.
        lines = enumerate(_text(path).split("\n"), start=1)
        return [_parse(line, f"{path}, line {number}") for number, line in lines if line.strip()]
    if path.suffix == ".parquet":
        return read_records(path)
    raise DatasetError(f"{path} ends in {path.suffix!r}; expected .json (a list), .jsonl (lines) or .parquet")


def as_rows(path: Path, values: Any) -> list[Row]:
    """What `read_values` gave for `path`, as rows. Raises `DatasetError` if it is no list of objects."""
    if not isinstance(values, list):
        raise DatasetError(
            f"{path} must hold a list of objects, got {type(values).__name__}; "
            "wrap it in [...], or name it .jsonl if it has one object per line"
        )
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise DatasetError(
                f"{path}, row {i}: expected an object, got {type(value).__name__}: {value!r:.80}"
            )
    return [Row(f"{path}, row {i}", value) for i, value in enumerate(values)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8"
        ) from error


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{place} is not valid JSON: {error}; correct the file, or fetch it again if it was cut off"
        ) from error
