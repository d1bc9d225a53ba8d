"""Other tokenizers' packages behind one interface: what each reads, and how it is asked for ids.

A package is imported when it is opened: `ModuleNotFoundError` if it is not installed, and its own error if it does
not accept the file. library_child.py runs this module without ggufbpe, so it imports nothing from the package. An
`Adapter` may panic or hang on a text; the caller has to cope.
"""

from __future__ import annotations

import os
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
from types import SimpleNamespace
from typing import Any, NamedTuple

Encode = Callable[[str, bool, bool], "list[int]"]
"""The ids of a text, given whether to add special tokens and whether to parse those in the text."""
Question = dict[str, Any]


class Adapter(NamedTuple):
    """A package with a tokenizer loaded."""

    version: str
    encode: Encode
    adds_special: bool = True  # whether it can add BOS and EOS
    parses_special: bool = True  # whether it can find control tokens in a text
    answer: Callable[[Question], Any] | None = None  # to a question about chats, where it has templates


def open_tokenizers(data: bytes) -> Adapter:
    """Hugging Face's `tokenizers` with a tokenizer.json: 0.x, or 1.0, whose interface differs."""
    package: Any = import_module("tokenizers")
    version = str(package.__version__)
    if not hasattr(package.Tokenizer, "from_buffer"):
        return Adapter(version, _pipeline(package, data))
    tokenizer = package.Tokenizer.from_buffer(data)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: str, add_special: bool, parse_special: bool) -> list[int]:
        tokenizer.encode_special_tokens = not parse_special
        return list(tokenizer.encode(text, add_special_tokens=add_special).ids)

    return Adapter(version, encode)


def _pipeline(package: Any, data: bytes) -> Encode:
    """An encoder of tokenizers 1.0, which reads a file and refuses what it cannot run only when a text is encoded."""
    with tempfile.NamedTemporaryFile(prefix="ggufbpe-", suffix=".json", delete=False) as file:
        file.write(data)
    try:
        tokenizer = package.Tokenizer.from_file(file.name)
    finally:
        os.unlink(file.name)
    tokenizer.truncation = tokenizer.padding = None
    tokenizer.encode("a")

    def encode(text: str, add_special: bool, parse_special: bool) -> list[int]:
        flags = {"add_special_tokens": add_special, "encode_special_tokens": not parse_special}
        return list(tokenizer.encode(text, **flags).ids)

    return encode


def open_tiktoken(
    name: str,
    ranks: bytes | None = None,
    pattern: str = "",
    special: Mapping[str, int] | None = None,
    *,
    always: Iterable[str] = (),
    model_ids: Sequence[int] | None = None,
) -> Adapter:
    """OpenAI's `tiktoken` with one of its own encodings, or with the `ranks` of a file and what the file lacks.

    `always` are the special tokens found even when not parsed, `model_ids` the model's id for each of tiktoken's.
    `ValueError` for a text with a byte that has no token: tiktoken panics on it, and prints pages.
    """
    package: Any = import_module("tiktoken")
    missing: list[int] = []
    if ranks is None:
        encoding = package.get_encoding(name)
    else:
        by_bytes = {b64decode(token): int(rank) for token, rank in map(bytes.split, ranks.splitlines())}
        missing = [byte for byte in range(256) if bytes([byte]) not in by_bytes]
        encoding = package.Encoding(
            name, pat_str=pattern, mergeable_ranks=by_bytes, special_tokens=dict(special or {})
        )
    unparsed = set(always)

    def encode(text: str, add_special: bool, parse_special: bool) -> list[int]:
        if absent := set(text.encode()).intersection(missing):
            raise ValueError(f"the byte 0x{min(absent):02X} has no token")
        allowed = "all" if parse_special else unparsed
        ids = encoding.encode(text, allowed_special=allowed, disallowed_special=())
        return list(ids) if model_ids is None else [model_ids[token] for token in ids]

    return Adapter(metadata.version("tiktoken"), encode, adds_special=False)


def open_tiktoken_file(name: str, ranks: bytes, pattern: str, special: Mapping[str, int]) -> Adapter:
    """tiktoken with a file of ranks, a pattern and special tokens: its own definition of `name`, if it has one."""
    known = _known_encoding(name) or {"pat_str": pattern, "special_tokens": special}
    taken = {int(line.split()[1]) for line in ranks.splitlines()}
    free = {text: token for text, token in known["special_tokens"].items() if token not in taken}
    return open_tiktoken(name, ranks, known["pat_str"], free)


def _known_encoding(name: str) -> dict[str, Any] | None:
    """Pattern and special tokens of an encoding that tiktoken knows by name, without the network."""
    try:
        public: Any = import_module("tiktoken_ext.openai_public")
    except ImportError:
        return None
    make = public.ENCODING_CONSTRUCTORS.get(name)
    if make is None:
        return None
    for loader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        setattr(public, loader, lambda *_, **__: {})
    arguments: dict[str, Any] = make()
    return arguments


def open_sentencepiece(data: bytes, *, add_bos: bool = False, add_eos: bool = False) -> Adapter:
    """Google's `sentencepiece` with a tokenizer.model; `add_bos` and `add_eos` are the model's flags."""
    package: Any = import_module("sentencepiece")
    processor = package.SentencePieceProcessor(model_proto=data)

    def encode(text: str, add_special: bool, parse_special: bool) -> list[int]:
        return list(processor.encode(text, add_bos=add_special and add_bos, add_eos=add_special and add_eos))

    return Adapter(metadata.version("sentencepiece"), encode, parses_special=False)


_MEMORY = 1 << 32  # bytes that a folder and its templates may take
_LONGEST = 1 << 26  # characters of a prompt


def open_transformers(folder: str) -> Adapter:
    """Hugging Face's `transformers` with the tokenizer and the chat templates of a folder.

    Its templates run in jinja2's sandbox, and no code of the folder is run. The process may take `_MEMORY` bytes from
    here on. A question has the arguments of `apply_chat_template`, and as "now" the time that the clock shows, in
    ISO 8601, if it is not to be the real one; the answer is the prompt and its ids. The empty question is answered with
    what the tokenizer has: templates, special and added tokens.
    """
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type] # takes seconds, and no tokenizer needs it
    package: Any = import_module("transformers")
    tokenizer = package.AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)

    def encode(text: str, add_special: bool, parse_special: bool) -> list[int]:
        flags = {"add_special_tokens": add_special, "split_special_tokens": not parse_special}
        return list(tokenizer(text, **flags)["input_ids"])

    def answer(question: Question) -> Any:
        if not question:
            return _of_tokenizer(tokenizer)
        with _clock_at(question.pop("now", None)):
            prompt = tokenizer.apply_chat_template(**question, tokenize=False)
        if len(prompt) > _LONGEST:
            raise ValueError(f"the prompt has {len(prompt)} characters")
        return {"prompt": prompt, "ids": encode(prompt, False, True)}

    return Adapter(str(package.__version__), encode, answer=answer)


def _of_tokenizer(tokenizer: Any) -> dict[str, Any]:
    """The templates by name, in which the default one is "", the special tokens by name, and the added ones by id."""
    templates = tokenizer.chat_template or {}
    named = templates if isinstance(templates, dict) else {"default": templates}
    added = tokenizer.added_tokens_decoder
    return {
        "templates": {"" if name == "default" else name: text for name, text in named.items()},
        "special": {name: str(text) for name, text in tokenizer.special_tokens_map.items()},
        "added": {str(token): [added[token].content, bool(added[token].special)] for token in added},
    }


@contextmanager
def _clock_at(now: str | None) -> Iterator[None]:
    """The time that templates are told by `strftime_now` of transformers."""
    templates: Any = import_module("transformers.utils.chat_template_utils")
    real = templates.datetime
    if now is not None:
        templates.datetime = SimpleNamespace(now=lambda: real.fromisoformat(now))
    try:
        yield
    finally:
        templates.datetime = real
