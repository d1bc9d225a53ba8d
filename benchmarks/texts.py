"""The measured texts: those of the machine, or given files.

    files of this machine -> [this file] -> run.py, instructions.py

Three kinds, each with a fallback, so that every machine has them; `source` names the one used:

- prose: the English dictionary of Debian's package dict-gcide (40 MB), else the docstrings of Python's library;
- code: the source of Python's library;
- many languages: manual pages that are not English, one of each language in turn (Debian: manpages-de manpages-es
  manpages-fr manpages-ja manpages-pl manpages-ru manpages-tr manpages-uk manpages-zh …), else the translations of the
  messages of installed programs (gettext), else words made of the letters of many scripts, always the same ones.

A text is cut to the requested size, never repeated: if a machine has less, it is shorter.
But: texts differ between machines, so compare figures only within one run.
"""

from __future__ import annotations

import ast
import gettext
import gzip
import random
import sysconfig
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

DICTIONARY = Path("/usr/share/dictd/gcide.dict.dz")
MANUALS = Path("/usr/share/man")
TRANSLATIONS = Path("/usr/share/locale")

SCRIPTS = (
    "LATIN GREEK CYRILLIC ARMENIAN HEBREW ARABIC DEVANAGARI BENGALI TAMIL THAI GEORGIAN "
    "HANGUL HIRAGANA KATAKANA CJK"
)


class Text(NamedTuple):
    """A text and where it is from."""

    name: str
    source: str
    text: str

    @property
    def size(self) -> int:
        """Bytes of UTF-8."""
        return len(self.text.encode())

    def cut(self, size: int) -> Text:
        """The same, but at most `size` bytes of it.

        >>> Text("prose", "here", "naïve").cut(3).text
        'na'
        """
        return self._replace(text=self.text.encode()[:size].decode("utf-8", "ignore"))


def machine_texts(size: int) -> list[Text]:
    """The three texts of this machine, each up to `size` bytes."""
    found = [
        first_with_text("prose", size, {"dict-gcide": dictionary(), "docstrings of Python": docstrings()}),
        first_with_text("code", size, {"source of Python's library": sources()}),
        first_with_text(
            "many languages",
            size,
            {
                "manual pages that are not English": manuals(),
                "translated messages of programs": translations(),
                "generated words of many scripts": generated(size),
            },
        ),
    ]
    return [text for text in found if text is not None]


def given_text(argument: str, size: int) -> Text:
    """A text from a file: "FILE" or "NAME=FILE". Raises `OSError`."""
    name, _, file = argument.rpartition("=")
    path = Path(file)
    with path.open("rb") as stream:
        return Text(name or path.stem, str(path), stream.read(size).decode("utf-8", "ignore"))


def first_with_text(name: str, size: int, sources: dict[str, Iterator[str]]) -> Text | None:
    """The first of the sources with at least 100 kB, or else the last that has anything."""
    found = None
    for source, parts in sources.items():
        text = Text(name, source, joined(parts, size))
        found = text if text.text else found
        if text.size >= min(size, 100_000):
            break
    return found


def joined(parts: Iterable[str], size: int) -> str:
    """The parts joined, up to `size` bytes of UTF-8.

    >>> joined(["ab", "cd", "ef"], 3)
    'abc'
    """
    pieces, total = [], 0
    for part in parts:
        pieces.append(part)
        total += len(part.encode())
        if total >= size:
            break
    return "".join(pieces).encode()[:size].decode("utf-8", "ignore")


# ---- sources --------------------------------------------------------------------------------------------


def dictionary() -> Iterator[str]:
    """The dictionary of dict-gcide, in parts of 1 MB."""
    if DICTIONARY.exists():
        with gzip.open(DICTIONARY, "rt", encoding="utf-8", errors="replace") as file:
            while part := file.read(1_000_000):
                yield part


def sources() -> Iterator[str]:
    """The source files of Python's library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text("utf-8", "replace")


def docstrings() -> Iterator[str]:
    """The docstrings of Python's library."""
    for source in sources():
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield (ast.get_docstring(node) or "") + "\n"


def manuals() -> Iterator[str]:
    """Manual pages that are not English: the first of each language, the second of each, and so on."""
    languages = [path for path in sorted(MANUALS.glob("[a-z]*")) if path.name[:3] != "man"]
    pages = [sorted(language.glob("man*/*.gz")) for language in languages]
    for path in (page for turn in zip_longest(*pages) for page in turn if page):
        if path.is_file() and not path.is_symlink():
            yield gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def translations() -> Iterator[str]:
    """The messages of installed programs in other languages, one catalogue of each language in turn."""
    catalogues = [
        sorted(path.glob("LC_MESSAGES/*.mo")) for path in sorted(TRANSLATIONS.glob("[a-z]*")) if path.is_dir()
    ]
    for path in (catalogue for turn in zip_longest(*catalogues) for catalogue in turn if catalogue):
        try:
            with path.open("rb") as file:
                messages = vars(gettext.GNUTranslations(file))["_catalog"]
        except (OSError, UnicodeDecodeError, ValueError, KeyError):
            continue
        yield "\n".join(str(message) for message in messages.values()) + "\n"


def generated(size: int) -> Iterator[str]:
    """Lines of made-up words, each line in one script; few words are frequent and many are rare."""
    dice = random.Random(1)
    words = [_words(dice, letters) for letters in _letters_by_script().values()]
    total = 0
    while total < size:
        vocabulary = dice.choice(words)
        line = " ".join(vocabulary[int(len(vocabulary) ** dice.random()) - 1] for _ in range(12)) + ".\n"
        total += len(line.encode())
        yield line


def _letters_by_script() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {script: [] for script in SCRIPTS.split()}
    for point in range(0x30000):
        character = chr(point)
        script = unicodedata.name(character, "").partition(" ")[0]
        if script in found and unicodedata.category(character) in ("Ll", "Lo") and len(found[script]) < 2000:
            found[script].append(character)
    return found


def _words(dice: random.Random, letters: list[str]) -> list[str]:
    return ["".join(dice.choices(letters, k=dice.randint(1, 9))) for _ in range(5000)]
