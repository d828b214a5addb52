"""Answers and the passages that they rest on, as a person reads them on a terminal."""

from rich.markup import escape
from rich.text import Text

from hipporag_torch.console import console
from hipporag_torch.console.rows import num_passages, shortened, show_line
from hipporag_torch.types import Answer, Passage, Ranking, Source

_MAX_SOURCES = 3
_SHOWN = 320


def title_or_source(source: Source) -> str:
    """What a person knows a source by; one without a name of its own is called by a hash."""
    title = source.metadata.get("title")
    return title if isinstance(title, str) and title else source.source_id


def place_of(source: Source) -> str:
    """The source, and the headings that the passage stands below: `notes-3fa9c2d1/a.md › Plans > 2024`."""
    heading = source.metadata.get("heading")
    return f"{title_or_source(source)} › {heading}" if heading else title_or_source(source)


def odd(answer: Answer) -> str:
    """What is odd about an answer."""
    said = {
        "no_marker": "the reply does not mark its answer, it was taken whole",
        "cut": "the reply ended at its token limit before its answer did; raise reader.max_tokens",
        "empty": "the model replied, but did not answer",
        "error": "there was no reply",
        "too_long": "no passage fits the model's context",
        "no_passages": "there was nothing to read",
    }
    parts = [": ".join(part for part in (said.get(answer.flag, ""), shortened(answer.reason, 300)) if part)]
    if answer.passages_left_out:
        parts.append(f"{num_passages(answer.passages_left_out)} left out, the context holds no more")
    return "; ".join(part for part in parts if part)


def show_piece(piece: str) -> None:
    """A piece of a reply as it comes, without what would steer the terminal."""
    shown = "".join(letter for letter in piece if letter.isprintable() or letter in "\n\t")
    console.print(Text(shown), end="", soft_wrap=True, highlight=False)


def show_passages(ranking: Ranking, answer: Answer | None = None) -> None:
    """The passages with their places. answer: marks those that it cites; without one they are shown whole."""
    cited, read = (set(answer.citations), set(answer.passage_ids)) if answer else (set(), set())
    for place, (passage, score) in enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1):
        mark = "" if answer is None or passage.id in read else "  not read"
        mark = "  cited" if passage.id in cited else mark
        console.print(f"\n[bold]{place}[/]  [cyan]{score:.4f}[/][green]{mark}[/]", highlight=False)
        for source in passage.sources[:_MAX_SOURCES]:
            console.print(f"[dim]{escape(place_of(source))}[/]", highlight=False, soft_wrap=True, emoji=False)
        if len(passage.sources) > _MAX_SOURCES:
            show_line(f"and {len(passage.sources) - _MAX_SOURCES:,} more sources")
        show_line(_body(passage, whole=answer is None))


def _body(passage: Passage, *, whole: bool) -> str:
    text = passage.text if whole else shortened(passage.text, _SHOWN)
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
