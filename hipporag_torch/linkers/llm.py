"""A question's names by a language model: one call per question."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hipporag_torch.asking import failure, load_prompt_for, require_max_tokens
from hipporag_torch.chat import ChatReply
from hipporag_torch.errors import BackendError
from hipporag_torch.extractors.openie import ENTITIES_SCHEMA
from hipporag_torch.extractors.triples import ENTITIES, read_entities
from hipporag_torch.index import Index
from hipporag_torch.linkers.links import Links
from hipporag_torch.linkers.resolution import check_min_cosine, phrase_rows, resolve
from hipporag_torch.protocols import ChatModel, Embedder
from hipporag_torch.replies import parse_json_reply


class LLMLinker:
    """Asks a model for the named entities of each question.

    Each stands for the phrase that it equals, or else for the nearest one by embedding. A reply that cannot
    be had or read is an error of its question alone; one that was cut gives its whole names. Malformed names
    are dropped and counted, and `cut` counts a cut reply: see `Links.dropped`.

    prompt: the name of one of our prompts, or your own .toml file; its field is question. max_tokens: the
    most tokens of a reply, at least 1. min_cosine: how near the nearest phrase has to be, above 0 and at
    most 1.
    """

    def __init__(
        self,
        *,
        llm: ChatModel,
        prompt: str | Path = "question_entities",
        max_tokens: int = 512,
        min_cosine: float = 0.7,
    ) -> None:
        require_max_tokens(max_tokens, "linker")
        check_min_cosine(min_cosine)
        self._llm = llm
        self._prompt = load_prompt_for(prompt, {"question"}, "linker.prompt")
        self._max_tokens = max_tokens
        self._min_cosine = min_cosine

    def link(self, index: Index, embedder: Embedder, questions: Sequence[str]) -> Links:
        """A row for each question, in order. Raises what the model raises for all questions alike."""
        if not questions:
            return Links.of(phrase_rows(index, []))
        replies = self._llm.reply(
            [self._prompt.messages(question=question) for question in questions],
            schema=ENTITIES_SCHEMA,
            max_tokens=self._max_tokens,
            accept=lambda _, reply: not _names(reply)[1],
        )
        if len(replies) != len(questions):
            raise BackendError(
                f"the chat model gave {len(replies)} replies to {len(questions)} prompts; "
                "expected one for each"
            )
        found = [_names(reply) for reply in replies]
        rows = resolve(index, embedder, [names for names, _, _ in found], min_cosine=self._min_cosine)
        return Links(
            phrase_rows(index, rows),
            tuple(error for _, error, _ in found),
            tuple(reply.usage for reply in replies),
            tuple(dropped for _, _, dropped in found),
        )


def _names(reply: ChatReply) -> tuple[tuple[str, ...], str, dict[str, int]]:
    """The names that a reply gives, why there are none, and how many entries were unusable, by kind."""
    if error := failure(reply):
        return (), error, {}
    parsed = parse_json_reply(reply.text, reply.finish, ENTITIES)
    if parsed.fault:
        return (), parsed.fault, {}
    dropped: Counter[str] = Counter()
    names = read_entities(list(parsed.items), dropped)
    if parsed.truncated:
        dropped["cut"] += 1
    return names, "", dict(sorted(dropped.items()))
