"""What an index was built from and with, as plain values for a report."""

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
        "embedder": asdict(index.embedder),
        "text": asdict(index.text),
        "graph": {"kind": type(index.graph_options).__name__, **asdict(index.graph_options)},
        "failed": len(report.failed),
        "truncated": len(report.truncated),
        "without_facts": len(report.without_facts),
        "dropped": dict(report.dropped),
    }
