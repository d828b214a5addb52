"""The shapes in which question files state answers and gold passages: one function for each."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from hipporag_torch.datasets.rows import Row
from hipporag_torch.errors import DatasetError


@dataclass(frozen=True)
class Labels:
    """What a question row says beside its question; both without duplicates, in the file's order."""

    answers: tuple[str, ...]
    gold_texts: tuple[str, ...] = ()


def title_of(row: Row) -> str:
    """The row's title, or the empty string if it has none."""
    if row.fields.get("title") is None:
        return ""
    title = row.text("title")
    return title if title.strip() else ""


def passage_text(title: str, text: str) -> str:
    """A passage as it is indexed: title, newline, text; the text alone without a title."""
    return f"{title}\n{text}" if title else text


def paragraphs(row: Row) -> Labels:
    """Our own format and MuSiQue: paragraphs [{title, text or paragraph_text, is_supporting}], answer."""
    return Labels(_answers(row, row.texts("answer")), _supporting(row.rows("paragraphs")))


def nq_rear(row: Row) -> Labels:
    """contexts [{title, text, is_supporting}], reference [answers]."""
    return Labels(_answers(row, row.texts("reference")), _supporting(row.rows("contexts")))


def popqa(row: Row) -> Labels:
    """paragraphs as in MuSiQue; the answers are spread over obj, possible_answers and the o_* fields."""
    answers = [row.text("obj"), *_json_texts(row, "possible_answers")]
    answers += [row.text("o_wiki_title"), *_json_texts(row, "o_aliases")]
    return Labels(_answers(row, answers), _supporting(row.rows("paragraphs")))


def answers_only(row: Row) -> Labels:
    """LV-Eval and NarrativeQA: answers, no gold passages."""
    return Labels(_answers(row, row.texts("answers", "answer", "gold_ans")))


def supporting_facts(row: Row, *, join: str) -> Labels:
    """HotpotQA and 2WikiMultihopQA: supporting_facts [[title, …]], context [[title, [sentences]]], answer.

    `join` stands between the sentences of a passage. In Parquet the pairs are two lists each, as in
    {title: [titles], sentences: [[sentences]]}.
    """
    wanted = {title for title, _ in row.pairs("supporting_facts")}
    context = _context(row)
    if missing := wanted - {title for title, _ in context}:
        raise row.error(f"supporting_facts names {min(missing)!r}, which is not a title in context")
    gold = (passage_text(title, join.join(sentences)) for title, sentences in context if title in wanted)
    return Labels(_answers(row, row.texts("answer")), _distinct(gold))


SHAPES: dict[str, Callable[[Row], Labels]] = {
    "paragraphs": paragraphs,
    "hotpotqa": partial(supporting_facts, join=""),
    "2wikimultihopqa": partial(supporting_facts, join=" "),
    "nq_rear": nq_rear,
    "popqa": popqa,
    "answers": answers_only,
}


def detect_shape(rows: Sequence[Row]) -> str:
    """The name in `SHAPES` that fits the keys of the first of `rows` (at least one).

    Raises `DatasetError` if none fits.
    """
    keys = rows[0].fields.keys()
    if keys >= {"supporting_facts", "context"}:
        return "hotpotqa" if _sentences_bring_spaces(rows) else "2wikimultihopqa"
    if "contexts" in keys:
        return "nq_rear"
    if "paragraphs" in keys:
        return "popqa" if "obj" in keys else "paragraphs"
    if keys & {"answers", "answer", "gold_ans"}:
        return "answers"
    raise DatasetError(
        f"{rows[0].place}: no known question shape has just the keys {', '.join(sorted(keys)) or 'none'}; "
        f"known shapes are {', '.join(SHAPES)}: bring the file to one of them and state it with `shape`"
    )


def _sentences_bring_spaces(rows: Sequence[Row]) -> bool:
    """Whether the sentences of a supporting-facts file join without a space.

    HotpotQA's sentences bring the space before them along, 2WikiMultihopQA's do not, and the corpora
    were joined accordingly: a wrong join makes every gold passage of two sentences differ from its
    corpus passage. The majority decides, so that one stray space in a file does not.
    """
    later = [s for row in rows for _, sentences in _context(row) for s in sentences[1:]]
    return 2 * sum(sentence[:1].isspace() for sentence in later) > len(later)


def _context(row: Row) -> list[tuple[str, list[str]]]:
    pairs = row.pairs("context")
    for title, sentences in pairs:
        if not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
            raise row.error(f"context of {title!r} must be a list of sentences, got {sentences!r:.80}")
    return pairs


def _supporting(passages: Iterable[Row]) -> tuple[str, ...]:
    gold = (passage for passage in passages if passage.flag("is_supporting"))
    return _distinct(passage_text(title_of(row), row.text("text", "paragraph_text")) for row in gold)


def _answers(row: Row, answers: Iterable[str]) -> tuple[str, ...]:
    aliases = row.texts("answer_aliases") if "answer_aliases" in row.fields else []
    # An empty alias says nothing, and an empty prediction would match it.
    return _distinct(answer for answer in (*answers, *aliases) if answer.strip())


def _json_texts(row: Row, key: str) -> list[str]:
    """PopQA keeps lists as JSON text: '["a", "b"]'."""
    value = row.value(key)
    if not isinstance(value, str):
        return row.texts(key)
    try:
        decoded = json.loads(value)
    except json.JSONDecodeError as error:
        raise row.error(f"{key!r} must be a list, or one written as JSON text, got {value!r:.80}") from error
    return Row(row.place, {key: decoded}).texts(key)


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
