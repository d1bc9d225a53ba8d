r"""Imports a tokenizer.json: the metadata of a GGUF that llama.cpp loads, from Hugging Face's file.

    hf_document.py -> import_bpe.py, import_scores.py, import_unigram.py or import_wordpiece.py -> import_hf.py

Tokens, merges, scores and added tokens are carried over unchanged. BOS and EOS come from the template that adds them
and from tokenizer_config.json. What llama.cpp has no place for, such as a normalizer, is in `Imported.limits`.

Source of what is written where: convert_hf_to_gguf.py and src/llama-vocab.cpp of llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import SPACE
from ..._util.wording import listed
from ...gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey
from ...models import SUPPORTED, tokenizer_model
from ..exporters.hf_config import CONFIG_TOKENS, GGUF_SECTION, HFConfig
from ..imported import Imported, NotImportableError, as_refusals, require_utf8
from ..incompatibilities import Incompatibility
from ..word_pieces import as_token
from .hf_document import HFDocument
from .hf_limits import added_token_limits, types_by_text
from .import_bpe import BytePairImport
from .import_scores import goes_by_scores, import_scores
from .import_unigram import import_unigram
from .import_wordpiece import import_word_pieces
from .recognize import Recognized

_K = TokenizerKey


def import_tokenizer(
    document: dict[str, Any],
    config: dict[str, Any] | HFConfig | None = None,
    *,
    pre: str | None = None,
    architecture: str | None = None,
    name: str | None = None,
) -> Imported:
    """The GGUF metadata equivalent to `document`, a tokenizer.json; `config` is its tokenizer_config.json.

    `pre` overrides the name of the pre-tokenizer. `architecture` and `name` are what llama.cpp calls the model; None
    for what the export recorded, or else the usual architecture of the kind and no name.
    Raises `NotImportableError` if llama.cpp has no place for it, or if the file is not sound.
    """
    with as_refusals("the file is not as the tokenizers package writes it"):
        beside = config if isinstance(config, HFConfig) else HFConfig(config or {})
        return _imported(HFDocument(document, beside), pre, architecture, name)


def _imported(read: HFDocument, pre: str | None, architecture: str | None, name: str | None) -> Imported:
    written = read.config.text(_K.MODEL)
    algorithm = {"Unigram": "unigram", "WordPiece": "word pieces"}.get(read.model["type"], "merges")
    if algorithm == "merges" and goes_by_scores(read, tokenizer_model(written).algorithm):
        algorithm = "scores"
    if algorithm == "merges":
        return _byte_pairs(read, pre, architecture, name)
    require_no_pre(pre)
    keys, limits = _OTHERS[algorithm](read)
    ends, told = read.ends()
    sides = {} if algorithm == "word pieces" else ends  # CLS and SEP are its own
    values = {_K.LIST: read.tokens, **read.special_ids(sides), **keys}
    if algorithm != "word pieces":
        values[_K.ADD_BOS], values[_K.ADD_EOS] = "bos" in ends, "eos" in ends
    imported = finished(algorithm, values, read.config, architecture, name, [*told, *limits])
    names = (imported.metadata[KEY_ARCHITECTURE], imported.metadata.get(KEY_NAME, ""))
    more = (*added_token_limits(read, imported.pre, *names), *types_by_text(read, imported.metadata))
    return imported._replace(limits=(*imported.limits, *more))


_OTHERS = {"scores": import_scores, "unigram": import_unigram, "word pieces": import_word_pieces}


def require_no_pre(pre: str | None) -> None:
    """Refuse `pre` where there is no pre-tokenizer to name."""
    if pre is not None:
        raise NotImportableError(
            f"the pre-tokenizer {printable(pre)} is for byte pair encoding with merges, and this has none"
        )


def finished(
    algorithm: str,
    keys: dict[str, Any],
    config: HFConfig,
    architecture: str | None,
    name: str | None,
    limits: list[Incompatibility],
) -> Imported:
    """The metadata of a vocabulary that is not split by patterns: its keys and those of the model."""
    models = (tokenizer_model(each) for each in SUPPORTED)
    model = next(each for each in models if each.algorithm == algorithm)
    pre = config.text(_K.PRE) or "default"
    head = {_K.MODEL: model.name, _K.PRE: pre}
    for key in (_K.ADD_BOS, _K.ADD_EOS, _K.ADD_PREFIX, _K.REMOVE_EXTRA_WS, _K.NORMALIZER_NFC):
        flag = config.flag(key)
        if flag is not None:
            keys.setdefault(key, flag)
    metadata = _with_names({**head, **keys}, config, architecture, name, model.architecture)
    return Imported(metadata, pre, None, tuple(dict.fromkeys([*limits, *_not_heeded(config, metadata)])))


def _byte_pairs(read: HFDocument, pre: str | None, architecture: str | None, name: str | None) -> Imported:
    config = read.config
    model = BytePairImport(read, pre)
    ends, limits = read.ends()
    keys: dict[str, Any] = {
        _K.MODEL: model.model_name(),
        _K.PRE: model.entry.name,
        _K.LIST: read.tokens,
        _K.TOKEN_TYPE: model.types,
        _K.MERGES: model.merges,
        **read.special_ids(ends),
    }
    for end, key, flag in (("bos", _K.BOS_ID, _K.ADD_BOS), ("eos", _K.EOS_ID, _K.ADD_EOS)):
        # a model may want one that it does not have
        keys[flag] = end in ends or (key not in keys and config.flag(flag) is True)
    flags = {_K.ADD_PREFIX: config.flag(_K.ADD_PREFIX), _K.NORMALIZER_LOWERCASE: model.lowercase}
    keys.update((key, value) for key, value in flags.items() if value is not None)
    keys = _with_names(keys, config, architecture, name, "llama")
    limits += model.limits(keys[KEY_ARCHITECTURE], keys.get(KEY_NAME, ""), keys)
    limits += types_by_text(read, keys)
    limits += _not_heeded(config, keys)
    recognized: Recognized | None = model.recognized
    return Imported(keys, model.entry.name, recognized, tuple(limits))


def _with_names(
    keys: dict[str, Any], config: HFConfig, architecture: str | None, name: str | None, usual: str
) -> dict[str, Any]:
    """The keys with those of the model: its architecture and name, the flag of SEP, the chat template."""
    architecture = config.text(KEY_ARCHITECTURE) or usual if architecture is None else architecture
    name = config.text(KEY_NAME) if name is None else name
    metadata = {KEY_ARCHITECTURE: architecture, **keys}
    if name:
        metadata[KEY_NAME] = name
    sep = config.flag(_K.ADD_SEP)
    if sep is not None:
        metadata[_K.ADD_SEP] = sep
    metadata.update(_template_keys(config.chat_templates))
    require_utf8(metadata)
    return metadata


def _template_keys(templates: dict[str, str]) -> dict[str, Any]:
    """The keys of the chat templates, as gguf-py's add_chat_template writes them."""
    keys: dict[str, Any] = {_template_key(name): text for name, text in templates.items()}
    names = [key.removeprefix(f"{_K.CHAT_TEMPLATE}.") for key in keys if key != _K.CHAT_TEMPLATE]
    return {**keys, _K.CHAT_TEMPLATES: names} if names else keys


def _template_key(name: str) -> str:
    return f"{_K.CHAT_TEMPLATE}.{re.sub('[^A-Za-z0-9_]', '_', name)}" if name else _K.CHAT_TEMPLATE


def _templates_of_one_key(templates: dict[str, str]) -> Iterator[Incompatibility]:
    """Chat templates that the keys of a GGUF do not tell apart."""
    by_key: dict[str, list[str]] = {}
    for name in templates:
        by_key.setdefault(_template_key(name), []).append(name)
    for key, names in by_key.items():
        if len(names) > 1:
            yield Incompatibility(
                "chat_template",
                f"the chat templates {listed(names, len(names))} have the same key, {key}: the last is kept",
                len(names) - 1,
            )


def _not_heeded(config: HFConfig, metadata: dict[str, Any]) -> Iterator[Incompatibility]:
    """What tokenizer_config.json says and the imported `metadata` does not."""
    if number := config.lost_templates:
        yield Incompatibility(
            "chat_template",
            "tokenizer_config.json has a chat_template that is not read: it is a text, or a list of texts with names",
            number,
        )
    yield from _templates_of_one_key(config.chat_templates)
    yield from _tokens_not_taken(config, metadata)
    for name, key, token in (("bos", _K.ADD_BOS, _K.BOS_ID), ("eos", _K.ADD_EOS, _K.EOS_ID)):
        wanted = config.config.get(f"add_{name}_token")
        if isinstance(wanted, bool) and metadata.get(key, wanted) != wanted:
            yield Incompatibility(
                "settings",
                f"tokenizer_config.json has add_{name}_token = {str(wanted).lower()}, but "
                f"{_other_flag(config, metadata, name, token, wanted)}",
            )


def _tokens_not_taken(config: HFConfig, metadata: dict[str, Any]) -> Iterator[Incompatibility]:
    """Special tokens that the settings name and `metadata` does not have under that name."""
    tokens, has_word_pieces = metadata[_K.LIST], _has_word_pieces(metadata)
    for name, key in CONFIG_TOKENS:
        text, token = config.written_token(name), metadata.get(key)
        forms = {text, as_token(text)} if has_word_pieces else {text}
        taken = "" if token is None else tokens[token]
        if not text or taken in forms:
            continue
        why = f"{config.beside} says so"
        if forms.isdisjoint(tokens):
            why = "there is no such token"
        elif has_word_pieces and name in ("bos", "eos"):
            why = "texts of word pieces begin with CLS and end with SEP"
        shown = taken.removeprefix(SPACE) if has_word_pieces else taken
        instead = f"and {printable(shown)} is taken" if taken else "and no token is taken"
        yield Incompatibility(
            "settings", f"the settings name {printable(text)} as {name.upper()}, {instead}: {why}"
        )
    lost = [text for text in config.additional_tokens() if {text, as_token(text)}.isdisjoint(tokens)]
    if lost := list(dict.fromkeys(lost)):
        what = "is a special token" if len(lost) == 1 else "are special tokens"
        yield Incompatibility(
            "settings",
            f"{listed(lost, len(lost), ' and {} more')} {what} of the settings, and not taken: the vocabulary lacks "
            f"{'it' if len(lost) == 1 else 'them'}",
            len(lost),
        )


def _other_flag(config: HFConfig, metadata: dict[str, Any], name: str, token: str, wanted: bool) -> str:
    """What says whether BOS or EOS is added, if not the flag that is `wanted`."""
    winner = config.beside
    if _has_word_pieces(metadata) or (not wanted and token not in metadata):  # one that it does not have
        winner = f'its entry "{GGUF_SECTION}"'
    elif winner.endswith((".txt", ".bpe")):  # merges, which say nothing of it
        if wanted and token not in metadata:
            return f"no token of the vocabulary is named as {name.upper()}"
        winner = str(config.config.get("tokenizer_class"))
    return f"{winner} {'does not add' if wanted else 'adds'} {name.upper()}, and that is what is imported"


def _has_word_pieces(metadata: dict[str, Any]) -> bool:
    return tokenizer_model(metadata[_K.MODEL]).algorithm == "word pieces"
