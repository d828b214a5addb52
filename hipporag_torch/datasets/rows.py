"""The rows of a JSON or JSON Lines file, with look-ups whose errors name file, row and key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipporag_torch.errors import DatasetError


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
        """A list of `[name, anything]`."""
        value = self.value(key)
        if not isinstance(value, list) or not all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value
        ):
            raise self._wrong((key,), "a list of pairs [title, ...]", value)
        return [(name, other) for name, other in value]

    def error(self, message: str) -> DatasetError:
        return DatasetError(f"{self.place}: {message}")

    def _wrong(self, keys: tuple[str, ...], expected: str, value: Any) -> DatasetError:
        key = next(key for key in keys if key in self.fields)
        return self.error(f"{key!r} must be {expected}, got {type(value).__name__}: {value!r:.80}")


def read_rows(path: Path) -> list[Row]:
    """The objects of a `.json` file (one list) or a `.jsonl` file (one per line), in order.

    Raises `DatasetError` for another suffix, text that is not UTF-8, invalid JSON or another shape.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8"
        ) from error
    if path.suffix == ".json":
        values = _parse(text, str(path))
        if not isinstance(values, list):
            raise DatasetError(
                f"{path} must hold a list of objects, got {type(values).__name__}; "
                "wrap it in [...], or name it .jsonl if it has one object per line"
            )
    elif path.suffix == ".jsonl":
        # Not splitlines(): U+2028 and its like may stand unescaped inside a JSON string.
        lines = enumerate(text.split("\n"), start=1)
        values = [_parse(line, f"{path}, line {number}") for number, line in lines if line.strip()]
    else:
        raise DatasetError(f"{path} ends in {path.suffix!r}; expected .json (a list) or .jsonl (lines)")
    for i, value in enumerate(values):
        if not isinstance(value, dict):
            raise DatasetError(
                f"{path}, row {i}: expected an object, got {type(value).__name__}: {value!r:.80}"
            )
    return [Row(f"{path}, row {i}", value) for i, value in enumerate(values)]


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{place} is not valid JSON: {error}; correct the file, or fetch it again if it was cut off"
        ) from error
