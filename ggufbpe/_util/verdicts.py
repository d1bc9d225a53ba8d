"""The results of looking at something, each in a word: what the attribute `verdict` and the field of `--json` say."""

HEALTHY, WARNING, ERROR = "healthy", "warning", "error"
SAME, DIFFERENT, EXPLAINED, NOT_COMPARED = "same", "different", "explained", "not_compared"


def same_or_different(is_same: bool) -> str:
    """Return the verdict on two things that were compared.

    >>> same_or_different(True)
    'same'
    """
    return SAME if is_same else DIFFERENT
