"""Measures how often another library's ids differ from ours, by running that library on texts and characters.

Two inputs are tried. Texts: random ones that reach the branches of the model's patterns, and the caller's own.
Characters: every code point of a range in several contexts, many at a time; where ids differ, the group is halved
until the characters responsible are known.

The library runs in this process, and a text that it cannot encode counts as different.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..._util.errors import printable
from ..._util.extras import NotInstalledError, imported
from ..._util.panics import PanicError, panics_as_errors
from ..._util.unicode_classes import STARTS, class_of
from ..._util.utf8 import is_utf8
from ..._util.verdicts import DIFFERENT, EXPLAINED, NOT_COMPARED, SAME
from ..._util.wording import counted
from ...convert.character_limits import CHARACTERS
from ...convert.export_formats import FORMATS, Export
from ...convert.importers.import_files import detect_format
from ...convert.incompatibilities import NOT_ABOUT_IDS, Incompatibility
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ..diagnose.agreement import first_difference
from ..oracles import library_adapters
from ..verify.fuzz import texts_for
from ..verify.shrink import Shrinking, shrink

Encode = Callable[[str, bool, bool], list[int] | None]
"""The ids of a text, given whether to add special tokens and whether to parse those in the text; None if it fails."""

_WANTED = "a comparison of ids"
RANDOM_TEXTS = 2000
EXAMPLES = 3
_LINE = 10_000  # characters of one of the caller's texts
_ALL_BELOW = 0x3000
_ENOUGH = 200  # characters that differ; then no more are tried
_TOGETHER = 256  # code points tried in one text
_SURROUNDINGS = ("{0}", "a{0}b", " {0}", "A{0}b", "1{0}1", "'{0}", ".{0}.", "{0}{0}", "\n{0}", "{0} é{0}É")


class DifferingText(NamedTuple):
    """A text whose ids differ, shrunk as far as possible.

    `ours` are the ids of `text` here, `theirs` those of the library; None if the library cannot encode the text.
    """

    text: str
    ours: list[int]
    theirs: list[int] | None


class Agreement(NamedTuple):
    """How far the ids of a converted vocabulary agree with those of the library that reads the other format.

    `library` is the library's name and version. `texts` counts the texts compared, `differing` those with other ids.
    `tokens` counts our tokens in all texts, `differing_tokens` those between the first and last difference of each
    text. `characters` counts the characters compared, each in several contexts; `differing_characters` are the code
    points with other ids, ascending, and comparing ends after about 200 of them. `examples` are up to three texts that
    differ.
    """

    library: str
    texts: int
    differing: int
    tokens: int
    differing_tokens: int
    characters: int
    differing_characters: tuple[int, ...]
    examples: tuple[DifferingText, ...]

    @property
    def same(self) -> bool:
        """Whether nothing differed."""
        return not self.differing and not self.differing_characters

    @property
    def summary(self) -> str:
        """The result in a few words."""
        tried = f"{counted(self.texts, 'text')} and {counted(self.characters, 'character')}"
        if self.same:
            return f"all ids the same in {tried}"
        characters = counted(len(self.differing_characters), "character")
        return f"ids differ in {counted(self.differing, 'text')} and on {characters}, of {tried}"


class CheckedLibrary(NamedTuple):
    """A library with a tokenizer loaded; encoding gives None instead of raising."""

    name: str
    encode: Encode
    adds_special: bool = True  # whether it can add BOS and EOS
    parses_special: bool = True  # whether it can find control tokens in a text


def agreement(
    tokenizer: Tokenizer,
    library: CheckedLibrary,
    texts: Iterable[str] = (),
    *,
    random_texts: int = RANDOM_TEXTS,
    characters: Sequence[int] | None = None,
) -> Agreement:
    """Compare on `texts`, random texts and characters, given as code points; None means those of every kind."""

    ways = [(False, False), (library.adds_special, library.parses_special)]

    def ours(text: str, flags: tuple[bool, bool]) -> list[int]:
        return tokenizer.encode(text, add_special=flags[0], parse_special=flags[1])

    def rows_of(text: str) -> list[tuple[list[int], list[int] | None]]:
        """Our ids and theirs for each way; empty for a text that has no ids in llama.cpp."""
        try:
            return [(ours(text, flags), library.encode(text, *flags)) for flags in ways]
        except ValueError:
            return []

    def differs(text: str) -> bool:
        return any(mine != theirs for mine, theirs in rows_of(text))

    tried = tokens = differing_tokens = 0
    different: list[str] = []
    for text in _texts(tokenizer, texts, random_texts):
        tried += 1
        rows = rows_of(text)
        tokens += len(rows[0][0]) if rows else 0
        if parted := [_differing_tokens(mine, theirs or []) for mine, theirs in rows if mine != theirs]:
            differing_tokens += max(parted)
            different.append(text)
    characters = _characters() if characters is None else characters
    suspects: list[int] = []
    asked = 0
    for block in _blocks(characters):
        asked += len(block)
        suspects += _differing(block, differs)
        if len(suspects) >= _ENOUGH:
            break
    found = different[:EXAMPLES] or [_in_surroundings(suspects[:1])] * bool(suspects)
    examples = []
    for text in dict.fromkeys(map(_shrinker(differs), found)):
        flags = next(flags for flags in ways if ours(text, flags) != library.encode(text, *flags))
        examples.append(DifferingText(text, ours(text, flags), library.encode(text, *flags)))
    return Agreement(
        library.name,
        tried,
        len(different),
        tokens,
        differing_tokens,
        asked,
        tuple(sorted(suspects)),
        tuple(examples),
    )


def _differing_tokens(ours: list[int], theirs: list[int]) -> int:
    """How many of our tokens stand between the common beginning and the common end; at least one.

    >>> _differing_tokens([1, 2, 3, 4], [1, 9, 4])
    2
    """
    start = first_difference(ours, theirs)
    end = first_difference(ours[start:][::-1], theirs[start:][::-1])
    return max(len(ours) - start - end, 1)


def _texts(tokenizer: Tokenizer, given: Iterable[str], random_texts: int) -> Iterator[str]:
    for text in given:
        for start in range(0, len(text), _LINE):
            yield text[start : start + _LINE]
    source = texts_for(tokenizer, "export")
    for _ in range(random_texts):
        yield source.text().decode("utf-8", "replace")
    if random_texts:
        yield from (source.long_text()[:_LINE].decode("utf-8", "replace") for _ in range(5))


def _shrinker(differs: Callable[[str], bool]) -> Callable[[str], str]:
    """Returns a function that shrinks a text that differs."""

    def asked(texts: Any) -> list[bool]:
        return [is_utf8(text) and differs(text.decode()) for text in texts]

    return lambda text: shrink(text.encode(), Shrinking(asked, seconds=3.0)).decode()


# ---- character by character -----------------------------------------------------------------------------


def _characters() -> list[int]:
    """Code points below U+3000, and those around class borders above it."""
    near = {max(0, start + distance) for start in STARTS for distance in (-1, 0)}
    points = {*range(_ALL_BELOW), *near, *range(_ALL_BELOW, 0x110000, 997)}
    return sorted(p for p in points if p < 0x110000 and not 0xD800 <= p < 0xE000 and class_of(p) != "-")


def _blocks(points: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(points), _TOGETHER):
        yield points[start : start + _TOGETHER]


def _in_surroundings(points: Iterable[int]) -> str:
    return " | ".join(form.format(chr(point)) for point in points for form in _SURROUNDINGS)


def _differing(points: Sequence[int], differs: Callable[[str], bool]) -> Sequence[int]:
    """The code points that make a text differ; a group that differs only together counts as a whole."""
    if not differs(_in_surroundings(points)):
        return []
    if len(points) == 1:
        return points
    middle = len(points) // 2
    differing = [*_differing(points[:middle], differs), *_differing(points[middle:], differs)]
    return differing or points


# ---- the libraries --------------------------------------------------------------------------------------


def library_for(kind: str, export: Export) -> CheckedLibrary | None:
    """The library that reads an export of `kind`, loaded with the export; None if no library does.

    Raises `NotInstalledError` if it is not installed.
    """
    library = _LIBRARIES.get(kind)
    return None if library is None else library(*(export.files[name] for name in FORMATS[kind].files))


def opened_or_reason(opening: Callable[[], CheckedLibrary | None]) -> CheckedLibrary | str | None:
    """What `opening` returns; a sentence if the library is not installed or does not accept the files."""
    try:
        return opening()
    except (NotInstalledError, PanicError) as error:
        return f"not checked: {error}"
    except Exception as error:  # each library has its own
        return f"not checked: the library does not accept the files: {printable(str(error), 200)}"


def library_reading(path: str, vocabulary: Vocabulary) -> CheckedLibrary | None:
    """The library that reads the file at `path`, from which `vocabulary` was made; None if no library does."""
    kind = detect_format(path)
    if kind not in _LIBRARIES:
        return None
    with open(path, "rb") as file:
        data = file.read()
    flags = {"add_bos_token": vocabulary.add_bos, "add_eos_token": vocabulary.add_eos}
    return _LIBRARIES[kind](data, json.dumps(flags).encode())


def hugging_face(data: bytes, config: bytes = b"") -> CheckedLibrary:
    """Hugging Face's `tokenizers` with a tokenizer.json, which holds all that it needs."""
    imported("tokenizers", "tokenizers", _WANTED)
    with panics_as_errors("tokenizers"):
        return _checked("tokenizers", library_adapters.open_tokenizers(data))


def tiktoken(ranks: bytes, side: bytes) -> CheckedLibrary:
    """OpenAI's `tiktoken` with the two files of an export; ids are the model's."""
    imported("tiktoken", "tiktoken", _WANTED)
    more = json.loads(side)
    with panics_as_errors("tiktoken"):
        opened = library_adapters.open_tiktoken(
            more["name"],
            ranks,
            more["pat_str"],
            more["special_tokens"],
            always=more["always_special"],
            model_ids=more["model_ids"],
        )
    return _checked("tiktoken", opened)


def sentencepiece(data: bytes, config: bytes = b"{}") -> CheckedLibrary:
    """`sentencepiece` with a tokenizer.model, and the flags of the tokenizer_config.json beside it."""
    imported("sentencepiece", "sentencepiece", _WANTED)
    flags = json.loads(config)
    add_bos, add_eos = (flags.get(name) is True for name in ("add_bos_token", "add_eos_token"))
    return _checked(
        "sentencepiece", library_adapters.open_sentencepiece(data, add_bos=add_bos, add_eos=add_eos)
    )


_LIBRARIES: dict[str, Callable[..., CheckedLibrary]] = {
    "tokenizer.json": hugging_face,
    "sentencepiece": sentencepiece,
    "tiktoken": tiktoken,
}


def _checked(name: str, adapter: library_adapters.Adapter) -> CheckedLibrary:
    def encode(text: str, add_special: bool, parse_special: bool) -> list[int] | None:
        try:
            return adapter.encode(text, add_special, parse_special)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:  # a panic in Rust is not an Exception
            return None

    return CheckedLibrary(f"{name} {adapter.version}", encode, adapter.adds_special, adapter.parses_special)


# ---- differences that are known ---------------------------------------------------------------------------


def verdict_on(found: Agreement | str | None, limits: Iterable[Incompatibility]) -> str:
    """Return the result of a comparison in a word; "explained" if ids differ only as the limits say."""
    if not isinstance(found, Agreement):
        return NOT_COMPARED
    if found.same:
        return SAME
    return DIFFERENT if unexplained(found, limits) else EXPLAINED


def unexplained(found: Agreement | str | None, limits: Iterable[Incompatibility]) -> bool:
    """Whether ids differ although no known limit explains it. False if there was no comparison."""
    if not isinstance(found, Agreement) or found.same:
        return False
    causes = {limit.name for limit in limits} - NOT_ABOUT_IDS
    if causes <= CHARACTERS.keys():
        examples = [example.text for example in found.examples]
        return not (
            causes and all(any(CHARACTERS[c](char) for c in causes for char in text) for text in examples)
        )
    return False
