"""Why ids from elsewhere are not those of the model: a search, smallest change first.

    tokenizer, text, ids -> [this file] -> what together makes the model give these ids

The ids are the sum of a text, an encoding (pre-tokenizer, merges, flags, types of tokens) and what is done
around it (BOS, EOS, a limit, other numbers for the tokens). Three things make the search short:

- What is around is not searched but read off: the ids are taken apart in each way that makes sense, as
  `Target`s, and the rest is compared with what an encoding gives for the text alone.
- The ids say which text they stand for, whoever made them. A change of the text that does not lead to that
  text is never encoded; mostly all are, or none but one.
- An encoding is asked for ids only as far as they agree, and all encodings share what they know of words.

Sets of changes are tried by size: none, one, two; all of the smallest size at which there is an answer are
listed. An answer is encoded once more, whole, before it is given. Where there is none, the text that the ids
stand for is tried, then single changes are measured by how far they lead.

Where the tokens of the vocabulary speak against its pre-tokenizer (families.py), that is taken for a cause before
all others: what is explained with the one that they point to, and with no more besides than without, is the answer.

But: no rule for when ids are right. That they differ from the model's is all that is said here, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, product
from typing import NamedTuple

from .. import utf8
from ..models.bpe.merge import CHAR_BYTES
from ..models.bpe.registry import PRE_TOKENIZERS
from ..models.bpe.telltales import telltales
from ..models.bpe.text import byte_pair_text
from ..pipeline.detokenize import token_ids
from ..tokenizer import Tokenizer
from ..vocab import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary
from . import causes
from .agreement import AS_COMMAND, added_as, agreement, first_difference
from .causes import CAUSES, Cause, Diagnosis, Explanation, to_json
from .encodings import (
    STRIPS_MASK,
    Encoding,
    EncodingChange,
    acts,
    with_ignore_merges,
    with_merges,
    with_parse_special,
    with_pre,
    with_types,
)
from .evidence import EXCERPT, Target, are_alike, difference, is_lossless, shifts, shown
from .text_changes import TEXT_CHANGES, TextChange, space_prefix
from .variants import Variant, Variants, encoded, variants_of

__all__ = ["Cause", "Diagnosis", "Explanation", "Finding", "diagnose", "search", "to_json"]

_SPECIAL = CONTROL | USER_DEFINED | UNKNOWN
_HAS_PIECE = _SPECIAL | NORMAL | BYTE
_MOST_CHANGES = 2  # of text and encoding; what is around comes on top

_SAMPLE = 4000  # bytes of a longer text by which partial explanations are chosen
_PARTIAL = 5  # partial explanations that are listed
_LEAST_GAIN = 0.1  # of the ids that disagree, the share that a partial explanation must explain


class Finding(NamedTuple):
    """An explanation, and the variant that gives the ids where it explains all of them."""

    causes: tuple[Cause, ...]
    explains: float
    variant: Variant | None = None


def diagnose(
    tokenizer: Tokenizer,
    text: bytes,
    ids: Iterable[int],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    others: Sequence[Tokenizer] = (),
) -> Diagnosis:
    """What makes `tokenizer` give `ids` for `text`, best explanation first; `others` are models to try.

    `add_special` and `parse_special` are as in `Tokenizer.encode`, for the ids that `tokenizer` gives. Where the
    model adds EOS and no BOS, ids as the command llama-tokenize prints them are its own, too; `added_as` says so.

    >>> from ggufbpe import Tokenizer                                          # doctest: +SKIP
    >>> tok = Tokenizer.from_gguf("model.gguf")                                # doctest: +SKIP
    >>> diagnose(tok, b"a b\\n", tok.encode("a b")).explanations[0].causes[0].id # doctest: +SKIP
    'trailing_newline'
    """
    given = token_ids(ids)
    meaning = added_as(tokenizer, text, given, parse_special) if add_special else ""
    add_special = add_special and meaning != AS_COMMAND
    if given == tokenizer.encode(text, add_special=add_special, parse_special=parse_special):
        return Diagnosis(True, (), meaning)
    found = search(
        tokenizer, text, given, add_special=add_special, parse_special=parse_special, others=others
    )
    return Diagnosis(False, tuple(Explanation(item.causes, item.explains) for item in found), meaning)


def search(
    tokenizer: Tokenizer,
    text: bytes,
    ids: list[int],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    others: Sequence[Tokenizer] = (),
) -> list[Finding]:
    """The same, with the variants that give the ids. The ids must not be the tokenizer's own."""
    vocabulary = tokenizer.vocabulary
    flags = add_special, parse_special
    same = [other for other in others if other.vocabulary.tokens == vocabulary.tokens]
    searches = [_Search(tokenizer, text, ids, *flags, merges_of=same)]
    for other in others:
        if other not in same:
            cause = causes.other_vocabulary(other.vocabulary.path)
            searches.append(_Search(other, text, ids, *flags, cause=cause))
    try:
        return _best(searches)
    finally:
        for each in searches:
            each.variants.forget_texts()


def _best(searches: list[_Search]) -> list[Finding]:
    """What explains all ids with the fewest causes, by any of the models; else what the first finds."""
    first, *others = searches
    whole = first.whole() + [finding for other in others for finding in other.whole(most_changes=1)]
    if mended := first.mended(whole):
        return mended
    whole = whole or first.other_text()
    if not whole:
        return first.partial()
    fewest = min(len(finding.causes) for finding in whole)
    found = sorted((item for item in whole if len(item.causes) == fewest), key=_order)
    if found[0].causes[-1].id == "text_differs" and first.says_something_else():
        found += first.partial()[:1]
    return found


def _order(finding: Finding) -> list[int]:
    return sorted(CAUSES.index(cause.id) for cause in finding.causes)


# ---- what the search tries ------------------------------------------------------------------------------


class _Text(NamedTuple):
    data: bytes
    key: bytes  # as decoding gives it back
    causes: tuple[Cause, ...] = ()


class _Search:
    """The search with one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        text: bytes,
        ids: list[int],
        add_special: bool,
        parse_special: bool,
        cause: Cause | None = None,
        merges_of: Sequence[Tokenizer] = (),
    ) -> None:
        self.vocabulary = tokenizer.vocabulary
        self.variants: Variants = variants_of(tokenizer)
        self.ids = ids
        self.add_special = add_special
        self.base = Encoding(self.vocabulary, parse_special)
        self.always = (cause,) if cause else ()  # that this model is used at all
        self.merges_of = merges_of
        self.text = _Text(text, self.key(text))
        self.tokenizer = tokenizer
        self._pipeline = tokenizer.pipeline
        self._plain_text = byte_pair_text(tokenizer)
        self.ours = tokenizer.encode(text, add_special=add_special, parse_special=parse_special)
        self.lossless = is_lossless(self.vocabulary)
        self.targets = list(self._targets(ids, (0, 0), ()))
        for shift in shifts(self.ours, ids):
            back = [token - shift[1] if token - shift[1] >= shift[0] else token for token in ids]
            self.targets += self._targets(back, shift, (causes.shifted(shift[1], shift[0] or None),))

    # ---- taking apart -----------------------------------------------------------------------------------

    def _targets(self, ids: list[int], shift: tuple[int, int], found: tuple[Cause, ...]) -> Iterator[Target]:
        """Each way to take `ids` apart that leaves ids of this vocabulary."""
        vocabulary = self.vocabulary
        known = [0 <= token < len(vocabulary.tokens) for token in ids]
        pieces = [self.tokenizer.token_to_piece(token) if good else b"" for token, good in zip(ids, known)]
        certain = all(self._is_sure(token) for token in {*ids} if 0 <= token < len(vocabulary.tokens))
        data = b"".join(pieces)
        for head in self._ends(ids, "bos"):
            for tail in self._ends(ids[len(head) :][::-1], "eos"):
                first, last = len(head), len(ids) - len(tail)
                if not all(known[first:last]):
                    continue
                start, end = sum(map(len, pieces[:first])), sum(map(len, pieces[last:]))
                text = self._unescaped(data[start : len(data) - end]) if self.lossless and certain else None
                yield Target(head, ids[first:last], tail, text, shift, found)

    def _is_sure(self, token: int) -> bool:
        """Whether a token stands for the text that it decodes to, also if it had another type."""
        attribute, written = self.vocabulary.attributes[token], self.vocabulary.tokens[token]
        if self.vocabulary.pre_tokenizer.byte_encode and attribute & NORMAL:
            return CHAR_BYTES.keys() >= set(written)
        return attribute & _HAS_PIECE != 0

    def _ends(self, ids: list[int], name: str) -> Iterator[tuple[int, ...]]:
        """What at the beginning of `ids` may be BOS (at the end of the reversed, EOS)."""
        yield ()
        special = self.vocabulary.special_ids[name]
        added = self._frame(self.vocabulary, name) != ()
        is_special = bool(ids) and 0 <= ids[0] < len(self.vocabulary.tokens)
        is_special = is_special and self.vocabulary.attributes[ids[0]] & _SPECIAL != 0
        if ids and (ids[0] == special or added or is_special):
            yield (ids[0],)
        if len(ids) > 1 and ids[0] == ids[1] == special:
            yield (ids[0], ids[1])

    def _frame(self, vocabulary: Vocabulary, name: str) -> tuple[int, ...]:
        """The BOS or EOS that a vocabulary adds."""
        token = vocabulary.special_ids[name]
        added = vocabulary.add_bos if name == "bos" else vocabulary.add_eos
        return (token,) if self.add_special and added and token is not None else ()

    def key(self, data: bytes) -> bytes:
        """A text as the model's ids decode to it."""
        return self._unescaped(utf8.decode(data).encode("utf-8", "surrogatepass"))

    def _unescaped(self, data: bytes) -> bytes:
        escapes = self.vocabulary.pre_tokenizer.escape_whitespaces
        return data.replace("▁".encode(), b" ") if escapes else data

    # ---- changes of the text ----------------------------------------------------------------------------

    @cached_property
    def _text_changes(self) -> list[TextChange]:
        changes = list(TEXT_CHANGES)
        if not self.text.data.startswith(b" "):  # add_prefix_space adds none to one that is there
            changes.append(space_prefix("at the beginning", lambda data: b" " + data))
        if self._spaced(self.text.data) != b" " + self.text.data:
            changes.append(space_prefix("before every plain part of the text", self._spaced))
        return changes

    def _spaced(self, data: bytes) -> bytes:
        """A space before the text between special tokens, wherever there is some."""
        source = self._pipeline.source(data)
        parts: list[bytes] = []
        for token, start, end in self._pipeline.special.partition(source, self.base.parse_special):
            part = source[start:end]
            plain = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            parts.append(b" " + plain if token is None else plain)
        return b"".join(parts)

    @cached_property
    def texts(self) -> list[_Text]:
        """The text with one change."""
        return list(self._changed(self.text))

    def _texts_of_two(self) -> Iterator[_Text]:
        """The text with two changes, those that can be the text of the ids."""
        for text in self.texts:
            yield from filter(self._fits, self._changed(text))

    def _changed(self, text: _Text) -> Iterator[_Text]:
        """`text` with each further change that has an effect; equal ones of one cause are told together."""
        found: dict[tuple[str, bytes], list[TextChange]] = {}
        before = [cause.id for cause in text.causes]
        for change in self._text_changes:
            if change.cause.id not in before:
                data = change.apply(text.data)
                if data != text.data and data != self.text.data:
                    found.setdefault((change.cause.id, data), []).append(change)
        for (_, data), changes in found.items():
            first = changes[0].cause
            also = [change.cause.detail["change"] for change in changes[1:]]
            cause = first._replace(detail={**first.detail, "also": also}) if also else first
            yield _Text(data, self.key(data), (*text.causes, cause))

    def _fits(self, text: _Text) -> bool:
        return any(target.fits(text.key) for target in self.targets)

    # ---- changes of the encoding ------------------------------------------------------------------------

    @cached_property
    def _small_changes(self) -> list[tuple[str, EncodingChange]]:
        """All but those of the pre-tokenizer, with their causes."""
        changes: list[tuple[str, EncodingChange]] = []
        parse, source = self.base.parse_special, self._pipeline.source(self.text.data)
        partition = self._pipeline.special.partition
        if partition(source, parse) != partition(source, not parse):
            changes.append(("parse_special", with_parse_special))
        changes.append(("ignore_merges", with_ignore_merges))
        changes += [("special_token_types", change) for change in self._type_changes(source)]
        changes.append(("merges", lambda e: e.with_cause(causes.merges_by_id(), by_id=True)))
        changes += [("merges", with_merges(other.vocabulary)) for other in self.merges_of]
        return changes

    def _type_changes(self, source: str | bytes) -> Iterator[EncodingChange]:
        """The types that special tokens must have for the ids, where it shows in the text."""
        fragments = self._pipeline.special.partition(source, self.base.parse_special)
        ours = {token for token, _, _ in fragments if token is not None}
        done = set()
        for target in self.targets:
            theirs = set(target.core)
            plain = tuple(sorted(ours - theirs))
            parsed = tuple(sorted(filter(self._only_parsed, theirs - ours)))
            for key in ((parsed, plain), (parsed, ()), ((), plain)):
                if key not in done and any(key):
                    done.add(key)
                    # of the two types that are parsed, the one that special tokens mostly have, if both will do
                    kind = CONTROL if self.base.parse_special else USER_DEFINED
                    yield with_types(
                        self.vocabulary, dict.fromkeys(key[0], kind) | dict.fromkeys(key[1], NORMAL)
                    )

    def _only_parsed(self, token: int) -> bool:
        """Whether a token stands in the text, and no merging makes it."""
        written = self.vocabulary.tokens[token].encode()
        if written not in self.text.data:
            return False
        if self._is_sure(token) and self.tokenizer.token_to_piece(token) != written:
            return False  # byte-level: stands for another text than its own
        words = self.tokenizer.words(written)
        return len(words) != 1 or self._plain_text.word_ids[words[0]] != (token,)

    @cached_property
    def _pre_changes(self) -> list[EncodingChange]:
        """A change to each pre-tokenizer that is not the one in force, those that act alike in one."""
        masks = b"<mask>" in self.text.data and "<mask>" in self.vocabulary.token_to_id
        groups: dict[tuple[object, ...], list[str]] = {}
        for name, entry in PRE_TOKENIZERS.items():
            groups.setdefault((*acts(entry), masks and name in STRIPS_MASK), []).append(name)
        own = self.vocabulary.pre_tokenizer
        if PRE_TOKENIZERS.get(own.name) == own:
            groups.pop((*acts(own), masks and own.name in STRIPS_MASK))
        return [with_pre(names, masks) for names in groups.values()]

    @cached_property
    def encodings(self) -> list[Encoding]:
        """The model with one change."""
        return self._encodings(self.base, self._pre_changes)

    def _encodings(self, base: Encoding, pre_changes: list[EncodingChange]) -> list[Encoding]:
        changes = [change for _, change in self._small_changes] + pre_changes
        return [change(base) for change in changes]

    def _encodings_of_two(self, base: Encoding, pre_changes: list[EncodingChange]) -> Iterator[Encoding]:
        small = self._small_changes
        for at, (cause, change) in enumerate(small):
            for pre in pre_changes:
                yield change(pre(base))
            for other, second in small[at + 1 :]:
                if other != cause:
                    yield second(change(base))

    # ---- trying -----------------------------------------------------------------------------------------

    def whole(self, most_changes: int = _MOST_CHANGES) -> list[Finding]:
        """What explains all ids, with as few causes as can be; of that many causes, everything that does."""
        return self._merged(self._searched(self.base, most_changes))

    def _searched(self, base: Encoding, most_changes: int) -> list[Finding]:
        """What explains all ids with the fewest changes of `base`, and more."""
        found: list[Finding] = []
        sure = len(self.always) + len(base.causes)
        for size in range(most_changes + 1):
            if found and min(len(item.causes) for item in found) - sure < size:
                break
            for encoding, text in self._sets(base, size):
                found += self._tried(encoding, text, self.targets)
        return found

    def _sets(self, base: Encoding, size: int) -> Iterator[tuple[Encoding, _Text]]:
        """The combinations of `size` changes of `base` that are worth trying."""
        pre_changes = [] if base.causes else self._pre_changes
        encodings = self._encodings(base, pre_changes) if base.causes else self.encodings
        if size == 0:
            yield base, self.text
        elif size == 1:
            yield from product([base], self.texts)
            yield from product(encodings, [self.text])
        else:
            yield from product([base], self._texts_of_two())
            yield from product(encodings, self.texts)
            if self._fits(self.text):
                yield from product(self._encodings_of_two(base, pre_changes), [self.text])

    def mended(self, whole: list[Finding]) -> list[Finding]:
        """What explains all ids with the pre-tokenizer that the tokens point to, if they speak against this one.

        `whole` is what explains them without asking the tokens; nothing, where that needs fewer other causes.
        """
        if self.vocabulary.tokenizer_model.ignores_pre or not (whole and self._may_be_doubted(whole)):
            return []
        evidence = self.variants.evidence
        if not evidence.is_against:
            return []
        families = {family.family for family in evidence.best}
        bases = [change(self.base) for change in self._pre_changes]
        bases = [base for base in bases if base.vocabulary.pre_tokenizer.family in families]
        fewest = min(len(item.causes) for item in whole)
        found = self._merged(
            [item for base in bases for item in self._searched(base, min(fewest, _MOST_CHANGES))]
        )
        limit = fewest if any(map(_names, whole)) else fewest + 1
        found = [item for item in found if len(item.causes) <= limit]
        if found:
            known = {repr(item.causes) for item in found}
            found = sorted(map(_with_pre_first, found), key=_order)
            found += [item for item in whole if _names(item) and repr(item.causes) not in known]
        return found

    def _may_be_doubted(self, whole: list[Finding]) -> bool:
        """Whether it may pay to weigh all tokens, which takes up to seconds."""
        vocabulary = self.vocabulary
        telling = vocabulary.pre == "default" or telltales(vocabulary.pre_tokenizer, vocabulary.token_to_id)
        return bool(telling) or any(map(_names, whole))

    def _tried(self, encoding: Encoding, text: _Text, targets: list[Target]) -> Iterator[Finding]:
        """What of `targets` the encoding gives for the text."""
        if self._decodes_alike(encoding.vocabulary):
            targets = [target for target in targets if target.fits(text.key)]
        if not targets:
            return
        tokenizer = self.variants.tokenizer(encoding.vocabulary, encoding.by_id)
        ids = encoded(tokenizer, text.data, encoding.parse_special)
        for target in targets:
            count = len(target.core)
            if ids.begin_with(target.core):
                side = "end" if ids.are_more_than(count) else ""
            elif target.ends(text.key) and ids.all()[-count:] == target.core:
                side = "start"
            else:
                continue
            cut = self._cut(target, len(ids.all()), side) if side else ()
            around = self._around(encoding, target, side)
            found = (*self.always, *target.causes, *around, *text.causes, *encoding.causes, *cut)
            if found:
                found = tuple(sorted(found, key=lambda cause: CAUSES.index(cause.id)))
                yield Finding(found, 1.0, self._variant(encoding, text, target, side))

    def _cut(self, target: Target, count: int, side: str) -> tuple[Cause]:
        """That only a part of `count` ids is given."""
        whole = count + len(target.head or self._frame(self.vocabulary, "bos"))
        whole += len(target.tail or self._frame(self.vocabulary, "eos"))
        return (causes.truncated(len(self.ids), whole, side),)

    def _decodes_alike(self, vocabulary: Vocabulary) -> bool:
        """Whether the ids that it gives decode to the text here, so that only that text is to be tried."""
        own, entry = self.vocabulary.pre_tokenizer, vocabulary.pre_tokenizer
        return (entry.byte_encode, entry.escape_whitespaces) == (own.byte_encode, own.escape_whitespaces)

    def _around(self, encoding: Encoding, target: Target, cut: str) -> Iterator[Cause]:
        """What of BOS and EOS is not as the model has it. What was cut off has no end there."""
        vocabulary = encoding.vocabulary
        ours, eos = self._frame(vocabulary, "bos"), self._frame(vocabulary, "eos")
        if target.head or (cut != "start" and self.ids):
            # The name of a pre-tokenizer can say that BOS is added, where the file does not say.
            named = vocabulary.pre_tokenizer.add_bos or vocabulary.pre_tokenizer.always_add_bos
            by_name = named and target.head == self._frame(vocabulary._replace(add_bos=True), "bos")
            is_pre = any(cause.id == "pre_type" for cause in encoding.causes)
            if ours == target.head or not (is_pre and by_name and self._bos_is_by_name):
                yield from causes.framing(vocabulary, "bos", ours, target.head)
        if cut != "end" or target.tail:
            yield from causes.framing(vocabulary, "eos", eos, target.tail)

    @property
    def _bos_is_by_name(self) -> bool:
        """Whether the name of the pre-tokenizer says if BOS is added, because the file does not."""
        return self.vocabulary.named_add_bos is None

    def _variant(self, encoding: Encoding, text: _Text, target: Target, cut: str) -> Variant:
        count = len(target.core)
        kept = {"": (None, None), "end": (0, count), "start": (-count or None, None)}[cut]
        vocabulary, parse_special, by_id, _ = encoding
        head, tail, shift = target.head, target.tail, target.shift
        return Variant(vocabulary, text.data, parse_special, by_id, head, tail, kept, shift)

    def _merged(self, found: list[Finding]) -> list[Finding]:
        """`found` with the fewest causes, checked, and without what only comes of a wrong kind of vocabulary."""
        fewest = min((len(item.causes) for item in found), default=0)
        found = [item for item in found if len(item.causes) == fewest]
        checked = [(item, item.variant.ids(self.variants)) for item in found if item.variant]
        checked = [(item, ids) for item, ids in checked if ids == self.ids]
        sound = [(item, ids) for item, ids in checked if not self._is_of_other_kind(item)]
        return self._by_family(sound or checked)

    def _by_family(self, found: Iterable[tuple[Finding, list[int]]]) -> list[Finding]:
        """`found`, each with its ids; names of one family with the same ids are one finding, the likeliest first."""
        groups: dict[tuple[str, tuple[int, ...]], dict[str, list[Finding]]] = {}
        for item, ids in found:
            rest = repr([cause for cause in item.causes if cause.id != "pre_type"])
            family = PRE_TOKENIZERS[_names(item)[0]].family if _names(item) else ""
            groups.setdefault((rest, tuple(ids)), {}).setdefault(family, []).append(item)
        result: list[Finding] = []
        for families in groups.values():
            ranked = (
                sorted(families, key=self.variants.evidence.place) if len(families) > 1 else list(families)
            )
            for family in ranked:
                names = [name for item in families[family] for name in _names(item)]
                alike = [other for other in ranked if other != family]
                first = families[family][0]
                result.append(self._named(first, names, alike) if names else first)
        return result

    def _is_of_other_kind(self, finding: Finding) -> bool:
        """Whether it is about pre-tokenizers that are not for such a vocabulary, and lose most of a text."""
        entries = [PRE_TOKENIZERS[name] for name in _names(finding)]
        own = self.vocabulary.pre_tokenizer
        return any(entry.byte_encode != own.byte_encode for entry in entries)

    def _named(self, finding: Finding, names: list[str], alike: list[str]) -> Finding:
        """`finding` with all that its pre-tokenizer goes by, and a fix that keeps the rest as it is."""
        cause = causes.pre_type(self.vocabulary, names, alike, self.variants.evidence)
        entry, variant = PRE_TOKENIZERS[str(cause.detail["pre"])], finding.variant
        adds = bool(variant and variant.head)
        by_name = entry.add_bos or entry.always_add_bos
        if self.add_special and entry.always_add_bos and not adds:
            cause = cause._replace(fix=causes.ALWAYS_ADDS_BOS.format(entry.name))
        elif (
            self.add_special and adds != by_name and self.vocabulary.add_bos == adds and self._bos_is_by_name
        ):
            cause = cause._replace(fix=causes.also_set_add_bos(cause.fix, adds))
        elif adds and by_name and all(other.id != "bos" for other in finding.causes):
            what = f"{cause.detail['what']}; by that name, BOS is added"
            cause = cause._replace(detail={**cause.detail, "what": what})
        if not adds and self.vocabulary.add_bos and self.vocabulary.special_ids["bos"] is None:
            # what was to be added and is not there may be there by default under another name
            cause = cause._replace(fix=causes.also_set_add_bos(cause.fix, False))
        return finding._replace(causes=tuple(cause if c.id == "pre_type" else c for c in finding.causes))

    # ---- where no changes explain everything ------------------------------------------------------------

    def other_text(self) -> list[Finding]:
        """The text that the ids stand for, if it gives them."""
        targets = [target for target in self.targets if target.shift == (0, 0)]
        targets.sort(key=lambda target: -len(target.head) - len(target.tail))
        # Of a text that has nothing to do with the given one, only that it gives the ids is worth saying.
        rounds = [[self.base]] if self.says_something_else() else [[self.base], self.encodings]
        for encodings in rounds:
            found: list[Finding] = []
            for target in targets:
                if target.text is not None and target.text != self.text.key:
                    text = self._text_of(target.text)
                    some = [item for encoding in encodings for item in self._tried(encoding, text, [target])]
                    some = [item for item in some if all(cause.id != "truncated" for cause in item.causes)]
                    fewest = min((len(item.causes) for item in found), default=99)
                    # what is as good with BOS in the text is said already with BOS added to it
                    found += [item for item in some if len(item.causes) < fewest]
            if found:
                return self._merged(found)
        return []

    def _text_of(self, data: bytes) -> _Text:
        detail = difference(self.text.data, self.text.key, data)
        return _Text(data, data, (causes.text_differs(detail),))

    def says_something_else(self) -> bool:
        """Whether the ids decode to what has nothing to do with the text."""
        text = self.targets[0].text if self.targets else None
        return text is not None and not are_alike(self.text.key, text)

    def partial(self) -> list[Finding]:
        """What comes nearest, the best first; `unknown` where nothing does."""
        as_it_is = agreement(self.ours, self.ids)
        unknown = Finding((self._unknown(),), as_it_is)
        size = len(self.vocabulary.tokens)
        outside = [token for token in self.ids if not 0 <= token < size]
        if outside:
            return [Finding((causes.out_of_range(outside, size),), as_it_is)]
        if self.says_something_else():
            text = self.targets[0].text or b""
            foreign = Finding((causes.foreign(shown(text[:EXCERPT])),), as_it_is)
            return [foreign, unknown] if self._repeat_as_ours() else [unknown]
        other_merges = self._other_merges()
        if other_merges:
            return [*self._nearest(as_it_is, least_gain=0.5), Finding(other_merges, as_it_is)]
        if any(target.text == self.text.data != self.text.key for target in self.targets):
            return [Finding((causes.invalid_utf8_kept(),), as_it_is)]
        return [*self._nearest(as_it_is), unknown]

    def _repeat_as_ours(self) -> bool:
        """Whether ids come again about as often as they must in such a text, whatever their numbers."""
        ours, theirs = len(self.ours), len(self.ids)
        again = [count - len(set(ids)) for ids, count in ((self.ours, ours), (self.ids, theirs))]
        return 0.2 * ours <= theirs <= 5 * ours and again[1] * ours * 3 >= again[0] * theirs

    def _unknown(self) -> Cause:
        at = first_difference(self.ours, self.ids)
        ours, theirs = self.ours[at : at + 5], self.ids[at : at + 5]
        what = f"nothing known explains the ids; they part at id {at}: {theirs} in place of {ours}"
        return causes.unknown({"what": what, "index": at, "ours": ours, "theirs": theirs})

    def _other_merges(self) -> tuple[Cause, ...]:
        """The causes, if the ids part only within words."""
        for target in self.targets:
            if target.text == self.text.key and target.shift == (0, 0):
                words = self._differing_words(target.core)
                if words:
                    shown = [
                        {
                            "word": word.replace("▁", " "),
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
        """Word: (our ids, the given ids each time); empty where a given token crosses the end of a word."""
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
        plain_text = self._plain_text
        source = self._pipeline.source(self.text.data)
        for token, start, end in self._pipeline.special.partition(source, self.base.parse_special):
            if token is not None:
                yield self.vocabulary.tokens[token], (token,)
                continue
            for word in plain_text.splitter.iterate(plain_text.plain(source[start:end])):
                yield word, plain_text.word_ids[word]

    def _nearest(self, as_it_is: float, least_gain: float = _LEAST_GAIN) -> list[Finding]:
        """Single changes that bring the ids nearer, by how far they lead."""
        count = first_difference(self.ours, self.ids) + _SAMPLE // 4
        start = self.ids[:count]
        groups: dict[tuple[int, ...], list[Finding]] = {}
        for item in self._candidates():
            if item.variant:
                groups.setdefault(tuple(item.variant.start(self.variants, count)), []).append(item)
        nearest = sorted(groups, key=lambda ids: -agreement(ids, start))[: 2 * _PARTIAL]
        measured = [
            (item._replace(explains=agreement(ids, self.ids)), ids)
            for group in nearest
            for item in groups[group]
            for ids in ([item.variant.ids(self.variants)] if item.variant else [])
        ]
        wanted = as_it_is + (1 - as_it_is) * least_gain
        best = [(item, ids) for item, ids in measured if wanted <= item.explains]
        return sorted(self._by_family(best), key=lambda item: -item.explains)[:_PARTIAL]

    def _candidates(self) -> Iterator[Finding]:
        """Single changes of everything."""
        plain = Target(self._frame(self.vocabulary, "bos"), [], self._frame(self.vocabulary, "eos"), None)
        framed = [target for target in self.targets if target.shift == (0, 0)]
        alike = [target for target in framed if (target.head, target.tail) == (plain.head, plain.tail)]
        for target in (alike or framed)[:1]:
            if target.text is not None and target.text != self.text.key:
                text = self._text_of(target.text)
                around = tuple(self._around(self.base, target, ""))
                yield Finding((*around, *text.causes), 0.0, self._variant(self.base, text, target, ""))
        for target in framed:
            around = tuple(self._around(self.base, target, ""))
            if len(around) == 1:
                yield Finding(around, 0.0, self._variant(self.base, self.text, target, ""))
        changed = [(self.base, text) for text in self.texts] + [(each, self.text) for each in self.encodings]
        for encoding, text in changed:
            yield Finding((*encoding.causes, *text.causes), 0.0, self._variant(encoding, text, plain, ""))


def _with_pre_first(finding: Finding) -> Finding:
    return finding._replace(causes=tuple(sorted(finding.causes, key=lambda cause: cause.id != "pre_type")))


def _names(finding: Finding) -> list[str]:
    """The names of the pre-tokenizers that a finding is about."""
    found = [cause.detail["names"] for cause in finding.causes if cause.id == "pre_type"]
    return [name for names in found for name in names]  # type: ignore[attr-defined]
