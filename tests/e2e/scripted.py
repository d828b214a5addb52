"""A scripted model for the small corpus of `conftest.py`: a rules file, and what the scripts say of it."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def write_rules(path: Path, extracted: Mapping[tuple[str, str], list[list[str]]]) -> Path:
    """Entities and triples for every passage of `extracted`; those of the ferry's are no JSON at first.

    Every question names Northwind Press, the filter keeps the first fact, thoughts end at once, and the
    reader says Norway.
    """
    rules: list[dict[str, Any]] = [
        {"contains": ["Named entities", "ferry"], "reply": "Sorry?", "times": 1},
        {"contains": ["Names in this question:"], "reply": {"entities": ["Northwind Press"]}},
        {"contains": ["Facts:"], "reply": {"useful": [1]}},
        {"contains": ["Thoughts so far:"], "reply": "So the answer is: Norway"},
        {"contains": ["Question:"], "reply": "Bergen lies in Norway.\nAnswer: Norway"},
    ]
    for (_, text), triples in extracted.items():
        whole = [triple for triple in triples if len(triple) == 3]
        names = sorted({end for triple in whole for end in (triple[0], triple[2])})
        rules += [
            {"contains": ["Named entities", text], "reply": {"triples": whole}},
            {"contains": [text], "reply": {"entities": names}},
        ]
    path.write_text(json.dumps(rules, ensure_ascii=False), encoding="utf-8")
    return path


def calls(done: Any, role: str) -> tuple[int, int]:
    """How many calls of a role a script says it paid for, and how many a cache gave."""
    said = re.search(rf"^{role} .*(?:\n  .*)*", done.out, re.MULTILINE)
    text = said[0] if said else ""
    paid, cached = re.search(r"([\d,]+) calls?, ", text), re.search(r"([\d,]+) calls? from the cache", text)
    return int(paid[1]) if paid else 0, int(cached[1]) if cached else 0


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file under `folder` with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
