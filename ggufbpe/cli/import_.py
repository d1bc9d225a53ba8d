"""`ggufbpe import`: other programs' tokenizer files as a vocabulary that llama.cpp loads, and how far ids agree."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import printable
from ._arguments import Parser
from ._files import require_free, write_outputs
from .export import add_check, agreement_lines, lines_of, tell, unexplained

if TYPE_CHECKING:
    from ..convert.imported import Imported
    from ..convert.parity import Agreement

_DESCRIPTION = """\
Make a GGUF of only metadata, which llama.cpp loads with vocab_only, from the files of another program:

  tokenizer.json   of Hugging Face's tokenizers: BPE, SentencePiece's BPE (SPM), Unigram (UGM), WordPiece (WPM)
  tokenizer.model  of sentencepiece, also as spiece.model and sentencepiece.bpe.model: BPE (SPM), unigram (UGM)
  vocab.txt        of BERT: WordPiece (WPM)
  merges.txt       of GPT-2, with vocab.json beside it, as older repositories have them: BPE

In a directory, the first of these is read. tokenizer_config.json, special_tokens_map.json, added_tokens.json and \
chat_template.jinja beside the file are read, too: special tokens, flags, the chat template.

The name of a byte pair encoding's pre-tokenizer is found from the patterns; the output says how, and how sure that \
is, and lists everything that llama.cpp has no place for. If the library that reads the file is installed, its ids \
are compared with those of the new vocabulary.

The exit code is 0 if the file is written, 1 if ids then differ without a limit that explains it, 2 if nothing was \
written."""
_EXAMPLES = """\
examples:
  ggufbpe import tokenizer.json -o vocab.gguf
  ggufbpe import Qwen2-7B/ -o qwen2.gguf --sample corpus.txt
  ggufbpe import llama-2/tokenizer.model -o llama-2.gguf
  ggufbpe import tokenizer.json --pre llama-bpe --architecture llama --name "My model" """


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES.rstrip())
    parser.add_argument(
        "path",
        metavar="PATH",
        help="a tokenizer.json, .model, vocab.txt or merges.txt, or a directory with one",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        default="vocab.gguf",
        help="the file to write (default: vocab.gguf), or -",
    )
    parser.add_argument("--force", action="store_true", help="write over an existing file")
    parser.add_argument("--pre", metavar="NAME", help="the name of the pre-tokenizer, instead of finding it")
    parser.add_argument(
        "--architecture",
        metavar="NAME",
        help="the model's architecture (default: that of the model that was exported, or llama, t5 or bert)",
    )
    parser.add_argument("--name", metavar="TEXT", help="the model's name (default: as above, or none)")
    add_check(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..convert.imported import pack
    from ..convert.importers.import_files import file_in, import_file

    source = file_in(arguments.path)
    target = arguments.output
    if target != "-":
        require_free(target, source, arguments.force)
    sample = [line for path in arguments.sample for line in lines_of(path)]
    imported = import_file(
        source, pre=arguments.pre, architecture=arguments.architecture, name=arguments.name
    )
    data = pack(imported.metadata)
    found = _agreement(data, source, sample, arguments.no_check)
    write_outputs({target: data})
    for line in _lines(imported, target, len(data), found):
        tell(line, on_stderr=target == "-")
    return int(not isinstance(found, str) and unexplained(found, imported.limits))


_UNSAID = {
    "vocab.txt": "a vocab.txt does not say how text is normalized",
    "merges.txt": "merges.txt does not say how text is split",
}


def _agreement(data: bytes, source: str, sample: list[str], skip: bool) -> Agreement | str | None:
    """How the new vocabulary's ids agree with the library's; a sentence if that could not be determined.

    Opening the vocabulary also shows that it can be opened.
    """
    from .._util.extras import NotInstalledError
    from ..convert.importers.import_files import detect_format
    from ..convert.parity import agreement, library_reading
    from ..models.loading import load_vocabulary
    from ..tokenizer import Tokenizer

    with tempfile.TemporaryDirectory(prefix="ggufbpe-") as folder:
        path = os.path.join(folder, "vocab.gguf")
        with open(path, "wb") as file:
            file.write(data)
        # No warnings about how llama.cpp treats special tokens: `doctor` reports them.
        tokenizer = Tokenizer(load_vocabulary(path))
    if skip:
        return None
    try:
        library = library_reading(source, tokenizer.vocabulary)
    except NotInstalledError as error:
        return f"not checked: {error}"
    except Exception as error:
        return f"not checked: the library does not accept the file: {printable(str(error), 200)}"
    if library is None:
        return f"not checked: {_UNSAID[detect_format(source)]}, so ids depend on the program"
    return agreement(tokenizer, library, sample)


def _lines(imported: Imported, target: str, size: int, found: Agreement | str | None) -> Iterator[str]:
    """The report, for people."""
    if target != "-":
        yield f"wrote {target} ({size} bytes)"
    tokens = imported.metadata["tokenizer.ggml.tokens"]
    merges = imported.metadata.get("tokenizer.ggml.merges")
    if merges is None:
        yield f"{len(tokens)} tokens, model {imported.metadata['tokenizer.ggml.model']}"
    else:
        yield f"{len(tokens)} tokens, {len(merges)} merges"
        how = "as given" if imported.recognized is None else imported.recognized.sentence
        yield f"pre-tokenizer: {imported.pre} ({how})"
    for limit in imported.limits:
        yield f"limit: {limit.what}"
    if isinstance(found, str):
        yield found
    elif found is not None:
        yield from agreement_lines(found)
