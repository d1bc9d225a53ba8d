r"""tokenizer.json to vocabulary: the metadata of a GGUF that llama.cpp loads, from Hugging Face's file.

    tokenizer.json, tokenizer_config.json -> [this file] -> vocab.gguf

Tokens, merges and added tokens are carried as they are. The pre-tokenizer is named by its patterns
(interop/recognize.py), BOS and EOS by the template that adds them and by tokenizer_config.json. What llama.cpp has
no place for, such as a normalizer, is in `Imported.limits`.

But: only byte pair encoding over bytes, or over characters with spaces escaped and bytes to fall back to (Gemma 4).
SentencePiece's, which goes by scores, is another tokenizer in llama.cpp.

Source of what is written where: convert_hf_to_gguf.py and src/llama-vocab.cpp of llama.cpp.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from ..errors import printable
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ..gguf.schema import as_fields
from ..gguf.writer import packed_file
from ..models.bpe.hf_splitting import DIFFERENCES
from ..models.bpe.merge import BYTE_CHARS, PairRanks, merge_steps, parts
from ..models.bpe.registry import PRE_TOKENIZERS, PreTokenizer
from ..spelling import BYTE_TOKENS, SPACE
from ..vocab.special_ids import MODERN_BERT, PHI_3, STRIPPING_ARCHITECTURES, STRIPS_MASK
from ..wording import listed
from .hugging_face import GGUF_SECTION, OTHER_TYPES, SPECIAL_ID_KEYS
from .limits import NEVER, Limit
from .recognize import Recognized, parts_of, recognize

_K = TokenizerKey
_MORE = " and {} more"
_CONFIG_TOKENS = (
    ("bos", _K.BOS_ID),
    ("eos", _K.EOS_ID),
    ("unk", _K.UNK_ID),
    ("sep", _K.SEP_ID),
    ("pad", _K.PAD_ID),
    ("mask", _K.MASK_ID),
)


class NotImportableError(ValueError):
    """A tokenizer.json that llama.cpp has no place for; the message says why."""


class Imported(NamedTuple):
    """The metadata of a vocabulary, and what it cannot carry.

    `metadata` has a value by its key: str, bool, int (UINT32), or a list of str or of int (INT32).
    """

    metadata: dict[str, Any]
    pre: str
    recognized: Recognized | None  # None where the name was given
    limits: tuple[Limit, ...]


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object in a JSON file. `NotImportableError` where there is none, `OSError` where it cannot be read."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotImportableError(f"{os.fsdecode(path)} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise NotImportableError(f"{os.fsdecode(path)} has no JSON object")
    return found


def import_tokenizer(
    document: dict[str, Any],
    config: dict[str, Any] | None = None,
    *,
    pre: str | None = None,
    architecture: str | None = None,
    name: str | None = None,
) -> Imported:
    """The metadata that says what `document`, a tokenizer.json, does; `config` is its tokenizer_config.json.

    `pre` overrides the name of the pre-tokenizer. `architecture` and `name` are what llama.cpp calls the model; None
    for what the export wrote down, or "llama" and nothing.
    Raises `NotImportableError` where llama.cpp has no place for it, or where it is no sound file.
    """
    try:
        return _Import(document, config or {}, pre, architecture, name).imported()
    except (AttributeError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise NotImportableError(
            f"the file is not as the tokenizers package writes it ({type(error).__name__}: {printable(str(error))})"
        ) from error


class _Import:
    """One tokenizer.json on its way."""

    def __init__(
        self,
        document: dict[str, Any],
        config: dict[str, Any],
        pre: str | None,
        architecture: str | None,
        name: str | None,
    ) -> None:
        self._document, self._config = document, config
        section = config.get(GGUF_SECTION)
        self._section: dict[str, Any] = section if isinstance(section, dict) else {}
        self._model = _model(document)
        self._byte_level = _is_byte_level(document)
        self._limits: list[Limit] = []
        self._added = _added_tokens(document)
        self._tokens, self._types = self._token_list()
        self._ids = {token: index for index, token in enumerate(self._tokens)}
        self._merges = self._merge_list()
        self._recognized: Recognized | None = None
        self._entry = self._pre_tokenizer(pre)
        self._architecture = self._text(KEY_ARCHITECTURE) or "llama" if architecture is None else architecture
        self._name = self._text(KEY_NAME) if name is None else name

    def imported(self) -> Imported:
        """All of it."""
        entry = self._entry
        ends = self._ends()
        keys: dict[str, Any] = {
            KEY_ARCHITECTURE: self._architecture,
            _K.MODEL: self._model_name(),
            _K.PRE: entry.name,
            _K.LIST: self._tokens,
            _K.TOKEN_TYPE: self._types,
            _K.MERGES: self._merges,
        }
        if self._name:
            keys[KEY_NAME] = self._name
        for name, key in _CONFIG_TOKENS:
            token = ends.get(name)
            token = self._ids.get(_content(self._config.get(f"{name}_token"))) if token is None else token
            if token is not None:
                keys[key] = token
        keys.update(self._written_ids(keys))
        for name, key, flag in (("bos", _K.BOS_ID, _K.ADD_BOS), ("eos", _K.EOS_ID, _K.ADD_EOS)):
            # a model may want one that it does not have
            keys[flag] = name in ends or (key not in keys and self._section.get(flag) is True)
        for key in (_K.ADD_SEP, _K.ADD_PREFIX):
            if isinstance(self._section.get(key), bool):
                keys[key] = self._section[key]
        template = _chat_template(self._config)
        if template is not None:
            keys[_K.CHAT_TEMPLATE] = template
        _require_utf8(keys)
        self._limits += [
            *_normalizers(self._document, self._byte_level),
            *self._splitting(),
            *self._added_token_limits(),
            *self._flags(),
            *self._defaults(keys),
        ]
        return Imported(keys, entry.name, self._recognized, tuple(self._limits))

    # ---- what the export wrote down --------------------------------------------------------------

    def _text(self, key: str) -> str:
        found = self._section.get(key)
        return found if isinstance(found, str) else ""

    def _model_name(self) -> str:
        """The tokenizer model: of those that the file can be, the one that was exported."""
        usual = "gemma4" if self._entry.name == "gemma4" else "gpt2"
        written = self._text(_K.MODEL)
        return written if written in ("gpt2", "gemma4", "hybriddna") else usual

    def _written_ids(self, known: Container[str]) -> Iterator[tuple[str, int]]:
        """The special ids that neither the post-processor nor the names of tokens tell."""
        for key in SPECIAL_ID_KEYS.values():
            token = self._section.get(key)
            if token is None or key in known:
                continue
            if type(token) is not int or not 0 <= token < len(self._tokens):
                raise NotImportableError(
                    f"tokenizer_config.json has {printable(str(token))} for {key}, which is no token's id"
                )
            yield key, token

    # ---- tokens and merges ----------------------------------------------------------------------

    def _token_list(self) -> tuple[list[str], list[int]]:
        """Tokens and their types by id; what no token has is unused, as convert_hf_to_gguf.py has it."""
        by_id: dict[int, str] = {}
        for text, index in [*self._model["vocab"].items(), *((t["content"], t["id"]) for t in self._added)]:
            if by_id.setdefault(index, text) != text:
                raise NotImportableError(
                    f"two tokens have the id {index}: {printable(by_id[index])} and {printable(text)}"
                )
        if not by_id:
            raise NotImportableError("the file has no tokens")
        size = max(by_id) + 1
        if size > 2 * len(by_id) + 100_000:
            raise NotImportableError(f"the file has {len(by_id)} tokens and ids up to {size - 1}")
        tokens = [by_id.get(index, f"[PAD{index}]") for index in range(size)]
        types = [int(TokenType.NORMAL if index in by_id else TokenType.UNUSED) for index in range(size)]
        if len(set(tokens)) < size:
            twice = next(text for index, text in enumerate(tokens) if tokens.index(text) < index)
            raise NotImportableError(f"two ids have the token {printable(twice)}, where llama.cpp aborts")
        if odd := next((text for text in tokens if "\0" in text), None):
            raise NotImportableError(
                f"the token {printable(odd)} has a NUL, where a string ends for llama.cpp"
            )
        if not self._byte_level:
            for name in BYTE_TOKENS:
                index = self._model["vocab"].get(name)
                if index is not None:
                    types[index] = int(TokenType.BYTE)
        for token in self._added:
            types[token["id"]] = int(TokenType.CONTROL if token.get("special") else TokenType.USER_DEFINED)
        for kind, ids in (self._section.get(OTHER_TYPES) or {}).items():
            for index in ids:
                if not 0 <= index < size:
                    raise NotImportableError(
                        f"tokenizer_config.json has a type for {index}, which is no token's id"
                    )
                types[index] = int(kind)
        return tokens, types

    def _merge_list(self) -> list[str]:
        found: list[str] = []
        lost: list[str] = []
        for merge in self._model.get("merges") or ():
            pair = tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
            if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
                raise NotImportableError(f"a merge is {printable(str(merge))}, not two tokens")
            text = " ".join(pair)
            (found if parts(text) == pair else lost).append(text)
        if lost:
            self._limits.append(
                Limit(
                    "merges_with_spaces",
                    f"{len(lost)} merges left out, such as {printable(lost[0], 40)}: llama.cpp cuts a merge at its "
                    "first space",
                    len(lost),
                )
            )
        # the library takes the last of two equal merges, llama.cpp the first
        return list(dict.fromkeys(reversed(found)))[::-1]

    # ---- the pre-tokenizer ----------------------------------------------------------------------

    def _pre_tokenizer(self, given: str | None) -> PreTokenizer:
        if given is not None:
            if given not in PRE_TOKENIZERS:
                raise NotImportableError(
                    f"llama.cpp knows no pre-tokenizer {printable(given)}; see ggufbpe list-pre"
                )
            return PRE_TOKENIZERS[given]
        if not self._byte_level:
            sentence = "its tokens are characters, with spaces escaped"
            self._recognized = Recognized("gemma4", "patterns", sentence)
            return (
                self._written_entry("gemma4")
                or PRE_TOKENIZERS["gemma4" if "bos" in self._ends() else "sarvam-moe"]
            )
        made = {left + right for left, right in map(parts, self._merges)}
        try:
            self._recognized = recognize(self._document.get("pre_tokenizer"), made)
        except ValueError as error:
            raise NotImportableError(str(error)) from error
        if self._recognized is None:
            raise NotImportableError(
                "no pre-tokenizer of llama.cpp splits like the one in the file; --pre NAME takes one even so "
                "(ggufbpe list-pre shows all)"
            )
        family = self._recognized.family
        return self._written_entry(family) or self._name_in(family)

    def _written_entry(self, family: str) -> PreTokenizer | None:
        """The name that was exported, if it is of the family that the patterns are of."""
        entry = PRE_TOKENIZERS.get(self._text(_K.PRE))
        return entry if entry is not None and entry.family == family else None

    def _name_in(self, family: str) -> PreTokenizer:
        """The name of a family whose flags are nearest to what the file says; they are the family's otherwise."""
        ignore_merges = bool(self._model.get("ignore_merges"))
        clean = self._config.get("clean_up_tokenization_spaces")
        mask = any(token["content"] == "<mask>" and token.get("lstrip") for token in self._added)

        def distance(entry: PreTokenizer) -> tuple[bool, ...]:
            return (
                mask != (entry.name in STRIPS_MASK),
                entry.ignore_merges != ignore_merges,
                isinstance(clean, bool) and entry.clean_spaces != clean,
                entry.add_sep,
                entry.no_default_bos,
                entry.name != family,
            )

        entries = [entry for entry in PRE_TOKENIZERS.values() if entry.family == family]
        return min(entries, key=distance)

    # ---- BOS and EOS ----------------------------------------------------------------------------

    def _ends(self) -> dict[str, int]:
        """The ids that are added to each text: "bos" before it, "eos" after it."""
        found: dict[str, int] = {}
        for part in parts_of(self._document.get("post_processor"), "processors"):
            kind = part.get("type")
            if kind in ("BertProcessing", "RobertaProcessing"):
                found["bos"], found["eos"] = self._checked(part["cls"][1]), self._checked(part["sep"][1])
            elif kind == "TemplateProcessing":
                found.update(self._template(part))
        return found

    def _checked(self, token: Any) -> int:
        if type(token) is not int or not 0 <= token < len(self._tokens):
            raise NotImportableError(
                f"the post-processor adds {printable(str(token))}, which is no token's id"
            )
        return token

    def _template(self, part: dict[str, Any]) -> Iterator[tuple[str, int]]:
        before: list[int] = []
        after: list[int] = []
        side = before
        for piece in part.get("single", ()):
            if "Sequence" in piece:
                side = after
            else:
                side += part["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
        for name, ids in (("bos", before), ("eos", after)):
            if len(ids) > 1:
                limit = Limit(
                    "more_than_one_end",
                    f"{len(ids)} tokens are added for {name.upper()} to a text, and llama.cpp adds one",
                    len(ids),
                )
                if limit not in self._limits:
                    self._limits.append(limit)
            if ids:
                yield name, self._checked(ids[0])

    def _defaults(self, keys: dict[str, Any]) -> Iterator[Limit]:
        wanted = [_K.EOS_ID] + [_K.BOS_ID] * (not self._entry.no_default_bos)
        missing = [key for key in wanted if key not in keys]
        if missing and keys[_K.MODEL] == "gpt2" and len(self._tokens) > 11:
            names = " and ".join("BOS" if key == _K.BOS_ID else "EOS" for key in missing)
            yield Limit(
                "default_ids",
                f"no {names} is named, so llama.cpp takes token 11, {printable(self._tokens[11])}; a "
                "tokenizer_config.json beside the file would name it",
                len(missing),
            )

    # ---- what cannot be carried -----------------------------------------------------------------

    def _splitting(self) -> Iterator[Limit]:
        """Where llama.cpp is known to split otherwise than the patterns say."""
        if self._recognized is None or self._recognized.exact or not self._byte_level:
            return
        for difference in DIFFERENCES.get(self._entry.family, ()):
            yield Limit(
                "splitting", f"on {difference.characters}, llama.cpp splits otherwise: {difference.what}", 1
            )
        yield Limit(
            "newer_unicode",
            "characters that came after Unicode 15.1 have no class in llama.cpp: they are no letters",
            1,
        )

    def _added_token_limits(self) -> Iterator[Limit]:
        name, architecture = self._name.lower(), self._architecture
        strips_mask = self._entry.name in STRIPS_MASK or any(
            part in architecture for part in STRIPPING_ARCHITECTURES
        )
        carried = {  # by name alone: vocab/, _set_strip_attributes
            "lstrip": {"<mask>"} if strips_mask else {"[MASK]"} if MODERN_BERT in name else set(),
            "rstrip": set(self._ids) if not strips_mask and any(part in name for part in PHI_3) else set(),
        }
        for flag, what in (
            ("lstrip", "take the white space before them"),
            ("rstrip", "take the white space after them"),
            ("single_word", "are found only as whole words"),
        ):
            texts = [token["content"] for token in self._added if token.get(flag)]
            found = [text for text in texts if text not in carried.get(flag, ())]
            if found:
                yield Limit(
                    flag,
                    f"{listed(found, len(found), _MORE)} {what}, which llama.cpp does for models of some names only",
                    len(found),
                )
        changes = [part.get("type") for part in parts_of(self._document.get("normalizer"), "normalizers")]
        normalized = [t["content"] for t in self._added if t.get("normalized")] if changes else []
        if normalized:
            yield Limit(
                "normalized_tokens",
                f"{listed(normalized, len(normalized), _MORE)} are found in the normalized text, which llama.cpp does "
                "not have",
                len(normalized),
            )

    def _flags(self) -> Iterator[Limit]:
        model, entry = self._model, self._entry
        missing = [
            byte for byte, char in enumerate(BYTE_CHARS) if char not in self._ids and byte not in NEVER
        ]
        if missing and self._byte_level:
            unknown = model.get("unk_token")
            instead = (
                f"has {printable(unknown)} for them" if unknown else "lets merge what stands on both sides"
            )
            yield Limit(
                "bytes_without_tokens",
                f"{len(missing)} bytes of UTF-8 have no token; llama.cpp leaves them out after merging, the file "
                f"{instead}",
                len(missing),
            )
        if model.get("dropout"):
            yield Limit("dropout", "merges are dropped at random, which llama.cpp never does", 1)
        for part in parts_of(self._document.get("pre_tokenizer"), "pretokenizers"):
            if part.get("type") == "ByteLevel" and part.get("add_prefix_space"):
                yield Limit(
                    "add_prefix_space",
                    "a space is put before a text that begins without one; llama.cpp puts none",
                    1,
                )
        if bool(model.get("ignore_merges")) != entry.ignore_merges:
            unmade = self._unmade()
            if unmade:
                yield Limit(
                    "ignore_merges",
                    f"{len(unmade)} tokens, such as {printable(unmade[0], 40)}, are not what merging makes of their "
                    f"text; words that are such a token are {'not ' if model.get('ignore_merges') else ''}taken whole "
                    f"by llama.cpp under {entry.name}",
                    len(unmade),
                )

    def _unmade(self) -> list[str]:
        """Normal tokens that merging their own text does not give."""
        ranks = PairRanks(self._merges)
        found = []
        for text, kind in zip(self._tokens, self._types):
            symbols = list(text)
            if kind == TokenType.NORMAL and len(symbols) > 1:
                for _ in merge_steps(symbols, ranks):
                    pass
                if symbols[0] != text:
                    found.append(text)
        return found


# ---- reading --------------------------------------------------------------------------------------------


def _model(document: dict[str, Any]) -> dict[str, Any]:
    model = document.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), (dict, list)):
        raise NotImportableError("the file has no model with a vocabulary: it is no tokenizer.json")
    kind = model.get("type", "BPE")
    if kind != "BPE" or not isinstance(model["vocab"], dict):
        raise NotImportableError(f"the model is {printable(str(kind))}, not byte pair encoding")
    if not all(isinstance(index, int) and index >= 0 for index in model["vocab"].values()):
        raise NotImportableError("the vocabulary has ids that are no numbers from 0 on")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise NotImportableError(
                f"the model has a {key}, {printable(model[key])}, which llama.cpp does not have"
            )
    return model


def _added_tokens(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = document.get("added_tokens") or []
    good = isinstance(found, list) and all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and isinstance(token.get("id"), int)
        and token["id"] >= 0
        for token in found
    )
    if not good:
        raise NotImportableError("the added tokens are not as in a tokenizer.json: each has content and id")
    return found


def _is_byte_level(document: dict[str, Any]) -> bool:
    """Whether tokens are in GPT-2's alphabet; else they must be as Gemma 4's."""
    kinds = [part.get("type") for part in parts_of(document.get("pre_tokenizer"), "pretokenizers")]
    normalizers = [part.get("type") for part in parts_of(document.get("normalizer"), "normalizers")]
    if "ByteLevel" in kinds:
        return True
    if "ByteLevel" in normalizers:
        raise NotImportableError(
            "bytes are written as characters before the text is split, which llama.cpp does not do"
        )
    if "Prepend" in normalizers or "Metaspace" in kinds:
        raise NotImportableError(
            "this is SentencePiece's byte pair encoding, which llama.cpp runs by scores (tokenizer.ggml.model = "
            "llama), and ggufbpe does not"
        )
    if document["model"].get("byte_fallback") and "Replace" in normalizers:
        return False
    raise NotImportableError("the tokens are neither bytes nor characters with bytes to fall back to")


def _normalizers(document: dict[str, Any], byte_level: bool) -> Iterator[Limit]:
    """Normalizers that change a text; llama.cpp has none, but for the escaped spaces of Gemma 4."""
    for part in parts_of(document.get("normalizer"), "normalizers"):
        kind = part.get("type")
        escapes = (
            not byte_level
            and kind == "Replace"
            and part.get("pattern") == {"String": " "}
            and part.get("content") == SPACE
        )
        if not escapes:
            yield Limit(
                "normalizer",
                f"the normalizer {kind} changes texts before they are split; llama.cpp takes them as they are, so "
                "texts that it would change get other ids",
                1,
            )


def _content(token: Any) -> str:
    """The text of a token in tokenizer_config.json, which is a string or an object."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else ""


def _chat_template(config: dict[str, Any]) -> str | None:
    """The template; of several, the one called "default"."""
    found = config.get("chat_template")
    if isinstance(found, list):
        named = {part.get("name"): part.get("template") for part in found if isinstance(part, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None


def _require_utf8(keys: dict[str, Any]) -> None:
    """Refuse strings that JSON can have and UTF-8 cannot: lone surrogates."""
    for value in keys.values():
        for text in value if isinstance(value, list) else [value]:
            try:
                if isinstance(text, str):
                    text.encode()
            except UnicodeEncodeError as error:
                raise NotImportableError(
                    f"{printable(text)} has a lone surrogate, which UTF-8 cannot write"
                ) from error


# ---- writing --------------------------------------------------------------------------------------------


def pack(metadata: dict[str, Any]) -> bytes:
    """The metadata as a GGUF without tensors."""
    return packed_file(as_fields(metadata))
