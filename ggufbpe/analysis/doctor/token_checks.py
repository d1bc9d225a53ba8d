"""The texts and types of tokens: duplicates, empty ones, fillers, and control tokens of the wrong type."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import compress, islice, repeat, takewhile

from ..._util.wording import counted, listed
from ...gguf.constants import TokenizerKey, TokenType
from ...models.bpe.bpe_model import WITHOUT_MERGES
from ...models.bpe.merge import BYTE_CHARS
from ...models.special_ids import MADE_CONTROL
from ...models.token_table import tokens_with
from ...models.vocabulary import CONTROL, USER_DEFINED, Correction, Vocabulary
from .facts import Facts
from .finding import Finding, listed_tokens
from .marker_types import listed_markers, set_marker_types

_K = TokenizerKey

# Tokens that only fill up a vocabulary; PAD, which fills up rows of a batch, is none.
FILLER = re.compile(
    r"\[PAD\d+\]|<(dummy|unused|extra_id_|placeholder)_?\d+>|\[unused\d+\]|"
    r"<\|(dummy|unused|reserved|extra|placeholder)[_a-z]*\d+\|>|<unused\d+>"
)
# What looks like a control token: <|…|>, <｜…｜>, and the names that models give them.
CONTROL_LIKE = re.compile(
    r"<\|[^|<>\s]{1,80}\|>|<｜[^｜<>]{1,80}｜>|</?s>|"
    r"<(?:pad|bos|eos|mask|cls|sep|(?:start|end)_of_(?:turn|text|utterance|image)|fim[-_][a-z]+)>|"
    r"<(?:BOS_TOKEN|EOS_TOKEN|PAD|EOT|EOS|BOS|\|?endoftext\|?)>|"
    r"\[/?INST\]|\[(?:BOS|EOS|PAD|CLS|SEP|MASK|EOT|gMASK|/?TOOL_[A-Z]+|/?SYSTEM_PROMPT|/?AVAILABLE_TOOLS)\]"
)
# The brackets of markers: <x>, <|x|>, <|x>, <x|>, <｜x｜>, [x], >>x<<.
BRACKETED = re.compile(r"(<\|?|<｜|\[|>>)[^\s<>|｜\[\]]+(?: [^\s<>|｜\[\]]+)*(\|?>|｜>|\]|<<)")
BARS = re.compile(r"[|｜]")
_ADDED_WORD = re.compile(r"(?=.*[^\W\d_])[^\W_](?:[^\W_]|[ '’.,()-]){3,}")
NEAR = 64  # ids: how far apart markers of one group may be
_BRACKETS = ("<", "[", ">")  # what markers begin with
_MARKER_NAME = re.compile(
    r"(?i)\b(reserved|unused|extra|pad|mask)|(start|begin|end)[ -]?of"
)  # no brackets needed
_SHARE_LACKING = 0.1  # of the tokens; vocabularies have less than 1 % that no merge produces
_SAMPLE = 4096  # tokens by which the share is told
_MOST_WORDS = 0.5  # of the words; vocabularies have less than 1 % that are not of type NORMAL
_FEWEST_WORDS = 40  # by which a share tells anything
_HTML = frozenset(("<s>", "</s>"))  # plain HTML in Gemma's vocabulary, like <i> and <b>


def is_written_as_marker(text: str) -> bool:
    """Check that a text has the form of a marker, or is one that llama.cpp takes for a control token."""
    return text in MADE_CONTROL or any(form.fullmatch(text) for form in (BRACKETED, CONTROL_LIKE))


def is_added_word(text: str) -> bool:
    """Check that a token which no merge makes is a word: short ones, as "sop", and upper case may be markers.

    >>> is_added_word("Section 5A"), is_added_word("[gMASK]"), is_added_word("fim_prefix"), is_added_word("endoftext")
    (True, False, False, False)
    """
    return bool(_ADDED_WORD.fullmatch(text)) and not (text.isupper() or _MARKER_NAME.search(text))


def are_most_words(tokens: Sequence[str], some: Iterable[int]) -> bool:
    """Check that `some` are most words of a vocabulary: tokens that are not written as markers, fillers or bytes.

    Their types are then lost. There may be more markers than words, which are special in sound files as well. Of a few
    words, nothing can be said.
    """
    found = sum(not is_written_as_marker(tokens[token]) for token in some)
    if found <= _MOST_WORDS * _FEWEST_WORDS:
        return False
    # Sound files have many more words: then it is enough to see so many.
    words = (text for text in tokens if not is_written_as_marker(text))
    return _FEWEST_WORDS <= sum(1 for _ in islice(words, 2 * found)) < found / _MOST_WORDS


def is_misspelt(marker: str, other: str) -> bool:
    """Check that two markers differ only in case or separators, as <|imend|> and <|im_end|>; not in their brackets."""
    one, two = BRACKETED.fullmatch(marker), BRACKETED.fullmatch(other)
    if marker == other or one is None or two is None or one.groups() != two.groups():
        return False
    return _letters(marker) == _letters(other)


def _letters(marker: str) -> str:
    return re.sub(r"[^\w/]|_", "", marker).casefold()


def duplicates(model: Facts) -> Iterator[Finding]:
    """Tokens with the same text."""
    if len(model.ids) == len(model.tokens):
        return
    again = [
        (index, token) for index, token in enumerate(model.tokens) if model.ids[token] != index and token
    ]
    if not again:
        return
    index, token = again[0]
    yield Finding(
        "error",
        "duplicate_tokens",
        "Several tokens have the same text.",
        "llama.cpp aborts if two tokens have the same text.",
        "fix the tokenizer so that all its tokens differ, then convert the model again",
        model.token(index),
        {"count": len(again), "ids": [i for i, _ in again[:100]]},
        f"{counted(len(again), 'token is a duplicate', 'tokens are duplicates')}: token {index} is "
        f"{model.quoted(index)}, like token {model.ids[token]}.",
    )


def empty_tokens(model: Facts) -> Iterator[Finding]:
    """Tokens without text."""
    empty = [index for index, token in enumerate(model.tokens) if not token] if "" in model.ids else []
    if empty:
        yield Finding(
            "warning",
            "empty_tokens",
            "Some tokens have no text.",
            "llama.cpp calls them [EMPTY_…]. Encoding never gives such an id, and if the model generates one, a wrong "
            "text is shown.",
            "nothing to do if they only pad the vocabulary; otherwise convert the model again",
            model.token(empty[0]),
            {"count": len(empty), "ids": empty[:100]},
            f"{counted(len(empty), 'token')}: {listed(empty, len(empty))}.",
        )


def padding_tokens(model: Facts) -> Iterator[Finding]:
    """Tokens that only fill up the vocabulary. The PAD token is not one of them; special_id_checks.py checks it."""
    found = [index for index in bracketed(model) if FILLER.fullmatch(model.tokens[index])]
    if found:
        types = {int(kind): kind.name for kind in TokenType}
        kinds = sorted({types.get(model.type_of(index), "?") for index in found})
        yield Finding(
            "note",
            "padding_tokens",
            "Some tokens only fill up the vocabulary.",
            "The model's embeddings have rows for them, but only a text that contains their names gives their ids.",
            "nothing to do",
            model.token(found[0]),
            {"count": len(found), "ids": found[:100], "types": kinds},
            f"{counted(len(found), 'token')} of type {', '.join(kinds)}, from token {found[0]} on, "
            f"{model.quoted(found[0])}.",
        )


def bracketed(model: Facts) -> list[int]:
    """Return the tokens that begin as names in brackets do."""
    return model.shared_result(_bracketed)


def _bracketed(model: Facts) -> list[int]:
    """Find them without a loop in Python, which takes five times as long over all tokens."""
    are = map(str.startswith, model.tokens, repeat(("<", "[")))
    return list(compress(range(len(model.tokens)), are))


def lacks_merges(tokens: Sequence[str], merged: Container[str]) -> bool:
    """Check that many tokens are not `merged`, the results of merges: then no merge tells added tokens from text."""
    sample = list(islice(tokens, 0, None, max(len(tokens) // _SAMPLE, 1)))
    unmerged = sum(len(each) > 1 and each[0] not in _BRACKETS and each not in merged for each in sample)
    return unmerged > _SHARE_LACKING * len(sample)


def _lacks_merges(model: Facts) -> bool:
    return lacks_merges(model.tokens, model.merged)


def marker_like(model: Facts) -> list[int]:
    """Return the tokens that look like control tokens and that no merge makes: Qwen 2's "</s>" is text."""
    found = model.shared_result(_unmerged_names)
    if found and model.merges and model.shared_result(_lacks_merges):
        found = [index for index in found if _is_added(model, index)]
    return sorted({*found, *model.shared_result(_before_bytes)})


def _before_bytes(model: Facts) -> Sequence[int]:
    """Return the names in brackets before the tokens of bytes: what merges make would stand behind these."""
    names = list(takewhile(BRACKETED.fullmatch, model.tokens))
    behind = model.tokens[len(names)] if model.merges and len(names) < len(model.tokens) else ""
    return range(len(names)) if len(behind) == 1 and behind in BYTE_CHARS else ()


def _unmerged_names(model: Facts) -> list[int]:
    text = _HTML if "<i>" in model.ids else frozenset()
    return [
        index
        for index in bracketed(model)
        if CONTROL_LIKE.fullmatch(token := model.tokens[index])
        and token not in model.merged
        and token not in text
    ]


def _is_plain(model: Facts, index: int) -> bool:
    """Check that a token is normal, and neither a filler nor made normal by llama.cpp."""
    is_normal = model.is_normal(index) and not model.is_made_normal(index)
    return is_normal and not FILLER.fullmatch(model.tokens[index])


def _beside_markers(model: Facts, markers: Container[int]) -> list[int]:
    """Return the other normal tokens in brackets, which no merge makes, that stand beside special ones or `markers`.

    None where merges do not tell added tokens from text, nor in vocabularies with HTML, where they may be more of it.
    """
    if not model.merges or "<i>" in model.ids or model.shared_result(_lacks_merges):
        return []
    tokens = model.tokens
    names = [
        index
        for index in bracketed(model)
        if BRACKETED.fullmatch(tokens[index])
        and tokens[index] not in model.merged
        and _is_plain(model, index)
    ]
    found: set[int] = set()
    for order, step in ((names, -1), (names[::-1], 1)):
        for index in order:
            near = index + step
            if near in markers or near in found or (0 <= near < len(tokens) and not model.is_normal(near)):
                found.add(index)
    return sorted(index for index in found if index not in markers)


def control_types(model: Facts) -> Iterator[Finding]:
    """Normal tokens that look like control tokens; without merges, nothing tells them from text that looks so."""
    if model.kind.has_pre_tokenizer and not model.merges and model.pre != WITHOUT_MERGES:
        return
    found = [index for index in marker_like(model) if _is_plain(model, index)]
    of_family = {*_markers_of_family(model), *listed_markers(model)}
    found = sorted({*found, *_beside_markers(model, frozenset(found)), *filter(model.is_normal, of_family)})
    if found:
        found = sorted({*found, *_normal_by_type(model, of_family)})
        names = [model.tokens[index] for index in found]
        yield Finding(
            "warning",
            "control_type",
            "Markers that steer the model are stored as ordinary text.",
            "In a prompt, the text of a normal token is encoded like any other, mostly as several tokens, and when the "
            "model generates the token, it is shown as text. (llama.cpp corrects a few that end a generation.)",
            set_marker_types(model, found),
            model.token(found[0]),
            {"count": len(found), "ids": found[:100], "texts": names[:100]},
            counted(len(found), "token looks like a marker and is", "tokens look like markers and are")
            + f" of type NORMAL: {listed(found, len(found), shown=model.quoted)}.",
        )


def _normal_by_type(model: Facts, of_family: Iterable[int]) -> list[int]:
    """Return the other markers that the file calls normal, for types are mostly lost together.

    llama.cpp corrects some of them by their texts, and takes an unknown token for text.
    """
    unknown = model.unknown_token
    names = {*marker_like(model), *of_family, *(() if unknown is None else (unknown,))}
    return [
        index
        for index in names
        if model.type_of(index) == TokenType.NORMAL
        and is_written_as_marker(model.tokens[index])
        and not model.is_made_normal(index)
        and not FILLER.fullmatch(model.tokens[index])
    ]


def _markers_of_family(model: Facts) -> list[int]:
    """Return the tokens that are control tokens in all files of the family, and still have names as such.

    A model that was made of one of the family may have put others in their place, such as <think>, which is shown.
    """
    family = model.family
    if family is None:
        return []
    ids = {*family.control, *(pair[0] for pair in (family.bos, family.eos) if pair)}
    size = len(model.tokens)
    return sorted(index for index in ids if index < size and CONTROL_LIKE.fullmatch(model.tokens[index]))


def control_shown(model: Facts) -> Iterator[Finding]:
    """Control tokens of the family that are user-defined, and so shown, and taken out of every text."""
    tokenizer = model.tokenizer
    if tokenizer is None or model.family is None:
        return
    attributes = tokenizer.vocabulary.attributes
    found = [index for index in _markers_of_family(model) if attributes[index] == USER_DEFINED]
    if found:
        yield Finding(
            "warning",
            "control_shown",
            "Users can type control tokens as text, and generated ones are displayed.",
            "llama.cpp takes a token of type USER_DEFINED out of every text, even if it is told not to parse special "
            "tokens, so that what a user writes can begin or end a message. When the model generates the token, it is "
            "shown as text.",
            model.set_types(CONTROL=found),
            model.token(found[0]),
            listed_tokens(found, model.tokens),
            f"{counted(len(found), 'token is', 'tokens are')} of type USER_DEFINED, and CONTROL in "
            f"{model.family.name} files: {listed(found, len(found), shown=model.quoted)}.",
        )


def hidden_markers(model: Facts) -> Iterator[Finding]:
    """Control tokens that are user-defined in files of the family, and so shown: by their own types in the file.

    llama.cpp makes Gemma 4's <|tool_response> a control token whatever its type is.
    """
    if model.family is None:
        return
    shown = sorted(model.ids[text] for text in model.family.shown if text in model.ids)
    found = [index for index in shown if model.type_of(index) == TokenType.CONTROL]
    if found:
        yield Finding(
            "warning",
            "marker_hidden",
            "Markers that belong to the text of an answer are stored as control tokens.",
            "When the model generates a control token, nothing is shown, so that programs which read the text cannot "
            "tell tool calls and reasoning from the answer.",
            set_marker_types(model, found),
            model.token(found[0]),
            {"count": len(found), "ids": found, "texts": [model.tokens[index] for index in found]},
            f"{counted(len(found), 'token is', 'tokens are')} of type CONTROL, and USER_DEFINED in "
            f"{model.family.name} files: {listed(found, len(found), shown=model.quoted)}.",
        )


def _is_added(model: Facts, token: int) -> bool:
    """Check that a token with the name of a marker is one: by bars in the name, or by a special token near it."""
    near = range(max(token - NEAR, 0), min(token + NEAR + 1, len(model.tokens)))
    normal = int(TokenType.NORMAL)
    return bool(BARS.search(model.tokens[token])) or any(model.type_of(other) != normal for other in near)


def made_control(model: Facts) -> Iterator[Finding]:
    """Normal tokens that llama.cpp turns into control tokens, by their text."""
    if model.tokenizer is None or not model.types:
        return
    for index in tokens_with(model.tokenizer.vocabulary.attributes, CONTROL):
        if index < len(model.types) and model.types[index] == int(TokenType.NORMAL):
            ends = index in model.tokenizer.eog_ids
            yield Finding(
                "note",
                "made_control",
                f"llama.cpp takes {model.quoted(index)} for a marker, although the file says that it is text.",
                "Other programs may encode its text as several tokens, or continue after it.",
                "nothing to do"
                if model.tokens[index] in model.merged
                else "nothing to do for llama.cpp; for other programs, set its type: "
                + model.set_types(CONTROL=[index]),
                model.token(index),
                None,
                f"The token with id {index} has the type NORMAL; llama.cpp makes it a control token"
                + (" that ends a generation." if ends else "."),
            )


def corrections(model: Facts) -> Iterator[Finding]:
    """What llama.cpp changes by itself while loading the vocabulary, besides what `made_control` reports."""
    if model.tokenizer is None:
        return
    told = {finding.where.token for finding in made_control(model)}
    for correction in lasting_corrections(model.tokenizer.vocabulary):
        if correction.id == "made_control" and correction.token in told:
            continue
        yield Finding(
            "note",
            "corrected",
            f"llama.cpp corrects a {'value' if correction.token is None else 'token'} when it loads the file.",
            "Other programs that read the file may not do so.",
            "nothing to do for llama.cpp",
            model.key(TokenizerKey.LIST) if correction.token is None else model.token(correction.token),
            {"id": correction.id},
            f"{correction.what}.",
        )


def lasting_corrections(vocabulary: Vocabulary) -> list[Correction]:
    """Return the corrections of llama.cpp that hold in the end: it makes "</s>" a normal token again in Gemma 4."""
    return [
        each
        for each in vocabulary.corrections
        if each.id != "made_control" or each.token is None or vocabulary.attributes[each.token] & CONTROL
    ]


def is_name(token: str) -> bool:
    """Whether a token stands for something other than its text."""
    return token.startswith(("<", "[")) and bool(CONTROL_LIKE.fullmatch(token) or FILLER.fullmatch(token))
