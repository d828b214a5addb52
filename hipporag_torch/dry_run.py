"""What a run that a config describes would ask of language models. Nothing is asked, embedded or written."""

from collections.abc import Iterable, Sequence

from omegaconf import DictConfig

from hipporag_torch.asking import load_prompt_for
from hipporag_torch.config import (
    build_chunker,
    build_extractor,
    build_seeding,
    build_text,
    takes_part,
    thinks,
    what_is_read,
)
from hipporag_torch.costs import Costs, Typical, filter_usage, linking_usage, reading_usage, thoughts_usage
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.opening import planning_memory, store_of
from hipporag_torch.prompts import READER_PROMPTS
from hipporag_torch.sources import documents_of, pieces_of
from hipporag_torch.types import Document, Fact


def run_costs(
    cfg: DictConfig,
    models: ChatModels,
    questions: Sequence[str],
    documents: Iterable[Document] | None,
) -> dict[str, Costs]:
    """The costs by what they are for; only what a model would be asked for.

    documents: what the memory would be filled with first; None opens the index of `cfg` as it is.
    """
    costs: dict[str, Costs] = {}
    if documents is None:
        store = store_of(cfg, read_only=True)
        with HippoRAG.open(store.directory, read_only=True, wait_seconds=store.wait_seconds) as memory:
            typical = Typical.of([passage.text for passage in memory.index.passages], memory.index.facts)
    else:
        documents = documents_of(documents)
        typical = _typical_of(cfg, documents)
        if (cfg.index.path is not None or what_is_read(cfg) == "graph") and takes_part(
            cfg, "extractor", "llm"
        ):
            extractor = build_extractor(cfg, models)
            plan = planning_memory(cfg, extractor=extractor, chunker=build_chunker(cfg)).plan_add(documents)
            costs["extraction"] = Costs(plan.usage, models.prices("extraction"))
    return costs | question_costs(cfg, models, questions, typical)


def question_costs(
    cfg: DictConfig, models: ChatModels, questions: Sequence[str], typical: Typical
) -> dict[str, Costs]:
    """What linking, filtering, thinking and reading would cost for some questions."""
    costs: dict[str, Costs] = {}
    retrievals = cfg.ircot.max_steps if thinks(cfg) else 1
    seeding = build_seeding(cfg) if takes_part(cfg, "retriever", "seeding") else None
    if seeding is not None and seeding.wants_links and takes_part(cfg, "linker", "llm"):
        its = cfg.linker
        usage = linking_usage(
            models.get("linking", derived=thinks(cfg)),
            load_prompt_for(its.prompt, {"question"}, "linker.prompt"),
            questions,
            max_tokens=its.max_tokens,
            retrievals=retrievals,
        )
        costs["linking"] = Costs(usage, models.prices("linking"))
    if seeding is not None and takes_part(cfg, "fact_filter", "llm"):
        its = cfg.fact_filter
        usage = filter_usage(
            models.get("filter", derived=True),
            load_prompt_for(its.prompt, {"question", "facts"}, "fact_filter.prompt"),
            questions,
            typical,
            num_facts=seeding.num_facts,
            max_tokens=its.max_tokens,
            retrievals=retrievals,
        )
        costs["filter"] = Costs(usage, models.prices("filter"))
    if thinks(cfg) and retrievals > 1:
        its = cfg.ircot
        usage = thoughts_usage(
            models.get("reading", derived=True),
            load_prompt_for(its.prompt, {"question", "passages", "thoughts"}, "ircot.prompt"),
            questions,
            typical,
            num_passages=its.passages_shown,
            max_tokens=its.max_tokens,
            retrievals=retrievals,
        )
        costs["thoughts"] = Costs(usage, models.prices("reading"))
    if "reader" in cfg and takes_part(cfg, "reader", "llm"):
        its = cfg.reader
        prompt = str(READER_PROMPTS.get(its.family, its.family) if its.prompt is None else its.prompt)
        usage = reading_usage(
            models.get("reading"),
            load_prompt_for(prompt, {"question", "passages"}, "reader.prompt"),
            questions,
            typical,
            num_passages=its.qa_top_k,
            max_tokens=its.max_tokens,
        )
        costs["reading"] = Costs(usage, models.prices("reading"))
    return costs


def _typical_of(cfg: DictConfig, documents: Sequence[Document]) -> Typical:
    pieces = pieces_of(documents, build_chunker(cfg), build_text(cfg))
    no_facts: tuple[Fact, ...] = ()
    return Typical.of([piece.text for piece in pieces], no_facts)
