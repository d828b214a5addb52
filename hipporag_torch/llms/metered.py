"""A chat model that counts what it was asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hipporag_torch.chat import Accept, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.llms.wrapped import Wrapped
from hipporag_torch.protocols import ChatModel, Progress, no_progress


class MeteredChatModel(Wrapped):
    """Wraps any chat model and adds up the usage of its replies, those of a batch that failed included.

    Roles that share a model have a meter each.

    max_tokens: the most tokens of a reply that the model itself allows, for those who estimate; None where
    that is not known.
    """

    def __init__(self, *, model: ChatModel, max_tokens: int | None = None) -> None:
        super().__init__(model)
        self.max_tokens = max_tokens
        self.usage = Usage()

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        def counted(number: int, reply: ChatReply) -> bool:
            self.usage += reply.usage
            return accept(number, reply)

        return self._model.reply(
            prompts, schema=schema, max_tokens=max_tokens, accept=counted, progress=progress
        )

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        reply = self._model.stream(prompt, show, max_tokens=max_tokens)
        self.usage += reply.usage
        return reply
