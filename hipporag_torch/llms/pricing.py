"""What calls of a model cost. The library knows no price: whoever wants money counted states them."""

from dataclasses import dataclass
from math import isfinite

from hipporag_torch.chat import Usage
from hipporag_torch.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Money for a million tokens of prompts, and of completions, in whatever currency the budget is in."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name, price in (("prompt", self.prompt), ("completion", self.completion)):
            if not (isfinite(price) and price >= 0):
                raise ConfigError(f"the price of a million {name} tokens must be at least 0, got {price}")

    def money(self, usage: Usage) -> float:
        """What the usage costs; what a cache gave costs nothing."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


def prices_of(prompt: float | None, completion: float | None) -> Prices | None:
    """Both prices or neither; one alone would count half of the money."""
    if prompt is None and completion is None:
        return None
    if prompt is None or completion is None:
        raise ConfigError(
            "llm.prompt_price and llm.completion_price belong together: money for a million tokens of each; "
            f"got {prompt} and {completion}"
        )
    return Prices(prompt=prompt, completion=completion)
