from collections.abc import Mapping
from typing import Any

import pytest

from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation.variants import Study, Variant, drawn_variants

VARIANTS = {"dense": ["retriever=dense"], "damping 0.7": ["ppr.damping=0.7", "seeding=reference"]}
BOX = {
    "seeding": ["reference"],
    "ppr.damping": {"low": 0.4, "high": 0.8},
    "graph.synonym_same_digits": [True, False],
    "seeding.linking_top_k": [5, 10, 20],
    "edges": {"choices": [1.0, 2.0], "keys": ["graph.fact_weight", "graph.synonym_weight"]},
    "shares": {"dirichlet": [4, 4, 4], "keys": ["a.x", "a.y", "a.z"]},
}


def stated_by(variant: Variant) -> dict[str, str]:
    return dict(override.split("=") for override in variant.overrides)


def test_stated_variants_stand_in_their_order() -> None:
    study = Study(variants=VARIANTS)
    assert study.variants == (
        Variant("dense", ("retriever=dense",)),
        Variant("damping 0.7", ("ppr.damping=0.7", "seeding=reference")),
    )
    assert study.baseline.name == "dense"
    assert Study(variants=VARIANTS, baseline="damping 0.7").baseline is not study.variants[0]


def test_drawn_variants_come_after_those_stated() -> None:
    study = Study(variants=VARIANTS, random={"count": 11, "seed": 3}, box=BOX)
    assert [variant.name for variant in study.variants[:4]] == [
        "dense",
        "damping 0.7",
        "random 00",
        "random 01",
    ]
    assert [variant.drawn for variant in study.variants] == [False] * 2 + [True] * 11
    assert study.variants[2:] == drawn_variants(BOX, count=11, seed=3)


def test_what_is_drawn_lies_in_the_box() -> None:
    drawn = [stated_by(variant) for variant in drawn_variants(BOX, count=200, seed=0)]
    assert {row["seeding"] for row in drawn} == {"reference"}
    assert {row["seeding.linking_top_k"] for row in drawn} == {"5", "10", "20"}
    assert {row["graph.synonym_same_digits"] for row in drawn} == {"true", "false"}
    edges = {(row["graph.fact_weight"], row["graph.synonym_weight"]) for row in drawn}
    assert edges == {("1.0", "1.0"), ("2.0", "2.0")}
    dampings = [float(row["ppr.damping"]) for row in drawn]
    assert min(dampings) >= 0.4
    assert max(dampings) <= 0.8
    assert sum(dampings) / 200 == pytest.approx(0.6, abs=0.03)
    shares = [[float(row[key]) for key in ("a.x", "a.y", "a.z")] for row in drawn]
    assert all(sum(row) == pytest.approx(1, abs=2e-4) for row in shares)
    assert [sum(column) / 200 for column in zip(*shares, strict=True)] == pytest.approx([1 / 3] * 3, abs=0.03)


def test_a_seed_decides_what_is_drawn_and_fewer_are_the_first_of_more() -> None:
    ten = [variant.overrides for variant in drawn_variants(BOX, count=10, seed=1)]
    assert [variant.overrides for variant in drawn_variants(BOX, count=3, seed=1)] == ten[:3]
    assert [variant.overrides for variant in drawn_variants(BOX, count=10, seed=2)] != ten
    assert len(set(ten)) == 10


def test_null_is_a_choice() -> None:
    (variant,) = drawn_variants({"ppr.tile": [None]}, count=1, seed=0)
    assert variant.overrides == ("ppr.tile=null",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": {}}, "study.variants must map names to lists of overrides"),
        ({"variants": ["a"]}, "study.variants must map names"),
        ({"variants": {"a/b": []}}, "the name 'a/b' cannot be a folder's"),
        ({"variants": {"..": []}}, "cannot be a folder's"),
        ({"variants": {"a ": []}}, "cannot be a folder's"),
        ({"variants": {"a": "ppr.damping=1"}}, "a must be a list of overrides such as ppr.damping=0.6"),
        ({"variants": {"a": [0.5]}}, "a must be a list of overrides"),
        ({"baseline": "none"}, "study.baseline must be one of dense, damping 0.7, got 'none'"),
        ({"halves": 1}, "study.halves must be true or false, got 1"),
        ({"random": {"count": 2, "seed": 0}}, "study.random and study.box belong together"),
        ({"box": BOX}, "study.random and study.box belong together"),
        ({"random": {"count": 2}, "box": BOX}, r"study.random must be {count: …, seed: …}"),
        (
            {"random": {"count": 0, "seed": 0}, "box": BOX},
            "count must be a whole number of at least 1, got 0",
        ),
        (
            {"random": {"count": 1, "seed": -1}, "box": BOX},
            "seed must be a whole number of at least 0, got -1",
        ),
        ({"random": {"count": 1, "seed": 0}, "box": {}}, "study.box must map config keys to"),
        (
            {"variants": {"random 0": []}, "random": {"count": 2, "seed": 0}, "box": BOX},
            "must not use the names of drawn ones, got random 0",
        ),
    ],
)
def test_a_study_that_is_not_one(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Study(**{"variants": VARIANTS, **options})


@pytest.mark.parametrize(
    "form",
    [
        [],
        0.5,
        "abc",
        {"low": 0.5},
        {"low": 0.5, "high": 0.4},
        {"low": "a", "high": "b"},
        {"choices": [], "keys": ["a"]},
        {"choices": [1], "keys": []},
        {"choices": [1]},
        {"dirichlet": [4, 4], "keys": ["a"]},
        {"dirichlet": [4, 0], "keys": ["a", "b"]},
        {"dirichlet": 4, "keys": ["a"]},
        {"dirichlet": [], "keys": []},
    ],
)
def test_a_box_of_another_form_is_refused(form: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"study\.box: ppr\.damping must be a list of values, \{low, high\}"
    ):
        drawn_variants({"ppr.damping": form}, count=1, seed=0)
