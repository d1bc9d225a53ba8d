"""Checks that the chat template makes prompts, and that its markers and BOS are right.

Without jinja2 the template is not run, and only its source is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..._util.errors import ChatError, printable
from ..._util.extras import NotInstalledError
from ..._util.wording import counted, listed
from ...chat.known_templates import known_template, known_templates
from ...gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ...models.vocabulary import SPECIAL_TYPES
from ..oracles.chat_answers import Refused
from .chat_markers import PLAIN_MARKERS, markers_of, markers_of_prompt, without_comments
from .facts import DRAFTERS, TEXTS_OF_IDS, Facts
from .finding import Finding
from .known_template_check import replacement
from .marker_types import set_marker_types
from .sample_prompts import QUESTION, SamplePrompts
from .template_sources import transformers_settings
from .token_checks import bracketed, is_misspelt
from .unused_marker_check import unused_in_template

_K = TokenizerKey

_POOLS_LAST = 3  # LLAMA_POOLING_TYPE_LAST
_EMBEDS = re.compile(r"(?i)embed|rerank|\b(bge|e5|gte)\b")  # in names of models that write no answers
_CHATS = re.compile(
    r"(?i)\b(instruct|chat)\b|gemma.*\bit\b"
)  # in names of models that do; others' "it" is Italian
_GO = re.compile(r"\{\{-?\s*(?:(?:if|else if|range|with|not|and|or|eq|ne)\s+)*[.$][A-Za-z]")  # a value in Go


def template_errors(model: Facts) -> Iterator[Finding]:
    """A template with which llama-server does not start: it cannot be parsed, or refuses a single message."""
    if not model.templates:
        return
    try:
        from ...chat.bos_eos import BosEos
        from ...chat.render import ChatTemplate

        is_broken = False
        for name, source in model.templates.items():
            if transformers_settings(source) is not None:  # which `template_is_settings` reports
                is_broken |= not name
                continue
            try:
                ChatTemplate(source, BosEos())
            except ChatError as error:
                is_broken |= not name
                yield _error(model, name, "cannot be parsed", error)
    except NotInstalledError as error:
        yield Finding(
            "note",
            "template_not_run",
            "The chat template was not run; only its source was checked.",
            "Some problems, such as a second BOS or an answer that does not end, only show in prompts.",
            str(error),
            model.key(_K.CHAT_TEMPLATE),
        )
        return
    refused = model.rendered.refusal("user") if model.rendered else None
    if refused is not None and not is_broken:
        yield _error(model, "", "refuses a chat of one message", refused)


def _error(model: Facts, name: str, what: str, error: ChatError | Refused) -> Finding:
    key = f"{_K.CHAT_TEMPLATE}.{name}" if name else _K.CHAT_TEMPLATE
    severity, why = "error", "llama-server does not start with such a template (except with --no-jinja)."
    known = replacement(model, of_base=True)
    if name:
        severity, fix = "warning", model.remove(key)
        why = "llama.cpp ignores it, and uses the default template for these chats, too."
    elif known:
        fix = f"use llama.cpp's template for this model: {model.set_template(known)}"
    elif all(text in model.ids for text in ("<|im_start|>", "<|im_end|>")):
        fix = f"set the right one, or remove it, so that llama-server uses ChatML: {model.remove(key)}"
    else:
        fix = f"set the right one: {model.set_template_file()}"
    return Finding(
        severity,
        "template_error",
        f"The chat template {f'{name} ' * bool(name)}{what}.",
        why,
        fix,
        model.key(key),
        {"line": error.line, "reason": error.reason},
        f"{_said(error)}.{_IS_GO * bool(_GO.search(model.templates[name]))}",
    )


_IS_GO = " It is a Go template of Ollama's, which llama.cpp cannot read."


def _said(error: ChatError | Refused) -> str:
    where = "" if error.line is None else f"line {error.line}: "
    return where + printable(error.reason, 300)[1:-1]


def template_missing(model: Facts) -> Iterator[Finding]:
    """A model without a template, although its own name says that it was trained with chats."""
    is_chat_model = any(_CHATS.search(model.text(key)) for key in ("general.basename", KEY_NAME))
    if model.templates or model.tokenizer is None or not is_chat_model or _writes_no_answers(model):
        return
    has_chatml = all(text in model.ids for text in ("<|im_start|>", "<|im_end|>"))
    known = replacement(model) or (known_template("chatml") if has_chatml else None)
    yield Finding(
        "warning",
        "template_missing",
        "The file has no chat template, although it is called a chat model.",
        "llama-server then writes chats in ChatML, and other programs as plain text. With other markers than in "
        "training, answers are nonsense, or do not end.",
        model.set_template(known) if known else f"set the original model's: {model.set_template_file()}",
        model.key(_K.CHAT_TEMPLATE),
    )


def makes_embeddings(model: Facts) -> bool:
    """Check that a model writes no answers, by its names or because its file says how embeddings are pooled."""
    return any(map(_EMBEDS.search, model.names)) or _of_architecture(model, "pooling_type") is not None


def _of_architecture(model: Facts, name: str) -> Any:
    """Return the value of a key that begins with the model's architecture; None if the file lacks it."""
    key = f"{model.text(KEY_ARCHITECTURE)}.{name}"
    return model.source[key] if key in model.source else None  # noqa: SIM401 - no dict, has no get


def _writes_no_answers(model: Facts) -> bool:
    """Check that a model makes embeddings or classifies, or only drafts what another model answers."""
    is_drafter = model.text(KEY_ARCHITECTURE) in (*DRAFTERS, "gemma4-assistant")
    return is_drafter or _of_architecture(model, "attention.causal") is False or makes_embeddings(model)


def eos_behind_prompts(model: Facts) -> Iterator[Finding]:
    """An EOS that is added behind a prompt which an answer follows: models whose last token is an embedding want it.

    Source: tools/server, which encodes prompts of chats with special tokens added, as any other text.
    """
    tokenizer = model.tokenizer
    if tokenizer is None or not model.rendered or not model.adds("eos") or not model.obeys_flags:
        return
    if (model.family and model.family.add_eos) or makes_embeddings(model):
        return
    prompt, eos = model.rendered.prompt("user"), tokenizer.eos_id
    if eos is None or not prompt or model.encode(prompt, add_special=True)[-1:] != [eos]:
        return
    yield Finding(
        "warning",
        "eos_behind_prompts",
        "Prompts end with the token that ends answers.",
        "To the model, the answer is then over before it has begun, so that it is empty or about something else.",
        model.set(_K.ADD_EOS, "false"),
        model.key(_K.ADD_EOS, eos),
        {"token": eos},
        f"{_K.ADD_EOS} is true, so llama-server adds token {eos}, {model.quoted(eos)}, behind the prompts of chats.",
    )


def bos_twice(model: Facts) -> Iterator[Finding]:
    """BOS twice in llama-server's prompts, or in those of programs that run the template themselves."""
    tokenizer = model.tokenizer
    if tokenizer is None or not tokenizer.add_bos or tokenizer.bos_id is None:
        return
    text = tokenizer.vocabulary.tokens[tokenizer.bos_id]
    fix = "" if model.expects_bos else model.set(_K.ADD_BOS, "false")
    prompt = (model.rendered.prompt("user") or b"") if model.rendered else b""
    before, found, _ = prompt.partition(QUESTION.encode())
    begin = model.encode(before, add_special=True) if found else []
    if begin.count(tokenizer.bos_id) > 1:
        bare = model.rendered.bare.partition(QUESTION.encode())[0] if model.rendered else b""
        yield Finding(
            "warning",
            "bos_twice",
            "Chats begin with BOS twice.",
            "One is added to every text, and the template writes another. llama.cpp only removes one that is the very "
            "beginning of a prompt. Many models answer worse with two.",
            f"do not add it: {fix}"
            if fix and bare.count(text.encode()) == 1
            else f"set a template that writes it once: {model.set_template_file()}",
            model.key(_K.CHAT_TEMPLATE),
            {"bos": tokenizer.bos_id, "text": text, "begin": begin},
            f"llama-server's prompts begin with {printable(text)} twice.",
        )
        return
    template = without_comments(model.template)
    literally = text in template and tokenizer.bos_id != tokenizer.eos_id
    if literally or re.search(r"\bbos_token\b", template):
        written = printable(text) if literally else "bos_token"
        yield Finding(
            "note",
            "bos_twice",
            "Both llama.cpp and the chat template add BOS.",
            "llama-server removes one. A program that renders the template itself and then encodes the prompt with "
            "special tokens added gets two, and many models answer worse with that.",
            "nothing to do for llama-server; elsewhere, encode prompts without adding BOS"
            + (f", or {fix}" if fix and model.family else ""),  # else the file alone says that BOS is right
            model.key(_K.CHAT_TEMPLATE),
            {"bos": tokenizer.bos_id, "text": text},
            f"BOS is added to every text, and the chat template writes it as well ({written}).",
        )


def eos_not_added(model: Facts) -> Iterator[Finding]:
    """No EOS behind texts whose last token is their embedding."""
    tokenizer = model.tokenizer
    if _of_architecture(model, "pooling_type") != _POOLS_LAST or tokenizer is None:
        return
    eos = model.scalar(_K.EOS_ID)  # without it, llama.cpp would add a default, which may be any word
    if model.adds("eos") or not model.obeys_flags or tokenizer.eos_id is None or eos != tokenizer.eos_id:
        return
    yield Finding(
        "note",
        "eos_not_added",
        "The last token of a text gives its embedding, and EOS is not added there.",
        "Most such models, as Qwen3 Embedding, were trained with EOS at the end, and find less without it.",
        f"if the original model adds {model.quoted(tokenizer.eos_id)}: {model.set(_K.ADD_EOS, 'true')}",
        model.key(_K.ADD_EOS, tokenizer.eos_id),
    )


def other_bos(model: Facts) -> Iterator[Finding]:
    """A template that writes the BOS of another model, after the one that is added."""
    tokenizer, rendered = model.tokenizer, model.rendered
    if tokenizer is None or rendered is None or not tokenizer.add_bos or tokenizer.bos_id is None:
        return
    prompt = rendered.prompt("user") or b""
    begin = model.encode(prompt.partition(QUESTION.encode())[0], add_special=True)[:2]
    if len(begin) < 2 or begin[0] != tokenizer.bos_id or begin[1] == tokenizer.bos_id:
        return
    own, other = (model.tokens[token] for token in begin)
    if other in TEXTS_OF_IDS[_K.BOS_ID] and other not in ("<|endoftext|>", "[CLS]"):
        yield Finding(
            "warning",
            "bos_differs",
            "Chats begin with two different BOS tokens.",
            "llama.cpp only removes a BOS that the template writes if it is the file's. One of the two is wrong.",
            f"if the template is right: {model.set(_K.BOS_ID, begin[1])}",
            model.key(_K.CHAT_TEMPLATE),
            {"begin": begin},
            f"llama-server's prompts begin with {printable(own)}, which is added to every text, and then with "
            f"{printable(other)}, which the chat template writes.",
        )


def chat_markers(model: Facts) -> Iterator[Finding]:
    """Markers of the chat template that are not a special token: either no token at all, or a normal one."""
    plain_prompts, prompts = _written(model.rendered)
    source = markers_of(model.template)
    usual, shown = markers_of_prompt(plain_prompts), markers_of_prompt(prompts)
    groups: dict[tuple[str, str], list[str]] = {}
    told = frozenset(unused_in_template(model))  # by a check of their own
    # if a tokenizer cannot be opened, and other markers fit it, nothing tells which chats have one that is no token
    fits = model.tokenizer is None and not all(is_cut(model, marker) for marker in source)
    for marker in dict.fromkeys((*shown, *source)):
        if not is_cut(model, marker) or model.ids.get(marker) in told or (fits and marker not in model.ids):
            continue
        # what only looks like a marker may contain the name of a role
        is_shown = marker in usual or (marker in source and (marker in shown or not prompts))
        severity = "warning" if is_shown else "note"
        why = (
            _CUT
            if is_shown
            else "Chats of only a user and the assistant do not have it; in others it is encoded as plain text."
        )
        if marker not in model.ids and PLAIN_MARKERS.fullmatch(marker):
            severity, why = "note", "In some models, such as Llama 2, that is intended."
        groups.setdefault((severity, why), []).append(marker)
    for (severity, why), markers in groups.items():
        ordinary = [marker for marker in markers if marker in model.ids]
        if ordinary:
            yield _ordinary(model, severity, why, ordinary)
        if unknown := [marker for marker in markers if marker not in model.ids]:
            yield _no_tokens(model, severity, why, unknown)


_CUT = "To the model that the template was written for, a marker is one special token; encoded as text, it is not."


def _ordinary(model: Facts, severity: str, why: str, markers: list[str]) -> Finding:
    tokens = [model.ids[marker] for marker in markers]
    return Finding(
        severity,
        "chat_marker",
        "The chat template uses markers that are stored as ordinary text.",
        why,
        set_marker_types(model, tokens),
        model.key(_K.CHAT_TEMPLATE, tokens[0]),
        {"markers": markers},
        f"{counted(len(markers), 'marker is a normal token', 'markers are normal tokens')}: "
        f"{listed(markers, len(markers))}.",
    )


def _no_tokens(model: Facts, severity: str, why: str, markers: list[str]) -> Finding:
    cut = [len(model.encode(marker)) for marker in markers] if model.tokenizer else []
    told = f"{counted(len(markers), 'marker is not a token', 'markers are not tokens')}: "
    told += f"{listed(markers, len(markers))}."
    if any(cut):
        told += f" Encoded as text, {'each' if len(cut) > 1 else 'it'} becomes up to {counted(max(cut), 'token')}."
    if model.family and len(model.tokens) < model.family.size:
        told += (
            f" The file has only {counted(len(model.tokens), 'token')}; {model.family.name} files have "
            f"{model.family.size}, so some may be missing here."
        )
    return Finding(
        severity,
        "chat_marker",
        "The chat template uses markers that the vocabulary does not have.",
        why,
        _fix_of_no_tokens(model, severity, markers),
        model.key(_K.CHAT_TEMPLATE),
        {"markers": markers},
        told,
    )


def _fix_of_no_tokens(model: Facts, severity: str, markers: list[str]) -> str:
    known_markers = [marker for marker in markers_of(model.template) if not is_cut(model, marker)]
    is_one_of_many = severity == "warning" and len(markers) == 1 and known_markers
    misspelt = _token_in_place_of(model, markers[0]) if is_one_of_many else None
    is_usual = misspelt is not None and _is_in_known_templates(model.tokens[misspelt])
    if misspelt is not None and not is_usual:
        rename = model.rename(misspelt, markers[0])
        return f"token {misspelt}, {model.quoted(misspelt)}, stands in its place; rename it: {rename}"
    known = replacement(model)
    or_else = (
        "or tokens were renamed or lost" if known_markers else "unless this one was trained with such text"
    )
    cause = f"the template is for another model, {or_else}"
    if misspelt is not None:
        cause = f"the template misspells token {misspelt}, {model.quoted(misspelt)}"
    return (
        f"{cause}; use llama.cpp's template for this model: {model.set_template(known)}"
        if known
        else f"{cause}; set the right template: {model.set_template_file()}"
    )


def _is_in_known_templates(marker: str) -> bool:
    """Check that a template of llama.cpp's has a marker, so that no vocabulary misspells it."""
    return any(marker in known.source for known in known_templates().values())


def _token_in_place_of(model: Facts, marker: str) -> int | None:
    """The one token, used for nothing else, that is a marker spelt otherwise, as <|imend|> in place of <|im_end|>."""
    found = [
        token
        for token in bracketed(model)
        if is_misspelt(text := model.tokens[token], marker)
        and text not in model.template
        and text not in model.merged
        and "=" not in text
    ]
    return found[0] if len(found) == 1 else None


def _written(rendered: SamplePrompts | None) -> tuple[str, str]:
    """The prompts of chats of only a user and the assistant, joined, and those of all chats."""
    if rendered is None:
        return "", ""
    usual = b"\n".join([*(rendered.prompt(chat) or b"" for chat in ("user", "turns")), rendered.bare])
    return usual.decode("utf-8", "replace"), rendered.text


def is_cut(model: Facts, marker: str) -> bool:
    """Whether a marker is not one special token."""
    token = model.ids.get(marker)
    return token is None or not _is_special(model, token)


def _is_special(model: Facts, token: int) -> bool:
    if model.tokenizer is not None:
        return bool(model.tokenizer.vocabulary.attributes[token] & SPECIAL_TYPES)
    kinds = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
    return model.type_of(token) in map(int, kinds)
