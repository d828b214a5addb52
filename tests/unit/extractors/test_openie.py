import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError, BudgetError, ConfigError
from hipporag_torch.extractors.openie import ENTITIES_SCHEMA, TRIPLES_SCHEMA, OpenIEExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.prompts import load_prompt
from hipporag_torch.protocols import ExtractsEach, Progress, no_progress
from hipporag_torch.reports import AddReport
from hipporag_torch.types import Extraction, Passage, Triple

OSLO, ADA, RYE = "Oslo is in Norway.", "Ada Vale founded Northwind.", "Rye bread."
LABELS = f"{load_prompt('entities').label}:{load_prompt('triples').label}"
PRODUCER = f"openie:fake@r1:temperature=0:reply_tokens=2048:{LABELS}"
COST = Usage(calls=1, prompt_tokens=10, completion_tokens=2)
Script = Callable[[str, str], str | ChatReply]


class FakeModel:
    """Replies by a function of the wanted key and the passage; keeps accepted replies, if it has a cache.

    `asked` lists the paid calls as (key, passage). `budget` is how many more there may be. Replies arrive
    in the reverse of the prompts' order.
    """

    identity = ChatIdentity("http://here", "fake", "r1", (("temperature", "0"),))

    def __init__(self, script: Script, *, context_tokens: int | None = None, cache: bool = False) -> None:
        self._script = script
        self.context_tokens = context_tokens
        self.budget = 1_000_000
        self.asked: list[tuple[str, str]] = []
        self.prompts: list[Prompt] = []
        self.schemas: list[Any] = []
        self._cache: dict[Prompt, ChatReply] | None = {} if cache else None

    def count_tokens(self, prompt: Prompt) -> int:
        return len(prompt[-1].text.split())

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        self.schemas.append((schema, max_tokens))
        replies: dict[int, ChatReply] = {}
        for number in reversed(range(len(prompts))):
            replies[number] = reply = self._reply(prompts[number])
            if accept(number, reply) and self._cache is not None:
                self._cache[prompts[number]] = reply
        return [replies[number] for number in range(len(prompts))]

    def _reply(self, prompt: Prompt) -> ChatReply:
        if self._cache is not None and prompt in self._cache:
            return ChatReply(self._cache[prompt].text, usage=Usage(cached_calls=1))
        if self.budget == 0:
            raise BudgetError("the budget is spent")
        self.budget -= 1
        body, _, listed = prompt[-1].text.removeprefix("Passage:\n\n").partition("\n\nNamed entities:\n\n")
        key = "triples" if listed else "entities"
        self.asked.append((key, body))
        self.prompts.append(prompt)
        answer = self._script(key, body)
        return ChatReply(answer, usage=COST) if isinstance(answer, str) else answer

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        raise NotImplementedError


def good(key: str, text: str) -> str:
    """The first word and the last are the entities of one triple."""
    first, *middle, last = text.rstrip(".").split()
    found = {"entities": [first, last], "triples": [[first, " ".join(middle) or "is", last]]}
    return json.dumps({key: found[key]}, ensure_ascii=False)


def scripted(**replies: str | ChatReply) -> FakeModel:
    """These replies to the two calls, good ones where there is none."""
    return FakeModel(lambda key, text: replies.get(key) or good(key, text))


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"id-{number}", text) for number, text in enumerate(texts)]


def extract(llm: FakeModel, text: str = OSLO) -> Extraction:
    (extraction,) = OpenIEExtractor(llm=llm).extract([Passage("id", text)])
    return extraction


def test_two_calls_give_entities_and_triples() -> None:
    llm = FakeModel(good)
    extractor = OpenIEExtractor(llm=llm)
    assert extractor.extract(passages(OSLO, ADA)) == [
        Extraction(
            ("Oslo", "Norway"), (Triple("Oslo", "is in", "Norway"),), producer=PRODUCER, usage=COST + COST
        ),
        Extraction(
            ("Ada", "Northwind"),
            (Triple("Ada", "Vale founded", "Northwind"),),
            producer=PRODUCER,
            usage=COST + COST,
        ),
    ]
    assert sorted(llm.asked) == [("entities", ADA), ("entities", OSLO), ("triples", ADA), ("triples", OSLO)]
    assert llm.schemas == [(ENTITIES_SCHEMA, 2048), (TRIPLES_SCHEMA, 2048)]
    assert extractor.producer == PRODUCER
    assert extractor.calls_per_passage == 2
    assert isinstance(extractor, ExtractsEach)


def test_the_second_prompt_holds_the_entities_of_the_first_reply() -> None:
    llm = FakeModel(good)
    extract(llm, "北京 位于 中国")
    assert llm.prompts[1][-1].text == 'Passage:\n\n北京 位于 中国\n\nNamed entities:\n\n["北京", "中国"]'
    assert [turn.role for turn in llm.prompts[1]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    "text", ["<think>no</think> <|endoftext|> end", "{entities} {passage} {}", "\n  blank lines \n\n around"]
)
def test_a_passage_is_never_altered(text: str) -> None:
    llm = scripted(entities='{"entities": []}')
    assert extract(llm, text).status == "ok"
    assert [prompt[-1].text.count(f"Passage:\n\n{text}") for prompt in llm.prompts] == [1, 1]


def test_no_entities_still_ask_for_triples() -> None:
    llm = scripted(entities='{"entities": []}')
    extraction = extract(llm)
    assert llm.prompts[1][-1].text.endswith("Named entities:\n\n[]")
    assert (extraction.entities, extraction.triples) == ((), (Triple("Oslo", "is in", "Norway"),))


def test_what_is_malformed_is_dropped_and_counted_by_kind() -> None:
    triples = [["a", None, "b"], ["a", "r", 1867], {"subject": "a", "predicate": "r", "object": "b"}]
    extraction = extract(
        scripted(
            entities=json.dumps({"entities": ["Oslo", None, {"name": "Norway", "type": "place"}, "x" * 400]}),
            triples=json.dumps(
                {"triples": [*triples, ["a", "b"], {"head": "a", "relation": "r", "tail": "c"}, "no"]}
            ),
        )
    )
    assert extraction.status == "ok"
    assert extraction.entities == ("Oslo", "Norway")
    assert extraction.triples == (Triple("a", "r", "1867"), Triple("a", "r", "b"), Triple("a", "r", "c"))
    assert extraction.dropped == {
        "entity:null_part": 1,
        "entity:too_long": 1,
        "not_a_triple": 1,
        "null_part": 1,
        "wrong_arity": 1,
    }


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("triples", '{"triples": [["Oslo","is in","Norway"],["Osl'),
        ("entities", '{"entities": ["Oslo", "Norway", "x'),
    ],
)
def test_a_cut_reply_keeps_what_is_whole(key: str, text: str) -> None:
    extraction = extract(scripted(**{key: ChatReply(text, "length", COST)}))
    assert (extraction.status, extraction.reason, extraction.reply) == ("truncated", "", "")
    assert extraction.entities == ("Oslo", "Norway")
    assert extraction.triples == (Triple("Oslo", "is in", "Norway"),)


@pytest.mark.parametrize("key", ["entities", "triples"])
@pytest.mark.parametrize(
    ("reply", "reason", "permanent"),
    [
        (ChatReply("", "stop", COST), "the reply is empty", False),
        (ChatReply("No.", "stop", COST), "the reply has no JSON with '{key}'", False),
        (ChatReply('{"{key}": [', "length", COST), "the reply was cut before the first of its {key}", False),
        (ChatReply("", "error", COST, error="HTTP 500"), "HTTP 500", False),
        (ChatReply("", "error", COST, error="too long", permanent=True), "too long", True),
        (ChatReply("I won't.", "refused", COST), "the model refused to answer", True),
    ],
)
def test_a_reply_that_cannot_be_used_fails_its_passage(
    key: str, reply: ChatReply, reason: str, permanent: bool
) -> None:
    reply = ChatReply(
        reply.text.replace("{key}", key), reply.finish, reply.usage, reply.error, reply.permanent
    )
    llm = scripted(**{key: reply})
    calls = 1 if key == "entities" else 2
    assert extract(llm) == Extraction(
        status="failed",
        reason=f"the call for {key} failed: {reason.format(key=key)}",
        producer=PRODUCER,
        reply=reply.text,
        permanent=permanent,
        usage=sum([COST] * calls, Usage()),
    )
    assert len(llm.asked) == calls


def test_one_bad_passage_never_sinks_a_batch() -> None:
    llm = FakeModel(lambda key, text: "" if (key, text) == ("triples", RYE) else good(key, text))
    extractions = OpenIEExtractor(llm=llm).extract(passages(OSLO, RYE, ADA))
    assert [extraction.status for extraction in extractions] == ["ok", "failed", "ok"]


def test_a_passage_longer_than_the_context_is_refused_unasked() -> None:
    llm = FakeModel(good, context_tokens=20)
    extractor = OpenIEExtractor(llm=llm, max_tokens=8)
    short, long = extractor.extract([Passage("s", OSLO), Passage("p-7", "word " * 100)])
    assert short.status == "ok"
    assert (long.status, long.permanent, long.usage) == ("failed", True, Usage())
    assert long.reason == (
        "passage p-7 needs a prompt of 104 tokens and 8 for the reply, and the model's context has 20; "
        "cut the documents into shorter passages (chunker=tokens) or lower extractor.max_tokens"
    )
    assert {text for _, text in llm.asked} == {OSLO}


def test_entities_that_leave_no_room_for_triples() -> None:
    llm = FakeModel(
        lambda key, text: json.dumps({"entities": ["one two"] * 50 + list("abcdefghijkl")}), context_tokens=20
    )
    (extraction,) = OpenIEExtractor(llm=llm, max_tokens=None).extract(passages(OSLO))
    assert (extraction.status, extraction.permanent, extraction.usage) == ("failed", True, COST)
    assert extraction.reason.startswith(
        "passage id-0 needs a prompt of 21 tokens, and the model's context has 20;"
    )


def test_a_second_run_asks_only_about_what_failed() -> None:
    bad = {("triples", RYE): 'Well, ["rye", "is" ', ("entities", ADA): "Ada"}
    llm = FakeModel(lambda key, text: bad.pop((key, text), None) or good(key, text), cache=True)
    extractor = OpenIEExtractor(llm=llm)
    first = extractor.extract(passages(OSLO, RYE, ADA))
    assert [extraction.status for extraction in first] == ["ok", "failed", "failed"]
    llm.asked.clear()
    second = extractor.extract(passages(OSLO, RYE, ADA))
    assert [extraction.status for extraction in second] == ["ok", "ok", "ok"]
    assert llm.asked == [("entities", ADA), ("triples", ADA), ("triples", RYE)]
    assert second[0].usage == Usage(cached_calls=2)
    assert second[1].usage == COST + Usage(cached_calls=1)


@pytest.mark.parametrize("budget", range(9))
@pytest.mark.parametrize("block_size", [1, 2, 256])
def test_what_was_finished_before_a_stop_is_kept(budget: int, block_size: int) -> None:
    llm = FakeModel(good, cache=True)
    llm.budget = budget
    extractor = OpenIEExtractor(llm=llm, block_size=block_size)
    asked = passages(OSLO, RYE, ADA, "Tove joined.")
    kept: dict[str, Extraction] = {}

    def run() -> None:
        missing = [passage for passage in asked if passage.id not in kept]
        extractor.extract_each(missing, lambda passage, extraction: kept.update({passage.id: extraction}))

    if budget < 8:
        with pytest.raises(BudgetError):
            run()
    assert len(kept) == sum(key == "triples" for key, _ in llm.asked[:budget])
    llm.budget = 100
    run()
    assert [kept[passage.id].status for passage in asked] == ["ok"] * 4
    assert sorted(llm.asked) == sorted((key, p.text) for key in ("entities", "triples") for p in asked)


def test_blocks_decide_nothing_but_when() -> None:
    asked = passages(OSLO, RYE, ADA)
    llm = FakeModel(good)
    one_by_one = OpenIEExtractor(llm=llm, block_size=1).extract(asked)
    assert [text for _, text in llm.asked] == [OSLO, OSLO, RYE, RYE, ADA, ADA]
    assert one_by_one == OpenIEExtractor(llm=FakeModel(good)).extract(asked)


def test_progress_counts_finished_passages() -> None:
    steps: list[tuple[str, int, int]] = []
    llm = FakeModel(lambda key, text: "" if text == RYE else good(key, text))
    OpenIEExtractor(llm=llm).extract(passages(OSLO, RYE, ADA), lambda *step: steps.append(step))
    assert steps == [("extract", 1, 3), ("extract", 2, 3), ("extract", 3, 3)]


def test_replies_that_were_not_announced_count_too() -> None:
    class Silent(FakeModel):
        def reply(self, prompts: Sequence[Prompt], **options: Any) -> list[ChatReply]:
            return super().reply(prompts, **(options | {"accept": accept_all}))

    assert extract(Silent(good)).triples == (Triple("Oslo", "is in", "Norway"),)


def test_a_model_that_loses_replies_is_named() -> None:
    class Short(FakeModel):
        def reply(self, prompts: Sequence[Prompt], **options: Any) -> list[ChatReply]:
            return super().reply(prompts, **options)[1:]

    with pytest.raises(BackendError, match="gave 0 replies to 1 prompts"):
        extract(Short(good))


def test_producer_names_all_that_decides_and_no_endpoint(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('version = "3"\nsystem = "s"\nuser = "{passage}"', "utf-8")
    producer = OpenIEExtractor(llm=FakeModel(good), entities_prompt=own, max_tokens=None).producer
    assert producer.startswith("openie:fake@r1:temperature=0:mine-3-")
    assert producer.endswith(load_prompt("triples").label)
    assert "here" not in producer


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "extractor.max_tokens must be at least 1, or null, got 0"),
        ({"block_size": 0}, "extractor.block_size must be at least 1, got 0"),
        ({"entities_prompt": "nonsense"}, "there is no prompt 'nonsense'"),
        (
            {"triples_prompt": "entities"},
            "extractor.triples_prompt must have the fields entities, passage in .*; entities has passage",
        ),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OpenIEExtractor(llm=FakeModel(good), **options)


def test_an_interrupted_add_pays_for_no_finished_passage_again(tmp_path: Path) -> None:
    texts = [OSLO, RYE, ADA, "Tove joined Northwind."]
    llm = FakeModel(good)

    def add(documents: list[str]) -> AddReport:
        extractor = OpenIEExtractor(llm=llm, block_size=2)
        with HippoRAG.open(
            tmp_path / "index", embedder=HashingEmbedder(dim=32), extractor=extractor
        ) as memory:
            return memory.add(documents)

    llm.budget = 3
    report = add(texts)
    assert "the budget is spent" in report.stopped
    assert (report.passages_added, len(report.left)) == (1, 3)
    finished = {text for key, text in llm.asked if key == "triples"}
    assert len(finished) == 1
    llm.asked.clear()
    llm.budget = 100
    add(texts)
    assert sorted(llm.asked) == sorted(
        (key, text) for text in set(texts) - finished for key in ("entities", "triples")
    )
    with HippoRAG.open(tmp_path / "index", read_only=True) as memory:
        assert [extraction.usage for extraction in memory.index.extractions] == [COST + COST] * 4
