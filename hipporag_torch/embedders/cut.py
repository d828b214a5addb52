"""Cutting texts where a tokenizer is not at hand."""

from hipporag_torch.llms.estimate import estimated_text_tokens


def cut_at(text: str, max_tokens: int) -> str:
    """The longest beginning of a text whose estimated tokens are at most `max_tokens`."""
    if estimated_text_tokens(text) <= max_tokens:
        return text
    fits, too_long = 0, len(text)
    # The estimate never falls as a text grows.
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if estimated_text_tokens(text[:middle]) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return text[:fits]
