"""The few flags that people type, as overrides of a config: --llm, --llm-base-url, --embedder."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hipporag_torch.config import compose, require_known_keys
from hipporag_torch.errors import ConfigError
from hipporag_torch.instantiation import conf_dir

CONFIG = "serve"
"""The primary config of the server and of the command line."""

_IMPLIED_BY_LLM = {"extractor": "openie", "graph": "default", "reader": "llm"}


def model_flags(
    *, llm: str | None, llm_base_url: str | None, embedder: str | None, stated: Collection[str]
) -> tuple[list[str], dict[str, Any]]:
    """The options of groups that the flags choose, and the values that they set.

    An empty flag is none: a client that fills in flags may leave them so. Whoever names a model wants it
    asked: extractor, graph and reader follow, but for those that are `stated`. How an index was built is not
    overruled by that. embedder: an option of conf/embedder, or else a sentence-transformers model.
    """
    groups: list[str] = []
    values: dict[str, Any] = {}
    if llm:
        groups += [f"{group}={option}" for group, option in _IMPLIED_BY_LLM.items() if group not in stated]
        values["llm.model"] = llm
    if llm_base_url:
        values["llm.base_url"] = llm_base_url
    if embedder:
        known = embedder in {path.stem for path in (conf_dir() / "embedder").glob("*.yaml")}
        groups.append(f"embedder={embedder if known else 'sentence_transformers'}")
        if not known:
            values["embedder.model"] = embedder
    return groups, values


def composed(overrides: Sequence[str], values: Mapping[str, Any]) -> DictConfig:
    """`CONFIG` with overrides and the dotted keys of `values` set. Raises `ConfigError` for wrong ones."""
    try:
        cfg = compose(CONFIG, overrides)
        for key, value in values.items():
            OmegaConf.update(cfg, key, value)
    except (HydraException, OmegaConfBaseException) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigError(f"{first}; settings are key=value as in conf/{CONFIG}.yaml") from error
    require_known_keys(cfg, CONFIG)
    return cfg
