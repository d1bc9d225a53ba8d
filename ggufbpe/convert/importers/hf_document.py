"""Reads a tokenizer.json and checks each of its parts, whatever its model.

The tokens of each algorithm are read in its own module (import_bpe.py, import_scores.py and so on). How llama.cpp
treats them differently is in hf_limits.py.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import BYTE_OF
from ...gguf.constants import TokenizerKey, TokenType
from ...models import tokenizer_model
from ...models.charsmap import describe_truncation
from ..exporters.boundary_markers import AT_BORDERS, BORDER, WHITE_SPACE_SPLIT, white_space
from ..exporters.hf_config import CONFIG_TOKENS, LARGEST_FLOAT, HFConfig
from ..exporters.hf_parts import sequence
from ..imported import NotImportableError, refuse_repeated
from ..incompatibilities import Incompatibility
from ..upstream_patterns import split
from .recognize import flattened_parts


class HFDocument:
    """One tokenizer.json with its tokenizer_config.json. `tokens` and `types` are by id."""

    def __init__(self, document: dict[str, Any], config: HFConfig) -> None:
        self.document, self.config = _without_borders(document), config
        self.model = _model(document)
        added = _added_tokens(document)
        self._added_in_file = config.with_flags(added)
        self.flags_beside = [
            token["content"]
            for token, old in zip(self._added_in_file, added)
            if any(bool(token.get(flag)) != bool(old.get(flag)) for flag in _FLAGS)
        ]
        self.added_beside = self._added_beside()
        self.added = [*self._added_in_file, *self.added_beside]
        self.tokens, self.types = self._token_list()
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        for part in self.parts("normalizer"):
            if part.get("type") == "Precompiled":
                charsmap_of(part)

    def parts(self, name: str) -> list[dict[str, Any]]:
        """The parts of the normalizer, the pre_tokenizer or the post_processor, in order."""
        return flattened_parts(self.document.get(name), _CHILDREN[name])

    @property
    def scores(self) -> list[float]:
        """The score of each token of a unigram model; 0 for tokens that were only added."""
        scores = [float(score) for _, score in self.model["vocab"]]
        return scores + [0.0] * (len(self.tokens) - len(scores))

    def merge_pairs(self) -> Iterator[tuple[str, str]]:
        """The merges in order. `NotImportableError` for what is not two tokens."""
        for merge in self.model.get("merges") or ():
            pair = tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
            if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
                raise NotImportableError(f"a merge is {printable(str(merge))}, not two tokens")
            yield pair

    def _vocab(self) -> Iterator[tuple[str, int]]:
        """Texts and their ids. An empty one is in no text (umT5 has two of them) and leaves its id without a token."""
        vocab = self.model["vocab"]
        if isinstance(vocab, dict):
            yield from vocab.items()
        else:
            yield from ((text, token) for token, (text, _) in enumerate(vocab) if text)

    def _added_beside(self) -> list[dict[str, Any]]:
        """The tokens that only the files beside add, with the ids that transformers gives them, whatever these say."""
        in_file = {token["content"]: token["id"] for token in self._added_in_file}
        ids = dict(self._vocab()) | in_file
        given = self.config.added_by_transformers(set(in_file.values()))
        tokens = {token["content"]: token for token in given if token["content"] not in in_file}
        tokens.pop("", None)
        _number_on(tokens, ids, max((len(self.model["vocab"]), *(token + 1 for token in ids.values()))))
        return [{**token, "id": ids[text]} for text, token in tokens.items()]

    def renumbered(self) -> list[str]:
        """The added tokens of the file that the library gives other ids: it numbers them on from the vocabulary."""
        ids = dict(self._vocab())
        given = {token["content"]: token["id"] for token in self._added_in_file if token["content"]}
        _number_on(given, ids, len(self.model["vocab"]))
        return [text for text, token in given.items() if ids[text] != token]

    def special_ids(self, ends: dict[str, int]) -> dict[str, int]:
        """The special ids, by GGUF key, from `ends` and from the tokens' names."""
        ids: dict[str, int] = {}
        for name, key in CONFIG_TOKENS:
            token = ends.get(name)
            text = self.config.token(name)
            if token is None and text:  # an empty name is none, though an added token may be empty
                token = self.ids.get(text)
            if token is not None:
                ids[key] = token
        ids.update(self.config.written_ids(ids, len(self.tokens)))
        return ids

    def _token_list(self) -> tuple[list[str], list[int]]:
        """Tokens and their types by id; an id without a token is unused, as in convert_hf_to_gguf.py."""
        by_id: dict[int, str] = {}
        hidden = tokenizer_model(self.config.text(TokenizerKey.MODEL)).hidden_suffix
        for text, index in (*self._vocab(), *((token["content"], token["id"]) for token in self.added)):
            if by_id.setdefault(index, text) not in (text, text + hidden):
                raise NotImportableError(
                    f"two tokens have the id {index}: {printable(by_id[index])} and {printable(text)}"
                )
        if not by_id:
            raise NotImportableError("the file has no tokens")
        size = max(max(by_id) + 1, len(self.model["vocab"]) if isinstance(self.model["vocab"], list) else 0)
        if size > 2 * len(by_id) + 100_000:
            raise NotImportableError(f"the file has {len(by_id)} tokens and ids up to {size - 1}")
        tokens = [by_id.get(index, f"[PAD{index}]") for index in range(size)]
        types = [int(TokenType.NORMAL if index in by_id else TokenType.UNUSED) for index in range(size)]
        refuse_repeated(tokens, "two ids have the token")
        if odd := next((text for text in tokens if "\0" in text), None):
            raise NotImportableError(
                f"the token {printable(odd)} has a NUL, which ends a string in llama.cpp"
            )
        for token in self.added:
            types[token["id"]] = int(TokenType.CONTROL if token.get("special") else TokenType.USER_DEFINED)
        return tokens, types

    def types_with_bytes(self) -> list[int]:
        """The types, with BYTE for normal tokens such as <0x0A>: a tokenizer.json has no type for bytes."""
        return [
            int(TokenType.BYTE) if kind == TokenType.NORMAL and text in BYTE_OF else kind
            for text, kind in zip(self.tokens, self.types)
        ]

    # ---- BOS and EOS ----------------------------------------------------------------------------

    def ends(self) -> tuple[dict[str, int], list[Incompatibility]]:
        """The ids added to each text, "bos" before it and "eos" after it, and what cannot be added."""
        ids: dict[str, int] = {}
        told: list[Incompatibility] = []
        for part in self.parts("post_processor"):
            kind = part.get("type")
            if kind in ("BertProcessing", "RobertaProcessing"):
                ids["bos"], ids["eos"] = self._checked(part["cls"][1]), self._checked(part["sep"][1])
            elif kind == "TemplateProcessing":
                ids.update(self._template(part, told))
        return ids, list(dict.fromkeys(told))

    def _checked(self, token: Any) -> int:
        if type(token) is not int or not 0 <= token < len(self.tokens):
            raise NotImportableError(
                f"the post-processor adds {printable(str(token))}, which is not a token id"
            )
        return token

    def _template(self, part: dict[str, Any], told: list[Incompatibility]) -> Iterator[tuple[str, int]]:
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
                what = f"{len(ids)} tokens are added for {name.upper()} to a text, and llama.cpp adds one"
                told.append(Incompatibility("more_than_one_end", what, len(ids)))
            if ids:
                yield name, self._checked(ids[0])


def _number_on(texts: Iterable[str], ids: dict[str, int], following: int) -> None:
    """Give the texts that have no id yet the next ones, from `following` on."""
    for text in texts:
        if text not in ids:
            ids[text], following = following, following + 1


def charsmap_of(part: dict[str, Any]) -> bytes:
    """The charsmap of a `Precompiled` normalizer, on which the library panics unless it is sound."""
    return require_charsmap(b64decode(part.get("precompiled_charsmap") or "", validate=True))


def require_charsmap(data: bytes) -> bytes:
    """A charsmap as sentencepiece compiles it: a size, a double array of that many bytes, then strings."""
    if problem := describe_truncation(data):
        raise NotImportableError(f"the charsmap {problem}")
    return data


_FLAGS = ("lstrip", "rstrip", "single_word", "special")  # of added tokens
KINDS = ("BPE", "Unigram", "WordPiece")
_CHILDREN = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}


def _model(document: dict[str, Any]) -> dict[str, Any]:
    model = document.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), (dict, list)):
        raise NotImportableError("the file has no model with a vocabulary: it is not a tokenizer.json")
    kind, vocab = _kind(model), model["vocab"]
    if kind not in KINDS:
        raise NotImportableError(f"the model is {printable(str(kind))}, which llama.cpp does not have")
    if isinstance(vocab, list) is not (kind == "Unigram"):
        raise NotImportableError(f"this is not how the vocabulary of a {kind} model is written")
    if isinstance(vocab, list):
        good = all(
            isinstance(piece, list) and len(piece) == 2 and isinstance(piece[0], str) and _is_number(piece[1])
            for piece in vocab
        )
        if not good:
            raise NotImportableError(
                "the pieces are not as in a tokenizer.json: each has a text and a finite score"
            )
        refuse_repeated((text for text, _ in vocab if text), "two ids have the token")
    elif not all(type(index) is int and index >= 0 for index in vocab.values()):
        raise NotImportableError("the ids of the vocabulary are not all numbers from 0 up")
    affixes = ("continuing_subword_prefix", "end_of_word_suffix") if kind == "BPE" else ()
    for key in affixes:
        if model.get(key):
            raise NotImportableError(
                f"the model has the {key} {printable(model[key])}, and llama.cpp has none"
            )
    return {**model, "type": kind}


def _kind(model: dict[str, Any]) -> Any:
    """The type of a model; without one, as in BERT's and T5's own files, its fields tell, as in the library."""
    if "type" in model:
        return model["type"]
    if isinstance(model["vocab"], list):
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def _is_number(score: Any) -> bool:
    return type(score) in (int, float) and abs(score) <= LARGEST_FLOAT


def _added_tokens(document: dict[str, Any]) -> list[dict[str, Any]]:
    entries = document.get("added_tokens") or []
    good = isinstance(entries, list) and all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and isinstance(token.get("id"), int)
        and token["id"] >= 0
        for token in entries
    )
    if not good:
        raise NotImportableError("the added tokens are not as in a tokenizer.json: each has content and id")
    return entries


def _without_borders(document: dict[str, Any]) -> dict[str, Any]:
    """The document with a `Split` for each normalizer that puts borders after words, to be read like any other."""
    cut = flattened_parts(document.get("pre_tokenizer"), "pretokenizers")
    if AT_BORDERS not in cut:
        return document
    steps = flattened_parts(document.get("normalizer"), "normalizers")
    patterns = [step["pattern"]["Regex"] for step in steps if step.get("content") == BORDER]
    cut = [
        *(WHITE_SPACE_SPLIT if pattern == white_space() else split(pattern) for pattern in patterns),
        *(part for part in cut if part != AT_BORDERS),
    ]
    steps = [step for step in steps if BORDER not in (step.get("content") or step.get("prepend") or "")]
    return {
        **document,
        "normalizer": sequence("normalizers", steps),
        "pre_tokenizer": sequence("pretokenizers", cut),
    }
