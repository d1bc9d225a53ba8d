"""Finds what was to be expected of an original tokenizer.json: another tokenizer, or known limits of llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

from ..._util.errors import printable
from ..._util.wording import counted
from ...convert.character_limits import CHARACTERS
from ...convert.imported import NotImportableError
from ...convert.importers.import_files import import_file
from ...gguf.constants import TokenizerKey
from ...models.vocabulary import LSTRIP, RSTRIP, Vocabulary
from ..doctor.finding import Finding, Where
from .result import Difference

_K = TokenizerKey
_ALIKE = 0.5  # of the tokens; vocabularies of two tokenizers share some hundred ids
_LIMITS = {
    "newer_unicode": "a character that came after Unicode 15.1, the version that llama.cpp has",
    "long_s": "ſ (U+017F) after an apostrophe, which is a contraction where case is ignored, and not in llama.cpp",
}


def other_tokenizer(vocabulary: Vocabulary, path: str, source: str) -> Finding | None:
    """Return the finding that the tokenizer.json at `path` is that of another model; None if it is not."""
    try:
        theirs = import_file(path).metadata.get(_K.LIST)
    except (NotImportableError, OSError):  # the comparison of ids says why
        return None
    if not isinstance(theirs, list) or not theirs:
        return None
    ours = vocabulary.tokens
    size = min(len(ours), len(theirs))
    same = sum(map(eq, ours, theirs))
    if same >= _ALIKE * size:
        return None
    return Finding(
        "warning",
        "upstream_other_tokenizer",
        f"{source} has another tokenizer than the file.",
        "Nothing else was compared, since nearly all ids differ. Either this is not the original of the model, or the "
        "file has the vocabulary of another model.",
        "compare with the repository that the model was made from, or convert the model again",
        Where(_K.LIST),
        {"same": same, "tokens": len(ours), "theirs": len(theirs)},
        f"{counted(same, 'token has', 'tokens have')} the same id in both; the file has {len(ours)}, the other "
        f"{len(theirs)}.",
    )


def known_limit(difference: Difference, vocabulary: Vocabulary) -> str:
    """Return the limit of llama.cpp that explains a difference, in words; "" if none does.

    The smallest text that differs has no character to spare, so that one that llama.cpp knows otherwise is the cause.
    """
    if difference.smallest is None:
        return ""
    text = difference.smallest.text.data.decode("utf-8", "replace")
    for name, words in _LIMITS.items():
        if any(map(CHARACTERS[name], text)):
            return words
    strips = any(
        vocabulary.attributes[token] & (LSTRIP | RSTRIP) and vocabulary.tokens[token] in text
        for token in vocabulary.special_token_ids
    )
    if strips and any(char.isspace() and char > "\x7f" for char in text):
        return (
            "white space beyond ASCII beside a special token, which llama.cpp keeps and other programs drop"
        )
    return ""


def limit_findings(limits: list[tuple[str, Difference]], told: str) -> Iterator[Finding]:
    """Yield one note for all differences that known limits explain."""
    if not limits:
        return
    words = dict.fromkeys(limit for limit, _ in limits)
    texts = [
        each.smallest.text.data.decode("utf-8", "backslashreplace") for _, each in limits if each.smallest
    ]
    places = sum(each.places for _, each in limits)
    yield Finding(
        "note",
        "upstream_known_limit",
        f"A few rare characters get other ids than with {told}.",
        "That is a known limit of llama.cpp, which no file can change. It does not concern ordinary text.",
        "nothing to do",
        Where(_K.MODEL),
        {"limits": list(words), "texts": texts},
        f"{counted(places, 'place differs', 'places differ')}, by {'; '.join(words)}: "
        f"{', '.join(map(printable, texts[:3]))}.",
    )
