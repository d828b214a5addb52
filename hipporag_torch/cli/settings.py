"""From options and key=value to a config."""

import os
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from hipporag_torch.cli.options import INDEX_VARIABLE
from hipporag_torch.cli.output import UsageError
from hipporag_torch.config import stated_groups, stated_keys
from hipporag_torch.errors import ConfigError
from hipporag_torch.flags import composed, model_flags

OPENS = frozenset({"index", "runtime", "text", "graph", "embedder"})
"""The groups that any index is opened with."""

SEARCHES = frozenset(
    [
        *("ppr", "seeding", "linker", "fact_filter", "retriever", "ircot"),
        *("llm", "linking_llm", "filter_llm", "reading_llm", "budget"),
    ]
)
"""The groups that decide how passages are found."""


@dataclass(frozen=True)
class Settings:
    """The config of a call. `stated` are the groups that it names: an index decides about the others."""

    cfg: DictConfig
    stated: frozenset[str]


def settings_of(asked: Namespace, reads: Collection[str] = ()) -> Settings:
    """The settings of a call.

    reads: the groups and keys that the command reads beside those that any index is opened with; stating
    another raises `ConfigError`, as does one that does not exist. Raises `UsageError` for what is no setting,
    and if no index is named.
    """
    overrides = list(asked.overrides)
    if wrong := [text for text in overrides if text.startswith("-") or "=" not in text]:
        raise UsageError(f"{wrong[0]!r} is neither an option nor a key=value; see --help")
    keys = stated_keys(overrides)
    _require_read(keys, OPENS.union(reads), asked.command)
    index = _index(asked.index, "index.path" in keys)
    stated = stated_groups(overrides)
    groups, values = _models(asked, stated)
    if index is not None:
        values["index.path"] = index
    if getattr(asked, "embedder", None) is not None:
        stated |= {"embedder"}
    return Settings(composed([*groups, *overrides], values), stated)


def _index(named: str | None, stated: bool) -> str | None:
    """The directory that is named, if it is not stated as index.path."""
    if named and stated:
        raise UsageError("the index is named twice, by --index and by index.path; leave one out")
    index = named or (None if stated else os.environ.get(INDEX_VARIABLE))
    if not index and not stated:
        raise UsageError(f"no index is named; give its directory as --index DIR, or in {INDEX_VARIABLE}")
    return index


def _models(asked: Namespace, stated: Collection[str]) -> tuple[list[str], dict[str, Any]]:
    """The options of groups that --llm and --embedder choose, and the values that they set."""
    llm, url, embedder = (getattr(asked, name, None) for name in ("llm", "llm_base_url", "embedder"))
    if url and not llm and "llm" not in stated:
        raise UsageError("--llm-base-url says where a model is, but none is named; add --llm MODEL")
    return model_flags(llm=llm, llm_base_url=url, embedder=embedder, stated=stated)


def _require_read(keys: Sequence[str], reads: Collection[str], command: str) -> None:
    """Raise `ConfigError` for a key that the command does not read: nothing is ignored silently."""
    for key in keys:
        if not {key, key.split(".")[0].split("/")[0]} & set(reads):
            raise ConfigError(
                f"{key} is set, but hipporag-torch {command} does not read it; it reads "
                f"{', '.join(sorted(reads))}"
            )
