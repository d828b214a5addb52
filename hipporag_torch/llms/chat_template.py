"""From a conversation to the tokens that a model continues, by the model's own chat template."""

from collections.abc import Mapping
from typing import Any

from hipporag_torch.chat import ChatReply, Prompt
from hipporag_torch.errors import ConfigError


class UnusablePrompt(Exception):  # noqa: N818
    """The model cannot be asked this prompt, however often it is tried; the message says why."""

    def reply(self) -> ChatReply:
        return ChatReply("", "error", error=str(self), permanent=True)


class ChatTemplate:
    """The template of a tokenizer of transformers.

    options: what the template is given besides the messages, such as {"enable_thinking": False}; the key
        `chat_template` is a template instead of the model's own.

    Raises `ConfigError` if there is no template.
    """

    def __init__(self, tokenizer: Any, *, model: str, options: Mapping[str, Any] | None = None) -> None:
        self._tokenizer, self._model = tokenizer, model
        self._options = dict(options or {})
        if not (getattr(tokenizer, "chat_template", None) or self._options.get("chat_template")):
            raise ConfigError(
                f"the model {model} has no chat template, so that it is not known how to ask it; choose its "
                "instruction-tuned variant (often named -Instruct or -it), or give a template in Jinja as "
                "llm.chat_template_options.chat_template"
            )

    def tokens(self, prompt: Prompt) -> list[int]:
        """The prompt's tokens, up to where the reply begins. Raises `UnusablePrompt`."""
        from jinja2 import TemplateError

        messages = [{"role": message.role, "content": message.text} for message in prompt]
        try:
            for message in prompt:
                message.text.encode("utf-8")
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._options
            )
        except UnicodeEncodeError:
            raise UnusablePrompt(
                "the prompt holds half of a surrogate pair, which is no Unicode text"
            ) from None
        except TemplateError as error:
            raise UnusablePrompt(
                f"the chat template of {self._model} refuses the prompt: {error}; give another one as "
                "llm.chat_template_options.chat_template"
            ) from error
        # The template writes the special tokens itself. That a prompt is too long is for `fitting` to say.
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def fitting(self, prompt: Prompt, max_tokens: int, context: int | None) -> tuple[list[int], int]:
        """The prompt's tokens, and how many the reply may have: `max_tokens`, or what the context leaves.

        context: the most tokens that prompt and reply may have together; None: not known. Raises
        `UnusablePrompt` for a prompt that leaves no room: it is never cut.
        """
        tokens = self.tokens(prompt)
        if context is None:
            return tokens, max_tokens
        if len(tokens) >= context:
            raise UnusablePrompt(
                f"the prompt has {len(tokens):,} tokens, and the context of {self._model} {context:,} "
                "for prompt and reply together; split the passage, or choose a model with a longer context"
            )
        return tokens, min(max_tokens, context - len(tokens))

    def text(self, tokens: list[int]) -> str:
        """What tokens of a reply spell, without the special ones."""
        return self._tokenizer.decode(tokens, skip_special_tokens=True)
