"""The values of keys: their types, and whether arrays are as long as the tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from ..._util.wording import counted, listed
from ...gguf.constants import KEY_ARCHITECTURE, TokenizerKey, TokenType
from ...gguf.edit_arguments import argument_for
from ...gguf.schema import KEY_TYPES, NOT_REFUSED, has_right_type, wrong_type
from .facts import Facts
from .finding import Finding, Where
from .marker_types import listed_markers, types_of_markers
from .token_checks import is_name, marker_like

_K = TokenizerKey

# Without these, a file does not open, or opens with ids that are wrong.
_NEEDED = (KEY_ARCHITECTURE, _K.MODEL, _K.LIST, _K.MERGES, _K.TOKEN_TYPE)


def _is_needed(model: Facts, key: str) -> bool:
    """Check that a model cannot do without a key: scores are of use to some tokenizer models only, as is a charsmap."""
    uses = {_K.SCORES: model.kind.has_scores, _K.PRECOMPILED_CHARSMAP: model.kind.has_charsmap}
    return uses.get(key, key in _NEEDED)


def wrong_types(model: Facts) -> Iterator[Finding]:
    """Values of a type that llama.cpp does not accept for their key."""
    for key in KEY_TYPES:
        if key not in model.file or has_right_type(model.file, key):
            continue
        argument = argument_for(model.file, key)
        if argument is not None:
            fix = model.set(key, argument)
        elif key == _K.PRE and model.tokens and not model.kind.ignores_pre:
            fix = model.set_pre()
        elif (theirs := model.id_of_family(key)) is not None:  # without it, llama.cpp would take another
            fix = model.set(key, theirs)
        elif _is_needed(model, key):
            fix = "convert the model again"
        else:
            fix = f"convert the model again, or remove the key: {model.remove(key)}"
        refused = key not in NOT_REFUSED
        yield Finding(
            "error" if refused else "warning",
            "wrong_type",
            f"{key} has a type that llama.cpp does not accept.",
            "llama.cpp accepts no other type, and refuses the file."
            if refused
            else "llama.cpp uses the digits of a number as the template, and ignores a list.",
            fix,
            model.key(key),
            None,
            f"{key}: {wrong_type(model.file, key).problem}",
        )


def byte_order(model: Facts) -> Iterator[Finding]:
    """Numbers in the other byte order than those of this machine, as for an IBM mainframe."""
    if model.source.byteorder != sys.byteorder:
        yield Finding(
            "warning",
            "byte_order",
            f"The file is {model.source.byteorder}-endian, and this machine is not.",
            "llama.cpp reads only the byte order of the machine that it runs on, and refuses the file here.",
            "use the model's other file, or convert this one with gguf_convert_endian.py of llama.cpp's gguf-py",
            Where(None, None, 0),
        )


def lengths(model: Facts) -> Iterator[Finding]:
    """More or fewer types or scores than tokens, and types that do not exist."""
    for key, name in ((_K.TOKEN_TYPE, "types"), (_K.SCORES, "scores")):
        if key not in model.file or not has_right_type(model.file, key) or not model.tokens:
            continue
        length, size = model.file.array_length(key), len(model.tokens)
        if length != size:
            short = length < size
            yield Finding(
                "error" if short else "warning",
                f"{name}_length",
                f"The list of {name} is {'shorter' if short else 'longer'} than the list of tokens.",
                "llama.cpp reads beyond the end of the array."
                if short
                else f"Tokens and {name} do not belong together, or some tokens are missing.",
                "convert the model again"
                + ("" if _is_needed(model, key) else f", or remove them: {model.remove(key)}"),
                model.key(key),
                {"length": length, "tokens": size},
                f"There {'is' if length == 1 else 'are'} {counted(length, name[:-1])} for {counted(size, 'token')}.",
            )
    if model.tokens and _K.TOKEN_TYPE not in model.file and model.kind.is_supported:
        unknown = model.unknown_token
        markers = {*marker_like(model), *listed_markers(model), *(() if unknown is None else (unknown,))}
        types = {**types_of_markers(model, markers), "BYTE": list(model.byte_tokens.values())}
        yield Finding(
            "warning",
            "types_missing",
            "The file does not say which tokens are special.",
            "Special tokens in a prompt, such as <|im_start|>, are then encoded like other text.",
            model.set_types(**types)
            if any(types.values())
            else "nothing to do if there are no special tokens",
            model.key(_K.TOKEN_TYPE),
            None,
            f"{_K.TOKEN_TYPE} is missing, so all tokens count as normal.",
        )
    known = {int(kind) for kind in TokenType}
    kinds = model.types[: len(model.tokens)]
    strange = [] if known.issuperset(kinds) else [at for at, kind in enumerate(kinds) if kind not in known]
    if strange:
        yield Finding(
            "warning",
            "type_unknown",
            "Some tokens have a type that does not exist.",
            "llama.cpp gives such a token no attribute, so it is never shown as text.",
            model.set_types(**_types_by_text(model, strange)),
            Where(_K.TOKEN_TYPE, strange[0], model.file.element_offset(_K.TOKEN_TYPE, strange[0])),
            {"count": len(strange), "ids": strange[:100]},
            f"{counted(len(strange), 'token')}: {listed(strange, len(strange))}.",
        )


def _types_by_text(model: Facts, tokens: Iterable[int]) -> dict[str, list[int]]:
    """Return the tokens by the name of the type that their texts point to."""
    types: dict[int | None, str] = {model.unknown_token: "UNKNOWN"}
    types.update(dict.fromkeys(model.byte_tokens.values(), "BYTE"))
    found: dict[str, list[int]] = {}
    for token in tokens:
        text = model.tokens[token]
        usual = "CONTROL" if is_name(text) and text not in model.merged else "NORMAL"
        found.setdefault(types.get(token, usual), []).append(token)
    return found
