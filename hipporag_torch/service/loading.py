"""The service that a config describes. Models are made when it loads, not before."""

from collections.abc import Collection
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from hipporag_torch.config import (
    build_chunker,
    build_embedder,
    build_extractor,
    build_graph_options,
    build_make_retriever,
    build_models,
    build_reader,
    build_text,
    embedder_settings,
    plain,
    use_threads,
)
from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.absent import AbsentExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.opening import kept_embedder, store_of
from hipporag_torch.service.confirmation import Confirmations
from hipporag_torch.service.limits import Limits, Roots
from hipporag_torch.service.memory_service import MemoryService
from hipporag_torch.service.sharing import SharedEmbedder
from hipporag_torch.service.views import Opened
from hipporag_torch.store.store import Store


def build_service(cfg: DictConfig, stated: Collection[str]) -> MemoryService:
    """The service of `cfg`, nothing loaded yet.

    stated: the groups that a person chose; of the others an index that exists says what they are.
    Raises `ConfigError` for what can be seen without loading anything.
    """
    store = store_of(cfg)
    serve = cfg.serve
    service = MemoryService(
        store=store,
        open_memory=lambda: _opened(cfg, stated, store),
        confirmations=Confirmations(above=serve.confirm_above, seconds=serve.confirm_seconds),
        limits=Limits(**cast(dict[str, Any], plain(serve.limits))),
        roots=Roots(_strings(serve.roots, "serve.roots")),
        most_waiting=serve.most_waiting,
    )
    return service


def _opened(cfg: DictConfig, stated: Collection[str], store: Store) -> Opened:
    """Open the memory and load its embedder. One that is not read-only is made if there is none."""
    use_threads(cfg)
    # The cache of vectors lets one process embed at a time, and a question would wait for a whole write; the
    # index keeps its vectors itself. What is read-only keeps no replies either.
    without_cache = _without_cache(cfg)
    cfg = without_cache if store.read_only else cfg
    models = build_models(cfg)
    new = not store.is_made
    if new and store.read_only:
        store.require_made()
    own = (
        build_embedder(without_cache) if new or "embedder" in stated else kept_embedder(without_cache, store)
    )
    embedder = SharedEmbedder(embedder=own)
    extractor = AbsentExtractor() if store.read_only else build_extractor(cfg, models)
    chunker = build_chunker(cfg)
    memory = HippoRAG.open(
        store.directory,
        embedder=embedder,
        extractor=extractor,
        chunker=chunker,
        text=build_text(cfg) if new or "text" in stated else None,
        graph=build_graph_options(cfg) if new or "graph" in stated else None,
        make_retriever=build_make_retriever(cfg, embedder, models),
        vectors=cfg.index.vectors,
        settings=embedder_settings(cfg, embedder.identity) if new else "{}",
        read_only=store.read_only,
        wait_seconds=store.wait_seconds,
    )
    reader = build_reader(cfg, memory, models)
    embedder.embed(["Is it there?"], "question_to_passage")
    return Opened(memory, extractor, reader, chunker, cfg.reader.get("qa_top_k", 5))


def _without_cache(cfg: DictConfig) -> DictConfig:
    return cast(DictConfig, OmegaConf.merge(cfg, {"runtime": {"cache": False}}))


def _strings(node: Any, key: str) -> list[str]:
    values = plain(node)
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise ConfigError(f"{key} must be a list of strings, got {values!r}")
    return values
