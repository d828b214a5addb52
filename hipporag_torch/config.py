"""The composition root: from Hydra configs to objects. No other module imports Hydra.

In a notebook: `memory = build_memory(compose("retrieve", ["extractor=none"]))`.
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import hydra
import torch
from hydra.errors import InstantiationException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue
from platformdirs import user_cache_path

from hipporag_torch.datasets.local import LocalDataset
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import ConfigError, HippoRAGError
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Embedder, Retriever


def conf_dir() -> Path:
    """The folder of configs: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def compose(primary: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The config that `scripts/<primary>.py` would run with, given its command-line overrides."""
    with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return hydra.compose(primary, list(overrides))


def require_known_keys(cfg: DictConfig, primary: str) -> None:
    """Raise `ConfigError` for a top-level key that nothing reads, as `+name=value` can add."""
    own = cast(DictConfig, OmegaConf.load(conf_dir() / f"{primary}.yaml"))
    groups = [name for entry in own.get("defaults", []) if isinstance(entry, DictConfig) for name in entry]
    known = {str(key) for key in [*own, *groups]} - {"defaults", "hydra"}
    if unknown := sorted(str(key) for key in cfg if key not in known):
        raise ConfigError(f"unknown key {', '.join(unknown)}; {primary} takes {', '.join(sorted(known))}")


def build_dataset(cfg: DictConfig) -> LocalDataset:
    """The data set that `cfg.dataset` describes, not yet read."""
    return _build(cfg, "dataset")


def build_memory(cfg: DictConfig) -> HippoRAG:
    """An empty memory with the embedder, extractor, options and retriever of `cfg`.

    What the retriever does not read is not made: dense retrieval extracts nothing, and BM25 embeds
    nothing either.
    """
    if cfg.runtime.threads is not None:
        torch.set_num_threads(int(cfg.runtime.threads))
    device = resolved_device(cfg.runtime.device)
    make_retriever = _build(cfg, "retriever")
    reads = make_retriever.func.reads
    embedder = NoEmbedder() if reads == "texts" else build_embedder(cfg)
    indexer = Indexer(
        embedder=embedder,
        extractor=_build(cfg, "extractor") if reads == "graph" else NoExtractor(),
        text=_build(cfg, "text"),
        graph=_build(cfg, "graph"),
    )

    def retriever_over(index: Index) -> Retriever:
        if reads == "texts":
            return make_retriever(index=index)
        return make_retriever(index=index.to(device), embedder=embedder)

    return HippoRAG(indexer=indexer, make_retriever=retriever_over)


def build_embedder(cfg: DictConfig) -> Embedder:
    """The embedder of `cfg.embedder`, with the cache of `cfg.runtime` around it unless that is off."""
    embedder = _build(cfg, "embedder")
    if not cfg.runtime.cache:
        return embedder
    folder = Path(cfg.runtime.cache_dir or user_cache_path("hipporag_torch"))
    return CachedEmbedder(embedder=embedder, cache=EmbeddingCache(folder / "embeddings.sqlite"))


def build_benchmark(cfg: DictConfig) -> Any:
    """The benchmark of `cfg.benchmark`, on the device and with the threads of `cfg.runtime`."""
    if cfg.runtime.threads is not None:
        torch.set_num_threads(int(cfg.runtime.threads))
    return _build(cfg, "benchmark")(device=resolved_device(cfg.runtime.device))


def _build(cfg: DictConfig, group: str) -> Any:
    """What `cfg.<group>` describes; the library's own errors come through as they are."""
    node = cfg[group]
    try:
        _require_parameters(node, group)
        return hydra.utils.instantiate(node)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key} is not set; give it as {error.full_key}=VALUE") from error
    except InstantiationException as error:
        if isinstance(error.__cause__, HippoRAGError):
            raise error.__cause__ from None
        if isinstance(error.__cause__, MissingMandatoryValue):
            key = error.__cause__.full_key
            raise ConfigError(f"{key} is not set; give it as {key}=VALUE") from error
        raise ConfigError(f"{group} could not be built: {error}") from error


def _require_parameters(node: DictConfig, group: str) -> None:
    """Raise `ConfigError` for a key that the constructor does not take, as `+group.name=value` can add."""
    parameters = inspect.signature(get_object(node["_target_"])).parameters
    given = [str(key) for key in node if not str(key).startswith("_")]
    if unknown := [key for key in given if key not in parameters]:
        raise ConfigError(
            f"unknown key {', '.join(f'{group}.{key}' for key in unknown)}; {group} takes "
            f"{', '.join(parameters) or 'no keys'}"
        )
