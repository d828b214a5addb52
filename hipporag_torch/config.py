"""The composition root: from Hydra configs to objects. No other module imports Hydra.

In a notebook: `memory = build_memory(compose("retrieve", ["extractor=none"]))`.
"""

import inspect
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

import hydra
import torch
from hydra.errors import InstantiationException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
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
from hipporag_torch.protocols import Embedder, Reader, Retriever
from hipporag_torch.retrievers.questions import check_vectors


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
    """Raise `ConfigError` for a key that nothing reads, as `+name=value` and `+group.name=value` can add."""
    own = cast(DictConfig, OmegaConf.load(conf_dir() / f"{primary}.yaml"))
    groups = [name for entry in own.get("defaults", []) if isinstance(entry, DictConfig) for name in entry]
    _require_among(cfg, {str(key) for key in [*own, *groups]} - {"defaults", "hydra"}, primary)
    for group, node in cfg.items_ex(resolve=False):
        if not isinstance(node, DictConfig):
            continue
        if "_target_" in node:
            _require_parameters(node, str(group))
        else:
            nodes = [OmegaConf.load(path) for path in sorted((conf_dir() / str(group)).glob("*.yaml"))]
            known = {str(key) for known_node in [*nodes, own.get(str(group), {})] for key in known_node}
            _require_among(node, known, str(group), prefix=f"{group}.")


def build_dataset(cfg: DictConfig) -> LocalDataset:
    """The data set that `cfg.dataset` describes, not yet read."""
    return _build(cfg, "dataset")


def build_memory(cfg: DictConfig) -> HippoRAG:
    """An empty memory with the embedder, extractor, options and retriever of `cfg`.

    What the retriever does not read is not made: dense retrieval extracts nothing, and BM25 embeds
    nothing either. Of the shared parts, it gets those that its constructor takes.
    """
    _use_threads(cfg)
    device = resolved_device(cfg.runtime.device)
    make_retriever = _build(cfg, "retriever")
    reads = make_retriever.func.reads
    embedder = NoEmbedder() if reads == "texts" else build_embedder(cfg)
    if reads != "texts":
        check_vectors(embedder.identity)
    indexer = Indexer(
        embedder=embedder,
        extractor=_build(cfg, "extractor") if reads == "graph" else NoExtractor(),
        text=_build(cfg, "text"),
        graph=_build(cfg, "graph"),
    )
    takes = inspect.signature(make_retriever.func).parameters
    parts = {name: _build(cfg, name) for name in ("seeding", "fact_filter", "ppr") if name in takes}
    if "embedder" in takes:
        parts["embedder"] = embedder

    def retriever_over(index: Index) -> Retriever:
        return make_retriever(index=index.to(device), **parts)

    return HippoRAG(indexer=indexer, make_retriever=retriever_over)


def build_reader(cfg: DictConfig, memory: HippoRAG) -> Reader:
    """The reader of `cfg.reader`, with the embedder of `memory`."""
    return _build(cfg, "reader")(embedder=memory.embedder)


def build_embedder(cfg: DictConfig) -> Embedder:
    """The embedder of `cfg.embedder`, with the cache of `cfg.runtime` around it unless that is off."""
    embedder = _build(cfg, "embedder")
    if not cfg.runtime.cache:
        return embedder
    folder = Path(cfg.runtime.cache_dir or user_cache_path("hipporag_torch"))
    return CachedEmbedder(embedder=embedder, cache=EmbeddingCache(folder / "embeddings.sqlite"))


def build_benchmark(cfg: DictConfig) -> Any:
    """The benchmark of `cfg.benchmark`, on the device and with the threads of `cfg.runtime`."""
    _use_threads(cfg)
    return _build(cfg, "benchmark")(device=resolved_device(cfg.runtime.device))


def _use_threads(cfg: DictConfig) -> None:
    threads = cfg.runtime.threads
    if threads is None:
        return
    if not isinstance(threads, int) or threads < 1:
        raise ConfigError(
            f"runtime.threads must be at least 1, or null for PyTorch's own choice, got {threads!r}"
        )
    torch.set_num_threads(threads)


def _build(cfg: DictConfig, group: str) -> Any:
    """What `cfg.<group>` describes; the library's own errors come through as they are."""
    node = cfg[group]
    _require_parameters(node, group)
    if missing := sorted(OmegaConf.missing_keys(node)):
        options = sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))
        choose = f", or choose another {group}: {', '.join(options)}" if len(options) > 1 else ""
        raise ConfigError(f"{missing[0]} is not set; give it as {missing[0]}=VALUE{choose}")
    try:
        return hydra.utils.instantiate(node)
    except InstantiationException as error:
        if isinstance(error.__cause__, HippoRAGError):
            raise error.__cause__ from None
        raise ConfigError(
            f"{group} could not be built from {OmegaConf.to_container(node)}: {error.__cause__ or error}"
        ) from error


def _require_parameters(node: DictConfig, group: str) -> None:
    parameters = inspect.signature(get_object(node["_target_"])).parameters
    _require_among(node, parameters, group, prefix=f"{group}.")


def _require_among(node: DictConfig, known: Collection[str], owner: str, *, prefix: str = "") -> None:
    given = [str(key) for key in node if not str(key).startswith("_")]
    if unknown := [prefix + key for key in given if key not in known]:
        raise ConfigError(
            f"unknown key {', '.join(unknown)}; {owner} takes {', '.join(sorted(known)) or 'no keys'}"
        )
