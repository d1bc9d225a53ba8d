"""`ggufbpe info`: what a model file says about itself and its tokenizer.

It also works on files whose tokenizer is not supported: their metadata is shown, with a description in words.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..analysis.doctor.tensor_checks import broken_tensors
from ..analysis.views import terminal
from ..errors import GGUFError, UnsupportedTokenizerError, printable
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, GGUFValueType, TokenizerKey, TokenType
from ..gguf.reader import GGUFFile
from ..hub.model_location import locate
from ..models import SUPPORTED, tokenizer_model
from ..models.loading import load
from ..models.vocabulary import TokenAttribute, Vocabulary, emit_warnings
from ..native import native
from . import _output
from ._arguments import Parser, add_model_first, add_override_kv, model_path, overrides_of
from .list_pre import names_alike

if TYPE_CHECKING:
    from rich.console import RenderableType

_DESCRIPTION = """\
Show what a model file says about its tokenizer: the model and its pre-tokenizer, sizes, flags, special tokens \
and the tokens that end a generation, all after llama.cpp's loading rules. And which engine of ggufbpe makes the ids.

For tokenizers that ggufbpe does not read, the metadata is shown. If the tokenizer is broken, the \
file's part is shown, then the error, and the exit code is 2. A file whose tensors llama.cpp refuses, as after a \
download that was cut off, is marked as broken."""
_EXAMPLES = """\
examples:
  ggufbpe info
  ggufbpe info model.gguf
  ggufbpe info model.gguf --json"""

_KEY_FILE_TYPE = "general.file_type"
_FILE_TYPE_GUESSED = (
    1024  # set in a file type that was guessed from the tensors; llama.h: LLAMA_FTYPE_GUESSED
)
_FLAGS = ("add_bos", "add_eos", "add_sep", "add_space_prefix")
_PRE_FLAGS = ("ignore_merges", "byte_encode", "escape_whitespaces", "clean_spaces")
_LABEL_WIDTH = 14

Facts = dict[str, Any]  # a JSON object


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model_first(parser)
    add_override_kv(parser)
    parser.add_argument("--json", action="store_true", help="print one object")


def run(arguments: argparse.Namespace) -> int:
    model = locate(model_path(arguments))
    broken: GGUFError | None = None
    with GGUFFile(model.opened()) as file:
        file.require_first_shard()
        facts = _file_facts(file)
        if model.store or model.remote:
            facts["file"]["name"] = model.name
            facts["file"] |= {"note": model.note} if model.note else {}
        if TokenizerKey.MODEL not in file:
            facts["tokenizer"] |= {"description": "no tokenizer in this file"}
            facts["metadata"] = _tokenizer_metadata(file)
        else:
            try:
                vocabulary = load(model.opened(), overrides_of(arguments))[0]
                emit_warnings(vocabulary)
                facts |= _vocabulary_facts(vocabulary, facts["tokenizer"])
            except UnsupportedTokenizerError:
                facts |= _unsupported_facts(file)
            except GGUFError as error:
                broken = error
                facts["tokenizer"]["problem"] = str(error)
    if arguments.json:
        _output.write(terminal.json_bytes(facts))
    else:
        _show(facts)
    if broken is not None:
        raise broken
    return 0


# ---- gathering ------------------------------------------------------------------------------------------


def _file_facts(file: GGUFFile) -> Facts:
    """Facts of any GGUF. A value of an unexpected type is shown as if it were missing."""
    model = _string(file, TokenizerKey.MODEL)
    return {
        "file": {
            "path": file.path,
            "size": file.size,
            "version": file.version,
            "byte_order": file.byteorder,
            "keys": len(file),
            "tensors": file.tensor_count,
            **_problem_of_tensors(file),
        },
        "general": {
            "architecture": _string(file, KEY_ARCHITECTURE),
            "name": _string(file, KEY_NAME),
            "file_type": _file_type(file),
        },
        "tokenizer": {
            "model": model,
            "description": None if model is None else tokenizer_model(model).description,
            "supported": model in SUPPORTED,
            "pre": _string(file, TokenizerKey.PRE),
        },
        "chat_templates": _chat_templates(file),
        "engine": "reference" if native is None else "native",
    }


def _problem_of_tensors(file: GGUFFile) -> dict[str, str]:
    """What `doctor` says about the tensors, as "problem", if llama.cpp refuses them."""
    finding = next(broken_tensors(file), None)
    return {} if finding is None else {"problem": finding.what}


def _string(file: GGUFFile, key: str) -> str | None:
    if key not in file or file.value_type(key) is not GGUFValueType.STRING:
        return None
    return str(file[key]).partition("\0")[0]


def _file_type(file: GGUFFile) -> str | None:
    value = file[_KEY_FILE_TYPE] if _KEY_FILE_TYPE in file else None  # noqa: SIM401 - no dict, has no get
    if not isinstance(value, int):
        return None
    from gguf import LlamaFileType

    number = value & ~_FILE_TYPE_GUESSED
    names = {int(file_type): file_type.name for file_type in LlamaFileType}
    name = names.get(number, "unknown").removeprefix("MOSTLY_")
    return f"{name} ({number})" + (", guessed" if value & _FILE_TYPE_GUESSED else "")


def _chat_templates(file: GGUFFile) -> dict[str, int]:
    """The length of each chat template in characters; the unnamed one is "default"."""
    prefix = TokenizerKey.CHAT_TEMPLATE
    keys = [key for key in file if key == prefix or key.startswith(prefix + ".")]
    return {key[len(prefix) + 1 :] or "default": len(_string(file, key) or "") for key in keys}


def _vocabulary_facts(vocabulary: Vocabulary, tokenizer: Facts) -> Facts:
    """The facts of a supported tokenizer, by llama.cpp's loading rules."""
    entry = vocabulary.pre_tokenizer
    kinds = Counter(attribute & ~_STRIP for attribute in vocabulary.attributes)
    strips = {
        name: sum(1 for attribute in vocabulary.attributes if attribute & flag)
        for name, flag in (("lstrip", TokenAttribute.LSTRIP), ("rstrip", TokenAttribute.RSTRIP))
    }
    return {
        "tokenizer": {
            **tokenizer,
            "pre": vocabulary.pre,
            "family": entry.family,
            "splits_alike": names_alike(entry),
            "patterns": list(entry.patterns),
        },
        "sizes": {
            "tokens": len(vocabulary.tokens),
            "merges": len(vocabulary.merges),
            "types": {_kind(attribute): number for attribute, number in kinds.most_common()},
            **{name: number for name, number in strips.items() if number},
        },
        "flags": {
            **{name: getattr(vocabulary, name) for name in _FLAGS},
            **{name: getattr(entry, name) for name in _PRE_FLAGS},
            **({"lowercase": vocabulary.lowercase} if vocabulary.tokenizer_model.makes_lower_case else {}),
        },
        "special_tokens": [
            {"name": name, "id": token, "text": vocabulary.tokens[token]}
            for name, token in vocabulary.special_ids.items()
            if token is not None
        ],
        "end_of_generation": [
            {"id": token, "text": vocabulary.tokens[token]} for token in sorted(vocabulary.eog_ids)
        ],
        "corrections": [correction._asdict() for correction in vocabulary.corrections],
    }


_STRIP = TokenAttribute.LSTRIP | TokenAttribute.RSTRIP


def _kind(attribute: int) -> str:
    """The names of the flags, as "control" or "normal+control"."""
    names = [flag.name or "" for flag in TokenAttribute if flag and flag & attribute]
    return "+".join(names).lower().replace("_", "-") or "undefined"


def _unsupported_facts(file: GGUFFile) -> Facts:
    """The metadata of an unsupported tokenizer, with nothing added."""
    tokens = _tokens(file)
    kinds = Counter(_array(file, TokenizerKey.TOKEN_TYPE))
    names = {int(kind): kind.name.lower().replace("_", "-") for kind in TokenType}
    sizes: Facts = {"tokens": len(tokens)}
    if TokenizerKey.MERGES in file:
        sizes["merges"] = file.array_length(TokenizerKey.MERGES)
    if kinds:
        sizes["types"] = {names.get(kind, f"type {kind}"): n for kind, n in kinds.most_common()}
    special = []
    for key in file:
        token = file[key] if key.endswith("_token_id") and not file.array_length(key) else None
        if key.startswith(_PREFIX) and isinstance(token, int):
            text = tokens[token] if 0 <= token < len(tokens) else None
            name = key.removeprefix(_PREFIX).removesuffix("_token_id")
            special.append({"name": name, "id": token, "text": text})
    return {"sizes": sizes, "special_tokens": special, "metadata": _tokenizer_metadata(file)}


_PREFIX = "tokenizer.ggml."


def _tokens(file: GGUFFile) -> list[str]:
    key = TokenizerKey.LIST
    is_list = key in file and file.element_type(key) is GGUFValueType.STRING
    return [str(token) for token in file[key]] if is_list else []  # type: ignore[union-attr]


def _array(file: GGUFFile, key: str) -> list[int]:
    is_list = key in file and file.element_type(key) is GGUFValueType.INT32
    return [int(number) for number in file[key]] if is_list else []  # type: ignore[union-attr]


def _tokenizer_metadata(file: GGUFFile) -> Facts:
    """The keys of the tokenizer; for arrays and long strings, their kind and length."""
    found: Facts = {}
    for key in file:
        if not key.startswith("tokenizer."):
            continue
        element = file.element_type(key)
        if element is not None:
            found[key] = f"{file.array_length(key)} of {element.name.lower()}"
        else:
            value = file[key]
            long = isinstance(value, str) and len(value) > 200
            found[key] = f"{len(str(value))} characters" if long else value
    return found


# ---- showing --------------------------------------------------------------------------------------------


def _show(facts: Facts) -> None:
    """Print the facts in sections, one per line."""
    from ..analysis.views.drawing import drawn

    width = _output.terminal_width()
    for line in drawn(_parts(facts, width), False, width):
        _output.write(f"{line}\n".encode("utf-8", "backslashreplace"))


def _parts(facts: Facts, width: int | None) -> Iterator[RenderableType]:
    for number, (title, rows) in enumerate(_sections(facts)):
        yield from [""] * (number > 0)
        yield title
        column = max(_LABEL_WIDTH, *(len(label) for label, _, _ in rows)) + 4
        if not rows[0][0]:  # a section of values without labels
            column = 2
        for label, value, kind in rows:
            yield from _row(label, column, terminal.one_line(value), width, kind)


def _row(label: str, column: int, value: str, width: int | None, kind: str) -> Iterator[RenderableType]:
    """Label and value side by side; on a narrow terminal the value has its own lines."""
    from ..analysis.views.drawing import beside, pattern_lines, uncut

    if width is not None and label and width < 3 * column:
        yield f"  {label}"
        label, column = "", 4
    if kind == "path":
        yield uncut(f"{f'  {label}':{column}}{value}")
        return
    if kind == "pattern":
        value = pattern_lines(value, width and width - column - 1)
    yield beside(f"  {label}", value, column)


Rows = list[tuple[str, str, str]]  # label, value, "path" or "pattern" where the value is one


def _sections(facts: Facts) -> Iterator[tuple[str, Rows]]:
    name = facts["file"].get("name")
    found = [*_plain([("by name", name)] if name else []), ("path", facts["file"]["path"], "path")]
    noted = [("note", facts["file"]["note"])] if "note" in facts["file"] else []
    yield "file", [*found, *_plain([*_file_rows(facts), *noted])]
    yield "tokenizer", list(_tokenizer_rows(facts))
    if "flags" in facts:
        yes, no = (
            ", ".join(name for name, value in facts["flags"].items() if value is wanted) or "none"
            for wanted in (True, False)
        )
        yield "flags", _plain([("on", yes), ("off", no)])
    if facts.get("special_tokens"):
        yield (
            "special tokens",
            _plain([(token["name"], _token(token)) for token in facts["special_tokens"]]),
        )
    if facts.get("end_of_generation"):
        yield "end of generation", _plain([("", _token(token)) for token in facts["end_of_generation"]])
    if facts.get("corrections"):
        yield "corrected by llama.cpp", _plain([("", each["what"]) for each in facts["corrections"]])
    if facts.get("metadata"):
        rows = [
            (key, value if isinstance(value, str) else str(value).lower())
            for key, value in facts["metadata"].items()
        ]
        yield "metadata", _plain(rows)
    yield "ggufbpe", _plain([("engine", facts["engine"])])


def _plain(rows: list[tuple[str, str]]) -> Rows:
    return [(label, value, "") for label, value in rows]


def _file_rows(facts: Facts) -> list[tuple[str, str]]:
    file, general = facts["file"], facts["general"]
    templates = facts["chat_templates"].items()
    named = [
        f"{length} characters" + (f" ({name})" if name != "default" else "") for name, length in templates
    ]
    return [
        (
            "GGUF",
            f"version {file['version']}, {file['byte_order']}-endian, {file['keys']} keys, "
            f"{file['tensors']} tensors, {file['size']} bytes",
        ),
        *([("broken", file["problem"])] if "problem" in file else []),
        ("architecture", general["architecture"] or "not given"),
        ("name", general["name"] or "not given"),
        ("file type", general["file_type"] or "not given"),
        ("chat template", ", ".join(named) or "none"),
    ]


def _tokenizer_rows(facts: Facts) -> Iterator[tuple[str, str, str]]:
    tokenizer = facts["tokenizer"]
    description = tokenizer["description"] or "not given"
    yield "model", f"{tokenizer['model']}: {description}" if tokenizer["model"] else description, ""
    if not tokenizer["supported"]:
        yield "ids", f"cannot be made: ggufbpe reads {', '.join(SUPPORTED)}", ""
    if tokenizer["pre"]:
        yield "pre-tokenizer", tokenizer["pre"], ""
    if tokenizer.get("family"):
        yield "family", tokenizer["family"], ""
        yield "splits like", ", ".join(tokenizer["splits_alike"]) or "no other name", ""
        for index, pattern in enumerate(tokenizer["patterns"]):
            label = "pattern" if len(tokenizer["patterns"]) == 1 else f"pattern {index + 1}"
            yield label, pattern, "pattern"
    sizes = facts.get("sizes", {})
    for name, value in sizes.items():
        if name == "types":
            yield "types", ", ".join(f"{number} {kind}" for kind, number in value.items()), ""
        else:
            yield name, str(value), ""


def _token(token: Facts) -> str:
    text = "no such token" if token["text"] is None else printable(token["text"], 60)
    return f"{token['id']:<7} {text}"
