"""Write ggufbpe/gguf/constants.py from the `gguf` package.

Constants and enumerations are the gguf package's, but importing it costs a quarter of a second (numpy and more), as
much as a whole run of llama-tokenize. So the few that the reader and the vocabulary need are written into their own
module, and tests/repository/test_generated.py fails if they differ from the package.

    python scripts/generate_constants.py            # writes the file
    python scripts/generate_constants.py --print    # prints it
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

import gguf
from generated_file import write_or_print

TARGET = Path(__file__).resolve().parent.parent / "ggufbpe" / "gguf" / "constants.py"

# Keys that llama.cpp reads (src/llama-arch.cpp) and for which the gguf package has no name.
KEYS_WITHOUT_NAME = {
    "ADD_SEP": "tokenizer.ggml.add_sep_token",
    "FIM_PRE_ID": "tokenizer.ggml.fim_pre_token_id",
    "FIM_SUF_ID": "tokenizer.ggml.fim_suf_token_id",
    "FIM_MID_ID": "tokenizer.ggml.fim_mid_token_id",
    "FIM_PAD_ID": "tokenizer.ggml.fim_pad_token_id",
    "FIM_REP_ID": "tokenizer.ggml.fim_rep_token_id",
    "FIM_SEP_ID": "tokenizer.ggml.fim_sep_token_id",
    "PREFIX_ID": "tokenizer.ggml.prefix_token_id",
    "SUFFIX_ID": "tokenizer.ggml.suffix_token_id",
    "MIDDLE_ID": "tokenizer.ggml.middle_token_id",
    "NORMALIZER_LOWERCASE": "tokenizer.ggml.normalizer.lowercase",
    "NORMALIZER_STRIP_ACCENTS": "tokenizer.ggml.normalizer.strip_accents",
    "NORMALIZER_NFC": "tokenizer.ggml.normalizer.nfc",
    "SUPPRESS_TOKENS": "tokenizer.ggml.suppress_tokens",
}
# What llama.cpp has (ggml/include/ggml.h, ggml/src/ggml.c) and the gguf package lacks, or has an older value of.
TENSOR_TYPES_OF_LLAMA_CPP = {
    9: ("Q8_1", 32, 36),  # 40 in the package: it had a sum of four bytes more
    42: ("Q2_0", 64, 18),
}
TOKENIZER_KEYS = [
    "MODEL",
    "PRE",
    "LIST",
    "TOKEN_TYPE",
    "SCORES",
    "MERGES",
    "BOS_ID",
    "EOS_ID",
    "EOT_ID",
    "EOM_ID",
    "UNK_ID",
    "SEP_ID",
    "PAD_ID",
    "MASK_ID",
    "ADD_BOS",
    "ADD_EOS",
    "ADD_PREFIX",
    "REMOVE_EXTRA_WS",
    "PRECOMPILED_CHARSMAP",
    "TOKEN_TYPE_COUNT",
    "CHAT_TEMPLATE",
    "CHAT_TEMPLATES",
]


def enumeration(name: str, source: type[IntEnum], doc: str) -> list[str]:
    """The lines of one IntEnum with the members of `source`."""
    members = [f"    {member.name} = {member.value}" for member in source]
    return ["", "", f"class {name}(IntEnum):", f'    """{doc}"""', "", *members]


def tensor_types() -> dict[int, tuple[str, int, int]]:
    """The name of each type of a tensor, the elements of a block, and the bytes of a block."""
    types = {int(kind): (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType}
    return dict(sorted({**types, **TENSOR_TYPES_OF_LLAMA_CPP}.items()))


def module_text() -> str:
    """The whole module, as in the repository."""
    keys = {name: getattr(gguf.Keys.Tokenizer, name) for name in TOKENIZER_KEYS}
    for name, key in KEYS_WITHOUT_NAME.items():
        keys[name] = getattr(gguf.Keys.Tokenizer, name, key)
    lines = [
        '"""Constants of the `gguf` package. Written by scripts/generate_constants.py; do not edit."""',
        "",
        "from enum import IntEnum",
        "",
        f"GGUF_MAGIC = {gguf.GGUF_MAGIC.to_bytes(4, 'little')!r}".replace("'", '"'),
        f'KEY_ARCHITECTURE = "{gguf.Keys.General.ARCHITECTURE}"',
        f'KEY_NAME = "{gguf.Keys.General.NAME}"',
        f'KEY_ALIGNMENT = "{gguf.Keys.General.ALIGNMENT}"',
        f'KEY_FILE_TYPE = "{gguf.Keys.General.FILE_TYPE}"',
        f'KEY_SPLIT_NO = "{gguf.Keys.Split.LLM_KV_SPLIT_NO}"',
        f'KEY_SPLIT_COUNT = "{gguf.Keys.Split.LLM_KV_SPLIT_COUNT}"',
        f'KEY_SPLIT_TENSORS = "{gguf.Keys.Split.LLM_KV_SPLIT_TENSORS_COUNT}"',
        f"DEFAULT_ALIGNMENT = {gguf.GGUF_DEFAULT_ALIGNMENT}  # of tensors, in bytes",
        "",
        "# Types of tensors by number: name, elements of a block, bytes of a block.",
        "TENSOR_TYPES = {",
        *[
            f'    {number}: ("{name}", {size}, {width}),'
            for number, (name, size, width) in tensor_types().items()
        ],
        "}",
        *enumeration("GGUFValueType", gguf.GGUFValueType, "The type number before a metadata value."),
        *enumeration("TokenType", gguf.TokenType, "An element of `tokenizer.ggml.token_type`."),
        "",
        "",
        "class TokenizerKey:",
        '    """Names of the metadata keys of the tokenizer."""',
        "",
        *[f'    {name} = "{key}"' for name, key in keys.items()],
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
