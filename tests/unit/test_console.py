import io
import logging

import pytest
from rich.console import Console

from hipporag_torch.console import clean_errors, progress_bar, quiet_third_parties, table, warn
from hipporag_torch.console.rows import mostly_from, seeds_text
from hipporag_torch.errors import ConfigError, HippoRAGError
from hipporag_torch.types import Trace, TracedPassage, TracedSeed


def test_errors_of_the_library_become_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    message = "ppr.damping must be [bold]below[/] 1, got 2: " + "a long tail " * 20
    with pytest.raises(SystemExit) as caught, clean_errors():
        raise ConfigError(message)
    out, err = capsys.readouterr()
    assert caught.value.code == 1
    assert (out, err) == ("", f"ConfigError: {message}\n")


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError), clean_errors():
        raise ZeroDivisionError
    with pytest.raises(SystemExit), clean_errors():
        raise HippoRAGError("of the root class, too")


def test_warnings_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warn("3 of 4 passages [unknown] " + "x" * 200)
    assert capsys.readouterr() == ("", "warning: 3 of 4 passages [unknown] " + "x" * 200 + "\n")


def test_a_bar_per_stage_and_nothing_on_standard_out(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        progress("embed passage", 0, 3)
        progress("extract", 5, 5)
        progress("embed passage", 3, 3)
        progress("nothing to do", 0, 0)
    assert capsys.readouterr().out == ""


def test_no_progress_leaves_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """A script's error would otherwise stand below an empty line."""
    with progress_bar():
        pass
    assert capsys.readouterr() == ("", "")


def test_tables_show_cells_as_they_are() -> None:
    console = Console(file=io.StringIO(), width=60)
    console.print(table("[i]t", ["name", "n"], [["[red]x[/]", "1"], ["y", "1,000"]]))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    first, second = (
        next(line for line in lines if line.split()[:1] == [name]) for name in ("[red]x[/]", "y")
    )
    assert (first.split(), second.split()) == (["[red]x[/]", "1"], ["y", "1,000"])
    assert len(first.rstrip()) == len(second.rstrip()), "numbers are flush right"


def test_only_warnings_of_third_parties_show(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(stream)])
    quiet_third_parties()
    for name in ("sentence_transformers.base", "hipporag_torch.indexer"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "level", logging.INFO)
        logger.info("%s chats", name)
        logger.warning("%s warns", name)
    assert stream.getvalue().splitlines() == [
        "sentence_transformers.base warns",
        "hipporag_torch.indexer chats",
        "hipporag_torch.indexer warns",
    ]


def test_seeds_are_listed_with_their_sources() -> None:
    seeds = (
        TracedSeed("phrase", "oslo", 0.19, (("facts", 0.07), ("entities", 0.12))),
        TracedSeed("phrase", "norway", 0.03, (("facts", 0.03),)),
        TracedSeed("phrase", "bergen", 0.01, (("facts", 0.01),)),
        TracedSeed("passage", "p1", 0.2, (("passages", 0.2),)),
        TracedSeed("phrase", "saltby", 0.004, (("facts", 0.004),)),
    )
    shown = seeds_text(Trace(seeds=seeds), most=2)
    assert shown == "oslo 19% (entities 12, facts 7) · norway 3% (facts 3) · 2 more"
    assert seeds_text(Trace(seeds=seeds)).endswith("bergen 1% (facts 1) · 1 more")
    assert seeds_text(Trace()) == ""


def test_what_most_of_a_passages_mass_comes_from() -> None:
    passage = TracedPassage("p", 0.2, 0.0, (), (("facts", 0.05), ("entities", 0.15)))
    assert mostly_from(passage) == "entities 75%"
    assert mostly_from(None) == ""
