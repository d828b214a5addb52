"""A scripted chat model that can be asked what it was asked."""

from collections.abc import Mapping, Sequence
from typing import Any

from hipporag_torch.chat import Accept, ChatReply, Prompt, accept_all
from hipporag_torch.llms.scripted import ScriptedChatModel
from hipporag_torch.protocols import Progress, no_progress


class WatchedModel(ScriptedChatModel):
    """Remembers the schema and the limit it was given, and which replies were accepted."""

    seen_schema: Mapping[str, Any] | None = None
    seen_max_tokens: int | None = None
    accepted: Mapping[int, bool] = {}

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        self.seen_schema, self.seen_max_tokens = schema, max_tokens
        self.accepted = verdicts = {}

        def watched(number: int, reply: ChatReply) -> bool:
            verdicts[number] = accept(number, reply)
            return verdicts[number]

        return super().reply(prompts, schema=schema, max_tokens=max_tokens, accept=watched, progress=progress)
