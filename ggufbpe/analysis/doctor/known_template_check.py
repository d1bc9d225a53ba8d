"""Compares the chat template with the one that llama.cpp has for a model of that name.

Names are compared without case and separators. Models of one family that differ in size mostly share a template, and
so may a model and its base model; a difference from those is only a note. A template whose markers are not tokens of
the vocabulary is for another one, and is left out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..._util.errors import printable
from ..._util.wording import counted
from ...chat.known_templates import KnownTemplate, known_build, known_templates
from ...gguf.constants import KEY_NAME, TokenizerKey
from ..oracles.chat_answers import Prompt
from .chat_markers import markers_of, markers_of_prompt
from .facts import Facts
from .finding import Finding
from .sample_prompts import CHATS, PLAIN_CHATS

_K = TokenizerKey
_SIZE = re.compile(r"(?:a|e)?[0-9]+(?:\.[0-9]+)?[bm]|[0-9]+x[0-9]+b")
_BETWEEN = re.compile(r"[\s_/-]+")
_MOST_LINES = 100  # of a difference, in `detail`


class _Match(NamedTuple):
    known: KnownTemplate
    is_exact: bool  # the same model, rather than one like it


def replacement(model: Facts, *, of_base: bool = False) -> KnownTemplate | None:
    """A template of llama.cpp's for this model, or one like it, whose markers are all in the vocabulary.

    With `of_base`, that of its base model as well, in place of a template that no program can use: a tuned model may
    have another on purpose.
    """
    own = _lines(model.template)
    matches = _matches(model, of_base=of_base)  # with a longer name, a variant of llama.cpp's own
    for match in sorted(matches, key=lambda match: (not match.is_exact, len(match.known.name))):
        if (
            not match.known.variant
            and _lines(match.known.source) != own
            and _is_written_in_tokens(model, match.known)
        ):
            return match.known
    return None


def _is_written_in_tokens(model: Facts, known: KnownTemplate) -> bool:
    """Whether all markers that it writes are tokens; some templates assemble them from parts."""
    answers = model.rendered.answers_of(known.source).values() if model.rendered else ()
    texts = [answer.text.decode("utf-8", "replace") for answer in answers if isinstance(answer, Prompt)]
    return all(marker in model.ids for text in texts for marker in markers_of_prompt(text))


def template_differs(model: Facts) -> Iterator[Finding]:
    """A template that is none of those that llama.cpp has for the model. Templates that fail are reported elsewhere."""
    if model.rendered is not None and model.rendered.refusal("user"):
        return
    for variant in ("", "tool_use"):
        own = model.templates.get(variant)
        matches = [match for match in _matches(model) if match.known.variant == variant]
        exact = [match for match in matches if match.is_exact]
        if not own or not matches or any(_lines(match.known.source) == _lines(own) for match in matches):
            continue
        candidates = _of_publishers(exact or matches)
        nearest = min(candidates, key=lambda match: _distance(match.known.source, own))
        yield _difference(model, nearest, own)


def _of_publishers(matches: list[_Match]) -> list[_Match]:
    """Leave out llama.cpp's own variants, to which older templates of a publisher may be nearer."""
    return [match for match in matches if not any(_is_variant(match.known, other.known) for other in matches)]


def _is_variant(known: KnownTemplate, other: KnownTemplate) -> bool:
    """Check that a template is a variant of another one: for the same models, and with a longer name."""
    return known.models == other.models and known.name.startswith(f"{other.name}-")


def _difference(model: Facts, match: _Match, own: str) -> Finding:
    known = match.known
    rows = list(
        difflib.unified_diff(_lines(known.source), _lines(own), known.name, "the file", n=0, lineterm="")
    )
    changed = [row for row in rows[2:] if not row.startswith("@@")]
    others = _other_prompts(model, known)
    plain = [chat for chat in others or () if chat in PLAIN_CHATS]
    like = "" if match.is_exact else " (for a similar model)"
    told = f"It differs from llama.cpp's {known.name} ({known_build()}){like}: {_first(changed)}"
    if others:
        told += f"; prompts differ for {', '.join(others) if len(others) < len(CHATS) else 'all chats that were tried'}"
    elif others is not None:
        told += "; the prompts of all chats that were tried are the same"
    return Finding(
        "warning" if match.is_exact and plain else "note",
        "template_differs",
        "The chat template is not the one that llama.cpp has for this model.",
        "llama.cpp has a copy of the template that the model's publisher had at the time. This one may be newer, or "
        "changed on purpose; if its prompts differ by mistake, the model answers worse.",
        f"to use llama.cpp's: {model.set_template(known)}"
        if match.is_exact or others == []
        else "nothing to do if the original model has this template",
        model.key(f"{_K.CHAT_TEMPLATE}.{known.variant}" if known.variant else _K.CHAT_TEMPLATE),
        {"known": known.name, "same_model": match.is_exact, "prompts": others, "diff": rows[:_MOST_LINES]},
        f"{told}.",
    )


def _first(changed: list[str]) -> str:
    """How many lines were removed and added, and the first of each."""
    ours, theirs = ([row[1:].strip() for row in changed if row[0] == sign] for sign in "+-")
    parts = []
    if theirs:
        parts.append(f"{counted(len(theirs), 'line')} only there, first {printable(theirs[0], 60)}")
    if ours:
        parts.append(f"{counted(len(ours), 'line')} only in the file, first {printable(ours[0], 60)}")
    return "; ".join(parts)


def _other_prompts(model: Facts, known: KnownTemplate) -> list[str] | None:
    """The chats for which the two templates make different prompts; None if they were not run."""
    rendered = model.rendered
    if rendered is None or known.variant:
        return None
    theirs = rendered.answers_of(known.source)
    return [
        chat
        for chat, answer in rendered.answers.items()
        if type(answer) is not type(theirs[chat]) or (isinstance(answer, Prompt) and answer != theirs[chat])
    ]


def _lines(template: str) -> list[str]:
    return template.replace("\r\n", "\n").rstrip("\n").split("\n")


def _distance(one: str, other: str) -> float:
    return -difflib.SequenceMatcher(None, _lines(one), _lines(other), autojunk=False).ratio()


def _matches(model: Facts, *, of_base: bool = True) -> list[_Match]:
    """llama.cpp's templates for the model or one like it that fit this vocabulary."""
    own, base = _names(model)
    base = base if of_base else set()
    if not own and not base:
        return []
    sizeless = {_sizeless(name) for name in own} | {_sizeless(name) for name in base} | base
    found = []
    for known in known_templates().values():
        names = {_words(name) for name in known.models}
        is_exact = not names.isdisjoint(own)
        if is_exact or not ({_sizeless(name) for name in names} | names).isdisjoint(sizeless):
            found.append(_Match(known, is_exact))
    return [match for match in found if all(marker in model.ids for marker in markers_of(match.known.source))]


def _names(model: Facts) -> tuple[set[str], set[str]]:
    """The names of the model in the metadata, and those of its base model."""
    parts = {
        part: model.text(f"general.{part}") for part in ("basename", "size_label", "finetune", "version")
    }
    name, publisher = _words(model.text(KEY_NAME)), _words(model.text("general.organization"))
    own = {name, name.removeprefix(f"{publisher}-")}
    if parts["basename"]:
        own.add(_words(" ".join(part for part in parts.values() if part)))
    base = _words(model.text("general.base_model.0.name"))
    return own - {""}, {base} - {""}


def _words(name: str) -> str:
    """A name in lower case, with one hyphen between its words."""
    return "-".join(word for word in _BETWEEN.split(name.lower()) if word)


def _sizeless(name: str) -> str:
    words = name.split("-")
    return "-".join(word for word in words if not _SIZE.fullmatch(word))
