"""The graph of a vocabulary over its passages, with the names that only their texts mention."""

from collections.abc import Sequence

from hipporag_torch.graph import Graph
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions, build_graph
from hipporag_torch.lexical import linking_tokens, token_rows
from hipporag_torch.ops.matching import SequenceTable
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.types import Passage
from hipporag_torch.vocabulary import Vocabulary


def connect(
    vocabulary: Vocabulary, passages: Sequence[Passage], synonyms: Pairs, options: AnyGraphOptions
) -> Graph:
    """`build_graph`, with the mentions that `options` asks for looked up. On the CPU."""
    wanted = isinstance(options, GraphOptions) and options.mention_weight > 0
    mentions = find_mentions(vocabulary, passages) if wanted else None
    return build_graph(vocabulary.phrases, len(passages), vocabulary.statements, synonyms, options, mentions)


def find_mentions(vocabulary: Vocabulary, passages: Sequence[Passage]) -> Ragged:
    """For each passage the names that stand in its text word for word, whether it states them or not.

    Every text is read again at each change: a new name may stand in an old one (0.2 ms per passage).
    """
    names = SequenceTable.of(vocabulary.lexicon.phrase_tokens, vocabulary.named)
    return names.inside(token_rows([passage.text for passage in passages], linking_tokens))
