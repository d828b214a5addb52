"""IRCoT: retrieval that goes on with what a model thinks of what was found. Wraps any retriever."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hipporag_torch.asking import (
    failure,
    fit_passages,
    load_prompt_for,
    passages_text,
    require_max_tokens,
    spoken,
)
from hipporag_torch.chat import ChatReply, Prompt, Usage
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.protocols import ChatModel, Reads, Retriever
from hipporag_torch.readers.sentences import first_sentence
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.types import Passage, Ranking, Trace, TracedPassage, TracedStep, require_unicode

ANSWER_MARKER = re.compile(r"\bso,? the answer is\b", re.IGNORECASE)
"""A thought that holds it is the last one."""

# Models number their thoughts, or call them thoughts.
_LABEL = re.compile(r"^(?:[-*•](?:\s|\Z)|[0-9]{1,2}[.)](?:\s|\Z)|thought\s?[0-9]*\s?:\s?)+", re.IGNORECASE)


def retrieve_once(*, retriever: Retriever) -> Retriever:
    """The retriever as it is: no thoughts."""
    return retriever


class IRCoTRetriever:
    """Alternates retrieval and one thought of a model; each thought is the next query.

    After each retrieval but the last, the model sees the question, its thoughts so far and the best passages
    of all steps, and writes a sentence. A question ends with a thought that says "So the answer is", which
    is no query any more, or with its last retrieval. Only the first sentence of a reply is taken. Without a
    reply that can be used, the question ends with what it has, and its ranking's `reason` says why. All
    questions that go on are retrieved for, and asked about, at once.

    Passages merge by their maximum score over the steps, ties by id, as published. Scores of one route can
    be compared: PageRank mass sums to 1 in every step. Those of a step that takes another route than the
    first are of another kind, and still merged as they are: cosines (`dense:*`) then win over mass
    (`graph`, `graph:*`). The trace shows each step's route; the ranking's own is the first step's.

    max_steps: retrievals per question, at least 1, with one thought less. passages_shown: passages that the
    model sees, at least 1; fewer where its context holds no more, which `reason` tells. prompt: the name of
    one of our prompts, or your own .toml file; its fields are question, passages and thoughts. max_tokens:
    the most tokens of a thought, at least 1.
    """

    if TYPE_CHECKING:
        reads: ClassVar[Reads]
    else:

        @property
        def reads(self) -> Reads:
            """What the wrapped retriever reads."""
            return self._retriever.reads

    def __init__(
        self,
        *,
        retriever: Retriever,
        llm: ChatModel,
        max_steps: int = 3,
        passages_shown: int = 5,
        prompt: str | Path = "ircot",
        max_tokens: int = 256,
    ) -> None:
        for name, value in (("max_steps", max_steps), ("passages_shown", passages_shown)):
            if value < 1:
                raise ConfigError(f"ircot.{name} must be at least 1, got {value}")
        require_max_tokens(max_tokens, "ircot")
        self._retriever = retriever
        self._llm = llm
        self._max_steps = max_steps
        self._passages_shown = passages_shown
        self._prompt = load_prompt_for(prompt, {"question", "passages", "thoughts"}, "ircot.prompt")
        self._max_tokens = max_tokens

    def retrieve(self, questions: Sequence[str], *, top_k: int, trace: bool = False) -> list[Ranking]:
        """One ranking per question; with `trace`, also every step's."""
        check_call(questions, top_k)
        # What the model is shown, and so what it thinks, does not hang on how much the caller wants.
        depth = max(top_k, self._passages_shown)
        loops = [_Loop(question) for question in questions]
        going = loops
        for step in range(1, self._max_steps + 1):
            if not going:
                break
            found = self._retriever.retrieve([loop.query for loop in going], top_k=depth, trace=trace)
            for loop, ranking in zip(going, found, strict=True):
                loop.take(ranking)
            if step < self._max_steps:
                going = self._think([loop for loop in going if loop.route != "none:empty_index"])
        return [loop.ranking(top_k, trace=trace) for loop in loops]

    def _think(self, loops: Sequence["_Loop"]) -> list["_Loop"]:
        """Ask for a thought on each question; those that go on with it."""
        prompts: list[Prompt] = []
        asked: list[_Loop] = []
        for loop in loops:
            shown = loop.best(self._passages_shown)
            fitted = fit_passages(self._llm, self._prompt_of(loop), shown, self._max_tokens)
            if fitted.prompt is None:
                loop.tell(fitted.reason)
                continue
            if fitted.num_passages < len(shown):
                loop.tell(
                    f"thought of {fitted.num_passages} of {len(shown)} passages, the context holds no more"
                )
            prompts.append(fitted.prompt)
            asked.append(loop)
        if not prompts:
            return []
        replies = self._llm.reply(
            prompts, max_tokens=self._max_tokens, accept=lambda _, reply: not _thought(reply)[1]
        )
        return [loop for loop, reply in zip(asked, replies, strict=True) if loop.goes_on(reply)]

    def _prompt_of(self, loop: "_Loop") -> Callable[[Sequence[Passage]], Prompt]:
        def prompt_of(shown: Sequence[Passage]) -> Prompt:
            return self._prompt.messages(
                question=loop.question, passages=passages_text(shown), thoughts="\n".join(loop.thoughts)
            )

        return prompt_of


@dataclass
class _Loop:
    """One question on its way."""

    question: str
    thoughts: list[str] = field(default_factory=list)
    _steps: list[Ranking] = field(default_factory=list)
    _reasons: list[str] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)
    _dropped: dict[str, int] = field(default_factory=dict)
    # Passage id → its best score, with the passage and the step that gave it.
    _found: dict[str, tuple[float, Passage, int]] = field(default_factory=dict)

    @property
    def query(self) -> str:
        return self.thoughts[-1] if self.thoughts else self.question

    @property
    def route(self) -> str:
        return self._steps[-1].route

    def take(self, ranking: Ranking) -> None:
        """Merge what a step found."""
        step = len(self._steps)
        for passage, score in zip(ranking.passages, ranking.scores, strict=True):
            if passage.id not in self._found or score > self._found[passage.id][0]:
                self._found[passage.id] = score, passage, step
        self._steps.append(ranking)
        self._usage += ranking.usage
        for kind, count in ranking.dropped.items():
            self._dropped[kind] = self._dropped.get(kind, 0) + count
        if ranking.reason:
            self._reasons.append(ranking.reason if step == 0 else f"step {step + 1}: {ranking.reason}")

    def tell(self, reason: str) -> None:
        """Record what went wrong with the thought after this step."""
        self._reasons.append(f"step {len(self._steps)}: {reason}")

    def goes_on(self, reply: ChatReply) -> bool:
        """Take a thought, and say whether it is a query."""
        self._usage += reply.usage
        thought, error = _thought(reply)
        if error:
            self.tell(f"no thought: {error}")
            return False
        self.thoughts.append(thought)
        return not ANSWER_MARKER.search(thought)

    def best(self, top_k: int) -> list[Passage]:
        return [passage for _, passage, _ in self._merged(top_k)]

    def ranking(self, top_k: int, *, trace: bool) -> Ranking:
        merged = self._merged(top_k)
        return Ranking(
            question=self.question,
            passages=tuple(passage for _, passage, _ in merged),
            scores=tuple(score for score, _, _ in merged),
            route=self._steps[0].route,
            trace=self._trace(merged) if trace else None,
            reason="; ".join(self._reasons),
            thoughts=tuple(self.thoughts),
            usage=self._usage,
            dropped=dict(sorted(self._dropped.items())),
        )

    def _merged(self, top_k: int) -> list[tuple[float, Passage, int]]:
        return sorted(self._found.values(), key=lambda found: (-found[0], found[1].id))[:top_k]

    def _trace(self, merged: Sequence[tuple[float, Passage, int]]) -> Trace:
        traced: list[dict[str, TracedPassage]] = [
            {passage.passage_id: passage for passage in step.trace.passages} if step.trace else {}
            for step in self._steps
        ]
        first = self._steps[0].trace or Trace()
        queries = [self.question, *self.thoughts]
        # The last step may have no thought, and the last thought no step.
        thoughts = [*self.thoughts, ""]
        return Trace(
            facts=first.facts,
            seeds=first.seeds,
            passages=tuple(traced[i][passage.id] for _, passage, i in merged if passage.id in traced[i]),
            steps=tuple(
                TracedStep(query, step.route, step.reason, thought, step.trace)
                for query, step, thought in zip(queries, self._steps, thoughts, strict=False)
            ),
            linked=first.linked,
            entities_from=first.entities_from,
        )


def _thought(reply: ChatReply) -> tuple[str, str]:
    """A reply's first sentence in one line, or why there is none."""
    if error := failure(reply):
        return "", error
    lines = (_LABEL.sub("", " ".join(line.split()), count=1) for line in spoken(reply.text).splitlines())
    line = next((line for line in lines if line), "")
    # The answer is a name, not a sentence, whatever stops stand in it.
    thought = line if ANSWER_MARKER.match(line) else first_sentence(line)
    if not thought:
        return "", "the reply is empty"
    try:
        return require_unicode(thought, "the thought"), ""
    except InputError as problem:
        return "", str(problem)
