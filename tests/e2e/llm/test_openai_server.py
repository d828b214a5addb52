"""Everything that asks a chat model, against a real server with a real, weak model.

Whatever it answers, nothing is lost: every passage, question and call is accounted for.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.chat import Accept, ChatIdentity, ChatReply, Message, Prompt, Usage, accept_all
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.fact_filters import LLMFactFilter
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.ircot import IRCoTRetriever
from hipporag_torch.llms.cache import ReplyCache
from hipporag_torch.llms.cached import CachedChatModel
from hipporag_torch.llms.metered import MeteredChatModel
from hipporag_torch.protocols import ChatModel, Progress, no_progress
from hipporag_torch.readers import LLMReader
from hipporag_torch.reports import AddReport
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.types import Passage, Triple

pytestmark = pytest.mark.slow
MakeModel = Callable[..., Any]

ADA = "Ada Vale founded Northwind Press in Bergen."
BERGEN = "Bergen lies on the west coast of Norway."
TOVE = "Tove Lund maps glaciers for Northwind Press."
SVALBARD = "Glaciers cover half of Svalbard."
RYE = "The ferry's cook bakes rye bread."
PASSAGES = [ADA, BERGEN, TOVE, SVALBARD, RYE]
QUESTION = "In which city was Northwind Press founded?"
EMBEDDER = HashingEmbedder(dim=64)


class Watched:
    """Passes everything on, and keeps each prompt that was sent with its reply and whether it was of use."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.seen: list[tuple[Prompt, ChatReply, bool]] = []

    @property
    def identity(self) -> ChatIdentity:
        return self._model.identity

    @property
    def context_tokens(self) -> int | None:
        return self._model.context_tokens

    def count_tokens(self, prompt: Prompt) -> int:
        return self._model.count_tokens(prompt)

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        def watch(number: int, reply: ChatReply) -> bool:
            accepted = accept(number, reply)
            self.seen.append((prompts[number], reply, accepted))
            return accepted

        return self._model.reply(
            prompts, schema=schema, max_tokens=max_tokens, accept=watch, progress=progress
        )

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        return self._model.stream(prompt, show, max_tokens=max_tokens)

    def accepted(self) -> list[Prompt]:
        return [prompt for prompt, _, accepted in self.seen if accepted]

    def texts_sent(self) -> set[str]:
        """The passages that something was asked about."""
        sent = [prompt[-1].text for prompt, _, _ in self.seen]
        return {text for text in PASSAGES if any(text in prompt for prompt in sent)}


@pytest.fixture
def short_prompts(tmp_path: Path) -> dict[str, Any]:
    """Prompts without worked examples: a CPU reads them ten times as fast as ours."""
    entities, triples = tmp_path / "short_entities.toml", tmp_path / "short_triples.toml"
    entities.write_text('version = "1"\nsystem = "List the names as JSON."\nuser = "{passage}"\n', "utf-8")
    triples.write_text(
        'version = "1"\nsystem = "List triples as JSON."\nuser = "{passage}\\n{entities}"\n', "utf-8"
    )
    return {"entities_prompt": entities, "triples_prompt": triples}


def ask(text: str) -> Prompt:
    return (Message("user", text),)


def statuses(memory: HippoRAG) -> dict[str, str]:
    """Passage text → how its extraction ended."""
    index = memory.index
    return {p.text: e.status for p, e in zip(index.passages, index.extractions, strict=True)}


def accounted(memory: HippoRAG, report: AddReport) -> Counter[str]:
    """How many extractions have which status, after checking that none is missing and failures say why."""
    index = memory.index
    assert sorted(passage.text for passage in index.passages) == sorted(PASSAGES)
    failed = {
        passage.id
        for passage, extraction in zip(index.passages, index.extractions, strict=True)
        if extraction.status == "failed"
    }
    assert {failure.passage_id for failure in report.failed} == failed
    assert all(failure.reason for failure in report.failed)
    return Counter(extraction.status for extraction in index.extractions)


def test_a_reply_fits_the_schema_that_it_was_asked_for(chat_model: MakeModel) -> None:
    choice = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    model, prompt = chat_model(), ask("Say hello.")
    (reply,) = model.reply([prompt], schema=choice)
    answer = json.loads(reply.text)
    assert answer.keys() == {"colour", "count"}
    assert answer["colour"] in ("red", "blue")
    assert isinstance(answer["count"], int)
    # It is the schema that does it: the prompt says nothing of JSON.
    (free,) = chat_model(structured="none").reply([prompt], schema=choice)
    with pytest.raises(json.JSONDecodeError):
        json.loads(free.text)


def test_a_stream_gives_the_reply_in_pieces_with_the_tokens_that_the_server_counted(
    chat_model: MakeModel,
) -> None:
    model, pieces = chat_model(), list[str]()
    reply = model.stream(ask("Count from one to twenty."), pieces.append, max_tokens=12)
    assert "".join(pieces) == reply.text
    assert len(pieces) > 1
    assert reply.finish == "length"
    assert (reply.usage.calls, reply.usage.completion_tokens) == (1, 12)
    assert model.estimated_replies == 0
    (whole,) = model.reply([ask("Count from one to twenty.")], max_tokens=12)
    assert whole.usage == reply.usage


def test_our_prompts_account_for_every_passage_and_call(chat_model: MakeModel, tmp_path: Path) -> None:
    model = MeteredChatModel(model=chat_model())
    extractor = OpenIEExtractor(llm=model, max_tokens=24)
    two = [Passage("a", ADA), Passage("b", BERGEN)]
    extractions = extractor.extract(two)
    assert sum((extraction.usage for extraction in extractions), Usage()) == model.usage
    for extraction in extractions:
        assert extraction.status in ("ok", "truncated", "failed")
        assert (extraction.status == "failed") == bool(extraction.reason)
        # Worked examples are read as well: a prompt has hundreds of tokens.
        assert extraction.usage.prompt_tokens > 300 * extraction.usage.calls
        assert 1 <= extraction.usage.calls <= 2
    assert 2 <= model.usage.calls <= 4


def test_a_memory_of_the_weak_model_accounts_for_all_and_answers_questions(
    chat_model: MakeModel, short_prompts: dict[str, Any], tmp_path: Path
) -> None:
    extractor = OpenIEExtractor(llm=chat_model(), max_tokens=32, **short_prompts)
    with HippoRAG.open(tmp_path / "index", embedder=EMBEDDER, extractor=extractor) as memory:
        status = accounted(memory, memory.add(PASSAGES))
        assert status.total() == len(PASSAGES)
        (ranking,) = memory.retrieve([QUESTION], top_k=3)
    assert ranking.route in ("graph", "dense:no_facts")
    (answer,) = LLMReader(llm=chat_model(), max_tokens=32).read([ranking])
    assert answer.passage_ids == ranking.passage_ids
    assert answer.flag in ("", "no_marker", "cut")
    assert answer.reply
    assert set(answer.citations) <= set(answer.passage_ids)
    assert (answer.usage.calls, answer.passages_from) == (1, "retrieval")
    shown: list[str] = []
    streamed = LLMReader(llm=chat_model(), max_tokens=16).read_passages(QUESTION, [ADA, BERGEN], shown.append)
    assert "".join(shown) == streamed.reply
    assert streamed.usage.completion_tokens <= 16
    assert streamed.passages_from == "caller"


def test_a_filter_decides_for_each_question_by_itself(chat_model: MakeModel) -> None:
    facts = [
        Triple("ada vale", "founded", "northwind press"),
        Triple("northwind press", "is in", "bergen"),
        Triple("glaciers", "cover", "svalbard"),
    ]
    model = MeteredChatModel(model=chat_model())
    decisions = LLMFactFilter(llm=model, max_tokens=24).select([QUESTION, "Who bakes?"], [facts, []])
    asked, unasked = decisions
    assert set(asked.kept) <= set(range(len(facts)))
    assert bool(asked.error) <= (asked.kept == ())
    assert asked.usage == model.usage
    assert asked.usage.calls == 1
    assert (unasked.kept, unasked.error, unasked.usage.calls) == ((), "", 0)


def test_thoughts_of_the_weak_model_are_queries_or_say_why_not(chat_model: MakeModel, tmp_path: Path) -> None:
    with HippoRAG.open(tmp_path / "index", embedder=EMBEDDER, extractor=NoExtractor()) as memory:
        memory.add(PASSAGES)
        lexical = BM25Retriever(index=memory.index)
        retriever = IRCoTRetriever(
            retriever=lexical, llm=chat_model(), max_steps=2, passages_shown=2, max_tokens=24
        )
        (ranking,) = retriever.retrieve([QUESTION], top_k=3, trace=True)
    assert ranking.usage.calls == 1
    assert len(ranking.thoughts) == (0 if ranking.reason else 1)
    assert ranking.trace is not None
    assert [step.query for step in ranking.trace.steps] in ([QUESTION], [QUESTION, *ranking.thoughts])
    assert ranking.passages[0].text == ADA


def test_a_wrong_key_stops_a_change_before_it_begins_and_is_not_shown(
    chat_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Watched(chat_model())
    wrong = "sk-wrong-0123456789abcdef"
    monkeypatch.setenv("LLM_SERVER_KEY", wrong)
    with HippoRAG.open(tmp_path / "index", embedder=EMBEDDER, extractor=OpenIEExtractor(llm=model)) as memory:
        with pytest.raises(ConfigError, match=r"refuses the key in LLM_SERVER_KEY \(401\)") as error:
            memory.add(PASSAGES)
        assert memory.index.passages == ()
    assert "wrong-0123" not in str(error.value)
    assert model.seen == []
    with pytest.raises(ConfigError, match="LLM_SERVER_KEY"):
        model.stream(ask("Hello?"), lambda _: None)


def test_a_passage_beyond_the_context_fails_for_good_and_alone(
    chat_model: MakeModel, short_prompts: dict[str, Any], tmp_path: Path
) -> None:
    model = Watched(chat_model())
    extractor = OpenIEExtractor(llm=model, max_tokens=24, **short_prompts)
    long = "glacier " * 1500
    with HippoRAG.open(tmp_path / "index", embedder=EMBEDDER, extractor=extractor) as memory:
        report = memory.add([long, SVALBARD])
        (failure,) = (f for f in report.failed if f.permanent)
        assert failure.passage_id == memory.index.text.passage_id(long)
        assert "context" in failure.reason
        assert "1024" in failure.reason
        assert statuses(memory).keys() == {long, SVALBARD}
        asked = len(model.seen)
        memory.add([long])
        assert memory.stats().failed
        assert len(model.seen) == asked
        # Where the context is stated, the server need not be asked to know.
        extractor = OpenIEExtractor(llm=Watched(chat_model(context_tokens=1024)), **short_prompts)
        (refused,) = extractor.extract([Passage("long", long)])
    assert (refused.status, refused.permanent, refused.usage) == ("failed", True, Usage())
    assert "passage long needs a prompt of" in refused.reason


def test_a_server_killed_in_the_middle_costs_nothing_that_was_finished(
    make_server: Callable[[], Any],
    connect: Callable[..., MakeModel],
    short_prompts: dict[str, Any],
    tmp_path: Path,
) -> None:
    server = make_server()
    watched = Watched(connect(server)())
    model = CachedChatModel(model=watched, cache=ReplyCache(tmp_path / "replies.sqlite"))
    # Three are asked about together: the third is under way when two are finished.
    extractor = OpenIEExtractor(llm=model, max_tokens=32, block_size=3, **short_prompts)

    def kill_after_two(stage: str, done: int, total: int) -> None:
        if stage == "extract" and done == 2:
            server.kill()

    with HippoRAG.open(tmp_path / "index", embedder=EMBEDDER, extractor=extractor) as memory:
        with pytest.raises(BackendError, match="cannot be reached"):
            memory.add(PASSAGES, kill_after_two)
        assert memory.index.passages == ()
        before = watched.accepted()
        started = watched.texts_sent()
        assert len(before) >= 3
        assert started < set(PASSAGES)
        watched.seen.clear()
        server.start()
        report = memory.add(PASSAGES)
        status = accounted(memory, report)
    server.kill()
    assert status.total() == len(PASSAGES)
    # Nothing that was of use is asked for twice, and of what was begun only what is missing.
    assert not set(before) & {prompt for prompt, _, _ in watched.seen}
    finished = set(PASSAGES) - watched.texts_sent()
    assert finished
    assert finished <= started
    assert all(reply.finish != "error" for _, reply, _ in watched.seen)
