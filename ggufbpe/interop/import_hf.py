r"""tokenizer.json to vocabulary: the metadata of a GGUF that llama.cpp loads, from Hugging Face's file.

    tokenizer.json, tokenizer_config.json -> [this file] -> vocab.gguf

Tokens, merges and added tokens are carried as they are. The pre-tokenizer is named by its patterns
(interop/recognize.py), BOS and EOS by the template that adds them and by tokenizer_config.json. What llama.cpp has
no place for, such as a normalizer, is in `Imported.limits`.

But: only byte pair encoding over bytes, or over characters with spaces escaped and bytes to fall back to (Gemma 4).
SentencePiece's, which goes by scores, is another tokenizer in llama.cpp.

Source of what is written where: convert_hf_to_gguf.py and src/llama-vocab.cpp of llama.cpp.
"""

from __future__ import annotations

from typing import Any

from ..errors import printable
from ..gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey
from .hf_config import HFConfig
from .hf_document import HFDocument
from .import_bpe import BytePairImport
from .imported import Imported, NotImportableError, pack, read_json, require_utf8

__all__ = ["Imported", "NotImportableError", "import_tokenizer", "pack", "read_json"]

_K = TokenizerKey


def import_tokenizer(
    document: dict[str, Any],
    config: dict[str, Any] | None = None,
    *,
    pre: str | None = None,
    architecture: str | None = None,
    name: str | None = None,
) -> Imported:
    """The metadata that says what `document`, a tokenizer.json, does; `config` is its tokenizer_config.json.

    `pre` overrides the name of the pre-tokenizer. `architecture` and `name` are what llama.cpp calls the model; None
    for what the export wrote down, or "llama" and nothing.
    Raises `NotImportableError` where llama.cpp has no place for it, or where it is no sound file.
    """
    try:
        return _imported(HFDocument(document, HFConfig(config or {})), pre, architecture, name)
    except (AttributeError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise NotImportableError(
            f"the file is not as the tokenizers package writes it ({type(error).__name__}: {printable(str(error))})"
        ) from error


def _imported(read: HFDocument, pre: str | None, architecture: str | None, name: str | None) -> Imported:
    config = read.config
    model = BytePairImport(read, pre)
    architecture = config.text(KEY_ARCHITECTURE) or "llama" if architecture is None else architecture
    name = config.text(KEY_NAME) if name is None else name
    ends, limits = read.ends()
    keys: dict[str, Any] = {
        KEY_ARCHITECTURE: architecture,
        _K.MODEL: model.model_name(),
        _K.PRE: model.entry.name,
        _K.LIST: read.tokens,
        _K.TOKEN_TYPE: model.types,
        _K.MERGES: model.merges,
    }
    if name:
        keys[KEY_NAME] = name
    keys.update(read.special_ids())
    for end, key, flag in (("bos", _K.BOS_ID, _K.ADD_BOS), ("eos", _K.EOS_ID, _K.ADD_EOS)):
        # a model may want one that it does not have
        keys[flag] = end in ends or (key not in keys and config.section.get(flag) is True)
    for key in (_K.ADD_SEP, _K.ADD_PREFIX):
        if isinstance(config.section.get(key), bool):
            keys[key] = config.section[key]
    if config.chat_template is not None:
        keys[_K.CHAT_TEMPLATE] = config.chat_template
    require_utf8(keys)
    limits += model.limits(architecture, name, keys)
    return Imported(keys, model.entry.name, model.recognized, tuple(limits))
