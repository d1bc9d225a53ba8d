"""`ggufbpe encode`: a corpus as shards of ids, in the forms that trainers read."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from .._util.progress import Progress
from .._util.wording import counted
from ..analysis.views import terminal
from ..analysis.views.answers import answer
from ..errors import printable
from . import _output
from ._arguments import Parser, UsageError, add_model, require_no_models
from ._chat import add_template_flags, template_of
from ._files import say_what_was_left_out
from ._given_models import opened_tokenizer
from ._progress import Bar, duration
from ._signals import termination_as_exit

if TYPE_CHECKING:
    from ..data.corpora.shard_reader import EncodedCorpus

_DESCRIPTION = """\
Encode a corpus to shards of ids: OUT/part-00000.bin and so on, with suffixes by format, and OUT/manifest.json with \
counts, hashes and the fingerprint of the tokenizer.

The corpus is files and directories, or URLs that fsspec opens. In .jsonl and .ndjson files each line is a document, \
in .parquet, .arrow and .csv files each row. Any other file is one document, or with --lines each of its lines is. All \
but parquet and arrow may be compressed, as .gz or .zst. A document becomes the ids of its text, without special \
tokens, and EOS. Order is kept, and the output is the same for any number of workers.

However a run is stopped, the shards that are there are complete. With --resume it continues and gives the same bytes \
as an uninterrupted run; it refuses if the corpus, the settings or the tokenizer have changed. Formats and the \
manifest: docs/corpora.md."""
_EXAMPLES = """\
examples:
  ggufbpe encode -m model.gguf wiki.jsonl.gz -o shards
  ggufbpe encode -m model.gguf corpus -o shards --format npy --pack 2048
  ggufbpe encode -m model.gguf chats.jsonl -o shards --format parquet --chat-column messages
  ggufbpe encode -m model.gguf chats.jsonl -o shards --chat-column messages --chat-template known:chatml
  ggufbpe encode -m model.gguf wiki.jsonl.gz -o shards --resume --on-error skip
  ggufbpe encode -m model.gguf s3://bucket/corpus -o s3://bucket/shards --ray 10.0.0.1:6379"""

FORMATS = ("megatron", "nanotron", "npy", "parquet", "arrow")
_SHOWN = 10  # bad records
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile("([0-9]+)([KMG]?)")


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    add = parser.add_argument
    add("corpus", nargs="+", metavar="CORPUS", help="files, directories and URLs")
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
    add(
        "--chat-column",
        metavar="NAME",
        help="encode chats: the column or field with messages, for the model's template",
    )
    add_template_flags(parser)
    parser.add_switch("--lines", help="take each line of a plain text file as a document")
    parser.add_switch("--bos", help="put BOS before each document")
    add("--no-eos", dest="eos", action="store_false", help="put no EOS behind each document")
    parser.add_switch("--parse-special", help="encode special tokens written out in a text as these tokens")
    add(
        "--pack",
        type=int,
        metavar="LENGTH",
        help="join all documents and cut the ids into rows of this length",
    )
    add(
        "--shard-size",
        default="256M",
        metavar="BYTES",
        help="bytes of ids per shard, such as 1G (default: 256M)",
    )
    add("--workers", type=int, metavar="N", help="encoding threads (default: one per processor)")
    add(
        "--ray",
        metavar="ADDRESS",
        help="encode on a Ray cluster: its address, auto, or local for one of this machine's processes",
    )
    add(
        "--on-error",
        choices=("fail", "skip"),
        default="fail",
        help="what to do with a bad record: stop (default), or leave it out, count and report it",
    )
    parser.add_switch("--resume", help="continue a run that was stopped")
    parser.add_switch("--force", help="start again, replacing the shards in OUT")
    parser.add_switch("--json", help="print one object: model, path, and the manifest")


def run(arguments: argparse.Namespace) -> int:
    require_no_models(arguments.corpus, "encode", arguments)
    size = _SIZE.fullmatch(arguments.shard_size)
    if size is None:
        raise UsageError(
            f"--shard-size is a number of bytes, or such as 64M, not {printable(arguments.shard_size)}"
        )
    if arguments.resume and arguments.force:
        raise UsageError("--resume or --force, not both")
    if arguments.chat_column is None and (arguments.chat_template or arguments.chat_template_file):
        raise UsageError("--chat-template and --chat-template-file are for chats: give --chat-column NAME")
    from ..data.corpora.corpus_encoding import encode_corpus

    tokenizer = opened_tokenizer(arguments)
    template = template_of(arguments, tokenizer)
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
                chat_template=template,
                by_line=arguments.lines,
                bos=arguments.bos,
                eos=arguments.eos,
                parse_special=arguments.parse_special,
                pack=arguments.pack,
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
        told.bar.clear()
        _output.note("ggufbpe: stopped; the shards that are finished stay, and --resume goes on with them")
        raise
    finally:
        told.bar.clear()
    _say(found, arguments, tokenizer.name)
    return 0


def _say(found: EncodedCorpus, arguments: argparse.Namespace, model: str) -> None:
    """Print what was written, and note what was left out."""
    if arguments.json:
        _output.write_json(answer(found.to_dict(), model=model, path=arguments.output))
    else:
        shards = f"{counted(len(found.shards), 'shard')} in {terminal.one_line(arguments.output)}"
        tokens = counted(found.tokens, "token")
        documents = counted(found.documents, "document")
        _output.write(f"{documents}, {tokens}, {shards}; {_added(arguments)}\n".encode())
    if found.bad_records:
        _output.note(f"ggufbpe: {counted(found.bad_records, 'bad record')} left out")
    say_what_was_left_out(found.skipped, "name a file to encode it")
    if left := found.manifest["left_over_tokens"]:
        _output.note(
            f"ggufbpe: {counted(left, 'token')} at the end fill no row of {arguments.pack} and are left out"
        )


def _added(arguments: argparse.Namespace) -> str:
    """What was put around each document, in words."""
    bos = "BOS before" if arguments.bos else "no BOS before"
    eos = "EOS behind" if arguments.eos else "no EOS behind"
    but = ", unless the chat template writes them" if arguments.chat_column is not None else ""
    return f"{bos} and {eos} each document{but}"


class _Told:
    """Reports bad records and progress."""

    def __init__(self) -> None:
        self.bar = Bar()
        self._bad = 0
        self._first: tuple[float, int] | None = None  # seconds and bytes read; a resumed run starts with some

    def report(self, where: str, error: Exception) -> None:
        """Report a record that was left out."""
        self._bad += 1
        self.bar.clear()
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
