"""Opening the index of a call, with errors that name the next command."""

import shlex
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from hipporag_torch.cli.settings import OPENS, Settings
from hipporag_torch.config import build_reader, takes_part, use_threads, what_is_read
from hipporag_torch.errors import StoreError
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.opening import open_index, store_of
from hipporag_torch.protocols import Reader
from hipporag_torch.store.store import Store


def require_index(settings: Settings) -> Store:
    """The store of the call's index. Raises `StoreError` that says how to make one if there is none."""
    store = store_of(settings.cfg)
    if not store.is_made:
        path = shlex.quote(str(store.directory))
        raise StoreError(
            f"there is no index in {store.directory} (looked from {Path.cwd()}); name another with --index, "
            f"or make it: hipporag-torch index-folder PATH --index {path}"
        )
    return store


def open_as_it_is(settings: Settings, *, read_only: bool = False) -> HippoRAG:
    """The index, without a model."""
    require_index(settings)
    return open_index(without_retriever(settings.cfg), settings.stated, read_only=read_only)


def without_retriever(cfg: DictConfig) -> DictConfig:
    """What decides how an index is opened, without how it is searched, which would need an embedder."""
    return OmegaConf.masked_copy(cfg, sorted(OPENS))


def open_for_questions(settings: Settings, models: ChatModels, *, reads: bool) -> HippoRAG:
    """The index with what finding passages needs, and if it `reads`, reading them."""
    require_index(settings)
    cfg = settings.cfg
    use_threads(cfg)
    embeds = what_is_read(cfg) != "texts" or (reads and takes_part(cfg, "reader", "embedder"))
    return open_index(cfg, settings.stated, embeds=embeds, models=models)


def reader_of(settings: Settings, memory: HippoRAG, models: ChatModels) -> Reader:
    """The reader of the call's settings."""
    return build_reader(settings.cfg, memory, models)
