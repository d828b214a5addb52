"""What a chat model has from the one that it wraps."""

from hipporag_torch.chat import ChatIdentity, Prompt
from hipporag_torch.protocols import ChatModel


class Wrapped:
    """Identity, context and counting of the model inside; what is asked of it is the wrapper's own."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def identity(self) -> ChatIdentity:
        return self._model.identity

    @property
    def context_tokens(self) -> int | None:
        return self._model.context_tokens

    def count_tokens(self, prompt: Prompt) -> int:
        return self._model.count_tokens(prompt)
