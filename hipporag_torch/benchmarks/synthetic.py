"""Random graphs with the proportions of a real one, at any size."""

import numpy as np
import torch

from hipporag_torch.graph import Graph
from hipporag_torch.ops.csr import symmetric_csr

# Read off the graph of musique_train: 1,890 of 18,125 nodes are passages, and for each passage there
# are 10.5 memberships, 8.7 pairs of phrases joined by facts and 3.7 pairs of synonyms.
_PASSAGE_SHARE = 0.104
_MEMBERSHIPS, _FACTS, _SYNONYMS = 10.5, 8.7, 3.7


def synthetic_graph(num_nodes: int, *, seed: int = 0) -> Graph:
    """A graph of `num_nodes` nodes; how often phrases occur follows a power law. Same seed, same graph."""
    rng = np.random.default_rng(seed)
    num_passages = int(num_nodes * _PASSAGE_SHARE)
    num_phrases = num_nodes - num_passages
    passage, member = _per_passage(rng, num_passages, num_phrases, _MEMBERSHIPS)
    fact_passage, subject = _per_passage(rng, num_passages, num_phrases, _FACTS)
    # A fact joins two phrases of one passage: its object is one of that passage's members.
    order = np.argsort(passage, kind="stable")
    starts = np.searchsorted(passage[order], fact_passage)
    counts = np.maximum(1, np.searchsorted(passage[order], fact_passage, side="right") - starts)
    picked = np.minimum(starts + rng.integers(0, counts), len(order) - 1)
    objects = member[order][picked]
    synonyms = rng.integers(0, num_phrases, (int(num_passages * _SYNONYMS), 2))
    low = np.concatenate([passage + num_phrases, subject, synonyms[:, 0]])
    high = np.concatenate([member, objects, synonyms[:, 1]])
    weight = np.concatenate(
        [np.ones(len(passage)), np.full(len(subject), 2.0), rng.uniform(1.6, 2.0, len(synonyms))]
    )
    real = low != high
    adjacency = symmetric_csr(
        torch.from_numpy(low[real]),
        torch.from_numpy(high[real]),
        torch.from_numpy(weight[real]),
        num_nodes=num_nodes,
    )
    return Graph(num_phrases, num_passages, adjacency)


def synthetic_resets(graph: Graph, num_questions: int, *, seed: int = 0) -> torch.Tensor:
    """(questions, nodes) resets as HippoRAG makes them: five phrases, and all passages weakly."""
    rng = np.random.default_rng(seed)
    resets = torch.zeros(num_questions, graph.num_nodes)
    phrases = torch.from_numpy(rng.integers(0, graph.num_phrases, (num_questions, 5)))
    resets.scatter_(
        1, phrases, torch.from_numpy(rng.uniform(0.2, 1.0, (num_questions, 5)).astype(np.float32))
    )
    passages = rng.uniform(0, 0.05, (num_questions, graph.num_passages)).astype(np.float32)
    resets[:, graph.num_phrases :] = torch.from_numpy(passages)
    return resets


def _per_passage(
    rng: np.random.Generator, num_passages: int, num_phrases: int, mean: float
) -> tuple[np.ndarray, np.ndarray]:
    """Passage and phrase of `mean` draws per passage; phrase i is drawn about as often as 1 / (i + 10)."""
    count = int(num_passages * mean)
    passage = rng.integers(0, num_passages, count)
    uniform = rng.uniform(0, 1, count)
    phrase = 10 * (np.exp(uniform * np.log((num_phrases + 10) / 10)) - 1)
    # Half the phrases are stated once, wherever they stand.
    phrase = np.where(rng.uniform(0, 1, count) < 0.5, phrase, rng.uniform(0, num_phrases, count))
    return passage, np.minimum(phrase.astype(np.int64), num_phrases - 1)
