"""Everything this library raises on purpose.

A message says what was wrong, what was got, what was expected and what to do next.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any


class HippoRAGError(Exception):
    """Root of all errors that the library raises on purpose."""


class InputError(HippoRAGError):
    """A caller's data is not usable: an empty question, a negative reset, a NaN vector."""


class ConfigError(HippoRAGError):
    """An option is unknown, out of its range, or asks for something that is not installed."""


class BackendError(HippoRAGError):
    """A model or a remote service did not deliver what its contract says."""


class DatasetError(HippoRAGError):
    """A data set is missing, unreadable or not of the shape that was stated."""


class CompatibilityError(HippoRAGError):
    """Two things that must have been made alike were not: say, an index and its embedder."""


class ExtractionError(HippoRAGError):
    """Passages could not be extracted, and the caller asked for all or nothing.

    `failed` lists them, as `FailedPassage` records.
    """

    def __init__(self, message: str, failed: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.failed = tuple(failed)


class BudgetError(HippoRAGError):
    """The next call of a model would exceed the budget; nothing was asked that is not paid for.

    An extractor puts the extractions that it had finished into `finished`, by passage id.
    """

    finished: Mapping[str, Any] = MappingProxyType({})


class StoreError(HippoRAGError):
    """A durable index is missing, damaged or cannot be written."""


class LockedError(HippoRAGError):
    """Another process is writing to the index, or still reads what would have to go."""
