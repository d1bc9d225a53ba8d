"""Imports byte pair encoding from a tokenizer.json: merges, the pre-tokenizer's name, and what does not fit a GGUF.

Bytes are in GPT-2's alphabet, or tokens are characters with escaped spaces and byte fallback (Gemma 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..._util.errors import printable
from ..._util.llama_cpp_states import since
from ..._util.spelling import BYTE_TOKENS, SPACE
from ...gguf.constants import TokenizerKey, TokenType
from ...gguf.merges import parts
from ...models import SUPPORTED, tokenizer_model
from ...models.bpe.merge import BYTE_CHARS, PairRanks, merge_steps
from ...models.pretokenizers.hf_splitting import DIFFERENCES
from ...models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ...models.special_ids import STRIPS_MASK
from ..exporters.boundary_markers import WHITE_SPACE_SPLIT, borders
from ..exporters.hf_bpe import ESCAPED_SPACES, LOWER_CASE, lower_case_limit
from ..exporters.hf_parts import sequence
from ..imported import NotImportableError
from ..incompatibilities import NEVER, Incompatibility, about_tokens
from ..upstream_patterns import PORTABLE
from .hf_document import HFDocument
from .hf_limits import added_token_limits
from .recognize import Recognized, listed_patterns, recognize

_K = TokenizerKey
_NEITHER = "the tokens are neither bytes nor characters with bytes to fall back to"
_WITHIN_WORDS = ("Digits", "Punctuation")  # steps to which white space beside a word makes no difference


class _Words(NamedTuple):
    """How words of a text are written in tokens, as `PreTokenizer` and `TokenizerModel` say it."""

    byte_encode: bool
    escape_whitespaces: bool
    drops_white_space: bool


class BytePairImport:
    """The merges and the pre-tokenizer of one tokenizer.json."""

    def __init__(self, read: HFDocument, pre: str | None) -> None:
        self._read, self._config = read, read.config
        self._model, self._ids, self._tokens = read.model, read.ids, read.tokens
        self._words = _words_of(read)
        self._byte_level = self._words.byte_encode
        self.types = self._typed()
        self._lost: list[Incompatibility] = []
        self.merges = self._merge_list()
        self.recognized: Recognized | None = None
        self.entry = self._pre_tokenizer(pre)

    def model_name(self) -> str:
        """The tokenizer model: of those that fit the file, the one that was exported."""
        written = tokenizer_model(self._config.text(_K.MODEL))
        models = [tokenizer_model(name) for name in (self.entry.name, *SUPPORTED)]
        fitting = (
            model
            for model in (written, *models)
            if model.algorithm == "merges" and model.drops_white_space == self._words.drops_white_space
        )
        return next(fitting).name

    @property
    def lowercase(self) -> bool | None:
        """Whether words are made lower case; None in a tokenizer model that never does it."""
        if not self._words.drops_white_space:
            return None
        return any(part.get("type") == "Lowercase" for part in self._read.parts("normalizer"))

    def limits(self, architecture: str, name: str, keys: dict[str, Any]) -> Iterator[Incompatibility]:
        """What llama.cpp has no place for in a model of these names, whose metadata is `keys`."""
        yield from self._lost
        yield from _normalizers(self._read, self._words)
        yield from self._splitting()
        yield from added_token_limits(self._read, self.entry.name, architecture, name)
        yield from self._flags()
        yield from self._defaults(keys)

    def _typed(self) -> list[int]:
        types = self._read.types[:] if self._byte_level else self._read.types_with_bytes()
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
            family, sentence, exact = self._family_of_characters()
            self.recognized = Recognized(family, "patterns", sentence, exact)
            usual = "sarvam-moe" if family == "gemma4" and "bos" not in self._read.ends()[0] else family
            return self._written_entry(family) or PRE_TOKENIZERS[usual]
        made = {left + right for left, right in map(parts, self.merges)}
        try:
            self.recognized = recognize(self._splitting_steps(), made)
        except ValueError as error:
            raise NotImportableError(str(error)) from error
        if self.recognized is None:
            raise NotImportableError(
                "no pre-tokenizer of llama.cpp splits like the one in the file; pre=NAME takes one regardless "
                "(ggufbpe list-pre shows all)"
            )
        family = self.recognized.family
        return self._written_entry(family) or self._name_in(family)

    def _splitting_steps(self) -> dict[str, Any] | None:
        """The pre-tokenizer without `WhitespaceSplit`: it is the tokenizer model's, or behind bytes splits nothing."""
        steps = [part for part in self._read.parts("pre_tokenizer") if part != WHITE_SPACE_SPLIT]
        return sequence("pretokenizers", steps)

    def _family_of_characters(self) -> tuple[str, str, bool]:
        """The family that splits text whose words are not written in bytes, why, and whether the file does the same."""
        escapes, patterns = self._words.escape_whitespaces, listed_patterns(self._splitting_steps())
        entries = [entry for entry in PRE_TOKENIZERS.values() if not entry.byte_encode]
        alike = {
            written: entry.family
            for entry in entries
            if entry.escape_whitespaces == escapes
            for written in _ways_to_write(entry)
        }
        if escapes:
            exact = patterns in alike
            family = alike[patterns] if exact else "gemma4"
            return family, "its tokens are characters, with spaces escaped", exact
        if self._words.drops_white_space and not patterns:
            family = next(entry.family for entry in entries if not entry.escape_whitespaces)
            return family, "its tokens are characters, and text is split at white space", True
        if patterns in alike:
            return (
                alike[patterns],
                "its tokens are characters, and its patterns are known, word for word",
                True,
            )
        raise NotImportableError(_NEITHER)

    def _written_entry(self, family: str) -> PreTokenizer | None:
        """The name that was exported, if it belongs to the family of the patterns."""
        entry = PRE_TOKENIZERS.get(self._config.text(_K.PRE))
        return entry if entry is not None and entry.family == family else None

    def _name_in(self, family: str) -> PreTokenizer:
        """The name in a family whose flags are nearest to the file's; flags not in the file are the family's.

        BOS does not count, as the imported file says by itself whether it is added. A newer name is taken only where
        the ids need it.
        """
        ignore_merges = bool(self._model.get("ignore_merges"))
        clean = self._config.config.get("clean_up_tokenization_spaces")
        mask = any(token["content"] == "<mask>" and token.get("lstrip") for token in self._read.added)

        def distance(entry: PreTokenizer) -> tuple[int, ...]:
            return (
                mask != (entry.name in STRIPS_MASK),
                entry.ignore_merges != ignore_merges,
                since("pre", entry.name),
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
        if missing and tokenizer_model(keys[_K.MODEL]).default_ids and len(self._tokens) > 11:
            one = "no BOS" if missing == [_K.BOS_ID] else "no EOS"
            none, them = (one, "it") if len(missing) == 1 else ("neither EOS nor BOS", "them")
            advice = f"; a tokenizer_config.json beside the file would name {them}"
            yield Incompatibility(
                "default_ids",
                f"{none} is named, so llama.cpp takes token 11, {printable(self._tokens[11])}"
                + (advice if self._config.is_empty else ""),
                len(missing),
            )

    # ---- what cannot be carried -----------------------------------------------------------------

    def _splitting(self) -> Iterator[Incompatibility]:
        """Where llama.cpp is known to split differently from the patterns."""
        steps = self._read.parts("pre_tokenizer")
        before = steps[: steps.index(WHITE_SPACE_SPLIT)] if self._words.drops_white_space else ()
        if any(part.get("type") not in _WITHIN_WORDS for part in before):
            yield Incompatibility(
                "splitting",
                "patterns split the text before it is split at white space, and llama.cpp drops white space first: "
                "words beside it can be others",
            )
        if self.recognized is None or self.recognized.exact:
            return
        if not self._byte_level:
            yield from self._splitting_of_characters()
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

    def _splitting_of_characters(self) -> Iterator[Incompatibility]:
        """Where a file splits text at other places than at line breaks, as Gemma 4 does in llama.cpp."""
        steps = [part for part in self._read.parts("pre_tokenizer") if part != WHITE_SPACE_SPLIT]
        kinds = [str(part.get("type")) for part in steps if part.get("pattern") != ESCAPED_SPACES["pattern"]]
        if kinds:
            yield Incompatibility(
                "splitting",
                f"the file splits text by {', '.join(kinds)}, and llama.cpp at line breaks alone",
            )
        made = map("".join, map(parts, self.merges))
        joined = [text for text in made if "\n" in text and text.strip("\n")]
        yield from about_tokens(
            "splitting", joined, "both text and a line break, between which llama.cpp splits", ("has", "have")
        )

    def _flags(self) -> Iterator[Incompatibility]:
        model, entry = self._model, self.entry
        names = BYTE_CHARS if self._byte_level else BYTE_TOKENS
        missing = [byte for byte, name in enumerate(names) if name not in self._ids and byte not in NEVER]
        if missing:
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
        for place, part in enumerate(self._read.parts("pre_tokenizer")):
            if _puts_spaces(part):
                yield Incompatibility(
                    "add_prefix_space",
                    f"a space is put before {'each word' if place else 'a text'} that begins without one; llama.cpp "
                    "puts none",
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


def _ways_to_write(entry: PreTokenizer) -> Iterator[tuple[str, ...] | None]:
    """The patterns of a pre-tokenizer as `export` writes them."""
    yield tuple(borders(entry))
    if entry.family in PORTABLE:
        yield listed_patterns(sequence("pretokenizers", [*PORTABLE[entry.family]]))


def _words_of(read: HFDocument) -> _Words:
    """How words are written: in GPT-2's alphabet, like Gemma 4's, or like those of the `whitespace` model."""
    steps = read.parts("pre_tokenizer")
    kinds = [part.get("type") for part in steps]
    normalizers = [part.get("type") for part in read.parts("normalizer")]
    # behind ByteLevel there is no white space any more
    before_bytes = steps[: kinds.index("ByteLevel")] if "ByteLevel" in kinds else steps
    drops_white_space = WHITE_SPACE_SPLIT in before_bytes
    if drops_white_space and any(map(_puts_spaces, steps)):
        raise NotImportableError(
            "text is split at white space, and ByteLevel then puts a space before each word (add_prefix_space), which "
            "llama.cpp does not do"
        )
    if "ByteLevel" in kinds:
        return _Words(True, False, drops_white_space)
    if "ByteLevel" in normalizers:
        raise NotImportableError(
            "bytes are written as characters before the text is split, which llama.cpp does not do"
        )
    if not read.model.get("byte_fallback"):
        raise NotImportableError(_NEITHER)
    escapes = any(SPACE in (part.get("content") or "") for part in read.parts("normalizer"))
    return _Words(False, escapes, drops_white_space)


def _puts_spaces(part: dict[str, Any]) -> bool:
    """Whether a step puts a space before each part of a text that begins without one; by default ByteLevel does."""
    return part.get("type") == "ByteLevel" and bool(part.get("add_prefix_space", True))


def _normalizers(read: HFDocument, words: _Words) -> Iterator[Incompatibility]:
    """Normalizers that change a text; llama.cpp has only escaped spaces, and lower case in the `whitespace` model."""
    carried = [ESCAPED_SPACES] * words.escape_whitespaces + LOWER_CASE * words.drops_white_space
    parts = read.parts("normalizer")
    for part in parts:
        if part not in carried:
            yield Incompatibility(
                "normalizer",
                f"the normalizer {part.get('type')} changes texts before they are split; llama.cpp does not, so "
                "texts that it would change get other ids",
            )
    if words.drops_white_space and LOWER_CASE[-1] in parts:
        yield lower_case_limit(LOWER_CASE[0] in parts)
