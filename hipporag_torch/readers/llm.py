"""Reading by a language model: one call per question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hipporag_torch.asking import failure, fit_passages, load_prompt_for, passages_text, require_max_tokens
from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.prompts import READER_PROMPTS
from hipporag_torch.protocols import ChatModel
from hipporag_torch.readers.citations import passages_with
from hipporag_torch.readers.final_answer import final_answer
from hipporag_torch.text import TextOptions
from hipporag_torch.types import Answer, Passage, PassagesFrom, Ranking, require_text

# What a cache may keep: whoever asks again for another reply gets one.
_ACCEPTED = ("", "no_marker")


@dataclass(frozen=True)
class _Reading:
    """A question with what is read for it, and the answer as far as it is known before the model is asked."""

    passages: tuple[Passage, ...]
    prompt: Prompt | None
    answer: Answer


class LLMReader:
    """Answers with what a model says behind its last "Answer:"; see `final_answer` for the exact rules.

    A reply without that marker is taken whole, and one that cannot be had is an empty answer; the answer's
    `flag` says so. Cited are the passages that hold the answer's text, with score 1; if none does, or the
    answer is yes or no, all that were read, with score 0.

    Passages are shown whole. Those that don't fit the model's context beside the reply are left out, the last
    ones first, and the answer counts them; if not even the first one fits, the model is not asked.

    family: the kind of data set, which chooses the prompt: a key of `READER_PROMPTS`. prompt: the name of one
    of our prompts, or your own .toml file, instead of the family's; its fields are question and passages.
    qa_top_k: passages of a ranking that are read, at least 1. max_tokens: the most tokens of a reply, at
    least 1. thoughts_to_reader: whether the model also sees the thoughts of a ranking, between the passages
    and the question.
    """

    def __init__(
        self,
        *,
        llm: ChatModel,
        prompt: str | Path | None = None,
        family: str = "default",
        qa_top_k: int = 5,
        max_tokens: int = 1024,
        thoughts_to_reader: bool = False,
    ) -> None:
        if family not in READER_PROMPTS:
            raise ConfigError(
                f"reader.family must be one of {', '.join(sorted(READER_PROMPTS))}, got {family!r}; "
                "or set reader.prompt"
            )
        if qa_top_k < 1:
            raise ConfigError(f"reader.qa_top_k must be at least 1, got {qa_top_k}")
        require_max_tokens(max_tokens, "reader")
        self._llm = llm
        self._prompt = load_prompt_for(
            READER_PROMPTS[family] if prompt is None else prompt, {"question", "passages"}, "reader.prompt"
        )
        self._qa_top_k = qa_top_k
        self._max_tokens = max_tokens
        self._thoughts_to_reader = thoughts_to_reader

    def read(self, rankings: Sequence[Ranking]) -> list[Answer]:
        """One answer per ranking, in order; all calls go out together."""
        readings = [self._reading_of(ranking) for ranking in rankings]
        asked = [reading for reading in readings if reading.prompt is not None]
        prompts = [reading.prompt for reading in readings if reading.prompt is not None]
        if not prompts:
            return [reading.answer for reading in readings]
        replies = iter(
            self._llm.reply(
                prompts,
                max_tokens=self._max_tokens,
                accept=lambda number, reply: _answer(asked[number], reply).flag in _ACCEPTED,
            )
        )
        return [
            reading.answer if reading.prompt is None else _answer(reading, next(replies))
            for reading in readings
        ]

    def read_streaming(self, ranking: Ranking, show: Callable[[str], None]) -> Answer:
        """The answer to one question; `show` gets the pieces of the reply as they come."""
        reading = self._reading_of(ranking)
        if reading.prompt is None:
            return reading.answer
        return _answer(reading, self._llm.stream(reading.prompt, show, max_tokens=self._max_tokens))

    def read_passages(
        self,
        question: str,
        passages: Sequence[str | Passage],
        show: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer from passages that the caller hands in, best first; nothing is retrieved.

        All of them are read, however many `qa_top_k` are. A text becomes a passage with the id that it
        would have in an index. `show` gets the pieces of the reply as they come. Raises `InputError` for
        an empty question or passage.
        """
        if isinstance(passages, str):
            raise InputError(f"passages must be a list, got one string: [{passages!r:.80}]")
        require_text(question, "the question")
        given = tuple(_passage(number, passage) for number, passage in enumerate(passages))
        reading = self._reading(question, given, (), "caller")
        if reading.prompt is None:
            return reading.answer
        if show is not None:
            return _answer(reading, self._llm.stream(reading.prompt, show, max_tokens=self._max_tokens))
        (reply,) = self._llm.reply(
            [reading.prompt],
            max_tokens=self._max_tokens,
            accept=lambda _, reply: _answer(reading, reply).flag in _ACCEPTED,
        )
        return _answer(reading, reply)

    def _reading_of(self, ranking: Ranking) -> _Reading:
        thoughts = ranking.thoughts if self._thoughts_to_reader else ()
        return self._reading(ranking.question, ranking.passages[: self._qa_top_k], thoughts, "retrieval")

    def _reading(
        self,
        question: str,
        passages: tuple[Passage, ...],
        thoughts: Sequence[str],
        passages_from: PassagesFrom,
    ) -> _Reading:
        method = f"language model {self._llm.identity.model}, prompt {self._prompt.label}"
        answer = Answer(question, "", (), (), 0.0, method, passages_from=passages_from)
        if not passages:
            return _Reading((), None, replace(answer, flag="no_passages"))

        def prompt_of(shown: Sequence[Passage]) -> Prompt:
            text = passages_text(shown)
            if thoughts:
                text += "\n\nThoughts so far:\n" + "\n".join(thoughts)
            return self._prompt.messages(question=question, passages=text)

        fitted = fit_passages(self._llm, prompt_of, passages, self._max_tokens)
        left_out = len(passages) - fitted.num_passages
        answer = replace(answer, passages_left_out=left_out)
        if fitted.prompt is None:
            return _Reading((), None, replace(answer, flag="too_long", reason=fitted.reason))
        read = passages[: fitted.num_passages]
        return _Reading(read, fitted.prompt, replace(answer, passages=read))


def _answer(reading: _Reading, reply: ChatReply) -> Answer:
    answer = replace(reading.answer, reply=reply.text, usage=reply.usage)
    if reason := failure(reply):
        return replace(answer, flag="error", reason=reason)
    final = final_answer(reply)
    citations = passages_with(final.text, reading.passages)
    every = tuple(dict.fromkeys(answer.passage_ids)) if final.text else ()
    return replace(
        answer,
        text=final.text,
        citations=citations or every,
        score=1.0 if citations else 0.0,
        flag=final.flag,
    )


def _passage(number: int, given: str | Passage) -> Passage:
    if isinstance(given, Passage):
        return given
    return Passage(TextOptions().passage_id(require_text(given, f"passage {number}")), given)
