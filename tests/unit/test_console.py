import io
import logging

import pytest
from rich.console import Console

from hipporag_torch.console import clean_errors, progress_bar, quiet_third_parties, table, warn
from hipporag_torch.errors import ConfigError, HippoRAGError


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
