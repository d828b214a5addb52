"""The journal of extractions: what is in it is not made again, whatever cut it off."""

from pathlib import Path

import pytest

from hipporag_torch.errors import InputError, LockedError
from hipporag_torch.journal import ExtractionJournal
from hipporag_torch.types import Extraction, Passage, Triple

ADA = Passage("passage-a", "Ada Vale\u2028founded it.")
TOVE = Passage("passage-t", "Tove Lund maps it.")
GOOD = Extraction(("Ada",), (Triple("Ada", "founded", "a \ud800 \u2028 thing"),), producer="m")
FAILED = Extraction(status="failed", reason="cut", producer="m", reply="{\n", permanent=True)


def filled(path: Path) -> Path:
    with ExtractionJournal.opened(path, "m") as journal:
        journal.append(ADA, GOOD)
        journal.append(TOVE, FAILED)
    return path


def test_what_was_appended_is_there_again(tmp_path: Path) -> None:
    journal = ExtractionJournal.read_only(filled(tmp_path / "j"), "m")
    assert list(journal.extractions([TOVE.id, ADA.id])) == [FAILED, GOOD]
    assert journal.is_done(ADA.id, permanent=True)
    assert journal.is_done(TOVE.id, permanent=False)
    assert not journal.is_done(TOVE.id, permanent=True)
    assert not journal.is_done("passage-x", permanent=False)


def test_the_last_line_of_a_passage_counts(tmp_path: Path) -> None:
    with ExtractionJournal.opened(filled(tmp_path / "j"), "m") as journal:
        journal.append(TOVE, GOOD)
    assert list(ExtractionJournal.read_only(tmp_path / "j", "m").extractions([TOVE.id])) == [GOOD]


def test_a_line_that_was_cut_off_anywhere_is_made_again(tmp_path: Path) -> None:
    whole = filled(tmp_path / "j").read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole)):
        (tmp_path / "j").write_bytes(whole[:length])
        with ExtractionJournal.opened(tmp_path / "j", "m") as journal:
            assert ADA.id in journal
            assert TOVE.id not in journal
            journal.append(TOVE, FAILED)
        assert (tmp_path / "j").read_bytes() == whole


def test_what_another_producer_made_is_not_taken(tmp_path: Path) -> None:
    other = ExtractionJournal.read_only(filled(tmp_path / "j"), "another")
    assert (len(other), other.num_others) == (0, 2)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    lines = filled(tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(b'{"id": 1}\n' + lines)
    with pytest.raises(InputError, match="line 1, is not a line of a journal"):
        ExtractionJournal.read_only(tmp_path / "j", "m")


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    with ExtractionJournal.opened(tmp_path / "j", "m") as journal:
        journal.append(ADA, GOOD)
        with (
            pytest.raises(LockedError, match="another process is writing"),
            ExtractionJournal.opened(tmp_path / "j", "m"),
        ):
            pass


def test_nothing_leaves_no_file(tmp_path: Path) -> None:
    with ExtractionJournal.opened(tmp_path / "folder" / "j", "m"):
        pass
    assert not (tmp_path / "folder" / "j").exists()
