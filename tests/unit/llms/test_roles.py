"""Roles share what is equal, keep apart what is not, and make nothing that is not asked for."""

from pathlib import Path

import pytest

from hipporag_torch.chat import Message, Usage
from hipporag_torch.config import build_models, build_reader, compose
from hipporag_torch.errors import BudgetError, ConfigError
from hipporag_torch.llms.budget import Budget
from hipporag_torch.llms.cache import ReplyCache, ReplyCaches
from hipporag_torch.llms.roles import ROLES, ChatModels, ModelRole
from hipporag_torch.llms.scripted import ScriptedChatModel

ASK = [(Message("user", "Who is it?"),)]


class Maker:
    """Makes scripted models, and keeps them."""

    def __init__(self) -> None:
        self.made: dict[ModelRole, ScriptedChatModel] = {}

    def __call__(self, role: ModelRole) -> ScriptedChatModel:
        model = ScriptedChatModel(replies={"Who is it?": "Ada."}, prompt_price=1.0, completion_price=2.0)
        self.made[role] = model
        return model


def same(**others: str) -> dict[ModelRole, str]:
    return {role: others.get(role, "a model") for role in ROLES}


def test_equal_settings_are_one_model_and_each_role_has_its_own_count() -> None:
    make = Maker()
    models = ChatModels(settings=same(), make=make)
    assert make.made == {}
    models.get("extraction").reply(ASK)
    models.get("reading").reply(ASK)
    models.get("reading", derived=True).reply(ASK)
    assert list(make.made) == ["extraction"]
    assert make.made["extraction"].calls == 3
    one = Usage(calls=1, prompt_tokens=3, completion_tokens=1)
    assert models.usage == {"extraction": one, "reading": one + one}


def test_other_settings_are_another_model() -> None:
    make = Maker()
    models = ChatModels(settings=same(filter="another"), make=make)
    for role in ROLES:
        models.get(role).reply(ASK)
    assert models.num_loaded == 2
    assert {role: model.calls for role, model in make.made.items()} == {"extraction": 3, "filter": 1}


def test_one_budget_for_all_roles_and_the_cache_is_free(tmp_path: Path) -> None:
    caches = ReplyCaches(ReplyCache(tmp_path / "a"), ReplyCache(tmp_path / "b"))
    models = ChatModels(settings=same(), make=Maker(), budget=Budget(calls=2), caches=caches)
    models.get("extraction").reply(ASK)
    models.get("filter", derived=True).reply(ASK)
    models.get("reading").reply(ASK)
    assert models.usage["reading"].cached_calls == 1
    with pytest.raises(BudgetError, match="2 of 2 calls spent"):
        models.get("reading").reply([(Message("user", "And who else?"),)])


def test_prices_are_those_of_the_roles_model() -> None:
    models = ChatModels(settings=same(), make=Maker())
    assert models.prices("reading") is None
    models.get("extraction")
    prices = models.prices("reading")
    assert prices is not None
    assert prices.completion == 2.0


def test_what_was_made_of_removed_passages_goes_whole(tmp_path: Path) -> None:
    caches = ReplyCaches(ReplyCache(tmp_path / "a"), ReplyCache(tmp_path / "b"))
    models = ChatModels(
        settings=same(), make=lambda _: ScriptedChatModel(replies=lambda _: "x"), caches=caches
    )
    models.get("extraction").reply([(Message("user", f"The passage {name}"),) for name in ("Ada", "Tove")])
    models.get("filter", derived=True).reply([(Message("user", "1. press | prints | atlases"),)])
    assert caches.drop(["Ada"]) == 2
    assert b"atlases" not in (tmp_path / "b").read_bytes()
    assert b"tove" in (tmp_path / "a").read_bytes()
    assert caches.drop([]) == 0


def test_a_config_without_a_model_says_so() -> None:
    with pytest.raises(ConfigError, match="a language model is needed for filter"):
        ChatModels(settings={}, make=Maker()).get("filter")


def test_roles_of_a_config(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('[{"reply": "Ada."}]', encoding="utf-8")
    rules = tmp_path / "rules.json"
    common = ["llm=scripted", f"llm.replies={rules}", "runtime.cache=false"]
    models = build_models(compose("answer", common))
    for role in ROLES:
        models.get(role)
    assert models.num_loaded == 1
    equal = ["llm@filter_llm=scripted", f"filter_llm.replies={rules}"]
    models = build_models(compose("answer", [*common, *equal]))
    for role in ROLES:
        models.get(role)
    assert models.num_loaded == 1
    models = build_models(compose("answer", [*common, *equal, "filter_llm.model=other"]))
    assert [models.get(role).identity.model for role in ROLES] == [
        "scripted",
        "scripted",
        "other",
        "scripted",
    ]
    assert models.num_loaded == 2


def test_a_reader_that_sees_thoughts_keeps_its_replies_with_what_is_derived(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('[{"reply": "Answer: Ada"}]', encoding="utf-8")
    from hipporag_torch.config import build_memory
    from hipporag_torch.types import Passage, Ranking

    for flag, name in (("true", "derived_replies.sqlite"), ("false", "replies.sqlite")):
        folder = tmp_path / flag
        overrides = [
            "llm=scripted",
            f"llm.replies={tmp_path / 'rules.json'}",
            f"runtime.cache_dir={folder}",
            "runtime.device=cpu",
            "embedder=hashing",
            "extractor=none",
            f"reader.thoughts_to_reader={flag}",
        ]
        cfg = compose("answer", overrides)
        reader = build_reader(cfg, build_memory(cfg))
        ranking = Ranking("Who?", (Passage("p", "Ada."),), (1.0,), "graph", thoughts=("It is secret.",))
        assert reader.read([ranking])[0].text == "Ada"
        assert [path.name for path in folder.glob("*replies*")] == [name]
