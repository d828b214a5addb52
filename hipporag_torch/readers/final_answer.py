"""The answer within a model's reply."""

import re
from dataclasses import dataclass

from hipporag_torch.asking import spoken
from hipporag_torch.chat import ChatReply
from hipporag_torch.types import AnswerFlag

# Models dress the marker up: **Answer:**, ### Answer:, > answer: , Final answer:
_DRESS = r"[*_`#>\-]"
_MARKER = re.compile(
    rf"(?P<line>^(?:[ \t]|{_DRESS})*+(?:(?:the|final)[ \t]++)*+)?"
    rf"(?<![^\W_])answer{_DRESS}*+[ \t]*+[:：]{_DRESS}*+",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class FinalAnswer:
    """An answer's text, and what is odd about it."""

    text: str
    flag: AnswerFlag = ""


def final_answer(reply: ChatReply) -> FinalAnswer:
    """The answer of a reply: what stands behind its last marker "Answer:", to the end of that line.

    Markers that begin a line count before others. If the line ends with the marker, the answer is the
    next line that is not blank; later lines are comment. Reasoning blocks are left out first, wherever they
    stand, and emphasis around the answer is taken off. Without a marker it is the whole reply.
    """
    text = spoken(reply.text)
    markers = list(_MARKER.finditer(text))
    if not markers:
        flag: AnswerFlag = "no_marker" if text else "empty"
        return FinalAnswer(text, "cut" if reply.finish == "length" else flag)
    last = next((match for match in reversed(markers) if match["line"] is not None), markers[-1])
    answer, newline, _ = text[last.end() :].lstrip().partition("\n")
    answer = answer.strip().strip("*_`").strip()
    if reply.finish == "length" and not newline:
        return FinalAnswer(answer, "cut")
    return FinalAnswer(answer, "" if answer else "empty")
