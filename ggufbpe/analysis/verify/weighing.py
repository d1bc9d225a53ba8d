"""Decides by doctor's findings which of two files is the broken one, and what it must change to match the other.

A flag speaks against a file where conversions always write the other value for such tokens; a marker that is plain
text in one file only is suspicious there, and so is an ordinary word that is special; and the tokens, which both files
have, speak for one of two pre-tokenizers.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from ..._util.errors import printable
from ..._util.wording import counted
from ...gguf.change import COMMAND, Change, all_of
from ...gguf.constants import KEY_NAME, TokenizerKey, TokenType
from ...gguf.schema import ids_out_of_range
from ...models.pieces import quoted_token
from ...models.special_ids import SPECIAL_IDS
from ...models.token_table import tokens_that_differ
from ...models.vocabulary import CONTROL, NORMAL, SPECIAL_TYPES, UNUSED, Vocabulary
from ..doctor.facts import TEXTS_OF_IDS, Facts
from ..doctor.finding import Finding
from ..doctor.model_checks import has_capitals
from ..doctor.proposal import Trial, checks_left_out
from ..doctor.template_checks import makes_embeddings
from ..doctor.token_checks import BRACKETED

_K = TokenizerKey
_OF_DOCTOR = 3  # how much a finding of doctor weighs against a value that is unusual
_CONVERT = "convert the model again"  # how the advice of a finding begins that no command mends
_COSTS_MORE = 0.5  # of a family of pre-tokenizers, in terms of `Family.cost`

# Flags by field of `Vocabulary`, with their keys.
_FLAGS = {
    "add_bos": _K.ADD_BOS,
    "add_eos": _K.ADD_EOS,
    "add_space_prefix": _K.ADD_PREFIX,
    "remove_extra_whitespaces": _K.REMOVE_EXTRA_WS,
    "lowercase": _K.NORMALIZER_LOWERCASE,
    "strip_accents": _K.NORMALIZER_STRIP_ACCENTS,
}


class Weighed(NamedTuple):
    """How suspicious each of two files is, and why, in words."""

    weights: tuple[int, int]
    reasons: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def suspect(self) -> int | None:
        """0 or 1, the file that is more suspicious; None if both look alike."""
        one, other = self.weights
        return None if one == other else int(other > one)


def weigh(one: Trial, other: Trial) -> Weighed:
    """Weigh two files of one vocabulary against each other."""
    facts = one.before, other.before
    facts[1].share(facts[0])
    but = checks_left_out(*facts)
    findings = tuple(each.grave_before(but) for each in (one, other))
    suspicions: list[list[tuple[int, str]]] = []
    for own, others in ((0, 1), (1, 0)):
        known = {(finding.id, finding.where.key) for finding in findings[others]}
        new = [each for each in findings[own] if (each.id, each.where.key) not in known]
        told = [(_OF_DOCTOR, _said(each)) for each in new]
        trials = (one, other)[own], (one, other)[others]
        keys = frozenset(each.where.key for each in new)
        suspicions.append([*told, *_unusual(*trials, keys)])
    weights = tuple(sum(weight for weight, _ in each) for each in suspicions)
    reasons = tuple(tuple(dict.fromkeys(reason for _, reason in each)) for each in suspicions)
    return Weighed(weights, reasons)  # type: ignore[arg-type]


def _said(finding: Finding) -> str:
    """Return the first sentence of a finding, and whether no command mends it."""
    told = finding.what.partition(". ")[0].rstrip(".")
    is_for_converter = finding.fix.startswith(_CONVERT) and not COMMAND.search(finding.fix)
    return f"{told}, which only another conversion mends" if is_for_converter else told


def _unusual(one: Trial, another: Trial, told: Container[str | None]) -> Iterator[tuple[int, str]]:
    """What is unusual in a file and not in the other, with its weight; doctor's findings are about the keys `told`."""
    own, other = one.before, another.before
    if own.tokenizer is None or other.tokenizer is None:
        return
    ours, theirs = own.tokenizer.vocabulary, other.tokenizer.vocabulary
    yield from _unusual_pre(own, ours, theirs)
    for field, usual in _usual_flags(own, other, ours).items():
        value = getattr(ours, field)
        if value != getattr(theirs, field) and value != usual:
            yield 1, f"the flag {_FLAGS[field]} is {str(value).lower()}, which is unusual for such a model"
    yield from _unusual_types(one, another, ours, theirs)
    for key, texts in TEXTS_OF_IDS.items():
        name = _NAMES[key]
        ids = ours.special_ids[name], theirs.special_ids[name]
        if key not in told and ids[0] != ids[1] and ids[0] is not None and ids[1] is not None:
            written = ours.tokens[ids[0]], theirs.tokens[ids[1]]
            if written[0] not in texts and written[1] in texts:
                yield 1, f"{name.upper()} is {printable(written[0])}"
    if not _is_extended(ours, theirs):
        for array, what in (("tokens", "token"), ("merges", "merge")):
            missing = len(getattr(theirs, array)) - len(getattr(ours, array))
            if missing > 0 and what == "merge":  # some may be listed twice
                missing = len(set(theirs.merges)) - len(set(ours.merges))
            if missing > 0:
                yield 1, f"it has {counted(missing, what)} fewer, which only another conversion brings back"


def _usual_flags(own: Facts, other: Facts, vocabulary: Vocabulary) -> dict[str, bool]:
    """Return the flags that conversions write in one way only for such a model and its tokens.

    What llama.cpp takes where a key is absent is no measure. Whether BOS is added and accents are kept differs between
    healthy models; where texts reveal that a model was trained with BOS, doctor says so.
    """
    model, usual = vocabulary.tokenizer_model, {}
    if own.obeys_flags and not (makes_embeddings(own) or makes_embeddings(other)):
        usual["add_eos"] = model.add_eos
    if "add_space_prefix" in model.flags and (own.family or model.has_charsmap):  # sentencepiece's default
        usual["add_space_prefix"] = True  # in other models both are usual: Gemma's files put none
    if "lowercase" in model.flags:
        usual["lowercase"] = not has_capitals(vocabulary)
    return usual


def _unusual_types(
    one: Trial, another: Trial, ours: Vocabulary, theirs: Vocabulary
) -> Iterator[tuple[int, str]]:
    """Markers that are plain text, and ordinary words that are control tokens or unused.

    User-defined words say nothing: a model may have been trained with them. Markers are no evidence if the other file
    has stored its words as special tokens as well.
    """
    assert one.markers is not None
    assert another.markers is not None
    differing = list(_types(ours, theirs))
    plain = [token for token, (a, b) in differing if a & NORMAL and b & SPECIAL_TYPES]
    plain = [token for token in plain if token in another.markers or not _may_be_word(ours.tokens[token])]
    special = [token for token, (a, b) in differing if a & (CONTROL | UNUSED) and b & NORMAL]
    special = [token for token in special if one.markers.is_word(token)]
    if plain and not another.markers.lacks_words:
        yield 1, f"{_some(theirs, plain)} {'are' if len(plain) > 1 else 'is'} plain text"
    if special:
        are = (
            "are not plain text, although they are ordinary words"
            if len(special) > 1
            else "is not plain text, although it is an ordinary word"
        )
        yield 1, f"{_some(theirs, special)} {are}"


def _may_be_word(text: str) -> bool:
    """Check that a text may be an ordinary one: it has letters or digits, or is a single character such as "!"."""
    return (len(text) == 1 or any(map(str.isalnum, text))) and not BRACKETED.fullmatch(text)


def _some(vocabulary: Vocabulary, tokens: list[int]) -> str:
    """The first of some tokens, quoted, and how many others there are."""
    others = f" and {counted(len(tokens) - 1, 'other')}" if len(tokens) > 1 else ""
    return quoted_token(vocabulary, tokens[0]) + others


def _is_extended(ours: Vocabulary, theirs: Vocabulary) -> bool:
    """Whether the other vocabulary goes on where ours ends, in tokens and in merges, as `train` extends a seed.

    Models that were trained on have control tokens behind those of their base model, too. A file that lost its end is
    neither: special ids are among the tokens that it lacks.
    """
    size = len(ours.tokens)
    goes_on = size < len(theirs.tokens) and all(
        list(other[: len(mine)]) == list(mine)
        for mine, other in ((ours.tokens, theirs.tokens), (ours.merges, theirs.merges))
    )
    return goes_on and all((id_ or 0) < size for id_ in theirs.special_ids.values())


def _unusual_pre(own: Facts, ours: Vocabulary, theirs: Vocabulary) -> Iterator[tuple[int, str]]:
    if not own.kind.has_pre_tokenizer or ours.pre_tokenizer.family == theirs.pre_tokenizer.family:
        return
    evidence = own.evidence
    if not evidence.name:
        return
    costs = {family.family: family.cost for family in evidence.found}
    mine, other = (costs.get(each.pre_tokenizer.family, 99.0) for each in (ours, theirs))
    if mine > other + _COSTS_MORE:
        yield 1, f"its tokens fit {theirs.pre} better than {ours.pre}"


_OF_MODELS = ("lowercase", "strip_accents")  # only in models that heed them
_NAMES = {key: name for name, keys, _ in SPECIAL_IDS for key in keys}


def _types(ours: Vocabulary, theirs: Vocabulary) -> Iterator[tuple[int, tuple[int, int]]]:
    """The tokens whose attributes differ, with both."""
    for token in tokens_that_differ(ours.attributes, theirs.attributes):
        if ours.tokens[token] == theirs.tokens[token]:
            yield token, (ours.attributes[token], theirs.attributes[token])


def change_to(one: Trial, other: Trial) -> Change:
    """Return what would have to change in one file for its tokenizer to be that of the other, as far as keys can say.

    Types change only of markers, and of ordinary words that become plain.
    """
    own, others = one.before, other.before
    if own.tokenizer is None or others.tokenizer is None:
        return Change()
    if own.model != others.model:  # what else differs depends on it
        model = Change({_K.MODEL: others.model})
        read = one.changed(model)
        return model | all_of(_differences(read, others, one)) if read.tokenizer else Change()
    return all_of(_differences(own, others, one))


def template_change(one: Trial, other: Trial) -> Change:
    """Return the change by which a file takes the chat template of the other.

    None unless the file has lost its template, or doctor warns of its own.
    """
    own, others = one.before, other.before
    findings = one.grave_before(checks_left_out(own, others))
    is_broken = any(each.id in _OF_TEMPLATE and each.where.key == _K.CHAT_TEMPLATE for each in findings)
    return other_template_of(one, other) if is_broken or _has_lost_template(own, others) else Change()


def other_template_of(one: Trial, other: Trial) -> Change:
    """Return the change by which a file takes the chat template of the other, whichever is right."""
    own, others = one.before, other.before
    if not others.template or own.template == others.template:
        return Change()
    return one.template_of(other)


def without_template(one: Trial, other: Trial) -> int | None:
    """Return 0 or 1, the file that has lost its chat template, where no key or type differs; None if neither has."""
    if change_to(one, other) or change_to(other, one):
        return None
    facts = one.before, other.before
    return next((own for own in (0, 1) if _has_lost_template(facts[own], facts[1 - own])), None)


def _has_lost_template(own: Facts, other: Facts) -> bool:
    """Check that a file without a chat template is of the model of a file that has one: by its name.

    A base model often has the vocabulary of the chat model that was made from it, and is right without a template.
    """
    name = own.text(KEY_NAME)
    return not own.template and bool(other.template) and bool(name) and name == other.text(KEY_NAME)


# Findings of doctor by which a template is broken, or that of another model.
_OF_TEMPLATE = frozenset(
    (
        "template_error",
        "template_is_json",
        "template_bom",
        "template_escaped",
        "chat_marker",
        "answer_not_begun",
        "bos_differs",
    )
)


def _differences(own: Facts, other: Facts, trial: Trial) -> Iterator[Change]:
    assert own.tokenizer is not None
    assert other.tokenizer is not None
    ours, theirs = own.tokenizer.vocabulary, other.tokenizer.vocabulary
    has_pre = ours.tokenizer_model.has_pre_tokenizer and not ours.tokenizer_model.ignores_pre
    entry = theirs.pre_tokenizer
    if has_pre and ours.pre_tokenizer._replace(name=entry.name) != entry:
        yield Change({_K.PRE: theirs.named_pre or theirs.pre})
    for field, key in _FLAGS.items():
        is_heeded = field not in _OF_MODELS or field in ours.tokenizer_model.flags
        if is_heeded and getattr(ours, field) != getattr(theirs, field):
            yield Change({key: str(getattr(theirs, field)).lower()})
    texts = _other_texts(own, other, ours, theirs)
    yield Change(texts=texts)
    yield from _other_ids(own, other, texts)
    kinds = {int(kind): kind.name for kind in TokenType}
    for token, _ in _types(ours, theirs):
        mine, kind = own.type_of(token), other.type_of(token)
        if kind in kinds and kind != mine and trial.markers and trial.markers.may_become(token, kinds[kind]):
            yield Change(types={token: kinds[kind]})


def _other_ids(own: Facts, other: Facts, texts: dict[str, str]) -> Iterator[Change]:
    """The special ids of the other file, where they are of the same tokens; `texts` are other texts of markers."""
    assert own.tokenizer is not None
    assert other.tokenizer is not None
    ours, theirs = own.tokenizer.vocabulary, other.tokenizer.vocabulary
    size = len(ours.tokens)
    out_of_range = dict(ids_out_of_range(own.file, size))
    for name, keys, _ in SPECIAL_IDS:
        mine, others = ours.special_ids[name], theirs.special_ids[name]
        yield Change({key: None for key in keys if key in out_of_range and mine == others})
        follows = texts and not any(key in each.file for key in keys for each in (own, other))
        if mine == others or others is None or others >= size or follows:
            continue
        written = ours.tokens[others]
        if texts.get(written, written) == theirs.tokens[others]:
            yield Change({keys[0]: str(others)})


def _other_texts(own: Facts, other: Facts, ours: Vocabulary, theirs: Vocabulary) -> dict[str, str]:
    """Return the markers that have another text in the other file, by their text.

    Nothing if any of the differing tokens is not a marker: it then is another vocabulary.
    """
    if ours.tokens == theirs.tokens:
        return {}
    differing = ((a, b) for a, b in zip(ours.tokens, theirs.tokens) if a != b)
    found = {a: b for a, b in differing if a not in theirs.token_to_id and b not in ours.token_to_id}
    is_marker = all(BRACKETED.fullmatch(text) and "=" not in text for pair in found.items() for text in pair)
    is_made = not (own.merged.isdisjoint(found) and other.merged.isdisjoint(found.values()))
    return found if is_marker and not is_made else {}
