"""`ggufbpe.export`: a model's vocabulary in the files of another library, and how far the ids agree.

model -> export_formats.py -> Export (files, limits) -> parity.py -> Agreement with the library
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..._util import files
from ..._util.errors import printable
from ...convert.export_formats import FORMATS, Export, export_to
from ...convert.exporters.vocab_gguf import to_vocab_gguf
from ...convert.incompatibilities import Incompatibility
from ...gguf.constants import TokenizerKey
from ...gguf.metadata import Overrides
from ...gguf.reader import GGUFFile
from ...hub.model_location import ModelLocation, ModelName, locate
from ...tokenizer import Tokenizer
from .parity import Agreement, agreement, library_for, opened_or_reason, unexplained, verdict_on

TOKENIZER_CONFIG = "tokenizer_config.json"


class Exported(NamedTuple):
    """The result of `export`: the contents of the `files` by name, the main file first, and how far ids agree.

    `limits` are known reasons for other ids in programs that read these files. `agreement` is the comparison of ids;
    None if ids were not compared, and then `not_checked` says why, or is "" if no comparison was wanted or no library
    reads the format.
    """

    files: dict[str, bytes]
    limits: tuple[Incompatibility, ...]
    agreement: Agreement | None
    not_checked: str

    @property
    def verdict(self) -> str:
        """The result in a word: "same", "different", "not_compared", or "explained" by `limits`."""
        return verdict_on(self.agreement, self.limits)

    @property
    def is_explained(self) -> bool:
        """Whether no ids differ but those that `limits` explains, as far as ids were compared."""
        return not unexplained(self.agreement, self.limits)

    def save(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write all files into `folder`, which is made if necessary, replacing files there. Return their paths.

        An export of one file may be given the path of that file instead, with its suffix. Either all files are written
        or none. `OSError` if that is not possible.
        """
        suffixes = {os.path.splitext(name)[1] for name in (*self.files, os.fspath(folder))}
        if len(self.files) == len(suffixes) == 1 and not os.path.isdir(folder):
            contents = dict(zip([os.fspath(folder)], self.files.values()))
        else:
            os.makedirs(folder, exist_ok=True)
            contents = {os.path.join(folder, name): data for name, data in self.files.items()}
        files.write_files(contents)
        return list(contents)

    def __repr__(self) -> str:
        differing = "ids not compared" if self.agreement is None else self.agreement.summary
        return f"<Exported {', '.join(self.files)}: {differing}>"


def export(
    model: ModelName,
    to: str,
    *,
    overrides: Overrides | None = None,
    renumber: bool = False,
    code_points: bool = False,
    check: bool = True,
    sample: Iterable[str] = (),
) -> Exported:
    """Return the vocabulary of a model in the format `to`, and compare its ids with those of a library that reads it.

    `model` is the path or name of a model, and `overrides` replaces keys, as in `Tokenizer.from_gguf`. `to` is
    "tokenizer.json", "sentencepiece", "vocab.txt", "tiktoken", "merges.txt" or "vocab-gguf"; docs/export.md says which
    holds which tokenizer. `renumber` assigns new ids if tiktoken's order of ids asks for it; `code_points` writes the
    patterns of a tokenizer.json as lists of code points.

    With `check`, the library encodes random texts, characters of every kind, and the texts in `sample`. If the library
    is not installed, `not_checked` says so.

    Raises `NotExpressibleError` if the format has no place for the tokenizer, `ValueError` for another format or for
    options that belong to another format, `GGUFError` if the model cannot be used.

    >>> found = export("model.gguf", "tokenizer.json")
    >>> found.agreement.same, found.save("converted")
    (True, ['converted/tokenizer.json', 'converted/tokenizer_config.json'])
    """
    if to not in FORMATS:
        raise ValueError(f"there is no format {printable(str(to))}; there are {', '.join(FORMATS)}")
    if renumber and to != "tiktoken":
        raise ValueError("renumber is for tiktoken")
    if code_points and to != "tokenizer.json":
        raise ValueError("code_points is for tokenizer.json")
    if overrides and to == "vocab-gguf":
        raise ValueError("vocab-gguf keeps the file's keys unchanged: ggufbpe.fix(set={...}) changes them")
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides)
    found = export_files(tokenizer, model, to, renumber=renumber, code_points=code_points)
    told = check_export(to, tokenizer, found, sample) if check else None
    reason = told if isinstance(told, str) else ""
    return Exported(*found, told if isinstance(told, Agreement) else None, reason)


def export_files(
    tokenizer: Tokenizer, model: ModelName, to: str, *, renumber: bool = False, code_points: bool = False
) -> Export:
    """Return the files of `tokenizer` in the format `to`. `model` is the file that it was opened from."""
    if to == "vocab-gguf":
        return to_vocab_gguf(model)
    vocabulary = tokenizer.vocabulary
    if to == "tiktoken":
        return export_to(to, vocabulary, stem_of(model), renumber=renumber)
    given = [_chat_templates(tokenizer, model)] if TOKENIZER_CONFIG in FORMATS[to].files else []
    options = {"code_points": code_points} if to == "tokenizer.json" else {}
    return export_to(to, vocabulary, *given, **options)


def check_export(
    to: str, tokenizer: Tokenizer, found: Export, sample: Iterable[str]
) -> Agreement | str | None:
    """Compare with the library that reads the format; None if there is none.

    A sentence if it is not installed or does not accept the files, which are an export whatever the library does.
    """
    library = opened_or_reason(lambda: library_for(to, found))
    return library if library is None or isinstance(library, str) else agreement(tokenizer, library, sample)


def stem_of(model: ModelName) -> str:
    """Return the name, without suffix, of a file that is made of the model."""
    if not isinstance(model, ModelLocation):
        return os.path.basename(os.fspath(model)).removesuffix(".gguf")
    name = model.name if model.store else os.fspath(model)
    plain = re.sub(r"[^\w.-]+", "-", os.path.basename(name.partition(":")[2] or name))
    return plain.removesuffix(".json" if model.is_imported else ".gguf")


def _chat_templates(tokenizer: Tokenizer, model: ModelName) -> dict[str, str]:
    """The chat templates of the file by name; not what llama.cpp takes for a default one that is missing."""
    with GGUFFile(locate(model).opened()) as file:
        has_default = TokenizerKey.CHAT_TEMPLATE in file
    return {name: text for name, text in tokenizer.chat_templates.items() if name or has_default}
