"""Imports byte pair encoding from a tokenizer.json: merges, the pre-tokenizer's name, and what does not fit a GGUF.

Bytes are in GPT-2's alphabet, or tokens are characters with escaped spaces and byte fallback (Gemma 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import BYTE_TOKENS, SPACE
from ...gguf.constants import TokenizerKey, TokenType
from ...gguf.merges import parts
from ...models.bpe.merge import BYTE_CHARS, PairRanks, merge_steps
from ...models.pretokenizers.hf_splitting import DIFFERENCES
from ...models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ...models.special_ids import STRIPS_MASK
from ..exporters.boundary_markers import borders
from ..imported import NotImportableError
from ..incompatibilities import NEVER, Incompatibility
from .hf_document import HFDocument, added_token_limits
from .recognize import Recognized, listed_patterns, recognize

_K = TokenizerKey


class BytePairImport:
    """The merges and the pre-tokenizer of one tokenizer.json."""

    def __init__(self, read: HFDocument, pre: str | None) -> None:
        self._read, self._config = read, read.config
        self._model, self._ids, self._tokens = read.model, read.ids, read.tokens
        self._byte_level = _is_byte_level(read)
        self.types = self._typed()
        self._lost: list[Incompatibility] = []
        self.merges = self._merge_list()
        self.recognized: Recognized | None = None
        self.entry = self._pre_tokenizer(pre)

    def model_name(self) -> str:
        """The tokenizer model: of those that fit the file, the one that was exported."""
        usual = "gemma4" if self.entry.name == "gemma4" else "gpt2"
        written = self._config.text(_K.MODEL)
        return written if written in ("gpt2", "gemma4", "hybriddna") else usual

    def limits(self, architecture: str, name: str, keys: dict[str, Any]) -> Iterator[Incompatibility]:
        """What llama.cpp has no place for in a model of these names, whose metadata is `keys`."""
        yield from self._lost
        yield from _normalizers(self._read, self._byte_level)
        yield from self._splitting()
        yield from added_token_limits(self._read, self.entry.name, architecture, name)
        yield from self._flags()
        yield from self._defaults(keys)

    def _typed(self) -> list[int]:
        types = self._read.types[:]
        for name in () if self._byte_level else BYTE_TOKENS:
            index = self._model["vocab"].get(name)
            if index is not None and types[index] == TokenType.NORMAL:
                types[index] = int(TokenType.BYTE)
        self._config.set_types(types)
        return types

    def _merge_list(self) -> list[str]:
        merges: list[str] = []
        lost: list[str] = []
        for pair in self._read.merge_pairs():
            text = " ".join(pair)
            (merges if parts(text) == pair else lost).append(text)
        if lost:
            self._lost.append(
                Incompatibility(
                    "merges_with_spaces",
                    f"{len(lost)} merges left out, such as {printable(lost[0], 40)}: llama.cpp cuts a merge at its "
                    "first space",
                    len(lost),
                )
            )
        # the library takes the last of two equal merges, llama.cpp the first
        return list(dict.fromkeys(reversed(merges)))[::-1]

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
            entries = (entry for entry in PRE_TOKENIZERS.values() if entry.escape_whitespaces)
            bordered = {tuple(borders(entry)): entry.family for entry in entries}
            family = bordered.get(listed_patterns(self._read.document.get("pre_tokenizer")) or (), "gemma4")
            self.recognized = Recognized(family, "patterns", sentence)
            usual = "sarvam-moe" if family == "gemma4" and "bos" not in self._read.ends()[0] else family
            return self._written_entry(family) or PRE_TOKENIZERS[usual]
        made = {left + right for left, right in map(parts, self.merges)}
        try:
            self.recognized = recognize(self._read.document.get("pre_tokenizer"), made)
        except ValueError as error:
            raise NotImportableError(str(error)) from error
        if self.recognized is None:
            raise NotImportableError(
                "no pre-tokenizer of llama.cpp splits like the one in the file; pre=NAME takes one regardless "
                "(ggufbpe list-pre shows all)"
            )
        family = self.recognized.family
        return self._written_entry(family) or self._name_in(family)

    def _written_entry(self, family: str) -> PreTokenizer | None:
        """The name that was exported, if it belongs to the family of the patterns."""
        entry = PRE_TOKENIZERS.get(self._config.text(_K.PRE))
        return entry if entry is not None and entry.family == family else None

    def _name_in(self, family: str) -> PreTokenizer:
        """The name in a family whose flags are nearest to the file's; flags not in the file are the family's."""
        ignore_merges = bool(self._model.get("ignore_merges"))
        clean = self._config.config.get("clean_up_tokenization_spaces")
        mask = any(token["content"] == "<mask>" and token.get("lstrip") for token in self._read.added)

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

    def _defaults(self, keys: dict[str, Any]) -> Iterator[Incompatibility]:
        wanted = [_K.EOS_ID] + [_K.BOS_ID] * (not self.entry.no_default_bos)
        missing = [key for key in wanted if key not in keys]
        if missing and keys[_K.MODEL] == "gpt2" and len(self._tokens) > 11:
            one = "no BOS" if missing == [_K.BOS_ID] else "no EOS"
            none, them = (one, "it") if len(missing) == 1 else ("neither EOS nor BOS", "them")
            yield Incompatibility(
                "default_ids",
                f"{none} is named, so llama.cpp takes token 11, {printable(self._tokens[11])}; a "
                f"tokenizer_config.json beside the file would name {them}",
                len(missing),
            )

    # ---- what cannot be carried -----------------------------------------------------------------

    def _splitting(self) -> Iterator[Incompatibility]:
        """Where llama.cpp is known to split differently from the patterns."""
        if self.recognized is None or self.recognized.exact or not self._byte_level:
            return
        for difference in DIFFERENCES.get(self.entry.family, ()):
            yield Incompatibility(
                "splitting",
                f"llama.cpp splits words differently at {difference.characters}: {difference.what}",
            )
        yield Incompatibility(
            "newer_unicode",
            "characters that came after Unicode 15.1 have no class in llama.cpp: they are not letters",
        )

    def _flags(self) -> Iterator[Incompatibility]:
        model, entry = self._model, self.entry
        missing = [
            byte for byte, char in enumerate(BYTE_CHARS) if char not in self._ids and byte not in NEVER
        ]
        if missing and self._byte_level:
            unknown = model.get("unk_token")
            instead = f"has {printable(unknown)} for them" if unknown else "lets their neighbours merge"
            yield Incompatibility(
                "bytes_without_tokens",
                f"{len(missing)} bytes of UTF-8 have no token; llama.cpp leaves them out after merging, the file "
                f"{instead}",
                len(missing),
            )
        if model.get("dropout"):
            yield Incompatibility("dropout", "merges are dropped at random, which llama.cpp never does")
        for part in self._read.parts("pre_tokenizer"):
            if part.get("type") == "ByteLevel" and part.get("add_prefix_space"):
                yield Incompatibility(
                    "add_prefix_space",
                    "a space is put before a text that begins without one; llama.cpp puts none",
                )
        if bool(model.get("ignore_merges")) != entry.ignore_merges:
            unmade = self._unmade()
            if unmade:
                yield Incompatibility(
                    "ignore_merges",
                    f"{len(unmade)} tokens, such as {printable(unmade[0], 40)}, are not what merging makes of their "
                    f"text; words that are such a token are {'not ' if model.get('ignore_merges') else ''}taken whole "
                    f"by llama.cpp under {entry.name}",
                    len(unmade),
                )

    def _unmade(self) -> list[str]:
        """Normal tokens that merging their own text does not produce."""
        ranks = PairRanks(self.merges)
        unmade = []
        for text, kind in zip(self._tokens, self.types):
            symbols = list(text)
            if kind == TokenType.NORMAL and len(symbols) > 1:
                for _ in merge_steps(symbols, ranks):
                    pass
                if symbols[0] != text:
                    unmade.append(text)
        return unmade


def _is_byte_level(read: HFDocument) -> bool:
    """Whether tokens are in GPT-2's alphabet; if not, they must be like Gemma 4's."""
    kinds = [part.get("type") for part in read.parts("pre_tokenizer")]
    normalizers = [part.get("type") for part in read.parts("normalizer")]
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
    if read.model.get("byte_fallback") and "Replace" in normalizers:
        return False
    raise NotImportableError("the tokens are neither bytes nor characters with bytes to fall back to")


def _normalizers(read: HFDocument, byte_level: bool) -> Iterator[Incompatibility]:
    """Normalizers that change a text; llama.cpp has none except the escaped spaces of Gemma 4."""
    for part in read.parts("normalizer"):
        kind = part.get("type")
        escapes = (
            not byte_level
            and kind == "Replace"
            and part.get("pattern") == {"String": " "}
            and part.get("content") == SPACE
        )
        if not escapes:
            yield Incompatibility(
                "normalizer",
                f"the normalizer {kind} changes texts before they are split; llama.cpp does not, so "
                "texts that it would change get other ids",
            )
