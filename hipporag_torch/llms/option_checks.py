"""What the options of every chat model in this process are checked for."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from hipporag_torch.errors import ConfigError


def require_count(name: str, value: int | None, *, least: int = 1, none: bool = False) -> None:
    """Raises `ConfigError` unless llm.`name` is a whole number, at least `least`, or None where it may be."""
    if value is None and none:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        or_null = ", or null" if none else ""
        raise ConfigError(f"llm.{name} must be a whole number, at least {least}{or_null}, got {value!r}")


def require_temperature(value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (isfinite(value) and value >= 0):
        raise ConfigError(f"llm.temperature must be 0 (the likeliest reply) or above, got {value!r}")


def require_mapping(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options as a dict of their own, empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"llm.{name} must hold names and values, got {value!r:.80}")
    return dict(value)
