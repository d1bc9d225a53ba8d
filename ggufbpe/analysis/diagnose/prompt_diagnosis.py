"""Explains why a prompt or its ids differ from what llama-server makes of a chat.

An expected prompt is compared as text. Expected ids are decoded, and that text leads to the prompts that may have given
them; what then differs in the ids themselves, such as BOS twice, is found as for any text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...chat.bos_eos import BosEos
from ...tokenizer import Tokenizer
from ...tokenizer.detokenization import token_ids
from ..doctor.proposal import Trial, prove
from ..doctor.texts_with_ids import TextWithIds
from . import chat_causes
from .agreement import agreeing_share
from .cause import Cause
from .cause_search import Answer
from .chat_changes import ChatChange, Rendering
from .chat_search import Causes, ChatSearch
from .explanation import Diagnosis, Explanation
from .id_evidence import is_lossless
from .text_changes import TEXT_CHANGES

SearchIds = Callable[[bytes, list[int]], list[Answer]]


def _stripped(ends: BosEos, text: bytes) -> tuple[bytes, int, int]:
    """A text without BOS before and EOS after it, and how many of each were removed, at most two."""
    counts = [0, 0]
    while ends.bos and counts[0] < 2 and text.startswith(ends.bos):
        text, counts[0] = text[len(ends.bos) :], counts[0] + 1
    while ends.eos and counts[1] < 2 and text.endswith(ends.eos):
        text, counts[1] = text[: -len(ends.eos)], counts[1] + 1
    return text, counts[0], counts[1]


# ---- an expected prompt ---------------------------------------------------------------------------------


def diagnose_prompt(
    tokenizer: Tokenizer, chat: Rendering, expected: bytes, templates: Sequence[ChatChange] = ()
) -> Diagnosis:
    """Why a prompt is not that of a chat. `templates` are changes to further templates to try."""
    searching = ChatSearch(tokenizer, chat, expected, templates)
    if searching.own.prompt == expected:
        return Diagnosis(True, ())
    ends = tokenizer.chats.ends
    if found := searching.found(lambda prompt, changed: _prompt_fits(ends, expected, prompt, changed)):
        whole = _whole(searching, ends, found)
        return _diagnosis(tokenizer, chat, _proposed(tokenizer, whole, []))
    return _diagnosis(tokenizer, chat, (_nearest(searching, expected),))


def _diagnosis(tokenizer: Tokenizer, chat: Rendering, explanations: tuple[Explanation, ...]) -> Diagnosis:
    """A diagnosis of a prompt that differs; where the file has no chat template, the first cause says so."""
    first = explanations[0]
    if chat.chat_template is None and not tokenizer.chat_templates.get("") and first.causes:
        cause, *others = first.causes
        told = cause.detail.get("evidence")
        evidence = [*(told if isinstance(told, list) else ()), chat_causes.NO_TEMPLATE]
        cause = cause._replace(detail={**cause.detail, "evidence": evidence})
        first = first._replace(causes=(cause, *others))
    return Diagnosis(False, (first, *explanations[1:]))


def _proposed(
    tokenizer: Tokenizer, explanations: Sequence[Explanation], compared: Sequence[TextWithIds | None]
) -> tuple[Explanation, ...]:
    """Explanations of a chat, the first of which whose change helps and harms nothing has a command.

    `compared` are the prompts with the given ids, for explanations that are about ids. Otherwise the prompt was made
    with the changed template, and only what `doctor` says of it is left to be tried.
    """
    told = list(explanations)
    with Trial(tokenizer) as trial:
        for number, item in enumerate(told):
            if item.explains == 1 and item.change:
                texts = [each for each in compared[number : number + 1] if each and item.change.keys]
                proposal = prove(trial, item.change, texts)
                told[number] = item._replace(proposal=proposal)
                if proposal.command:
                    break
    return tuple(told)


def _prompt_fits(ends: BosEos, expected: bytes, prompt: bytes, changed: int) -> list[Causes]:
    if prompt == expected:
        return [()]
    (ours, *one), (theirs, *other) = _stripped(ends, prompt), _stripped(ends, expected)
    if ours == theirs:
        bos = chat_causes.end_token_causes("bos", ends.bos, one[0], other[0], ends.adds_bos)
        return [(*bos, *chat_causes.end_token_causes("eos", ends.eos, one[1], other[1], ends.adds_eos))]
    if changed > 1 or (changed and _letters(prompt) != _letters(expected)):
        return []
    for change in TEXT_CHANGES:
        if change.apply(prompt) == expected:
            return [(change.cause,)]
    return []


_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


def _letters(text: bytes) -> bytes:
    """The letters and digits of a text in lower case, which most changes of texts keep."""
    return text.translate(None, _NO_LETTERS).lower()


def _whole(searching: ChatSearch, ends: BosEos, found: list[tuple[Causes, bytes]]) -> tuple[Explanation, ...]:
    """Explanations of the whole prompt; those with plain jinja2 also say where prompts first differ."""
    own = searching.own.prompt
    ours = None if own is None else _stripped(ends, own)[0]

    def told(cause: Cause, prompt: bytes) -> Cause:
        if cause.id != "plain_jinja":
            return cause
        theirs = _stripped(ends, prompt)[0]
        return chat_causes.with_first_difference(cause, ours, theirs, searching.refusal)

    return tuple(Explanation(tuple(told(cause, prompt) for cause in causes), 1.0) for causes, prompt in found)


def _nearest(searching: ChatSearch, expected: bytes) -> Explanation:
    """A partial explanation: the changes that lead nearest, and where the prompts then differ."""
    nearest = searching.nearest()
    if nearest.prompt is None:
        return Explanation((chat_causes.refused(searching.refusal),), 0.0)
    rest = chat_causes.prompt_differs(nearest.prompt, expected, nearest.chat.body.get("messages"))
    return Explanation((*nearest.causes, rest), agreeing_share(list(nearest.prompt), list(expected)))


# ---- expected ids ---------------------------------------------------------------------------------------


def diagnose_chat_ids(
    tokenizer: Tokenizer, chat: Rendering, ids: Iterable[int], search_ids: SearchIds
) -> Diagnosis:
    """Why ids are not those of a chat. `search_ids` gives what explains ids of a text, as `diagnose.search` does."""
    given = token_ids(ids)
    fitting = _FittingIds(tokenizer, given, search_ids)
    searching = ChatSearch(tokenizer, chat, fitting.text)
    own = searching.own.prompt
    if own is not None and tokenizer.encode(own) == given:
        return Diagnosis(True, ())
    if found := searching.found(fitting.causes):
        compared = [TextWithIds(fitting.without_added(prompt), given) for _, prompt in found]
        whole = _whole(searching, tokenizer.chats.ends, found)
        return _diagnosis(tokenizer, chat, _proposed(tokenizer, whole, compared))
    partial = _nearest(searching, fitting.text)
    if own is None:
        return _diagnosis(tokenizer, chat, (partial,))
    of_ids = [Explanation(answer.causes, answer.explains) for answer in search_ids(own, given)]
    changed = [partial] if len(partial.causes) > 1 else []
    explained = [item for item in of_ids if item.explains == 1 and _is_of_ids(item.causes)]
    told = explained or [*changed, *of_ids]
    return _diagnosis(tokenizer, chat, _proposed(tokenizer, told, [TextWithIds(own, given)] * len(told)))


def _is_of_ids(causes: Causes) -> bool:
    """Whether the causes are more than a different text."""
    return all(cause.id != "text_differs" for cause in causes)


class _FittingIds:
    """Which prompts may have given some ids, and which further causes that takes."""

    def __init__(self, tokenizer: Tokenizer, ids: list[int], search_ids: SearchIds) -> None:
        self._tokenizer, self._ids, self._search_ids = tokenizer, ids, search_ids
        self._ends = tokenizer.chats.ends
        self._lossless = is_lossless(tokenizer.vocabulary)
        self.text = self._text_of(ids)

    def _text_of(self, ids: Sequence[int]) -> bytes:
        """What ids of this vocabulary decode to, without BOS and EOS around it."""
        known = [token for token in ids if 0 <= token < self._tokenizer.vocab_size]
        if self._lossless:
            text = b"".join(map(self._tokenizer.token_to_piece, known))
        else:
            text = self._tokenizer.decode_bytes(known)
        return _stripped(self._ends, text)[0]

    def causes(self, prompt: bytes, changed: int) -> list[Causes]:
        """The sets of causes by which a prompt gives the ids."""
        prompt = self.without_added(prompt)
        if self.text not in self._keys(prompt):
            return []
        if self._tokenizer.encode(prompt) == self._ids:
            return [()]
        answers = self._search_ids(prompt, self._ids)
        return [
            tuple(map(chat_causes.as_told_of_a_chat, answer.causes))
            for answer in answers
            if answer.explains == 1 and _is_of_ids(answer.causes)
        ]

    def without_added(self, prompt: bytes) -> bytes:
        """A prompt without the BOS and EOS that encoding adds."""
        return self._ends.without_added(prompt.decode("latin-1")).encode("latin-1")

    def _keys(self, prompt: bytes) -> set[bytes]:
        """What ids of a prompt may decode to."""
        if self._lossless:
            return {_stripped(self._ends, prompt)[0]}
        encode = self._tokenizer.encode
        return {
            self._text_of(encode(prompt, add_special=False, parse_special=parse)) for parse in (True, False)
        }
