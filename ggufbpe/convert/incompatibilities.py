"""Finds what a format cannot express in a vocabulary, with the characters or tokens concerned.

Each function yields the incompatibilities of one kind, for formats that have it. An export without any gives
llama.cpp's ids for every text that is UTF-8, as far as is known; parity.py tests it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .._util.errors import printable
from .._util.spelling import BYTE_TOKENS, unescape_spaces
from .._util.wording import counted, listed
from ..gguf.merges import parts
from ..models.bpe.merge import BYTE_CHARS
from ..models.special_order import sort_longest_first
from ..models.vocabulary import CONTROL, LSTRIP, RSTRIP, UNKNOWN, USER_DEFINED, Vocabulary


def listed_out(vocabulary: Vocabulary) -> Vocabulary:
    """A copy of the vocabulary with plain Python lists and a dict, for JSON and long loops."""
    return vocabulary._replace(
        tokens=list(vocabulary.tokens),
        token_to_id=dict(vocabulary.token_to_id.items()),
        merges=list(vocabulary.merges),
    )


class Incompatibility(NamedTuple):
    """One way in which ids can differ: `name` is for programs, `what` for people, `number` counts the cases."""

    name: str
    what: str
    number: int = 1


NOT_ABOUT_IDS = frozenset(("default_ids", "not_read_by_tokenizers_1", "chat_template", "settings"))
"""The names of limits that no differing ids of a comparison come from."""


class Merges(NamedTuple):
    """The merges that a library can hold, by rank: two tokens that make a third, each pair once."""

    pairs: list[tuple[str, str]]
    dropped: list[str]  # llama.cpp applies them, but a part or the result is not a token


def usable_merges(vocabulary: Vocabulary) -> Merges:
    """The merges of a vocabulary. Of equal ones the first counts, as in llama.cpp."""
    known = vocabulary.token_to_id
    pairs: dict[tuple[str, str], None] = {}
    dropped = []
    for merge in vocabulary.merges:
        left, right = parts(merge)
        if not left or not right:
            continue  # no pair of symbols has this text
        if left in known and right in known and left + right in known:
            pairs[left, right] = None
        else:
            dropped.append(merge)
    return Merges(list(pairs), dropped)


def dropped_merges(merges: Merges) -> Iterator[Incompatibility]:
    """Merges through texts that are not tokens, which llama.cpp applies and then falls back to bytes."""
    if merges.dropped:
        yield Incompatibility(
            "merges_without_tokens",
            f"{counted(len(merges.dropped), 'merge is', 'merges are')} left out, since a part or the result is not a "
            f"token: {_some(merges.dropped)}; words in which llama.cpp applies them get other ids",
            len(merges.dropped),
        )


def missing_bytes(vocabulary: Vocabulary, instead: str) -> Iterator[Incompatibility]:
    """Bytes without a token; llama.cpp leaves them out of the ids, in its own way."""
    if missing := bytes_without_tokens(vocabulary):
        yield Incompatibility(
            "bytes_without_tokens",
            f"no token for the {'bytes' if len(missing) > 1 else 'byte'} "
            f"{_hexadecimal(missing)} of UTF-8, which llama.cpp leaves out: {instead}",
            len(missing),
        )


def bytes_without_tokens(vocabulary: Vocabulary) -> list[int]:
    """The bytes of UTF-8 that have no token."""
    names = BYTE_CHARS if vocabulary.pre_tokenizer.byte_encode else BYTE_TOKENS
    return [byte for byte in range(256) if names[byte] not in vocabulary.token_to_id and byte not in NEVER]


def bytes_that_fail(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """Bytes without a token, on which llama.cpp throws an exception (SPM)."""
    known = vocabulary.token_to_id
    missing = [byte for byte in bytes_without_tokens(vocabulary) if byte >= 0x80 or chr(byte) not in known]
    if missing:
        yield Incompatibility(
            "bytes_without_tokens",
            f"no token for the {'bytes' if len(missing) > 1 else 'byte'} {_hexadecimal(missing)}, on which llama.cpp "
            "throws an exception: the unknown token stands for the character here",
            len(missing),
        )


NEVER = {0xC0, 0xC1, *range(0xF5, 0x100)}  # never part of UTF-8


def _hexadecimal(values: list[int]) -> str:
    joined: list[list[int]] = []
    for value in values:
        if joined and joined[-1][-1] == value - 1:
            joined[-1][1:] = [value]
        else:
            joined.append([value])
    return ", ".join(" to ".join(f"0x{value:02X}" for value in run) for run in joined)


def overlapping_tokens(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """Special tokens that can overlap in a text so that llama.cpp takes the later one because it is longer."""
    texts = {token: vocabulary.tokens[token] for token in vocabulary.special_token_ids}
    order = sort_longest_first([(len(text.encode()), token) for token, text in texts.items()])
    place = {token: number for number, (_, token) in enumerate(order)}
    heads: dict[str, list[int]] = {}
    for token, text in texts.items():
        for length in range(1, len(text)):
            heads.setdefault(text[:length], []).append(token)
    ids = {text: token for token, text in texts.items()}

    def is_first(token: int, joined: str) -> bool:
        """Whether others take `token` at the beginning, because no longer token stands there."""
        return all(joined[:length] not in ids for length in range(len(texts[token]) + 1, len(joined)))

    overlapping = [
        joined
        for token, text in texts.items()
        for start in range(1, len(text))
        for other in heads.get(text[start:], ())
        if place[other] < place[token]
        and is_first(token, joined := f"{text}{texts[other][len(text) - start :]}")
    ]
    if overlapping:
        yield Incompatibility(
            "overlapping_special_tokens",
            f"special tokens that overlap: in {_some(overlapping)} llama.cpp takes the longer token, "
            "which comes second; others take the first",
            len(overlapping),
        )


def hidden_tokens(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """User-defined tokens that a control token hides while control tokens count as plain text.

    Others find the control token first and then leave it; llama.cpp does not look for it at all.
    """
    texts, attributes = vocabulary.tokens, vocabulary.attributes
    hides = {t for t in vocabulary.special_token_ids if attributes[t] & (CONTROL | UNKNOWN)}
    shown = {texts[token] for token in vocabulary.special_token_ids if token not in hides}
    heads = {text[:length] for text in shown for length in range(1, len(text))}
    hidden = [
        texts[token]
        for token in hides
        if any(
            texts[token][start:end] in shown
            or (start and end == len(texts[token]) and texts[token][start:] in heads)
            for start in range(len(texts[token]))
            for end in range(start + 1, len(texts[token]) + 1)
        )
    ]
    if hidden:
        yield Incompatibility(
            "user_defined_tokens_in_control_tokens",
            f"where special tokens are not parsed, user-defined tokens inside {_some(sorted(hidden))}, or "
            "beginning in it, are not found",
            len(hidden),
        )


def stripped_spaces(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """Tokens that strip white space beside them: that of ASCII in llama.cpp, that of Unicode elsewhere."""
    attributes = vocabulary.attributes
    stripping = [t for t in vocabulary.special_token_ids if attributes[t] & (LSTRIP | RSTRIP)]
    if stripping:
        yield Incompatibility(
            "white_space_beyond_ascii",
            f"beside {_some([vocabulary.tokens[token] for token in stripping])}, white space is dropped: llama.cpp "
            "drops that of ASCII, others also U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, "
            "U+205F and U+3000",
            len(stripping),
        )


def kept_spaces(vocabulary: Vocabulary, library: str, unless: int = 0) -> Iterator[Incompatibility]:
    """Tokens that strip white space beside them, where `library` keeps it; not those with the attributes `unless`."""
    attributes = vocabulary.attributes
    strip = [
        t
        for t in vocabulary.special_token_ids
        if attributes[t] & (LSTRIP | RSTRIP) and not attributes[t] & unless
    ]
    if strip:
        yield Incompatibility(
            "white_space_beside_tokens",
            f"white space beside {len(strip)} special tokens, such as {printable(vocabulary.tokens[strip[0]])}, is "
            f"dropped by llama.cpp and not by {library}",
            len(strip),
        )


def user_defined_prefixes(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """Beginnings of user-defined tokens, which llama.cpp exempts from normalization (UGM)."""
    prefixes = [
        vocabulary.tokens[t] for t in vocabulary.special_token_ids if vocabulary.attributes[t] & USER_DEFINED
    ]
    if prefixes:
        yield Incompatibility(
            "user_defined_prefixes",
            f"a text with what {_some(prefixes)} begin with is not normalized there by llama.cpp",
            len(prefixes),
        )


def replaced_tokens(replaced: Mapping[str, str]) -> Iterator[Incompatibility]:
    """Tokens whose place an added token takes, by the added token's text; "" where none is lost."""
    lost = {new: old for new, old in replaced.items() if old}
    if lost:
        new, old = next(iter(lost.items()))
        yield Incompatibility(
            "replaced_tokens",
            f"{counted(len(lost), 'added token has', 'added tokens have')} the id of another token, which is lost, as "
            f"in convert_hf_to_gguf.py: {printable(new, 40)} takes the place of {printable(old, 40)}",
            len(lost),
        )


def texts_of_spaces(vocabulary: Vocabulary) -> Iterator[Incompatibility]:
    """Texts that are only spaces, before which llama.cpp puts no other (UGM)."""
    if vocabulary.add_space_prefix and not vocabulary.remove_extra_whitespaces:
        yield Incompatibility(
            "texts_of_spaces", "a space is put before a text that has only spaces, and llama.cpp puts none"
        )


def about_tokens(
    name: str, texts: Sequence[str], what: str, verb: tuple[str, str] = ("is", "are")
) -> Iterator[Incompatibility]:
    """Yield one incompatibility if there are `texts` of tokens: their number, an example, a verb, then `what`."""
    if texts:
        some = f"{counted(len(texts), 'token')}, such as {printable(unescape_spaces(texts[0]), 40)}"
        yield Incompatibility(name, f"{some}, {verb[len(texts) > 1]} {what}", len(texts))


def _some(texts: Iterable[str]) -> str:
    different = dict.fromkeys(texts)
    return listed(different, len(different))
