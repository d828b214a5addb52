"""Memories in directories as a config describes them: what is stated is asked for, the rest the index knows.

In a notebook:

    overrides = ["index.path=my_index", "dataset=sample", "extractor=sample"]
    memory = open_memory(compose("retrieve", overrides), overrides)
"""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from omegaconf import DictConfig

from hipporag_torch.config import (
    build_chunker,
    build_embedder,
    build_extractor,
    build_graph_options,
    build_kept_embedder,
    build_make_retriever,
    build_memory,
    build_models,
    build_text,
    embedder_settings,
    stated_groups,
    stated_keys,
    use_threads,
    what_is_read,
)
from hipporag_torch.embedders.none import NoEmbedder
from hipporag_torch.errors import BudgetError, CompatibilityError, ConfigError, StoreError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.index import Index
from hipporag_torch.indexer import Indexer
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.protocols import Chunker, Embedder, Extractor, Progress
from hipporag_torch.reports import AddReport
from hipporag_torch.statistics import index_stats
from hipporag_torch.store.store import Store
from hipporag_torch.types import Document


def store_of(cfg: DictConfig, *, read_only: bool = False) -> Store:
    """The directory of `cfg.index`. Raises `ConfigError` if none is named."""
    if cfg.index.path is None:
        raise ConfigError("index.path is not set; give the index directory as index.path=DIR")
    seconds = cfg.index.wait_seconds
    if seconds is not None and type(seconds) not in (int, float):
        raise ConfigError(f"index.wait_seconds must be a number of seconds, or null, got {seconds!r}")
    if type(cfg.index.read_only) is not bool:
        raise ConfigError(f"index.read_only must be true or false, got {cfg.index.read_only!r}")
    return Store(
        str(cfg.index.path),
        read_only=read_only or cfg.index.read_only,
        wait_seconds=seconds,
    )


def lacks_corpus(cfg: DictConfig) -> bool:
    """Whether the memory of `cfg` has to be filled before it is asked.

    True for one in this process, for a directory without an index, and for an index into which nothing
    was ever put because making it was interrupted; a read-only one is taken as it is.
    """
    if cfg.index.path is None:
        return True
    store = store_of(cfg)
    if store.read_only:
        store.require_made()
        return False
    return not store.is_made or store.identity().main.generation == 0


def open_memory(
    cfg: DictConfig,
    overrides: Sequence[str] = (),
    *,
    fills: bool | None = None,
    models: ChatModels | None = None,
) -> HippoRAG:
    """The memory that `cfg` describes: in this process, or in the directory `cfg.index.path`.

    An index that exists is opened and nothing is built: text and graph options and the embedder are
    those it was made with; what `overrides` states of them has to agree, or `CompatibilityError` names
    both sides. An index that does not exist is made, with embedder and extractor whatever the retriever.

    overrides: those that `cfg` was composed with. fills: whether documents will be added; None looks.
    models: those of the run; None makes them from `cfg`.
    """
    if cfg.index.path is None:
        given = [key for key in stated_keys(overrides) if key.startswith("index.") and key != "index.path"]
        if given:
            raise ConfigError(
                f"{given[0]} is for an index in a directory; give index.path=DIR, or leave it out"
            )
        return build_memory(cfg, models)
    use_threads(cfg)
    models = models or build_models(cfg)
    fills = lacks_corpus(cfg) if fills is None else fills
    return open_index(
        cfg,
        stated_groups(overrides),
        embeds=fills or what_is_read(cfg) != "texts",
        extractor=build_extractor(cfg, models) if fills else None,
        chunker=build_chunker(cfg),
        makes=fills,
        models=models,
    )


def fill(memory: HippoRAG, documents: Sequence[Document], progress: Progress) -> AddReport:
    """Add the corpus that is then searched: all of it, since half of one answers nothing well.

    Raises `BudgetError` if a budget was spent on the way; what it had reached is kept, in a directory.
    """
    report = memory.add(documents, progress)
    if report.stopped:
        raise BudgetError(f"{report.stopped}; {len(report.left):,} passages are left, run it again with more")
    return report


def open_index(
    cfg: DictConfig,
    stated: Collection[str],
    *,
    embeds: bool = False,
    extractor: Extractor | None = None,
    chunker: Chunker | None = None,
    makes: bool = False,
    read_only: bool = False,
    vectors: bool = True,
    models: ChatModels | None = None,
) -> HippoRAG:
    """The index `cfg.index.path`, with its own identity, and with those groups of `cfg` that are `stated`.

    embeds: whether an embedder is needed; if none is stated it is built again as the index remembers.
    makes: whether to make the index if there is none. vectors: whether `cfg.index.vectors` has to hold.
    """
    store = store_of(cfg, read_only=read_only)
    new = not store.is_made
    if new and not makes:
        store.require_made()
    embedder: Embedder | None = None
    if new or "embedder" in stated:
        embedder = build_embedder(cfg)
    elif embeds:
        embedder = kept_embedder(cfg, store)
    make_retriever = None
    if "retriever" in cfg:
        make_retriever = build_make_retriever(cfg, embedder or NoEmbedder(), models)
    return HippoRAG.open(
        store.directory,
        embedder=embedder,
        extractor=extractor,
        chunker=chunker,
        text=build_text(cfg) if new or "text" in stated else None,
        graph=build_graph_options(cfg) if new or "graph" in stated else None,
        make_retriever=make_retriever,
        vectors=cfg.index.vectors if vectors else None,
        settings="{}" if embedder is None else embedder_settings(cfg, embedder.identity) if new else "{}",
        read_only=store.read_only,
        wait_seconds=store.wait_seconds,
    )


def kept_embedder(cfg: DictConfig, store: Store) -> Embedder:
    """The main embedder of an index, built as the index remembers it."""
    main = store.identity().main
    embedder = build_kept_embedder(cfg, main.settings, main.identity, store.directory)
    if embedder.identity != main.identity:
        raise CompatibilityError(
            f"the index {store.directory} was built with {main.identity}, but what it says of its embedder "
            f"now makes {embedder.identity}: the model has changed; state the embedder that it was built "
            "with, or reembed with this one"
        )
    return embedder


def repairing_embedder(cfg: DictConfig, stated: Collection[str]) -> Embedder | None:
    """The index's main embedder: the one stated, else as the index remembers it, if it does.

    None makes an error of it only if vectors were lost.
    """
    store = store_of(cfg)
    if "embedder" in stated:
        embedder, main = build_embedder(cfg), store.identity().main.identity
        if embedder.identity != main:
            raise CompatibilityError(
                f"the main embedder of {store.directory} is {main}, but {embedder.identity} was stated; "
                "repair with the main one, or leave it out"
            )
        return embedder
    try:
        return kept_embedder(cfg, store)
    except (ConfigError, CompatibilityError, StoreError):
        return None


def planning_memory(
    cfg: DictConfig, *, extractor: Extractor | None = None, chunker: Chunker | None = None
) -> HippoRAG:
    """An empty memory that stands for an index that is not made yet; it can only plan."""
    indexer = Indexer(
        embedder=NoEmbedder(),
        extractor=extractor or build_extractor(cfg),
        chunker=chunker,
        text=build_text(cfg),
        graph=build_graph_options(cfg),
    )
    return HippoRAG(indexer=indexer)


def report_of(index: Index) -> AddReport:
    """What adding everything in `index` at once would have reported, but for what only adding can tell.

    `truncated` and `seconds` are empty, and nothing counts as added.
    """
    stating = set(index.statements.passage_idx.tolist())
    dropped: Counter[str] = Counter()
    for extraction in index.extractions:
        dropped.update(extraction.dropped)
    return AddReport(
        documents=0,
        passages_added=0,
        passages_known=len(index.passages),
        phrases_added=0,
        facts_added=0,
        failed=index_stats(index, None).failed,
        without_facts=tuple(
            passage.id
            for row, passage in enumerate(index.passages)
            if row not in stating and passage.id not in index.failed
        ),
        dropped=dict(sorted(dropped.items())),
    )


def named_path(cfg: DictConfig, key: str) -> Path:
    """The path that a dotted key of `cfg` names. Raises `ConfigError` if it is not set."""
    group, _, name = key.partition(".")
    value = cfg[group][name]
    if value is None:
        raise ConfigError(f"{key} is not set; give it as {key}=PATH")
    return Path(str(value))
