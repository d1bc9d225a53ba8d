"""Explains why ids differ from the model's, by a search that tries the smallest changes first.

Ids depend on a text, an encoding (pre-tokenizer, merges, flags, types of tokens) and what is done around it (BOS, EOS,
a limit, renumbered tokens). Three things make the search short:

- What is around the text is not searched but read off the ids: they are split in each plausible way, as `Target`s,
  and the core is compared with what an encoding gives for the text alone.
- The ids can be decoded, whoever made them. A change of the text that does not lead to the decoded text is never
  encoded; that rules out nearly all of them, or none.
- Ids are encoded only as far as they agree, and all encodings share their word caches.

Sets of changes are tried by size: none, one, two; all of the smallest size that give the ids are listed. Each is
encoded in full once more before it is reported. If there is none, the decoded text is tried, then single changes are
ranked by how far their ids agree, and several.py looks for more causes, one after the other.

If the tokens of the vocabulary do not fit its pre-tokenizer (families.py), that is the first cause to consider: an
explanation with the one that they point to wins if it needs no more other causes than those without.

The search does not tell which ids are right, only how and why they differ from the model's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from ...gguf.change import Change
from ...gguf.constants import TokenizerKey
from ...tokenizer import Tokenizer
from ...tokenizer.detokenization import token_ids
from ...tokenizer.inputs import ChatOrBody, Model, TextOrPath, request_body, text_of, tokenizer_of
from ..doctor.proposal import Trial, prove, prove_by_parts, unless_ends_are_lost
from ..doctor.texts_with_ids import TextWithIds, encoding, with_exchange
from . import causes
from .agreement import AS_COMMAND, AS_LIBRARY, added_as, agreeing_share
from .builds import of_other_build
from .cause import Cause
from .cause_search import Answer, expected_of, order
from .damaged_merges import with_damaged_merges
from .explanation import Diagnosis, Explanation
from .model_changes import other_models
from .nearest import Nearest
from .several import Several
from .texts_of_ids import fillers_in, texts_of_lost
from .variants import variants_of

# Of the ids must agree after several changes, and the share of the others that must agree by them; else it is chance.
_LEAST_SHARE, _LEAST_GAIN = 0.4, 0.1
_FIRST_IDS = 8  # that show whether a space is before the text


def diagnose(
    model: Model,
    text: TextOrPath | None = None,
    ids: Iterable[int] | None = None,
    *,
    add_special: bool = True,
    parse_special: bool = True,
    others: Iterable[Model] = (),
    chat: ChatOrBody | None = None,
    expected_prompt: TextOrPath | None = None,
    chat_template: str | None = None,
    now: datetime | None = None,
) -> Diagnosis:
    """Find out why `ids` from elsewhere are not those of a model for a text: the best explanation first.

    `model` is a `Tokenizer` or the path of a file, and so are `others`, models that the ids may come from; `text` is a
    `str`, bytes, or the `pathlib.Path` of a file. `add_special` and `parse_special` are those of `Tokenizer.encode`,
    for the model's ids. If the model adds EOS but not BOS, ids without EOS, as the command llama-tokenize prints them,
    also count as its own, and `added_as` of the result says so; likewise for the right tokenizer model, if the file
    names a wrong one.

    Instead of a text, a `chat` may be given (messages or the body of a request), and then either the ids or the
    `expected_prompt`; `chat_template` and `now` are those of `Tokenizer.apply_chat_template`.

    Raises `TypeError` for ids that are not integers, `ValueError` for ids or prompts without a text or chat to go with
    them, and `GGUFError` for a model that cannot be used.

    >>> from ggufbpe import Tokenizer
    >>> tok = Tokenizer.from_gguf("model.gguf")
    >>> diagnose(tok, "a b\\n", tok.encode("a b")).explanations[0].causes[0].id
    'trailing_newline'
    """
    if chat is not None:
        if text is not None or (ids is None) == (expected_prompt is None):
            raise ValueError("with a chat, give either ids or expected_prompt, and no text")
        from ...chat.known_templates import resolved
        from .chat_changes import Rendering
        from .prompt_diagnosis import diagnose_chat_ids, diagnose_prompt

        tokenizer, asked = tokenizer_of(model), Rendering(request_body(chat), resolved(chat_template), now)
        if expected_prompt is not None:
            return diagnose_prompt(tokenizer, asked, text_of(expected_prompt))
        search_ids = partial(search, tokenizer, others=list(map(tokenizer_of, others)))
        return diagnose_chat_ids(tokenizer, asked, ids or (), search_ids)
    if text is None or ids is None:
        raise ValueError("give a text and ids, or a chat and ids or expected_prompt")
    tokenizer, compared = tokenizer_of(model), TextWithIds(text_of(text), token_ids(ids))
    models, flags = list(map(tokenizer_of, others)), (add_special, parse_special)
    found, meaning, flags = answers(tokenizer, compared, flags, models)
    return Diagnosis(not found, tuple(proposed(tokenizer, found, compared, *flags)), meaning)


def answers(
    tokenizer: Tokenizer, compared: TextWithIds, flags: tuple[bool, bool], others: Sequence[Tokenizer] = ()
) -> tuple[list[Answer], str, tuple[bool, bool]]:
    """Return why ids are not the tokenizer's own, the best explanation first; nothing if they are.

    `flags` are `add_special` and `parse_special`. Returned with it are the meaning of "add special tokens" that the ids
    follow (agreement.py), and the flags with which they were compared.
    """
    (text, ids, *_), (add_special, parse_special) = compared, flags
    meaning = added_as(tokenizer, text, ids, parse_special) if add_special else ""
    add_special = add_special and meaning != AS_COMMAND
    if ids == tokenizer.encode(text, add_special=add_special, parse_special=parse_special):
        return [], meaning, (add_special, parse_special)
    searched = partial(search, tokenizer, text, ids, parse_special=parse_special, others=others)
    found = searched(add_special=add_special)
    if meaning == AS_COMMAND and any(cause.id in ("bos", "eos", "sep") for cause in found[0].causes):
        # so that guess was wrong
        meaning, add_special = AS_LIBRARY, True
        found = searched(add_special=add_special)
    elif add_special and _is_command_of_other_model(found[0]):
        meaning, add_special = AS_COMMAND, False
        found = searched(add_special=add_special)
    return found, meaning, (add_special, parse_special)


def _is_command_of_other_model(answer: Answer) -> bool:
    """Whether ids only lack the EOS of the tokenizer model that the file has lost, as llama-tokenize leaves it out."""
    variant, problems = answer.variant, {cause.id: cause.detail.get("problem") for cause in answer.causes}
    if variant is None or "model" not in problems or variant.head or variant.tail:
        return False
    before, behind = variant.vocabulary.added
    return bool(behind) and not before and problems.get("eos") == "missing"


def proposed(
    tokenizer: Tokenizer,
    found: Iterable[Answer],
    compared: TextWithIds,
    add_special: bool,
    parse_special: bool,
) -> list[Explanation]:
    """Return answers as explanations; the first one whose change helps and harms nothing has a command."""
    encode = encoding(add_special, parse_special)
    explanations: list[Explanation] = []
    has_command = False
    with Trial(tokenizer, lambda: variants_of(tokenizer).evidence) as trial:
        for item in found:
            proposal = None
            may_help = item.change and not item.takes_another_text
            expected = expected_of(item, tokenizer.vocabulary, add_special) if may_help else None
            if not has_command and expected is not None:
                if item.expected is None:
                    proposal = prove(trial, item.change, [compared], encode=encode, expected=expected)
                else:  # only what several causes leave open can be compared by parts
                    exchanged = item.variant.exchanged if item.variant else ()
                    proposal = prove_by_parts(
                        trial, item.change, [compared], encode=encode, expected=expected, exchanged=exchanged
                    )
                if proposal.command and not proposal.explained:  # what the file says already
                    proposal = proposal._replace(
                        command="", objection="no text gets the other side's ids by it"
                    )
                elif proposal.command:
                    proposal = unless_ends_are_lost(trial, proposal)
                has_command = bool(proposal.command)
            explanations.append(Explanation(item.causes, item.explains, proposal))
    return explanations


def search(
    tokenizer: Tokenizer,
    text: bytes,
    ids: list[int],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    others: Sequence[Tokenizer] = (),
) -> list[Answer]:
    """The explanations with the variants that give the ids, which must not be the tokenizer's own."""
    found = _searched(tokenizer, TextWithIds(text, ids), (add_special, parse_special), others)
    return with_damaged_merges(tokenizer, found)


def _searched(
    tokenizer: Tokenizer, compared: TextWithIds, flags: tuple[bool, bool], others: Sequence[Tokenizer]
) -> list[Answer]:
    """The explanations, the best first, whether the merges are damaged or not."""
    text, ids, *_ = compared
    vocabulary = tokenizer.vocabulary
    if other_build := of_other_build(tokenizer, text, ids, *flags):
        return [other_build]
    same = [other for other in others if other.vocabulary.tokens == vocabulary.tokens]
    searches = [Nearest(tokenizer, text, ids, *flags, merges_of=same)]
    named = [(other, causes.other_vocabulary(other.name)) for other in others if other not in same]
    for other, cause in (*named, *other_models(tokenizer)):
        with suppress(ValueError):  # a text that this model cannot encode
            searches.append(Nearest(other, text, ids, *flags, cause=cause))
    try:
        found = _best(searches)
        is_whole = found[0].explains == 1 and not found[0].takes_another_text
        # what looks like several causes in a short text may be one marker that became a filler
        if is_whole and (len(found[0].causes) == 1 or not _has_filled(tokenizer, compared)):
            return found
        several = _several(tokenizer, compared, flags, same)
        if found[0].explains == 1:  # by another text, which other changes may bring nearer by chance
            several = [item for item in several if item.explains == 1]
        told = {repr(cause) for item in several for cause in item.causes}
        if several:  # which says more than these
            told.update(repr(cause) for item in found for cause in item.causes if _is_vague(cause))
        more = [item for item in found if not told.issuperset(map(repr, item.causes))]
        return _alike(sorted([*several, *more], key=lambda item: (-item.explains, not _has_exchange(item))))
    finally:
        for each in searches:
            each.variants.forget_texts()


def _has_filled(tokenizer: Tokenizer, compared: TextWithIds) -> bool:
    """Return whether the ids have a filler where the text has another text."""
    fillers = fillers_in(tokenizer, [compared])
    return bool(fillers) and not fillers.isdisjoint(texts_of_lost(tokenizer, [compared]))


def _alike(found: list[Answer]) -> list[Answer]:
    """Return answers without those that explain all ids with fewer or more causes than the first one that does."""
    count = len(found[0].causes)
    return [item for item in found if item.explains < 1 or len(item.causes) == count]


def _has_exchange(answer: Answer) -> bool:
    """Return whether an answer says that tokens are swapped, which is read off the texts, and so no other text."""
    return any(cause.detail.get("problem") == "exchanged" for cause in answer.causes)


def _is_vague(cause: Cause) -> bool:
    """Return whether a cause only says that nothing explains the ids, or that the vocabulary lacks some of them."""
    return cause.id == "unknown" or cause.detail.get("problem") == "out of range"


def _is_of_few_ids(cause: Cause) -> bool:
    """Return whether a cause changes a few ids only, but never by chance."""
    return cause.id in ("bos", "eos", "sep") or cause.detail.get("problem") == "exchanged"


def _is_space_shown(cause: Cause, tokenizer: Tokenizer, compared: TextWithIds) -> bool:
    """Return whether a cause says that a space is put before the text, or that none is, and the first ids have it so.

    Nothing else may agree, where scores are wrong as well, but what the ids are decoded to begins with the space.
    """
    flag = cause.change.keys.get(TokenizerKey.ADD_PREFIX)
    if cause.id != "space_prefix" or flag is None:
        return False
    known = [token for token in compared.ids[:_FIRST_IDS] if 0 <= token < len(tokenizer.vocabulary.tokens)]
    begin = b"".join(tokenizer.token_to_piece(token, special=False) for token in known)
    expected = (b" " * (flag == "true") + compared.text)[: len(begin)]
    return bool(begin) and begin == expected


def _several(
    tokenizer: Tokenizer, compared: TextWithIds, flags: tuple[bool, bool], same: Sequence[Tokenizer]
) -> list[Answer]:
    """What several causes explain, with what the rest looks like after them; nothing if they explain nothing."""
    add_special, parse_special = flags
    several = Several(tokenizer, [compared], add_special=add_special, parse_special=parse_special, same=same)
    found = several.found()
    before = agreeing_share(encoding(*flags)(tokenizer, compared), compared.ids)
    least = max(_LEAST_SHARE, before + _LEAST_GAIN * (1 - before))
    if all(_is_of_few_ids(cause) or _is_space_shown(cause, tokenizer, compared) for cause in found.causes):
        least = before
    if not found.causes or found.explains < least:
        return []
    variant = found.encoding.variant(compared.text, add_special)
    if found.explains == 1:
        return [Answer(found.causes, 1.0, variant, found.expected)]
    ids = with_exchange(compared.ids, variant.exchanged)
    rest = Nearest(several.tokenizer(found.encoding), compared.text, ids, *flags).partial()[0]
    known = {cause.id for cause in found.causes}
    more = tuple(cause for cause in rest.causes if cause.id not in known)
    return [Answer((*found.causes, *more), found.explains, variant, found.expected)]


def _of_this_file(answer: Answer) -> Answer:
    """Return an answer without changes of the file if the ids are those of another model, whose flags others may be."""
    if all(cause.detail.get("problem") != "other model" for cause in answer.causes):
        return answer
    return answer._replace(causes=tuple(cause._replace(change=Change()) for cause in answer.causes))


def _best(searches: list[Nearest]) -> list[Answer]:
    """What explains all ids with the fewest causes, with any of the models; otherwise what the first one finds."""
    first, *others = searches
    whole = first.whole()
    whole += [_of_this_file(answer) for other in others for answer in other.whole(most_changes=1)]
    if mended := first.mended(whole):
        return mended
    whole = whole or first.other_text()
    if not whole:
        return first.partial()
    fewest = min(len(answer.causes) for answer in whole)
    found = sorted((item for item in whole if len(item.causes) == fewest), key=order)
    if found[0].causes[-1].id == "text_differs" and first.says_something_else():
        found += first.partial()[:1]
    return found
