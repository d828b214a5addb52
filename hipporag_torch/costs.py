"""What questions would ask of language models, worked out without asking them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hipporag_torch.asking import passages_text
from hipporag_torch.chat import Prompt, Usage
from hipporag_torch.fact_filters.choices import fact_lines
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.prompts import PromptTemplate
from hipporag_torch.protocols import ChatModel
from hipporag_torch.types import Fact, Passage, Triple

Item = TypeVar("Item")

# What stands for a fact where none is known yet.
_FACT = Triple("a name of four words", "stands in relation to", "another name of words")


@dataclass(frozen=True)
class Costs:
    """An estimate: calls, their prompts' tokens, and replies as long as they may be; what they cost."""

    usage: Usage
    prices: Prices | None = None


@dataclass(frozen=True)
class Typical:
    """What stands for the passages and facts that prompts would show: which these are is not known before."""

    passage: Passage
    fact: Fact

    @staticmethod
    def of(passages: Sequence[str], facts: Sequence[Fact]) -> "Typical":
        """Those whose length is nearest to the mean."""
        text = _nearest_to_mean(passages, [len(text) for text in passages]) or ""
        lengths = [sum(map(len, fact.parts)) for fact in facts]
        return Typical(Passage("typical", text), _nearest_to_mean(facts, lengths) or _FACT)


def linking_usage(
    llm: ChatModel,
    prompt: PromptTemplate,
    questions: Sequence[str],
    *,
    max_tokens: int,
    retrievals: int,
) -> Usage:
    """One call for each retrieval of each question; a question stands for a thought on it."""
    prompts = [prompt.messages(question=question) for question in questions]
    return _usage(llm, prompts * retrievals, max_tokens)


def filter_usage(
    llm: ChatModel,
    prompt: PromptTemplate,
    questions: Sequence[str],
    typical: Typical,
    *,
    num_facts: int,
    max_tokens: int,
    retrievals: int,
) -> Usage:
    """One call for each retrieval of each question."""
    facts = fact_lines([typical.fact] * num_facts)
    prompts = [prompt.messages(question=question, facts=facts) for question in questions]
    return _usage(llm, prompts * retrievals, max_tokens)


def thoughts_usage(
    llm: ChatModel,
    prompt: PromptTemplate,
    questions: Sequence[str],
    typical: Typical,
    *,
    num_passages: int,
    max_tokens: int,
    retrievals: int,
) -> Usage:
    """One call between each two retrievals of a question; a question stands for a thought on it."""
    passages = passages_text([typical.passage] * num_passages)
    prompts = [
        prompt.messages(question=question, passages=passages, thoughts="\n".join([question] * step))
        for step in range(retrievals - 1)
        for question in questions
    ]
    return _usage(llm, prompts, max_tokens)


def reading_usage(
    llm: ChatModel,
    prompt: PromptTemplate,
    questions: Sequence[str],
    typical: Typical,
    *,
    num_passages: int,
    max_tokens: int,
) -> Usage:
    """One call for each question."""
    passages = passages_text([typical.passage] * num_passages)
    prompts = [prompt.messages(question=question, passages=passages) for question in questions]
    return _usage(llm, prompts, max_tokens)


def _usage(llm: ChatModel, prompts: Sequence[Prompt], max_tokens: int) -> Usage:
    # A longer prompt is cut down to what the context holds.
    most = None if llm.context_tokens is None else max(0, llm.context_tokens - max_tokens)
    tokens = [llm.count_tokens(prompt) for prompt in prompts]
    return Usage(
        calls=len(prompts),
        prompt_tokens=sum(tokens if most is None else (min(count, most) for count in tokens)),
        completion_tokens=len(prompts) * max_tokens,
    )


def _nearest_to_mean(items: Sequence[Item], lengths: Sequence[int]) -> Item | None:
    if not items:
        return None
    mean = sum(lengths) / len(lengths)
    return items[min(range(len(items)), key=lambda row: (abs(lengths[row] - mean), row))]
