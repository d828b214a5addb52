import json
from pathlib import Path

import pytest

from hipporag_torch.chat import Usage
from hipporag_torch.errors import InputError
from hipporag_torch.evaluation import QuestionRow
from hipporag_torch.evaluation.draft import DRAFT, Draft, differences

SETTINGS = {"config": {"ppr": {"damping": 0.5}, "ks": [1, 2]}, "dataset": "a1"}


def row(number: int) -> QuestionRow:
    return QuestionRow(
        f"q{number}",
        "Où coule le\u2028Danube ?",
        "graph",
        ("p1",),
        ("p2", "p1"),
        (0.75, 0.1),
        (),
        {"mrr": 0.5},
        usage=Usage(calls=number),
        seconds={"retrieve": 0.25},
        seeds=(("danube", 0.5), ("ulm", 0.25)),
        gold_steps={"p1": 2, "p9": None},
    )


def test_what_was_kept_is_there_for_the_next_one(tmp_path: Path) -> None:
    draft = Draft(tmp_path, SETTINGS)
    assert draft.rows() == ()
    draft.begin(())
    draft.keep([row(0), row(1)])
    draft.keep([row(2)])
    assert Draft(tmp_path, SETTINGS).rows() == (row(0), row(1), row(2))
    draft.done()
    assert Draft(tmp_path, SETTINGS).rows() == ()
    assert list(tmp_path.iterdir()) == []


def test_every_place_of_a_kill_leaves_whole_rows(tmp_path: Path) -> None:
    draft = Draft(tmp_path, SETTINGS)
    draft.begin(())
    draft.keep([row(0), row(1)])
    content = (tmp_path / DRAFT).read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content)):
        (tmp_path / DRAFT).write_bytes(content[:cut])
        whole = max(0, sum(end <= cut for end in ends) - 1)
        assert Draft(tmp_path, SETTINGS).rows() == (row(0), row(1))[:whole]


def test_going_on_drops_what_was_cut_off(tmp_path: Path) -> None:
    draft = Draft(tmp_path, SETTINGS)
    draft.begin(())
    draft.keep([row(0)])
    with (tmp_path / DRAFT).open("a") as file:
        file.write('{"id": "q1", "ques')
    again = Draft(tmp_path, SETTINGS)
    again.begin(again.rows())
    again.keep([row(1)])
    assert Draft(tmp_path, SETTINGS).rows() == (row(0), row(1))


def test_rows_of_other_settings_are_refused_with_both_sides(tmp_path: Path) -> None:
    Draft(tmp_path, SETTINGS).begin([row(0)])
    other = {**SETTINGS, "config": {"ppr": {"damping": 0.9}, "ks": [1, 2]}}
    with pytest.raises(InputError, match=r"other settings: config\.ppr\.damping was 0\.5, is 0\.9; go on"):
        Draft(tmp_path, other).rows()


def test_a_damaged_draft_is_named(tmp_path: Path) -> None:
    (tmp_path / DRAFT).write_text("what\n")
    with pytest.raises(InputError, match=r"part\.jsonl does not say with which settings.*delete it"):
        Draft(tmp_path, SETTINGS).rows()
    (tmp_path / DRAFT).write_text(json.dumps({"settings": SETTINGS}) + '\n{"id": 1}\n')
    with pytest.raises(InputError, match=r"part\.jsonl, line 2: expected the fields"):
        Draft(tmp_path, SETTINGS).rows()


def test_differences_name_the_keys_and_count_the_rest() -> None:
    assert differences({"a": 1}, {"a": 1}) == ""
    assert differences({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}) == "a.b was 1, is 2, a.c was None, is 3"
    many = differences({str(i): 0 for i in range(9)}, {})
    assert many.endswith("4 was 0, is None and 4 more")
