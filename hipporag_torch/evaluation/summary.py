"""What an index was built from and with, as plain values for a report."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from hipporag_torch.index import Index
from hipporag_torch.reports import AddReport


def index_summary(index: Index, report: AddReport) -> dict[str, Any]:
    """Sizes, identity and what was dropped; JSON-like."""
    return {
        "passages": len(index.passages),
        "phrases": len(index.phrases),
        "facts": len(index.facts),
        "edges": index.graph.num_edges,
        "synonym_pairs": len(index.synonyms),
        "digest": index_digest(index),
        "embedder": asdict(index.embedder),
        "text": asdict(index.text),
        "graph": {"kind": type(index.graph_options).__name__, **asdict(index.graph_options)},
        "failed": len(report.failed),
        "truncated": len(report.truncated),
        "without_facts": len(report.without_facts),
        "dropped": dict(report.dropped),
    }


def index_digest(index: Index) -> str:
    """32 hexadecimal digits: equal for indexes of the same passages, phrases and facts, made with the same.

    Vectors and weights are left out: their last bits may differ between machines.
    """
    made_with = (index.embedder, index.text, type(index.graph_options).__name__, index.graph_options)
    digest = hashlib.blake2b(repr(made_with).encode(), digest_size=16)
    for part in ([p.id for p in index.passages], index.phrases, [fact.parts for fact in index.facts]):
        # JSON escapes control characters: the zero byte ends a part.
        digest.update(json.dumps(part).encode() + b"\0")
    return digest.hexdigest()
