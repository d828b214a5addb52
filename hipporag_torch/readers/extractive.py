"""Reading without a language model: the answer is a sentence of the passages."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float32
from torch import Tensor

from hipporag_torch.embedders.check import embedded
from hipporag_torch.errors import ConfigError
from hipporag_torch.lexical import lexical_tokens
from hipporag_torch.ops.topk import stable_topk
from hipporag_torch.protocols import Embedder
from hipporag_torch.readers.sentences import split_sentences
from hipporag_torch.types import Answer, Passage, Ranking

EXTRACTIVE = "extractive: the best supported sentence; no language model was used"
# What asks, and says nothing about the answer.
_ASKING = frozenset(
    [
        "what",
        "who",
        "whom",
        "whose",
        "which",
        "when",
        "where",
        "why",
        "how",
        "did",
        "does",
        "do",
        "had",
        "has",
        "have",
        "many",
        "much",
    ]
)


@dataclass(frozen=True)
class _Sentence:
    text: str
    passage: Passage

    @property
    def with_title(self) -> str:
        title = self.passage.title
        return f"{title}: {self.text}" if title else self.text


class ExtractiveReader:
    """Answers with one sentence of the passages.

    The sentence most like the question states what the question already knows. If words of the question
    are left that it does not explain, the answer is the sentence of another passage that is most like
    those, and both passages are cited; else it is that first sentence itself. Sentences are embedded
    behind their passage's title, and likeness is the cosine, which is the answer's score.

    `qa_top_k` passages are read.
    """

    def __init__(self, *, embedder: Embedder, qa_top_k: int = 5) -> None:
        if qa_top_k < 1:
            raise ConfigError(f"reader.qa_top_k must be at least 1, got {qa_top_k}")
        self._embedder = embedder
        self._qa_top_k = qa_top_k

    def read(self, rankings: Sequence[Ranking]) -> list[Answer]:
        """One answer per ranking, in order; each kind of text is embedded in one call."""
        sentences = [self._sentences(ranking) for ranking in rankings]
        texts = [sentence.with_title for found in sentences for sentence in found]
        emb = embedded(self._embedder, texts, "passage").split([len(found) for found in sentences])
        asked = embedded(self._embedder, [ranking.question for ranking in rankings], "question_to_passage")
        first = [_best(rows @ question) for rows, question in zip(emb, asked, strict=True)]
        left = [
            _unexplained(ranking.question, found[row]) if found else ""
            for ranking, found, (row, _) in zip(rankings, sentences, first, strict=True)
        ]
        asked_still = embedded(
            self._embedder,
            [text or ranking.question for text, ranking in zip(left, rankings, strict=True)],
            "question_to_passage",
        )
        answers = []
        for number, (ranking, found) in enumerate(zip(rankings, sentences, strict=True)):
            row, score = first[number]
            chain = [row] if found else []
            others = torch.tensor([s.passage.id != found[row].passage.id for s in found], dtype=torch.bool)
            if left[number] and bool(others.any()):
                likeness = torch.where(others, emb[number] @ asked_still[number], -torch.inf)
                row, score = _best(likeness)
                chain.append(row)
            answers.append(self._answer(ranking, [found[i] for i in chain], score))
        return answers

    def _answer(self, ranking: Ranking, chain: Sequence[_Sentence], score: float) -> Answer:
        return Answer(
            question=ranking.question,
            text=chain[-1].text if chain else "",
            passages=ranking.passages[: self._qa_top_k],
            citations=tuple(sentence.passage.id for sentence in chain),
            score=score,
            method=EXTRACTIVE,
        )

    def _sentences(self, ranking: Ranking) -> list[_Sentence]:
        return [
            _Sentence(text, passage)
            for passage in ranking.passages[: self._qa_top_k]
            for text in split_sentences(passage.text.removeprefix(f"{passage.title}\n"))
        ]


def _best(likeness: Float32[Tensor, " sentences"]) -> tuple[int, float]:
    """The row of the largest value, the first of equal ones, and the value; (0, 0) where there is none."""
    if not len(likeness):
        return 0, 0.0
    best = stable_topk(likeness.unsqueeze(0), 1)
    return int(best.idx[0, 0]), float(best.scores[0, 0])


def _unexplained(question: str, sentence: _Sentence) -> str:
    """The question's words that the sentence and its title lack; empty if none but asking words are left."""
    known = set(lexical_tokens(sentence.with_title))
    left = [token for token in lexical_tokens(question) if token not in known]
    return " ".join(left) if set(left) - _ASKING else ""
