"""Reads what W&B wrote of an offline run: a log in LevelDB's format, of its records."""

import json
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wandb.proto.wandb_internal_pb2 import Record  # pyright: ignore[reportAttributeAccessIssue]

_BLOCK, _HEADER, _PREFIX = 32768, struct.Struct("<IHB"), b":W&B"
_PATIENCE = 10.0


class WandbLog:
    """The config, steps, summary and artifacts of the finished run in `folder`; values are decoded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: Any = None
        self.config: dict[str, Any] = {}
        self.history: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = {}
        self.artifacts: dict[str, Any] = {}
        self.exit_code: int | None = None
        self.kinds: set[str] = set()
        for record in _whole_log(folder):
            self._take(record)

    def table(self, name: str) -> dict[str, Any]:
        """The columns and data of a table."""
        return json.loads((self.folder / "files" / self.summary[name]["path"]).read_text("utf-8"))

    def _take(self, record: Any) -> None:
        kind = record.WhichOneof("record_type")
        self.kinds.add(kind)
        if kind == "run":
            self.run = record.run
            self.config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
        elif kind == "history":
            self.history.append(_items(record.history.item))
        elif kind == "summary":
            for item in record.summary.update:
                _put(self.summary, item)
        elif kind == "artifact":
            self.artifacts[record.artifact.type] = record.artifact
        elif kind == "exit":
            self.exit_code = record.exit.exit_code


def _whole_log(folder: Path) -> list[Any]:
    """The records up to the run's end: W&B's own process may still be writing when `finish` returns."""
    (path,) = folder.glob("*.wandb")
    give_up = time.monotonic() + _PATIENCE
    while time.monotonic() < give_up:
        records = [_parsed(data) for data in _records(path.read_bytes())]
        if records and records[-1].WhichOneof("record_type") == "exit":
            return records
        time.sleep(0.01)
    raise AssertionError(f"{path} has no end")


def _parsed(data: bytes) -> Any:
    record = Record()
    record.ParseFromString(data)
    return record


def only_log(directory: Path) -> WandbLog:
    """The one run that W&B wrote into a run's folder."""
    (folder,) = (directory / "wandb").glob("offline-run-*")
    return WandbLog(folder)


def _items(items: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in items:
        _put(values, item)
    return values


def _put(values: dict[str, Any], item: Any) -> None:
    *way, last = item.nested_key or [item.key]
    for key in way:
        values = values.setdefault(key, {})
    values[last] = json.loads(item.value_json)


def _records(data: bytes) -> Iterator[bytes]:
    """The whole records from the start on."""
    assert data[:4] in (_PREFIX, b"")
    position, parts = 7, b""
    while position < len(data):
        left = _BLOCK - position % _BLOCK
        if left < _HEADER.size:
            position += left
            continue
        if len(data) - position < _HEADER.size:
            return
        checksum, length, kind = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        part = data[position : position + length]
        if checksum != zlib.crc32(bytes([kind]) + part):
            # Not written to its end.
            return
        position, parts = position + length, parts + part
        # 1 is a whole record, 2 to 4 are its first, middle and last parts.
        if kind in (1, 4):
            yield parts
            parts = b""
