"""A study: named variants of one way to retrieve, stated one by one or drawn at random from a box."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hipporag_torch.errors import ConfigError

# It becomes a folder's name.
_NAME = re.compile(r"\w([\w .,=+-]*[\w+-])?")
_FORMS = "a list of values, {low, high}, {choices, keys} or {dirichlet, keys}"


@dataclass(frozen=True)
class Variant:
    """Overrides of a run's config, relative to the run's own; `drawn` says that they come from a box."""

    name: str
    overrides: tuple[str, ...]
    drawn: bool = False


class Study:
    """What is compared, with what, and by which metric.

    variants: name → overrides. baseline: the name of that which the others are compared with; None takes
        the first. metric: a name that the rows of an evaluation hold.
    halves: whether the metric is also given on two random halves of the questions, so that a search may
        look at one of them only.
    random: {count, seed}: how many variants are drawn from `box` beside those stated, `random 0` and so on;
        of one seed, fewer are the first of more.
    box: config key → [values], of which one is taken, or {low, high}, between which a number is drawn
        evenly; name → {choices: [values], keys: […]}, where the keys share a value, or
        {dirichlet: [alphas], keys: […]}, where the keys are the shares of a whole. Drawn numbers are cut to
        four digits, so that the overrides say all of them.
    """

    def __init__(
        self,
        *,
        variants: Mapping[str, Sequence[str]],
        baseline: str | None = None,
        metric: str = "recall@5",
        halves: bool = False,
        random: Mapping[str, int] | None = None,
        box: Mapping[str, Any] | None = None,
    ) -> None:
        stated = _stated(variants)
        if type(halves) is not bool:
            raise ConfigError(f"study.halves must be true or false, got {halves!r}")
        if (random is None) != (box is None):
            raise ConfigError("study.random and study.box belong together: state both, or leave out both")
        drawn = () if random is None or box is None else _random(random, box)
        self.variants: tuple[Variant, ...] = (*stated, *drawn)
        by_name = {variant.name: variant for variant in self.variants}
        if len(by_name) != len(self.variants):
            taken = sorted({variant.name for variant in stated} & {variant.name for variant in drawn})
            raise ConfigError(f"study.variants must not use the names of drawn ones, got {', '.join(taken)}")
        name = stated[0].name if baseline is None else baseline
        if name not in by_name:
            raise ConfigError(f"study.baseline must be one of {', '.join(by_name)}, got {name!r}")
        self.baseline = by_name[name]
        self.metric = metric
        self.halves = halves


def drawn_variants(box: Mapping[str, Any], *, count: int, seed: int) -> tuple[Variant, ...]:
    """`count` variants from `box`, whose forms `Study` explains. Raises `ConfigError` for other forms."""
    rng = np.random.default_rng(seed)
    width = len(str(count - 1))
    return tuple(
        Variant(
            f"random {number:0{width}d}",
            tuple(override for name, form in box.items() for override in _draw(name, form, rng)),
            drawn=True,
        )
        for number in range(count)
    )


def _stated(variants: Mapping[str, Sequence[str]]) -> tuple[Variant, ...]:
    if not isinstance(variants, Mapping) or not variants:
        raise ConfigError(f"study.variants must map names to lists of overrides, got {variants!r:.80}")
    for name, overrides in variants.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"study.variants: the name {name!r:.80} cannot be a folder's; use letters, digits, spaces "
                "and _ . , = + -"
            )
        if not _is_list(overrides) or not all(isinstance(override, str) for override in overrides):
            raise ConfigError(
                f"study.variants: {name} must be a list of overrides such as ppr.damping=0.6, "
                f"got {overrides!r:.80}"
            )
    return tuple(Variant(name, tuple(overrides)) for name, overrides in variants.items())


def _random(random: Mapping[str, int], box: Mapping[str, Any]) -> tuple[Variant, ...]:
    if not isinstance(random, Mapping) or random.keys() != {"count", "seed"}:
        raise ConfigError(f"study.random must be {{count: …, seed: …}}, got {random!r:.80}")
    for key, least in (("count", 1), ("seed", 0)):
        if type(random[key]) is not int or random[key] < least:
            raise ConfigError(
                f"study.random: {key} must be a whole number of at least {least}, got {random[key]!r:.80}"
            )
    if not isinstance(box, Mapping) or not box:
        raise ConfigError(f"study.box must map config keys to {_FORMS}, got {box!r:.80}")
    return drawn_variants(box, count=random["count"], seed=random["seed"])


def _draw(name: str, form: Any, rng: np.random.Generator) -> list[str]:
    if _filled(form):
        return [f"{name}={_text(_choice(form, rng))}"]
    kind = sorted(form) if isinstance(form, Mapping) else None
    if kind == ["high", "low"] and _numbers([form["low"], form["high"]]) and form["low"] <= form["high"]:
        return [f"{name}={rng.uniform(form['low'], form['high']):.4g}"]
    if kind == ["choices", "keys"] and _filled(form["choices"]) and _filled(form["keys"]):
        value = _text(_choice(form["choices"], rng))
        return [f"{key}={value}" for key in form["keys"]]
    if kind == ["dirichlet", "keys"] and _filled(form["keys"]):
        alphas = form["dirichlet"]
        if _filled(alphas) and _numbers(alphas) and min(alphas) > 0 and len(alphas) == len(form["keys"]):
            shares = rng.dirichlet(alphas)
            return [f"{key}={share:.4g}" for key, share in zip(form["keys"], shares, strict=True)]
    raise ConfigError(
        f"study.box: {name} must be {_FORMS}, with low ≤ high and an alpha above 0 for each key, "
        f"got {form!r:.120}"
    )


def _choice(values: Sequence[Any], rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def _text(value: Any) -> str:
    """As an override has it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _filled(values: Any) -> bool:
    return _is_list(values) and len(values) > 0


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str)


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
