"""Imports a vocabulary from a folder of tokenizer files, choosing which files are read.

tokenizer.json comes first, since it says most; then sentencepiece's model under its usual names, then vocab.txt, then
merges.txt with vocab.json. Beside each, tokenizer_config.json, special_tokens_map.json, added_tokens.json,
chat_template.jinja and additional_chat_templates/*.jinja are read.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from ..._util.files import opened_regular
from ...gguf.constants import TokenizerKey
from ..exporters.hf_config import DEFAULT, HFConfig
from ..imported import Imported, NotImportableError, as_refusals, read_json
from .import_hf import finished, import_tokenizer, require_no_pre
from .import_merges import MERGES_NAMES, VOCAB_NAMES, import_merges, is_merges, merges_beside
from .import_sentencepiece import FAIRSEQ_NAME, import_sentencepiece
from .import_wordpiece import lines_of_pieces, word_pieces_of_lines

_K = TokenizerKey
NAMES = ("tokenizer.json", "tokenizer.model", "spiece.model", FAIRSEQ_NAME, "vocab.txt", *MERGES_NAMES)
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_TEMPLATE, _TEMPLATES = "chat_template.jinja", "additional_chat_templates"
_RANKS = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} \d+\r?\n){2}")  # bytes in base64 and their rank


def file_in(path: str) -> str:
    """The file to read: `path`, or the first one found in a folder. `NotImportableError` if there is none.

    `OSError` for a file that cannot be read, or is not a regular one.
    """
    if os.path.isdir(path):
        candidates = (os.path.join(path, name) for name in NAMES)
        there = next(filter(os.path.exists, candidates), None)
        if there is None:
            raise NotImportableError(f"{path} has none of {', '.join(NAMES)}")
        path = there
    with opened_regular(path) as file:  # a pipe would be waited for, and cannot be read twice
        if file.read(4) == b"GGUF":
            raise NotImportableError(f"{path} is a GGUF already: llama.cpp and all commands read it as it is")
    return merges_beside(path) if os.path.basename(path) in VOCAB_NAMES else path


def detect_format(path: str) -> str:
    """The format (convert/export_formats.py) of a file: by its name, or, of two that share a suffix, by its first line.

    `OSError` for a file that cannot be read.
    """
    if path.endswith(".model"):
        return "sentencepiece"
    if path.endswith((".txt", ".bpe")):
        return "merges.txt" if is_merges(path) else "vocab.txt"
    return "tokenizer.json"


def import_file(
    path: str, *, pre: str | None = None, architecture: str | None = None, name: str | None = None
) -> Imported:
    """The vocabulary of a file and of the files beside it; arguments are those of `import_tokenizer`.

    Raises `NotImportableError` if llama.cpp has no place for it or the file is not sound, `OSError` if it cannot be
    read, `NotInstalledError` for a sentencepiece model without that package.
    """
    path = file_in(path)
    _refuse_tiktoken(path)
    config = config_beside(path)
    kind = detect_format(path)
    if kind == "tokenizer.json":
        return import_tokenizer(read_json(path), config, pre=pre, architecture=architecture, name=name)
    with as_refusals(f"the files beside {os.path.basename(path)} are not as transformers writes them"):
        if kind == "merges.txt":
            return import_merges(path, config, pre=pre, architecture=architecture, name=name)
        require_no_pre(pre)
        with open(path, "rb") as file:
            data = file.read()
        if kind == "sentencepiece":
            fairseq = os.path.basename(path) == FAIRSEQ_NAME
            algorithm, keys, limits = import_sentencepiece(data, config, fairseq=fairseq)
            flags = {_K.ADD_BOS: "add_bos_token", _K.ADD_EOS: "add_eos_token"}
            if algorithm == "scores":
                flags[_K.ADD_PREFIX] = "add_prefix_space"
            for key, flag in flags.items():
                if isinstance(config.config.get(flag), bool):
                    keys[key] = config.config[flag]
        else:
            algorithm = "word pieces"
            lines = lines_of_pieces(path, data, config)
            keys, limits = word_pieces_of_lines(lines, config)
            keys.update(config.written_ids(keys, len(lines)))
        return finished(algorithm, keys, config, architecture, name, limits)


def files_read(path: str) -> list[str]:
    """The files that are read for the one at `path`: itself, and those beside it that are there."""
    folder = os.path.dirname(path)
    pair = VOCAB_NAMES if detect_format(path) == "merges.txt" else ()
    there = [os.path.join(folder, name) for name in (*pair, *_SETTINGS, _TEMPLATE)]
    return [path, *filter(os.path.isfile, there), *_further_templates(folder)]


def _refuse_tiktoken(path: str) -> None:
    """`NotImportableError` for ranks of tiktoken, which Llama 3 calls tokenizer.model, and Mistral tekken.json."""
    is_tiktoken = path.endswith(".tiktoken") or os.path.basename(path) == "tekken.json"
    if path.endswith(".model"):
        with open(path, "rb") as file:
            is_tiktoken = _RANKS.match(file.read(4096)) is not None
    if is_tiktoken:
        raise NotImportableError(
            f"{path} has the ranks of tiktoken and no merges, so it cannot be imported; import reads "
            f"{', '.join(NAMES)}"
        )


def config_beside(path: str) -> HFConfig:
    """The settings in the files beside `path`. `NotImportableError` for one that is not JSON or a text in UTF-8."""
    folder = os.path.dirname(path)

    def beside(name: str) -> dict[str, Any]:
        there = os.path.join(folder, name)
        return read_json(there) if os.path.exists(there) else {}

    config, named, added = map(beside, _SETTINGS)
    template = os.path.join(folder, _TEMPLATE)
    texts = {DEFAULT: _template_in(template)} if os.path.exists(template) else {}
    for further in _further_templates(folder):
        texts[os.path.basename(further).removesuffix(".jinja")] = _template_in(further)
    return HFConfig(config, named, added, os.path.basename(path)).with_templates(texts)


def _further_templates(folder: str) -> list[str]:
    """The files of the chat templates with names, as transformers writes them."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), _TEMPLATES, "*.jinja")))


def _template_in(path: str) -> str:
    """The chat template in a file. `NotImportableError` if it is not UTF-8."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotImportableError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
