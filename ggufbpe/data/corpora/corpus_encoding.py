"""Encodes a corpus to shards of ids in the formats that trainers read: `ggufbpe encode`.

    inputs -> chunks.py -> chunk_encoder.py on several threads -> in order -> shard_writer.py -> manifest

Shards appear only when complete, and a resumed run writes the bytes that an uninterrupted one would have.
"""

from __future__ import annotations

import errno
import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._util.arguments import integer
from ..._util.errors import printable
from ..._util.extras import imported
from ..._util.processors import processors
from ..._util.progress import OnProgress, Progress
from ...chat.assistant_mask import AssistantPart
from ...chat.known_templates import resolved
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizer_of
from . import manifest
from .byte_formats import Layout
from .chat_records import Preference
from .chunk_encoder import Bad, ChunkEncoder, Encoded
from .chunks import BEFORE_IS_READ, Chunk, ChunkReader
from .corpus_files import absolute_path
from .documents import SHARD_SIZE, Options, mask_parts
from .manifest import RunState, Tail
from .marked_ids import MaskForm
from .records import (
    BadFileError,
    CorpusError,
    Report,
    has_json_lines,
    is_binary_table,
    is_json,
    is_table,
    is_zstd,
    raised,
    require_known_compression,
)
from .shard_formats import FORMS, id_dtype
from .shard_reader import EncodedCorpus
from .shard_writer import ShardsWriter
from .storage import Folder, folder_at, list_inputs
from .whole_rows import padding_id

if TYPE_CHECKING:
    from .segments import EncodedBatch

_WAITING_BYTES = 64 << 20  # of chunks being encoded or waiting; one more may have any size
ON_ERROR = ("fail", "skip")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def encode_corpus(
    corpus: Paths,
    model: Model,
    output: str | os.PathLike[str],
    *,
    format: str = "megatron",
    text_column: str = "text",
    chat_column: str | None = None,
    chats: bool = False,
    chat_template: str | None = None,
    preference: Preference | None = None,
    mask: bool | Collection[AssistantPart] = False,
    mask_form: MaskForm | None = None,
    by_line: bool = False,
    bos: bool = False,
    eos: bool = True,
    parse_special: bool = False,
    max_length: int | None = None,
    pack: int | None = None,
    whole: bool = False,
    position_ids: bool = False,
    shard_size: int = SHARD_SIZE,
    workers: int | None = None,
    ray: str | None = None,
    on_error: str = "fail",
    resume: bool = False,
    force: bool = False,
    report: Report | None = None,
    progress: OnProgress | None = None,
) -> EncodedCorpus:
    """Write the ids of a corpus as shards of `format`, and return them as an `EncodedCorpus`.

    `format` is megatron, nanotron, npy, parquet or arrow; docs/corpora.md describes them.

    `corpus`: files and directories, or URLs for fsspec. Each row of a table and each line of JSON lines is a document,
    with its text in `text_column` or its messages in `chat_column`; any other file is one, or with `by_line` each of
    its lines. With `chats`, each record is a chat in any of the forms of docs/corpora.md, and `preference` says which
    answer of a pair is encoded. `chat_template` is as in `Tokenizer.apply_chat_template`; a model without a template
    needs it. With `mask`, shards tell what the assistant wrote, or those parts of it: "content", "reasoning",
    "tool_calls", "end". `mask_form` is "labels" (the id, or -100), the default of parquet and arrow, or "mask" (1, 0).
    A document becomes the ids of its text, without special tokens, and EOS; `bos`, `eos` and `parse_special` change
    that. A document of more than `max_length` tokens is a bad record. With `pack`, the ids of all documents are cut
    into rows of that length; with `whole`, a chat that does not fit the rest of a row begins the next one, and padding
    (or EOS) fills rows up. `position_ids` adds where each document begins. A shard ends when it has `shard_size` bytes
    of ids. The output is the same for any number of `workers` (encoding threads; None: one per processor). With `ray`,
    the address of a Ray cluster or "local", workers are its processes, and `corpus` and `output` have the same names on
    all of its machines.

    A bad record raises a `CorpusError`, or with on_error="skip" is passed to `report(where, error)`. If `output` has
    shards already, that is a `FileExistsError`, unless `resume` (continue a stopped run; refused if anything has
    changed) or `force` (start again) is given. `OSError` if a file cannot be read or written. Finished shards stay; if
    there are none yet, a run that fails leaves nothing. `ChangedError` if an input changes while it is read.
    `NotInstalledError` if a package of an extra is missing. `ConnectionError` if there is no such cluster.

    `progress` is called with a `Progress` in bytes of files, which counts "documents" and "tokens".
    """
    if format not in FORMS:
        raise ValueError(f"format is one of {', '.join(FORMS)}, not {printable(str(format))}")
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error is 'fail' or 'skip', not {on_error!r}")
    for name, value in zip(("max_length", "pack", "workers"), (max_length, pack, workers)):
        integer(name, 1 if value is None else value, least=1)
    integer("shard_size", shard_size, least=1)
    tokenizer = tokenizer_of(model)
    folder = folder_at(os.fspath(output))
    options = Options(text_column, chat_column, bos=bos, eos=eos, parse_special=parse_special)
    options = options._replace(chats=chats or None, preference=preference, mask=mask_parts(mask))
    options = options._replace(chat_template=resolved(chat_template), mask_form=mask_form, by_line=by_line)
    padding = padding_id(tokenizer) if whole else None
    options = options._replace(max_length=max_length, pack=pack, shard_size=shard_size, padding=padding)
    options = options._replace(position_ids=position_ids or None).checked_for(format)
    job = _Job(tokenizer, folder, format, options, report if on_error == "skip" else _fatal)
    job.look_at([corpus] if isinstance(corpus, (str, os.PathLike)) else corpus)
    folder.prepare()
    try:
        encoded = job.run((workers, ray), resume, force, progress)
    except BaseException as error:
        job.undo()
        full = (errno.ENOSPC, errno.EDQUOT)
        has_begun = job.to_begin is None and manifest.UNFINISHED in folder.names()
        if isinstance(error, OSError) and error.errno in full and has_begun:
            reason = f"{error.strerror}; the finished shards stay, and resume=True goes on with them"
            raise OSError(error.errno, reason, error.filename) from error
        raise
    finally:
        folder.release()
    return EncodedCorpus(folder, *encoded, job.skipped)


def _encoded(read: int, total: int, path: str, documents: int, tokens: int) -> Progress:
    return Progress("encode", read, total, "bytes", path, {"documents": documents, "tokens": tokens})


class _Job:
    """One run."""

    def __init__(
        self, tokenizer: Tokenizer, folder: Folder, form: str, options: Options, report: Report | None
    ) -> None:
        self._tokenizer, self._folder, self._form, self._options = tokenizer, folder, form, options
        self._report = report or (lambda where, error: None)
        self.skipped: Counter[str] = Counter()  # files of directories, by kind
        self._is_new = False  # whether this run began the work
        # Of a run that replaces shards; they stay until it has a shard itself, since it may fail before.
        self.to_begin: RunState | None = None
        self._dtype = id_dtype(FORMS[form], tokenizer.vocab_size)

    def look_at(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Find the inputs, and what is wrong before anything is written."""
        self._inputs = list_inputs([os.fspath(path) for path in paths], self.skipped)
        manifest.require_others(self._inputs, self._folder)
        self._require_packages()
        ChunkEncoder(self._tokenizer, self._options, self._options.layout(self._dtype, ""))

    def run(
        self,
        who: tuple[int | None, str | None],  # workers, the address of a Ray cluster
        resume: bool,
        force: bool,
        progress: OnProgress | None,
    ) -> tuple[dict[str, Any], list[manifest.Shard]]:
        state = self._start(resume, force)
        if state is None:
            return manifest.read_manifest(self._folder)
        self._folder.clean()
        layout = self._options.layout(self._dtype, state.header["tokenizer"]["name"])
        workers, ray = who
        if ray is not None:
            state, tail = self._encode_on_ray(ray, workers, state, layout, progress)
        else:
            self._folder.before_naming = self._replace_old_shards
            writer = ShardsWriter(self._folder, state, self._options.shard_size, layout)
            try:
                self._encode(writer, layout, workers or processors(), progress)
                state, tail = writer.finish()
            finally:
                writer.close()
        if self.to_begin is not None and tail.bad_records and not tail.documents:
            raise CorpusError(
                f"all {tail.bad_records} records are bad, so the shards in {self._folder.name} stay"
            )
        self._replace_old_shards()  # if it has no shards
        self._require_files(state.shards)
        return manifest.finish(self._folder, state, tail), state.shards

    def _require_packages(self) -> None:
        """`NotInstalledError`, and `CorpusError` for what is not read, now rather than in the middle of the work."""
        paths = [given.path for given in self._inputs]
        for path in paths:
            require_known_compression(path)
        if self._form in ("parquet", "arrow") or any(map(is_binary_table, paths)):
            imported("pyarrow", "corpora", "reading and writing parquet and arrow")
        if any(map(is_zstd, paths)):
            imported("zstandard", "zstd", "reading zstd")
        if self._options.is_chat:
            imported("jinja2", "chat", "a chat template")
            for path in paths:
                if not (is_table(path) or has_json_lines(path) or is_json(path)):
                    raise CorpusError(
                        f"{path}: chats are read from tables, JSON lines and files of JSON only"
                    )

    # ---- where to begin -----------------------------------------------------------------------------

    def _start(self, resume: bool, force: bool) -> RunState | None:
        """Where to start; None if the output is complete."""
        folder = self._folder
        is_begun = manifest.is_begun(folder)
        if is_begun and resume:
            return self._resumed()
        was_killed = folder.is_locked and manifest.has_no_shards(folder)
        if is_begun and not (force or was_killed):
            raise FileExistsError(
                f"{folder.name}: there are shards already; resume=True goes on with them, "
                "force=True begins anew"
            )
        self.to_begin = state = RunState(self._header(None), [])
        if was_killed or not is_begun:
            self._replace_old_shards()
        return state

    def _replace_old_shards(self) -> None:
        """Begin to write, once: what an earlier run wrote is replaced by the state of this one."""
        if self.to_begin is not None:
            state, self.to_begin = self.to_begin, None
            self._is_new = True  # and no file of another has a name of those that it writes
            manifest.begin_run(self._folder, state, self._inputs)

    def undo(self) -> None:
        """After a failure, remove what this run wrote if that is no finished shard, so that it can be tried again."""
        with suppress(OSError):
            has_only_inputs = manifest.written_names(self._folder) == [manifest.INPUTS]
            if self._is_new and (has_only_inputs or manifest.has_no_shards(self._folder)):
                manifest.remove_written(self._folder)
            self._folder.discard()

    def _resumed(self) -> RunState | None:
        state = manifest.unfinished(self._folder)
        header, shards = (
            manifest.read_manifest(self._folder) if state is None else (state.header, state.shards)
        )
        self._require_same(header)
        self._require_files(shards)
        return state

    def _require_files(self, shards: Iterable[manifest.Shard]) -> None:
        """`CorpusError` for a file of a finished shard that is gone, or has another size than was written."""
        folder = self._folder
        names = set(folder.names())
        for file in (file for shard in shards for file in shard.files):
            if file.name not in names or folder.size(file.name) != file.size:
                raise CorpusError(
                    f"{folder.name}/{file.name}: not the file that was written; force=True begins anew"
                )

    def _require_same(self, header: dict[str, Any]) -> None:
        """Refuse to continue with other inputs, settings or another tokenizer."""
        inputs = manifest.read_inputs(self._folder)
        if change := manifest.changed_input(inputs, self._inputs):
            raise CorpusError(
                f"the corpus is another one than when the work was begun: {change}; force=True begins anew"
            )
        self._inputs = inputs  # as they were named then
        now = header["settings"].get("now")
        self._options = self._options._replace(now=now)
        if change := manifest.changed_setting(header, self._header(now)):
            raise CorpusError(f"the work was begun with {change}, so it cannot go on; force=True begins anew")

    def _header(self, now: str | None) -> dict[str, Any]:
        tokenizer = self._tokenizer
        if self._options.is_chat:
            now = now or datetime.now().isoformat(timespec="seconds")
            self._options = self._options._replace(now=now)
        return {
            "version": manifest.VERSION,
            "format": self._form,
            "dtype": self._dtype,
            "tokenizer": {
                "name": os.path.basename(tokenizer.vocabulary.path) or tokenizer.pre,
                "fingerprint": tokenizer.fingerprint,
                "vocab_size": tokenizer.vocab_size,
            },
            "settings": self._options._asdict(),
            "inputs": manifest.summary_of_inputs(self._inputs),
        }

    # ---- the work -----------------------------------------------------------------------------------

    def _encode(
        self, writer: ShardsWriter, layout: Layout, workers: int, progress: OnProgress | None
    ) -> None:
        encoder = ChunkEncoder(self._tokenizer, self._options, layout)
        reader = ChunkReader(self._tokenizer, self._inputs, self._options)
        total = sum(given.size for given in self._inputs)
        waiting: deque[tuple[Chunk, Callable[[], Encoded]]] = deque()
        size = 0

        def take() -> int:
            chunk, result = waiting.popleft()
            try:
                encoded = result()
            except CorpusError as error:  # in the midst of a text
                raise CorpusError(f"{self._inputs[chunk.place.input].path}: {error}") from None
            self._tell_bad(encoded.bad, chunk)
            writer.add(encoded, chunk)
            if progress is not None:
                path = self._inputs[min(chunk.place.input, len(self._inputs) - 1)].path
                progress(_encoded(chunk.read, total, path, writer.documents, writer.tokens))
            return chunk.size

        pool = ThreadPoolExecutor(workers, "ggufbpe-encode")
        try:
            for chunk in reader.chunks(writer.state.place):
                while waiting and (size + chunk.size > _WAITING_BYTES or len(waiting) > 2 * workers):
                    size -= take()
                # Nothing is encoded beside a very large chunk. On this thread, Ctrl-C ends it at once.
                if chunk.size > _WAITING_BYTES:
                    waiting.append((chunk, partial(encoder.encode, chunk)))
                else:
                    waiting.append((chunk, pool.submit(encoder.encode, chunk).result))
                size += chunk.size
            while waiting:
                take()
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode_on_ray(
        self, address: str, workers: int | None, state: RunState, layout: Layout, progress: OnProgress | None
    ) -> tuple[RunState, Tail]:
        from .distributed import EncodingRun, encode_on
        from .ray_machines import RayMachines, connected

        options = self._options
        work = EncodingRun(absolute_path(self._folder.name), state.header, layout, options.shard_size)
        total = sum(given.size for given in self._inputs)
        documents, tokens = (sum(getattr(s, name) for s in state.shards) for name in ("documents", "tokens"))

        def tell(batch: EncodedBatch) -> None:
            nonlocal documents, tokens
            documents, tokens = documents + batch.documents, tokens + batch.tokens + batch.open_tokens
            self._tell_bad(batch.bad, batch.chunk)
            if progress is not None:
                path = self._inputs[min(batch.chunk.place.input, len(self._inputs) - 1)].path
                progress(_encoded(batch.chunk.read, total, path, documents, tokens))

        with connected(address, workers):
            machines = RayMachines(work, self._tokenizer, options, workers)
            by_line = options.by_line and not options.is_chat
            return encode_on(
                machines, work, self._folder, state, self._inputs, by_line, tell, self._replace_old_shards
            )

    def _tell_bad(self, every: Iterable[Bad], chunk: Chunk) -> None:
        for bad in every:
            if chunk.kind in ("broken", "files"):
                index = chunk.place.input + (bad.record if chunk.kind == "files" else -1)
                self._report(self._inputs[index].path, BadFileError(bad.reason))
                continue
            number = chunk.place.record + bad.record + 1
            where = f"{self._inputs[chunk.place.input].path}: {'row' if chunk.kind == 'rows' else 'line'} {number}"
            self._report(where, CorpusError(bad.reason))


def _fatal(where: str, error: Exception) -> None:
    reason = str(error).removesuffix(BEFORE_IS_READ)
    others = "such files" if isinstance(error, BadFileError) else "such records"
    what = others if reason == str(error) else "the rest of the file"
    raised(where, CorpusError(f"{reason}; on_error='skip' leaves {what} out"))
