"""Budgets stop before they are exceeded, and say where they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.chat import ChatReply, Message, Prompt, Usage
from hipporag_torch.errors import BackendError, BudgetError, ConfigError
from hipporag_torch.llms.budget import Budget, BudgetedChatModel
from hipporag_torch.llms.metered import MeteredChatModel
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.llms.scripted import ScriptedChatModel

PRICES = Prices(prompt=1_000_000, completion=2_000_000)


def asked(count: int) -> list[Prompt]:
    return [(Message("user", f"prompt {number}"),) for number in range(count)]


def budgeted(budget: Budget, words: int = 3, prices: Prices | None = PRICES) -> BudgetedChatModel:
    """Prompts of 2 tokens, replies of `words` where 10 are estimated; a token costs 1 or 2."""
    inner = ScriptedChatModel(replies=lambda _: "w " * words)
    return BudgetedChatModel(model=inner, budget=budget, max_tokens=10, prices=prices)


@pytest.mark.parametrize(
    ("budget", "had", "said"),
    [
        (Budget(calls=3), 3, r"3 of 3 calls spent, 0 left; 5 of 8 prompts were not asked"),
        (Budget(calls=0), 0, r"0 of 0 calls spent, 0 left; 8 of 8 prompts were not asked"),
        (Budget(tokens=0), 0, "0 of 0 tokens spent"),
        (Budget(money=0), 0, "0 of 0 money spent"),
        (Budget(tokens=11), 0, r"about 2 tokens, a reply of up to 10, money 22\) would exceed"),
        # 5 tokens each where 12 are reserved: the fourth would need 15 + 12.
        (Budget(tokens=26), 3, "15 of 26 tokens spent, 11 left"),
        (Budget(tokens=27), 4, "20 of 27 tokens spent, 7 left"),
        # 8 of money each where 22 is reserved.
        (Budget(money=45.5), 3, "24 of 45.5 money spent, 21.5 left"),
        (Budget(calls=3, tokens=2_000_000), 3, "15 of 2,000,000 tokens spent, 1,999,985 left"),
        (Budget(calls=5, tokens=26), 3, "3 of 5 calls spent, 2 left; 15 of 26 tokens"),
    ],
)
def test_a_budget_stops_before_it_is_exceeded(budget: Budget, had: int, said: str):
    accepted: list[int] = []
    steps: list[tuple[str, int, int]] = []
    with pytest.raises(BudgetError, match=said):
        budgeted(budget).reply(
            asked(8),
            accept=lambda number, _: accepted.append(number) is None,
            progress=lambda *step: steps.append(step),
        )
    assert accepted == list(range(had)), "what was had is accepted first"
    assert steps == [("chat", done, 8) for done in range(1, had + 1)]


def test_a_budget_that_is_just_enough():
    budget = Budget(calls=8, tokens=7 * 5 + 12, money=7 * 8 + 22)
    replies = budgeted(budget).reply(asked(8))
    assert len(replies) == 8
    assert budget.spent == {"calls": 8, "tokens": 40, "money": 64}
    assert budgeted(budget).reply([]) == []


@given(st.integers(0, 200), st.integers(1, 10), st.integers(0, 12))
def test_no_budget_is_ever_exceeded(tokens: int, words: int, count: int):
    budget = Budget(tokens=tokens)
    meter = MeteredChatModel(model=budgeted(budget, words))
    fits = tokens >= (count - 1) * (2 + words) + 12 or count == 0
    if fits:
        meter.reply(asked(count))
    else:
        with pytest.raises(BudgetError):
            meter.reply(asked(count))
    assert meter.usage.prompt_tokens + meter.usage.completion_tokens == budget.spent["tokens"] <= tokens


def test_failures_cost_nothing_and_give_their_reservation_back():
    budget = Budget(calls=2)
    fails = ScriptedChatModel(replies=lambda _: ChatReply("", "error", error="500"))
    BudgetedChatModel(model=fails, budget=budget, max_tokens=10).reply(asked(5))
    assert len(budgeted(budget).reply(asked(2))) == 2


def test_a_batch_that_breaks_gives_its_reservations_back():
    def down(prompt: Prompt) -> str:
        raise BackendError("down")

    budget = Budget(calls=2)
    with pytest.raises(BackendError):
        BudgetedChatModel(model=ScriptedChatModel(replies=down), budget=budget, max_tokens=10).reply(asked(2))
    assert len(budgeted(budget).reply(asked(2))) == 2


def test_models_share_a_budget_at_their_own_prices():
    budget = Budget(money=60)
    budgeted(budget).reply(asked(1))
    cheap = Prices(prompt=0, completion=0)
    budgeted(budget, prices=cheap).reply(asked(20))
    assert budget.spent["money"] == 8
    with pytest.raises(BudgetError, match="40 of 60 money spent, 20 left; 16 of 20"):
        budgeted(budget).reply(asked(20))


def test_a_stream_is_within_the_budget_too():
    budget = Budget(calls=1)
    chat = budgeted(budget)
    assert chat.stream(asked(1)[0], lambda _: None).text == "w w w "
    with pytest.raises(BudgetError, match="1 of 1 calls"):
        chat.stream(asked(1)[0], lambda _: None)


def test_a_smaller_limit_of_the_call_is_what_is_reserved():
    budget = Budget(tokens=4)
    (reply,) = budgeted(budget).reply(asked(1), max_tokens=2)
    assert reply.finish == "length"
    assert budget.spent["tokens"] == 4


def test_money_needs_prices():
    with pytest.raises(ConfigError, match=r"prices of scripted are not known; set llm.prompt_price"):
        budgeted(Budget(money=1), prices=None)


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf")])
def test_limits_that_are_none(limit: float):
    with pytest.raises(ConfigError, match=r"budget.money must be at least 0"):
        Budget(money=limit)
    with pytest.raises(ConfigError, match="price of a million prompt tokens"):
        Prices(prompt=limit, completion=1)


def test_a_meter_counts_a_batch_that_broke_too():
    def answer(prompt: Prompt) -> str:
        if prompt[0].text == "prompt 2":
            raise BackendError("down")
        return "two words"

    meter = MeteredChatModel(model=ScriptedChatModel(replies=answer))
    with pytest.raises(BackendError):
        meter.reply(asked(4))
    meter.stream(asked(1)[0], lambda _: None)
    assert meter.usage == Usage(3, 6, 6)
    assert PRICES.money(meter.usage) == 6 + 12
