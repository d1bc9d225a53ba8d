"""What explains ids in part, if nothing explains all of them."""

from __future__ import annotations

import random
from difflib import SequenceMatcher

import pytest
from conftest import ROOT
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose.nearest import Nearest

TOKENIZER = small_tokenizer()
TEXT = b"hello world, it is a fine day to say hello"


def nearest(ids: list[int], text: bytes = TEXT) -> Nearest:
    return Nearest(TOKENIZER, text, ids, True, True)


def test_another_text() -> None:
    ids = TOKENIZER.encode(TEXT.replace(b"fine", b"bad"))
    [answer] = nearest(ids).other_text()
    [cause] = answer.causes
    assert (cause.id, answer.explains, cause.detail["how"]) == ("text_differs", 1.0, "other text")
    assert cause.detail["offset"] == TEXT.index(b"fine")
    assert answer.variant is not None
    assert answer.variant.ids() == ids


@pytest.mark.parametrize(
    ("ids", "is_unrelated"),
    [
        (TOKENIZER.encode(TEXT), False),
        (TOKENIZER.encode(TEXT.replace(b"fine", b"bad")), False),
        (TOKENIZER.encode(b"0123456789" * 4), True),
    ],
)
def test_unrelated_texts(ids: list[int], is_unrelated: bool) -> None:
    assert nearest(ids).says_something_else() is is_unrelated


def first_cause(ids: list[int], text: bytes = TEXT) -> tuple[str, object]:
    cause = nearest(ids, text).partial()[0].causes[0]
    return cause.id, cause.detail.get("problem")


def test_ids_that_the_vocabulary_lacks() -> None:
    assert first_cause([1, 2, 99_999]) == ("vocabulary", "out of range")


def test_ids_of_an_unrelated_text_that_repeat_as_ours_do() -> None:
    """As the ids of another vocabulary would."""
    ours = TOKENIZER.encode(TEXT)
    chance = random.Random(1)
    numbers = chance.sample(range(48, 58), 10) + chance.sample(range(128, 200), 60)
    renamed = dict(zip(dict.fromkeys(ours), numbers))
    assert first_cause([renamed[token] for token in ours]) == ("vocabulary", "other model")


def test_words_that_were_merged_otherwise() -> None:
    other = small_tokenizer().vocabulary
    ids = []
    for token in TOKENIZER.encode(TEXT):  # "hello" in letters; other words as they are
        ids += [other.token_to_id[c] for c in "hello"] if other.tokens[token] == "hello" else [token]
    [*_, answer] = nearest(ids).partial()
    [cause] = answer.causes
    assert (cause.id, cause.detail["count"], cause.detail["consistent"]) == ("merges", 2, True)
    assert "2 of them are merged differently" in str(cause.detail["what"])
    [of_one] = nearest(ids[:5] + TOKENIZER.encode(TEXT)[1:]).partial()[-1].causes
    assert "1 of them is merged differently" in str(of_one.detail["what"])
    assert cause.detail["words"] == [
        {"word": "hello", "ours": ["hello"], "theirs": list("hello")},
        {"word": " hello", "ours": [" ", "hello"], "theirs": [" ", *"hello"]},
    ]
    assert 0 < answer.explains < 1


def test_a_tool_that_splits_the_lines_of_gemma_4() -> None:
    """transformers with `fix_mistral_regex` (llama.cpp issue 23252): the merges are not at fault."""
    model = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "gemma4.gguf")
    ids = [token for text in ("a", " ", "he") for token in model.encode(text, add_special=False)]
    [*_, answer] = Nearest(model, b"a he", ids, False, True).partial()
    [cause] = answer.causes
    assert (cause.id, "the other tool splits lines into words" in cause.fix) == ("merges", True)


def test_bytes_that_are_not_utf_8_and_were_kept() -> None:
    text = TEXT + b"\xff" + TEXT  # which llama.cpp reads as U+FFFD
    own = TOKENIZER.encode(TEXT)
    assert first_cause([*own, 255, *own], text) == ("invalid_utf8", None)


def test_what_nothing_explains() -> None:
    ours = TOKENIZER.encode(TEXT)
    ids = [*ours[:4], 101, 102, 103, *ours[9:]]
    found = nearest(ids).partial()
    [unknown] = found[-1].causes
    assert (unknown.id, unknown.detail["index"]) == ("unknown", 4)
    assert found[-1].explains == pytest.approx((len(ids) - 3) / len(ours))


def test_few_ids_are_compared_for_other_tokens_of_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token in all places, of which the ids have every other one, takes time by the cube of what is compared."""
    lengths = []

    class Counted(SequenceMatcher[int]):
        def __init__(self, junk: None, a: list[int], b: list[int], autojunk: bool) -> None:
            lengths.extend((len(a), len(b)))
            super().__init__(junk, a, b, autojunk)

    text = b" hello" * 2000
    ids = [token if at % 2 else at % 250 for at, token in enumerate(TOKENIZER.encode(text))]
    found = nearest(ids, text)
    monkeypatch.setattr("ggufbpe.analysis.diagnose.nearest.SequenceMatcher", Counted)
    assert found._prefers_others() is False
    assert lengths == [500, 500]
