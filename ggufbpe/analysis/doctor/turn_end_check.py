"""Checks that what the chat template writes after an answer ends a generation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..._util.wording import listed
from ...gguf.constants import TokenizerKey
from ...models.loading import load
from .chat_markers import markers_of_prompt
from .facts import Facts
from .finding import Finding
from .known_template_check import replacement
from .sample_prompts import ANSWER, QUESTION
from .special_id_checks import beginnings_of
from .template_checks import is_cut

_K = TokenizerKey

_END = re.compile(r"(?i)end|eo[stm]\b|</|sep|close|stop|return|done|\[/|e~")  # of tokens that end something


def turn_ends(model: Facts) -> Iterator[Finding]:
    """What the template writes after an answer, if that does not end a generation."""
    if model.tokenizer is None or not model.template:
        return
    vocabulary = model.tokenizer.vocabulary
    ends = vocabulary.eog_ids
    behind = model.rendered.behind_answer if model.rendered else (b"", b"")
    last, before_next = (_special_tokens(model, text) for text in behind)
    if not ends.isdisjoint((*last, *before_next)):
        return
    token = _end_of_turn(model, last, before_next)
    is_end = token is not None and bool(_END.search(model.tokens[token]))
    if token is not None and (is_end or not _begins_answers(model, token)):
        key = _key_of_end(model, token)
        has_pieces = any(
            is_cut(model, marker) for marker in markers_of_prompt(behind[0].decode("utf-8", "replace"))
        )
        if key is None or (has_pieces and not is_end):  # no key would help; another check reports the marker
            return
        known = listed(sorted(ends), len(ends), shown=model.quoted)
        yield Finding(
            "warning" if is_end else "note",
            "turn_end",
            "Answers in chats do not stop.",
            "A model ends its turn as the template does. llama.cpp does not know that this token ends one.",
            model.set(key, token),
            model.key(_K.CHAT_TEMPLATE, token),
            {"token": token, "ends": sorted(ends)},
            f"The chat template ends an answer with {model.quoted(token)}, token {token}, which does not end a "
            f"generation. llama.cpp knows {known or 'none'} here.",
        )
        return
    named = {vocabulary.tokens[i] for i in ends} | {"eos_token"}
    if not any(n in model.template for n in named):
        yield _no_end(model, vocabulary.special_ids["eot"])


def _no_end(model: Facts, end: int | None) -> Finding:
    """A template that marks no end of answers; `end` is the token that ends a turn, None if the file has none."""
    if end is None:
        return Finding(
            "note",
            "eot_missing",
            "Answers in chats may not stop.",
            "A model ends its turn as the template does. If llama.cpp does not know the token that ends it, answers "
            "do not stop.",
            f"set {_K.EOT_ID} to the id of the token that ends a turn (`ggufbpe fix` with --set)",
            model.key(_K.EOT_ID),
            None,
            "The chat template has none of the tokens that end a generation, and the file has no EOT.",
        )
    known = replacement(model)
    return Finding(
        "note",
        "end_not_written",
        "The chat template does not mark where an answer ends.",
        "A model ends its turn as in the chats that it was trained with. If it sees earlier answers without an end, "
        "it may not end its own.",
        f"use llama.cpp's template for this model: {model.set_template(known)}"
        if known
        else f"set a template that writes {model.quoted(end)} after answers (`ggufbpe fix` with --chat-template)",
        model.key(_K.CHAT_TEMPLATE),
        {"end": end},
        f"The chat template writes none of the tokens that end a generation, such as {model.quoted(end)}.",
    )


def _begins_answers(model: Facts, token: int) -> bool:
    """Check that a token begins answers, as <|im_start|> begins every message, so that it ends none of them."""
    prompt = (model.rendered.prompt("turns") if model.rendered else None) or b""
    before, _, _ = prompt.partition(ANSWER.encode())
    return _special_tokens(model, before.rpartition(QUESTION.encode())[2])[-1:] == [token]


def _end_of_turn(model: Facts, last: list[int], before_next: list[int]) -> int | None:
    """Which of the special tokens after an answer ends it: some may begin what follows.

    After the last answer, some templates write nothing, and some the beginning of another one. What ends the name of
    the next role, as <|end_header_id|>, ends no turn.
    """
    same = [one for one, other in zip(last, before_next) if one == other] if last else before_next
    ends = [
        token
        for at, token in enumerate(same)
        if _END.search(model.tokens[token])
        and set(same[:at]).isdisjoint(beginnings_of(model, model.tokens[token]))
    ]
    return ends[-1] if ends else same[0] if same else None


def _special_tokens(model: Facts, text: bytes) -> list[int]:
    """The special tokens in text that the template wrote, except BOS."""
    assert model.tokenizer is not None
    vocabulary = model.tokenizer.vocabulary
    special, bos = frozenset(vocabulary.special_token_ids), model.tokenizer.bos_id
    ids = model.encode(text)
    return [i for i in ids if i in special and (i != bos or i == model.tokenizer.eos_id)]


def _key_of_end(model: Facts, token: int) -> str | None:
    """The key by which a token ends a generation while all others that do still do."""
    assert model.tokenizer is not None
    before = model.tokenizer.eog_ids
    for key in (_K.EOT_ID, _K.EOM_ID, _K.EOS_ID):
        given = {**model.overrides, key: token}
        after = load(model.file.path, given)[0].eog_ids
        if token in after and before <= after:
            return key
    return None
