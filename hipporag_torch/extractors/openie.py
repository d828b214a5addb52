"""Entities and triples by a language model: one call for a passage's entities, one for its triples."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipporag_torch.chat import ChatReply, Prompt, Usage
from hipporag_torch.errors import BackendError, BudgetError, ConfigError
from hipporag_torch.extractors.triples import ENTITIES, TRIPLES, read_entities, read_triples
from hipporag_torch.prompts import PromptTemplate, load_prompt
from hipporag_torch.protocols import ChatModel, Progress, no_progress
from hipporag_torch.replies import JsonReply, Wanted, parse_json_reply
from hipporag_torch.types import Extraction, Passage

Keep = Callable[[Passage, Extraction], None]
Take = Callable[[int, ChatReply, JsonReply], None]


def _schema(key: str, item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {key: {"type": "array", "items": item}},
        "required": [key],
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
ENTITIES_SCHEMA = _schema("entities", _TEXT)
# Three parts, but not as minItems and maxItems: some services refuse a schema that has these.
TRIPLES_SCHEMA = _schema("triples", {"type": "array", "items": _TEXT})


@dataclass(frozen=True)
class _Found:
    """What the first call gave for a passage."""

    passage: Passage
    entities: tuple[str, ...]
    dropped: Mapping[str, int]
    truncated: bool
    usage: Usage


class OpenIEExtractor:
    """Asks a chat model for the entities of each passage, then with these for its triples.

    A passage fails, with a reason and the raw reply, if one of its replies is an error, a refusal, or holds
    no list of what was asked for; if the first one fails, the second is not asked for. A passage whose
    prompt and reply would not fit into the model's context is refused before anything is asked about it.
    A reply that was cut gives its whole entries, and the status `truncated`. Triples without a named entity
    stay; malformed ones are dropped and counted.

    llm: the model. entities_prompt, triples_prompt: names of our prompts, or paths of your own, with the
    fields passage, and passage and entities. max_tokens: the most tokens of a reply, None for the model's
    own setting. block_size: the passages that are asked about together; the results do not depend on it.
    """

    calls_per_passage = 2

    def __init__(
        self,
        *,
        llm: ChatModel,
        entities_prompt: str | Path = "entities",
        triples_prompt: str | Path = "triples",
        max_tokens: int | None = 2048,
        block_size: int = 256,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise ConfigError(f"extractor.max_tokens must be at least 1, or null, got {max_tokens}")
        if block_size < 1:
            raise ConfigError(f"extractor.block_size must be at least 1, got {block_size}")
        self._llm = llm
        self._entities_prompt = _prompt("entities_prompt", entities_prompt, {"passage"})
        self._triples_prompt = _prompt("triples_prompt", triples_prompt, {"passage", "entities"})
        self._max_tokens = max_tokens
        self._block_size = block_size

    @property
    def producer(self) -> str:
        """Model, revision, settings and prompts, but not the endpoint: moving a service changes nothing."""
        identity = self._llm.identity
        model = f"{identity.model}@{identity.revision}" if identity.revision else identity.model
        settings = [f"{name}={value}" for name, value in identity.settings]
        if self._max_tokens is not None:
            settings.append(f"reply_tokens={self._max_tokens}")
        prompts = [self._entities_prompt.label, self._triples_prompt.label]
        return ":".join(["openie", model, *settings, *prompts])

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        """One extraction per passage, in order. A `BudgetError` has what was finished."""
        done: dict[str, Extraction] = {}

        def keep(passage: Passage, extraction: Extraction) -> None:
            done[passage.id] = extraction

        try:
            self.extract_each(passages, keep, progress)
        except BudgetError as error:
            error.finished = done
            raise
        return [done[passage.id] for passage in passages]

    def extract_each(self, passages: Sequence[Passage], keep: Keep, progress: Progress = no_progress) -> None:
        """Calls `keep` with each passage as soon as it is finished, failed or not, in no fixed order.

        Raises `BudgetError` and `BackendError` as the model does, after all that was finished was kept.
        """
        done = 0

        def finish(passage: Passage, extraction: Extraction) -> None:
            nonlocal done
            keep(passage, extraction)
            done += 1
            progress("extract", done, len(passages))

        for start in range(0, len(passages), self._block_size):
            self._extract_block(passages[start : start + self._block_size], finish)

    def estimate(self, passages: Sequence[Passage]) -> Usage:
        """Two calls for each passage, with replies as long as they may be.

        The entities, which the second prompt shows, stand in the passage: its text is counted in their place.
        Passages that `extract` would refuse unasked are left out. Raises `ConfigError` if neither this
        extractor nor the model limits a reply.
        """
        limit = self._max_tokens or getattr(self._llm, "max_tokens", None)
        if limit is None:
            raise ConfigError(
                "the tokens of an extraction cannot be estimated: extractor.max_tokens is null and the model "
                "does not say its own limit; set extractor.max_tokens"
            )
        calls = tokens = 0
        for passage in passages:
            entities = self._entities_prompt.messages(passage=passage.text)
            if self._misfit(passage, entities, self._triples_messages(passage, ())):
                continue
            triples = self._triples_messages(passage, (passage.text,))
            tokens += self._llm.count_tokens(entities) + self._llm.count_tokens(triples)
            calls += 2
        return Usage(calls=calls, prompt_tokens=tokens, completion_tokens=calls * limit)

    def _extract_block(self, passages: Sequence[Passage], finish: Keep) -> None:
        fitting: list[tuple[Passage, Prompt]] = []
        for passage in passages:
            prompt = self._entities_prompt.messages(passage=passage.text)
            # What the second call cannot hold even without entities is not paid for in the first.
            if reason := self._misfit(passage, prompt, self._triples_messages(passage, ())):
                finish(passage, self._failed(reason, permanent=True))
            else:
                fitting.append((passage, prompt))
        found: dict[int, _Found] = {}

        def take(number: int, reply: ChatReply, parsed: JsonReply) -> None:
            passage = fitting[number][0]
            if parsed.fault:
                finish(passage, self._failed_reply(ENTITIES, reply, parsed, Usage()))
                return
            dropped: Counter[str] = Counter()
            entities = read_entities(list(parsed.items), dropped)
            found[number] = _Found(passage, entities, dropped, parsed.truncated, reply.usage)

        self._ask([prompt for _, prompt in fitting], ENTITIES, ENTITIES_SCHEMA, take)
        self._extract_triples([found[number] for number in sorted(found)], finish)

    def _extract_triples(self, found: Sequence[_Found], finish: Keep) -> None:
        fitting: list[tuple[_Found, Prompt]] = []
        for one in found:
            prompt = self._triples_messages(one.passage, one.entities)
            if reason := self._misfit(one.passage, prompt):
                finish(one.passage, self._failed(reason, permanent=True, usage=one.usage))
            else:
                fitting.append((one, prompt))

        def take(number: int, reply: ChatReply, parsed: JsonReply) -> None:
            one = fitting[number][0]
            if parsed.fault:
                finish(one.passage, self._failed_reply(TRIPLES, reply, parsed, one.usage))
                return
            dropped = Counter(one.dropped)
            triples = read_triples(list(parsed.items), dropped)
            extraction = Extraction(
                entities=one.entities,
                triples=triples,
                status="truncated" if one.truncated or parsed.truncated else "ok",
                producer=self.producer,
                dropped=dict(sorted(dropped.items())),
                usage=one.usage + reply.usage,
            )
            finish(one.passage, extraction)

        self._ask([prompt for _, prompt in fitting], TRIPLES, TRIPLES_SCHEMA, take)

    def _ask(self, prompts: Sequence[Prompt], wanted: Wanted, schema: Mapping[str, Any], take: Take) -> None:
        """Calls `take` once for each prompt, with its reply and what that holds, as soon as it is there."""
        if not prompts:
            return
        taken: set[int] = set()

        def accept(number: int, reply: ChatReply) -> bool:
            taken.add(number)
            parsed = _parsed(reply, wanted)
            take(number, reply, parsed)
            return not parsed.fault

        replies = self._llm.reply(prompts, schema=schema, max_tokens=self._max_tokens, accept=accept)
        if len(replies) != len(prompts):
            raise BackendError(
                f"the chat model gave {len(replies)} replies to {len(prompts)} prompts; expected one for each"
            )
        for number, reply in enumerate(replies):
            if number not in taken:
                accept(number, reply)

    def _triples_messages(self, passage: Passage, entities: Sequence[str]) -> Prompt:
        listed = json.dumps(list(entities), ensure_ascii=False)
        return self._triples_prompt.messages(passage=passage.text, entities=listed)

    def _misfit(self, passage: Passage, *prompts: Prompt) -> str:
        """Why the prompts of a passage cannot be sent; empty if they can."""
        context = self._llm.context_tokens
        if context is None:
            return ""
        tokens = max(self._llm.count_tokens(prompt) for prompt in prompts)
        if tokens + (self._max_tokens or 1) <= context:
            return ""
        room = f" and {self._max_tokens} for the reply" if self._max_tokens else ""
        return (
            f"passage {passage.id} needs a prompt of {tokens} tokens{room}, and the model's context has "
            f"{context}; cut the documents into shorter passages (chunker=tokens) "
            "or lower extractor.max_tokens"
        )

    def _failed_reply(self, wanted: Wanted, reply: ChatReply, parsed: JsonReply, before: Usage) -> Extraction:
        return self._failed(
            f"the call for {wanted.key} failed: {parsed.fault}",
            permanent=reply.permanent or reply.finish == "refused",
            reply=reply.text,
            usage=before + reply.usage,
        )

    def _failed(
        self, reason: str, *, permanent: bool, reply: str = "", usage: Usage | None = None
    ) -> Extraction:
        return Extraction(
            status="failed",
            reason=reason,
            producer=self.producer,
            reply=reply,
            permanent=permanent,
            usage=usage or Usage(),
        )


def _prompt(option: str, name_or_path: str | Path, fields: set[str]) -> PromptTemplate:
    prompt = load_prompt(name_or_path)
    if prompt.fields != fields:
        raise ConfigError(
            f"extractor.{option} must have the fields {', '.join(sorted(fields))} in its user's turn; "
            f"{prompt.name} has {', '.join(sorted(prompt.fields)) or 'none'}"
        )
    return prompt


def _parsed(reply: ChatReply, wanted: Wanted) -> JsonReply:
    if reply.finish == "error":
        return JsonReply(fault=reply.error or "the model gave no reply")
    if reply.finish == "refused":
        return JsonReply(fault=reply.error or "the model refused to answer")
    return parse_json_reply(reply.text, reply.finish, wanted)
