"""The composition root: from Hydra configs to objects. No other module imports Hydra.

In a notebook: `memory = build_memory(compose("retrieve", ["extractor=none"]))`.
`hipporag_torch.opening` does the same for memories in directories.
"""

import inspect
import json
import re
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
from hipporag_torch.embedders import hub
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import ConfigError, HippoRAGError
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.hipporag import HippoRAG, MakeRetriever
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Chunker, Embedder, EmbedderIdentity, Extractor, Reader, Reads, Retriever
from hipporag_torch.retrievers.questions import check_vectors
from hipporag_torch.text import TextOptions

_EMBEDDERS = "hipporag_torch.embedders."


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


def stated_keys(overrides: Sequence[str]) -> list[str]:
    """The keys that a list of overrides sets, as they are written: `embedder`, `embedder.dim`, `top_k`."""
    return [re.sub(r"^[+~]*", "", override).split("=")[0].split("@")[0] for override in overrides]


def stated_groups(overrides: Sequence[str]) -> frozenset[str]:
    """What a list of overrides says anything about: `embedder` for `embedder=minilm` and `embedder.dim=8`.

    What stands in the YAML files alone counts as unsaid: an index decides it.
    """
    return frozenset(key.split(".")[0].split("/")[0] for key in stated_keys(overrides))


def build_dataset(cfg: DictConfig) -> LocalDataset:
    """The data set that `cfg.dataset` describes, not yet read."""
    return _build(cfg, "dataset")


def build_memory(cfg: DictConfig) -> HippoRAG:
    """An empty memory in this process, with the embedder, extractor, options and retriever of `cfg`.

    What the retriever does not read is not made: dense retrieval extracts nothing, and BM25 embeds
    nothing either. Raises `ConfigError` if `cfg.index.path` names a directory.
    """
    if "index" in cfg and cfg.index.path is not None:
        raise ConfigError(
            f"index.path={cfg.index.path} is a memory in a directory; open it with "
            "hipporag_torch.opening.open_memory(cfg, overrides)"
        )
    use_threads(cfg)
    reads = what_is_read(cfg)
    embedder = NoEmbedder() if reads == "texts" else build_embedder(cfg)
    indexer = Indexer(
        embedder=embedder,
        extractor=build_extractor(cfg) if reads == "graph" else NoExtractor(),
        chunker=build_chunker(cfg),
        text=build_text(cfg),
        graph=build_graph_options(cfg),
    )
    return HippoRAG(indexer=indexer, make_retriever=build_make_retriever(cfg, embedder))


def what_is_read(cfg: DictConfig) -> Reads:
    """What the retriever of `cfg` needs of an index: texts, vectors, or the graph."""
    return _build(cfg, "retriever").func.reads


def build_make_retriever(cfg: DictConfig, embedder: Embedder) -> MakeRetriever:
    """Index → retriever, as `cfg` describes it; of the shared parts it gets those that it takes."""
    device = resolved_device(cfg.runtime.device)
    make_retriever = _build(cfg, "retriever")
    if make_retriever.func.reads != "texts":
        check_vectors(embedder.identity)
    takes = inspect.signature(make_retriever.func).parameters
    parts = {name: _build(cfg, name) for name in ("seeding", "fact_filter", "ppr") if name in takes}
    if "embedder" in takes:
        parts["embedder"] = embedder

    def retriever_over(index: Index) -> Retriever:
        return make_retriever(index=index.to(device), **parts)

    return retriever_over


def build_text(cfg: DictConfig) -> TextOptions:
    """The text options of `cfg.text`."""
    return _build(cfg, "text")


def build_graph_options(cfg: DictConfig) -> AnyGraphOptions:
    """The graph options of `cfg.graph`."""
    return _build(cfg, "graph")


def build_extractor(cfg: DictConfig) -> Extractor:
    """The extractor of `cfg.extractor`."""
    return _build(cfg, "extractor")


def build_chunker(cfg: DictConfig) -> Chunker:
    """The chunker of `cfg.chunker`."""
    return _build(cfg, "chunker")


def build_reader(cfg: DictConfig, memory: HippoRAG) -> Reader:
    """The reader of `cfg.reader`, with the embedder of `memory`."""
    return _build(cfg, "reader")(embedder=memory.embedder)


def build_embedder(cfg: DictConfig) -> Embedder:
    """The embedder of `cfg.embedder`, with the cache of `cfg.runtime` around it unless that is off."""
    embedder = _build(cfg, "embedder")
    cache = build_cache(cfg)
    return embedder if cache is None else CachedEmbedder(embedder=embedder, cache=cache)


def build_cache(cfg: DictConfig) -> EmbeddingCache | None:
    """The cache of `cfg.runtime`, or None if it is off."""
    if not cfg.runtime.cache:
        return None
    folder = Path(cfg.runtime.cache_dir or user_cache_path("hipporag_torch"))
    return EmbeddingCache(folder / "embeddings.sqlite")


def embedder_settings(cfg: DictConfig, identity: EmbedderIdentity) -> str:
    """`cfg.embedder` as the JSON that an index keeps, so that its embedder need not be stated again.

    Folders become absolute and hub models are pinned to their commit; the device is left to each run.
    """
    node = cast(dict[str, Any], OmegaConf.to_container(cfg.embedder, resolve=True))
    node.pop("device", None)
    model = node.get("model")
    if isinstance(model, str) and hub.is_folder(model):
        node["model"] = str(hub.local_folder(model))
    elif isinstance(model, str) and hub.is_commit(identity.weights):
        node["revision"] = identity.weights
    return json.dumps(node, ensure_ascii=False, sort_keys=True)


def build_kept_embedder(cfg: DictConfig, settings: str, identity: EmbedderIdentity, path: Path) -> Embedder:
    """The embedder that the index `path` was built with, from the `embedder_settings` that it keeps.

    An index can come from anywhere, so nothing but the embedders of conf/embedder is built from it, no
    code of a model is run and no interpolation resolved. Raises `ConfigError` that asks to state it.
    """
    node = json.loads(settings)
    state = f"state the embedder (embedder=…, with its keys); the index was built with {identity}"
    target = node.get("_target_") if isinstance(node, dict) else None
    if target is None:
        raise ConfigError(f"the index {path} does not say how its embedder is built; {state}")
    options = (conf_dir() / "embedder").glob("*.yaml")
    known = {cast(DictConfig, OmegaConf.load(option))["_target_"] for option in options}
    if not str(target).startswith(_EMBEDDERS) or target not in known:
        raise ConfigError(
            f"the index {path} names {target!r:.80} as its embedder, which is none of conf/embedder; {state}"
        )
    if node.get("trust_remote_code"):
        raise ConfigError(
            f"the embedder of the index {path} runs code that comes with its model, which an index cannot "
            f"ask for; {state}, embedder.trust_remote_code=true among them"
        )
    if "${" in settings or not _is_plain({key: node[key] for key in node.keys() - {"_target_", "_convert_"}}):
        raise ConfigError(f"the index {path} describes its embedder by more than plain values; {state}")
    if "device" in inspect.signature(get_object(target)).parameters:
        node["device"] = cfg.runtime.device
    own = OmegaConf.create({"embedder": node, "runtime": cfg.runtime})
    return build_embedder(own)


def _is_plain(value: Any) -> bool:
    """Whether no mapping in `value` has a key that Hydra gives a meaning to."""
    if isinstance(value, dict):
        return all(not str(key).startswith("_") and _is_plain(inner) for key, inner in value.items())
    return all(map(_is_plain, value)) if isinstance(value, list) else True


def build_benchmark(cfg: DictConfig) -> Any:
    """The benchmark of `cfg.benchmark`, on the device and with the threads of `cfg.runtime`."""
    use_threads(cfg)
    return _build(cfg, "benchmark")(device=resolved_device(cfg.runtime.device))


def use_threads(cfg: DictConfig) -> None:
    """Let PyTorch use the CPU threads of `cfg.runtime`."""
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
