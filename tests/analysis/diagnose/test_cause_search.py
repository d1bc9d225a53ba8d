"""The smallest sets of changes after which a model gives the expected ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from small_models import K, small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose.cause import CAUSES, Cause
from ggufbpe.analysis.diagnose.cause_search import (
    Answer,
    Search,
    expected_of,
    named_pre,
    order,
    pre_names_of,
)
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds
from ggufbpe.models.pretokenizers.families import evidence
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

MERGES = ("1 2", "12 3", "a b", "Ġ w")
TOKENIZER = small_tokenizer(merges=MERGES, named_add_bos=False)
TEXT = "Größe 1234567 ab wab<|im_end|>\r\nend\n".encode()


def with_pre(name: str) -> Tokenizer:
    entry = PRE_TOKENIZERS[name]
    return Tokenizer(TOKENIZER.vocabulary._replace(pre=name, pre_tokenizer=entry, add_bos=entry.add_bos))


def nfd(text: bytes) -> bytes:
    return unicodedata.normalize("NFD", text.decode()).encode()


MADE: dict[str, tuple[Callable[[], list[int]], list[list[str]]]] = {
    "line ends": (lambda: TOKENIZER.encode(TEXT.replace(b"\r\n", b"\n")), [["newlines"]]),
    "EOS": (lambda: [*TOKENIZER.encode(TEXT), TOKENIZER.eos_id or 0], [["eos"]]),
    "cut off": (lambda: TOKENIZER.encode(TEXT)[:12], [["truncated"]]),
    "markers as text": (
        lambda: TOKENIZER.encode(TEXT, parse_special=False),
        [["parse_special"], ["special_token_types"]],
    ),
    "BOS and a normal form": (
        lambda: [TOKENIZER.bos_id or 0, *TOKENIZER.encode(nfd(TEXT))],
        [["bos", "normalization"]],
    ),
    "shifted": (lambda: [token + 3 for token in TOKENIZER.encode(TEXT)], [["vocabulary"]]),
    "random": (lambda: [5, 9, 200, 13, 77, 5, 1], []),
}


@pytest.mark.parametrize("case", MADE)
def test_whole_explanations(case: str) -> None:
    make, expected = MADE[case]
    ids = make()
    found = Search(TOKENIZER, TEXT, ids, True, True).whole()
    assert [[cause.id for cause in answer.causes] for answer in found] == expected
    for answer in found:
        assert answer.variant is not None
        assert answer.variant.ids() == ids


@pytest.mark.parametrize("adds_eos", [False, True])
def test_padding_is_no_part_of_what_is_kept(adds_eos: bool) -> None:
    tok = Tokenizer(TOKENIZER.vocabulary._replace(add_bos=True, add_eos=adds_eos))
    bos, *core = tok.encode(TEXT)[:12]
    eos, whole = tok.eos_id or 0, len(tok.encode(TEXT))

    def kept(ids: list[int]) -> list[tuple[object, object]]:
        causes = [cause for item in Search(tok, TEXT, ids, True, True).whole() for cause in item.causes]
        return [(cause.detail["kept"], cause.detail["of"]) for cause in causes if cause.id == "truncated"]

    assert kept([bos, *core]) == [(12, whole)]
    assert kept([bos, *core, *[eos] * 3]) == [(12 + adds_eos, whole)]
    assert kept([eos, eos, bos, *core]) == [(12, whole)]
    assert kept([eos, eos, *core]) == [(11, whole)]


def test_another_pre_tokenizer() -> None:
    """GPT-2's joins "1234567" in other places than Llama 3's, which cuts numbers after three digits."""
    text = b"1234567 1212"
    ids = with_pre("llama-bpe").encode(text, add_special=False)
    assert ids != TOKENIZER.encode(text)
    [answer, *others] = Search(TOKENIZER, text, ids, True, True).whole()
    assert "llama-bpe" in [name for each in (answer, *others) for name in pre_names_of(each)]
    assert all(answer.change.keys.keys() >= {K.PRE} for answer in (answer, *others))


def test_no_more_changes_are_tried_than_asked_for() -> None:
    ids = MADE["BOS and a normal form"][0]()
    [answer] = Search(TOKENIZER, TEXT, ids, True, True).whole(most_changes=1)
    assert len(answer.causes) == 2  # BOS comes on top
    assert Search(TOKENIZER, TEXT, ids, True, True).whole(most_changes=0) == []


def test_answers_are_ordered_by_their_causes() -> None:
    def answer(*ids: str) -> Answer:
        return Answer(tuple(Cause(each, {"what": ""}) for each in ids), 1.0)

    assert order(answer("vocabulary", "bos")) == [CAUSES.index("bos"), CAUSES.index("vocabulary")]
    assert order(answer("bos")) < order(answer("newlines")) < order(answer("pre_type"))
    special, text = (
        Answer((Cause("special_token_types", {"tokens": [{"token": token}]}),), 1.0)
        for token in ("<|x|>", "x")
    )
    assert order(special) < order(answer("scores")) < order(text)


def test_what_a_changed_file_is_to_give() -> None:
    ids = [TOKENIZER.bos_id or 0, *TOKENIZER.encode(TEXT.lower())]
    [answer] = [
        each
        for each in Search(TOKENIZER, TEXT, ids, True, True).whole()
        if [cause.id for cause in each.causes] == ["bos", "normalization"]
    ]
    assert answer.change.keys == {K.ADD_BOS: "true"}
    expected = expected_of(answer, TOKENIZER.vocabulary, True)
    assert expected is not None
    compared = TextWithIds(TEXT, ids)
    changed = Tokenizer(TOKENIZER.vocabulary._replace(add_bos=True))
    assert expected(changed, compared) == ids
    assert expected(TOKENIZER, compared) == ids[1:]  # the file's BOS counts, not the answer's
    assert expected_of(answer._replace(variant=None), TOKENIZER.vocabulary, True) is None


@pytest.mark.parametrize(
    ("name", "adds_bos", "keys"),
    [
        ("llama-bpe", True, {K.PRE: "llama-bpe"}),
        ("llama-bpe", False, {K.PRE: "llama-bpe", K.ADD_BOS: "false"}),  # which the name would add
        ("llama-bpe", None, {K.PRE: "llama-bpe"}),
        ("qwen2", False, {K.PRE: "qwen2"}),
        ("granite-embed-multi-311m", False, {}),  # under which no key switches BOS off
    ],
)
def test_another_name_must_not_change_whether_bos_is_added(
    name: str, adds_bos: bool | None, keys: dict[str, str]
) -> None:
    vocabulary = TOKENIZER.vocabulary._replace(named_add_bos=None)
    told = evidence(vocabulary.tokens, vocabulary.merges, vocabulary.pre, "", "")
    cause = named_pre(vocabulary, [name], [], told, adds_bos, False)
    assert (cause.id, dict(cause.change.keys)) == ("pre_type", keys)


def test_bos_that_is_another_cause_is_left_to_that_one() -> None:
    """The file adds BOS, and the ids have none."""
    vocabulary = TOKENIZER.vocabulary._replace(named_add_bos=None, add_bos=True)
    told = evidence(vocabulary.tokens, vocabulary.merges, vocabulary.pre, "", "")
    cause = named_pre(vocabulary, ["llama-bpe"], [], told, False, True)
    assert dict(cause.change.keys) == {K.PRE: "llama-bpe"}
