"""Runs all checks of `doctor` over the metadata of one file and collects their findings.

The checks also work where the tokenizer cannot be opened: opening stops at the first problem, and they report all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator

from ..._util.errors import InvalidUTF8Error, UnsupportedTokenizerError, printable
from ..._util.llama_cpp_states import FOLLOWED
from ...gguf.constants import KEY_ARCHITECTURE, TokenizerKey
from ...models import SUPPORTED, is_known_model, tokenizer_model
from .bos_checks import bos_is_eos, bos_switched_off
from .facts import Facts
from .family_checks import added_text, fix_of_name, known_family, last_tokens_missing, tokens_moved
from .finding import SEVERITIES, Finding, Where
from .known_template_check import template_differs
from .merge_checks import exchanged_tokens, merge_parts, unreachable
from .model_checks import (
    charsmap,
    missing_unknown,
    scores,
    unconverted_pieces,
    unconverted_spaces,
    unwritable_bytes,
    wrong_model,
)
from .pretokenizer_checks import hugging_face_splitting, pre_tokenizer
from .role_checks import answer_not_begun, chats_refused, messages_lost, tools_not_shown
from .round_trip_checks import byte_types, dropped_spaces, line_break, lost_bytes, round_trips
from .special_id_checks import generation_ends, missing_special_ids, wrong_special_ids
from .template_checks import (
    bos_twice,
    chat_markers,
    eos_behind_prompts,
    eos_not_added,
    other_bos,
    template_errors,
    template_missing,
)
from .template_form_checks import byte_order_mark, escapes_in_prompts, template_is_settings
from .tensor_checks import rows_of_tokens
from .token_checks import (
    control_shown,
    control_types,
    corrections,
    duplicates,
    empty_tokens,
    hidden_markers,
    made_control,
    padding_tokens,
)
from .turn_end_check import turn_ends
from .unused_marker_check import unused_markers
from .value_checks import byte_order, lengths, wrong_types
from .word_type_check import word_types

_K = TokenizerKey
_NAMES_OF_KINDS = (_K.MODEL, _K.PRE, KEY_ARCHITECTURE)  # llama.cpp knows none that is not UTF-8


def findings_of(model: Facts, but: Container[Check] = ()) -> list[Finding]:
    """Return what the checks find in a model, the most severe first; without those of the checks in `but`."""
    kind = model.kind
    has_pre = all(tokenizer_model(name).has_pre_tokenizer for name in (model.model, *model.likely_models))
    found = [
        finding
        for check in CHECKS
        if (kind.is_supported or check in COMMON_CHECKS)
        and (has_pre or check not in BYTE_PAIR_CHECKS)
        and check not in but
        for finding in check(model)
    ]
    found += _refusal(model, found)
    return in_order(found)


def in_order(found: list[Finding]) -> list[Finding]:
    """Return findings by severity, the most severe first."""
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _other_tokenizer(model: Facts) -> Iterator[Finding]:
    if isinstance(model.refusal, UnsupportedTokenizerError):
        checked = (
            "Only what all tokenizers have in common was checked: types, special ids, duplicates, template."
        )
        known, supported = is_known_model(model.model), ", ".join(SUPPORTED)
        yield Finding(
            "note" if known else "error",
            "not_bpe",
            f"{'ggufbpe does not support' if known else 'llama.cpp does not know'} this tokenizer, "
            f"{printable(model.model)}.",
            checked
            if known
            else f"llama.cpp refuses the file, unless it is newer than {FOLLOWED}. {checked}",
            f"nothing to do; ggufbpe supports {supported}"
            if known
            else f"convert the model again; {_K.MODEL} must be one of {supported}",
            model.key(_K.MODEL),
            None,
            f"It is {model.kind.description}.",
        )


def _refusal(model: Facts, found: list[Finding]) -> Iterator[Finding]:
    """The error of opening the tokenizer, unless a finding already reports an error in that key.

    If only `tokenizer.ggml.model` is missing, and the tokens point to one tokenizer model, the fix sets the key.
    """
    error = model.refusal
    if error is None or isinstance(error, UnsupportedTokenizerError):
        return
    if error.key == _K.MERGES and model.likely_models:  # which need none
        return
    if any(finding.severity == "error" and finding.where.key == error.key for finding in found):
        return
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower()
    key = f"{error.key}: " if error.key else ""
    what, why = "llama.cpp cannot load this tokenizer.", "llama.cpp refuses the file, or aborts on it."
    if isinstance(error, InvalidUTF8Error) and error.key not in _NAMES_OF_KINDS:
        what = "This tokenizer has text that is not UTF-8, so ggufbpe cannot load it."
        why = "llama.cpp takes any bytes there, but these are a sign of damage."
    is_told = error.key == _K.MODEL and len(model.likely_models) == 1
    fix = model.set(_K.MODEL, model.likely_models[0]) if is_told else fix_of_name(model) or error.remedy
    yield Finding(
        "error",
        name,
        what,
        why,
        fix or "convert the model again",
        Where(error.key, None, error.offset),
        None,
        key + error.problem,
    )


Check = Callable[[Facts], Iterator[Finding]]

# All checks. A new one is a function in the file of its group, and a line here; the sets below are parts of this table.
# Of findings that are equally severe, that of the earlier check is shown first.
CHECKS: tuple[Check, ...] = (
    _other_tokenizer,
    wrong_model,
    unconverted_pieces,
    unconverted_spaces,
    pre_tokenizer,
    scores,
    charsmap,
    unwritable_bytes,
    byte_types,
    missing_unknown,
    byte_order,
    wrong_types,
    duplicates,
    lengths,
    rows_of_tokens,
    tokens_moved,
    generation_ends,
    wrong_special_ids,
    missing_special_ids,
    bos_is_eos,
    bos_switched_off,
    control_types,
    word_types,
    added_text,
    control_shown,
    hidden_markers,
    made_control,
    template_errors,
    template_is_settings,
    byte_order_mark,
    escapes_in_prompts,
    template_missing,
    unused_markers,
    chat_markers,
    turn_ends,
    chats_refused,
    answer_not_begun,
    messages_lost,
    merge_parts,
    last_tokens_missing,
    exchanged_tokens,
    unreachable,
    lost_bytes,
    round_trips,
    line_break,
    eos_behind_prompts,
    eos_not_added,
    bos_twice,
    other_bos,
    template_differs,
    tools_not_shown,
    empty_tokens,
    padding_tokens,
    hugging_face_splitting,
    dropped_spaces,
    corrections,
    known_family,
)
# Those that are made for tokenizers that are not supported as well.
COMMON_CHECKS = frozenset(
    (
        _other_tokenizer,
        wrong_model,
        byte_order,
        wrong_types,
        duplicates,
        lengths,
        tokens_moved,
        wrong_special_ids,
        template_errors,
        template_is_settings,
        unused_markers,
        chat_markers,
        empty_tokens,
        padding_tokens,
    )
)
# Those that make no sense for models without a pre-tokenizer.
BYTE_PAIR_CHECKS = frozenset(
    (
        pre_tokenizer,
        merge_parts,
        exchanged_tokens,
        unreachable,
        lost_bytes,
        round_trips,
        hugging_face_splitting,
    )
)
# Those whose findings depend on tokens and merges, which no proposed change touches, so that a proof (proposal.py) need
# not run them again. Some read types as well, but only to be silent about tokens that are no text.
CHECKS_OF_TOKENS = frozenset(
    (
        unconverted_pieces,
        unconverted_spaces,
        duplicates,
        empty_tokens,
        rows_of_tokens,
        merge_parts,
        last_tokens_missing,
        exchanged_tokens,
        unreachable,
        padding_tokens,
    )
)
