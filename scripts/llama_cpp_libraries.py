"""What differs between two shared libraries of llama.cpp, as far as tokenizers are concerned, without their sources.

    two libraries -> strings and symbols -> the libraries, asked about each -> compare_llama_cpp.py

A string says only what a library may know. So each is put to use: as a name in `tokenizer.ggml.pre` and
`tokenizer.ggml.model`, and as the text of a token; what the newer library makes of it and the older does not is a
change.

But: a compiler may put a short string into instructions, where it is not found, and a rule may change without any
string. That is what random texts are for.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loading_rules import byte_alphabet
from random_texts import RandomTexts
from record_fixtures import MODELS, RAW, RAW_NAMES, UNSPLIT
from reference import Crash, LoadError, with_pre, write_metadata

from ggufbpe._util.utf8 import is_utf8
from ggufbpe.analysis.oracles.llama_cpp import Description, LlamaCpp
from ggufbpe.analysis.oracles.llama_cpp_child import library_in
from ggufbpe.models.pretokenizers.random_texts import within_unicode

_STRING = re.compile(rb"[\x20-\x7e]{3,200}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,39}")  # of a pre-tokenizer or a model
_WORD = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_TOKEN = re.compile(r"<[^<>%]{1,60}>?|\[[^\[\]%]{1,40}\]|</?\w+>")
_SYMBOL = re.compile(r"_ZN?K?\d+(?:unicode_|llama_vocab|llm_tokenizer)\w*")
BROKEN_SHARE = 0.2  # of the random texts: bytes that are not UTF-8


class Strings(NamedTuple):
    """What the strings of the newer library tell, each list sorted: what is new, and what may be put to use."""

    symbols: list[str]  # C++ functions of the tokenizer
    gone: list[str]  # the same of the older one
    keys: list[str]  # metadata keys
    patterns: list[str]
    words: list[str]  # that are new and look like names
    names: list[str]  # all that may be those of pre-tokenizers or models
    texts: list[str]  # all that may be those of tokens


class Libraries:
    """The older and the newer library, asked the same questions."""

    def __init__(self, older: Path, newer: Path) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.paths = (older, newer)
        self.older, self.newer = (LlamaCpp(path, RAW, stack=1 << 30, seconds=60.0) for path in self.paths)

    def __enter__(self) -> Libraries:
        return self

    def __exit__(self, *_: object) -> None:
        self.older.close()
        self.newer.close()
        self._folder.cleanup()

    def strings(self) -> Strings:
        """What the strings of both files tell."""
        before, after = (strings_of(path) for path in self.paths)
        symbols, former = (
            {name for text in found for name in functions_in(text)} for found in (after, before)
        )
        added = after - before
        return Strings(
            symbols=sorted(symbols - former),
            gone=sorted(former - symbols),
            keys=sorted(text for text in added if text.startswith("tokenizer.")),
            patterns=sorted(text for text in added if r"\p{" in text),
            words=sorted(text for text in added if _WORD.fullmatch(text)),
            names=sorted(text for text in after if _NAME.fullmatch(text)),
            texts=sorted(text for text in after if _TOKEN.fullmatch(text)),
        )

    def accepted(self, key: str, names: Sequence[str]) -> list[str]:
        """Those of `names` that only the newer library accepts as the value of a key."""
        return [
            name
            for name in names
            if not self._opens(self.older, key, name) and self._opens(self.newer, key, name)
        ]

    def _opens(self, library: LlamaCpp, key: str, name: str) -> bool:
        path = write_metadata(Path(self._folder.name) / "name.gguf", _small_vocabulary() | {key: name})
        try:
            library.open(path)
        except LoadError:
            return False
        return True

    def tokens(self, texts: Sequence[str]) -> Iterator[str]:
        """A line for each text that makes a token something else in the newer library, alone or beside others."""
        beside = ["</s>", "<eos>", "<|end|>"]
        for text in texts:
            keys = _small_vocabulary(*dict.fromkeys([text, *beside]))
            tokens = keys["tokenizer.ggml.tokens"]
            path = write_metadata(Path(self._folder.name) / "token.gguf", keys)
            made = []
            for library in (self.older, self.newer):
                try:
                    library.open(path)
                    made.append(library.describe())
                except LoadError as error:
                    made.append(error)
            before, after = made
            if isinstance(before, Description) and isinstance(after, Description):
                yield from self._changes(text, tokens, before, after)
            elif type(before) is not type(after):
                yield f"~ a token {text!r}: {before!r} -> {after!r}"

    @staticmethod
    def _changes(text: str, tokens: list[str], before: Description, after: Description) -> Iterator[str]:
        for token in sorted({*before.eog_ids} ^ {*after.eog_ids}):
            sign, word = ("+", "ends") if token in after.eog_ids else ("-", "no longer ends")
            beside = "" if tokens[token] == text else f" beside {text!r}"
            yield f"{sign} {tokens[token]!r} {word} a generation{beside}"
        for name, token in after.special_ids.items():
            if before.special_ids[name] != token:
                yield f"~ {name} beside {text!r}: {before.special_ids[name]} -> {token}"

    def splits_like(self, name: str, known: Sequence[str], count: int, seed: str) -> list[str]:
        """The known names whose ids are those of a new one for random texts."""
        source = RandomTexts(f"{seed}/{name}")
        texts = [source.text() for _ in range(count)]
        expected = self._ids(self.newer, name, texts)
        return [other for other in known if self._ids(self.newer, other, texts) == expected]

    def _ids(self, library: LlamaCpp, name: str, texts: Sequence[bytes]) -> list[list[int] | Crash] | None:
        base = RAW if name in RAW_NAMES else UNSPLIT
        path = with_pre(base, name, Path(self._folder.name) / "like.gguf", MODELS.get(name))
        try:
            library.open(path)
        except LoadError:
            return None
        return library.tokenize(texts, True, True)

    def other_ids(self, names: Sequence[str], count: int, seed: str) -> Iterator[str]:
        """A line for each name under which the ids of random texts differ, with the shortest of these texts."""
        source = RandomTexts(f"{seed}/compare")
        for name in names:
            share = max(count // len(names), 1)
            broken = int(share * BROKEN_SHARE)
            texts = [source.text() for _ in range(share - broken)]
            texts += [within_unicode(source.broken_text()) for _ in range(broken)]  # which older ones answer
            before, after = (self._ids(library, name, texts) for library in (self.older, self.newer))
            if before is None or after is None:
                if (before is None) != (after is None):
                    yield f"~ {name}: only the {'newer' if before is None else 'older'} library accepts it"
                continue
            different = [
                (text, a, b)
                for text, a, b in zip(texts, before, after, strict=True)
                if a != b and not isinstance(a, Crash) and not isinstance(b, Crash)
            ]
            if different:
                text, a, b = min(different, key=lambda one: (not is_utf8(one[0]), len(one[0])))
                kinds = f"{sum(is_utf8(text) for text, _, _ in different)} of them UTF-8"
                yield f"~ ids of {len(different)} texts under {name}, {kinds}: {text!r} {a} -> {b}"


def _small_vocabulary(*texts: str) -> dict[str, Any]:
    """The metadata of a vocabulary of bytes and `texts`, all of them normal tokens."""
    tokens = [*byte_alphabet(), *texts]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * len(tokens),
        "tokenizer.ggml.merges": ["a b"],
    }


def functions_in(text: str) -> Iterator[str]:
    """The names of the tokenizer's C++ functions whose symbols a string has.

    >>> list(functions_in("_ZNK11llama_vocab4impl8tokenizeERKSsbb"))
    ['llama_vocab::impl::tokenize']
    """
    for symbol in _SYMBOL.findall(text):
        names, at = [], re.match(r"_ZN?K?", symbol).end()  # type: ignore[union-attr]
        while size := re.match(r"\d+", symbol[at:]):
            start = at + size.end()
            at = start + int(size[0])
            names.append(symbol[start:at])
        yield "::".join(names)


def strings_of(library: Path) -> set[str]:
    """The printable strings in a library, in the way of the command `strings`."""
    path = Path(library_in(str(library))) if library.is_dir() else library
    return {found.decode("ascii") for found in _STRING.findall(path.read_bytes())}
