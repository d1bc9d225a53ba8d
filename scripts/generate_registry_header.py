"""Write ggufbpe/native/src/vocabulary/registry.h: what the loading rules know by name.

python scripts/generate_registry_header.py            # writes the file
python scripts/generate_registry_header.py --print    # prints it

The pre-tokenizers come from models/pretokenizers/registry.py, tokenizer models from models/, and the texts of special
tokens from models/special_ids.py. The C library and the compiled engine take all of it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from generate_unicode_classes import wrapped
from generated_file import write_or_print

from ggufbpe._util.llama_cpp_states import RFL_PARAMETER, STRICT_UTF8
from ggufbpe.gguf.constants import KEY_SPLIT_COUNT, KEY_SPLIT_NO, GGUFValueType
from ggufbpe.gguf.schema import KEY_TYPES, NOT_REFUSED
from ggufbpe.models import SUPPORTED, special_ids, tokenizer_model
from ggufbpe.models.bpe.bpe_model import WITHOUT_MERGES
from ggufbpe.models.pretokenizers.automaton_tables import tables
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ggufbpe.models.tokenizer_model import TokenizerModel

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "native" / "src" / "vocabulary" / "registry.h"

HEAD = """// What the loading rules know by name: pre-tokenizers, tokenizer models, and the texts of special tokens.
// ggufbpe/models/ for C++.
//
// Written by scripts/generate_registry_header.py; do not edit.

#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/value_types.h"
#include "vocabulary/registry_types.h"

namespace ggufbpe {

// clang-format off
"""

PRE_TOKENIZER_FLAGS = (
    *(
        "byte_encode",
        "escape_whitespaces",
        "clean_spaces",
        "ignore_merges",
        "add_bos",
        "add_sep",
        "no_default_bos",
    ),
    *("newline_runs", "prepend_space", "lowercase", "always_add_bos"),
)
MODEL_FLAGS = (
    *("has_pre_tokenizer", "add_eos", "add_space_prefix", "has_scores", "composes", "keeps_first_attributes"),
    *("refuses_short_byte_tokens", "drops_white_space", "has_sequences"),
)


def module_text() -> str:
    """The whole header, as in the repository."""
    families = sorted({entry.family for entry in PRE_TOKENIZERS.values()})
    steps = sorted({stage.step or "" for entry in PRE_TOKENIZERS.values() for stage in entry.stages})
    lines = [f"constexpr const char *SPLIT_STEPS[] = {{{_texts(steps)}}};", ""]
    for family in families:
        lines += [f"constexpr int32_t {_constant_of(family)}[] = {{"]
        lines += [*wrapped(list(map(str, _numbers(PRE_TOKENIZERS[family], steps)))), "};"]
    wanted = {key: kind for key, kind in KEY_TYPES.items() if key not in NOT_REFUSED}
    wanted |= dict.fromkeys((KEY_SPLIT_NO, KEY_SPLIT_COUNT), GGUFValueType.UINT16)  # or of another type
    lines += ["", "constexpr KeyType KEY_TYPES[] = {"]
    lines += [f"    {_key_type(key, kind)}," for key, kind in wanted.items()]
    lines += ["};", "", "constexpr PreTokenizer PRE_TOKENIZERS[] = {"]
    lines += [f"    {_entry(entry)}," for entry in PRE_TOKENIZERS.values()]
    lines += ["};", "", "constexpr ModelKind MODEL_KINDS[] = {"]
    lines += [f"    {_kind(tokenizer_model(name))}," for name in SUPPORTED]
    lines += ["};", "", f'constexpr const char *WITHOUT_MERGES = "{WITHOUT_MERGES}";', ""]
    lines += ["constexpr SpecialKind SPECIAL_KINDS[] = {"]
    lines += [
        f"    {{{_text(name.upper())}, {_list(keys)}, {_list(texts)}}},"
        for name, keys, texts in special_ids.SPECIAL_IDS
    ]
    lines += ["};", "", *_constant("END_OF_GENERATION", special_ids.END_OF_GENERATION)]
    lines += _constant("ALWAYS_SHOWN", special_ids.ALWAYS_SHOWN)
    lines += _constant("PRE_TOKENIZERS_THAT_STRIP_MASK", special_ids.STRIPS_MASK)
    lines += _constant("ARCHITECTURES_THAT_STRIP_MASK", special_ids.STRIPPING_ARCHITECTURES)
    lines += _constant("PHI_3", special_ids.PHI_3)
    lines += _constant("KEEPING_SPACE", special_ids.KEEPING_SPACE)
    lines += [f"constexpr const char *MODERN_BERT = {_text(special_ids.MODERN_BERT)};", ""]
    lines += [
        f"constexpr const char *STRICT_UTF8 = {_text(STRICT_UTF8)}, *RFL_PARAMETER = {_text(RFL_PARAMETER)};"
    ]
    return HEAD + "\n".join([*lines, "// clang-format on", "", "}  // namespace ggufbpe", ""])


def _numbers(entry: PreTokenizer, steps: list[str]) -> list[int]:
    """The sets and stages of an entry as vocabulary/pre_tokenizers.cpp reads them: each list after its length."""
    sets, rules = tables(entry)
    numbers = [len(sets)]
    for each in sets:
        numbers += [len(each), *each]
    numbers.append(len(rules))
    for program, step, step_sets, extra in rules:
        numbers.append(steps.index(step))
        for part in (program, step_sets, extra):
            numbers += [len(part), *part]
    return numbers


def _key_type(key: str, kind: GGUFValueType | tuple[GGUFValueType, ...]) -> str:
    elements = kind if isinstance(kind, tuple) else (kind,)
    name = "ARRAY" if isinstance(kind, tuple) else kind.name
    return f"{{{_text(key)}, {name}, {{{elements[0].name}, {elements[-1].name}}}}}"


def _constant_of(family: str) -> str:
    """Return the name of the array that has the numbers of a family.

    >>> _constant_of("gpt-2")
    'FAMILY_GPT_2'
    """
    return "FAMILY_" + family.upper().replace("-", "_")


def _entry(entry: PreTokenizer) -> str:
    array = _constant_of(entry.family)
    numbers = f"{array}, sizeof {array} / sizeof(int32_t)" if entry.family else "nullptr, 0"
    flags = ", ".join(_flag(getattr(entry, name)) for name in PRE_TOKENIZER_FLAGS)
    return f"{{{_text(entry.name)}, {numbers}, {flags}}}"


def _kind(model: TokenizerModel) -> str:
    flags = ", ".join(_flag(getattr(model, name)) for name in MODEL_FLAGS)
    own_pre = model.own_pre if model.ignores_pre else ""
    named = [model.default_ids.get(name, -1) for name, _, _ in special_ids.SPECIAL_IDS]
    ids = ", ".join(map(str, named))
    without = PreTokenizer("", "")
    if not model.has_pre_tokenizer:  # whatever the file says
        without = model.pre_tokenizer(cast(Any, None), "", print)
    added = ", ".join(map(_added, zip(model.added_names(False, False), model.added_names(True, True))))
    return f"{{{_text(model.name)}, {_text(own_pre)}, {flags}, {added}, {{{ids}}}, {_entry(without)}}}"


def _added(names: tuple[Sequence[str], Sequence[str]]) -> str:
    """What is added without a flag, and with it, as the names of an enumeration; no model adds more than one token."""
    without, wanted = (each[0].upper() if each else "NO_SPECIAL_ID" for each in names)
    return f"{{{without}, {wanted}}}"


def _constant(name: str, texts: Iterable[str]) -> list[str]:
    return [f"constexpr const char *{name}[] = {{", *wrapped(list(map(_text, texts))), "};", ""]


def _texts(texts: Iterable[str]) -> str:
    return ", ".join(map(_text, texts))


def _list(texts: Iterable[str]) -> str:
    """An array that ends in a null pointer."""
    return "{" + ", ".join([*map(_text, texts), "nullptr"]) + "}"


def _text(text: str) -> str:
    r"""A string of C++ in ASCII; octal escapes cannot run into what follows, as hexadecimal ones can.

    >>> _text("▁<PRE>")
    '"\\342\\226\\201<PRE>"'
    """
    plain = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{"".join(plain)}"'


def _flag(value: bool) -> str:
    return str(int(value))


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
