"""What language models were asked, or would be, as a person reads it on a terminal."""

from collections.abc import Mapping

from hipporag_torch.chat import Usage
from hipporag_torch.console import console, table
from hipporag_torch.console.rows import Row, show_rows
from hipporag_torch.costs import Costs
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.llms.roles import ChatModels


def show_usage(models: ChatModels) -> None:
    """What each role of a run was asked; nothing if none was."""
    rows: list[Row] = []
    for role, usage in models.usage.items():
        rows += usage_rows(role, usage, models.prices(role))
    if rows:
        show_rows(rows)


def usage_rows(name: str, usage: Usage, prices: Prices | None) -> list[Row]:
    """Calls, tokens and money, and on a second row what a cache gave; no row where nothing was asked."""
    rows: list[Row] = []
    if usage.calls:
        tokens = _tokens(usage.prompt_tokens, usage.completion_tokens)
        rows.append((name, f"{_calls(usage.calls)}, {tokens}{_money(usage, prices)}"))
    if usage.cached_calls:
        tokens = _tokens(usage.cached_prompt_tokens, usage.cached_completion_tokens)
        rows.append(("" if rows else name, f"{_calls(usage.cached_calls)} from the cache, {tokens}"))
    return rows


def estimate_rows(name: str, usage: Usage, prices: Prices | None) -> list[Row]:
    """The tokens and money of an estimate; no row where nothing would be asked."""
    if not usage.calls:
        return []
    tokens = f"about {usage.prompt_tokens:,} of prompts, at most {usage.completion_tokens:,} of replies"
    return [(name, tokens), *([("money", f"at most{_money(usage, prices)[1:]}")] if prices else [])]


def show_costs(costs: Mapping[str, Costs]) -> None:
    """A dry run's estimate for each use of a model."""
    if not costs:
        console.print("no language model would be asked", highlight=False)
        return
    priced = any(cost.prices for cost in costs.values())
    rows = []
    for name, cost in costs.items():
        usage = cost.usage
        row = [name, f"{usage.calls:,}", f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}"]
        rows.append([*row, *([money(usage, cost.prices) if cost.prices else "–"] if priced else [])])
    columns = ["", "calls", "prompt tokens", "reply tokens"]
    console.print(table("at most", [*columns, *(["money"] if priced else [])], rows))


def money(usage: Usage, prices: Prices) -> str:
    """An amount, with the digits that a cheap call's has."""
    return f"{prices.money(usage):,.4f}"


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"


def _tokens(prompt: int, completion: int) -> str:
    return f"{prompt:,} tokens of prompts, {completion:,} of replies"


def _money(usage: Usage, prices: Prices | None) -> str:
    return f", money {money(usage, prices)}" if prices else ""
