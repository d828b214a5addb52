"""Models that think aloud before they answer: what stands between <think> and </think> is no answer."""

import re

TAG = r"<(?P<end>/?)(?:think|thinking|thought|reasoning)>"
_TAG = re.compile(TAG, re.IGNORECASE)


def without_reasoning(text: str) -> str:
    """What follows the last closing tag, up to an opening tag that is never closed.

    The opening tag may be missing: chat templates often end the prompt with it.
    """
    start, stop = 0, len(text)
    for match in _TAG.finditer(text):
        if match["end"]:
            start, stop = match.end(), len(text)
        elif stop == len(text):
            stop = match.start()
    return text[start:stop].strip()


def reasoning_end(text: str, start: int) -> int:
    """Where reasoning that began before `start` ends: behind the next closing tag, or -1."""
    return next((match.end() for match in _TAG.finditer(text, start) if match["end"]), -1)
