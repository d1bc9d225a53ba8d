"""Diagnose: each cause built on real vocabularies, alone and in twos, and the right answer expected first."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mending
import pytest
from conftest import GPT2, PLAMO, ROOT, UNIGRAM, UNSPLIT, missing
from hypothesis import given
from hypothesis import strategies as st
from reference import NotPreparedError, vocabulary, write_metadata
from small_models import small_keys
from synthetic import bounded, broken_bytes, byte_tokens, gpt2_vocabulary, make_vocabulary, texts

from ggufbpe import GGUFError, Tokenizer, cli, fix
from ggufbpe.analysis.diagnose import id_diagnosis as diagnosing
from ggufbpe.analysis.diagnose.agreement import agreeing_share
from ggufbpe.analysis.diagnose.cause import CAUSES
from ggufbpe.analysis.diagnose.causes import ALWAYS_ADDS_BOS
from ggufbpe.analysis.diagnose.encoding_changes import Encoding
from ggufbpe.analysis.diagnose.id_diagnosis import Answer, diagnose, search
from ggufbpe.analysis.diagnose.model_changes import model_changes
from ggufbpe.analysis.doctor.proposal import Proposal
from ggufbpe.gguf.constants import TokenizerKey, TokenType
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.special_ids import MADE_CONTROL
from ggufbpe.models.vocabulary import CONTROL, NORMAL, USER_DEFINED, Vocabulary
from ggufbpe.tokenizer.reference_engine import ReferenceEngine

pytestmark = pytest.mark.tries_fixes

Ids = list[int]
ADD_BOS, ADD_EOS = "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"
BOS_ID, PRE = "tokenizer.ggml.bos_token_id", "tokenizer.ggml.pre"
MODEL = "tokenizer.ggml.model"

# llama.cpp's real vocabularies that are byte pair encoding.
BPE_VOCABULARIES = (
    *("gpt-2", "aquila", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-neox"),
    *("llama-bpe", "mpt", "qwen2", "qwen35", "refact", "starcoder"),
)
OTHER_VOCABULARIES = ("llama-spm", "phi-3", "baichuan", "bert-bge", "nomic-bert-moe")

# Everything that a change can act on: line ends, spaces, escapes, accents, case, digits, special tokens.
TEXT = (
    "Größe naïve \ufb01ne ²: it's 1234567 words, DON'T you?\r\nPath C:\\new\\table <b>(x)</b>;\n\n"
    "\tdef f(a_b):  # Überschrift 日本語, かな\n<|endoftext|>The end of the story, 100%.\n"
).encode()


# ---- vocabularies ---------------------------------------------------------------------------------------


@cache
def model(name: str) -> Tokenizer:
    """A real vocabulary: the package's, or one of llama.cpp's."""
    try:
        path = {"gpt-2": GPT2, "plamo": PLAMO}.get(name) or vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    return Tokenizer(load_vocabulary(path))


@cache
def unsplit() -> Vocabulary:
    """A vocabulary whose ids show where words end."""
    return load_vocabulary(UNSPLIT)


def with_pre(tokenizer: Tokenizer, name: str) -> Tokenizer:
    return changed(tokenizer, pre=name, pre_tokenizer=PRE_TOKENIZERS[name])


def changed(tokenizer: Tokenizer, **fields: Any) -> Tokenizer:
    return Tokenizer(tokenizer.vocabulary._replace(**fields))


def flipped_ignore_merges(tokenizer: Tokenizer) -> Tokenizer:
    entry = tokenizer.vocabulary.pre_tokenizer
    return changed(tokenizer, pre_tokenizer=entry._replace(ignore_merges=not entry.ignore_merges))


def with_attribute(tokenizer: Tokenizer, tokens: dict[int, int]) -> Tokenizer:
    attributes = [tokens.get(token, old) for token, old in enumerate(tokenizer.vocabulary.attributes)]
    special = tuple(token for token, kind in enumerate(attributes) if kind & (CONTROL | USER_DEFINED))
    return changed(tokenizer, attributes=attributes, special_token_ids=special)


def control_text(tokenizer: Tokenizer) -> bytes:
    """The text of a control token."""
    vocabulary = tokenizer.vocabulary
    return next(
        t for t, a in zip(vocabulary.tokens, vocabulary.attributes) if a & CONTROL and len(t) > 3
    ).encode()


def some_text(tokenizer: Tokenizer) -> bytes:
    """`TEXT` with a special token of this vocabulary."""
    return TEXT.replace(b"<|endoftext|>", control_text(tokenizer))


def first_ids(tokenizer: Tokenizer, text: bytes, ids: Ids, **options: Any) -> list[str]:
    """The causes of the best explanation, which must explain everything."""
    explanations = diagnose(tokenizer, text, ids, **options).explanations
    assert explanations[0].explains == 1.0, explanations
    return [cause.id for cause in explanations[0].causes]


# ---- each cause alone -----------------------------------------------------------------------------------

Made = Callable[[Tokenizer, bytes], Ids]


def encoding(change: Callable[[bytes], bytes], **flags: bool) -> Made:
    """The ids of the changed text."""
    return lambda tok, text: tok.encode(change(text), **flags)


def as_str(change: Callable[[str], str]) -> Made:
    return encoding(lambda text: change(text.decode()).encode())


def without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def other_pre(tokenizer: Tokenizer) -> str:
    return "default" if tokenizer.vocabulary.pre_tokenizer.byte_encode else "whitespace"


BROKEN = "naïve ".encode() + b"\xe2\x82 caf\xe9, \xf0\x9f\x99 end"  # a cut-off character, Latin-1, one more

# cause, text (None: `some_text`), how the ids are made, what its detail must say
SINGLE: list[tuple[str, bytes | None, Made, dict[str, object]]] = [
    ("eos", None, lambda tok, text: [*tok.encode(text), tok.eos_id or 0], {"problem": "added"}),
    ("eos", None, lambda tok, text: [*tok.encode(text), *[tok.eos_id or 0] * 2], {"problem": "twice"}),
    ("parse_special", None, encoding(bytes, parse_special=False), {"theirs": False}),
    ("space_prefix", None, encoding(lambda text: b" " + text), {"change": "at the beginning"}),
    ("normalization", None, as_str(lambda text: unicodedata.normalize("NFD", text)), {"change": "NFD"}),
    ("normalization", None, as_str(lambda text: unicodedata.normalize("NFKC", text)), {"change": "NFKC"}),
    ("normalization", None, as_str(lambda text: unicodedata.normalize("NFKD", text)), {"change": "NFKD"}),
    ("normalization", "Größe e\u0301".encode(), as_str(lambda text: unicodedata.normalize("NFC", text)), {}),
    ("normalization", None, as_str(str.lower), {"change": "lower case"}),
    ("normalization", "Größe café".encode(), as_str(without_accents), {"change": "accents stripped"}),
    ("newlines", None, encoding(lambda text: text.replace(b"\r\n", b"\n")), {"change": "CRLF to LF"}),
    (
        "newlines",
        b"a\nb\n\nc\n",
        encoding(lambda text: text.replace(b"\n", b"\r\n")),
        {"change": "LF to CRLF"},
    ),
    ("newlines", b"a\nb\n\nc\n", encoding(lambda text: text.replace(b"\n", b"\r")), {"change": "LF to CR"}),
    ("newlines", b"a\rb\r\rc", encoding(lambda text: text.replace(b"\r", b"\n")), {}),
    ("trailing_newline", None, encoding(lambda text: text[:-1]), {"change": "a line break is removed"}),
    ("trailing_newline", None, encoding(lambda text: text + b"\n"), {"change": "a line break is added"}),
    ("trailing_newline", b"a b\n\n\n", encoding(bytes.rstrip), {"change": "all line breaks are removed"}),
    ("trailing_newline", b"Answer: ", encoding(bytes.rstrip), {"change": "all white space is removed"}),
    ("leading_space", b" a word", encoding(bytes.lstrip), {"change": "a space is removed"}),
    ("leading_space", b"  \n a word", encoding(bytes.lstrip), {"change": "all white space is removed"}),
    ("leading_space", b" a word", encoding(lambda text: b" " + text), {"change": "a space is added"}),
    ("bom", None, encoding(lambda text: b"\xef\xbb\xbf" + text), {"change": "added"}),
    ("bom", b"\xef\xbb\xbfHello", encoding(lambda text: text[3:]), {"change": "removed"}),
    ("escapes", rb"one\ntwo\tthree \x41", encoding(lambda _: b"one\ntwo\tthree A"), {"change": "processed"}),
    ("escapes", b"one\ntwo", encoding(lambda _: rb"one\ntwo"), {"change": "\\n typed"}),
    ("escapes", b"one\ntwo\tthree", encoding(lambda _: rb"one\ntwo\tthree"), {"change": "typed"}),
    ("invalid_utf8", BROKEN, encoding(lambda text: text.decode("utf-8", "replace").encode()), {}),
    (
        "invalid_utf8",
        BROKEN,
        encoding(lambda text: text.decode("utf-8", "ignore").encode()),
        {"change": "dropped"},
    ),
    ("invalid_utf8", BROKEN, encoding(lambda text: text.decode("latin-1").encode()), {"change": "latin-1"}),
    ("invalid_utf8", b"ab\xffc", encoding(lambda text: text.decode("cp1252").encode()), {}),
    ("text_differs", None, encoding(lambda text: text.replace(b"story", b"tale")), {"how": "other text"}),
    (
        "text_differs",
        None,
        encoding(lambda text: b"System: be brief.\n" + text),
        {"how": "more text at the beginning"},
    ),
    (
        "text_differs",
        None,
        encoding(lambda text: text.replace(b"Path ", b"")),
        {"how": "missing text", "offset": TEXT.index(b"Path")},
    ),
    (
        "vocabulary",
        None,
        lambda tok, text: [token + 5 for token in tok.encode(text)],
        {"problem": "shifted", "by": 5},
    ),
    ("truncated", None, lambda tok, text: tok.encode(text)[:32], {"kept": 32, "cut": "end"}),
    ("truncated", None, lambda tok, text: tok.encode(text)[-9:], {"kept": 9, "cut": "start"}),
    ("pre_type", None, lambda tok, text: with_pre(tok, other_pre(tok)).encode(text), {}),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2", "gemma-4", "deepseek-llm"])
@pytest.mark.parametrize(("cause", "text", "make", "detail"), SINGLE)
def test_a_cause_alone_is_named_first(
    name: str, cause: str, text: bytes | None, make: Made, detail: dict[str, object]
) -> None:
    tokenizer = model(name)
    text = some_text(tokenizer) if text is None else text
    ids = make(tokenizer, text)
    found = diagnose(tokenizer, text, ids)
    assert not found.match
    best = found.explanations[0]
    assert ([item.id for item in best.causes], best.explains) == ([cause], 1.0)
    assert detail.items() <= best.causes[0].detail.items()
    assert best.causes[0].fix or best.causes[0].change
    assert best.causes[0].detail["what"]


def test_no_command_where_another_text_is_a_part_of_the_explanation() -> None:
    """Wrong ids of a short text are those of some text under some flag: `add_space_prefix=false` would do harm here."""
    tokenizer = model("llama-spm")
    bos, *ids = tokenizer.encode("Hello")
    found = diagnose(tokenizer, "Hello", [bos, *(token + 1 for token in ids)]).explanations
    assert [cause.id for cause in found[0].causes] == ["space_prefix", "text_differs"]
    assert not any(each.proposal and each.proposal.command for each in found)


def test_no_command_sets_what_the_file_says_already() -> None:
    """The ids behind BOS are one too low, which makes the given BOS look like SEP, too."""
    tokenizer = model("bert-bge")
    bos, *ids = tokenizer.encode("Hello world, how are you?")
    found = diagnose(
        tokenizer, "Hello world, how are you?", [bos, *(token - 1 for token in ids)]
    ).explanations
    assert found[0].causes[-1].id == "vocabulary"
    assert not any(each.proposal and each.proposal.command for each in found)


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
@pytest.mark.parametrize("text", ["a", "Hello world"])
def test_no_ids_are_no_beginning_of_the_ids(name: str, text: str) -> None:
    tokenizer = model(name)
    found = diagnose(tokenizer, text, []).explanations
    assert [[cause.id for cause in item.causes] for item in found] == [["unknown"]]
    (cause,) = found[0].causes
    count = len(tokenizer.encode(text))
    assert cause.detail["what"] == f"no ids were given, and the model gives {count}"
    assert (cause.detail["ours"], cause.detail["theirs"]) == (tokenizer.encode(text)[:5], [])
    assert found[0].explains == 0


def test_no_ids_of_an_empty_text_lack_bos() -> None:
    found = diagnose(model("llama-spm"), "", []).explanations
    assert [[cause.id for cause in item.causes] for item in found] == [["bos"]]


def test_a_single_id_that_is_cut_off() -> None:
    (found,) = diagnose(GPT2, "Hello world", [15496]).explanations
    assert "that cut off 1 id (such" in found.causes[0].fix


NFC, CHARSMAP = "tokenizer.ggml.normalizer.nfc", "tokenizer.ggml.precompiled_charsmap"
# The model's file, its overrides, a text, and a part of what is said of it.
OF_OLDER_BUILDS = {
    "overlong": (GPT2, {}, b"a\xc1\x81b", "overlong"),
    "nfc": (UNIGRAM, {NFC: True, CHARSMAP: None}, "cafe\u0301 n\u0303".encode(), "compose"),
    "eot": (
        ROOT / "fixtures" / "vocabs" / "eot-that-is-plain.gguf",
        {},
        b"hello<|eot|> world",
        "<|eot|> ends",
    ),
}


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("case", OF_OLDER_BUILDS)
def test_ids_of_another_build_of_llama_cpp(case: str) -> None:
    path, overrides, text, said = OF_OLDER_BUILDS[case]
    newer = Tokenizer.from_gguf(path, overrides=overrides)
    older = newer.with_llama_cpp("b11549")
    for ours, theirs in ((newer, older), (older, newer)):
        ids = theirs.encode(text)
        assert ids != ours.encode(text)
        found = diagnose(ours, text, ids)
        [cause] = found.explanations[0].causes
        assert (cause.id, cause.detail["build"], found.explanations[0].explains) == (
            "build",
            theirs.llama_cpp,
            1.0,
        )
        assert said in str(cause.detail["what"])
        assert str(cause.detail["what"]).count("since b") == 1
        assert f"llama_cpp={theirs.llama_cpp}" in cause.fix


@pytest.mark.slow
def test_bos_missing_twice_other_and_not_asked_for() -> None:
    tokenizer = model("llama-bpe")
    ids = tokenizer.encode(TEXT)
    bos = ids[0]
    assert bos == tokenizer.bos_id
    for theirs, problem in (
        (ids[1:], "missing"),
        ([bos, *ids], "twice"),
        ([tokenizer.eos_id, *ids[1:]], "other"),
    ):
        found = diagnose(tokenizer, TEXT, theirs).explanations[0]
        assert [(cause.id, cause.detail["problem"]) for cause in found.causes] == [("bos", problem)]
        assert found.explains == 1.0
    assert diagnose(tokenizer, TEXT, ids[1:], add_special=False).match
    assert first_ids(tokenizer, TEXT, ids, add_special=False) == ["bos"]


@pytest.mark.slow
def test_bos_that_the_other_pre_tokenizer_adds_by_its_name_is_no_second_cause(tmp_path: Path) -> None:
    """A file without `pre` and without `add_bos_token`: both come with the name."""
    from reference import with_pre as write_with_pre

    target = tmp_path / "default.gguf"
    model("llama-bpe")
    write_with_pre(vocabulary("llama-bpe"), "default", target)
    default = Tokenizer(load_vocabulary(target))
    target.unlink()  # all that is asked was read when it was opened
    assert (default.pre, default.add_bos) == ("default", False)
    found = diagnose(default, TEXT, model("llama-bpe").encode(TEXT)).explanations[0]
    assert [cause.id for cause in found.causes] == ["pre_type"]
    assert found.causes[0].detail["pre"] == "llama-bpe"
    assert found.change.keys == {"tokenizer.ggml.pre": "llama-bpe"}
    # without BOS, the fix must keep the name from adding one
    plain = diagnose(default, TEXT, model("llama-bpe").encode(TEXT, add_special=False)).explanations[0]
    assert [cause.id for cause in plain.causes] == ["pre_type"]
    assert plain.change.keys == {"tokenizer.ggml.pre": "llama-bpe", ADD_BOS: "false"}


# Texts that families split differently, found among those of tests/makers/fixture_texts.py.
TELLING = (
    "Don't DON'T it's 'tis I'M'x 1234567 12 x9 ½٣²Ⅳ12 (word) .com/bin/\n//\n\n ; ;\n\n\n  \n   \n\n \t\tif\r\n\r\n"
    "   end getElement HTMLParser éÉcole naïve\u0301s a\u0301b of the in 日本語かなカナ、。中文字，我 가나다ㅏ "
    "Ελληνικά РусскийЯзык ʰª «quoted» €5 $x `code` |a| <x> +=^~ 🙂🙂 <sentinel:12> IMGIMGABZ हिन्दी ไทย ကမ "
    "x\u3000y\xa0z\u2003w ()()()\n'S a'LLb 's's  12 a/\n/b \u0301. x;\r\n\r\n\ty they's 9'sx .'s. aB 1\n   "
).encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_every_name_is_found_as_the_pre_tokenizer(name: str) -> None:
    """All names that are listed give these ids, and all names that do are listed."""
    base = Tokenizer(unsplit()._replace(pre="mpt", pre_tokenizer=PRE_TOKENIZERS["mpt"]))
    if PRE_TOKENIZERS[name].family == "gpt-2":
        base = with_pre(base, "default")
    ids = names_and_ids()[name]
    found = diagnose(base, TELLING, ids).explanations
    assert {tuple(cause.id for cause in item.causes) for item in found} == {("pre_type",)}
    assert all(item.explains == 1.0 for item in found)
    listed = [each for item in found for each in item.causes[0].detail["names"]]  # type: ignore[attr-defined]
    assert sorted(listed) == sorted(other for other, given in names_and_ids().items() if given == ids)
    for item in found:
        detail = item.causes[0].detail
        assert {PRE_TOKENIZERS[other].family for other in detail["names"]} == {detail["family"]}  # type: ignore[attr-defined]
        if PRE_TOKENIZERS[str(detail["pre"])].always_add_bos:  # and these ids have none
            assert item.causes[0].fix == ALWAYS_ADDS_BOS.format(detail["pre"])
        else:
            assert item.change.keys["tokenizer.ggml.pre"] == detail["pre"]


@cache
def names_and_ids() -> dict[str, Ids]:
    base = Tokenizer(unsplit())
    return {name: with_pre(base, name).encode(TELLING) for name in PRE_TOKENIZERS}


def test_the_text_tells_nearly_all_families_apart() -> None:
    """Else the test above would say little."""
    ids = {PRE_TOKENIZERS[name].family: tuple(ids) for name, ids in names_and_ids().items()}
    assert len(ids) - len(set(ids.values())) <= 3


def tiny() -> Vocabulary:
    """A token "abc" that no merges make, and merges that make others."""
    return make_vocabulary([*byte_tokens(), "ab", "bc", "abc"], merges=["a b", "b c"])


def test_ignore_merges() -> None:
    tokenizer = Tokenizer(tiny())
    other = flipped_ignore_merges(tokenizer)
    text = b"abc bc"
    for ours, theirs in ((tokenizer, other), (other, tokenizer)):
        best = diagnose(ours, text, theirs.encode(text)).explanations[0]
        assert [(cause.id, best.explains) for cause in best.causes] == [("ignore_merges", 1.0)]
        assert best.causes[0].detail["theirs"] is (theirs is other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2"])
def test_special_token_types(name: str) -> None:
    tokenizer = model(name)
    token = tokenizer.token_to_id(control_text(tokenizer).decode())
    assert token is not None
    text = some_text(tokenizer)
    normal, user = (
        with_attribute(tokenizer, {token: NORMAL}),
        with_attribute(tokenizer, {token: USER_DEFINED}),
    )
    for ours, theirs, flags, kind in (
        (normal, tokenizer, {}, "CONTROL"),
        (normal, user, {"parse_special": False}, "USER_DEFINED"),
        (user, normal, {}, "NORMAL"),
    ):
        found = diagnose(ours, text, theirs.encode(text, **flags), **flags).explanations[0]
        assert [(cause.id, found.explains) for cause in found.causes] == [("special_token_types", 1.0)]
        (shown,) = found.causes[0].detail["tokens"]  # type: ignore[misc]
        assert (shown["id"], shown["theirs"]) == (token, kind)
        # No type makes a plain token of a text that llama.cpp takes for the end of something.
        is_fixed = kind == "NORMAL" and tokenizer.vocabulary.tokens[token] in MADE_CONTROL
        assert found.change.types == ({} if is_fixed else {token: kind})
        assert ("let the other tool parse" in found.causes[0].fix) == is_fixed


def test_one_token_of_several_has_another_type() -> None:
    tokenizer = model("llama-bpe")
    text = b"<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
    token = tokenizer.token_to_id("<|eot_id|>")
    ids = with_attribute(tokenizer, {token or 0: NORMAL}).encode(text)
    found = diagnose(tokenizer, text, ids).explanations
    assert [[cause.id for cause in item.causes] for item in found] == [["special_token_types"]]
    assert [item["id"] for item in found[0].causes[0].detail["tokens"]] == [token]  # type: ignore[attr-defined]


def test_a_space_before_every_plain_part() -> None:
    tokenizer = model("llama-bpe")
    best = diagnose(tokenizer, b"Hi<|eot_id|>you", tokenizer.encode(b" Hi<|eot_id|> you")).explanations[0]
    assert [cause.id for cause in best.causes] == ["space_prefix"]
    assert best.causes[0].detail["change"] == "before every plain part of the text"


def test_several_single_causes_are_all_listed_simplest_first() -> None:
    found = diagnose(model("gpt-2"), b"a\n", model("gpt-2").encode(b"a")).explanations
    assert [[cause.id for cause in item.causes] for item in found] == [["trailing_newline"], ["truncated"]]
    found = diagnose(model("gpt-2"), b"a b", model("gpt-2").encode(b" a b")).explanations
    assert [[cause.id for cause in item.causes] for item in found] == [["space_prefix"], ["leading_space"]]


# ---- every fix ------------------------------------------------------------------------------------------


def plus(changes: Callable[[Tokenizer], Tokenizer], **flags: bool) -> Made:
    """The ids of the changed model."""
    return lambda tok, text: changes(tok).encode(text, **flags)


HEADERS = "<|begin_of_text|>x" + "".join(f"<|reserved_special_token_{number}|>x" for number in range(6))

# A cause whose fix is in the file: the vocabulary; its keys, and its types by token, that are changed first; a text;
# and how the ids are made.
MENDABLE: dict[str, tuple[str, dict[Any, Any], str, Made]] = {
    "bos missing": ("gpt-2", {ADD_BOS: True}, "a b", encoding(bytes, add_special=False)),
    "bos added": ("llama-bpe", {ADD_BOS: False}, "a b", plus(lambda tok: changed(tok, add_bos=True))),
    "bos other": (
        "llama-bpe",
        {BOS_ID: 128001},
        "a b",
        lambda tok, text: [128000, *tok.encode(text, add_special=False)],
    ),
    "bos other, none here": (
        "llama-bpe",
        {BOS_ID: 128001, ADD_BOS: False},
        "a b",
        lambda tok, text: [128000, *tok.encode(text)],
    ),
    "eos added": ("gpt-2", {}, "a b", plus(lambda tok: changed(tok, add_eos=True))),
    "eos missing": (
        "llama-bpe",
        {ADD_EOS: True},
        "a b",
        lambda tok, text: tok.encode(text)[:-1],
    ),
    "pre": ("qwen2", {PRE: "gpt-2"}, TEXT.decode(), plus(lambda tok: with_pre(tok, "qwen2"))),
    "pre, with BOS": (
        "llama-bpe",
        {PRE: "gpt-2", ADD_BOS: False},
        TEXT.decode(),
        plus(lambda tok: changed(with_pre(tok, "llama-bpe"), add_bos=True)),
    ),
    "merges not ignored": ("llama-bpe", {}, "Xin \u0111i\u1ec1u n\u00e0y", plus(flipped_ignore_merges)),
    "merges ignored": (
        "llama-bpe",
        {PRE: "dbrx"},
        "Xin \u0111i\u1ec1u",
        plus(flipped_ignore_merges),
    ),
    "special tokens normal": (
        "llama-bpe",
        dict.fromkeys(range(128002, 128008), "NORMAL"),
        HEADERS,
        plus(lambda tok: with_attribute(tok, dict.fromkeys(range(128002, 128008), CONTROL))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MENDABLE)
def test_there_is_a_fix_in_the_file(case: str, tmp_path: Path) -> None:
    """Each is done, and makes the model give the ids: mending.py does so for whatever any test lets diagnose."""
    from ggufbpe.analysis.doctor.fix import write_fixed
    from ggufbpe.gguf.change import Change
    from ggufbpe.gguf.reader import GGUFFile

    name, changes, text, make = MENDABLE[case]
    path = model(name).vocabulary.path
    keys = {key: str(value).lower() for key, value in changes.items() if isinstance(key, str)}
    types = {key: value for key, value in changes.items() if isinstance(key, int)}
    with GGUFFile(path) as file:
        edits = Change(keys, types).edits(file)
    write_fixed(path, tmp_path / "model.gguf", edits, check=False)
    tokenizer = Tokenizer(load_vocabulary(tmp_path / "model.gguf"))
    found = diagnose(tokenizer, text.encode(), make(tokenizer, text.encode())).explanations
    assert any(item.explains == 1.0 and item.fix for item in found)


# Healthy files that the other side's ids would break: `doctor` would warn of the changed one.
OBJECTED: dict[str, tuple[str, str, Made]] = {
    "bos added": ("gpt-2", "a b", plus(lambda tok: changed(tok, add_bos=True))),
    "bos other": ("llama-bpe", "a b", lambda tok, text: [128001, *tok.encode(text, add_special=False)]),
    "pre": ("gpt-2", TEXT.decode(), plus(lambda tok: with_pre(tok, "llama-bpe"))),
    "control tokens normal": (
        "llama-bpe",
        HEADERS,
        plus(lambda tok: with_attribute(tok, dict.fromkeys([128000, *range(128002, 128256)], NORMAL))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", OBJECTED)
def test_no_command_breaks_a_healthy_file(case: str) -> None:
    name, text, make = OBJECTED[case]
    tokenizer = model(name)
    found = diagnose(tokenizer, text.encode(), make(tokenizer, text.encode())).explanations
    whole = [item for item in found if item.explains == 1.0]
    assert not any(item.fix for item in found)
    assert any("doctor" in item.objection for item in whole), [item.objection for item in whole]


def test_a_limit_leaves_it_to_the_given_ids_whether_bos_is_added() -> None:
    """Else a command that leaves BOS as it is would explain ids without BOS, together with the limit."""
    tokenizer, text = model("llama-spm"), b"a word\r\n"
    found = diagnose(tokenizer, text, tokenizer.encode(text[:-2], add_special=False)).explanations
    assert {"bos", "truncated"} in [{cause.id for cause in item.causes} for item in found]
    assert not any(item.fix for item in found)


# What is done to each fixture's tokenizer, for ids that it does not give itself.
FIXTURE_CHANGES: dict[str, Callable[[Vocabulary], dict[str, Any]]] = {
    "BOS": lambda own: {"add_bos": not own.add_bos},
    "EOS": lambda own: {"add_eos": not own.add_eos},
    "pre": lambda own: {
        "pre_tokenizer": PRE_TOKENIZERS["qwen2" if own.pre_tokenizer.byte_encode else "gemma4"]
    },
}


@pytest.mark.slow
def test_there_are_fixes_for_the_ids_of_changed_fixtures() -> None:
    text, count = "I'll 1234567\n\n (x)", 0
    for path in mending.FIXTURES:
        try:
            tokenizer = Tokenizer(load_vocabulary(path))
        except GGUFError:
            continue
        own = tokenizer.vocabulary
        if not own.tokenizer_model.has_pre_tokenizer:
            continue
        for what, change in FIXTURE_CHANGES.items():
            if own.special_ids.get(what.lower(), 0) is None:
                continue
            ids = Tokenizer(own._replace(**change(own))).encode(text)
            found = diagnose(tokenizer, text.encode(), ids).explanations
            count += any(item.explains == 1 and item.fix for item in found)
    assert count > 100


def test_a_fix_that_does_not_give_the_ids_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What mending.py does around each call of `diagnose`, tried with a fix for something else."""
    tokenizer = model("gpt-2")
    ids = [*tokenizer.encode("a b"), tokenizer.eos_id or 0]
    for changes in (f"--set {ADD_BOS}=true", "--set general.name=x", f"--set {ADD_EOS}=no-flag"):
        fix = f"ggufbpe fix {tokenizer.vocabulary.path} {changes} -o fixed.gguf"
        monkeypatch.setattr(
            diagnosing, "prove", lambda _, change, *__, fix=fix, **___: Proposal(change, fix, 1)
        )
        diagnosing.diagnose(tokenizer, b"a b", ids)
        failed, mending.watch.failed = mending.watch.failed, []
        assert [item.split(": ")[0] for item in failed] == ["diagnose, ['eos']"]


# ---- models without a pre-tokenizer ---------------------------------------------------------------------

LOWERCASE, ACCENTS = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"
SCORES, SEP = "tokenizer.ggml.scores", "tokenizer.ggml.seperator_token_id"
UNK = "tokenizer.ggml.unknown_token_id"
PREFIX, EXTRA = "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.remove_extra_whitespaces"
CHARSMAP = "tokenizer.ggml.precompiled_charsmap"
MIXED = "Héllo  World, naïve\n it costs 1234  日本語 \u2603 ABC\ufb01  "

# What is broken in a real vocabulary: its keys, or its model; what must be named; whether a command mends it.
OTHER_BREAKS: list[tuple[str, str | None, dict[str, Any], list[str], bool]] = [
    *(("llama-spm", wrong, {}, ["model"], True) for wrong in ("t5", "bert", "rwkv")),
    *(("bert-bge", wrong, {}, ["model"], True) for wrong in ("t5", "rwkv")),
    ("nomic-bert-moe", "bert", {}, ["model"], True),
    *((name, None, {PREFIX: False}, ["space_prefix"], True) for name in ("llama-spm", "phi-3", "baichuan")),
    ("llama-spm", None, {ADD_BOS: False}, ["bos"], True),
    *((name, None, {SCORES: None}, ["scores"], False) for name in ("llama-spm", "phi-3", "baichuan")),
    ("llama-spm", None, {SCORES: [0.5] * 32000}, ["scores"], False),
    ("llama-spm", None, {ADD_EOS: True}, ["eos"], True),
    ("llama-spm", None, {ADD_EOS: True, PREFIX: False}, ["eos", "space_prefix"], True),
    ("llama-spm", None, {"tokenizer.ggml.bos_token_id": 2}, ["bos"], True),
    ("llama-spm", "t5", {ADD_BOS: False}, ["model", "bos"], True),
    ("bert-bge", None, {LOWERCASE: False}, ["lower_case"], True),
    ("bert-bge", None, {LOWERCASE: False, ACCENTS: True}, ["lower_case"], True),
    ("bert-bge", None, {ACCENTS: False}, ["accents"], True),
    ("bert-bge", None, {SEP: 100}, ["sep"], True),
    ("bert-bge", None, {UNK: 3}, ["unk"], True),
    ("bert-bge", None, {UNK: 3, ACCENTS: False}, ["accents", "unk"], True),
    ("bert-bge", None, {SEP: 100, ACCENTS: False}, ["sep", "accents"], True),
    ("nomic-bert-moe", None, {EXTRA: False}, ["extra_whitespace"], True),
    ("nomic-bert-moe", None, {ADD_EOS: False}, ["eos"], True),
    ("nomic-bert-moe", None, {CHARSMAP: None}, ["charsmap"], False),
    *(("plamo", wrong, {}, ["model"], True) for wrong in ("llama", "t5", "bert", "rwkv")),
    ("plamo", "plamo3", {}, ["model"], True),
    ("plamo", None, {ADD_BOS: False}, ["bos"], True),
    ("plamo", None, {ADD_EOS: True}, ["eos"], True),
    ("plamo", None, {"tokenizer.ggml.bos_token_id": 2}, ["bos"], True),
    ("plamo", "llama", {ADD_EOS: True}, ["model", "eos"], True),
]


@pytest.mark.parametrize(
    ("path", "changes", "what"),
    [
        (UNIGRAM, {"set": {UNK: 3}}, "use '<unk>' for unknown text; the model uses '<sep>'"),
        (
            ROOT / "fixtures/vocabs/wpm.gguf",
            {"remove": [UNK]},
            "use '[UNK]' for unknown text; the model has no unknown token",
        ),
    ],
    ids=["another", "none"],
)
def test_another_unknown_token(path: Path, changes: dict[str, Any], what: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    fix(path, broken, **changes)
    right, text = Tokenizer.from_gguf(path), "where are \u2603 and \u65e5 now"
    best = diagnose(Tokenizer.from_gguf(broken), text.encode(), right.encode(text)).explanations[0]
    assert [(cause.id, cause.detail["what"]) for cause in best.causes] == [("unk", f"the given ids {what}")]
    assert best.fix == f"ggufbpe fix {broken} --set {UNK}={right.vocabulary.special_ids['unk']} -o fixed.gguf"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wrong", "keys", "expected", "is_mended"), OTHER_BREAKS)
def test_what_is_broken_in_other_models_is_named_first(
    name: str, wrong: str | None, keys: dict[str, Any], expected: list[str], is_mended: bool, tmp_path: Path
) -> None:
    """Ids of the sound file, against the broken one; the fixes are done by mending.py."""
    from reference import with_pre as copy_with

    right = model(name)
    broken = copy_with(right.vocabulary.path, None, tmp_path / "broken.gguf", model=wrong, extra=keys)
    best = diagnose(Tokenizer(load_vocabulary(broken)), MIXED.encode(), right.encode(MIXED)).explanations[0]
    assert ([cause.id for cause in best.causes], best.explains) == (expected, 1.0)
    assert bool(best.fix) is is_mended


@pytest.mark.parametrize("add_special", [True, False])
def test_the_eos_that_llama_tokenize_leaves_out_is_not_switched_off(
    add_special: bool, tmp_path: Path
) -> None:
    """Of a T5 that became Llama: T5 adds EOS and no BOS, and then the command adds nothing."""
    from reference import with_pre as copy_with

    right = Tokenizer(load_vocabulary(UNIGRAM))
    broken = Tokenizer(
        load_vocabulary(copy_with(right.vocabulary.path, None, tmp_path / "t5.gguf", model="llama"))
    )
    found = diagnose(broken, b"Hello world", right.encode("Hello world", add_special=add_special))
    assert [cause.id for cause in found.explanations[0].causes] == ["model"]
    assert found.added_as == ("" if add_special else "llama-tokenize")
    assert f"{MODEL}=t5" in found.fix
    assert ADD_EOS not in found.fix


def with_and_without_the_last(whole: dict[str, Any], folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizer of these keys, and one that has a filler in place of the last token."""
    last = len(whole[TokenizerKey.LIST]) - 1
    filled = whole | {
        TokenizerKey.LIST: [*whole[TokenizerKey.LIST][:last], f"[PAD{last}]"],
        TokenizerKey.TOKEN_TYPE: [*whole[TokenizerKey.TOKEN_TYPE][:last], int(TokenType.UNUSED)],
    }
    theirs, ours = (
        Tokenizer(load_vocabulary(write_metadata(folder / f"{name}.gguf", keys)))
        for name, keys in (("whole", whole), ("filled", filled))
    )
    return theirs, ours


@pytest.mark.parametrize("text", ["<|b|>", "<|b|><|a|>", "hello <|b|> world<|b|>\n"])
def test_a_marker_that_became_a_filler_is_not_taken_for_bos_and_a_limit(text: str, tmp_path: Path) -> None:
    """By a conversion that lacked the list of added tokens; the last one is BOS. The fix is done by mending.py."""
    whole = small_keys("<|a|>", "<|b|>", add_bos_token=True)
    bos = len(whole[TokenizerKey.LIST]) - 1
    theirs, ours = with_and_without_the_last(whole | {TokenizerKey.BOS_ID: bos}, tmp_path)
    best = diagnose(ours, text, theirs.encode(text)).explanations[0]
    assert [(cause.id, cause.detail["tokens"]) for cause in best.causes] == [
        ("vocabulary", {str(bos): "<|b|>"})
    ]
    assert best.explains == 1.0
    assert "--rename-token" in best.fix


@pytest.mark.parametrize("added", ["myword", "foo"])
def test_a_word_that_became_a_filler_is_given_back_as_a_word(added: str, tmp_path: Path) -> None:
    """As a control token, it would be lost from answers. The fix is done by mending.py."""
    whole = small_keys("<|a|>", added)
    word = len(whole[TokenizerKey.LIST]) - 1
    whole[TokenizerKey.TOKEN_TYPE][word] = int(TokenType.USER_DEFINED)
    theirs, ours = with_and_without_the_last(whole, tmp_path)
    text = f"I say {added}, and again {added}.\n"
    best = diagnose(ours, text, theirs.encode(text)).explanations[0]
    assert best.explains == 1.0
    assert f"--set-token-type {word}=USER_DEFINED" in best.fix
    assert f"--rename-token '[PAD{word}]={added}'" in best.fix


def test_texts_without_fillers_are_not_searched_for_what_became_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes long where the ids are those of another text."""

    def fail(*_: object) -> None:
        raise AssertionError("texts_of_lost was called")

    monkeypatch.setattr(diagnosing, "texts_of_lost", fail)
    tok = Tokenizer(load_vocabulary(GPT2))
    bos = tok.vocabulary.special_ids["bos"]
    assert bos is not None
    for ids, expected in (([], {"trailing_newline"}), ([bos], {"bos", "trailing_newline"})):
        best = diagnose(tok, "a b\n", [*ids, *tok.encode("a b")]).explanations[0]
        assert {cause.id for cause in best.causes} == expected


def without_fallback(tokenizer: Tokenizer, text: bytes, each: bool = False) -> Ids:
    """With the unknown token for characters without one, as byte_fallback=false gives them."""
    found: Ids = []
    for token in tokenizer.encode(text):
        written = tokenizer.id_to_token(token)
        if not re.fullmatch("<0x..>", written):
            found.append(token)
        elif found[-1] != 0 or (each and not 0x80 <= int(written[3:5], 16) < 0xC0):
            found.append(0)
    return found


def spaced_once(tokenizer: Tokenizer, text: bytes) -> Ids:
    """With a space before the text and none behind special tokens, as legacy=false of transformers has it."""
    return changed(tokenizer, add_space_prefix=False).encode(b" " + text)


def other(**fields: Any) -> Made:
    """By a vocabulary with other fields."""
    return lambda tok, text: changed(tok, **fields).encode(text)


# What another tool did: the model, the text, how the ids are made, and what must be named.
OTHER_TOOLS: list[tuple[str, str, Made, list[str]]] = [
    ("llama-spm", "a \u2603\U0001f71a b", without_fallback, ["byte_fallback"]),
    ("llama-spm", "a \u2603\U0001f71a b", lambda t, x: without_fallback(t, x, True), ["byte_fallback"]),
    ("llama-spm", "Hi<s>you there", spaced_once, ["space_prefix"]),
    ("llama-spm", MIXED, other(add_space_prefix=False), ["space_prefix"]),
    ("llama-spm", MIXED, other(scores=[0.0] * 32000), ["scores"]),
    ("llama-spm", MIXED, encoding(bytes, add_special=False), ["bos"]),
    ("llama-spm", "a<s>b", encoding(bytes, parse_special=False), ["parse_special"]),
    ("llama-spm", MIXED, lambda t, x: t.encode(x)[:9], ["truncated"]),
    ("plamo", MIXED, lambda t, x: t.encode(x)[:9], ["truncated"]),
    ("llama-spm", MIXED, lambda t, x: t.encode(x)[-9:], ["truncated"]),
    ("bert-bge", MIXED, lambda t, x: t.encode(x)[-9:], ["truncated"]),
    ("nomic-bert-moe", MIXED, lambda t, x: t.encode(x)[-9:], ["truncated"]),
    ("plamo", MIXED, other(scores=[0.0] * 1486), ["scores"]),
    ("llama-spm", "The story", encoding(lambda text: text.replace(b"story", b"tale")), ["text_differs"]),
    (
        "llama-spm",
        "<s>[INST] one</s> two",
        encoding(lambda text: text.replace(b"one", b"1")),
        ["text_differs"],
    ),
    ("llama-spm", "The <s>story</s> ends", encoding(lambda _: b"The story ends"), ["text_differs"]),
    ("nomic-bert-moe", "a </s><s> b", encoding(lambda _: b"a b"), ["text_differs"]),
    ("llama-spm", "a\r\nb", encoding(lambda text: text.replace(b"\r", b"")), ["newlines"]),
    ("bert-bge", MIXED, other(lowercase=False), ["lower_case"]),
    ("bert-bge", MIXED, other(strip_accents=False), ["accents"]),
    ("bert-bge", MIXED, other(lowercase=False, strip_accents=False), ["lower_case"]),
    ("bert-bge", MIXED, lambda t, x: t.encode(x)[:-1], ["sep"]),
    ("bert-bge", MIXED, lambda t, x: t.encode(x)[1:], ["bos"]),
    ("bert-bge", MIXED, lambda t, x: t.encode(x)[1:-1], ["bos", "sep"]),
    ("bert-bge", "a [SEP] b", encoding(bytes, parse_special=False), ["parse_special"]),
    ("bert-bge", "The story", encoding(lambda text: text.replace(b"story", b"tale")), ["text_differs"]),
    ("nomic-bert-moe", MIXED, other(charsmap=b""), ["charsmap"]),
    ("nomic-bert-moe", MIXED, other(remove_extra_whitespaces=False), ["extra_whitespace"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "make", "expected"), OTHER_TOOLS)
def test_what_other_tools_do_otherwise(name: str, text: str, make: Made, expected: list[str]) -> None:
    tokenizer = model(name)
    ids = make(tokenizer, text.encode())
    assert first_ids(tokenizer, text.encode(), ids) == expected
    assert reproduced(search(tokenizer, text.encode(), ids), ids)


@pytest.mark.parametrize("name", ["plamo", "nomic-bert-moe"])
def test_scores_of_a_best_path_that_are_lost_cannot_be_guessed(name: str) -> None:
    """Only those of merges are known by the order of ids; what does not give all ids is not claimed."""
    right = model(name)
    flat = changed(right, scores=[0.0] * len(right.vocabulary.tokens))
    [best] = diagnose(flat, TEXT, right.encode(TEXT)).explanations
    assert ([cause.id for cause in best.causes], best.fix) == (["scores"], "")
    assert best.causes[0].detail["problem"] == "flat"


@pytest.mark.parametrize("adds", [True, False])
def test_a_space_before_the_text_is_named_beside_other_scores(adds: bool) -> None:
    """Few ids agree more with the space or without it, but the first ones show whether there is one."""
    right = changed(model("llama-spm"), add_space_prefix=adds)
    text = "Straße and camelCase, naïve façades: 42 dogs saw a man, and the quick man saw a dog! " * 3
    scores = list(right.vocabulary.scores)[::-1]
    for flag, expected in ((not adds, {"space_prefix", "scores"}), (adds, {"scores"})):
        broken = changed(right, scores=scores, add_space_prefix=flag)
        best = diagnose(broken, text, right.encode(text)).explanations[0]
        assert {cause.id for cause in best.causes} == expected


def test_swapped_tokens_are_named_beside_other_scores() -> None:
    """Under other scores nothing else shows them: a text is put together from other tokens there."""
    right = model("llama-spm")
    text = (
        "The quick man saw the dog, and 42 of the dogs saw a man; naïve façades, Straße and camelCase! " * 3
    )
    scores = list(right.vocabulary.scores)[::-1]
    pair = [right.encode(f" {word}", add_special=False)[-1] for word in ("man", "dog")]
    others = dict(zip(pair, reversed(pair)))
    ids = [others.get(token, token) for token in right.encode(text)]
    best = diagnose(changed(right, scores=scores), text, ids).explanations[0]
    assert {(cause.id, cause.detail["problem"]) for cause in best.causes} == {
        ("vocabulary", "exchanged"),
        ("scores", "other"),
    }


def test_spaces_that_are_not_escaped() -> None:
    """Where the byte of a space is a token, which no tool that escapes spaces ever gives."""
    tokenizer = model("llama-spm")
    bare = tokenizer.vocabulary.pre_tokenizer._replace(escape_whitespaces=False)
    vocabulary = tokenizer.vocabulary._replace(pre_tokenizer=bare, add_space_prefix=False)
    ids = Tokenizer(vocabulary, ReferenceEngine(vocabulary)).encode("a b")
    assert [tokenizer.id_to_token(token) for token in ids] == ["<s>", "a", "<0x20>", "b"]
    assert first_ids(tokenizer, b"a b", ids) == ["space_prefix", "escape_whitespaces"]
    gpt2 = model("gpt-2")
    assert first_ids(gpt2, b"a b", gpt2.encode("a\u2581b")) == ["escape_whitespaces"]


def test_scores_and_charsmap_of_another_file(tmp_path: Path) -> None:
    for name, field in (("llama-spm", "scores"), ("nomic-bert-moe", "charsmap")):
        right = model(name)
        value = [1.0, *right.vocabulary.scores][:-1] if field == "scores" else b""
        wrong = changed(right, path="wrong.gguf", **{field: value})
        named = Tokenizer(right.vocabulary, name="right")
        found = diagnose(wrong, MIXED.encode(), right.encode(MIXED), others=[named]).explanations
        causes_of = [item.causes[0] for item in found if len(item.causes) == 1]
        assert (field, "right") in [(each.id, each.detail.get("model")) for each in causes_of]


def test_scores_of_a_file_that_has_more_tokens() -> None:
    right = model("phi-3").vocabulary
    fewer = right._replace(tokens=right.tokens[:32000], scores=right.scores[:32000][::-1])
    changes = [
        change(Encoding(fewer, True))
        for kind, change in model_changes(fewer, [model("phi-3")])
        if kind == "scores"
    ]
    assert right.scores[:32000] in [each.vocabulary.scores for each in changes]


@pytest.mark.parametrize("name", ["t5", "phi-3"])
def test_the_scores_of_the_other_side_where_all_are_the_same(name: str) -> None:
    right = model(name).vocabulary
    flat = right._replace(scores=right.scores[:0] + type(right.scores)("f", bytes(4 * len(right.scores))))
    changes = [
        change(Encoding(flat, True))
        for kind, change in model_changes(flat, [model(name)])
        if kind == "scores"
    ]
    assert right.scores in [each.vocabulary.scores for each in changes]


@pytest.mark.parametrize("is_converted", [True, False])
def test_whose_spaces_are_no_marks(is_converted: bool) -> None:
    """The file is named where its tokens have spaces, and the other tool where they have U+2581."""
    vocabulary = model("llama-spm").vocabulary
    if not is_converted:
        vocabulary = vocabulary._replace(tokens=[token.replace("▁", " ") for token in vocabulary.tokens])
    [change] = [change for kind, change in model_changes(vocabulary, []) if kind == "escape_whitespaces"]
    [cause] = change(Encoding(vocabulary, True)).causes
    assert ("other tool" in cause.fix, "convert the model again" in cause.fix) == (
        is_converted,
        not is_converted,
    )


OTHER_CHANGES: tuple[dict[str, Any], ...] = (
    *({"add_bos": True}, {"add_eos": True}, {"add_space_prefix": False}, {"add_space_prefix": True}),
    *({"remove_extra_whitespaces": True}, {"lowercase": False}, {"strip_accents": False}, {"scores": ()}),
)


@pytest.mark.slow
def test_what_is_claimed_of_other_models_reproduces_the_ids() -> None:
    """All fixtures of models without a pre-tokenizer, with what may be changed in each; fixes by mending.py."""
    claimed = 0
    for path in mending.FIXTURES:
        try:
            tokenizer = Tokenizer(load_vocabulary(path))
        except GGUFError:
            continue
        if tokenizer.vocabulary.tokenizer_model.has_pre_tokenizer:
            continue
        for change in OTHER_CHANGES:
            try:
                ids = changed(tokenizer, **change).encode("a B  ab, É<s>\n")
                own = tokenizer.encode("a B  ab, É<s>\n")
            except ValueError:  # a byte without a token
                continue
            if ids != own and min(ids) >= 0:
                found = search(tokenizer, "a B  ab, É<s>\n".encode(), ids)
                assert reproduced(found, ids)
                diagnose(tokenizer, "a B  ab, É<s>\n".encode(), ids)
                claimed += found[0].explains == 1
    assert claimed > 30


# ---- vocabulary and merges ------------------------------------------------------------------------------


def test_ids_of_another_model() -> None:
    """Without it, the ids mean nothing here; with it, they are its."""
    ids = model("qwen2").encode(TEXT)
    alone = diagnose(model("gpt-2"), TEXT, ids).explanations[0]
    assert (alone.causes[0].id, alone.causes[0].detail["problem"]) == ("vocabulary", "out of range")
    alone = diagnose(model("llama-bpe"), TEXT * 3, model("gpt-2").encode(TEXT * 3)).explanations[0]
    assert (alone.causes[0].id, alone.causes[0].detail["problem"]) == ("vocabulary", "other model")
    assert alone.explains < 0.5
    for others in ([model("qwen2")], [model("llama-bpe"), model("qwen2")]):
        best = diagnose(model("gpt-2"), TEXT, ids, others=others).explanations[0]
        assert [cause.id for cause in best.causes] == ["vocabulary"]
        assert best.causes[0].detail["model"] == model("qwen2").vocabulary.path
        assert best.explains == 1.0
    ids = [*model("qwen2").encode(TEXT[:-1]), model("qwen2").eos_id or 0]
    assert first_ids(model("gpt-2"), TEXT, ids[:-1], others=[model("qwen2")]) == [
        "trailing_newline",
        "vocabulary",
    ]


@pytest.mark.parametrize(
    ("name", "other"), [("gpt-2", "llama-spm"), ("llama-spm", "phi-3"), ("gpt-2", "qwen2")]
)
def test_eos_behind_ids_of_another_model_is_no_reason_to_change_this_one(name: str, other: str) -> None:
    ids = [*model(other).encode(TEXT), model(other).eos_id or 0]
    [best] = diagnose(model(name), TEXT, ids, others=[model(other)]).explanations
    assert ([cause.id for cause in best.causes], best.explains) == (["eos", "vocabulary"], 1.0)
    assert not best.change


def test_another_model_that_cannot_encode_the_text_is_left_out() -> None:
    other = Tokenizer(load_vocabulary(ROOT / "fixtures/vocabs/spm-without-bytes.gguf"))
    with pytest.raises(ValueError, match="no token"):
        other.encode("日")
    assert first_ids(model("gpt-2"), "日\n".encode(), model("gpt-2").encode("日"), others=[other]) == [
        "trailing_newline"
    ]


def test_ids_shifted_from_some_token_on() -> None:
    tokenizer = model("gpt-2")
    ids = [token + 7 if token >= 1000 else token for token in tokenizer.encode(TEXT)]
    best = diagnose(tokenizer, TEXT, ids).explanations[0]
    assert [cause.id for cause in best.causes] == ["vocabulary"]
    assert (best.causes[0].detail["by"], best.explains) == (7, 1.0)


def test_merges_of_another_model() -> None:
    tokenizer = model("gpt-2")
    merges = tokenizer.vocabulary.merges
    other = changed(tokenizer, merges=merges[:3000], path="other.gguf")
    ids = other.encode(TEXT)
    best = diagnose(tokenizer, TEXT, ids).explanations[0]
    assert [cause.id for cause in best.causes] == ["merges"]
    assert best.explains == agreeing_share(tokenizer.encode(TEXT), ids) < 1
    known = diagnose(tokenizer, TEXT, ids, others=[other]).explanations[0]
    assert ([cause.id for cause in known.causes], known.explains) == (["merges"], 1.0)
    assert known.causes[0].detail["model"] == "other.gguf"
    named = Tokenizer(other.vocabulary, name="other")
    known = diagnose(tokenizer, TEXT, ids, others=[named]).explanations[0]
    assert (known.causes[0].detail["model"], "other.gguf" in str(known)) == ("other", False)


def test_merging_by_token_ids() -> None:
    """As tiktoken does, where the order of the merges is another."""
    vocabulary = make_vocabulary([*byte_tokens(), "ab", "bc"], merges=["b c", "a b"])
    by_id = Tokenizer(vocabulary._replace(merges=["a b", "b c"])).encode(b"abc")
    best = diagnose(Tokenizer(vocabulary), b"abc", by_id).explanations[0]
    assert ([cause.id for cause in best.causes], best.explains) == (["merges"], 1.0)
    assert best.causes[0].detail["rule"] == "token ids"


# ---- two at once ----------------------------------------------------------------------------------------


def crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


PAIRS: list[tuple[set[str], Made]] = [
    ({"pre_type", "bos"}, lambda tok, text: with_pre(tok, other_pre(tok)).encode(text, add_special=False)),
    ({"pre_type", "eos"}, lambda tok, text: [*with_pre(tok, other_pre(tok)).encode(text), tok.eos_id or 0]),
    ({"pre_type", "newlines"}, lambda tok, text: with_pre(tok, other_pre(tok)).encode(crlf(text))),
    (
        {"pre_type", "normalization"},
        lambda tok, text: with_pre(tok, other_pre(tok)).encode(text.decode().lower()),
    ),
    ({"pre_type", "truncated"}, lambda tok, text: with_pre(tok, other_pre(tok)).encode(text)[:40]),
    (
        {"pre_type", "parse_special"},
        lambda tok, text: with_pre(tok, other_pre(tok)).encode(text, parse_special=False),
    ),
    ({"newlines", "trailing_newline"}, encoding(lambda text: text.replace(b"\r\n", b"\n").rstrip())),
    (
        {"normalization", "eos"},
        lambda tok, text: [*tok.encode(unicodedata.normalize("NFKD", text.decode())), tok.eos_id or 0],
    ),
    ({"bom", "newlines"}, encoding(lambda text: b"\xef\xbb\xbf" + crlf(text))),
    ({"space_prefix", "trailing_newline"}, encoding(lambda text: b" " + text[:-1])),
    ({"normalization", "trailing_newline"}, as_str(lambda text: text.lower().rstrip())),
    ({"parse_special", "newlines"}, encoding(crlf, parse_special=False)),
    ({"eos", "vocabulary"}, lambda tok, text: [token + 3 for token in (*tok.encode(text), tok.eos_id or 0)]),
    ({"escapes", "bom"}, encoding(lambda text: b"\xef\xbb\xbf" + text.replace(b"\\n", b"\n"))),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2"])
@pytest.mark.parametrize(("pair", "make"), PAIRS)
def test_two_causes_at_once_are_named_first(name: str, pair: set[str], make: Made) -> None:
    tokenizer = model(name)
    if "bos" in pair and not tokenizer.add_bos:
        tokenizer = changed(tokenizer, add_bos=True)
    text = some_text(tokenizer)
    causes = first_ids(tokenizer, text, make(tokenizer, text))
    assert sorted(causes) == sorted(pair)


def test_ignore_merges_with_other_causes() -> None:
    tokenizer = Tokenizer(tiny())
    other = flipped_ignore_merges(tokenizer)
    assert first_ids(tokenizer, b"abc\nabc\n", other.encode(b"abc\r\nabc\r\n")) == [
        "newlines",
        "ignore_merges",
    ]


# ---- what is never said ---------------------------------------------------------------------------------


def test_own_ids_match() -> None:
    for text in (b"", TEXT, b"\xff\xfe", b"\x00"):
        found = diagnose(model("gpt-2"), text, model("gpt-2").encode(text))
        assert found.to_dict() == {"match": True, "added_as": None, "explanations": [], "fix": ""}


@pytest.mark.parametrize(
    ("add_bos", "add_eos", "added", "meaning"),
    [
        (False, True, False, "llama-tokenize"),
        (False, True, True, "llama_tokenize"),
        (True, True, True, ""),
        (True, False, True, ""),
        (False, False, True, ""),
    ],
)
def test_ids_with_eos_alone_and_without_match_and_it_is_said_which(
    add_bos: bool, add_eos: bool, added: bool, meaning: str
) -> None:
    """The command llama-tokenize adds no EOS where there is no BOS; the function of that name does."""
    tokenizer = changed(model("gpt-2"), add_bos=add_bos, add_eos=add_eos)
    ids = tokenizer.encode(TEXT, add_special=added)
    assert diagnose(tokenizer, TEXT, ids)[::2] == (True, meaning)
    assert diagnose(tokenizer, TEXT, ids, add_special=added)[::2] == (True, meaning if added else "")
    without_end = tokenizer.encode(TEXT.rstrip(b"\n"), add_special=added)
    assert first_ids(tokenizer, TEXT, without_end) == ["trailing_newline"]


# ---- the pre-tokenizer that the tokens point to ---------------------------------------------------------


@pytest.mark.slow
def test_what_the_tokens_speak_against_comes_first() -> None:
    """A text that splits alike by both, so that BOS alone would do as well."""
    right = model("llama-bpe")
    for text in (b"I'LL count 1234567 words", b"I'LL count\n"):
        for adds, also in ((None, []), (False, ["bos"])):
            entry = PRE_TOKENIZERS["default"]
            wrong = changed(right, pre="default", pre_tokenizer=entry, add_bos=False, named_add_bos=adds)
            best = diagnose(wrong, text, right.encode(text)).explanations[0]
            assert [cause.id for cause in best.causes] == ["pre_type", *also]
            assert best.causes[0].detail["pre"] == "llama-bpe"
            assert "llama-bpe keeps 121492 of 121492 tokens whole" in str(best.causes[0].detail["evidence"])
            keys = {"tokenizer.ggml.pre": "llama-bpe", **({ADD_BOS: "true"} if also else {})}
            assert best.change.keys == keys


def test_a_right_pre_is_not_doubted() -> None:
    tokenizer = model("llama-bpe")
    ids = tokenizer.encode(b"I'LL count words", add_special=False)
    assert first_ids(tokenizer, b"I'LL count words", ids) == ["bos"]


@pytest.mark.slow
def test_ids_that_were_made_with_the_wrong_pre_are_not_the_right_ones() -> None:
    """The tokens speak against it, but only the ids say what the other tool did."""
    wrong = with_pre(model("llama-bpe"), "default")
    assert first_ids(wrong, TEXT, wrong.encode(TEXT[:-1])) == ["trailing_newline"]
    assert first_ids(wrong, TEXT, with_pre(wrong, "qwen2").encode(TEXT)) == ["pre_type"]


def reproduced(findings: list[Answer], ids: Ids) -> bool:
    """Whether each claim to explain everything does, in a tokenizer made anew; and no other is near to one."""
    for finding in findings:
        assert 0 <= finding.explains <= 1
        assert len({cause.id for cause in finding.causes}) == len(finding.causes) > 0
        assert {cause.id for cause in finding.causes} <= set(CAUSES)
        if finding.explains == 1:
            assert finding.variant is not None
            assert finding.variant.ids() == ids
    whole = [len(finding.causes) for finding in findings if finding.explains == 1]
    assert len(set(whole)) <= 1  # so none contains another
    shares = [finding.explains for finding in findings]
    return shares == sorted(shares, reverse=True)


CHANGES: list[Made] = [make for _, text, make, _ in SINGLE if text is None] + [make for _, make in PAIRS]


@pytest.mark.slow
@bounded(120)
@given(
    st.one_of(texts.map(str.encode), broken_bytes),
    st.sampled_from(CHANGES),
    st.randoms(use_true_random=False),
)
def test_what_is_claimed_reproduces_the_ids(text: bytes, make: Made, chance: random.Random) -> None:
    tokenizer = Tokenizer(gpt2_vocabulary())
    try:
        ids = make(tokenizer, text)
    except UnicodeDecodeError:
        ids = tokenizer.encode(text[::-1])
    if ids and chance.random() < 0.5:
        ids[chance.randrange(len(ids))] = chance.randrange(-2, 50300)
    if ids != tokenizer.encode(text):
        findings = search(tokenizer, text, ids)
        assert findings
        assert reproduced(findings, ids)


@pytest.mark.parametrize("text", [b"\x80\x00\x01\x00\x01", b"\x80a\x00\x00\x01"])
def test_a_text_from_its_end_on_is_another_text_and_no_exchange_of_tokens(text: bytes) -> None:
    """Its first token and its last have changed places, which explains some of the ids."""
    tokenizer = Tokenizer(gpt2_vocabulary())
    ids = tokenizer.encode(text[::-1])
    findings = search(tokenizer, text, ids)
    assert reproduced(findings, ids)
    assert [cause.id for cause in findings[0].causes] == ["text_differs"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(" ", "\u00a0"), ("'", "\u2019"), ("1234567", "&#49;234567"), ("\r\n", " "), ("ï", "Ã¯")],
)
def test_another_text_that_gives_all_ids_is_told_alone(ours: str, theirs: str) -> None:
    """No change that brings some ids nearer, such as another pre-tokenizer, has anything to do with them."""
    tokenizer = model("gpt-2")
    [only] = diagnose(tokenizer, TEXT, tokenizer.encode(TEXT.decode().replace(ours, theirs))).explanations
    assert ([cause.id for cause in only.causes], only.explains) == (["text_differs"], 1.0)


def test_a_shorter_explanation_of_all_ids_is_not_told_after_a_longer_one() -> None:
    """Bytes that are dropped and tokens that are exchanged, or else another text."""
    text, ids = b"\x80\x00\x01\x00\x01", [189, 188, 189, 188]
    findings = search(Tokenizer(gpt2_vocabulary()), text, ids)
    assert reproduced(findings, ids)
    assert [cause.id for cause in findings[0].causes] == ["invalid_utf8", "vocabulary"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "gemma-4"])
def test_random_ids_are_explained_by_nothing(name: str) -> None:
    tokenizer = model(name)
    chance = random.Random(name)
    for count in (60, 200, 400):
        ids = [chance.randrange(tokenizer.vocab_size) for _ in range(count)]
        found = diagnose(tokenizer, TEXT * 3, ids).explanations
        assert all(item.explains < 0.2 for item in found)
        assert found[0].causes[0].id in ("unknown", "vocabulary")


def test_what_is_not_whole_says_how_far_it_leads() -> None:
    """Another pre-tokenizer, and damage that nothing explains."""
    tokenizer = model("llama-bpe")
    text = TEXT * 4
    ids = with_pre(tokenizer, "qwen2").encode(text)
    at = ids.index(tokenizer.token_to_id("Ġwords") or 0)
    ids[at : at + 1] = tokenizer.encode(" wo", add_special=False) + tokenizer.encode("rds", add_special=False)
    findings = search(tokenizer, text, ids)
    assert reproduced(findings, ids)
    assert [cause.id for cause in findings[-1].causes] == ["merges"]
    assert findings[-1].explains == agreeing_share(tokenizer.encode(text), ids)
    pre = next(item for item in findings if [cause.id for cause in item.causes] == ["pre_type"])
    assert "qwen2" in str(pre.causes[0].detail)
    assert findings[-1].explains < pre.explains < 1
    assert pre.explains == agreeing_share(with_pre(tokenizer, "qwen2").encode(text), ids)


def test_invalid_bytes_that_are_kept_are_named_if_not_reproduced() -> None:
    tokenizer = model("gpt-2")
    tokens = {piece: token for token, piece in ((i, tokenizer.token_to_piece(i)) for i in range(256))}
    ids = [*tokenizer.encode(b"ab "), tokens[b"\xff"], *tokenizer.encode(b"c")]
    best = diagnose(tokenizer, b"ab \xffc", ids).explanations[0]
    assert (best.causes[0].id, best.causes[0].detail["change"]) == ("invalid_utf8", "kept")
    assert best.explains < 1


@pytest.mark.slow
@pytest.mark.parametrize("ids", [[], [0], [-1], [10**12], [50256] * 5])
@pytest.mark.parametrize("text", [b"", b"a", b"\xff", b"a" * 3000])
def test_odd_ids_and_texts_get_an_answer(text: bytes, ids: Ids) -> None:
    tokenizer = model("gpt-2")
    if tokenizer.encode(text) != ids:
        assert reproduced(search(tokenizer, text, ids), ids)


def test_agreement() -> None:
    cases: list[tuple[Ids, Ids, float]] = [
        ([], [], 1.0),
        ([1], [], 0.0),
        ([1, 2, 3], [1, 2, 3], 1.0),
        ([1, 2, 3, 4], [1, 3, 4, 5], 0.75),
        ([9, 1, 2, 3], [1, 2, 3], 0.75),
        ([1, 2, 1, 2], [2, 1, 2, 1], 0.75),
    ]
    for ours, theirs, share in cases:
        assert agreeing_share(ours, theirs) == agreeing_share(theirs, ours) == share
    assert 0.9999 < agreeing_share(range(40000), range(1, 40001)) < 1


@bounded(60)
@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_agreement_is_the_longest_common_subsequence(ours: Ids, theirs: Ids) -> None:
    table = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i, a in enumerate(ours):
        for j, b in enumerate(theirs):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    longest = max(len(ours), len(theirs))
    assert agreeing_share(ours, theirs) == (table[-1][-1] / longest if longest else 1.0)


# ---- the command ----------------------------------------------------------------------------------------


def run(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> tuple[int, str, str]:
    code = cli.main(["diagnose", *map(str, arguments)])
    out, err = capsysbinary.readouterr()
    return code, out.decode(), err.decode()


@pytest.mark.parametrize("written", ["[15496, 995]", "15496 995", "15496,995", '{"tokens": [15496, 995]}'])
def test_ids_as_people_have_them(
    written: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "ids"
    file.write_text(written)
    given = [file] if written.startswith("{") else [file, written]
    for ids in given:
        assert run(capsysbinary, "-m", GPT2, "-p", "Hello world", "--ids", ids) == (
            0,
            "match: the model gives these 2 ids\n",
            "",
        )


def test_ids_and_texts_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    import io
    from types import SimpleNamespace

    def give(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    give(b"15496 995\n")
    assert run(capsysbinary, "-m", GPT2, "-p", "Hello world", "--ids", "-")[0] == 0
    give(b"Hello world")
    assert run(capsysbinary, "-m", GPT2, "--stdin", "--ids", "15496 995")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add-eos-only", *BPE_VOCABULARIES, *OTHER_VOCABULARIES])
def test_what_tokenize_prints_diagnose_takes(name: str) -> None:
    """`tokenize --ids | diagnose --ids -`, as one types it."""
    path = (
        ROOT / "fixtures/vocabs/add-eos-only.gguf" if name == "add-eos-only" else model(name).vocabulary.path
    )
    text = ["-m", str(path), "-p", "It's 2024:\n  naïve 日本語 ab"]
    command = [sys.executable, "-m", "ggufbpe"]
    ids = subprocess.run(
        [*command, "tokenize", *text, "--no-escape", "--ids"], capture_output=True, check=True
    )
    found = subprocess.run([*command, "diagnose", *text, "--ids", "-"], input=ids.stdout, capture_output=True)
    assert (found.returncode, found.stdout[:7]) == (0, b"match: ")
    said = " ".join(found.stdout.decode().split())
    assert ("llama-tokenize prints them: without EOS" in said) == (name == "add-eos-only")


def test_json_is_as_promised(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    code, out, _ = run(capsysbinary, "-m", GPT2, "-p", "Hello world ", "--ids", "[15496, 995]", "--json")
    answer = json.loads(out)
    assert code == 1
    shared = {"schema", "model", "verdict", "findings", "fix"}
    assert set(answer) == {"match", "added_as", "explanations", *shared}
    assert answer["match"] is False
    for explanation in answer["explanations"]:
        assert set(explanation) == {"causes", "explains", "fix", "objection"}
        for cause in explanation["causes"]:
            assert set(cause) == {"id", "detail", "fix"}
    assert json.loads(run(capsysbinary, "-m", GPT2, "-p", "Hello", "--ids", "15496", "--json")[1]) == {
        "schema": 1,
        "model": "",  # a fix must not name the vocabulary of the package
        "verdict": "same",
        "findings": [],
        "match": True,
        "added_as": None,
        "explanations": [],
        "fix": "",
    }


def test_text_is_taken_as_it_is_but_for_escape(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ids = str(model("gpt-2").encode("a\nb"))
    code, out, _ = run(capsysbinary, "-m", GPT2, "-p", r"a\nb", "--ids", ids)
    assert code == 1
    assert "\n1. escapes: explains all ids\n" in out
    assert run(capsysbinary, "-m", GPT2, "-p", r"a\nb", "--ids", ids, "--escape")[0] == 0


def test_a_second_model_is_tried(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    other = model("qwen2")
    ids = str(other.encode("Hello 1234 world"))
    _, out, _ = run(
        capsysbinary, "-m", GPT2, "-m", other.vocabulary.path, "-p", "Hello 1234 world", "--ids", ids
    )
    assert "\n1. vocabulary: explains all ids\n" in out


@pytest.mark.parametrize("columns", [50, 120])
def test_nothing_untrusted_reaches_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("ggufbpe.cli._output.terminal_width", lambda: columns)
    text = "Hello \x1b[31m\u202e שלום مرحبا 世界 👩‍👧 \x07\x9b31m end"
    ids = model("gpt-2").encode(text.replace("end", "END"))
    code, out, _ = run(capsysbinary, "-m", GPT2, "-p", text, "--ids", str(ids))
    assert code == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)
    isolated = re.sub("\u2068[^\u2068\u2069]*\u2069", "", out)
    assert not any(unicodedata.bidirectional(char) in ("R", "AL") for char in isolated)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ids", "1"], "give one text"),
        (["-p", "a"], "which ids?"),
        (["-p", "a", "-f", "b", "--ids", "1"], "give one text"),
        (["--stdin", "--ids", "-"], "only one of text and ids"),
        (["-p", "a", "--ids", "no such file"], "No such file"),
        (["-p", "a", "--ids", "[1, [2]]"], "--ids: [2] is not a token id (item 2 of 2)"),
        (["-p", "a", "--ids", "[[1], [2]]"], "ids of 2 texts"),
        (["-m", "no.gguf", "-p", "a", "--ids", "1"], "no.gguf: No such file"),
    ],
)
def test_what_cannot_be_run_is_one_line_and_2(
    arguments: list[str], message: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    code, out, err = run(capsysbinary, *arguments)
    lines = [line for line in err.splitlines() if "error" in line]
    assert (code, out, len(lines)) == (2, "", 1)
    assert message in lines[0]
