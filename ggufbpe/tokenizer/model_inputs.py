"""Forms the inputs of models that rank documents or fill in the middle, as llama-server does.

Source: format_prompt_rerank and format_prompt_infill in tools/server/server-common.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Tokenizer

_RERANK = "rerank"  # the name of the template for pairs
_SNIPPET = "\n\n--- snippet ---\n\n"  # between files, if there is no token for that


def encode_pair(tokenizer: Tokenizer, a: str, b: str, limit: int | None) -> list[int]:
    """Return the ids of a pair; see `Tokenizer.encode_pair`."""
    template = tokenizer.chat_templates.get(_RERANK)
    if limit is None:
        return _pair(tokenizer, a, b, template)
    room = limit - len(_pair(tokenizer, "", "", template))
    if room < 0:
        raise ValueError(f"a pair of empty texts has more than {limit} tokens")
    while True:
        first, second = _longest_first(tokenizer, a, b, room)
        ids = _pair(tokenizer, first, second, template)
        if len(ids) <= limit:
            return ids
        if room == 0:
            raise ValueError(f"no part of this pair has at most {limit} tokens in the template")
        # Where a template and a text meet, there may be more tokens than in each alone.
        room = max(room - (len(ids) - limit), 0)


def _pair(tokenizer: Tokenizer, a: str, b: str, template: str | None) -> list[int]:
    if template is not None:
        prompt = template.replace("{query}", a).replace("{document}", b)
        return tokenizer.encode(prompt, add_special=False)
    vocabulary, special = tokenizer.vocabulary, tokenizer.special_ids
    end = special.get("eos", special.get("sep"))
    ends = [end] if vocabulary.add_eos and end is not None else []
    return [
        *([special["bos"]] if vocabulary.add_bos and "bos" in special else []),
        *tokenizer.encode_ordinary(a),
        *ends,
        *([special["sep"]] if vocabulary.add_sep and "sep" in special else []),
        *tokenizer.encode_ordinary(b),
        *ends,
    ]


def _longest_first(tokenizer: Tokenizer, a: str, b: str, room: int) -> tuple[str, str]:
    """The texts cut so that they have at most `room` ids together: the longer one first, then both alike."""
    counts = [tokenizer.count(text, add_special=False, parse_special=False, limit=room) for text in (a, b)]
    smaller = min(*counts, room // 2)
    rooms = [room - smaller if count > smaller else smaller for count in counts]
    if min(counts) > room // 2:
        rooms = [(room + 1) // 2, room // 2]
    return tuple(  # type: ignore[return-value]
        tokenizer.truncate(text, most, parse_special=False) for text, most in zip((a, b), rooms)
    )


def encode_infill(
    tokenizer: Tokenizer,
    prefix: str,
    suffix: str,
    prompt: str,
    extra: Iterable[Mapping[str, str]],
    *,
    n_batch: int,
    n_predict: int,
    n_ctx: int | None,
    spm_infill: bool,
) -> list[int]:
    """Return the ids for filling in between `prefix` and `suffix`; see `Tokenizer.encode_infill`."""
    special, encode = tokenizer.special_ids, tokenizer.encode_ordinary
    names = ("fim_pre", "prefix"), ("fim_suf", "suffix"), ("fim_mid", "middle")
    missing = [f"{meaning} token is missing. " for name, meaning in names if name not in special]
    if missing:
        raise ValueError(f"Infill is not supported by this model: {''.join(missing)}".rstrip())
    before = _extra_ids(tokenizer, extra)
    prompt_ids = tokenizer.encode(prompt, add_special=False)
    prefix_ids, suffix_ids = encode(prefix), encode(suffix)
    # The context of the text is to fit a batch, three parts before the place and one behind it.
    prefix_ids = prefix_ids[max(len(prefix_ids) - 3 * (n_batch // 4), 0) :]
    suffix_ids = suffix_ids[: max(n_batch // 4 - (2 + len(prompt_ids)), 0)]
    if n_ctx is not None:
        before = before[max(len(before) - max(n_ctx - n_batch - 2 * n_predict, 0), 0) :]
    first = [special["fim_pre"], *prefix_ids, *prompt_ids]
    second = [special["fim_suf"], *suffix_ids]
    if spm_infill:
        first, second = second, first
    begin = [special["bos"]] if tokenizer.add_bos and "bos" in special else []
    return [*before, *begin, *first, *second, special["fim_mid"]]


def _extra_ids(tokenizer: Tokenizer, extra: Iterable[Mapping[str, str]]) -> list[int]:
    """The ids of the repository's other files."""
    special, encode = tokenizer.special_ids, tokenizer.encode_ordinary
    ids: list[int] = []
    if "fim_rep" in special:
        ids += [special["fim_rep"], *encode("myproject\n")]
    for file in extra:
        if not isinstance(file, Mapping) or not (
            isinstance(file.get("text"), str) and isinstance(file.get("filename", ""), str)
        ):
            raise TypeError('extra is a list of mappings with a "text" and an optional "filename", both str')
        if "fim_sep" in special:
            ids += [special["fim_sep"], *encode(file.get("filename", "tmp") + "\n")]
        else:
            ids += encode(_SNIPPET)
        ids += encode(file["text"])
    if "fim_sep" in special:
        ids += [special["fim_sep"], *encode("filename\n")]
    return ids
