"""The graph as GraphML, for networkx, Gephi, yEd, Cytoscape and igraph."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hipporag_torch.export.edges import edges_of, node_names
from hipporag_torch.export.files import Exported, drafts
from hipporag_torch.index import Index
from hipporag_torch.types import Passage

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT = "\ufffd"
_MAX_LABEL = 80


def export_graphml(
    index: Index, path: str | Path, *, texts: bool = False, overwrite: bool = False
) -> Exported:
    """Write the graph of `index` to `path`; `networkx.read_graphml` reads it back with equal weights.

    Nodes are named `phrase:<phrase>` and `passage:<id>`, phrases first. Each has a `kind` (phrase,
    passage) and a `label`: the phrase; a passage's title, or the beginning of its first line. A passage
    has its `id`, its `title` if it has one and, with `texts`, its `text`.
    Edges have their `weight`, their `kinds` (fact, synonym, fact+synonym, membership, mention), the
    `statements` that have both ends, and the `cosine` of a synonym pair.

    XML cannot hold control characters, unpaired surrogates, U+FFFE and U+FFFF: each becomes U+FFFD, and
    a name that is thereby taken twice gets one more. A carriage return reads back as a line feed.
    networkx holds the whole graph as objects while it writes: count 3 kB an edge.

    Raises `InputError` if `path` exists and `overwrite` is not set, or if it cannot be a file.
    """
    import networkx

    target = Path(path)
    with drafts([target], overwrite=overwrite) as (draft,):
        # Not write_graphml(), whose bytes depend on whether lxml happens to be installed.
        networkx.write_graphml_xml(_networkx_graph(index, texts), str(draft), encoding="utf-8")
    return Exported((target,))


def _networkx_graph(index: Index, texts: bool) -> Any:
    import networkx

    graph = networkx.Graph()
    names = _xml_names(node_names(index))
    for name, phrase in zip(names, index.phrases, strict=False):
        graph.add_node(name, kind="phrase", label=_xml_text(phrase))
    for name, passage in zip(names[len(index.phrases) :], index.passages, strict=True):
        graph.add_node(name, **_passage_attributes(passage, texts))
    for edge in edges_of(index):
        attributes: dict[str, Any] = {
            "weight": edge.weight,
            "kinds": "+".join(edge.kinds),
            "statements": edge.statements,
        }
        if edge.cosine is not None:
            attributes["cosine"] = edge.cosine
        graph.add_edge(names[edge.source_idx], names[edge.target_idx], **attributes)
    return graph


def _passage_attributes(passage: Passage, texts: bool) -> dict[str, str]:
    title = passage.title.strip()
    label = title or passage.text.strip().splitlines()[0][:_MAX_LABEL]
    attributes = {"kind": "passage", "label": label, "id": passage.id}
    if title:
        attributes["title"] = title
    if texts:
        attributes["text"] = passage.text
    return {key: _xml_text(value) for key, value in attributes.items()}


def _xml_names(names: Iterable[str]) -> list[str]:
    """The names as XML can hold them, still distinct."""
    distinct: dict[str, None] = {}
    for name in map(_xml_text, names):
        while name in distinct:
            name += _REPLACEMENT
        distinct[name] = None
    return list(distinct)


def _xml_text(text: str) -> str:
    return _NOT_XML.sub(_REPLACEMENT, text)
