"""Texts in a picture: their width, estimated; their lines; shares as a person reads them."""

import math
import unicodedata

from hipporag_torch.types import SourceShares

# In shares of the font's size, as DejaVu Sans has them; it is wider than most.
_ADVANCES = (("ilj.,;:'|!I ", 0.33), ("frt()[]-", 0.42), ("mM@%—…", 1.0), ("wW", 0.9))


def text_width(text: str, size: float) -> float:
    """An estimate that is rather too wide, since no font is known yet."""
    return size * sum(_advance(character) for character in text)


def wrap(text: str, width: float, size: float, *, max_lines: int) -> tuple[str, ...]:
    """`text` in lines of `width`; words break only where they must, and what is left becomes an ellipsis."""
    words = "".join(" " if c.isspace() else c for c in text if c.isspace() or c.isprintable()).split()
    lines, line = [], ""
    for word in words:
        if text_width(f"{line} {word}".strip(), size) <= width:
            line = f"{line} {word}".strip()
            continue
        if line:
            lines.append(line)
        while text_width(word, size) > width:
            fits = max(1, sum(text_width(word[:n], size) <= width for n in range(1, len(word))))
            lines.append(word[:fits])
            word = word[fits:]
            if len(lines) > max_lines:
                break
        line = word
    lines += [line] if line else []
    if len(lines) <= max_lines:
        return tuple(lines)
    last = lines[max_lines - 1]
    while last and text_width(last + "…", size) > width:
        last = last[:-1]
    return (*lines[: max_lines - 1], last.rstrip() + "…")


def percent(share: float) -> str:
    """A share as a person reads it."""
    if share >= 1e-4 or share == 0:
        return f"{share:.2%}"
    # One digit that says something, where two places would say nothing.
    places = 2 - math.floor(math.log10(share)) - 4
    return f"{share:.{places}%}" if places <= 6 else "<0.000001%"


def shares_text(sources: SourceShares) -> str:
    """`entities 12, facts 7`: hundredths of the whole that the sources are shares of, the largest first."""
    ordered = sorted(sources, key=lambda source: -source[1])
    return ", ".join(f"{name} {_hundredths(share)}" for name, share in ordered)


def of_own(sources: SourceShares) -> SourceShares:
    """The same as shares of their own sum."""
    total = sum(share for _, share in sources)
    return tuple((name, share / total) for name, share in sources) if total > 0 else ()


def _hundredths(share: float) -> str:
    if share >= 0.00995:
        return f"{100 * share:.0f}"
    return f"{100 * share:.1f}" if share >= 0.0005 else "<0.1"


def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.02
    for characters, advance in _ADVANCES:
        if character in characters:
            return advance
    return 0.64 if character.islower() or character.isdigit() else 0.78
