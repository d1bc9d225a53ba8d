"""Explains a part of the ids if no changes explain all: the decoded text, and the nearest changes."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, groupby

from ..._util.spelling import unescape_spaces
from ...models.bpe.bpe_text import BytePairText
from . import causes
from .agreement import agreeing_share, first_difference
from .cause import Cause
from .cause_search import Answer, Search
from .changes import ChangedText
from .id_evidence import EXCERPT, Target, are_alike, shown, text_difference
from .variants import Variant

_SAMPLE = 4000  # bytes of a longer text by which partial explanations are chosen
_PARTIAL = 5  # partial explanations that are listed
_LEAST_OF_SCORES = 0.5
_COMPARED = 500  # ids by which it is told that scores differ; the time may grow with the cube
_LEAST_GAIN = 0.1  # the share of the ids that disagree that a partial explanation must explain


class Nearest(Search):
    """The search with one model, and what to report if it finds nothing."""

    def other_text(self) -> list[Answer]:
        """The text that the ids decode to, if encoding it gives them."""
        if not self.ids:
            return []
        targets = [
            target if self.lossless else target._replace(text=self._decoded(target.core))
            for target in self.targets
            if target.shift == (0, 0)
        ]
        targets.sort(key=lambda target: -len(target.head) - len(target.tail))
        # For an unrelated text, it is only worth reporting if it gives the ids without further changes.
        rounds = [[self.base]] if self.says_something_else() else [[self.base], self.encodings]
        for encodings in rounds:
            found: list[Answer] = []
            for target in targets:
                if target.text is not None and target.text != self._own_text:
                    text = self._text_of(target.text)
                    some = [item for encoding in encodings for item in self._tried(encoding, text, [target])]
                    some = [item for item in some if all(cause.id != "truncated" for cause in item.causes)]
                    fewest = min((len(item.causes) for item in found), default=99)
                    # BOS as part of the text would repeat the explanation with BOS added to it
                    found += [item for item in some if len(item.causes) < fewest]
            if found:
                return self._merged(found)
        return []

    @cached_property
    def _own_text(self) -> bytes:
        """The text, encoded and decoded."""
        if self.lossless:
            return self.text.key
        parse_special = self.base.parse_special
        return self._decoded(
            self.tokenizer.encode(self.text.data, add_special=False, parse_special=parse_special)
        )

    def _decoded(self, ids: list[int]) -> bytes:
        """What ids decode to, in a model that does not keep every text: no space is put behind special tokens."""
        size, special = len(self.vocabulary.tokens), set(self.vocabulary.special_token_ids)
        if not all(0 <= token < size for token in ids):
            return b""
        runs = [(is_special, [*run]) for is_special, run in groupby(ids, special.__contains__)]
        decode, pieces = self.tokenizer.decode_bytes, self.tokenizer.token_to_piece
        return b"".join(b"".join(map(pieces, run)) if is_special else decode(run) for is_special, run in runs)

    def _text_of(self, data: bytes) -> ChangedText:
        detail = text_difference(self.text.data if self.lossless else self._own_text, self._own_text, data)
        return ChangedText(data, data, (causes.text_differs(detail),))

    def says_something_else(self) -> bool:
        """Whether the ids decode to an unrelated text."""
        text = self.targets[0].text if self.targets else None
        if self.targets and not self.lossless:
            text = self._decoded(self.targets[0].core)
        return text is not None and not are_alike(self._own_text, text)

    def partial(self) -> list[Answer]:
        """What comes nearest, the best first; `unknown` if nothing does."""
        as_it_is = agreeing_share(self.ours, self.ids)
        if not self.ids:
            return [Answer((causes.no_ids(self.ours),), as_it_is)]
        unknown = Answer((self._unknown(),), as_it_is)
        size = len(self.vocabulary.tokens)
        outside = [token for token in self.ids if not 0 <= token < size]
        if outside:
            return [Answer((causes.out_of_range(outside, size),), as_it_is)]
        if self.says_something_else():
            text = self.targets[0].text or self._decoded(self.targets[0].core)
            foreign = Answer((causes.foreign(shown(text[:EXCERPT])),), as_it_is)
            return [foreign, unknown] if self._repeat_as_ours() else [unknown]
        other_merges = self._other_merges()
        if other_merges:
            return [*self._nearest(as_it_is, least_gain=0.5), Answer(other_merges, as_it_is)]
        if any(target.text == self.text.data != self.text.key for target in self.targets):
            return [Answer((causes.invalid_utf8_kept(),), as_it_is)]
        if self.vocabulary.tokenizer_model.has_scores and (self._says_the_same() or self._prefers_others()):
            return [
                Answer((causes.other_scores(self.vocabulary.scores),), as_it_is),
                *self._nearest(as_it_is),
            ]
        return [*self._nearest(as_it_is), unknown]

    def _says_the_same(self) -> bool:
        """Whether the ids decode to the text as ours do, so that only the choice between tokens differs."""
        return any(
            target.shift == (0, 0) and self._decoded(target.core) == self._own_text for target in self.targets
        )

    def _prefers_others(self) -> bool:
        """Whether most of what differs are other tokens for the same bytes."""
        start = first_difference(self.ours, self.ids)
        ours, theirs = (ids[start : start + _COMPARED] for ids in (self.ours, self.ids))
        codes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
        pairs = {(tuple(ours[a:b]), tuple(theirs[c:d])) for tag, a, b, c, d in codes if tag == "replace"}
        same = sum(self._decoded([*one]) == self._decoded([*other]) != b"" for one, other in pairs)
        return 0 < len(pairs) <= 2 * same

    def _repeat_as_ours(self) -> bool:
        """Whether the ids repeat about as often as ours do, whatever their numbers."""
        ours, theirs = len(self.ours), len(self.ids)
        again = [count - len(set(ids)) for ids, count in ((self.ours, ours), (self.ids, theirs))]
        return 0.2 * ours <= theirs <= 5 * ours and again[1] * ours * 3 >= again[0] * theirs

    def _unknown(self) -> Cause:
        at = first_difference(self.ours, self.ids)
        ours, theirs = self.ours[at : at + 5], self.ids[at : at + 5]
        what = f"no known cause explains the ids; the first difference is at index {at}: {theirs} instead of {ours}"
        return causes.unknown({"what": what, "index": at, "ours": ours, "theirs": theirs})

    def _other_merges(self) -> tuple[Cause, ...]:
        """The causes if the ids differ only within words; only for models with merges."""
        if not isinstance(self._pipeline.plain_text, BytePairText):
            return ()
        for target in self.targets:
            if target.text == self.text.key and target.shift == (0, 0):
                words = self._differing_words(target.core)
                if words:
                    shown = [
                        {
                            "word": unescape_spaces(word),
                            "ours": self._shown(ours),
                            "theirs": self._shown(theirs[0]),
                        }
                        for word, (ours, theirs) in list(words.items())[:_PARTIAL]
                    ]
                    consistent = all(len(set(theirs)) == 1 for _, theirs in words.values())
                    cause = causes.merges(self.vocabulary, shown, len(words), consistent)
                    return (*self._around(self.base, target, ""), cause)
        return ()

    def _shown(self, ids: tuple[int, ...]) -> list[str]:
        return [shown(self.tokenizer.token_to_piece(token)) for token in ids]

    def _differing_words(self, core: list[int]) -> dict[str, tuple[tuple[int, ...], list[tuple[int, ...]]]]:
        """{word: (our ids, the given ids each time)}; empty if a given token crosses the end of a word."""
        lengths = [len(self._unescaped(self.tokenizer.token_to_piece(token))) for token in core]
        index_at = {end: index for index, end in enumerate(accumulate(lengths), 1)}
        found: dict[str, tuple[tuple[int, ...], list[tuple[int, ...]]]] = {}
        position = index = 0
        for word, ours in self._words():
            position += len(self.key(word.encode("utf-8", "surrogatepass")))
            following = index_at.get(position)
            if following is None:
                return {}
            theirs = tuple(core[index:following])
            index = following
            found.setdefault(word, (ours, []))[1].append(theirs)
        return {word: (ours, theirs) for word, (ours, theirs) in found.items() if {*theirs} != {ours}}

    def _words(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The words of the text with their ids; special tokens are words of their own."""
        plain_text = self._pipeline.plain_text
        assert isinstance(plain_text, BytePairText)
        source = self._pipeline.source(self.text.data)
        for token, start, end in self._pipeline.special.partition(source, self.base.parse_special):
            if token is not None:
                yield self.vocabulary.tokens[token], (token,)
                continue
            for word in plain_text.splitter.iterate(plain_text.plain(source[start:end])):
                yield word, plain_text.word_ids[word]

    def _nearest(self, as_it_is: float, least_gain: float = _LEAST_GAIN) -> list[Answer]:
        """Single changes after which more ids agree, the best first."""
        count = first_difference(self.ours, self.ids) + _SAMPLE // 4
        start = self.ids[:count]
        groups: dict[tuple[int, ...], list[tuple[tuple[Cause, ...], Variant]]] = {}
        for candidate in self._candidates():
            groups.setdefault(tuple(candidate[1].start(self.variants, count)), []).append(candidate)
        nearest = sorted(groups, key=lambda ids: -agreeing_share(ids, start))[: 2 * _PARTIAL]
        measured = [
            (Answer(found, agreeing_share(ids, self.ids), variant), ids)
            for group in nearest
            for found, variant in groups[group]
            for ids in [variant.ids(self.variants)]
        ]
        best = [
            (item, ids)
            for item, ids in measured
            if item.explains >= as_it_is + (1 - as_it_is) * max(least_gain, _least_gain_of(item))
        ]
        return sorted(self._by_family(best), key=lambda item: -item.explains)[:_PARTIAL]

    def _candidates(self) -> Iterator[tuple[tuple[Cause, ...], Variant]]:
        """Single changes of every kind: the causes, and the variant with the change."""
        before, behind = self.base.around(self.add_special)
        plain = Target(before, [], behind, None)
        framed = [target for target in self.targets if target.shift == (0, 0)]
        alike = [target for target in framed if (target.head, target.tail) == (plain.head, plain.tail)]
        for target in (alike or framed)[:1]:
            if target.text is not None and target.text != self.text.key:
                text = self._text_of(target.text)
                around = tuple(self._around(self.base, target, ""))
                yield (*around, *text.causes), self._variant(self.base, text, target, "")
        for target in framed:
            around = tuple(self._around(self.base, target, ""))
            if len(around) == 1:
                yield around, self._variant(self.base, self.text, target, "")
        changed = [(self.base, text) for text in self.texts] + [(each, self.text) for each in self.encodings]
        for encoding, text in changed:
            yield (*encoding.causes, *text.causes), self._variant(encoding, text, plain, "")


def _least_gain_of(answer: Answer) -> float:
    """Return the share of the other ids that must agree by an answer: other scores make some agree by chance."""
    return _LEAST_OF_SCORES if any(cause.id == "scores" for cause in answer.causes) else 0.0
