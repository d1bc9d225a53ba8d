"""Finds in the prompts of a few chats what a template does with the texts and roles of messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise

from ...._util.errors import printable
from ..chat_markers import markers_of_prompt
from ..finding import Finding
from .accesses import inside_names
from .probes import (
    ANSWER,
    OTHER,
    PLAIN,
    SYSTEM,
    TOO_LONG,
    TRICKS,
    WRAPPED,
    ProbeResult,
    Probes,
    message,
    user,
)
from .rules import template_finding
from .template_source import TemplateSource
from .texts import is_known

_ROLE = "quokka"
_MARKER = "<|quokka_end|>"
_ROUNDS = (8, 16, 32)  # turns of the chats by which growth is measured
_SIZES = (500, 1000, 2000)  # words of the messages
_STEEP = 2.6  # how much more the second doubling costs than the first; twice as much is linear
_LEAST_GROWTH = 1000  # steps or characters
_LARGE_PROMPT = 60_000  # characters of the prompt of one word; the largest known one has 10,000
_WORD = re.compile(r"[^\W\d_]{2,}")
_HEADER = re.compile(r"(system|developer|user|human|assistant|model|ai|bot)[^a-z]*$", re.IGNORECASE)
_OF_SYSTEM, _OF_USER, _OF_MODEL = (
    ("system", "developer"),
    ("user", "human"),
    ("assistant", "model", "ai", "bot"),
)
_ROLE_WORD = re.compile(
    r".{2,12}(?:user|human|assistant|model|bot)[^a-zA-Z]{1,4}(?:[a-z_]{1,20}[^a-zA-Z]*)?$", re.DOTALL
)
_TAG = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_NO_ANSWER = frozenset(
    """
    assistant model think final analysis message ai bot chatbot response role
    """.split()
)
_Told = tuple[str, str]  # the id of a rule, and what shows that it applies


def prompt_checks(source: TemplateSource, probes: Probes) -> Iterator[Finding]:
    """All findings about the prompts of one template."""
    answers = (probes.plain, probes.tricks, probes.turns, probes.system)
    for answer in answers:
        if answer.runs_away:
            yield template_finding(source, "template_runaway", None, f"For a short chat, {answer.refusal}.")
            return
    if refused := next((answer.refusal for answer in answers[:3] if answer.refusal), ""):
        is_slow = refused == TOO_LONG
        told = (
            "It takes too long." if is_slow else f"It says {printable(refused.removeprefix(WRAPPED), 120)}."
        )
        yield template_finding(source, "not_run", None, told, "warning" if is_slow else "")
    for id, evidence in _of_prompts(probes):
        yield template_finding(source, id, None, evidence)
    for name in sorted(probes.members - inside_names(source)):
        told = f"Running, it asks for the member {printable(name)}."
        yield template_finding(source, "sandbox_escape", None, told)


def _of_prompts(probes: Probes) -> Iterator[_Told]:
    if probes.plain.parts and probes.tricks.parts:
        yield from _of_contents(probes)
        yield from _of_roles(probes)
        yield from _of_answers(probes)
    elif not probes.plain.refusal:
        yield "text_lost", "The prompt of a question is empty."
    yield from _growth(probes)


# ---- contents -------------------------------------------------------------------------------------------


def _of_contents(probes: Probes) -> Iterator[_Told]:
    plain, tricks = probes.plain, probes.tricks
    for answer in (plain, tricks, probes.turns):
        for marker, fields in made_markers(answer):
            if "content" in fields and marker.lower() not in TRICKS.lower():
                yield "control_from_content", f"A prompt has {printable(marker)}, partly of a message's text."
                break
    before, after = plain.own, tricks.own
    if before != after:
        added = _added(before, after)
        id = "control_from_content" if _counts(before) != _counts(after) else "content_condition"
        yield id, f"With another question, the template writes {printable(added)}."
    if TRICKS.strip() not in tricks.text and tricks.has_content(0):
        lost = _added(tricks.text, TRICKS)
        yield "content_replaced", f"Of a question, the prompt lacks {printable(lost)}."
    yield from _lost(probes)
    if _MARKER in probes.answer(user(f"{PLAIN} {_MARKER}")).text.replace(plain.own, ""):
        yield "content_as_control", "Nothing takes control tokens out of messages."
    yield from _invented(probes)
    long = probes.long
    order = [part.origin.index or 0 for part in long.parts if part.origin.field.startswith("content")]
    if order != sorted(order):
        yield "order_changed", "The messages of a chat are in another order in the prompt."
    if long.parts and (new := _new_words(long, probes.turns)):
        yield "length_condition", f"In a longer chat, the template writes {printable(' '.join(new))}."


def _lost(probes: Probes) -> Iterator[_Told]:
    """Messages of which nothing is in a prompt, the first."""
    for answer, roles in (
        (probes.plain, ["user"]),
        (probes.turns, ["user", "assistant", "user"]),
        (probes.system, ["system", "user"]),
        (probes.long, ["user", "assistant"] * 6),
    ):
        if not answer.parts:
            continue
        for index, role in enumerate(roles):
            if not answer.has_content(index):
                told = (
                    f"Of {len(roles)} messages, number {index + 1}, of the role {role}, is not in the prompt."
                )
                yield "text_lost", told
                return
    bare = probes.bare(message("system", SYSTEM), user(PLAIN))
    if not bare or SYSTEM in bare:
        return
    if bare == probes.bare(user(PLAIN)):  # as in Phi-3
        yield "no_system_role", "The template writes nothing for a system message."
    else:
        told = "In place of the text of a system message, the template writes another text, or none."
        yield "text_lost", told


def _invented(probes: Probes) -> Iterator[_Told]:
    """Headers of messages that are in the prompt of a question more often than there are messages."""
    for text, answer in ((PLAIN, probes.plain), (ANSWER, probes.turns)):
        before = answer.text.partition(text)[0] if text in answer.text else ""
        if (match := _ROLE_WORD.search(before[-60:])) and probes.plain.text.count(match[0]) > 1:
            yield "turn_invented", f"The prompt of one message has {printable(match[0])} again."
            return


def _counts(text: str) -> Counter[str]:
    """How often each marker is in a text."""
    return Counter({marker: text.count(marker) for marker in markers_of_prompt(text)})


def made_markers(answer: ProbeResult) -> Iterator[tuple[str, set[str]]]:
    """The markers of a prompt that are partly text of messages, each with the fields that they are made of."""
    text = answer.text
    fields = [
        part.origin.field if part.origin.kind == "message" else "" for part in answer.parts for _ in part.text
    ]
    for marker in markers_of_prompt(text):
        at = text.find(marker)
        while at >= 0:
            own = set(fields[at : at + len(marker)]) - {""}
            if own:
                yield marker, own
                break
            at = text.find(marker, at + 1)


def _added(before: str, after: str) -> str:
    """The first part of a text that another does not have."""
    for kind, _, _, start, end in SequenceMatcher(
        None, before[:5000], after[:5000], autojunk=False
    ).get_opcodes():
        if kind in ("insert", "replace"):
            return after[start:end]
    return ""


def _new_words(long: ProbeResult, short: ProbeResult) -> list[str]:
    """The words that a template writes itself in a long chat only."""
    known = set(_WORD.findall(short.own))
    return [word for word in dict.fromkeys(_WORD.findall(long.own)) if word not in known]


# ---- roles ----------------------------------------------------------------------------------------------


def _of_roles(probes: Probes) -> Iterator[_Told]:
    for answer, text, wrong in (
        (probes.plain, PLAIN, (*_OF_SYSTEM, *_OF_MODEL)),
        (probes.turns, ANSWER, (*_OF_SYSTEM, *_OF_USER)),
        (probes.turns, OTHER, (*_OF_SYSTEM, *_OF_MODEL)),
        (probes.system, PLAIN, (*_OF_SYSTEM, *_OF_MODEL)),
    ):
        if (header := _header(answer, text)) in wrong:
            yield "role_confused", f"A message is written as one of the role {header}."
            break
    unknown = probes.role(_ROLE)
    if not unknown.parts:
        return
    if _header(unknown, OTHER) in _OF_SYSTEM:
        yield "role_confused", "A message of an unknown role is written as one of the role system."
    if _ROLE in unknown.text:
        yield "role_not_checked", f"A message of the role {_ROLE} is in the prompt as such."


def _header(answer: ProbeResult, text: str) -> str:
    """The word for a role that stands right before a message's text; "" if there is none."""
    before, found_text, _ = answer.text.partition(text)
    match = _HEADER.search(before[-40:]) if found_text else None
    return match[1].lower() if match else ""


# ---- what follows, and growth ---------------------------------------------------------------------------


def _of_answers(probes: Probes) -> Iterator[_Told]:
    begun = "".join(part.text for part in probes.plain.parts if part.origin.kind == "generation_prompt")
    said = _TAG.sub(" ", begun)
    words = [word for word in _WORD.findall(said) if word.lower() not in _NO_ANSWER]
    if words and not is_known(said):
        yield "answer_begun", f"The prompt ends with {printable(begun)}."
    if len(probes.plain.text) > _LARGE_PROMPT:
        yield "steep_growth", f"A prompt for one word has {len(probes.plain.text):,} characters."


def _growth(probes: Probes) -> Iterator[_Told]:
    turn = [user("a few words of a question"), message("assistant", "and of its answer")]
    by_turns = [probes.costs(turn * rounds) for rounds in _ROUNDS]
    by_words = [probes.costs([user("word " * size)]) for size in _SIZES]
    for costs, what in ((by_turns, "messages"), (by_words, "words")):
        known = [each for each in costs if each is not None]
        if len(known) < len(costs):
            if known:
                yield "template_runaway", f"It fails for a chat of many {what}, but not of few."
            continue
        for number, name in enumerate(("work", "prompt")):
            costs_of_name = [each[number] for each in known]
            first, second = (after - before for before, after in pairwise(costs_of_name))
            if second > _LEAST_GROWTH and second > _STEEP * first:
                more = second / max(first, 1)
                yield "steep_growth", f"For twice the {what}, the {name} grows {more:.1f} times as much."
                break
