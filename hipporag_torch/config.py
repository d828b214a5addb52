"""The composition root: from Hydra configs to objects. No other module imports Hydra.

In a notebook: `memory = build_memory(compose("retrieve", ["extractor=none"]))`.
`hipporag_torch.opening` does the same for memories in directories.
"""

import inspect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import hydra
import torch
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
from platformdirs import user_cache_path

from hipporag_torch.datasets.source import DatasetSource
from hipporag_torch.embedders import hub
from hipporag_torch.embedders.cache import EmbeddingCache
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation.variants import Study
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.hipporag import HippoRAG, MakeRetriever
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.instantiation import (
    build,
    build_with,
    conf_dir,
    plain_errors,
    require_among,
    require_parameters,
    takes_part,
)
from hipporag_torch.ircot import retrieve_once
from hipporag_torch.linkers import Linker
from hipporag_torch.llms.cache import ReplyCache, ReplyCaches
from hipporag_torch.llms.roles import ROLES, ChatModels, ModelRole
from hipporag_torch.protocols import Chunker, Embedder, EmbedderIdentity, Extractor, Reader, Reads, Retriever
from hipporag_torch.retrievers.questions import check_vectors
from hipporag_torch.retrievers.seeding import Seeding
from hipporag_torch.text import TextOptions
from hipporag_torch.tracking import Tracker

_EMBEDDERS = "hipporag_torch.embedders."


def _choose(flag: Any, then: Any, otherwise: Any) -> Any:
    return then if flag is True else otherwise


# In the primary configs: a dry run has no folder to write to.
OmegaConf.register_new_resolver("if", _choose, replace=True)


def compose(primary: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The config that `scripts/<primary>.py` would run with, given its command-line overrides."""
    with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return hydra.compose(primary, list(overrides))


def require_known_keys(cfg: DictConfig, primary: str) -> None:
    """Raise `ConfigError` for a key that nothing reads, as `+name=value` and `+group.name=value` can add."""
    own = cast(DictConfig, OmegaConf.load(conf_dir() / f"{primary}.yaml"))
    entries = [entry for entry in own.get("defaults", []) if isinstance(entry, DictConfig)]
    # A group that a role has for itself, as llm@filter_llm, stands in the config under the latter name.
    groups = [str(name).rpartition("@")[2] for entry in entries for name in entry]
    require_among(cfg, {str(key) for key in [*own, *groups]} - {"defaults", "hydra"}, primary)
    for group, node in cfg.items_ex(resolve=False):
        # What stands empty in the primary config has keys that only its reader knows.
        if not isinstance(node, DictConfig) or own.get(str(group), None) == {}:
            continue
        if "_target_" in node:
            require_parameters(node, str(group))
        elif str(group).endswith("_llm"):
            raise ConfigError(
                f"{group} has no model of its own yet; choose its kind first: llm@{group}=openai"
            )
        else:
            nodes = [OmegaConf.load(path) for path in sorted((conf_dir() / str(group)).glob("*.yaml"))]
            known = {str(key) for known_node in [*nodes, own.get(str(group), {})] for key in known_node}
            require_among(node, known, str(group), prefix=f"{group}.")


def flag(cfg: DictConfig, key: str) -> bool:
    """The value of a dotted key that is true or false. Raises `ConfigError` for anything else."""
    value = OmegaConf.select(cfg, key)
    if type(value) is not bool:
        raise ConfigError(f"{key} must be true or false, got {value!r}")
    return value


def plain(node: Any) -> Any:
    """A list or mapping of a config as Python's own, interpolations resolved; anything else as it is."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def stated_keys(overrides: Sequence[str]) -> list[str]:
    """The keys that a list of overrides sets, as they are written: `embedder`, `embedder.dim`, `top_k`."""
    return [re.sub(r"^[+~]*", "", override).split("=")[0].split("@")[0] for override in overrides]


def stated_groups(overrides: Sequence[str]) -> frozenset[str]:
    """What a list of overrides says anything about: `embedder` for `embedder=minilm` and `embedder.dim=8`.

    What stands in the YAML files alone counts as unsaid: an index decides it.
    """
    return frozenset(key.split(".")[0].split("/")[0] for key in stated_keys(overrides))


def build_dataset(cfg: DictConfig) -> DatasetSource:
    """The data set that `cfg.dataset` describes, not yet read."""
    return build(cfg, "dataset")


def build_models(cfg: DictConfig) -> ChatModels:
    """The chat models of `cfg`, none of them made yet: of `llm`, or a role's own, such as `filter_llm`.

    Hand one object to everything that is built for a run: its roles then share models, budget and cache.
    """
    groups: dict[ModelRole, str] = {
        role: f"{role}_llm" if cfg.get(f"{role}_llm") else "llm" for role in ROLES if cfg.get("llm")
    }
    limits = cfg.get("budget", {})
    budget = build(cfg, "budget") if limits else None
    limited = any(value is not None for key, value in limits.items() if not str(key).startswith("_"))
    return ChatModels(
        settings={
            role: json.dumps(OmegaConf.to_container(cfg[group], resolve=False), sort_keys=True)
            for role, group in groups.items()
        },
        make=lambda role: build(cfg, groups[role]),
        budget=budget if limited else None,
        caches=build_reply_caches(cfg),
    )


def build_memory(cfg: DictConfig, models: ChatModels | None = None) -> HippoRAG:
    """An empty memory in this process, with the embedder, extractor, options and retriever of `cfg`.

    What the retriever does not read is not made: dense retrieval extracts nothing, and BM25 embeds
    nothing either. models: those of the run; None makes them from `cfg`. Raises `ConfigError` if
    `cfg.index.path` names a directory.
    """
    if "index" in cfg and cfg.index.path is not None:
        raise ConfigError(
            f"index.path={cfg.index.path} is a memory in a directory; open it with "
            "hipporag_torch.opening.open_memory(cfg, overrides)"
        )
    use_threads(cfg)
    models = models or build_models(cfg)
    reads = what_is_read(cfg)
    embedder = NoEmbedder() if reads == "texts" else build_embedder(cfg)
    indexer = Indexer(
        embedder=embedder,
        extractor=build_extractor(cfg, models) if reads == "graph" else NoExtractor(),
        chunker=build_chunker(cfg),
        text=build_text(cfg),
        graph=build_graph_options(cfg),
    )
    return HippoRAG(indexer=indexer, make_retriever=build_make_retriever(cfg, embedder, models))


def what_is_read(cfg: DictConfig) -> Reads:
    """What the retriever of `cfg` needs of an index: texts, vectors, or the graph."""
    return build(cfg, "retriever").func.reads


def build_make_retriever(
    cfg: DictConfig, embedder: Embedder, models: ChatModels | None = None
) -> MakeRetriever:
    """Index → retriever, as `cfg` describes it; of the shared parts it gets those that it takes."""
    models = models or build_models(cfg)
    device = resolved_device(cfg.runtime.device)
    make_retriever = build(cfg, "retriever")
    if make_retriever.func.reads != "texts":
        check_vectors(embedder.identity)
    takes = inspect.signature(make_retriever.func).parameters
    parts: dict[str, Any] = {name: build(cfg, name) for name in ("seeding", "ppr") if name in takes}
    if "fact_filter" in takes:
        parts["fact_filter"] = build_with(
            cfg, "fact_filter", {"llm": lambda: models.get("filter", derived=True)}
        )
    if "linker" in takes and parts["seeding"].wants_links:
        parts["linker"] = build_linker(cfg, models)
    if "embedder" in takes:
        parts["embedder"] = embedder
    around = build(cfg, "ircot") if "ircot" in cfg else retrieve_once
    thinker = {"llm": models.get("reading", derived=True)} if thinks(cfg) else {}

    def retriever_over(index: Index) -> Retriever:
        with plain_errors(cfg, "retriever"):
            found = make_retriever(index=index.to(device), **parts)
        with plain_errors(cfg, "ircot"):
            return around(retriever=found, **thinker)

    return retriever_over


def build_seeding(cfg: DictConfig) -> Seeding:
    """The seeding of `cfg.seeding`."""
    return build(cfg, "seeding")


def build_linker(cfg: DictConfig, models: ChatModels | None = None) -> Linker:
    """The linker of `cfg.linker`; with the model for linking, if it asks one."""
    models = models or build_models(cfg)
    # Where a model thinks, its thoughts become questions, and these tell of passages.
    return build_with(cfg, "linker", {"llm": lambda: models.get("linking", derived=thinks(cfg))})


def thinks(cfg: DictConfig) -> bool:
    """Whether a model's thoughts become questions, as `ircot=on` says."""
    return "ircot" in cfg and takes_part(cfg, "ircot", "llm")


def build_text(cfg: DictConfig) -> TextOptions:
    """The text options of `cfg.text`."""
    return build(cfg, "text")


def build_graph_options(cfg: DictConfig) -> AnyGraphOptions:
    """The graph options of `cfg.graph`."""
    return build(cfg, "graph")


def build_extractor(cfg: DictConfig, models: ChatModels | None = None) -> Extractor:
    """The extractor of `cfg.extractor`; with the model for extraction, if it asks one."""
    models = models or build_models(cfg)
    return build_with(cfg, "extractor", {"llm": lambda: models.get("extraction")})


def build_chunker(cfg: DictConfig) -> Chunker:
    """The chunker of `cfg.chunker`."""
    return build(cfg, "chunker")


def build_reader(cfg: DictConfig, memory: HippoRAG, models: ChatModels | None = None) -> Reader:
    """The reader of `cfg.reader`, with the embedder of `memory` or the model for reading, if it takes one."""
    models = models or build_models(cfg)
    # Thoughts of one question may tell of passages that the reader is not shown.
    derived = bool(cfg.reader.get("thoughts_to_reader"))
    offered = {
        "embedder": lambda: memory.embedder,
        "llm": lambda: models.get("reading", derived=derived),
    }
    return build_with(cfg, "reader", offered)


def build_embedder(cfg: DictConfig) -> Embedder:
    """The embedder of `cfg.embedder`, with the cache of `cfg.runtime` around it unless that is off."""
    embedder = build(cfg, "embedder")
    cache = build_cache(cfg)
    return embedder if cache is None else CachedEmbedder(embedder=embedder, cache=cache)


def build_cache(cfg: DictConfig) -> EmbeddingCache | None:
    """The vectors' cache of `cfg.runtime`, or None if it is off."""
    return EmbeddingCache(_cache_folder(cfg) / "embeddings.sqlite") if cfg.runtime.cache else None


def build_reply_caches(cfg: DictConfig) -> ReplyCaches | None:
    """Where chat models' replies are kept, or None if the cache of `cfg.runtime` is off."""
    if not cfg.runtime.get("cache"):
        return None
    folder = _cache_folder(cfg)
    return ReplyCaches(
        quoting=ReplyCache(folder / "replies.sqlite"), derived=ReplyCache(folder / "derived_replies.sqlite")
    )


def _cache_folder(cfg: DictConfig) -> Path:
    return Path(cfg.runtime.cache_dir or user_cache_path("hipporag_torch"))


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
    return build(cfg, "benchmark")(device=resolved_device(cfg.runtime.device))


def build_tracker(cfg: DictConfig) -> Tracker:
    """What records the runs of `cfg`, as `cfg.tracker` describes it."""
    return build(cfg, "tracker")


def build_study(cfg: DictConfig) -> Study:
    """The study of `cfg.study`, with the variants that it draws."""
    return build(cfg, "study")


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
