"""Token counts of files, for `ggufbpe.count_files` and the command `ggufbpe count`.

    paths -> corpus_files.py -> files -> texts -> Tokenizer.count -> TextCounts of each file

A text of any size is counted in chunks (tokenizer/chunking.py), so that memory does not grow with it.
"""

from __future__ import annotations

import io
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from ..._util import utf8
from ..._util.arguments import iterable
from ..._util.caller import frames_to_caller
from ..._util.progress import OnProgress, Progress
from ..._util.wording import counted
from ...chat.chat_methods import HIDES_TOOLS
from ...models.vocabulary import GGUFWarning
from ...tokenizer import Tokenizer
from ...tokenizer.chunking import LONG_TEXT, added_ids, chunks_of_stream
from ...tokenizer.inputs import Model, tokenizer_of
from ..corpora.corpus_files import File, files_of, ignored_by_git, open_file
from ..corpora.readers import has_records, read_chat_records, read_lines, records
from ..corpora.records import Report, decompressed, has_json_lines, is_json, is_table, problem_with, raised

if TYPE_CHECKING:
    from datetime import datetime

    from ...chat.media.chat_media import ChatCount

_TOLD_EACH = 1 << 16  # bytes counted between two calls of `progress`

PromptOf = Callable[[Any], "bytes | ChatCount"]  # a chat -> its prompt, or that with its count


class TextCounts(NamedTuple):
    """The numbers of one file or stream, of all texts in it together, or of a sum of these.

    `name` is the path or the stream's name. `tokens`, `bytes` and `characters` (code points) are counted; each of the
    `undecodable_bytes`, which are not UTF-8, counts as a character.
    """

    name: str
    tokens: int
    bytes: int
    characters: int
    undecodable_bytes: int

    @property
    def characters_per_token(self) -> float | None:
        """Mean length of a token in code points; None if there are no tokens."""
        return self.characters / self.tokens if self.tokens else None


class FileCounts(NamedTuple):
    """The result of `count_files`: the counts of the `files` in the order of reading, and of all together (`total`).

    `errors` has the "name" and "error" of what could not be read, and `skipped` how many files in directories were left
    out, by kind: "hidden", "binary" and others.
    """

    files: list[TextCounts]
    total: TextCounts
    errors: list[dict[str, str]]
    skipped: dict[str, int]

    @property
    def tokens(self) -> int:
        """The number of tokens of all files together."""
        return self.total.tokens

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `ggufbpe count --json` writes."""
        numbers = self.total._asdict()
        del numbers["name"]
        return {
            "files": [counts._asdict() for counts in self.files],
            "total": numbers,
            "errors": self.errors,
            "skipped": self.skipped,
        }

    def __repr__(self) -> str:
        sizes = counted(len(self.files), "file"), counted(self.total.bytes, "byte")
        failed = f", {counted(len(self.errors), 'error')}" if self.errors else ""
        return f"<FileCounts: {', '.join(sizes)}, {counted(self.tokens, 'token')}{failed}>"


def count_files(
    model: Model,
    paths: str | os.PathLike[str] | IO[bytes] | Iterable[str | os.PathLike[str] | IO[bytes]],
    *,
    add_bos: bool = True,
    add_special: bool | None = None,
    parse_special: bool = True,
    field: str | None = None,
    chats: bool = False,
    tools: Sequence[Mapping[str, Any]] | None = None,
    chat_template: str | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    read_ignored: bool = True,
    report: Report | None = None,
    progress: OnProgress | None = None,
) -> FileCounts:
    """Count the tokens of files and directories; return the tokens, bytes and characters of each file.

    `model` is a `Tokenizer`, or the path or name of a model. `paths` are one or several of: a file, a directory, which
    is searched for regular files by name (hidden and binary files and links are left out, without `read_ignored` also
    those that git ignores), a URL that fsspec opens, and a binary stream. Files named .gz or .zst are decompressed.
    Each file is one text, except that each line of .jsonl and .ndjson files and each row of tables is a text of its
    own, from the field `field` (default: "text"). If it is given, files not named as tables are read as JSON lines.

    `add_bos` counts, with each text, the BOS and EOS that llama-tokenize adds; if `add_special` is given, it decides
    instead, as in `Tokenizer.encode`. `parse_special` recognizes control tokens. With `chats`, files are chats (.json:
    one or an array; .jsonl: one in each line), lists of messages or bodies of requests, whose prompts are counted as by
    llama-server; `tools`, `chat_template`, `chat_template_kwargs` and `now` are as in `Tokenizer.apply_chat_template`.

    A file or record that cannot be read raises `OSError`, `CorpusError` or `ChatError`, unless `report(name, error)` is
    given to receive the error; the result then lists it. `progress` is called with a `Progress` in bytes of files.
    `GGUFError` if the model cannot be used, `ValueError` for chats if neither the model nor `chat_template` has a
    template. Warns (`GGUFWarning`) of tools that the template does not show.

    >>> counts = count_files("model.gguf", "docs")                              # doctest: +SKIP
    >>> counts.tokens, max(counts.files, key=lambda file: file.tokens).name     # doctest: +SKIP
    (68123, 'docs/commands.md')
    """
    tokenizer = tokenizer_of(model)
    given = {"tools": tools, "chat_template_kwargs": chat_template_kwargs}
    fields = {name: value for name, value in given.items() if value is not None}
    prompt = None
    if chats:
        from ...chat.known_templates import resolved

        prompt = prompt_maker(tokenizer, resolved(chat_template), fields, now)
    elif fields or chat_template is not None or now is not None:
        raise ValueError("tools, chat_template, chat_template_kwargs and now need chats=True")
    counter = FileCounter(
        tokenizer,
        report or raised,
        prompt,
        add_bos=add_bos,
        add_special=add_special,
        parse_special=parse_special,
        field=field,
    )
    sources = _sources(counter, paths, None if read_ignored else ignored_by_git)
    return counter.result(list(counter.count(sources, progress)))


def _sources(
    counter: FileCounter, paths: Any, ignored_in: Callable[[str], frozenset[str]] | None
) -> list[File | NamedStream]:
    """The files and streams that `count_files` is given as `paths`."""
    is_one = isinstance(paths, (str, os.PathLike)) or hasattr(paths, "read")
    sources: list[File | NamedStream] = []
    for each in iterable("paths", [paths] if is_one else paths, "paths and binary streams"):
        if isinstance(each, (str, os.PathLike)):
            sources += counter.find([os.fspath(each)], ignored_in)
        elif hasattr(each, "read"):
            sources.append(NamedStream(str(getattr(each, "name", "(stream)")), cast("IO[bytes]", each)))
        else:
            raise TypeError(f"count_files takes paths and binary streams, not {type(each).__name__}")
    return sources


def prompt_maker(
    tokenizer: Tokenizer,
    chat_template: str | None,
    fields: Mapping[str, Any],
    now: datetime | None = None,
    mmproj: str | None = None,
    media_path: str | None = None,
) -> PromptOf:
    """Return a function that makes the prompt of a chat, a list of messages or a request body.

    `fields` replace those of each request, and `now` is the time for templates that write the date. With the file of a
    projector, `mmproj`, images and audio are counted, also those in files below `media_path`.

    The function raises `ValueError` for what llama-server refuses, and warns once (`GGUFWarning`) of tools that the
    template does not show. `ValueError` at once if neither the model nor the caller has a chat template, for which
    llama-server would take ChatML.
    """
    tokenizer.chats.require_template(chat_template)
    projector = None
    if mmproj is not None:
        from ...chat.media.mmproj import Mmproj

        projector = Mmproj.from_file(mmproj)
    has_warned = False

    def prompt(chat: Any) -> bytes | ChatCount:
        nonlocal has_warned
        from ...chat.request.body import body_with_fields
        from ..corpora.chat_records import request_body_of

        body = body_with_fields(request_body_of(chat), fields)
        if not has_warned and body.get("tools") and not tokenizer.chats.shows_tools(chat_template):
            has_warned = True
            warnings.warn(HIDES_TOOLS, GGUFWarning, stacklevel=frames_to_caller())
        if projector is None:
            return tokenizer.chats.prompt(body, chat_template, now)
        from ...chat.media.chat_media import count_with_media

        return count_with_media(tokenizer, body, projector, media_path, chat_template, now)

    return prompt


class NamedStream(NamedTuple):
    """A binary stream to count, and its name in the result."""

    name: str
    stream: IO[bytes]


class FileCounter:
    """Counts files one by one: `find` lists them, `count` yields the counts of each, `result` sums them up."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        report: Report,
        prompt: PromptOf | None = None,
        *,
        add_bos: bool = True,
        add_special: bool | None = None,
        parse_special: bool = True,
        field: str | None = None,
    ) -> None:
        """Arguments are those of `count_files`; with `prompt`, files are chats, whose prompts it makes."""
        self._tokenizer = tokenizer
        self._report_to = report
        self._prompt = prompt
        self._parse_special = parse_special
        self._field = field
        by_command = added_ids(tokenizer) if add_bos and add_special is None else ()
        # llama-server adds EOS, too, where no BOS is wanted
        added = by_command if prompt is None and not add_special else tokenizer.vocabulary.added
        self._added = sum(map(len, added))  # tokens a text
        self.skipped: Counter[str] = Counter()
        self.errors: list[dict[str, str]] = []

    def find(
        self, paths: Iterable[str], ignored_in: Callable[[str], frozenset[str]] | None = None
    ) -> list[File]:
        """Return the files at `paths` and in the directories among them; `ignored_in` as in `files_of`."""
        found = list(files_of(paths, self.skipped, self._report, ignored_in, self._field is not None))
        if self._prompt is None:
            return found
        others = [file for file in found if file.path != file.root and not _is_named_as_json(file.path)]
        self.skipped["not named .json or .jsonl"] += len(others)
        return [file for file in found if file not in others]

    def count(
        self, sources: Sequence[File | NamedStream], progress: OnProgress | None = None
    ) -> Iterator[TextCounts]:
        """Yield the counts of each source that can be read. Streams are not part of the bytes of `progress`."""
        total = sum(source.size for source in sources if isinstance(source, File))
        number = before = 0  # files, and bytes of the files, before this one
        for source in sources:
            name, size = (source.name, 0) if isinstance(source, NamedStream) else (source.path, source.size)
            try:
                if isinstance(source, NamedStream):
                    counts = self._count_stream(source)
                else:
                    number += 1
                    tell = _teller(progress, total, name, {"files": number})
                    tell(before)
                    with open_file(name) as raw:
                        counts = self._count_file(name, raw, _each_chunk(tell, raw, before))
            except (OSError, MemoryError, ValueError) as error:
                self._report(name, error)
            else:
                yield counts
            before += size

    def result(self, counted_files: list[TextCounts]) -> FileCounts:
        """Return the counts with their sum, and what was left out."""
        numbers = [counts[1:] for counts in counted_files] or [(0, 0, 0, 0)]
        total = TextCounts("total", *map(sum, zip(*numbers)))
        skipped = {kind: number for kind, number in sorted(self.skipped.items()) if number}
        return FileCounts(counted_files, total, self.errors, skipped)

    # ---- one file -------------------------------------------------------------------------------

    def _count_stream(self, source: NamedStream) -> TextCounts:
        if self._prompt is None:
            return self._count_text(source.name, source.stream, _ignore)
        return self._counts(source.name, self._prompts(source.name, source.stream), _ignore, self._added)

    def _count_file(self, path: str, raw: IO[bytes], tell: Callable[[int], None]) -> TextCounts:
        with decompressed(raw, path) as stream:
            if self._prompt is not None:
                return self._counts(path, self._prompts(path, stream), tell, self._added)
            if not has_records(path, self._field):
                return self._count_text(path, stream, tell)
            texts = (text for text, _ in records(stream, path, self._field, self._report))
            return self._counts(path, texts, tell, self._added)

    def _prompts(self, name: str, stream: IO[bytes]) -> Iterator[bytes | ChatCount]:
        """The prompts of the chats in a file."""
        from ..corpora.chat_records import chat_of_record, chats_in

        prompt = self._prompt
        assert prompt is not None
        if is_table(name):
            yield from read_chat_records(
                stream, name, self._report, lambda record: prompt(chat_of_record(record).body)
            )
        elif has_json_lines(name):
            yield from read_lines(stream, name, self._report, lambda line: prompt(_parsed(line)))
        else:
            yield from map(prompt, chats_in(_parsed(stream.read())))

    def _count_text(self, name: str, stream: IO[bytes], tell: Callable[[int], None]) -> TextCounts:
        """The counts of a text, read chunk by chunk so that memory does not grow with it."""
        counts = self._counts(name, self._chunks(stream), tell, None)
        return counts._replace(tokens=counts.tokens + self._added)

    def _chunks(self, stream: IO[bytes]) -> Iterator[bytes]:
        return chunks_of_stream(stream, [self._tokenizer], self._parse_special, continues=True)

    def _chunks_if_long(self, text: bytes) -> Iterable[bytes]:
        return [text] if len(text) < LONG_TEXT else self._chunks(io.BytesIO(text))

    def _counts(
        self, name: str, parts: Iterable[bytes | ChatCount], tell: Callable[[int], None], added: int | None
    ) -> TextCounts:
        """The counts of all parts together; each adds `added` tokens. None: the parts are chunks of one text."""
        tokens = size = characters = undecodable = 0
        for whole in parts:
            is_text = isinstance(whole, bytes)
            tokens += (added or 0) if isinstance(whole, bytes) else whole.count
            prompt = whole if isinstance(whole, bytes) else whole.prompt
            continues = added is None and size > 0
            for part in [prompt] if added is None else self._chunks_if_long(prompt):
                text = utf8.decode(part)
                if is_text:
                    tokens += self._tokenizer.count(
                        part, add_special=False, parse_special=self._parse_special, continues=continues
                    )
                continues = True
                size += len(part)
                characters += len(text)
                undecodable += utf8.undecodable(part, text)
                tell(size)
        return TextCounts(name, tokens, size, characters, undecodable)

    def _report(self, name: str, error: Exception) -> None:
        self.errors.append({"name": name, "error": problem_with(name, error)})
        self._report_to(name, error)


def _parsed(data: bytes) -> Any:
    """Return the value of a JSON text; `ValueError` if it is none."""
    from ...chat.request.json_text import parsed_file

    try:
        return parsed_file(data)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None


def _teller(
    progress: OnProgress | None, total: int, item: str, counts: Mapping[str, int]
) -> Callable[[int], object]:
    """Return a function that tells `progress` how many bytes of all files are read."""
    if progress is None:
        return _ignore
    return lambda done: progress(Progress("count", done, total, "bytes", item, counts))


def _each_chunk(tell: Callable[[int], object], raw: IO[bytes], before: int) -> Callable[[int], None]:
    """Return a function that takes the bytes of text counted so far, and tells the place in the file now and then."""
    if tell is _ignore:
        return _ignore
    told = 0

    def show(size: int) -> None:
        nonlocal told
        if size - told >= _TOLD_EACH:
            told = size
            tell(before + raw.tell())

    return show


def _ignore(_: int) -> None:
    pass


def _is_named_as_json(path: str) -> bool:
    return has_json_lines(path) or is_json(path)
