"""What shapes stored state, as JSON and in the messages that refuse something else."""

import pytest

from hipporag_torch.errors import CompatibilityError
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions, ReferenceGraphOptions
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.store.identity import (
    embedder_from_json,
    embedder_to_json,
    graph_from_json,
    graph_to_json,
    require_same_graph,
    require_same_text,
    text_from_json,
    text_to_json,
)
from hipporag_torch.text import TextOptions


@pytest.mark.parametrize(
    "identity",
    [
        EmbedderIdentity("hashing", "1", 256, "sum"),
        EmbedderIdentity(
            'a "model" \\ 東京',
            "sha",
            1024,
            "last",
            8192,
            (("fact", "Instruct:\n"), ("question_to_fact", "Given a \x00 query: ")),
        ),
    ],
)
def test_an_embedder_comes_back(identity: EmbedderIdentity) -> None:
    assert embedder_from_json(embedder_to_json(identity)) == identity


@pytest.mark.parametrize(
    "options",
    [
        GraphOptions(),
        GraphOptions(synonym_threshold=0.1 + 0.2, synonym_same_digits=False),
        ReferenceGraphOptions(),
    ],
)
def test_graph_options_come_back(options: AnyGraphOptions) -> None:
    assert graph_from_json(graph_to_json(options)) == options


def test_text_options_come_back() -> None:
    options = TextOptions(normalisation="reference", fact_template="repr", content_id="md5")
    assert text_from_json(text_to_json(options)) == options


def test_what_is_not_stated_or_the_same_is_no_conflict() -> None:
    require_same_text(TextOptions(), None, "x")
    require_same_text(TextOptions(), TextOptions(), "x")
    require_same_graph(GraphOptions(), None, "x")
    require_same_graph(GraphOptions(), GraphOptions(), "x")


def test_other_text_options_are_refused_with_both_sides() -> None:
    message = (
        r"the index memory was built with text options content_id='md5', "
        r"but content_id='sha256' was stated; .*another directory"
    )
    with pytest.raises(CompatibilityError, match=message):
        require_same_text(TextOptions(content_id="md5"), TextOptions(), "memory")


def test_other_graph_options_are_refused_with_both_sides() -> None:
    message = (
        r"fact_weight=2.0, synonym_cap=100, but fact_weight=1.0, synonym_cap=9 was stated; .*rebuild_graph"
    )
    with pytest.raises(CompatibilityError, match=message):
        require_same_graph(GraphOptions(), GraphOptions(fact_weight=1.0, synonym_cap=9), "memory")
    message = r"ReferenceGraphOptions\(.*\), but GraphOptions\(.*\) were stated"
    with pytest.raises(CompatibilityError, match=message):
        require_same_graph(ReferenceGraphOptions(), GraphOptions(), "memory")
