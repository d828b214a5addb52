"""What every fact filter must do, whichever it is."""

import pytest

from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.fact_filters import KeepAllFacts, LLMFactFilter
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.protocols import FactFilter
from hipporag_torch.types import Fact, Sentence, Triple

FACTS: list[Fact] = [
    Triple("ada vale", "founded", "northwind press"),
    Sentence("Bergen | Bjørgvin lies in Norway."),
]


def chooses(prompt: Prompt) -> str:
    return '{"useful": [2, 1, 7]}'


def fails(prompt: Prompt) -> ChatReply:
    return ChatReply("", "error", error="the endpoint is down")


@pytest.fixture(params=["none", "llm", "llm that fails", "llm that babbles"])
def fact_filter(request: pytest.FixtureRequest) -> FactFilter:
    replies = {"llm": chooses, "llm that fails": fails, "llm that babbles": lambda prompt: "[[[ hm"}
    if request.param == "none":
        return KeepAllFacts()
    return LLMFactFilter(llm=ScriptedChatModel(replies=replies[request.param]))


def test_one_decision_per_question_in_order(fact_filter: FactFilter) -> None:
    candidates = [FACTS, FACTS[:1], []]
    decisions = fact_filter.select(["Who?", "Where?", "What?"], candidates)
    assert len(decisions) == 3
    for decision, shown in zip(decisions, candidates, strict=True):
        assert set(decision.kept) <= set(range(len(shown)))
        assert len(set(decision.kept)) == len(decision.kept)
        assert not decision.error or not decision.kept


def test_no_questions(fact_filter: FactFilter) -> None:
    assert fact_filter.select([], []) == []
