"""Compares a model's chat template and special tokens with those of a folder or repository of transformers.

The chats cover what templates of llama.cpp's collection treat differently. Each is rendered by transformers with both
templates, and with the file's as llama.cpp does: so a template that is another is told from one that llama.cpp renders
otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..._util.errors import printable
from ..._util.wording import counted
from ...gguf.change import template_argument
from ...gguf.constants import TokenizerKey
from ...gguf.edit_arguments import id_ranges
from ...hub.model_location import fix_command
from ...models.vocabulary import SPECIAL_TYPES, USER_DEFINED
from ...tokenizer import Tokenizer
from ..diagnose.cause import Cause
from ..doctor import sample_prompts as sample
from ..doctor.finding import Finding, Where
from ..doctor.token_checks import FILLER
from ..oracles.chat_answers import ChatAnswer, Prompt, Refused
from ..oracles.oracle import Failure
from ..oracles.transformers_oracle import TransformersOracle
from .as_transformers import AsTransformers, ThreePrompts, is_same_answer

_K = TokenizerKey
_USER, _ANSWER, _NEXT = (dict(message) for message in sample.CHATS["turns"]["messages"])
_SYSTEM = {"role": "system", "content": sample.SYSTEM}
_CALLED = sample.CHATS["tool call"]
CHATS: dict[str, dict[str, Any]] = {
    **sample.CHATS,
    "no generation prompt": {"messages": [_USER, _ANSWER, _NEXT], "add_generation_prompt": False},
    "system and turns": {"messages": [_SYSTEM, _USER, _ANSWER, _NEXT]},
    "system and tools": {**sample.CHATS["tools"], "messages": [_SYSTEM, _USER]},
    "tool result": {**_CALLED, "messages": _CALLED["messages"][:3]},
    "begun answer": {"messages": [_USER, _ANSWER]},
    "thinking allowed": {"messages": [_USER], "chat_template_kwargs": {"enable_thinking": True}},
    "white space": {"messages": [{**_USER, "content": f"\n  {sample.QUESTION} \n"}]},
    "parts": {"messages": [{**_USER, "content": [{"type": "text", "text": sample.QUESTION}]}]},
    "developer": {"messages": [{**_SYSTEM, "role": "developer"}, _USER]},
    "other scripts": {"messages": [{**_USER, "content": 'Ist\'s <b>wärmer</b> & "天気"? 🌞'}]},
}


def prompt_findings(tokenizer: Tokenizer, oracle: TransformersOracle) -> Iterator[Finding]:
    """Find what differs in the prompts of the chats: between the two templates, and between the two programs."""
    sides = AsTransformers(tokenizer, oracle, now=sample.NOW)
    rendered = {name: sides.rendered(chat) for name, chat in CHATS.items()}
    failed = {
        name: answer for name, made in rendered.items() for answer in made if isinstance(answer, Failure)
    }
    for name, failure in list(failed.items())[:1]:
        what = f"transformers renders no prompt for {counted(len(failed), 'chat')} of {len(CHATS)}."
        why = "A template that takes too much time or memory does the same to whoever runs it."
        evidence = f"The chat {name}: {failure.detail}."
        yield Finding(
            "warning", "upstream_template_fails", what, why, "look at the template", _WHERE, None, evidence
        )
    answered = {name: made for name, made in rendered.items() if name not in failed}
    yield from _of_template(sides, oracle, answered)
    yield from _of_engine(sides, answered)


_WHERE = Where(_K.CHAT_TEMPLATE)


def _of_template(
    sides: AsTransformers, oracle: TransformersOracle, rendered: Mapping[str, ThreePrompts]
) -> Iterator[Finding]:
    """Findings about the text of the template, with prompts that are all made by transformers."""
    told = f"the chat template of {oracle.source}"
    others = [name for name, made in rendered.items() if not is_same_answer(made.of_file, made.upstream)]
    if not sides.has_template and not any(oracle.chat_templates().values()):
        what = f"Neither the file nor {oracle.source} has a chat template."
        yield Finding(
            "note", "upstream_no_template", what, "So no chats were compared.", "nothing to do", _WHERE
        )
    elif all(map(sides.has_same_template, CHATS.values())):
        why = "So the template is that of the repository."
        yield Finding("note", "upstream_template_same", f"The file has {told}.", why, "nothing to do", _WHERE)
    elif not sides.has_template:
        yield Finding(
            "warning",
            "upstream_template_missing",
            f"The file has no chat template, and {oracle.source} has one.",
            "llama-server then writes all chats as ChatML, which the model may never have seen.",
            _take_over(sides.path, oracle),
            _WHERE,
            {"repository": oracle.source},
        )
    elif not any(oracle.chat_templates().values()):
        why = "There is nothing to compare the file's template with."
        yield Finding(
            "note",
            "upstream_no_template",
            f"{oracle.source} has no chat template.",
            why,
            "nothing to do",
            _WHERE,
        )
    elif not others:
        what = f"The file has another chat template than {oracle.source}, with the same prompts."
        why = f"transformers makes the same prompts of {counted(len(rendered), 'chat')} with both."
        yield Finding("note", "upstream_template_alike", what, why, "nothing to do", _WHERE)
    else:
        causes = {
            name: sides.other_template(CHATS[name], rendered[name].of_file, rendered[name].upstream)
            for name in others
        }
        detail, evidence = _told(
            causes, {name: (rendered[name].of_file, rendered[name].upstream) for name in others}
        )
        yield Finding(
            "warning",
            "upstream_template_differs",
            f"The file has another chat template than {oracle.source}, with other prompts.",
            "transformers makes these prompts with both templates, so it is the template that differs. It may be "
            "newer, or changed on purpose; if its prompts differ by mistake, the model answers worse.",
            f"to use the other one: {_take_over(sides.path, oracle)}",
            _WHERE,
            {"repository": oracle.source, **detail},
            f"{len(others)} of {counted(len(rendered), 'chat')} {evidence}",
        )


def _take_over(path: str, oracle: TransformersOracle) -> str:
    """Return the command that gives the file the other template."""
    return fix_command(path, ("--chat-template", template_argument(oracle.location)))


def _of_engine(sides: AsTransformers, rendered: Mapping[str, ThreePrompts]) -> Iterator[Finding]:
    """The finding about prompts that llama.cpp makes of the same template otherwise than transformers."""
    if not sides.has_template:
        return
    others = [name for name, made in rendered.items() if not is_same_answer(made.ours, made.of_file)]
    if not others:
        what = f"llama.cpp renders the file's template as transformers does, for {counted(len(rendered), 'chat')}."
        why = "So prompts do not depend on which of them is used."
        yield Finding("note", "upstream_rendered_alike", what, why, "nothing to do", _WHERE)
        return
    causes = {
        name: sides.other_engine(CHATS[name], rendered[name].ours, rendered[name].of_file) for name in others
    }
    detail, evidence = _told(causes, {name: (rendered[name].ours, rendered[name].of_file) for name in others})
    yield Finding(
        "warning" if any(name in sample.PLAIN_CHATS for name in others) else "note",
        "upstream_rendered_otherwise",
        "llama.cpp renders the file's template otherwise than transformers.",
        "The template is the same on both sides: what differs is what llama.cpp does to messages, tools and prompt. "
        "The model was trained with prompts such as those of transformers.",
        "nothing in the file mends this; compare with `ggufbpe chat` where the prompts part",
        _WHERE,
        detail,
        f"{len(others)} of {counted(len(rendered), 'chat')} {evidence}",
    )


def _told(
    causes: Mapping[str, Cause], answers: Mapping[str, tuple[ChatAnswer, ChatAnswer]]
) -> tuple[dict[str, Any], str]:
    """The details of causes by chat, with both answers, and a sentence: topics with their numbers, and an example."""
    by_topic = Counter(str(topic) for cause in causes.values() for topic in _topics(cause))
    topics = ", ".join(f"{topic} ({count})" for topic, count in by_topic.most_common())
    name, cause = next(iter(causes.items()))
    detail = {
        "topics": dict(by_topic.most_common()),
        "chats": [
            {"chat": each, "topics": _topics(cause), "prompts": list(map(_as_json, answers[each]))}
            for each, cause in causes.items()
        ],
    }
    return (
        detail,
        f"have other prompts, by what they are about: {topics}. The chat {name}: {cause.detail['what']}.",
    )


def _topics(cause: Cause) -> list[str]:
    found = cause.detail["topics"]
    return list(map(str, found)) if isinstance(found, list) else []


def _as_json(answer: ChatAnswer) -> dict[str, str]:
    if isinstance(answer, Prompt):
        return {"prompt": answer.text.decode("utf-8", "replace")}
    return {"refused": answer.reason if isinstance(answer, Refused) else answer.detail}


# ---- tokens ---------------------------------------------------------------------------------------------

_MOST = 20  # tokens of a finding's detail


def token_findings(tokenizer: Tokenizer, oracle: TransformersOracle) -> Iterator[Finding]:
    """Find special tokens that are others in the folder, and added tokens that the file has not, or not as tokens."""
    vocabulary = tokenizer.vocabulary
    others: dict[str, tuple[str | None, str]] = {}
    for name, theirs in oracle.special_tokens.items():
        kind = name.removesuffix("_token")
        token = vocabulary.special_ids.get(kind)
        ours = None if token is None else vocabulary.tokens[token]
        if kind in _MATTER and ours != theirs:
            others[kind] = ours, theirs
    if others:
        told = "; ".join(
            f"{kind.upper()} is {'missing' if ours is None else printable(ours)} here, {printable(theirs)} there"
            for kind, (ours, theirs) in others.items()
        )
        ends_it = "eos" in others and vocabulary.token_to_id.get(others["eos"][1], -1) in vocabulary.eog_ids
        yield Finding(
            "warning" if "bos" in others or ("eos" in others and not ends_it) else "note",
            "upstream_special_tokens",
            f"Special tokens are others than those of {oracle.source}.",
            "Templates write BOS and EOS, and generation ends at EOS. A converter may have taken EOS from another file "
            "of the repository; then both end a generation.",
            "compare with generation_config.json of the repository, and set the id with `ggufbpe fix` if it is wrong",
            Where(f"tokenizer.ggml.{next(iter(others))}_token_id"),
            {"tokens": {kind: {"ours": ours, "theirs": theirs} for kind, (ours, theirs) in others.items()}},
            f"{told}.",
        )
    yield from _of_added(tokenizer, oracle)


_MATTER = ("bos", "eos", "pad", "sep", "cls", "mask")


def _of_added(tokenizer: Tokenizer, oracle: TransformersOracle) -> Iterator[Finding]:
    vocabulary = tokenizer.vocabulary
    other: list[_Added] = []
    plain: list[_Added] = []
    shown: list[_Added] = []
    for token, (text, is_special) in oracle.added_tokens.items():
        if token >= len(vocabulary.tokens) or vocabulary.tokens[token] != text:
            other.append(_Added(token, text, is_special))
        elif not vocabulary.attributes[token] & SPECIAL_TYPES:
            plain.append(_Added(token, text, is_special))
        elif is_special and vocabulary.attributes[token] == USER_DEFINED:
            shown.append(_Added(token, text, is_special))
    for id_, found, what, why in (
        (
            "upstream_added_tokens",
            other,
            "Added tokens are others than those of {}.",
            "Chats are written in such tokens.",
        ),
        (
            "upstream_added_as_text",
            plain,
            "Added tokens of {} are plain text in the file.",
            "Their texts become several tokens here, and one there.",
        ),
        (
            "upstream_special_as_shown",
            shown,
            "Special tokens of {} are user-defined in the file.",
            "llama.cpp takes such a token out of every text, even if it is told not to parse special tokens, and shows "
            "it when the model generates it.",
        ),
    ):
        if found:
            yield _added_finding(tokenizer, oracle, id_, found, what, why)


class _Added(NamedTuple):
    """A token that the folder adds to its vocabulary."""

    id: int
    text: str
    is_special: bool


def _added_finding(
    tokenizer: Tokenizer, oracle: TransformersOracle, id_: str, found: list[_Added], what: str, why: str
) -> Finding:
    first, tokens = found[0], tokenizer.vocabulary.tokens
    here = _at(tokens, first.id)
    told = [{"id": each.id, "theirs": each.text, "ours": _at(tokens, each.id)} for each in found[:_MOST]]
    if id_ == "upstream_added_tokens":
        filled = all(FILLER.fullmatch(_at(tokens, each.id) or "") for each in found)
        is_new = tokenizer.vocabulary.token_to_id.keys().isdisjoint(each.text for each in found)
        fix = "convert the model again from this repository"
        fix = _as_there(tokenizer, found) if filled and is_new else fix
        evidence = f"{printable(str(here))} here and {printable(first.text)} there"
    else:
        fix = _as_there(tokenizer, found)
        evidence = printable(first.text)
    return Finding(
        "warning",
        id_,
        what.format(oracle.source),
        why,
        fix,
        Where(_K.LIST, first.id),
        {"count": len(found), "ids": [each.id for each in found], "tokens": told},
        f"{counted(len(found), 'token')}, first {first.id}: {evidence}.",
    )


def _as_there(tokenizer: Tokenizer, tokens: list[_Added]) -> str:
    """Return the command that gives tokens the texts and types that a conversion of the folder gives them."""
    kinds = ((True, "CONTROL"), (False, "USER_DEFINED"))
    before = ((tokenizer.vocabulary.tokens[each.id], each.text) for each in tokens)
    words = [word for old, new in before if old != new for word in ("--rename-token", f"{old}={new}")]
    words += [
        word
        for is_special, kind in kinds
        for ids in id_ranges(sorted(each.id for each in tokens if each.is_special is is_special))
        for word in ("--set-token-type", f"{ids}={kind}")
    ]
    return fix_command(tokenizer.name, words)


def _at(tokens: Any, token: int) -> str | None:
    return str(tokens[token]) if token < len(tokens) else None
