from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.tracking.tables import predictions_table, recall_table, usage_table

from .conftest import ROWS


def test_a_question_per_row_and_empty_cells_for_what_it_lacks() -> None:
    table = predictions_table(ROWS)
    named = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert named[0] == {
        "id": "q1",
        "question": "Où coule le\u2028Danube ?",
        "route": "graph",
        "gold": ["p1"],
        "ranked": ["p2", "p1"],
        "scores": [0.75, 0.1],
        "answers": ["ウルム"],
        "answer": "Ulm",
        "reason": "",
        "recall@1": 0.0,
        "recall@5": 1.0,
        "mrr": 0.5,
        "title/recall@5": 1.0,
        "em": 0.0,
        "f1": 1 / 3,
        "calls": 1,
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "cached_calls": 0,
        "seconds/retrieve": 0.25,
        "seconds/read": 0.5,
    }
    assert [named[1][key] for key in ("ranked", "answer", "recall@1", "seconds/read")] == [
        [],
        None,
        None,
        None,
    ]
    assert [named[2][key] for key in ("recall@5", "em", "seconds/retrieve")] == [0.5, None, None]


def test_no_questions() -> None:
    assert predictions_table(()).rows == ()


def test_recall_by_k_in_numerical_order() -> None:
    metrics = {"recall@10": 0.9, "recall@2": 0.2, "title/all_recall@2": 0.1, "mrr": 0.5, "questions": 3.0}
    table = recall_table(metrics)
    assert table.columns == ("k", "recall", "title/all_recall")
    assert table.rows == ((2, 0.2, 0.1), (10, 0.9, None))


def test_money_stands_beside_the_counts_of_its_role() -> None:
    table = usage_table({"linking": {"calls": 2}, "reading": {"calls": 1}}, {"reading": 0.5})
    assert table.columns == ("role", "calls", "money")
    assert table.rows == (("linking", 2, None), ("reading", 1, 0.5))


def test_columns_of_metrics_come_in_the_order_of_the_first_row_that_has_them() -> None:
    rows = [
        QuestionRow("a", "?", "graph", (), (), (), (), {"mrr": 1.0}),
        QuestionRow("b", "?", "graph", (), (), (), (), {"em": 1.0, "mrr": 0.5}),
    ]
    table = predictions_table(rows)
    assert table.columns[9:11] == ("mrr", "em")
    assert [row[9:11] for row in table.rows] == [(1.0, None), (0.5, 1.0)]
