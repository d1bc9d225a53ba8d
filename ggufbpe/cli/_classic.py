"""`explain`, `tokenize` and `compare` with a vocabulary that `train` wrote as JSON."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, BinaryIO

from .._util.llama_cpp_states import FOLLOWED
from ..analysis.views import terminal
from . import _output
from ._arguments import UsageError

if TYPE_CHECKING:
    from .._util.escapes import Unescaped
    from ..data.training.trained_vocabulary import TrainedVocabulary
    from ..hub.model_location import ModelLocation
    from ..tokenizer.trace import Trace

_READ = 1 << 16  # bytes


def trained_path(
    path: str | ModelLocation | None, arguments: argparse.Namespace, *without: str
) -> str | None:
    """The path if `train` wrote a vocabulary there as JSON; `UsageError` for flags that it does not take."""
    if not isinstance(path, str) or not path.endswith(".json"):
        return None
    from ..data.training.load_vocabulary import is_trained_vocabulary

    if not is_trained_vocabulary(path):
        return None
    for flag in (*without, "--override-kv", "--llama-cpp"):
        given = getattr(arguments, flag.strip("-").replace("-", "_"), None)
        if given is not None and given is not False and given not in ([], "", FOLLOWED):  # 0 is given, too
            raise UsageError(f"{flag} needs a GGUF; {path} is a vocabulary that train wrote as JSON")
    return path


def classic_vocabulary(arguments: argparse.Namespace, *without: str) -> TrainedVocabulary | None:
    """The vocabulary that -m names if `train` wrote it as JSON; it does not take the flags `without`."""
    path = trained_path(arguments.model, arguments, *without)
    if path is None:
        return None
    from ..data.training.load_vocabulary import load_trained_vocabulary

    return load_trained_vocabulary(path)


def classic_trace(
    vocabulary: TrainedVocabulary, stream: BinaryIO | Unescaped, arguments: argparse.Namespace
) -> Trace:
    """The trace of all of a text, which must be UTF-8."""
    from ..data.training.load_vocabulary import utf8_text
    from ..data.training.trace_text import trace_text

    text = utf8_text(b"".join(iter(lambda: stream.read(_READ), b"")))
    return trace_text(vocabulary, text, parse_special=arguments.parse_special)


def write_tokens(trace: Trace, arguments: argparse.Namespace) -> None:
    """Write the tokens of a text as `tokenize` does for other models."""
    if arguments.json:
        from ..analysis.verify.align import Placed

        rows = [Placed(each.id, each.piece, each.start, each.end).to_dict() for each in trace.tokens]
        _output.write(terminal.json_bytes(rows))
        return
    pieces = (f"{each.id:6} -> '{terminal.one_line(each.text)}'" for each in trace.tokens)
    count = [f"Total number of tokens: {len(trace.tokens)}"] if arguments.show_count else []
    lines = [*([str(trace.ids)] if arguments.ids else pieces), *count]
    _output.write_lines(lines)
