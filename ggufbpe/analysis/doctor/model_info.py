"""What a model file says about itself and its tokenizer, for `ggufbpe.info` and the command `ggufbpe info`.

Files whose tokenizer is not supported are described too: with their metadata, as the file has it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from ..._util.errors import GGUFError, UnsupportedTokenizerError
from ...gguf.constants import (
    KEY_ARCHITECTURE,
    KEY_FILE_TYPE,
    KEY_NAME,
    GGUFValueType,
    TokenizerKey,
    TokenType,
)
from ...gguf.metadata import Overrides
from ...gguf.reader import GGUFFile
from ...hub.model_location import ModelName, locate
from ...models import SUPPORTED, tokenizer_model
from ...models.loading import load
from ...models.pretokenizers.registry import names_alike
from ...models.token_attribute import TokenAttribute
from ...models.vocabulary import Vocabulary, emit_warnings
from ...native import native
from ...tokenizer.trace import names_of
from .tensor_checks import broken_tensors
from .token_checks import lasting_corrections

# set in a file type that was guessed from the tensors; llama.h: LLAMA_FTYPE_GUESSED
_FILE_TYPE_GUESSED = 1024
_FLAGS = ("add_bos", "add_eos", "add_sep", "add_space_prefix")
_PRE_FLAGS = ("ignore_merges", "byte_encode", "escape_whitespaces", "clean_spaces")

Facts = dict[str, Any]  # a JSON object


class ModelInfo(NamedTuple):
    """The result of `info`: facts about a model file, in sections as `ggufbpe info --json` writes them.

    Sections that do not apply are None, such as those of a broken tokenizer, and `metadata` of one that ggufbpe reads.

    - `file`: "path", "size" in bytes, "version", "byte_order", "keys", "tensors"; maybe "name", "note", "problem"
    - `general`: "architecture", "name", "context_length" in tokens, "file_type", each None if it is not given
    - `tokenizer`: "model", "description", "supported", "pre"; maybe "family", "splits_alike", "patterns", "problem"
    - `chat_templates`: the length of each in characters, by name; the unnamed one is "default"
    - `engine`: the one that computes ids here, "native" or "reference"
    - `sizes`: the numbers of "tokens" and "merges", and "types": the number of tokens of each kind
    - `flags`: whether BOS is added ("add_bos"), words that are tokens are taken whole ("ignore_merges"), and others
    - `special_tokens`: "name", "id" and "text" of each
    - `end_of_generation`: "id" and "text" of each token that ends a generation
    - `corrections`: "id", "what" and "token" of each thing that llama.cpp corrects when it loads the file
    - `metadata`: the keys of a tokenizer that ggufbpe does not read; of arrays, their length
    - `error`: why the tokenizer cannot be used; None if it is not broken
    """

    file: Facts
    general: Facts
    tokenizer: Facts
    chat_templates: dict[str, int]
    engine: str
    sizes: Facts | None = None
    flags: dict[str, bool] | None = None
    special_tokens: list[Facts] | None = None
    end_of_generation: list[Facts] | None = None
    corrections: list[Facts] | None = None
    metadata: Facts | None = None
    error: GGUFError | None = None

    def to_dict(self) -> Facts:
        """Return the object that `ggufbpe info --json` writes."""
        facts = self._asdict()
        del facts["error"]
        return {name: section for name, section in facts.items() if section is not None}

    def __repr__(self) -> str:
        tokens = "" if self.sizes is None else f" {self.sizes['tokens']} tokens"
        kind = " ".join(filter(None, (self.tokenizer["model"], self.tokenizer["pre"]))) or "no tokenizer"
        return f"<ModelInfo {self.file['path']!r}: {kind}{tokens}{', broken' if self.error else ''}>"


def info(model: ModelName, *, overrides: Overrides | None = None) -> ModelInfo:
    """Return what a model file says about itself and its tokenizer: sizes, flags, special tokens, by llama.cpp's rules.

    `model` is the path or name of a model, and `overrides` replaces keys, as in `Tokenizer.from_gguf`. Reads only the
    metadata. Tokenizers that ggufbpe does not read are described by their metadata. If the tokenizer is broken, the
    `error` of the result says why, and the sections of the file are still there.

    Raises `GGUFError` if the file is not a sound GGUF, `ModelNameError` if a name matches no model or several,
    `OSError` if the file cannot be read. Warns (`GGUFWarning`) as `Tokenizer.from_gguf` does.

    >>> found = info("model.gguf")
    >>> found.tokenizer["pre"], found.sizes["tokens"], found.general["file_type"]
    ('gpt-2', 50257, 'F16 (1)')
    """
    location = locate(model)
    error: GGUFError | None = None
    with GGUFFile(location.opened()) as file:
        file.require_first_shard()
        facts = _file_facts(file)
        if location.store or location.remote:
            facts["file"]["name"] = location.name
        if location.is_imported:
            facts["file"]["path"] = location.name
        facts["file"] |= {"note": location.note} if location.note else {}
        if TokenizerKey.MODEL not in file:
            facts["tokenizer"] |= {"description": "no tokenizer in this file"}
            facts["metadata"] = _tokenizer_metadata(file)
        else:
            try:
                vocabulary = load(location.opened(), overrides)[0]
                emit_warnings(vocabulary)
                facts |= _vocabulary_facts(vocabulary, facts["tokenizer"])
            except UnsupportedTokenizerError:
                facts |= _unsupported_facts(file)
            except GGUFError as broken:
                error = broken
                facts["tokenizer"]["problem"] = str(broken)
    return ModelInfo(**facts, error=error)


def _file_facts(file: GGUFFile) -> Facts:
    """Facts of any GGUF. A value of an unexpected type is shown as if it were missing."""
    model = string_of(file, TokenizerKey.MODEL)
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
            "architecture": string_of(file, KEY_ARCHITECTURE),
            "name": string_of(file, KEY_NAME),
            "context_length": context_length(file),
            "file_type": file_type(file),
        },
        "tokenizer": {
            "model": model,
            "description": None if model is None else tokenizer_model(model).description,
            "supported": model in SUPPORTED,
            "pre": string_of(file, TokenizerKey.PRE),
        },
        "chat_templates": _chat_templates(file),
        "engine": "reference" if native is None else "native",
    }


def _problem_of_tensors(file: GGUFFile) -> dict[str, str]:
    """What `doctor` says about the tensors, as "problem", if llama.cpp refuses them."""
    finding = next(broken_tensors(file), None)
    return {} if finding is None else {"problem": finding.what}


def string_of(file: GGUFFile, key: str) -> str | None:
    """The string of a key, up to a NUL as llama.cpp reads it; None if it has none."""
    if key not in file or file.value_type(key) is not GGUFValueType.STRING:
        return None
    return str(file[key]).partition("\0")[0]


def context_length(file: GGUFFile) -> int | None:
    """The number of tokens that the model was trained for, llama.cpp's n_ctx_train; None if it is not given."""
    key = f"{string_of(file, KEY_ARCHITECTURE)}.context_length"
    value = file[key] if key in file else None  # noqa: SIM401 - no dict, has no get
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def file_type(file: GGUFFile) -> str | None:
    """The name and number of the quantization of most tensors, such as "Q4_K_M (15)"; None if it is not given."""
    value = file[KEY_FILE_TYPE] if KEY_FILE_TYPE in file else None  # noqa: SIM401 - no dict, has no get
    if not isinstance(value, int):
        return None
    from gguf import LlamaFileType

    number = value & ~_FILE_TYPE_GUESSED
    names = {int(each): each.name for each in LlamaFileType}
    name = names.get(number, "unknown").removeprefix("MOSTLY_")
    return f"{name} ({number})" + (", guessed" if value & _FILE_TYPE_GUESSED else "")


def _chat_templates(file: GGUFFile) -> dict[str, int]:
    """The length of each chat template in characters; the unnamed one is "default"."""
    prefix = TokenizerKey.CHAT_TEMPLATE
    keys = [key for key in file if key == prefix or key.startswith(prefix + ".")]
    return {key[len(prefix) + 1 :] or "default": len(string_of(file, key) or "") for key in keys}


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
        "corrections": [correction._asdict() for correction in lasting_corrections(vocabulary)],
    }


_STRIP = TokenAttribute.LSTRIP | TokenAttribute.RSTRIP


def _kind(attribute: int) -> str:
    """The names of the flags, as "control" or "normal+control"."""
    return "+".join(names_of(TokenAttribute(attribute))).lower().replace("_", "-") or "undefined"


def _unsupported_facts(file: GGUFFile) -> Facts:
    """The metadata of an unsupported tokenizer, with nothing added."""
    tokens = _array(file, TokenizerKey.LIST, GGUFValueType.STRING)
    kinds = Counter(_array(file, TokenizerKey.TOKEN_TYPE, GGUFValueType.INT32))
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


def _array(file: GGUFFile, key: str, element: GGUFValueType) -> list[Any]:
    """The elements of an array of the type that its key has; none if there is no such array."""
    is_array = key in file and file.element_type(key) is element
    return list(file[key]) if is_array else []  # type: ignore[arg-type]


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
