"""The text of a merge, as `tokenizer.ggml.merges` has it."""

from __future__ import annotations


def parts(merge: str) -> tuple[str, str]:
    """The two sides of a merge, cut at its first space that does not begin it (src/llama-vocab.cpp, load).

    >>> parts("a b"), parts("  b"), parts("ab")
    (('a', 'b'), (' ', 'b'), ('', ''))
    """
    at = merge.find(" ", 1)
    return (merge[:at], merge[at + 1 :]) if at > 0 else ("", "")
