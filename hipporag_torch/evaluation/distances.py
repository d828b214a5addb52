"""How far questions' gold passages lie from where their walks start."""

from collections.abc import Sequence

import torch

from hipporag_torch.index import Index

MAX_STEPS = 4
"""Further than this a walk that mostly restarts leaves next to nothing."""


def gold_steps(
    index: Index, seeds: Sequence[Sequence[str]], gold_ids: Sequence[Sequence[str]]
) -> list[dict[str, int | None]]:
    """For each question, its gold ids → the edges between them and the nearest of its seed phrases.

    None for a passage that is more than `MAX_STEPS` away or not in the index. A question without a seed that
    the index knows gets nothing. All questions spread at once, a sweep over the graph per step.
    """
    graph = index.graph
    row = {phrase: i for i, phrase in enumerate(index.phrases)}
    starts = [[row[phrase] for phrase in phrases if phrase in row] for phrases in seeds]
    steps: list[dict[str, int | None]] = [
        dict.fromkeys(ids) if start else {} for start, ids in zip(starts, gold_ids, strict=True)
    ]
    asked = [i for i, start in enumerate(starts) if start and gold_ids[i]]
    if not asked:
        return steps
    reached = torch.zeros(graph.num_nodes, len(asked), device=index.passage_emb.device)
    for column, i in enumerate(asked):
        reached[starts[i], column] = 1.0
    for step in range(1, MAX_STEPS + 1):
        # Edges go both ways, and have no negative weight: what is above zero is reached.
        reached = ((graph.adjacency.matmul(reached) + reached) > 0).float()
        for column, i in enumerate(asked):
            for gold_id, found in steps[i].items():
                passage_row = index.passage_row.get(gold_id)
                if found is None and passage_row is not None:
                    hit = bool(reached[graph.num_phrases + passage_row, column])
                    steps[i][gold_id] = step if hit else None
    return steps
