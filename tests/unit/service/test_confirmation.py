"""Tokens: good once, for their plan, for a while."""

import pytest

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.service.confirmation import Confirmations, Plan

PLAN = Plan.of(["index", [["text", None, {}]]], 3)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def required(
    confirmations: Confirmations, token: str | None, plan: Plan = PLAN, extractions: int = 51
) -> None:
    confirmations.require(token, plan, extractions=extractions, cost="102 calls", action="index")


def test_a_token_is_good_for_its_plan_and_only_once():
    confirmations = Confirmations()
    token = confirmations.hand_out(PLAN)
    required(confirmations, token)
    with pytest.raises(InputError, match="used already"):
        required(confirmations, token)


def test_a_token_is_refused_for_other_arguments_and_stays_good_for_its_own():
    confirmations = Confirmations()
    token = confirmations.hand_out(PLAN)
    with pytest.raises(InputError, match="another plan"):
        required(confirmations, token, Plan.of(["index", [["texts", None, {}]]], 3))
    required(confirmations, token)


def test_a_token_is_refused_once_the_index_has_changed():
    confirmations = Confirmations()
    token = confirmations.hand_out(PLAN)
    with pytest.raises(InputError, match="index has changed"):
        required(confirmations, token, Plan(PLAN.arguments, 4))


def test_a_token_expires():
    clock = Clock()
    confirmations = Confirmations(seconds=10, clock=clock)
    early, late = confirmations.hand_out(PLAN), confirmations.hand_out(PLAN)
    clock.now = 9.9
    required(confirmations, early)
    clock.now = 10.0
    with pytest.raises(InputError, match="expired"):
        required(confirmations, late)


def test_a_made_up_token_is_refused_even_where_none_is_needed():
    with pytest.raises(InputError, match="not a token"):
        required(Confirmations(), "guess", extractions=0)


@pytest.mark.parametrize(
    ("above", "needed"),
    [(50, {51, 1000}), (0, {1, 50, 51, 1000}), (None, set())],
    ids=["50", "always", "never"],
)
def test_what_needs_a_token(above: int | None, needed: set[int]):
    confirmations = Confirmations(above=above)
    assert {count for count in (0, 1, 50, 51, 1000) if confirmations.needed(count)} == needed


def test_without_a_token_the_error_says_what_it_would_cost_and_how_to_get_one():
    with pytest.raises(InputError, match=r"51 passages \(102 calls\).*call index with dry_run=true"):
        required(Confirmations(), None)


@pytest.mark.parametrize("above", [-1, True, 1.5, "50"])
def test_a_limit_that_is_no_count_is_refused(above: object):
    with pytest.raises(ConfigError, match="confirm_above"):
        Confirmations(above=above)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "900"])
def test_a_time_that_is_none_is_refused(seconds: object):
    with pytest.raises(ConfigError, match="confirm_seconds"):
        Confirmations(seconds=seconds)  # type: ignore[arg-type]
