from pathlib import Path

import networkx
import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.export import export_graphml
from hipporag_torch.index import Index

from .conftest import HOSTILE, ROME, VARSOVIA, WARSAW


def test_networkx_reads_back_every_edge_with_its_weight(known: Index, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    assert export_graphml(known, path).paths == (path,)
    graph = networkx.read_graphml(path)
    names = [f"phrase:{p}" for p in known.phrases] + [f"passage:{p.id}" for p in known.passages]
    assert list(graph.nodes) == names
    adjacency = known.graph.adjacency
    entries = zip(adjacency.row.tolist(), adjacency.col.tolist(), adjacency.weight.tolist(), strict=True)
    expected = {(names[s], names[t]): weight for s, t, weight in entries if s < t}
    assert {(s, t): weight for s, t, weight in graph.edges.data("weight")} == expected
    assert not graph.is_directed()


def test_edges_and_nodes_say_what_they_are(known: Index, tmp_path: Path) -> None:
    export_graphml(known, tmp_path / "graph.graphml")
    graph = networkx.read_graphml(tmp_path / "graph.graphml")
    assert graph.nodes["phrase:marie"] == {"kind": "phrase", "label": "marie"}
    warsaw, varsovia = (known.text.passage_id(text) for text in (WARSAW, VARSOVIA))
    titled = {"kind": "passage", "label": "Marie", "id": warsaw, "title": "Marie"}
    assert graph.nodes[f"passage:{warsaw}"] == titled
    assert graph.nodes[f"passage:{varsovia}"] == {"kind": "passage", "label": VARSOVIA, "id": varsovia}
    assert graph.edges["phrase:marie", "phrase:warsaw"] == {"weight": 4.0, "kinds": "fact", "statements": 2}
    both = graph.edges["phrase:varsovia", "phrase:warsaw"]
    assert (both["kinds"], both["statements"], round(both["cosine"], 6)) == ("fact+synonym", 2, 0.6)
    member = graph.edges["phrase:marie", f"passage:{warsaw}"]
    assert member == {"weight": 1.0, "kinds": "membership", "statements": 0}


def test_an_index_of_sentences_has_mentions_beside_memberships(told: Index, tmp_path: Path) -> None:
    export_graphml(told, tmp_path / "graph.graphml")
    graph = networkx.read_graphml(tmp_path / "graph.graphml")
    passage = f"passage:{told.text.passage_id(ROME)}"
    assert graph.edges["phrase:oslo", passage] == {"weight": 0.25, "kinds": "mention", "statements": 0}
    assert graph.edges["phrase:rome", passage] == {"weight": 1.0, "kinds": "membership", "statements": 0}
    assert not graph.has_edge("phrase:oslo", "phrase:petra")


def test_texts_come_on_request(known: Index, tmp_path: Path) -> None:
    export_graphml(known, tmp_path / "graph.graphml", texts=True)
    graph = networkx.read_graphml(tmp_path / "graph.graphml")
    texts = {node: text for node, text in graph.nodes.data("text") if text is not None}
    assert texts == {f"passage:{passage.id}": passage.text for passage in known.passages}


def test_what_xml_cannot_hold_is_replaced_and_phrases_stay_apart(hostile: Index, tmp_path: Path) -> None:
    export_graphml(hostile, tmp_path / "graph.graphml", texts=True)
    graph = networkx.read_graphml(tmp_path / "graph.graphml")
    assert graph.number_of_nodes() == hostile.graph.num_nodes
    assert graph.number_of_edges() == hostile.graph.num_edges
    (text,) = (text for _, text in graph.nodes.data("text") if text is not None)
    assert text == HOSTILE.translate(dict.fromkeys(map(ord, "\x00\x07\x1b\ufffe"), "\ufffd"))
    alike = [node for node in graph if node.startswith("phrase:nonchar")]
    assert alike == ["phrase:nonchar " + "\ufffd" * number for number in (1, 2, 3)]
    assert {graph.nodes[node]["label"] for node in alike} == {"nonchar \ufffd"}
    assert {'phrase:"a" <b>', "phrase:👩‍👩‍👧 & co", "phrase:東京"} < set(graph)


def test_empty_index_gives_a_graph_without_nodes(empty: Index, tmp_path: Path) -> None:
    export_graphml(empty, tmp_path / "graph.graphml")
    assert len(networkx.read_graphml(tmp_path / "graph.graphml")) == 0


def test_the_same_index_gives_the_same_bytes(known: Index, tmp_path: Path) -> None:
    paths = [export_graphml(known, tmp_path / name).paths[0] for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_an_existing_file_stays_unless_overwrite_is_set(known: Index, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export_graphml(known, path)
    assert path.read_text() == "mine"
    export_graphml(known, path, overwrite=True)
    assert len(networkx.read_graphml(path)) == known.graph.num_nodes
    assert list(tmp_path.iterdir()) == [path]
