"""Whether gold labels can be met at all: a check to make before a run."""

from dataclasses import dataclass

from hipporag_torch.text import TextOptions
from hipporag_torch.types import Dataset, Document


@dataclass(frozen=True)
class GoldCoverage:
    """How the gold passages of a data set's questions lie in its corpus.

    `passages` counts each question's distinct gold passages, summed over the questions, as recall does;
    `absent` counts those that are not in the corpus, `questions_with_absent` the questions that have one.
    `text_only` of the absent ones equal a corpus passage without its title. `example` is an absent gold
    text, or empty.
    """

    questions: int
    questions_without_gold: int
    passages: int
    absent: int
    questions_with_absent: int
    text_only: int
    example: str = ""

    @property
    def message(self) -> str:
        """What to warn of, or the empty string if every question has gold and all of it is there."""
        parts = []
        if self.questions_without_gold:
            parts.append(
                f"{self.questions_without_gold} of {self.questions} questions have no gold passages; "
                "they are left out of recall and MRR"
            )
        if self.absent:
            parts.append(
                f"{self.absent} of {self.passages} gold passages are not in the corpus "
                f"({self.questions_with_absent} of {self.questions} questions); recall cannot reach 1; "
                f"likely cause: {self._cause}. Such as {self.example!r:.120}"
            )
        return ". ".join(parts)

    @property
    def _cause(self) -> str:
        if self.text_only:
            return (
                f"gold given as text only while the corpus holds title + newline + text "
                f"(true of {self.text_only})"
            )
        return "gold and corpus differ in wording, whitespace or title, or the corpus is another version's"


def check_gold(dataset: Dataset, text: TextOptions) -> GoldCoverage:
    """Count the gold passages of `dataset` and those that its corpus lacks, compared by passage id."""
    corpus = {text.passage_id(document.text) for document in dataset.documents}
    bodies = {text.passage_id(_body(document)) for document in dataset.documents}
    gold = [
        {text.passage_id(gold_text): gold_text for gold_text in question.gold_texts}
        for question in dataset.questions
    ]
    absent = [{key: t for key, t in texts.items() if key not in corpus} for texts in gold]
    return GoldCoverage(
        questions=len(gold),
        questions_without_gold=sum(not texts for texts in gold),
        passages=sum(map(len, gold)),
        absent=sum(map(len, absent)),
        questions_with_absent=sum(bool(texts) for texts in absent),
        text_only=sum(key in bodies for texts in absent for key in texts),
        example=next((t for texts in absent for t in texts.values()), ""),
    )


def document_title(document: Document) -> str:
    """The title in the document's metadata, or the empty string."""
    title = document.metadata.get("title")
    return title if isinstance(title, str) else ""


def _body(document: Document) -> str:
    return document.text.removeprefix(f"{document_title(document)}\n")
