"""How well a retriever finds what a data set's gold labels name, and whether one run beats another."""

from hipporag_torch.evaluation.answers import read_answers
from hipporag_torch.evaluation.compare import (
    Comparison,
    MeanInterval,
    QuestionPair,
    RunTable,
    compare_runs,
    compare_table,
)
from hipporag_torch.evaluation.files import read_run, write_run
from hipporag_torch.evaluation.gold import GoldCoverage, check_gold
from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.evaluation.run import Evaluation, evaluate, retrieval_depth

__all__ = [
    "Comparison",
    "Evaluation",
    "GoldCoverage",
    "MeanInterval",
    "QuestionPair",
    "QuestionRow",
    "RunTable",
    "check_gold",
    "compare_runs",
    "compare_table",
    "evaluate",
    "read_answers",
    "read_run",
    "retrieval_depth",
    "write_run",
]
