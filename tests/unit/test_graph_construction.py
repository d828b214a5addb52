import math

import pytest
import torch

from hipporag_torch.errors import ConfigError
from hipporag_torch.graph import Graph
from hipporag_torch.graph_construction import GraphOptions, ReferenceGraphOptions, Statements, build_graph
from hipporag_torch.ops.pairs import Pairs

Statement = tuple[int, int, int, int]
Edges = dict[tuple[int, int], float]


def statements_of(*rows: Statement) -> Statements:
    """Rows of (passage, fact, subject, object), the ends of which are written as no names."""
    return Statements.of([(*row, False, False) for row in rows])


def pairs_of(*rows: tuple[int, int, float]) -> Pairs:
    table = torch.tensor(rows, dtype=torch.float64).reshape(-1, 3)
    return Pairs(table[:, 0].long(), table[:, 1].long(), table[:, 2].float())


def edges_of(graph: Graph) -> Edges:
    matrix = graph.validate().adjacency
    entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.weight.tolist(), strict=True)
    return {(row, col): weight for row, col, weight in entries if row < col}


def build(
    phrases: list[str],
    num_passages: int = 0,
    statements: tuple[Statement, ...] = (),
    synonyms: tuple[tuple[int, int, float], ...] = (),
    *,
    reference: bool = False,
    **options: object,
) -> Edges:
    """The edges with every kind weighing 1, unless `options` say otherwise: defaults are a measurement's."""
    weights = dict.fromkeys(("fact_weight", "synonym_weight", "membership_weight"), 1.0)
    chosen = ReferenceGraphOptions(**options) if reference else GraphOptions(**(weights | options))
    graph = build_graph(phrases, num_passages, statements_of(*statements), pairs_of(*synonyms), chosen)
    assert (graph.num_phrases, graph.num_passages) == (len(phrases), num_passages)
    return edges_of(graph)


def build_reference(
    phrases: list[str],
    num_passages: int = 0,
    statements: tuple[Statement, ...] = (),
    synonyms: tuple[tuple[int, int, float], ...] = (),
    **options: object,
) -> Edges:
    chosen = ReferenceGraphOptions(**options)
    return edges_of(
        build_graph(phrases, num_passages, statements_of(*statements), pairs_of(*synonyms), chosen)
    )


PHRASES = ["ana", "bergen", "oslo"]


class TestFacts:
    def test_a_fact_joins_its_ends_and_its_passage_states_them(self):
        assert build(PHRASES, 1, ((0, 0, 0, 2),)) == {(0, 2): 1, (0, 3): 1, (2, 3): 1}

    def test_every_statement_counts_and_membership_does_not_grow(self):
        """Two wordings of fact 0 in passage 0, and the same fact in passage 1."""
        edges = build(PHRASES, 2, ((0, 0, 0, 2), (0, 0, 0, 2), (1, 0, 0, 2)))
        assert edges == {(0, 2): 3, (0, 3): 1, (2, 3): 1, (0, 4): 1, (2, 4): 1}

    def test_both_directions_fall_on_one_pair(self):
        assert build(PHRASES, 1, ((0, 0, 0, 2), (0, 1, 2, 0)))[0, 2] == 2

    def test_different_predicates_fall_on_one_pair(self):
        assert build(PHRASES, 1, ((0, 0, 1, 2), (0, 1, 1, 2)))[1, 2] == 2

    def test_a_fact_about_itself_joins_only_its_passage(self):
        assert build(PHRASES, 1, ((0, 0, 1, 1),)) == {(1, 3): 1}

    def test_weights_scale_each_kind(self):
        edges = build(PHRASES, 1, ((0, 0, 0, 2), (0, 1, 2, 0)), fact_weight=0.25, membership_weight=3.0)
        assert edges == {(0, 2): 0.5, (0, 3): 3, (2, 3): 3}

    def test_a_weight_of_zero_makes_no_edges(self):
        statements = ((0, 0, 0, 2),)
        synonyms = ((0, 1, 0.9),)
        assert build(PHRASES, 1, statements, synonyms, fact_weight=0.0) == {
            (0, 1): pytest.approx(0.9),
            (0, 3): 1,
            (2, 3): 1,
        }
        assert build(PHRASES, 1, statements, synonyms, membership_weight=0.0, synonym_weight=0.0) == {
            (0, 2): 1
        }

    @pytest.mark.parametrize("num_passages", [0, 2])
    def test_no_statements_make_no_edges(self, num_passages: int):
        assert build([], num_passages) == build_reference([], num_passages) == {}
        assert build(PHRASES, num_passages) == build_reference(PHRASES, num_passages) == {}


def test_memberships_are_distinct_and_sorted():
    statements = statements_of((1, 0, 2, 0), (0, 1, 1, 1), (1, 0, 2, 0), (1, 2, 0, 1))
    passage_idx, phrase_idx = statements.memberships(3)
    assert list(zip(passage_idx.tolist(), phrase_idx.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert len(statements) == 4


class TestSynonyms:
    def test_a_pair_weighs_its_cosine(self):
        assert build(["oslo", "oslo city"], synonyms=((0, 1, 0.875),), synonym_weight=2.0) == {(0, 1): 1.75}

    def test_fact_and_synonym_weights_add_up(self):
        assert build(PHRASES, 1, ((0, 0, 1, 2), (0, 1, 2, 1)), ((1, 2, 0.875),))[1, 2] == 2.875

    def test_both_ends_must_list_the_other(self):
        """Of 0's two synonyms the closer stays; 2 would have listed 0."""
        assert build(PHRASES, synonyms=((0, 1, 0.875), (0, 2, 0.8125)), synonym_cap=1) == {(0, 1): 0.875}

    def test_a_chain_under_the_cap_keeps_only_mutual_choices(self):
        phrases = ["aaa", "bbb", "ccc", "ddd"]
        synonyms = ((0, 1, 0.8125), (1, 2, 0.9375), (2, 3, 0.875))
        assert build(phrases, synonyms=synonyms, synonym_cap=1) == {(1, 2): 0.9375}
        assert set(build(phrases, synonyms=synonyms, synonym_cap=2)) == {(0, 1), (1, 2), (2, 3)}

    def test_ties_at_the_cap_go_by_row(self):
        synonyms = ((0, 1, 0.875), (0, 2, 0.875), (1, 2, 0.875))
        assert build(PHRASES, synonyms=synonyms, synonym_cap=1) == {(0, 1): 0.875}

    def test_a_pair_that_a_filter_refuses_takes_no_place_on_a_list(self):
        phrases = ["may 1963", "may 1964", "may of 1963"]
        synonyms = ((0, 1, 0.9375), (0, 2, 0.875))
        assert build(phrases, synonyms=synonyms, synonym_cap=1) == {(0, 2): 0.875}

    def test_a_cap_of_zero_makes_no_synonyms(self):
        assert build(PHRASES, synonyms=((0, 1, 0.9),), synonym_cap=0) == {}

    @pytest.mark.parametrize(
        ("phrase", "length"),
        [
            ("ab", 2),
            ("a-b", 2),
            ("a b c", 3),
            ("c++", 1),
            ("北", 2),
            ("北京", 4),
            ("は1", 3),
            ("가", 2),
            ("ñú", 2),
            ("ab๒", 3),
        ],
    )
    def test_letters_and_digits_make_a_length_and_cjk_counts_twice(self, phrase: str, length: int):
        phrases = [phrase, "long enough"]
        same_length = {"synonyms": ((0, 1, 0.875),), "synonym_same_digits": False}
        assert build(phrases, synonym_min_length=length, **same_length) == {(0, 1): 0.875}
        assert build(phrases, synonym_min_length=length + 1, **same_length) == {}

    @pytest.mark.parametrize(
        ("first", "second", "alike"),
        [
            ("1963", "1964", False),
            ("9 may 1963", "1963, may 9", True),
            ("apollo 11", "apollo", False),
            ("apollo 11", "apollo 1 1", False),
            ("apollo", "apollo program", True),
            ("2 of 2", "2 of 2 parts", True),
            ("2 of 2", "2 parts", False),
            ("007", "7 bond", False),
        ],
    )
    def test_phrases_of_different_digits_are_no_synonyms(self, first: str, second: str, alike: bool):
        synonyms = ((0, 1, 0.875),)
        assert build([first, second], synonyms=synonyms) == ({(0, 1): 0.875} if alike else {})
        assert build([first, second], synonyms=synonyms, synonym_same_digits=False) == {(0, 1): 0.875}


class TestReferenceWeights:
    def test_facts_count_twice_and_memberships_once(self):
        edges = build_reference(PHRASES, 1, ((0, 0, 0, 2), (0, 1, 2, 0)))
        assert edges == {(0, 2): 4, (0, 3): 1, (2, 3): 1}

    def test_a_synonym_counts_twice(self):
        assert build_reference(["oslo", "oslo city"], synonyms=((0, 1, 0.875),)) == {(0, 1): 1.75}

    def test_a_synonym_takes_the_place_of_the_facts(self):
        edges = build_reference(PHRASES, 1, ((0, 0, 1, 2), (0, 1, 1, 2)), ((1, 2, 0.875),))
        assert edges[1, 2] == 1.75

    def test_a_cosine_of_1_beside_one_fact_is_still_an_edge(self):
        assert build_reference(PHRASES, 1, ((0, 0, 1, 2),), ((1, 2, 1.0),))[1, 2] == 2

    def test_a_short_phrase_is_found_and_looks_for_none(self):
        assert build_reference(["uk", "uk."], synonyms=((0, 1, 0.875),)) == {}
        assert build_reference(["uk", "u.k. land"], synonyms=((0, 1, 0.875),)) == {(0, 1): 0.875}

    def test_in_one_direction_only_the_facts_of_the_other_stay(self):
        edges = build_reference(["uk", "britain"], 1, ((0, 0, 0, 1), (0, 1, 0, 1)), ((0, 1, 0.875),))
        assert edges[0, 1] == 2.875

    def test_the_empty_phrase_is_not_found(self):
        statements = ((0, 0, 0, 1),)
        edges = build_reference(["", "britain"], 1, statements, ((0, 1, 0.875),))
        assert edges == {(0, 1): 2, (0, 2): 1, (1, 2): 1}

    def test_each_list_enters_its_own_direction(self):
        """1 is on 0's list of one, 0 is not on 1's, which lists 2."""
        synonyms = ((0, 1, 0.8125), (1, 2, 0.9375))
        edges = build_reference(PHRASES, synonyms=synonyms, synonym_cap=1)
        assert edges == {(0, 1): 0.8125, (1, 2): 1.875}

    def test_different_digits_are_synonyms(self):
        edges = build_reference(["1963", "1964"], synonyms=((0, 1, 0.875),))
        assert edges == {(0, 1): 1.75}


class TestOptions:
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("fact_weight", -0.5),
            ("synonym_weight", math.nan),
            ("membership_weight", -1.0),
            ("fact_weight", math.inf),
            ("mention_weight", -0.25),
        ],
    )
    def test_a_weight_that_is_no_weight_is_refused_by_name(self, option: str, value: float):
        with pytest.raises(ConfigError, match=rf"graph\.{option} must .*, got {value}"):
            GraphOptions(**{option: value})

    @pytest.mark.parametrize("options", [GraphOptions, ReferenceGraphOptions])
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("synonym_threshold", 0.0),
            ("synonym_threshold", -0.5),
            ("synonym_threshold", math.nan),
            ("synonym_cap", -1),
            ("synonym_min_length", -1),
        ],
    )
    def test_a_value_out_of_range_is_refused_by_name(self, options: type, option: str, value: float):
        with pytest.raises(ConfigError, match=rf"graph\.{option} must .*, got {value}"):
            options(**{option: value})
