"""Recognition memory by a language model: one call per question."""

from collections.abc import Sequence
from pathlib import Path

from hipporag_torch.asking import failure, load_prompt_for, require_max_tokens
from hipporag_torch.chat import ChatReply
from hipporag_torch.errors import ConfigError
from hipporag_torch.fact_filters.choices import chosen_rows, fact_lines, is_choice
from hipporag_torch.protocols import ChatModel
from hipporag_torch.replies import Wanted, parse_json_reply
from hipporag_torch.types import Fact, FilterDecision

_SCHEMA = {
    "type": "object",
    "properties": {"useful": {"type": "array", "items": {"type": "integer"}}},
    "required": ["useful"],
    "additionalProperties": False,
}
_WANTED = Wanted(key="useful", also=("useful facts", "fact", "relevant", "indices"), is_item=is_choice)


class LLMFactFilter:
    """Keeps the facts that a model finds useful for a question.

    The model is shown the facts as a numbered list and replies with numbers; a fact that it writes out
    instead has to be one of the list. Other choices are dropped and counted: `out_of_range`, `not_shown`,
    `repeated`, `not_a_number`, `beyond_limit`; `cut` counts a reply that ended at its token limit, so that
    choices may be missing. A reply that cannot be had or read is an error of its question alone.

    prompt: the name of one of our prompts, or your own .toml file; its fields are question and facts.
    max_tokens: the most tokens of a reply, at least 1. keep_at_most: how many of the model's choices are
    kept, those that it names first; None keeps all.
    """

    def __init__(
        self,
        *,
        llm: ChatModel,
        prompt: str | Path = "filter",
        max_tokens: int = 512,
        keep_at_most: int | None = None,
    ) -> None:
        if keep_at_most is not None and keep_at_most < 1:
            raise ConfigError(f"fact_filter.keep_at_most must be at least 1, or null, got {keep_at_most}")
        require_max_tokens(max_tokens, "fact_filter")
        self._llm = llm
        self._prompt = load_prompt_for(prompt, {"question", "facts"}, "fact_filter.prompt")
        self._max_tokens = max_tokens
        self._keep_at_most = keep_at_most

    def select(self, questions: Sequence[str], candidates: Sequence[Sequence[Fact]]) -> list[FilterDecision]:
        """One decision per question, in order; a question without candidates costs no call."""
        asked = [(row, shown) for row, shown in enumerate(candidates) if shown]
        decisions = [FilterDecision(kept=())] * len(questions)
        if not asked:
            return decisions
        replies = self._llm.reply(
            [self._prompt.messages(question=questions[row], facts=fact_lines(shown)) for row, shown in asked],
            schema=_SCHEMA,
            max_tokens=self._max_tokens,
            accept=lambda number, reply: not self._decision(reply, asked[number][1]).error,
        )
        for (row, shown), reply in zip(asked, replies, strict=True):
            decisions[row] = self._decision(reply, shown)
        return decisions

    def _decision(self, reply: ChatReply, shown: Sequence[Fact]) -> FilterDecision:
        if error := failure(reply):
            return FilterDecision((), error, usage=reply.usage)
        parsed = parse_json_reply(reply.text, reply.finish, _WANTED)
        if parsed.fault:
            return FilterDecision((), parsed.fault, usage=reply.usage)
        rows, dropped = chosen_rows(parsed.items, shown)
        kept = rows[: self._keep_at_most]
        dropped["beyond_limit"] = len(rows) - len(kept)
        dropped["cut"] = int(parsed.truncated)
        occurred: dict[str, int] = {kind: count for kind, count in sorted(dropped.items()) if count}
        return FilterDecision(tuple(sorted(kept)), dropped=occurred, usage=reply.usage)
