"""Completes the error for an unknown name in `tokenizer.ggml.pre` with the name that the tokens point to.

bpe_model.py raises the error without it, because the tokens are not loaded yet; loading.py calls this module.
"""

from __future__ import annotations

import difflib

from ..._util.errors import GGUFError, UnknownPreTokenizerError, printable
from ..._util.llama_cpp_states import FOLLOWED
from ..._util.shell import shell_path
from ...gguf import typed
from ...gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey
from ...gguf.metadata import Metadata
from .registry import PRE_TOKENIZERS

_FITS = 0.998  # share of tokens that the right pre-tokenizer keeps whole, at least (families.py)


def unknown_pre_tokenizer(file: Metadata, named_pre: str, state: str = FOLLOWED) -> UnknownPreTokenizerError:
    """Return the error for a name that llama.cpp `state` refuses."""
    if named_pre in PRE_TOKENIZERS:
        problem = f"llama.cpp {state} does not know the pre-tokenizer {printable(named_pre)}"
        remedy = f"ask for the answers of a newer state, such as {FOLLOWED}"
    else:
        near = ", ".join(difflib.get_close_matches(named_pre, PRE_TOKENIZERS, n=3))
        problem = f"unknown pre-tokenizer {printable(named_pre)}" + (f" (near: {near})" if near else "")
        problem += f", which llama.cpp {state} refuses as well"
        remedy = (
            "`ggufbpe list-pre` shows all names; convert the model again, or update ggufbpe; a name that "
            f"splits alike can be taken for it: overrides={{'{TokenizerKey.PRE}': NAME}}"
        )
    place, key = file.offset(TokenizerKey.PRE), TokenizerKey.PRE
    return UnknownPreTokenizerError(problem, path=file.path, offset=place, key=key, remedy=remedy)


def add_nearest(error: UnknownPreTokenizerError, file: Metadata) -> None:
    """Add to an error which name the tokens point to, with its share of them, and the command that opens the file.

    Takes a second or two for a large vocabulary. The error stays as it is if the file has no tokens or merges, or if a
    newer state of llama.cpp knows the name.
    """
    from .families import evidence

    pre = typed.string(file, TokenizerKey.PRE, "")
    if pre in PRE_TOKENIZERS:
        return
    try:
        tokens, merges = typed.strings(file, TokenizerKey.LIST), typed.strings(file, TokenizerKey.MERGES)
        architecture, name = typed.string(file, KEY_ARCHITECTURE, ""), typed.string(file, KEY_NAME, "")
    except GGUFError:
        return
    judged = evidence(tokens, merges, pre, architecture, name)
    if not judged.name:
        return
    nearest = next(family for family in judged.best if judged.name in family.names)
    fits = "By its tokens the vocabulary was made with" if nearest.share >= _FITS else "The nearest name is"
    doubt = "" if nearest.share >= _FITS else "; no known name fits, so some ids will be wrong"
    error.nearest, error.share = judged.name, nearest.share
    share = f"{nearest.kept} of {nearest.of} tokens whole ({nearest.share:.2%})"
    error.problem += f". {fits} {judged.name}, which keeps {share}{doubt}"
    if TokenizerKey.PRE in file.overridden:
        return
    error.remedy = (
        f"to open it under that name: ggufbpe tokenize -m {shell_path(file.path or 'MODEL')} "
        f'--override-kv {TokenizerKey.PRE}=str:{judged.name} -p "Hello world"'
    )
