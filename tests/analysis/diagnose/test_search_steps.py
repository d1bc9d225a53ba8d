"""The changes that a search over several texts tries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from real_vocabularies import cached
from small_models import SPECIAL, small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose import several
from ggufbpe.analysis.diagnose.encoding_changes import Encoding
from ggufbpe.analysis.diagnose.search_steps import Steps
from ggufbpe.analysis.diagnose.several import Several, shortest
from ggufbpe.analysis.diagnose.texts_of_ids import texts_of_lost
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds
from ggufbpe.gguf.change import Change
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.token_attribute import TokenAttribute
from ggufbpe.models.vocabulary import CONTROL, NORMAL, RSTRIP, UNUSED, USER_DEFINED

MERGES = (
    "h e",
    "l l",
    "he ll",
    "hell o",
    "1 2",
    "12 3",
    "123 4",
)  # digits as no other pre-tokenizer joins them
TOKENIZER = small_tokenizer("<|a|>", "<|b|>", merges=MERGES, named_add_bos=False)
VOCABULARY = TOKENIZER.vocabulary
EOS = TOKENIZER.eos_id or 0
BASE = Encoding(VOCABULARY, True)
TEXTS = (b"hello 1234567 world", b"<|a|>it's 12 o'clock\r\n", b"Good day<|b|> to you, don't go\n", b"ABC def")


def test_parts_of_a_text_lack_what_is_around_it() -> None:
    steps, encoding = Steps(TOKENIZER, []), BASE._replace(head=(8,), tail=(9,))
    assert steps.ids(encoding, TextWithIds(b"a", [], has_begin=False)) == [97, 9]
    assert steps.ids(encoding, TextWithIds(b"a", [], has_end=False)) == [8, 97]


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [([3, 1, 2], 3, [1, 2]), ([3, 1, 2], 100, [1, 2, 3]), ([9], 3, [9]), ([], 3, []), ([2, 2, 1], 3, [1, 2])],
)
def test_the_shortest_texts_are_tried_and_at_least_one(
    sizes: list[int], most: int, expected: list[int]
) -> None:
    compared = [TextWithIds(b"x" * size, []) for size in sizes]
    assert [len(each.text) for each in shortest(compared, most)] == expected


def without_marker() -> Tokenizer:
    kinds = list(VOCABULARY.attributes)
    a = VOCABULARY.token_to_id["<|a|>"]
    kinds[a] = 4  # normal
    special = tuple(token for token in VOCABULARY.special_token_ids if token != a)
    return Tokenizer(VOCABULARY._replace(attributes=kinds, special_token_ids=special))


def with_pre(name: str) -> Tokenizer:
    return Tokenizer(VOCABULARY._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name]))


LOST = small_tokenizer("<|a|>", "<|b|>", "<|c|>", merges=MERGES)
C = LOST.vocabulary.token_to_id["<|c|>"]

MADE: dict[str, tuple[Callable[[bytes], list[int]], list[str]]] = {
    "EOS": (lambda text: [*TOKENIZER.encode(text), EOS], ["eos"]),
    "pre-tokenizer": (with_pre("llama-bpe").encode, ["pre_type"]),
    "marker": (without_marker().encode, ["special_token_types"]),
    "lower case": (lambda text: TOKENIZER.encode(text.lower()), ["normalization"]),
    "pre-tokenizer and EOS": (lambda text: [*with_pre("qwen2").encode(text), EOS], ["eos", "pre_type"]),
    "markers as text": (lambda text: TOKENIZER.encode(text, parse_special=False), ["parse_special"]),
    "shifted": (lambda text: [token + 5 for token in TOKENIZER.encode(text)], ["vocabulary"]),
    "exchanged": (
        lambda text: [{101: 111, 111: 101}.get(token, token) for token in TOKENIZER.encode(text)],
        ["vocabulary"],
    ),
    "own": (TOKENIZER.encode, []),
}


@pytest.mark.parametrize("case", MADE)
def test_what_several_texts_show(case: str) -> None:
    make, expected = MADE[case]
    compared = [TextWithIds(text, make(text)) for text in TEXTS]
    searched = Several(TOKENIZER, compared)
    assert isinstance(searched, Steps)
    found = searched.found()
    assert sorted(cause.id for cause in found.causes) == expected
    assert (found.explains, found.explained) == (1.0, [True] * len(TEXTS))


@pytest.mark.parametrize("first", [b"a line that is longer than the others", b"hello"])
def test_bos_before_a_long_text_of_which_nothing_explains_the_rest(
    first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first of its lines begins with it."""
    monkeypatch.setattr(several, "_MOST_BYTES", 100)
    text = b"\n".join([first, *(b"%c hello %d" % (97 + number % 2, number) for number in range(40))])
    letters = [VOCABULARY.token_to_id[letter] for letter in "hello"]
    ids = [TOKENIZER.bos_id or 0]
    for token in TOKENIZER.encode(text):
        ids += letters if VOCABULARY.tokens[token] == "hello" else [token]
    found = Several(TOKENIZER, [TextWithIds(text, ids)]).found()
    assert "bos" in [cause.id for cause in found.causes]


def test_a_word_made_control_is_named_before_what_also_makes_it_text() -> None:
    """Without special tokens, no chat works: `parse_special` is hardly what differs."""
    he = VOCABULARY.token_to_id["he"]
    kinds = [CONTROL if token == he else kind for token, kind in enumerate(VOCABULARY.attributes)]
    special = (*VOCABULARY.special_token_ids, he)
    broken = Tokenizer(VOCABULARY._replace(attributes=kinds, special_token_ids=special))
    texts = (b"hello", b"so he said hello")
    found = Several(broken, [TextWithIds(text, TOKENIZER.encode(text)) for text in texts]).found()
    assert [cause.id for cause in found.causes] == ["special_token_types"]


def with_spaces(text: bytes) -> bytes:
    """As byte-level tokenizers of Hugging Face do with add_prefix_space: no second space where there is one."""
    parts = text.split(b"<|a|>")
    return b"<|a|>".join(b" " * (part[:1] not in (b"", b" ")) + part for part in parts)


AT_THE_ENDS: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "line break": (lambda text: text + b"\n", "trailing_newline", "a line break is added"),
    "CRLF": (lambda text: text + b"\r\n", "trailing_newline", "CRLF is added"),
    "stripped": (lambda text: text.rstrip(b"\r\n"), "trailing_newline", "a line break is removed"),
    "BOM": (lambda text: b"\xef\xbb\xbf" + text, "bom", "added"),
    "space": (lambda text: text if text[:1] == b" " else b" " + text, "space_prefix", "at the beginning"),
    "spaces": (with_spaces, "space_prefix", "before every plain part of the text"),
}


@pytest.mark.parametrize("case", AT_THE_ENDS)
@pytest.mark.parametrize("name", ["small", "BOM is a token"])
def test_what_is_added_to_each_text_or_taken_away(name: str, case: str) -> None:
    make, cause, change = AT_THE_ENDS[case]
    merges = (*MERGES, "ï »", "ï» ¿") if name == "BOM is a token" else MERGES
    tokenizer = small_tokenizer("<|a|>", "<|b|>", merges=merges, named_add_bos=False)
    texts = (b"it's 12", b"Good day<|a|>to you\n", b" begins with a space", b"hello hello<|a|> world\r\n")
    found = Several(tokenizer, [TextWithIds(text, tokenizer.encode(make(text))) for text in texts]).found()
    assert [(each.id, each.detail["change"]) for each in found.causes] == [(cause, change)]
    assert found.explains == 1.0


def test_tokens_that_the_file_has_lost() -> None:
    texts = (*TEXTS, b"day<|c|>night", b"<|c|>")
    compared = [TextWithIds(text, LOST.encode(text)) for text in texts]
    found = Several(TOKENIZER, compared).found()
    [cause] = found.causes
    assert (cause.detail["problem"], cause.detail["tokens"]) == ("lost", {str(C): "<|c|>"})
    assert found.explains == 1.0


@pytest.mark.parametrize("kind", [UNUSED, USER_DEFINED, NORMAL])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(("added", "expected"), [("<|b|>", "CONTROL"), ("myword", "USER_DEFINED")])
def test_tokens_in_whose_places_the_file_has_fillers(
    added: str, expected: str, kind: int, is_known: bool
) -> None:
    """As of a conversion that lacked the list of added tokens; one of them was BOS. A word is shown in answers."""

    def tokenizer(last: str, kind: int) -> Tokenizer:
        kinds = {**dict.fromkeys((*SPECIAL, "<|a|>"), CONTROL), last: kind}
        return small_tokenizer(
            *("<|a|>", last), merges=MERGES, special_ids={"bos": C - 1}, named_add_bos=True, attributes=kinds
        )

    filler = f"[PAD{C - 1}]"
    whole, file = tokenizer(added, TokenAttribute[expected]), tokenizer(filler, kind)
    texts = [text.replace(b"<|b|>", added.encode()) for text in (*TEXTS, b"<|b|>", b"<|b|><|a|>Hi")]
    compared = [TextWithIds(text, whole.encode(text)) for text in texts]
    found = Several(file, compared, like=whole.vocabulary if is_known else None).found()
    [cause] = found.causes
    assert cause.detail["what"] == f"the file has a filler in place of '{added}' (id {C - 1}): '{filler}'"
    assert cause.change == Change(types={C - 1: expected}, texts={filler: added})
    assert found.explains == 1.0


def test_audio_codes_in_whose_places_the_file_has_fillers_are_shown_in_answers() -> None:
    """As doctor has it: programs read them there."""
    codes = [f"<|{number}|>" for number in range(65)]
    theirs = small_tokenizer(*codes)
    file = small_tokenizer(*("[PAD7]" if code == "<|7|>" else code for code in codes))
    text = b"hello<|8|><|7|><|9|>"
    [cause] = Several(file, [TextWithIds(text, theirs.encode(text))]).found().causes
    assert cause.change.texts == {"[PAD7]": "<|7|>"}
    assert list(cause.change.types.values()) == ["USER_DEFINED"]


@pytest.mark.parametrize(
    ("text", "is_token"),
    [
        (b"myword", True),
        (b"<my marker>", True),
        (b"hello world foo", False),
        (b" foo", False),
        (b"a\xff", False),
    ],
)
def test_a_filler_is_not_taken_for_what_several_tokens_of_another_vocabulary_say(
    text: bytes, is_token: bool
) -> None:
    file = small_tokenizer("<|a|>", "[PAD9]")
    marker, filler = (file.vocabulary.token_to_id[each] for each in ("<|a|>", "[PAD9]"))
    found = texts_of_lost(file, [TextWithIds(b"<|a|>" + text + b"<|a|>", [marker, filler, marker])])
    assert found == ({filler: text.decode()} if is_token else {})


def test_lost_markers_of_phi_3_take_the_spaces_behind_them() -> None:
    """No file says so; llama.cpp gives "</s>" the attribute with them, which remains."""
    own, whole = (small_tokenizer("</s>", *markers).vocabulary for markers in ((), ("<|end|>", "<|user|>")))
    own, whole = (
        each._replace(attributes=[kind | RSTRIP * (kind == CONTROL) for kind in each.attributes])
        for each in (own, whole)
    )
    theirs = Tokenizer(whole)
    texts = (b"a<|end|>  b", b"<|user|> c d<|end|>\n<|user|>e")
    compared = [TextWithIds(text, theirs.encode(text)) for text in texts]
    found = Several(Tokenizer(own), compared).found()
    assert (found.causes[0].detail["problem"], found.explains) == ("lost", 1.0)


def test_exchanged_tokens_whose_ids_are_shifted_out_of_the_vocabulary() -> None:
    a, b = (VOCABULARY.token_to_id[text] for text in ("<|a|>", "<|b|>"))
    texts = (b"hello world, hello <|a|> world<|b|>", b"world hello<|b|>hello<|a|> world", *TEXTS)
    compared = [
        TextWithIds(text, [{a: b, b: a}.get(token, token) + 5 for token in TOKENIZER.encode(text)])
        for text in texts
    ]
    found = Several(TOKENIZER, compared).found()
    assert [cause.detail["what"] for cause in found.causes] == ["all ids are shifted by +5"]
    assert 0.8 < found.explains < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen2", "qwen35"])
def test_of_pre_tokenizers_that_the_tokens_do_not_tell_apart_the_texts_choose(name: str) -> None:
    """The two differ at marks, which Thai has."""
    vocabulary = load_vocabulary(cached("qwen35"))
    theirs, ours = (
        Tokenizer(vocabulary._replace(pre=pre, pre_tokenizer=PRE_TOKENIZERS[pre]))
        for pre in (name, "default")
    )
    texts = [b"It's 1234567 o'clock", b"I'll do it, I'd say", "วันนี้อากาศดีมาก น้ำใจของคนไทย ที่นี่".encode()]
    found = Several(ours, [TextWithIds(text, theirs.encode(text)) for text in texts]).found()
    assert [(cause.id, cause.detail["pre"]) for cause in found.causes] == [("pre_type", name)]
    assert found.explains == 1.0


def test_exchanged_tokens_of_two_files_beside_what_hides_them() -> None:
    tokens = list(VOCABULARY.tokens)
    tokens[101], tokens[111] = tokens[111], tokens[101]
    ids = {text: token for token, text in enumerate(tokens)}
    other = with_pre("llama-bpe").vocabulary._replace(tokens=tokens, token_to_id=ids)
    compared = [TextWithIds(text, Tokenizer(other).encode(text)) for text in TEXTS]
    found = Several(TOKENIZER, compared, like=other).found()
    assert [cause.id for cause in found.causes] == ["pre_type", "vocabulary"]
    assert found.causes[1].detail["pairs"] == [[101, 111]]
    assert found.explains == 1.0
