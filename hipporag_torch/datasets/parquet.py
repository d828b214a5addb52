"""The records of a Parquet file, as the rows of a JSON file would be."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hipporag_torch.errors import ConfigError, DatasetError


def read_records(path: Path) -> list[Any]:
    """The rows of a `.parquet` file, in order; a struct is an object, a list a list.

    A column stands in every row of a Parquet file, with null where JSON rows lack the key. Keys tell the
    shapes of questions apart, so a null field is left out of its row or struct; a null in a list stays.

    Raises `ConfigError` where pyarrow is not installed, `DatasetError` for a file that is no Parquet.
    """
    if find_spec("pyarrow") is None:
        raise ConfigError(
            f"reading {path} needs pyarrow, which is not installed; pip install 'hipporag-torch[parquet]', "
            "or save the file as JSON"
        )
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            records = file.read().to_pylist()
    except pa.ArrowException as error:
        raise DatasetError(
            f"{path} is not a readable Parquet file: {error}; fetch it again if it was cut off"
        ) from error
    return [_without_nulls(record) for record in records]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
