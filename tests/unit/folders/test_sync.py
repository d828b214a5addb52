"""A folder against a memory: what is planned, what is done, and what both say about it."""

import os
from pathlib import Path

import pytest

from hipporag_torch.chunkers import StructureChunker
from hipporag_torch.errors import InputError
from hipporag_torch.folders import (
    FolderPlan,
    FolderReport,
    apply_plan,
    plan_folder,
    root_id,
    source_id_of,
    sync_folder,
)
from hipporag_torch.types import Document

from .trees import NotingExtractor, closed, held, memory_of, write

ONE, TWO, THREE = "ada founded bergen", "bo sails north", "cy bakes bread"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def statuses(report: FolderReport) -> dict[str, str]:
    return {file.path: file.status for file in report.files}


def actions(plan: FolderPlan) -> dict[str, str]:
    return {file.path: file.action for file in plan.files}


class TestNames:
    def test_a_source_is_the_folders_id_and_the_files_path(self, root: Path):
        write(root, {"a/b/note.md": ONE, "c/note.md": TWO})
        memory = memory_of()
        sync_folder(memory, root)
        id_ = root_id(root)
        assert id_.startswith("notes-")
        assert len(id_) == len("notes-") + 8
        assert held(memory) == {f"{id_}/a/b/note.md": [ONE], f"{id_}/c/note.md": [TWO]}
        assert source_id_of(root, "c/note.md") == f"{id_}/c/note.md"

    def test_two_folders_of_one_name_do_not_collide(self, tmp_path: Path):
        for parent in ("x", "y"):
            write(tmp_path / parent / "notes", {"a.md": f"{parent} leads on"})
        memory = memory_of()
        sync_folder(memory, tmp_path / "x" / "notes")
        report = sync_folder(memory, tmp_path / "y" / "notes", prune=True)
        assert statuses(report) == {"a.md": "added"}
        assert sorted(held(memory).values()) == [["x leads on"], ["y leads on"]]

    def test_the_same_folder_has_one_id_however_it_is_reached(self, root: Path):
        (root.parent / "link").symlink_to(root)
        assert root_id(root) == root_id(root.parent / "link") == root_id(f"{root}/../notes")

    def test_a_name_takes_the_place_of_the_id(self, root: Path, tmp_path: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        sync_folder(memory, root, name="handbook")
        root.rename(tmp_path / "moved")
        assert list(held(memory)) == ["handbook/a.md"]
        assert statuses(sync_folder(memory, tmp_path / "moved", name="handbook")) == {"a.md": "unchanged"}

    def test_a_passage_says_where_it_stands(self, root: Path):
        text = f"# Top\n\n{ONE}\n"
        write(root, {"sub/a.md": text})
        os.utime(root / "sub" / "a.md", (0, 60))
        memory = memory_of()
        sync_folder(memory, root)
        (source,) = memory.index.passages[0].sources
        assert source.metadata == {
            "root": root_id(root),
            "path": "sub/a.md",
            "mtime": "1970-01-01T00:01:00+00:00",
            "heading": "Top",
            "chunk": 0,
            "start": 0,
            "end": len(text) - 1,
        }


class TestSync:
    def test_a_second_one_does_nothing(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO})
        extractor = NotingExtractor()
        memory = memory_of(extractor)
        first = sync_folder(memory, root)
        assert (first.passages_added, first.ok, statuses(first)) == (
            2,
            True,
            {"a.md": "added", "b.md": "added"},
        )
        before = memory.index
        extractor.asked.clear()
        second = sync_folder(memory, root)
        assert second.counts == {"unchanged": 2}
        assert memory.index is before
        assert extractor.asked == []

    def test_a_file_that_is_only_touched_is_unchanged(self, root: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        sync_folder(memory, root)
        os.utime(root / "a.md", (0, 0))
        before = memory.index
        assert statuses(sync_folder(memory, root)) == {"a.md": "unchanged"}
        assert memory.index is before

    def test_only_what_changed_is_extracted(self, root: Path):
        write(root, {"a.md": f"# A\n\n{ONE}\n\n# B\n\n{TWO}\n", "b.md": THREE})
        extractor = NotingExtractor()
        memory = memory_of(extractor)
        sections = StructureChunker(min_words=0, max_words=10)
        sync_folder(memory, root, chunker=sections)
        extractor.asked.clear()
        write(root, {"a.md": f"# New\n\nxu walks west\n\n# A\n\n{ONE}\n"})
        report = sync_folder(memory, root, chunker=sections)
        assert extractor.asked == ["# New\n\nxu walks west"]
        (file,) = [file for file in report.files if file.status == "replaced"]
        assert (file.passages, file.passages_added, file.passages_removed) == (2, 1, 1)
        assert held(memory)[source_id_of(root, "a.md")] == ["# New\n\nxu walks west", f"# A\n\n{ONE}"]

    def test_text_that_only_moved_is_replaced_and_costs_nothing(self, root: Path):
        write(root, {"a.md": ONE})
        extractor = NotingExtractor()
        memory = memory_of(extractor)
        sync_folder(memory, root)
        extractor.asked.clear()
        write(root, {"a.md": f"\n\n{ONE}"})
        assert statuses(sync_folder(memory, root)) == {"a.md": "replaced"}
        assert extractor.asked == []
        (source,) = memory.index.passages[0].sources
        assert (source.start, source.metadata["start"]) == (2, 2)

    def test_a_renamed_file_costs_nothing(self, root: Path):
        write(root, {"a.md": ONE})
        extractor = NotingExtractor()
        memory = memory_of(extractor)
        sync_folder(memory, root)
        extractor.asked.clear()
        (root / "a.md").rename(root / "b.md")
        report = sync_folder(memory, root, prune=True)
        assert statuses(report) == {"a.md": "removed", "b.md": "added"}
        assert extractor.asked == []
        assert held(memory) == {source_id_of(root, "b.md"): [ONE]}

    def test_text_that_another_file_takes_over_is_not_extracted_again(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO})
        extractor = NotingExtractor()
        memory = memory_of(extractor)
        sync_folder(memory, root)
        extractor.asked.clear()
        write(root, {"a.md": THREE, "b.md": ONE})
        plan = plan_folder(memory, root)
        report = apply_plan(memory, plan)
        assert extractor.asked == [THREE]
        assert (plan.passages_new, plan.passages_removed) == (1, 1)
        assert (report.passages_added, report.passages_removed) == (1, 1)

    def test_the_memory_goes_on_cutting_in_its_own_way(self, root: Path):
        text = f"# A\n\n{ONE}\n\n# B\n\n{TWO}\n"
        write(root, {"a.md": text})
        memory = memory_of()
        sync_folder(memory, root, chunker=StructureChunker(min_words=0, max_words=10))
        memory.add([Document(text, "mine")])
        assert held(memory) == {
            source_id_of(root, "a.md"): [f"# A\n\n{ONE}", f"# B\n\n{TWO}"],
            "mine": [text],
        }


class TestPruning:
    def test_what_is_gone_stays_until_it_is_asked_to_go(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO, "sub/c.md": THREE})
        memory = memory_of()
        memory.add([Document("of another", "other.md")])
        sync_folder(memory, root)
        (root / "b.md").unlink()
        (root / "sub" / "c.md").unlink()
        report = sync_folder(memory, root)
        assert statuses(report) == {"a.md": "unchanged", "b.md": "missing", "sub/c.md": "missing"}
        assert len(held(memory)) == 4
        report = sync_folder(memory, root, prune=True)
        assert statuses(report) == {"a.md": "unchanged", "b.md": "removed", "sub/c.md": "removed"}
        assert report.passages_removed == 2
        assert list(held(memory)) == [source_id_of(root, "a.md"), "other.md"]

    def test_the_only_change_is_one_removed_file(self, root: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        sync_folder(memory, root)
        (root / "a.md").unlink()
        assert sync_folder(memory, root, prune=True).ok
        assert held(memory) == {}

    def test_what_no_glob_names_stays(self, root: Path):
        write(root, {"a.md": ONE, "b.txt": TWO})
        memory = memory_of()
        sync_folder(memory, root)
        report = sync_folder(memory, root, globs=["*.txt"], prune=True)
        assert statuses(report) == {"b.txt": "unchanged"}
        assert len(held(memory)) == 2

    def test_a_file_that_became_unfit_goes_with_its_reason(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO, "c.md": THREE})
        memory = memory_of()
        sync_folder(memory, root)
        write(root, {"a.md": b"\0", "b.md": " \n"})
        report = sync_folder(memory, root)
        assert statuses(report) == {"a.md": "skipped", "b.md": "skipped", "c.md": "unchanged"}
        assert report.files[1].reason == "nothing but whitespace; the memory keeps what it holds of it"
        report = sync_folder(memory, root, prune=True)
        assert [(file.status, file.kind, file.reason) for file in report.files[:2]] == [
            ("removed", "binary", "a.md: it holds zero bytes, so it is no text (in UTF-8)"),
            ("removed", "empty", "b.md: nothing but whitespace"),
        ]
        assert list(held(memory)) == [source_id_of(root, "c.md")]

    def test_a_folder_that_became_one_of_dependencies_goes(self, root: Path):
        write(root, {"x/a.md": ONE})
        memory = memory_of()
        sync_folder(memory, root)
        write(root, {"x/pyvenv.cfg": ""})
        report = sync_folder(memory, root, prune=True)
        assert statuses(report) == {"x/": "skipped", "x/a.md": "removed"}

    def test_what_cannot_be_looked_at_stays(self, root: Path):
        write(root, {"x/a.md": ONE, "b.md": TWO})
        memory = memory_of()
        sync_folder(memory, root)
        with closed(root / "x", root / "b.md"):
            report = sync_folder(memory, root, prune=True)
        assert statuses(report) == {"b.md": "skipped", "x/": "skipped", "x/a.md": "skipped"}
        assert report.files[0].reason == (
            "it cannot be read: Permission denied; the memory keeps what it holds of it"
        )
        assert len(held(memory)) == 2

    def test_a_passage_that_others_hold_stays(self, root: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        memory.add([Document(ONE, "mine")])
        sync_folder(memory, root)
        (root / "a.md").unlink()
        plan = plan_folder(memory, root, prune=True)
        report = apply_plan(memory, plan)
        assert (plan.passages_removed, report.passages_removed) == (0, 0)
        assert held(memory) == {"mine": [ONE]}


class TestPlan:
    def test_it_changes_nothing_and_asks_no_model(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO})
        extractor = NotingExtractor()
        memory = memory_of(extractor)
        plan = plan_folder(memory, root)
        assert actions(plan) == {"a.md": "added", "b.md": "added"}
        assert (plan.passages_new, plan.extractor_calls, plan.counts) == (2, 4, {"added": 2})
        assert (extractor.asked, held(memory)) == ([], {})

    def test_a_text_of_two_files_is_counted_once(self, root: Path):
        write(root, {"a.md": ONE, "b.md": ONE})
        plan = plan_folder(memory_of(), root)
        assert plan.passages_new == 1
        assert [file.passages_new for file in plan.files] == [1, 0]

    def test_its_digest_names_the_changes_and_the_contents(self, root: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        plan = plan_folder(memory, root)
        write(root, {"skipped.md": b"\0"})
        assert plan_folder(memory, root).digest == plan.digest
        write(root, {"a.md": TWO})
        assert plan_folder(memory, root).digest != plan.digest
        write(root, {"a.md": ONE, "b.md": TWO})
        assert plan_folder(memory, root).digest != plan.digest

    def test_progress_counts_the_files(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO})
        calls: list[tuple[str, int, int]] = []
        sync_folder(memory_of(), root, progress=lambda *call: calls.append(call))
        assert [call for call in calls if call[0] == "read"] == [("read", n, 2) for n in range(3)]
        assert [call for call in calls if call[0] == "sync"] == [("sync", n, 2) for n in range(3)]

    @pytest.mark.parametrize(
        ("path", "message"), [("not-there", "cannot be reached"), ("a.md", "is not a folder")]
    )
    def test_what_is_no_folder_is_refused(self, root: Path, path: str, message: str):
        write(root, {"a.md": ONE})
        with pytest.raises(InputError, match=message):
            plan_folder(memory_of(), root / path)

    def test_a_name_with_a_slash_is_refused(self, root: Path):
        with pytest.raises(InputError, match="must not hold a '/', got 'a/b'"):
            plan_folder(memory_of(), root, name="a/b")


class TestFailures:
    def test_a_file_that_changes_after_the_plan_fails_and_the_rest_goes_on(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO, "c.md": THREE, "d.md": "di hears echoes"})
        memory = memory_of()
        plan = plan_folder(memory, root)
        write(root, {"b.md": "changed since then"})
        (root / "c.md").unlink()
        report = apply_plan(memory, plan)
        assert statuses(report) == {"a.md": "added", "b.md": "failed", "c.md": "failed", "d.md": "added"}
        assert [file.reason for file in report.files[1:3]] == [
            "it was changed after the plan was made; sync again",
            "it is not there any more",
        ]
        assert not report.ok
        assert sync_folder(memory, root).counts == {"added": 1, "unchanged": 2}

    def test_a_file_that_came_back_is_not_removed(self, root: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        sync_folder(memory, root)
        (root / "a.md").unlink()
        plan = plan_folder(memory, root, prune=True)
        write(root, {"a.md": ONE})
        assert statuses(apply_plan(memory, plan)) == {"a.md": "failed"}
        assert len(held(memory)) == 1

    def test_a_failed_extraction_is_reported_and_tried_again(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO})
        extractor = NotingExtractor(failing=["bo"])
        memory = memory_of(extractor)
        report = sync_folder(memory, root)
        assert [(file.status, file.passages_failed) for file in report.files] == [("added", 0), ("added", 1)]
        extractor.failing.clear()
        extractor.asked.clear()
        plan = plan_folder(memory, root)
        assert (plan.passages_retried, plan.extractor_calls) == (1, 2)
        assert statuses(apply_plan(memory, plan)) == {"a.md": "unchanged", "b.md": "retried"}
        assert extractor.asked == [TWO]
        assert sync_folder(memory, root).counts == {"unchanged": 2}

    def test_all_or_nothing_fails_the_file_alone(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO, "c.md": THREE})
        memory = memory_of(NotingExtractor(failing=["bo"]))
        report = sync_folder(memory, root, on_error="fail")
        assert statuses(report) == {"a.md": "added", "b.md": "failed", "c.md": "added"}
        assert len(held(memory)) == 2

    def test_one_file_that_a_backend_refuses_does_not_stop_the_others(self, root: Path):
        write(root, {f"{number}.md": f"file {number} refuse" for number in (1, 2, 4)} | {"3.md": ONE})
        report = sync_folder(memory_of(), root)
        assert statuses(report) == {"1.md": "failed", "2.md": "failed", "3.md": "added", "4.md": "failed"}
        assert report.stopped == ""

    def test_three_in_a_row_do(self, root: Path):
        write(root, {f"{number}.md": f"file {number} refuse" for number in range(3)} | {"3.md": ONE})
        report = sync_folder(memory_of(), root)
        assert list(statuses(report).values()) == ["failed", "failed", "failed", "left"]
        assert report.stopped == "3 files in a row failed, the last one with: the backend refuses this text"

    def test_a_spent_budget_leaves_the_rest_for_the_next_sync(self, root: Path):
        write(root, {"a.md": ONE, "b.md": TWO, "c.md": THREE})
        extractor = NotingExtractor(budget=1)
        memory = memory_of(extractor)
        report = sync_folder(memory, root)
        assert statuses(report) == {"a.md": "added", "b.md": "left", "c.md": "left"}
        assert report.stopped == "the budget is spent"
        extractor.budget = None
        assert sync_folder(memory, root).counts == {"added": 2, "unchanged": 1}

    def test_what_was_taken_out_by_hand_comes_back(self, root: Path):
        write(root, {"a.md": ONE})
        memory = memory_of()
        sync_folder(memory, root)
        memory.remove(texts=[ONE])
        assert statuses(sync_folder(memory, root)) == {"a.md": "added"}
