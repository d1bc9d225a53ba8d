"""`ggufbpe.import_vocabulary`: another program's tokenizer files as a GGUF that llama.cpp loads, and how far ids agree.

files -> importers/import_files.py -> Imported (metadata, limits) -> a GGUF -> parity.py -> Agreement with the library
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..._util import files
from ..._util.errors import ChatError
from ..._util.extras import NotInstalledError
from ...chat.bos_eos import BosEos
from ...chat.render import ChatTemplate
from ...convert.imported import NotImportableError, pack
from ...convert.importers.import_files import detect_format, file_in, import_file
from ...convert.incompatibilities import Incompatibility
from ...gguf.constants import TokenizerKey
from ...gguf.source import Source
from ...hub.model_location import IMPORTED
from ...models.loading import load
from ...tokenizer import Tokenizer
from .parity import Agreement, agreement, library_reading, opened_or_reason, unexplained, verdict_on

_UNSAID = {
    "vocab.txt": "a vocab.txt does not say how text is normalized",
    "merges.txt": "merges.txt does not say how text is split",
}


class ImportedVocabulary(NamedTuple):
    """The result of `import_vocabulary`: a GGUF of only metadata, and how far its ids agree with the source's.

    `gguf` is the content of the file, which llama.cpp loads with vocab_only, and `metadata` its keys: str, bool, int,
    or a list of str or of int. `pre` is the name of the pre-tokenizer, "" if the kind of tokenizer has none, and
    `recognized` says how that name was found ("as given" if it was given). `limits` are what llama.cpp has no place
    for. `agreement` is the comparison of ids; None if ids were not compared, and then `not_checked` says why, or is ""
    if none was wanted.
    """

    gguf: bytes
    metadata: dict[str, Any]
    pre: str
    recognized: str
    limits: tuple[Incompatibility, ...]
    agreement: Agreement | None
    not_checked: str

    @property
    def verdict(self) -> str:
        """The result in a word: "same", "different", "not_compared", or "explained" by `limits`."""
        return verdict_on(self.agreement, self.limits)

    @property
    def is_explained(self) -> bool:
        """Whether no ids differ but those that `limits` explains. If ids could not be compared, none is known to."""
        return not unexplained(self.agreement, self.limits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the GGUF to `path`, whole or not at all, replacing a file there. `OSError` if that is not possible."""
        files.write_files({os.fspath(path): self.gguf})

    def __repr__(self) -> str:
        tokens = len(self.metadata["tokenizer.ggml.tokens"])
        differing = "ids not compared" if self.agreement is None else self.agreement.summary
        kind = " ".join(filter(None, (self.metadata["tokenizer.ggml.model"], self.pre)))
        return f"<ImportedVocabulary {kind} of {tokens} tokens: {differing}>"


def import_vocabulary(
    path: str | os.PathLike[str],
    *,
    pre: str | None = None,
    architecture: str | None = None,
    name: str | None = None,
    check: bool = True,
    sample: Iterable[str] = (),
) -> ImportedVocabulary:
    """Make a GGUF vocabulary from another program's tokenizer files, and compare its ids with that program's.

    `path` is a tokenizer.json, a tokenizer.model of sentencepiece, a vocab.txt, a merges.txt with vocab.json beside it,
    or a directory with one of them; docs/export.md says what is read beside it. `pre` is the name of the pre-tokenizer;
    without it, the name is found from the patterns. `architecture` and `name` are written as those of the model.

    With `check`, the library that reads the file encodes random texts, characters of every kind, and the texts in
    `sample`. If there is no such library or it is not installed, `not_checked` says so.

    Raises `NotImportableError` if llama.cpp has no place for the tokenizer or the files are not sound, `OSError` if
    they cannot be read, `NotInstalledError` for a tokenizer.model without the package sentencepiece.

    >>> found = import_vocabulary("Qwen2-7B")                                   # doctest: +SKIP
    >>> found.pre, found.agreement.same                                         # doctest: +SKIP
    ('qwen2', True)
    >>> found.save("vocab.gguf")                                                # doctest: +SKIP
    """
    source = file_in(os.fspath(path))
    try:
        imported = import_file(source, pre=pre, architecture=architecture, name=name)
    except NotImportableError as error:
        if str(source) in str(error):
            raise
        raise NotImportableError(f"{source}: {error}") from None
    data = pack(imported.metadata)
    told = _agreement(data, source, sample, check)
    reason = told if isinstance(told, str) else ""
    how = "as given" if imported.recognized is None else imported.recognized.sentence
    return ImportedVocabulary(
        data,
        imported.metadata,
        imported.pre,
        how,
        (*imported.limits, *_broken_templates(imported.metadata)),
        told if isinstance(told, Agreement) else None,
        reason,
    )


def _agreement(data: bytes, source: str, sample: Iterable[str], check: bool) -> Agreement | str | None:
    """How the new vocabulary's ids agree with the library's; a sentence if that could not be determined.

    Opening the vocabulary also shows that it can be opened.
    """
    # No warnings about how llama.cpp treats special tokens: `doctor` reports them.
    tokenizer = Tokenizer(load(Source(IMPORTED + source, data))[0])
    if not check:
        return None
    library = opened_or_reason(lambda: library_reading(source, tokenizer.vocabulary))
    if library is None:
        return f"not checked: {_UNSAID[detect_format(source)]}, so ids depend on the program"
    return library if isinstance(library, str) else agreement(tokenizer, library, sample)


def _broken_templates(metadata: dict[str, Any]) -> Iterator[Incompatibility]:
    """Chat templates that cannot be parsed; none if the package that parses them is not installed."""
    for key, source in metadata.items():
        if not key.startswith(TokenizerKey.CHAT_TEMPLATE) or not isinstance(source, str):
            continue
        try:
            ChatTemplate(source, BosEos())
        except NotInstalledError:
            return
        except ChatError as error:
            yield Incompatibility(
                "chat_template", f"{key} cannot be parsed as llama.cpp does it: {error.reason}"
            )
