"""Linkers as configs describe them, and what a dry run says of them."""

import json
from pathlib import Path

import pytest

from hipporag_torch.chat import Usage
from hipporag_torch.config import build_linker, build_make_retriever, build_memory, build_models, compose
from hipporag_torch.costs import Typical
from hipporag_torch.dry_run import question_costs
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.linkers import Linker, LLMLinker, NgramLinker, NoLinker, SpacyLinker
from hipporag_torch.types import Document

SMALL = ["embedder=hashing", "extractor=none", "runtime.cache=false", "runtime.device=cpu"]
QUESTIONS = ["Where is Oslo?", "Who is it?"]


@pytest.fixture
def scripted(tmp_path: Path) -> list[str]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps([{"reply": {"entities": ["Oslo"]}}]), encoding="utf-8")
    return ["llm=scripted", f"llm.replies={rules}"]


@pytest.mark.parametrize(
    ("option", "kind"),
    [("ngram", NgramLinker), ("spacy", SpacyLinker), ("llm", LLMLinker), ("none", NoLinker)],
)
def test_every_option_is_built(option: str, kind: type[Linker], scripted: list[str]) -> None:
    assert type(build_linker(compose("retrieve", [*SMALL, *scripted, f"linker={option}"]))) is kind


@pytest.mark.parametrize(
    ("overrides", "loaded"),
    [
        (["linker=llm"], 1),
        (["linker=llm", "seeding=reference"], 0),
        (["linker=llm", "seeding.share_entities=0.0"], 0),
        (["linker=ngram"], 0),
    ],
)
def test_a_model_is_made_only_where_links_are_wanted(
    overrides: list[str], loaded: int, scripted: list[str]
) -> None:
    cfg = compose("retrieve", [*SMALL, *scripted, *overrides])
    models = build_models(cfg)
    build_make_retriever(cfg, HashingEmbedder(), models)
    assert models.num_loaded == loaded
    costs = question_costs(cfg, models, QUESTIONS, Typical.of([], []))
    assert ("linking" in costs) == bool(loaded)


def test_linking_is_estimated_for_every_retrieval(scripted: list[str]) -> None:
    cfg = compose("retrieve", [*SMALL, *scripted, "linker=llm", "ircot=on", "linker.max_tokens=7"])
    cost = question_costs(cfg, build_models(cfg), QUESTIONS, Typical.of([], []))["linking"]
    assert (cost.usage.calls, cost.usage.completion_tokens) == (6, 42)
    assert cost.usage.prompt_tokens > 6 * 100


@pytest.mark.parametrize(("ircot", "name"), [("off", "replies.sqlite"), ("on", "derived_replies.sqlite")])
def test_thoughts_that_are_linked_keep_their_replies_with_what_is_derived(
    ircot: str, name: str, scripted: list[str], tmp_path: Path
) -> None:
    cache = ["runtime.cache=true", f"runtime.cache_dir={tmp_path / 'cache'}"]
    cfg = compose("retrieve", [*SMALL, *scripted, "linker=llm", f"ircot={ircot!r}", *cache])
    models = build_models(cfg)
    memory = build_memory(cfg, models)
    memory.add([Document("Oslo.")])
    index, embedder = memory.index, memory.embedder
    for expected in (Usage(calls=1), Usage(cached_calls=1)):
        links = build_linker(cfg, models).link(index, embedder, QUESTIONS[:1])
        assert (links.usage[0].calls, links.usage[0].cached_calls) == (expected.calls, expected.cached_calls)
    assert [path.name for path in (tmp_path / "cache").glob("*replies.sqlite")] == [name]


def test_a_role_of_its_own(scripted: list[str], tmp_path: Path) -> None:
    own = [
        "llm@linking_llm=scripted",
        f"linking_llm.replies={tmp_path / 'rules.json'}",
        "linking_llm.model=small",
    ]
    models = build_models(compose("retrieve", [*SMALL, *scripted, *own]))
    assert (models.get("linking").identity.model, models.get("filter").identity.model) == (
        "small",
        "scripted",
    )
