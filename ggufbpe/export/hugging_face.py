r"""Vocabulary to tokenizer.json, the file of Hugging Face's `tokenizers` and of all that read it.

    vocabulary -> splitting.py, limits.py -> [this file] -> tokenizer.json, tokenizer_config.json

Each stage of the pre-tokenizer is a `Split` by a regular expression that lists code points, so that the words
are llama.cpp's and not those of the library's Unicode version. All tokens are in the model's vocabulary, so
that every id is as it was; special ones are added tokens besides. What cannot be carried is in `Export.limits`.

But: encoding is what is held to llama.cpp. Decoding is the library's own; it has no clean-up of spaces here, and
shows an added token of letters beyond ASCII in a byte-level vocabulary otherwise.

Source of the format: tokenizers/src/tokenizer/serialization.rs of huggingface/tokenizers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..bpe import WordEncoder
from ..errors import printable
from ..unicode_classes import LOWER
from ..vocab import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary
from . import limits
from .limits import Limit
from .splitting import NotExpressibleError, oniguruma

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
_WHITE_SPACE = (
    r"\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
_CONFIG_TOKENS = ("bos", "eos", "unk", "sep", "pad", "mask")


class Export(NamedTuple):
    """Files to write, by name, and where the ids of their readers differ from ours."""

    files: dict[str, bytes]
    limits: tuple[Limit, ...]


def to_tokenizer_json(vocabulary: Vocabulary, chat_template: str | None = None) -> Export:
    """tokenizer.json, and the tokenizer_config.json that the `transformers` package reads beside it.

    >>> from ggufbpe import Tokenizer                                        # doctest: +SKIP
    >>> export = to_tokenizer_json(Tokenizer.from_gguf(path).vocabulary)     # doctest: +SKIP
    >>> tokenizers.Tokenizer.from_buffer(export.files["tokenizer.json"])     # doctest: +SKIP
    """
    vocabulary = limits.plain(vocabulary)
    document, found = _document(vocabulary)
    config = _config(vocabulary, chat_template)
    files = {TOKENIZER_JSON: json_file(document), TOKENIZER_CONFIG: json_file(config)}
    return Export(files, tuple(found))


def json_file(value: object) -> bytes:
    """JSON as it goes into a file."""
    import json

    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _document(vocabulary: Vocabulary) -> tuple[dict[str, Any], list[Limit]]:
    merges = limits.usable_merges(vocabulary)
    entry = vocabulary.pre_tokenizer
    byte_level = entry.byte_encode
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "normalizer": _normalizer(vocabulary),
        "pre_tokenizer": _pre_tokenizer(vocabulary),
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
    steps = [_replace(" ", "▁")] if vocabulary.pre_tokenizer.escape_whitespaces else []
    if vocabulary.model == "whitespace" and vocabulary.lowercase:
        # llama.cpp has one code point for each; of İ, the library makes two
        steps += [_replace(chr(a), chr(b)) for a, b in LOWER.items() if chr(a).lower() != chr(b)]
        steps.append({"type": "Lowercase"})
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", "normalizers": steps}


def _replace(old: str, new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def _pre_tokenizer(vocabulary: Vocabulary) -> dict[str, Any]:
    entry = vocabulary.pre_tokenizer
    splits = [_split(pattern, "Isolated") for pattern in oniguruma(entry)]
    if vocabulary.model == "whitespace":
        splits.insert(0, _split(f"[{_WHITE_SPACE}]+", "Removed"))
    if entry.byte_encode:
        splits.append(_byte_level())
    return splits[0] if len(splits) == 1 else {"type": "Sequence", "pretokenizers": splits}


def _split(pattern: str, behavior: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def _byte_level() -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _decoder(vocabulary: Vocabulary) -> dict[str, Any]:
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if vocabulary.pre_tokenizer.escape_whitespaces:
        steps.insert(0, _replace("▁", " "))
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


def _config(vocabulary: Vocabulary, chat_template: str | None) -> dict[str, Any]:
    """What `transformers` wants to know besides."""
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for name in _CONFIG_TOKENS:
        token = vocabulary.special_ids[name]
        if token is not None and token in vocabulary.special_token_ids:  # not the 11 of models that name none
            config[f"{name}_token"] = vocabulary.tokens[token]
    config["add_bos_token"], config["add_eos_token"] = vocabulary.add_bos, vocabulary.add_eos
    config["clean_up_tokenization_spaces"] = vocabulary.pre_tokenizer.clean_spaces
    if chat_template is not None:
        config["chat_template"] = chat_template
    return config


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
    if vocabulary.model == "hybriddna":
        yield Limit("dna", "sequences between <dna> and </dna> are encoded as any other text", 1)
    if vocabulary.model == "whitespace" and vocabulary.lowercase:
        yield Limit(
            "lower_case",
            "letters that got a lower case after Unicode 15.1 are made lower case by libraries that know it",
            1,
        )
    if "" in vocabulary.token_to_id:
        raise NotExpressibleError(f"token {printable('')} is empty, which no library takes")
