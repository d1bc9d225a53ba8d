"""Searches for sets of changes after which a model gives the expected ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from ...gguf.change import Change, all_of
from ...gguf.constants import TokenizerKey
from ...models.pretokenizers.families import Evidence
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ..doctor.texts_with_ids import Encode, TextWithIds
from . import causes
from .cause import CAUSES, Cause
from .changes import MOST_CHANGES, ChangedText, Changes
from .encoding_changes import Encoding
from .framing import framing, name_of_added, without_padding
from .id_evidence import Target
from .variants import Variant, encoded, variants_of

_SPACES = " ▁Ġ"  # before a word: as it is, SentencePiece's, and GPT-2's byte


class Answer(NamedTuple):
    """An explanation, and the variant that gives the ids where it explains all of them.

    `expected` is what `expected_of` returns, if it does not follow from the variant.
    """

    causes: tuple[Cause, ...]
    explains: float
    variant: Variant | None = None
    expected: Encode | None = None

    @property
    def change(self) -> Change:
        """All changes of the model file that the causes call for."""
        return all_of(cause.change for cause in self.causes)

    @property
    def takes_another_text(self) -> bool:
        """Whether another text is a part of the explanation, with which nearly any ids can be explained."""
        return any(cause.id == "text_differs" for cause in self.causes)


def order(answer: Answer) -> list[int]:
    """The sort key of answers: the places of their causes in `CAUSES`."""
    return sorted(map(_place, answer.causes))


def _place(cause: Cause) -> int:
    """Types of tokens that do not look special come after scores, which also make tokens of plain text.

    Control tokens that are ordinary text in the given ids come before `parse_special`: without special tokens, no chat
    works.
    """
    tokens: list[Any] = cause.detail["tokens"] if cause.id == "special_token_types" else []  # type: ignore[assignment]
    if tokens and all(map(_is_word_made_control, tokens)):
        return CAUSES.index("sep")
    likely = cause.id != "special_token_types" or any(map(_looks_special, tokens))
    return CAUSES.index(cause.id if likely else "scores") + (not likely)


def _looks_special(token: dict[str, str]) -> bool:
    """Whether a token is written in brackets, as special tokens are."""
    return token["token"].strip()[:1] in tuple("<[{")


def _is_word_made_control(token: dict[str, str]) -> bool:
    """Whether a word in letters is a control token in the file, and ordinary text in the given ids."""
    types = token.get("ours"), token.get("theirs")
    return types == ("CONTROL", "NORMAL") and token["token"].lstrip(_SPACES).isalpha()


def _with_pre_first(answer: Answer) -> Answer:
    return answer._replace(causes=tuple(sorted(answer.causes, key=lambda cause: cause.id != "pre_type")))


def pre_names_of(answer: Answer) -> list[str]:
    """The names of the pre-tokenizers that an answer is about."""
    found = [cause.detail["names"] for cause in answer.causes if cause.id == "pre_type"]
    return [name for names in found for name in names]  # type: ignore[attr-defined]


class Search(Changes):
    """The search with one model."""

    def whole(self, most_changes: int = MOST_CHANGES) -> list[Answer]:
        """All answers that explain all ids with the fewest causes."""
        return self._merged(self._searched(self.base, most_changes))

    def _searched(self, base: Encoding, most_changes: int) -> list[Answer]:
        """Answers that explain all ids, up to the fewest changes of `base` that do."""
        found: list[Answer] = []
        sure = len(self.always) + len(base.causes)
        for size in range(most_changes + 1):
            if found and min(len(item.causes) for item in found) - sure < size:
                break
            for encoding, text in self._sets(base, size):
                found += self._tried(encoding, text, self.targets)
        return found

    def _sets(self, base: Encoding, size: int) -> Iterator[tuple[Encoding, ChangedText]]:
        """The combinations of `size` changes of `base` that are worth trying."""
        encodings = self._with_small_changes(base) if base.causes else self.encodings
        if size == 0:
            yield base, self.text
        elif size == 1:
            yield from product([base], self.texts)
            yield from product(encodings, [self.text])
        else:
            yield from product([base], self._texts_of_two())
            yield from product(encodings, self.texts)
            if self._fits(self.text):
                yield from product(self._encodings_of_two(base), [self.text])

    def mended(self, whole: list[Answer]) -> list[Answer]:
        """What explains all ids with the pre-tokenizer that the tokens point to, if they do not fit this one.

        `whole` is what explains them without looking at the tokens; empty if that needs fewer other causes.
        """
        model = self.vocabulary.tokenizer_model
        if model.ignores_pre or not (model.has_pre_tokenizer and whole):
            return []
        if not (self.variants.has_doubtful_pre or any(map(pre_names_of, whole))):
            return []  # looking at all tokens can take seconds
        evidence = self.variants.evidence
        if not evidence.is_against:
            return []
        families = {family.family for family in evidence.best}
        bases = [change(self.base) for change in self._pre_changes]
        bases = [base for base in bases if base.vocabulary.pre_tokenizer.family in families]
        fewest = min(len(item.causes) for item in whole)
        found = self._merged(
            [item for base in bases for item in self._searched(base, min(fewest, MOST_CHANGES))]
        )
        limit = fewest if any(map(pre_names_of, whole)) else fewest + 1
        found = [item for item in found if len(item.causes) <= limit]
        if found:
            known = {repr(item.causes) for item in found}
            found = sorted(map(_with_pre_first, found), key=order)
            found += [item for item in whole if pre_names_of(item) and repr(item.causes) not in known]
        return found

    def _tried(self, encoding: Encoding, text: ChangedText, targets: list[Target]) -> Iterator[Answer]:
        """The answers for those of `targets` that the encoding gives for the text."""
        if self._decodes_alike(encoding.vocabulary):
            targets = [target for target in targets if target.fits(text.key)]
        if not targets:
            return
        tokenizer = self.variants.tokenizer(encoding.vocabulary, encoding.way)
        ids = encoded(tokenizer, text.data, encoding.parse_special)
        for target in targets:
            count = len(target.core)
            if ids.begin_with(target.core):
                side = "end" if ids.are_more_than(count) else ""
                if side and not self.ids:  # which would be the beginning of any ids
                    continue
            elif target.ends(text.key) and ids.all()[-count:] == target.core:
                side = "start"
            else:
                continue
            cut = self._cut(target, len(ids.all()), side) if side else ()
            around = self._around(encoding, target, side)
            found = (*self.always, *target.causes, *around, *text.causes, *encoding.causes, *cut)
            if found:
                found = tuple(sorted(found, key=lambda cause: cause.place))
                yield Answer(found, 1.0, self._variant(encoding, text, target, side))

    def _cut(self, target: Target, count: int, side: str) -> tuple[Cause]:
        """The cause if only a part of `count` ids is given."""
        vocabulary, kept, whole = self.vocabulary, len(target.core), count
        around = self.base.around(self.add_special)
        for name, ours, theirs in zip(("bos", "eos"), around, (target.head, target.tail)):
            special = vocabulary.special_ids[name_of_added(vocabulary, name)]
            end = without_padding(special, ours, theirs)
            kept, whole = kept + len(end), whole + len(end or ours)
        return (causes.truncated(kept, whole, side),)

    def _decodes_alike(self, vocabulary: Vocabulary) -> bool:
        """Whether ids of that vocabulary decode as they do here, so that only the decoded text needs to be tried."""
        own, entry = self.vocabulary.pre_tokenizer, vocabulary.pre_tokenizer
        return (entry.byte_encode, entry.escape_whitespaces) == (own.byte_encode, own.escape_whitespaces)

    def _around(self, encoding: Encoding, target: Target, cut: str) -> Iterator[Cause]:
        """The causes if BOS and EOS differ from the model's. Truncated ids have no end to compare."""
        vocabulary, (before, behind) = encoding.vocabulary, encoding.around(self.add_special)
        if target.head or cut != "start":
            # The name of a pre-tokenizer can imply that BOS is added, if the file does not say.
            named = vocabulary.pre_tokenizer.add_bos or vocabulary.pre_tokenizer.always_add_bos
            with_bos = encoding._replace(vocabulary=vocabulary._replace(add_bos=True))
            by_name = named and target.head == with_bos.around(self.add_special)[0]
            is_pre = any(cause.id == "pre_type" for cause in encoding.causes)
            if before == target.head or not (is_pre and by_name and self.vocabulary.named_add_bos is None):
                yield from framing(vocabulary, "bos", before, target.head)
        if cut != "end" or target.tail:
            yield from framing(vocabulary, "eos", behind, target.tail)

    def _variant(self, encoding: Encoding, text: ChangedText, target: Target, cut: str) -> Variant:
        count = len(target.core)
        kept = {"": (None, None), "end": (None, count), "start": (-count or None, None)}[cut]
        head, tail, shift = target.head, target.tail, target.shift
        changed = encoding._replace(head=head, tail=tail, shift=shift)
        return changed.variant(text.data, self.add_special)._replace(kept=kept)

    def _merged(self, found: list[Answer]) -> list[Answer]:
        """`found` with the fewest causes, checked, and without pre-tokenizers for another kind of vocabulary."""
        fewest = min((len(item.causes) for item in found), default=0)
        found = [item for item in found if len(item.causes) == fewest]
        checked = [item for item in found if item.variant and item.variant.ids(self.variants) == self.ids]
        sound = [item for item in checked if not self._is_of_other_kind(item)]
        return self._by_family((item, self.ids) for item in sound or checked)

    def _by_family(self, found: Iterable[tuple[Answer, list[int]]]) -> list[Answer]:
        """`found`, each with its ids; names of one family with the same ids are merged, the most likely first."""
        groups: dict[tuple[str, tuple[int, ...]], dict[str, list[Answer]]] = {}
        for item, ids in found:
            rest = repr([cause for cause in item.causes if cause.id != "pre_type"])
            family = PRE_TOKENIZERS[pre_names_of(item)[0]].family if pre_names_of(item) else ""
            groups.setdefault((rest, tuple(ids)), {}).setdefault(family, []).append(item)
        result: list[Answer] = []
        for families in groups.values():
            ranked = (
                sorted(families, key=self.variants.evidence.place) if len(families) > 1 else list(families)
            )
            for family in ranked:
                names = [name for item in families[family] for name in pre_names_of(item)]
                alike = [other for other in ranked if other != family]
                first = families[family][0]
                result.append(self._named(first, names, alike) if names else first)
        return result

    def _is_of_other_kind(self, answer: Answer) -> bool:
        """Whether it is about pre-tokenizers for another kind of vocabulary, which lose most of a text."""
        entries = [PRE_TOKENIZERS[name] for name in pre_names_of(answer)]
        own = self.vocabulary.pre_tokenizer
        return any(entry.byte_encode != own.byte_encode for entry in entries)

    def _named(self, answer: Answer, names: list[str], alike: list[str]) -> Answer:
        """`answer` with all names of its pre-tokenizer, and a change that keeps whether BOS is added."""
        adds = bool(answer.variant and answer.variant.head) if self.add_special else None
        has_cause = any(other.id == "bos" for other in answer.causes)
        cause = named_pre(self.vocabulary, names, alike, self.variants.evidence, adds, has_cause)
        return answer._replace(causes=tuple(cause if c.id == "pre_type" else c for c in answer.causes))


# What of a vocabulary a cause may change without a command that does, with the keys in the file.
_KEPT = {
    "merges": TokenizerKey.MERGES,
    "scores": TokenizerKey.SCORES,
    "charsmap": TokenizerKey.PRECOMPILED_CHARSMAP,
    "pre_tokenizer": TokenizerKey.PRE,
    "lowercase": TokenizerKey.NORMALIZER_LOWERCASE,
}


def expected_of(answer: Answer, ours: Vocabulary, add_special: bool) -> Encode | None:
    """Return what gives the ids by a changed file, if all that no file can express is as the answer says.

    `ours` is the vocabulary of the file as it is. None for an answer that does not explain all ids.
    """
    variant, changed = answer.variant, answer.change
    if answer.expected is not None or variant is None:
        return answer.expected
    theirs = variant.vocabulary
    kept = {
        name: getattr(theirs, name)
        for name, key in _KEPT.items()
        if getattr(theirs, name) is not getattr(ours, name) and key not in changed.keys
    }
    if TokenizerKey.MODEL in changed.keys:
        kept = {}
    by_hand = {cause.id for cause in answer.causes if cause.id in ("bos", "eos", "sep") and not cause.change}
    is_cut = {"start": variant.kept[0] is not None, "end": variant.kept[1] is not None}

    def expected(tokenizer: Tokenizer, compared: TextWithIds) -> list[int]:
        vocabulary = tokenizer.vocabulary._replace(**kept)
        before, behind = Encoding(vocabulary, variant.parse_special).around(add_special)
        asked = variant._replace(vocabulary=vocabulary)
        if "bos" not in by_hand and not (is_cut["start"] and not variant.head):
            asked = asked._replace(head=before)
        if not by_hand & {"eos", "sep"} and not (is_cut["end"] and not variant.tail):
            asked = asked._replace(tail=behind)
        if kept or variant.way:
            tokenizer = variants_of(tokenizer).tokenizer(vocabulary, variant.way)
        return asked.of(tokenizer)

    return expected


def named_pre(
    vocabulary: Vocabulary,
    names: list[str],
    alike: list[str],
    evidence: Evidence,
    adds_bos: bool | None,
    is_bos_a_cause: bool,
) -> Cause:
    """Return the cause that the pre-tokenizer is one of `names`, with a change that keeps whether BOS is added.

    `adds_bos` tells whether the given ids begin with BOS, None if no special tokens were asked for; `is_bos_a_cause`
    whether that is another cause, which has a change of its own.
    """
    cause = causes.pre_type(vocabulary, names, alike, evidence)
    entry = PRE_TOKENIZERS[str(cause.detail["pre"])]
    by_name, by_file = entry.add_bos or entry.always_add_bos, vocabulary.named_add_bos
    if not cause.change:
        return cause
    if adds_bos is False and entry.always_add_bos:
        return cause._replace(fix=causes.ALWAYS_ADDS_BOS.format(entry.name), change=Change())
    change = cause.change
    if adds_bos not in (None, by_name) and vocabulary.add_bos == adds_bos and by_file is None:
        change |= causes.add_bos(bool(adds_bos))
    elif adds_bos and by_name and not is_bos_a_cause and not vocabulary.add_bos:
        told = [*cause.detail["evidence"], f"llama.cpp adds BOS where the pre-tokenizer is {entry.name}"]  # type: ignore[misc]
        cause = cause._replace(detail={**cause.detail, "evidence": told})
    if not adds_bos and vocabulary.add_bos and vocabulary.special_ids["bos"] is None:
        # under the new name there may be a default BOS, which would then be added
        change |= causes.add_bos(False)
    return cause._replace(change=change)
