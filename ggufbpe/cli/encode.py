"""`ggufbpe encode`: a corpus as shards of ids, in the forms that trainers read."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from .._util.errors import printable
from .._util.progress import Progress
from .._util.wording import counted
from ..analysis.views import terminal
from ..analysis.views.answers import answer
from . import _output
from ._arguments import Parser, UsageError, require_no_models
from ._chat import add_template_flags, template_of
from ._files import require_path, say_what_was_left_out
from ._given_models import opened_tokenizer
from ._progress import Bar, duration
from ._signals import termination_as_exit

if TYPE_CHECKING:
    from ..data.corpora.shard_reader import EncodedCorpus
    from ..tokenizer import Tokenizer


FORMATS = ("megatron", "nanotron", "npy", "parquet", "arrow")
_SHOWN = 10  # bad records
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile("([0-9]+)([KMG]?)")


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    add = parser.add_argument
    add("corpus", nargs="+", metavar="CORPUS", help="files, directories and URLs (not standard input)")
    add("-o", "--output", required=True, metavar="OUT", help="the folder to write shards to")
    add(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help=f"the format of the shards (default: {FORMATS[0]})",
    )
    add(
        "--text-column",
        "--field",
        default="text",
        metavar="NAME",
        help='the column or field with the text (default: "text")',
    )
    _add_chat_flags(parser)
    _add_row_flags(parser)
    parser.add_number("--workers", help="encoding threads (default: one per processor)")
    add(
        "--ray",
        metavar="ADDRESS",
        help="encode on a Ray cluster: its address, auto, or local for one on this machine",
    )
    add(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with a bad record: stop (default), or leave it out, count and report it",
    )
    parser.add_switch("--resume", help="continue a run that was stopped")
    parser.add_switch(
        "--force", help="start again; the shards in OUT are removed when the first new one is finished"
    )
    parser.add_switch("--json", help="print one object: model, path, and the manifest")


def _add_chat_flags(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--chat-column",
        metavar="NAME",
        help="encode chats: the column or field with messages, for the model's template",
    )
    parser.add_switch(
        "--chats",
        help="encode chats of any form that is recognized: messages, ShareGPT, Alpaca, prompt and completion, "
        "preference pairs",
    )
    add(
        "--preference",
        choices=("chosen", "rejected"),
        help="with --chats: which answer of a preference pair to encode",
    )
    add_template_flags(parser)
    parser.add_switch(
        "--mask",
        help="with chats: write beside the ids which of them the assistant wrote (--mask-parts and --mask-form "
        "imply it)",
    )
    add(
        "--mask-parts",
        metavar="PARTS",
        help="what of it to mark, with commas: content, reasoning, tool_calls, end (default: all)",
    )
    add(
        "--mask-form",
        choices=("mask", "labels"),
        help="1 and 0, or labels: the id or -100 (default: labels for parquet and arrow, else mask)",
    )


def _add_row_flags(parser: Parser) -> None:
    add = parser.add_argument
    parser.add_switch("--lines", help="take each line of a plain text file as a document")
    parser.add_switch("--bos", help="put BOS before each document")
    add("--no-eos", dest="eos", action="store_false", help="put no EOS after each document")
    parser.add_switch("--parse-special", help="encode special tokens written out in a text as these tokens")
    parser.add_number(
        "--max-length",
        help="treat a document of more than N tokens as a bad record (--on-error skip leaves it out)",
    )
    parser.add_number(
        "--pack", metavar="LENGTH", help="join all documents and cut the ids into rows of this length"
    )
    parser.add_switch(
        "--whole",
        help="with --pack, for chats: begin a new row with a chat that does not fit the rest of one, and fill rows up "
        "with padding, or with EOS if the model has none; only a chat longer than a row is cut",
    )
    parser.add_switch(
        "--position-ids",
        help="with --pack: write where documents begin in each row, as position_ids and cu_seqlens",
    )
    add(
        "--shard-size",
        default="256M",
        metavar="BYTES",
        help="bytes of ids per shard, such as 1G (default: 256M)",
    )


def run(arguments: argparse.Namespace) -> int:
    if "-" in arguments.corpus:
        raise UsageError(
            "standard input cannot be encoded, since shards are checked with their inputs; write the text to a file"
        )
    require_path(arguments.output)
    require_no_models(arguments.corpus, "encode", arguments)
    size = _SIZE.fullmatch(arguments.shard_size)
    if size is None:
        raise UsageError(
            f"--shard-size is a number of bytes, such as 64000000 or 64M, not {printable(arguments.shard_size)}"
        )
    _check_flags(arguments)
    from ..data.corpora.corpus_encoding import encode_corpus

    tokenizer = opened_tokenizer(arguments)
    template = template_of(arguments, tokenizer)
    has_shards, before = _written_in(arguments.output)
    if arguments.resume and not has_shards:
        _output.note("ggufbpe: there was nothing to resume; this run begins at the start")
    told = _Told()
    try:
        with termination_as_exit():
            found = encode_corpus(
                arguments.corpus,
                tokenizer,
                arguments.output,
                format=arguments.format,
                text_column=arguments.text_column,
                chat_column=arguments.chat_column,
                chats=arguments.chats,
                chat_template=template,
                preference=arguments.preference,
                mask=arguments.mask if arguments.mask_parts is None else arguments.mask_parts.split(","),
                mask_form=arguments.mask_form,
                by_line=arguments.lines,
                bos=arguments.bos,
                eos=arguments.eos,
                parse_special=arguments.parse_special,
                max_length=arguments.max_length,
                pack=arguments.pack,
                whole=arguments.whole,
                position_ids=arguments.position_ids,
                shard_size=int(size[1]) * _UNITS[size[2]],
                workers=arguments.workers,
                ray=arguments.ray,
                on_error=arguments.on_error,
                resume=arguments.resume,
                force=arguments.force,
                report=told.report,
                progress=told.show,
            )
    except (KeyboardInterrupt, SystemExit):
        _output.note(f"ggufbpe: stopped; {_what_stays(arguments.output, before)}")
        raise
    finally:
        told.bar.clear()
    _say(found, arguments, tokenizer)
    return 0


def _written_in(output: str) -> tuple[bool, list[bytes]]:
    """Return whether a folder has finished shards or the manifest of a corpus without any, and its manifests.

    Each finished shard changes a manifest.
    """
    from ..data.corpora.manifest import MANIFEST, UNFINISHED, written_names
    from ..data.corpora.storage import folder_at

    folder = folder_at(output)
    names = written_names(folder)
    has_shards = any(name.startswith("part-") or name == MANIFEST for name in names)
    return has_shards, [folder.read(name) for name in (MANIFEST, UNFINISHED) if name in names]


def _what_stays(output: str, before: list[bytes]) -> str:
    """What a run that was stopped leaves behind, in a folder that had the manifests `before`."""
    has_shards, manifests = _written_in(output)
    if before and manifests == before:
        return "no shard was finished, so the folder is as it was"
    if has_shards:
        return "the shards that are finished stay, and --resume goes on with them"
    return "no shard was finished, so nothing was written"


def _check_flags(arguments: argparse.Namespace) -> None:
    """`UsageError` for flags that do not go together, and for an empty path."""
    if "" in arguments.corpus:
        raise UsageError("a path is empty; give the name of a file or folder")
    if arguments.resume and arguments.force:
        raise UsageError("--resume or --force, not both")
    is_chat = _is_chat(arguments)
    if arguments.chats and arguments.chat_column is not None:
        raise UsageError("--chats recognizes records by their fields, --chat-column names one: give either")
    if not is_chat and (arguments.chat_template or arguments.chat_template_file):
        raise UsageError(
            "--chat-template and --chat-template-file are for chats: give --chat-column NAME or --chats"
        )
    if arguments.mask_form or arguments.mask_parts is not None:
        arguments.mask = True
    if not is_chat and arguments.mask:
        raise UsageError("--mask is for chats: give --chat-column NAME or --chats")
    if arguments.preference and not arguments.chats:
        raise UsageError("--preference is for --chats")
    if arguments.whole and (arguments.pack is None or not is_chat):
        raise UsageError("--whole is for packed chats: give --pack LENGTH, and --chat-column NAME or --chats")
    if arguments.position_ids and arguments.pack is None:
        raise UsageError("--position-ids is for --pack LENGTH: otherwise each row is a document")


def _say(found: EncodedCorpus, arguments: argparse.Namespace, tokenizer: Tokenizer) -> None:
    """Print what was written, and note what was left out and what else should be known."""
    from ..data.corpora.document_notes import in_words
    from ..data.corpora.records import is_array_of_records

    if arguments.json:
        _output.write_json(answer(found.to_dict(), model=tokenizer.name, path=arguments.output))
    else:
        shards = f"{counted(len(found.shards), 'shard')} in {terminal.one_line(arguments.output)}"
        tokens = counted(found.tokens, "token")
        if (answers := found.manifest.get("assistant_tokens")) is not None:
            tokens += f" ({answers} of the assistant)"
        if padding := found.manifest.get("padding_tokens"):
            tokens += f" ({padding} of padding)"
        documents = counted(found.documents, "document")
        _output.write(f"{documents}, {tokens}, {shards}; {_added(arguments, tokenizer)}\n".encode())
        if _is_chat(arguments) and (lengths := found.manifest.get("lengths")):
            numbers = ", ".join(f"{count} up to {most}" for most, count in lengths.items())
            _output.write(
                f"chats by tokens: {numbers}; the longest has {found.manifest['longest']}\n".encode()
            )
    if found.bad_records:
        _output.note(f"ggufbpe: {counted(found.bad_records, 'bad record')} left out")
    say_what_was_left_out(found.skipped, "name a file to encode it")
    for path in arguments.corpus:
        if not _is_chat(arguments) and is_array_of_records(path):
            _output.note(
                f"ggufbpe: {terminal.one_line(path)} is an array of records, and was encoded as one text; --chats "
                "reads chats in it, and jq -c '.[]' makes JSON lines of it"
            )
    for note in in_words(found.manifest.get("notes", {})):
        _output.note(f"ggufbpe: {note}")
    if left := found.manifest["left_over_tokens"]:
        answers = found.manifest.get("left_over_assistant_tokens")
        tokens = counted(left, "token") + ("" if answers is None else f" ({answers} of the assistant)")
        fill = "fills" if left == 1 else "fill"
        are = "is" if left == 1 else "are"
        _output.note(f"ggufbpe: {tokens} at the end {fill} no row of {arguments.pack} and {are} left out")


def _is_chat(arguments: argparse.Namespace) -> bool:
    return arguments.chats or arguments.chat_column is not None


def _added(arguments: argparse.Namespace, tokenizer: Tokenizer) -> str:
    """What was put around each document, in words. Chats are prompts, to which the tokenizer adds what it wants."""
    is_chat = _is_chat(arguments)
    has_bos, has_eos = (
        wanted or (is_chat and bool(added))
        for wanted, added in zip((arguments.bos, arguments.eos), tokenizer.vocabulary.added)
    )
    begin = f"documents begin {'with' if has_bos else 'without'} BOS"
    end = f"and end {'with' if has_eos else 'without'} EOS"
    if not is_chat or (has_bos and has_eos):
        return f"{begin} {end}"
    if has_bos or has_eos:
        but = ", unless the chat template writes it"
        return f"{begin}{but}, {end}" if has_eos else f"{begin} {end}{but}"
    return f"{begin} {end}, unless the chat template writes them"


class _Told:
    """Reports bad records and progress."""

    def __init__(self) -> None:
        self.bar = Bar()
        self._bad = 0
        self._first: tuple[float, int] | None = None  # seconds and bytes read; a resumed run starts with some

    def report(self, where: str, error: Exception) -> None:
        """Report a record that was left out."""
        self._bad += 1
        if self._bad <= _SHOWN:
            _output.warning(f"{where}: left out: {error}")
        elif self._bad == _SHOWN + 1:
            _output.warning("more records are left out; their number is in the manifest")

    def show(self, progress: Progress) -> None:
        """Draw the bar."""
        seconds = self.bar.seconds
        if self._first is None:
            self._first = seconds, progress.done
        if not self.bar.is_due():
            return
        time, read = seconds - self._first[0], progress.done - self._first[1]
        rate = read / time if time > 0 else 0.0
        left = duration((progress.total - progress.done) / rate) if rate and progress.total else ""
        tokens = f"{progress.counts['tokens'] / 1e6:.1f}M tokens"
        self.bar.draw(
            progress.share, f"{rate / 1e6:.0f} MB/s {tokens} {left:>9} {terminal.one_line(progress.item)}"
        )
