r"""Vocabulary to tokenizer.json, the file of Hugging Face's `tokenizers` and of all that read it.

    vocabulary -> splitting.py, limits.py -> [this file] -> tokenizer.json, tokenizer_config.json

The pre-tokenizer is written as the models' own files have it where that splits as llama.cpp does, because those are
all that tokenizers 1.0 reads. Else, or if asked for, each stage is a `Split` by a regular expression that lists code
points, so that the words are llama.cpp's and not those of the library's Unicode version. All tokens are in the
model's vocabulary, so that every id is as it was; special ones are added tokens besides. What cannot be carried is in
`Export.limits`.

But: encoding is what is held to llama.cpp. Decoding is the library's own; it has no clean-up of spaces here, and
shows an added token of letters beyond ASCII in a byte-level vocabulary otherwise.

Source of the format: tokenizers/src/tokenizer/serialization.rs of huggingface/tokenizers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import printable
from ..models.bpe.merge import CHAR_BYTES, WordEncoder
from ..spelling import SPACE
from ..unicode_classes import LOWER
from ..vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary
from . import limits
from .hf_config import config_of
from .limits import Limit
from .originals import BY_ITS_UNICODE, IGNORING_CASE, PORTABLE, split
from .splitting import NotExpressibleError, oniguruma

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
NOT_IN_1 = "not_read_by_tokenizers_1"


class Export(NamedTuple):
    """Files to write, by name, and where the ids of their readers differ from ours."""

    files: dict[str, bytes]
    limits: tuple[Limit, ...]


def to_tokenizer_json(
    vocabulary: Vocabulary, chat_template: str | None = None, *, code_points: bool = False
) -> Export:
    """tokenizer.json, and the tokenizer_config.json that the `transformers` package reads beside it.

    With `code_points`, patterns list code points wherever there is one: ids are the same for characters of any
    Unicode version, and tokenizers 1.0 does not read the file.

    >>> from ggufbpe import Tokenizer                                        # doctest: +SKIP
    >>> export = to_tokenizer_json(Tokenizer.from_gguf(path).vocabulary)     # doctest: +SKIP
    >>> tokenizers.Tokenizer.from_buffer(export.files["tokenizer.json"])     # doctest: +SKIP
    """
    vocabulary = limits.plain(vocabulary)
    document, found = _document(vocabulary, code_points)
    config = config_of(vocabulary, chat_template)
    files = {TOKENIZER_JSON: json_file(document), TOKENIZER_CONFIG: json_file(config)}
    return Export(files, tuple(found))


def json_file(value: object) -> bytes:
    """JSON as it goes into a file."""
    import json

    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _document(vocabulary: Vocabulary, code_points: bool) -> tuple[dict[str, Any], list[Limit]]:
    merges = limits.usable_merges(vocabulary)
    entry = vocabulary.pre_tokenizer
    byte_level = entry.byte_encode
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "normalizer": _normalizer(vocabulary),
        "pre_tokenizer": _pre_tokenizer(vocabulary, code_points),
        "post_processor": _post_processor(vocabulary),
        "decoder": _byte_level() if byte_level else _decoder(vocabulary),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": not byte_level,
            "ignore_merges": entry.ignore_merges,
            "vocab": vocabulary.token_to_id,
            "merges": merges.pairs,
        },
    }
    return document, [
        *limits.dropped_merges(merges),
        *limits.missing_bytes(vocabulary, _MISSING[byte_level]),
        *limits.overlapping_tokens(vocabulary),
        *limits.hidden_tokens(vocabulary),
        *limits.stripped_spaces(vocabulary),
        *_line_breaks(vocabulary),
        *_other_models(vocabulary),
        *_readers(vocabulary, code_points),
    ]


_MISSING = {
    True: "what stood on both sides of them can merge here",
    False: "a character with one of them is left out as a whole here",
}


def _added_tokens(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """The tokens that are found in texts before they are split; special are those that can be switched off."""
    found = []
    for token in vocabulary.special_token_ids:
        attribute = vocabulary.attributes[token]
        found.append(
            {
                "id": token,
                "content": vocabulary.tokens[token],
                "single_word": False,
                "lstrip": bool(attribute & LSTRIP),
                "rstrip": bool(attribute & RSTRIP),
                "normalized": False,
                "special": bool(attribute & (CONTROL | UNKNOWN)),
            }
        )
    return found


def _normalizer(vocabulary: Vocabulary) -> dict[str, Any] | None:
    steps = [_replace(" ", SPACE)] if vocabulary.pre_tokenizer.escape_whitespaces else []
    if (
        vocabulary.pre_tokenizer.prepend_space
    ):  # a Replace of nothing by U+2581 makes the library panic on some texts
        raise NotExpressibleError(
            f"{vocabulary.pre_tokenizer.name} puts a space in front of each line, for which the library has no step"
        )
    if vocabulary.makes_lower_case:
        # llama.cpp has one code point for each; of İ, the library makes two
        steps += [_replace(chr(a), chr(b)) for a, b in LOWER.items() if chr(a).lower() != chr(b)]
        steps.append({"type": "Lowercase"})
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", "normalizers": steps}


def _replace(old: str, new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def _pre_tokenizer(vocabulary: Vocabulary, code_points: bool) -> dict[str, Any]:
    entry = vocabulary.pre_tokenizer
    known = _known_to_1(vocabulary, code_points)
    splits = [split(pattern) for pattern in oniguruma(entry)] if known is None else [*known]
    if vocabulary.tokenizer_model.drops_white_space:
        splits.insert(0, {"type": "WhitespaceSplit"})
    if entry.byte_encode and splits[-1]["type"] != "ByteLevel":
        splits.append(_byte_level())
    return splits[0] if len(splits) == 1 else {"type": "Sequence", "pretokenizers": splits}


def _known_to_1(vocabulary: Vocabulary, code_points: bool) -> tuple[dict[str, Any], ...] | None:
    """How tokenizers 1.0 is told to split a text, or what is left when white space is out; None if it cannot be."""
    family = vocabulary.pre_tokenizer.family
    if vocabulary.tokenizer_model.drops_white_space and vocabulary.pre == vocabulary.tokenizer_model.own_pre:
        return ()
    return None if code_points and family in BY_ITS_UNICODE else PORTABLE.get(family)


def _byte_level() -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _decoder(vocabulary: Vocabulary) -> dict[str, Any]:
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if vocabulary.pre_tokenizer.escape_whitespaces:
        steps.insert(0, _replace(SPACE, " "))
    return {"type": "Sequence", "decoders": steps}


def _post_processor(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """BOS and EOS around every text, where the model wants them."""
    ends: list[dict[str, int | str] | None] = []
    for added, name in ((vocabulary.add_bos, "bos"), (vocabulary.add_eos, "eos")):
        token = vocabulary.special_ids[name] if added else None
        ends.append(None if token is None else {"id": token, "text": vocabulary.tokens[token]})
    if not any(ends):
        return None

    def around(sequence: str, number: int) -> list[dict[str, Any]]:
        before, after = (
            [{"SpecialToken": {"id": end["text"], "type_id": number}}] if end else [] for end in ends
        )
        return [*before, {"Sequence": {"id": sequence, "type_id": number}}, *after]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": [*around("A", 0), *around("B", 1)],
        "special_tokens": {
            end["text"]: {"id": end["text"], "ids": [end["id"]], "tokens": [end["text"]]}
            for end in ends
            if end
        },
    }


# ---- what only some models have -------------------------------------------------------------------------


def _line_breaks(vocabulary: Vocabulary) -> Iterator[Limit]:
    """Words of line breaks that are tokens, which llama.cpp takes without merges (Gemma 4)."""
    if not vocabulary.pre_tokenizer.newline_runs:
        return
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
    words = [token for token in vocabulary.token_to_id if token and not token.strip("\n")]
    unmade = [word for word in words if len(encoder.merged(list(word))) > 1]
    if unmade:
        lengths = ", ".join(str(len(word)) for word in unmade[:5])
        yield Limit(
            "runs_of_line_breaks",
            f"{len(unmade)} runs of line breaks are tokens that no merges make, which only llama.cpp takes: those of "
            f"{lengths}{' …' if len(unmade) > 5 else ''}",
            len(unmade),
        )


def _other_models(vocabulary: Vocabulary) -> Iterator[Limit]:
    if vocabulary.tokenizer_model.has_sequences:
        yield Limit("dna", "sequences between <dna> and </dna> are encoded as any other text", 1)
    if vocabulary.makes_lower_case:
        yield Limit(
            "lower_case",
            "letters that got a lower case after Unicode 15.1 are made lower case by libraries that know it",
            1,
        )
    if "" in vocabulary.token_to_id:
        raise NotExpressibleError(f"token {printable('')} is empty, which no library takes")


# ---- what only some versions of the library have ----------------------------------------------------------


def _readers(vocabulary: Vocabulary, code_points: bool) -> Iterator[Limit]:
    """What depends on the version of the library that reads the file."""
    family = vocabulary.pre_tokenizer.family
    known = _known_to_1(vocabulary, code_points)
    if known is None:
        yield Limit(
            NOT_IN_1,
            "tokenizers 1.0 does not read the file, 0.x does: 1.0 knows the patterns of some models only, and those "
            f"of {vocabulary.pre} are not among them",
            1,
        )
    elif limits.bytes_without_tokens(vocabulary):
        yield Limit(
            NOT_IN_1, "tokenizers 1.0 does not read a vocabulary without a token for each byte; 0.x does", 1
        )
    elif found := _characters_of_their_own(vocabulary):
        yield Limit(
            "tokens_of_one_character",
            f"{len(found)} tokens of a character that merges do not make, such as {printable(found[0])}, are only "
            "found by tokenizers 1.0",
            len(found),
        )
    if known is not None and family in BY_ITS_UNICODE:
        yield Limit(
            "newer_unicode",
            "characters that came after Unicode 15.1 are no letters, digits or marks in llama.cpp; here they are what "
            "the library's Unicode version says (--code-points lists those of 15.1, for tokenizers 0.x)",
            1,
        )
    if known is not None and family in IGNORING_CASE:
        yield Limit(
            "long_s",
            "ſ (U+017F) after an apostrophe is a contraction in tokenizers 0.x, which ignores case there, and none "
            "in llama.cpp and 1.0",
            1,
        )


def _characters_of_their_own(vocabulary: Vocabulary) -> list[str]:
    """Tokens of one character that its bytes do not merge to, written in bytes or as the character itself."""
    if not vocabulary.pre_tokenizer.byte_encode:
        return []
    special = set(vocabulary.special_token_ids)
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
    return [
        text
        for text, token in vocabulary.token_to_id.items()
        if (
            len(text) <= 4
            and token not in special
            and _is_one_character(text)
            and len(encoder.merged(list(text))) > 1
        )
        or (len(text) == 1 and text not in CHAR_BYTES and token not in special)
    ]


def _is_one_character(text: str) -> bool:
    """Whether `text` is the bytes of one character, in the alphabet of bytes."""
    if not CHAR_BYTES.keys() >= set(text):
        return False
    try:
        return len(bytes(map(CHAR_BYTES.__getitem__, text)).decode()) == 1
    except UnicodeDecodeError:
        return False
