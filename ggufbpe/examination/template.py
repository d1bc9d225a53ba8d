"""The chat template: whether chats can be made with it, and whether its markers, BOS and ends of turns are tokens.

rendered.py -> [this file] -> examine.py

But: without jinja2 the template is not run, and only its text is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import ChatError, printable
from ..extras import NotInstalledError
from ..gguf.constants import TokenizerKey, TokenType
from ..oracles.chats import Refused
from ..vocab import CONTROL, UNKNOWN, USER_DEFINED, load
from ..wording import counted, listed
from .facts import TEXTS_OF_IDS, Facts
from .finding import Finding, Where
from .known_templates import replacement
from .markers import markers_of, markers_of_prompt, without_comments
from .rendered import QUESTION, SamplePrompts

_K = TokenizerKey

_END = re.compile(r"(?i)end|eo[stm]\b|</|sep|close|stop|return|done|\[/|e~")  # of tokens that end something
_PLAIN_MARKERS = re.compile(r"\[/?INST\]|<</?SYS>>")  # in Llama 2 they are text like any other


def template_errors(model: Facts) -> Iterator[Finding]:
    """A template that llama-server does not start with: it cannot be parsed, or refuses a single message."""
    if not model.templates:
        return
    try:
        from ..chat.render import ChatTemplate, Ends

        is_broken = False
        for name, source in model.templates.items():
            try:
                ChatTemplate(source, Ends())
            except ChatError as error:
                is_broken |= not name
                yield _error(model, name, "cannot be parsed", error)
    except NotInstalledError as error:
        yield Finding(
            "note",
            "template_not_run",
            "the chat template was not run, only its text was looked at",
            "What it makes of chats, such as two BOS or an answer that does not end, shows in its prompts.",
            str(error),
            model.key(_K.CHAT_TEMPLATE),
        )
        return
    refused = model.rendered.refusal("user") if model.rendered else None
    if refused is not None and not is_broken:
        yield _error(model, "", "refuses a chat of one message", refused)


def _error(model: Facts, name: str, what: str, error: ChatError | Refused) -> Finding:
    key = f"{_K.CHAT_TEMPLATE}.{name}" if name else _K.CHAT_TEMPLATE
    severity, why = "error", "llama-server does not start with such a template (but with --no-jinja)."
    known = replacement(model)
    if name:
        severity, why = (
            "warning",
            "llama.cpp passes it over, and takes the one without a name for these chats, too.",
        )
        fix = model.remove(key)
    elif known:
        fix = f"take llama.cpp's for this model: {model.set_template(known)}"
    elif all(text in model.ids for text in ("<|im_start|>", "<|im_end|>")):
        fix = f"set the right one, or take it out, and llama-server takes ChatML's: {model.remove(key)}"
    else:
        fix = f"set the right one: {model.set_template_file()}"
    return Finding(
        severity,
        "template_error",
        f"the chat template {f'{name} ' * bool(name)}{what}: {_said(error)}",
        why,
        fix,
        model.key(key),
        {"line": error.line, "reason": error.reason},
    )


def _said(error: ChatError | Refused) -> str:
    where = "" if error.line is None else f"line {error.line}: "
    return where + printable(error.reason, 300)[1:-1]


def bos_twice(model: Facts) -> Iterator[Finding]:
    """A BOS that llama-server's prompts have twice; or that a program which runs the template itself has."""
    tokenizer = model.tokenizer
    if tokenizer is None or not tokenizer.add_bos or tokenizer.bos_id is None:
        return
    text = tokenizer.vocabulary.tokens[tokenizer.bos_id]
    stays = tokenizer.vocabulary.pre_tokenizer.always_add_bos
    fix = "" if stays else model.set(_K.ADD_BOS, "false")
    prompt = (model.rendered.prompt("user") or b"") if model.rendered else b""
    before, found, _ = prompt.partition(QUESTION.encode())
    begin = tokenizer.encode(before) if found else []
    if begin.count(tokenizer.bos_id) > 1:
        bare = model.rendered.bare.partition(QUESTION.encode())[0] if model.rendered else b""
        yield Finding(
            "warning",
            "bos_twice",
            f"llama-server's prompts begin with two BOS ({printable(text)})",
            "One is added to every text, and the template writes another. llama.cpp takes away a BOS that a prompt "
            "begins with, but no second one, and none behind something else. Many models answer worse.",
            f"do not add it: {fix}"
            if fix and bare.count(text.encode()) == 1
            else f"write it once, in a template of your own: {model.set_template_file()}",
            model.key(_K.CHAT_TEMPLATE),
            {"bos": tokenizer.bos_id, "text": text, "begin": begin},
        )
        return
    template = without_comments(model.template)
    literally = text in template and tokenizer.bos_id != tokenizer.eos_id
    if literally or re.search(r"\bbos_token\b", template):
        written = printable(text) if literally else "bos_token"
        yield Finding(
            "note",
            "bos_twice",
            f"BOS is added to every text, and the chat template writes it as well ({written})",
            "llama-server takes one away. A program that renders the template itself and then encodes "
            "the result with special tokens added sends two, which many models answer worse.",
            "nothing to do for llama-server; elsewhere, encode rendered prompts without adding BOS"
            + (f", or {fix}" if fix else ""),
            model.key(_K.CHAT_TEMPLATE),
            {"bos": tokenizer.bos_id, "text": text},
        )


def other_bos(model: Facts) -> Iterator[Finding]:
    """A template that begins with the BOS of other models, behind the one that is added."""
    tokenizer, rendered = model.tokenizer, model.rendered
    if tokenizer is None or rendered is None or not tokenizer.add_bos or tokenizer.bos_id is None:
        return
    prompt = rendered.prompt("user") or b""
    begin = tokenizer.encode(prompt.partition(QUESTION.encode())[0])[:2]
    if len(begin) < 2 or begin[0] != tokenizer.bos_id or begin[1] == tokenizer.bos_id:
        return
    own, other = (model.tokens[token] for token in begin)
    if other in TEXTS_OF_IDS[_K.BOS_ID] and other not in ("<|endoftext|>", "[CLS]"):
        yield Finding(
            "warning",
            "bos_differs",
            f"llama-server's prompts begin with {printable(own)}, which is added to every text, and then with "
            f"{printable(other)}, which the chat template writes",
            "llama.cpp takes away the BOS that a template writes only where it is that of the file. One of the two "
            "is wrong.",
            f"if the template is right: {model.set(_K.BOS_ID, begin[1])}",
            model.key(_K.CHAT_TEMPLATE),
            {"begin": begin},
        )


def chat_markers(model: Facts) -> Iterator[Finding]:
    """Markers of the chat template that are not one special token: no token at all, or an ordinary one."""
    plain_prompts, prompts = _written(model.rendered)
    source = markers_of(model.template)
    usual, shown = markers_of_prompt(plain_prompts), markers_of_prompt(prompts)
    groups: dict[tuple[str, str], list[str]] = {}
    for marker in dict.fromkeys((*shown, *source)):
        if not _is_cut(model, marker):
            continue
        # the name of a role may become what only looks like one
        is_shown = marker in usual or (marker in source and (marker in shown or not prompts))
        severity = "warning" if is_shown else "note"
        why = (
            _CUT
            if is_shown
            else "Chats of a user and the assistant do not have it; in others it is plain text."
        )
        if marker not in model.ids and _PLAIN_MARKERS.fullmatch(marker):
            severity, why = "note", "In some models it is meant so, as in Llama 2."
        groups.setdefault((severity, why), []).append(marker)
    for (severity, why), markers in groups.items():
        ordinary = [marker for marker in markers if marker in model.ids]
        if ordinary:
            yield _ordinary(model, severity, why, ordinary)
        if unknown := [marker for marker in markers if marker not in model.ids]:
            yield _no_tokens(model, severity, why, unknown)


_CUT = "A marker is one special token to the model that the template was written for; pieces of text are not the same."


def _ordinary(model: Facts, severity: str, why: str, markers: list[str]) -> Finding:
    tokens = [model.ids[marker] for marker in markers]
    if len(markers) == 1:
        what = f"{printable(markers[0])}, which is token {tokens[0]}, but an ordinary one, so it is cut like other text"
    else:
        what = f"{len(markers)} markers that are ordinary tokens, so they are cut like other text: " + listed(
            markers, len(markers)
        )
    return Finding(
        severity,
        "chat_marker",
        f"the chat template has {what}",
        why,
        model.set_types(CONTROL=sorted(tokens)),
        Where(_K.CHAT_TEMPLATE, tokens[0], model.key(_K.CHAT_TEMPLATE).offset),
        {"markers": markers},
    )


def _no_tokens(model: Facts, severity: str, why: str, markers: list[str]) -> Finding:
    cut = model.tokenizer and [len(model.tokenizer.encode(marker, add_special=False)) for marker in markers]
    if len(markers) == 1:
        what = f"{printable(markers[0])}, which is no token" + (
            f", and becomes {counted(cut[0], 'token')}" if cut else ""
        )
    else:
        what = f"{len(markers)} markers that are no tokens" + (
            f", and become up to {max(cut)} each" if cut else ""
        )
        what += f": {listed(markers, len(markers))}"
    known = replacement(model)
    return Finding(
        severity,
        "chat_marker",
        f"the chat template has {what}",
        why,
        f"the template is of another model; llama.cpp's for this one: {model.set_template(known)}"
        if known
        else f"the template is of another model: set the right one with {model.set_template_file()}",
        model.key(_K.CHAT_TEMPLATE),
        {"markers": markers},
    )


def _written(rendered: SamplePrompts | None) -> tuple[str, str]:
    """All prompts of a user and the assistant alone, one after the other, and all that there are."""
    if rendered is None:
        return "", ""
    found = {chat: prompt for chat in rendered.answers if (prompt := rendered.prompt(chat)) is not None}
    usual = b"\n".join([*(found.get(chat, b"") for chat in ("user", "turns")), rendered.bare])
    return usual.decode("utf-8", "replace"), b"\n".join(found.values()).decode("utf-8", "replace")


def _is_cut(model: Facts, marker: str) -> bool:
    """Whether a marker is not one special token."""
    token = model.ids.get(marker)
    return token is None or not _is_special(model, token)


def _is_special(model: Facts, token: int) -> bool:
    if model.tokenizer is not None:
        return bool(model.tokenizer.vocabulary.attributes[token] & (CONTROL | USER_DEFINED | UNKNOWN))
    kinds = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
    return model.type_of(token) in map(int, kinds)


def turn_ends(model: Facts) -> Iterator[Finding]:
    """What the template writes behind an answer, where it does not end a generation."""
    if model.tokenizer is None or not model.template:
        return
    vocabulary = model.tokenizer.vocabulary
    ends = vocabulary.eog_ids
    behind = model.rendered.behind_answer if model.rendered else (b"", b"")
    last, before_next = (_special_tokens(model, text) for text in behind)
    if not ends.isdisjoint((*last, *before_next)):
        return
    token = _end_of_turn(model, last, before_next)
    if token is not None:
        key, is_end = _key_of_end(model, token), bool(_END.search(model.tokens[token]))
        has_pieces = any(
            _is_cut(model, marker) for marker in markers_of_prompt(behind[0].decode("utf-8", "replace"))
        )
        if key is None or (
            has_pieces and not is_end
        ):  # llama.cpp takes it out itself; it is said of the marker
            return
        known = ", ".join([model.quoted(i) for i in sorted(ends)][:9])
        yield Finding(
            "warning" if is_end else "note",
            "turn_end",
            f"the chat template writes {model.quoted(token)}, token {token}, behind an answer, and that does not end a "
            "generation",
            "A model ends its turn as the template does, and llama.cpp goes on after a token that it does not know for "
            f"an end, so answers do not stop. It knows {known or 'none'} here.",
            model.set(key, token),
            Where(_K.CHAT_TEMPLATE, token, model.key(_K.CHAT_TEMPLATE).offset),
            {"token": token, "ends": sorted(ends)},
        )
        return
    named = {vocabulary.tokens[i] for i in ends} | {"eos_token"}
    if vocabulary.special_ids["eot"] is None and not any(n in model.template for n in named):
        yield Finding(
            "note",
            "eot_missing",
            "the chat template has none of the tokens that end a generation, and no EOT is named",
            "A model ends its turn as the template does; with a token that llama.cpp does not know for an end, its "
            "answers do not stop.",
            f"set {_K.EOT_ID} to the id of the token that ends a turn",
            model.key(_K.EOT_ID),
        )


def _end_of_turn(model: Facts, last: list[int], before_next: list[int]) -> int | None:
    """Which of the special tokens behind an answer ends it: they may also begin what follows.

    Behind the last answer some templates write nothing, and some the beginning of another one.
    """
    same = [one for one, other in zip(last, before_next) if one == other] if last else before_next
    ends = [token for token in same if _END.search(model.tokens[token])]
    return ends[-1] if ends else same[0] if same else None


def _special_tokens(model: Facts, text: bytes) -> list[int]:
    """The special tokens in a text of the template's, but for BOS."""
    assert model.tokenizer is not None
    vocabulary = model.tokenizer.vocabulary
    special, bos = frozenset(vocabulary.special_token_ids), model.tokenizer.bos_id
    ids = model.tokenizer.encode(text, add_special=False)
    return [i for i in ids if i in special and (i != bos or i == model.tokenizer.eos_id)]


def _key_of_end(model: Facts, token: int) -> str | None:
    """The key that makes a token one that ends a generation, and takes that from no other."""
    assert model.tokenizer is not None
    before = model.tokenizer.eog_ids
    for key in (_K.EOT_ID, _K.EOM_ID, _K.EOS_ID):
        given = {**model.overrides, key: token}
        after = load(model.file.path, given)[0].eog_ids
        if token in after and before <= after:
            return key
    return None
