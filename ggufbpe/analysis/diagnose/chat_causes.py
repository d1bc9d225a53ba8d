"""Describes causes that no change of a chat explains: BOS and EOS around its prompt, other text, a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..._util.errors import printable
from .cause import Cause
from .id_evidence import text_difference

NO_TEMPLATE = "the model file has no chat template, so llama-server uses ChatML"


def with_first_difference(cause: Cause, ours: bytes | None, theirs: bytes, refusal: str) -> Cause:
    """The cause with the place where `theirs` first differs from our prompt, or with why there is no prompt of ours."""
    what = str(cause.detail["what"])
    if ours is None:
        return cause._replace(
            detail={**cause.detail, "what": f"{what}; llama-server refuses the chat: {refusal}"}
        )
    if ours == theirs:
        return cause
    detail = text_difference(ours, ours, theirs)
    what += f": first {detail['theirs']!r} instead of {detail['ours']!r} at byte {detail['offset']}"
    return cause._replace(detail={**cause.detail, "what": what, "first": detail})


# ---- around the prompt ----------------------------------------------------------------------------------


def end_token_causes(name: str, piece: bytes, ours: int, theirs: int, adds: bool) -> Iterable[Cause]:
    """The cause if BOS or EOS (`name`) is at an end of the given prompt `theirs` times, and in ours `ours` times."""
    if ours == theirs:
        return
    upper, side = name.upper(), "begins" if name == "bos" else "ends"
    shown = printable(piece.decode("utf-8", "replace"))
    if theirs > ours:
        what = f"the given prompt {side} with {upper}, {shown}"
        fix = f"let the other tool write no {upper} into the prompt"
        if adds:
            what += f", which the tokenizer adds: llama-server removes the template's {upper}"
            fix = f"encode the given prompt without adding special tokens, otherwise {upper} is there twice"
    else:
        what = f"the prompt {side} with {upper}, {shown}, but the given one does not"
        fix = f"leave the template's {upper} in the prompt, since the tokenizer of this model adds none"
    yield Cause(name, {"what": what, "problem": "in the prompt", "ours": ours, "theirs": theirs}, fix)


# Anything that may be a marker, XML-like tags and role names among them: a marker only selects which of llama.cpp's
# templates are tried. Doctor's pattern (analysis/doctor/chat_markers.py) knows far fewer, since each marker that is no
# token is a finding there. With that pattern, only 90 of 114 prompts of other templates are explained here; with this
# one, 101.
_MARKER = re.compile(r"<\|?[A-Za-z_/][\w/ -]{0,30}\|?>|<｜[^｜]{1,30}｜>|\[/?[A-Z][A-Z_]{2,20}\]")
_MOST_MARKERS = 3


def marker_texts(text: str) -> set[str]:
    """What looks like a marker of a chat template in a text.

    >>> sorted(marker_texts("<|im_start|>user\\n[INST] a < b"))
    ['<|im_start|>', '[INST]']
    """
    return {match[0] for match in _MARKER.finditer(text)}


def prompt_differs(prompt: bytes, expected: bytes, messages: object) -> Cause:
    """Where a prompt and the expected one first differ, if nothing explains why: the message, and foreign markers."""
    detail = text_difference(prompt, prompt, expected)
    what = (
        f"the prompts differ ({detail['how']} at byte {detail['offset']}): "
        f"{detail['theirs']!r} instead of {detail['ours']!r}"
    )
    at = _message_at(prompt, detail["offset"], messages)
    if at is not None:
        what += f", in message {at}, counted from 0"
    texts = [text.decode("utf-8", "replace") for text in (prompt, expected)]
    others = sorted(marker_texts(texts[1]) - marker_texts(texts[0]), key=texts[1].index)[:_MOST_MARKERS]
    if others:
        shown = ", ".join(others)
        what += f"; only the given one has {shown}: is it from another template?"
    fix = "compare the two prompts at this place; `ggufbpe chat` prints the one of this model"
    return Cause("prompt_differs", {"what": what, **detail, "message": at, "markers": others}, fix)


def _message_at(prompt: bytes, offset: object, messages: object) -> int | None:
    """The message whose content is at a byte of the prompt."""
    end = 0
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        text = content.strip().encode("utf-8", "replace") if isinstance(content, str) else b""
        start = prompt.find(text, end) if text else -1
        if start >= 0:
            end = start + len(text)
            if start <= int(str(offset)) < end:
                return number
    return None


def refused(reason: str) -> Cause:
    """The chat is refused, so there is no prompt to compare with."""
    what = f"llama-server refuses this chat: {reason}"
    return Cause(
        "refused", {"what": what, "reason": reason}, "change the chat as the reason says, or its template"
    )


_AS_TOLD = {  # how causes that any text can have arise with a chat: by id and problem
    ("bos", "twice"): (
        "BOS is there twice: the template writes it, and the tokenizer adds it",
        "let the other tool encode the prompt without adding special tokens (in transformers "
        "add_special_tokens=False, or apply_chat_template with tokenize=True)",
    ),
    ("bos", "missing"): (
        "BOS is missing: it was not added to the prompt, and the template does not write it",
        "let the other tool encode the prompt with special tokens added, as llama-server does",
    ),
    ("parse_special", False): (
        "in the given ids, markers of the template are encoded as plain text; in llama-server they are special tokens",
        "let the other tool parse special tokens (llama.cpp: parse_special=true)",
    ),
}


def as_told_of_a_chat(cause: Cause) -> Cause:
    """A cause that any text can have, worded for a chat."""
    key = cause.id, cause.detail.get("problem", cause.detail.get("theirs"))
    what, fix = _AS_TOLD.get(key, (cause.detail["what"], cause.fix))
    return cause._replace(detail={**cause.detail, "what": what}, fix=fix)
