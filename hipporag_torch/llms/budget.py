"""A limit on what models may be asked, which stops before it is exceeded."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import isfinite
from threading import Lock
from typing import Any

from hipporag_torch.chat import Accept, ChatReply, Prompt, Usage, accept_all
from hipporag_torch.errors import BudgetError, ConfigError
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.llms.wrapped import Wrapped
from hipporag_torch.protocols import ChatModel, Progress, no_progress

_ROUNDING = 1e-9


class Budget:
    """Calls, tokens (of prompts and completions) and money that may be spent; None: any amount, 0: nothing.

    Several models may share one. A call is admitted if the estimate for it and for those under way fits
    into what is left; what it really took counts once its reply is there.
    """

    def __init__(
        self, *, calls: int | None = None, tokens: int | None = None, money: float | None = None
    ) -> None:
        self._limits = {"calls": calls, "tokens": tokens, "money": money}
        for name, limit in self._limits.items():
            if limit is not None and not (isfinite(limit) and limit >= 0):
                raise ConfigError(f"budget.{name} must be at least 0, or null for any amount, got {limit}")
        self._spent = {"calls": 0.0, "tokens": 0.0, "money": 0.0}
        self._reserved = dict(self._spent)
        self._lock = Lock()

    @property
    def counts_money(self) -> bool:
        return self._limits["money"] is not None

    @property
    def spent(self) -> dict[str, float]:
        """Calls, tokens and money so far."""
        return dict(self._spent)

    def admit(self, usage: Usage, prices: Prices | None) -> bool:
        """Reserve an estimate, unless it does not fit."""
        with self._lock:
            amounts = _amounts(usage, prices)
            for name, limit in self._limits.items():
                if limit is None:
                    continue
                # Sums of money are not exact: a budget that fits to the last cent is to be usable.
                if self._spent[name] + self._reserved[name] + amounts[name] > limit * (1 + _ROUNDING):
                    return False
            self._move(self._reserved, amounts, 1)
            return True

    def settle(self, estimate: Usage, usage: Usage, prices: Prices | None) -> None:
        """Give an estimate back and count what was used instead."""
        with self._lock:
            self._move(self._reserved, _amounts(estimate, prices), -1)
            self._move(self._spent, _amounts(usage, prices), 1)

    def state(self) -> str:
        """What was spent and what is left, for people."""
        parts = []
        for name, limit in self._limits.items():
            if limit is not None:
                spent = self._spent[name]
                shown = [_shown(amount) for amount in (spent, limit, max(0.0, limit - spent))]
                parts.append(f"{shown[0]} of {shown[1]} {name} spent, {shown[2]} left")
        return "; ".join(parts) or "no limit is set"

    @staticmethod
    def _move(into: dict[str, float], amounts: Mapping[str, float], sign: int) -> None:
        for name, amount in amounts.items():
            into[name] += sign * amount


class BudgetedChatModel(Wrapped):
    """Wraps any chat model and raises `BudgetError` before the next call could exceed the budget.

    A call is estimated as its prompt's tokens and `max_tokens` of a reply: those of the call, or else
    those given here, which must be the model's own limit. As many prompts as fit are asked at once; when
    their replies took less than was estimated, more follow. Put a cache around it, not inside: what a
    cache gives is free.

    prices: needed by a budget that counts money.
    """

    def __init__(
        self, *, model: ChatModel, budget: Budget, max_tokens: int, prices: Prices | None = None
    ) -> None:
        if max_tokens < 1:
            raise ConfigError(f"a budget needs the most tokens of a reply, at least 1, got {max_tokens}")
        if budget.counts_money and prices is None:
            raise ConfigError(
                f"budget.money is set, but the prices of {model.identity.model} are not known; set "
                "llm.prompt_price and llm.completion_price, money for a million tokens of each"
            )
        super().__init__(model)
        self._budget, self._max_tokens, self._prices = budget, max_tokens, prices

    def reply(
        self,
        prompts: Sequence[Prompt],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        accept: Accept = accept_all,
        progress: Progress = no_progress,
    ) -> list[ChatReply]:
        """As every chat model's; replies that were had before the budget ended have been accepted."""
        replies: list[ChatReply] = []
        while (start := len(replies)) < len(prompts):
            wave = self._admitted(islice(prompts, start, None), max_tokens)
            if not wave:
                raise self._exceeded(prompts[start], max_tokens, len(prompts) - start, len(prompts))
            open_estimates = dict(enumerate(wave))

            def settled(
                number: int, reply: ChatReply, start: int = start, waiting: dict[int, Usage] = open_estimates
            ) -> bool:
                self._budget.settle(waiting.pop(number), reply.usage, self._prices)
                return accept(start + number, reply)

            def shifted(stage: str, done: int, _: int, start: int = start) -> None:
                progress(stage, start + done, len(prompts))

            try:
                replies += self._model.reply(
                    prompts[start : start + len(wave)],
                    schema=schema,
                    max_tokens=max_tokens,
                    accept=settled,
                    progress=shifted,
                )
            finally:
                for estimate in open_estimates.values():
                    self._budget.settle(estimate, Usage(), self._prices)
        return replies

    def stream(
        self, prompt: Prompt, show: Callable[[str], None], *, max_tokens: int | None = None
    ) -> ChatReply:
        estimate, usage = self._estimate(prompt, max_tokens), Usage()
        if not self._budget.admit(estimate, self._prices):
            raise self._exceeded(prompt, max_tokens, 1, 1)
        try:
            reply = self._model.stream(prompt, show, max_tokens=max_tokens)
            usage = reply.usage
            return reply
        finally:
            self._budget.settle(estimate, usage, self._prices)

    def _admitted(self, prompts: Any, max_tokens: int | None) -> list[Usage]:
        """The estimates of the first prompts, as many as fit."""
        wave: list[Usage] = []
        for prompt in prompts:
            estimate = self._estimate(prompt, max_tokens)
            if not self._budget.admit(estimate, self._prices):
                break
            wave.append(estimate)
        return wave

    def _estimate(self, prompt: Prompt, max_tokens: int | None) -> Usage:
        limit = self._max_tokens if max_tokens is None else max_tokens
        return Usage(calls=1, prompt_tokens=self.count_tokens(prompt), completion_tokens=limit)

    def _exceeded(self, prompt: Prompt, max_tokens: int | None, left: int, total: int) -> BudgetError:
        estimate = self._estimate(prompt, max_tokens)
        cost = "" if self._prices is None else f", money {_shown(self._prices.money(estimate))}"
        return BudgetError(
            f"the next call of {self.identity.model} (about {estimate.prompt_tokens:,} tokens, a reply of up "
            f"to {estimate.completion_tokens:,}{cost}) would exceed the budget: {self._budget.state()}; "
            f"{left:,} of {total:,} prompts were not asked. Raise the budget and run "
            "again; what was had is kept"
        )


def _shown(amount: float) -> str:
    """Whole, or with the digits that a cheap call's money has."""
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.6f}".rstrip("0")


def _amounts(usage: Usage, prices: Prices | None) -> dict[str, float]:
    money = 0.0 if prices is None else prices.money(usage)
    return {"calls": usage.calls, "tokens": usage.prompt_tokens + usage.completion_tokens, "money": money}
