"""Says in words what `verify` found in chats: verdict, kinds, and both answers around the first difference."""

from __future__ import annotations

from ..._util.wording import counted
from ..diagnose.agreement import first_difference
from ..diagnose.id_evidence import first_other_character
from ..oracles.chat_answers import Prompt, Refused
from ..verify.chat_comparison import COUNT, PROMPT, REFUSED_BY_US, ChatDifference, ChatExample, ChatResult
from .terminal import one_line, visible

_BEFORE, _BEHIND = 40, 60  # bytes of a prompt around the place where it differs


def chat_verdict(result: ChatResult) -> str:
    """The result in a few words.

    >>> chat_verdict(ChatResult(chats=3, different=1))
    '1 of 3 chats differs'
    """
    compared = result.chats - result.failed
    if result.different:
        verb = "differs" if result.different == 1 else "differ"
        return f"{result.different} of {counted(compared, 'chat')} {verb}"
    if not compared:
        return "no chat was compared"
    of_all = f" of {result.chats}" if result.failed else ""
    if result.refused == compared:
        return f"both refuse the {counted(compared, 'chat')}{of_all}"
    prompts = compared - result.refused
    if prompts == 1:
        return f"the prompt of 1 chat{of_all} is the same"
    return f"the prompts of {prompts} chats{of_all} are the same"


def difference_title(difference: ChatDifference, oracle: str) -> str:
    """A kind of difference in words."""
    if difference.kind in (PROMPT, COUNT):
        return difference.kind
    return "refused by ggufbpe" if difference.kind == REFUSED_BY_US else f"refused by {oracle}"


Shown = tuple[str, str, str]  # a text in three: the middle differs


def both_sides(example: ChatExample) -> tuple[str, Shown, Shown]:
    """The place in words, and what ours and theirs is there; a refusal or a number of tokens as a whole."""
    ours, theirs = example.ours, example.theirs
    if isinstance(ours, Refused) or isinstance(theirs, Refused):
        return "", _whole(ours), _whole(theirs)
    if ours.text == theirs.text:
        return (
            "",
            ("", counted(ours.tokens or 0, "token"), ""),
            ("", counted(theirs.tokens or 0, "token"), ""),
        )
    return prompts_around(ours.text, theirs.text)


def prompts_around(ours: bytes, theirs: bytes) -> tuple[str, Shown, Shown]:
    """The place where two prompts first differ in words, and each of them there."""
    at = first_other_character(ours, theirs)
    same = first_difference(ours[at:][::-1], theirs[at:][::-1])
    where = f"at byte {at}, of {len(ours)} and {len(theirs)}"
    return where, _around(ours, at, same), _around(theirs, at, same)


def _around(text: bytes, at: int, same: int) -> Shown:
    """A prompt from a little before a place on, what differs apart; the last `same` bytes do not."""
    differing = len(text) - same - at
    start = max(at - _BEFORE, 0)
    middle = text[at : at + min(differing, _BEHIND)]
    behind = text[at + len(middle) : at + _BEHIND]
    rest = "…" if at + max(len(middle), _BEHIND) < len(text) else ""
    shown = visible(middle) or "∅" * (not behind)
    return ("…" if start else "") + visible(text[start:at]), shown, visible(behind) + rest


def _whole(answer: Prompt | Refused) -> Shown:
    if isinstance(answer, Refused):
        return "refused: ", one_line(str(answer)), ""
    return "a prompt: ", visible(answer.text[:_BEHIND]), "…" if len(answer.text) > _BEHIND else ""
