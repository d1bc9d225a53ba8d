"""Each of the pre-tokenizer names, and a unigram model and PLaMo with their flags, give what llama.cpp gave.

The texts reach every branch of every pattern. The answers are in fixtures/recorded, made by makers/record_fixtures.py.
Where llama.cpp itself crashed there is none to hold to, but ids must come all the same.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import pytest
from conftest import GPT2, PLAMO, RAW_UTF8, ROOT, UNIGRAM, UNSPLIT, missing
from record_fixtures import CHANGES, FLAGS, REAL, as_bytes, column, read_older, read_recorded, variant
from reference import SPECIAL_IDS, NotPreparedError, vocabulary

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe._util.llama_cpp_states import FOLLOWED, lacks
from ggufbpe._util.utf8 import is_utf8
from ggufbpe.models.pretokenizers.random_texts import within_unicode
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import NORMAL

pytestmark = pytest.mark.both_engines

NOT_RECORDED = (
    "no answers of an older build: python tests/makers/record_fixtures.py --only older records them"
)
RECORDED = {"byte_level": GPT2, "unsplit": UNSPLIT, "raw_utf8": RAW_UTF8, "unigram": UNIGRAM, "plamo": PLAMO}
CASES = [(recorded, name) for recorded in RECORDED for name in read_recorded(recorded)["ids"]["index"]]


@cache
def answers(recorded: str) -> dict[str, Any]:
    return read_recorded(recorded)


@cache
def older() -> dict[str, Any] | None:
    """What a build before gave instead; None if that is not recorded."""
    return read_older()


class Case(NamedTuple):
    """One name, or one real vocabulary: our tokenizer for it, and what llama.cpp answered."""

    name: str
    tok: Tokenizer
    recorded: dict[str, Any]
    file: str = ""  # the name of `recorded`

    def some_tokens(self) -> list[int]:
        """All ids under the first name of a vocabulary; some under the others, for which tokens hardly differ."""
        if self.name == next(iter(self.recorded["ids"]["index"])):
            return list(range(self.tok.vocab_size))
        marked = [token for token, kind in enumerate(self.tok.vocabulary.attributes) if kind != NORMAL]
        return sorted({*range(0, self.tok.vocab_size, 17), *marked})


@pytest.fixture(scope="module", params=CASES, ids=[f"{name}-{recorded}" for recorded, name in CASES])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The recorded vocabulary under each name in turn; all tests of one name run before the next."""
    recorded, name = request.param
    path = variant(RECORDED[recorded], name, tmp_path_factory.mktemp("vocabulary") / "v.gguf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)  # GPT-2's vocabulary lacks what some names look for
        tok = Tokenizer.from_gguf(path)
    path.unlink()
    return Case(name, tok, answers(recorded), recorded)


def test_every_name_has_recorded_answers() -> None:
    record = (
        "a llama.cpp that has the names records them: python tests/makers/record_fixtures.py --only names"
    )
    assert {name for _, name in CASES} == {*PRE_TOKENIZERS, *CHANGES}, record
    assert {name for recorded, name in CASES if recorded != "byte_level"} == {*PRE_TOKENIZERS, *CHANGES}, (
        record
    )


def test_each_name_is_known_to_an_older_build_or_said_to_be_new() -> None:
    before = older()
    if before is None:
        pytest.skip(NOT_RECORDED)
    asked = {name for names in before["ids"].values() for name in names}
    assert not {*PRE_TOKENIZERS} - asked - lacks(before["llama.cpp"], "pre"), (
        "they need a StateDifference in _util/llama_cpp_states.py, or `record_fixtures.py --only older`"
    )


@pytest.mark.parametrize("recorded", RECORDED)
def test_recorded_vocabulary_is_the_one_at_hand(recorded: str) -> None:
    assert ROOT / answers(recorded)["vocabulary"] == RECORDED[recorded]
    assert len(answers(recorded)["texts"]) >= 350
    assert FOLLOWED in answers(recorded)["llama.cpp"], (
        "python tests/makers/record_fixtures.py records them anew"
    )


@pytest.fixture(scope="module", params=REAL)
def real(request: pytest.FixtureRequest) -> Case:
    """A real vocabulary of a model that has no pre-tokenizers."""
    try:
        path = vocabulary(request.param)
    except NotPreparedError as error:
        missing(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Case(request.param, Tokenizer.from_gguf(path), answers("real"))


def test_ids_of_real_vocabularies(real: Case) -> None:
    test_ids(real)


def test_decoded_by_real_vocabularies(real: Case) -> None:
    test_decoded(real)


@pytest.mark.slow
def test_ids(case: Case) -> None:
    for number, (add_special, parse_special) in enumerate(FLAGS):
        expected = column(case.recorded["ids"], case.name, number)
        for text, ids in zip(case.recorded["texts"], expected, strict=True):
            data = as_bytes(text)
            ours = case.tok.encode(data, add_special=add_special, parse_special=parse_special)
            if ids is not None:
                assert ours == ids, (data, FLAGS[number])


@pytest.mark.slow
def test_ids_of_an_older_build(case: Case) -> None:
    """Those that have changed since, and those of all other texts that are not UTF-8, which have not.

    The older build crashes at values above U+10FFFF, so there is nothing to compare with.
    """
    before = older()
    if before is None:
        pytest.skip(NOT_RECORDED)
    if case.name in lacks(before["llama.cpp"], "pre"):
        pytest.skip(f"llama.cpp {before['llama.cpp']} does not know the name")
    tok = Tokenizer(case.tok.vocabulary_in(before["llama.cpp"]))
    for number, (add_special, parse_special) in enumerate(FLAGS):
        expected = column(case.recorded["ids"], case.name, number)
        changed = dict(before["ids"][case.file][case.name][number])
        for question, (text, ids) in enumerate(zip(case.recorded["texts"], expected, strict=True)):
            data = as_bytes(text)
            ids = changed.get(question, ids)  # None: one of the two builds crashes
            is_asked = ids is not None and within_unicode(data) == data
            if is_asked and (question in changed or not is_utf8(data)):
                ours = tok.encode(data, add_special=add_special, parse_special=parse_special)
                assert ours == ids, (data, FLAGS[number])


def test_some_ids_have_changed_since_an_older_build() -> None:
    before = older()
    if before is None:
        pytest.skip(NOT_RECORDED)
    for names in before["ids"].values():
        assert any(changed for columns in names.values() for changed in columns)


@pytest.mark.slow
def test_decoded(case: Case) -> None:
    for number, (remove_special, unparse_special) in enumerate(FLAGS):
        expected = column(case.recorded["decoded"], case.name, number)
        for ids, text in zip(case.recorded["sequences"], expected, strict=True):
            ours = case.tok.decode_bytes(ids, remove_special=remove_special, unparse_special=unparse_special)
            assert ours == as_bytes(text), (ids, FLAGS[number])


@pytest.mark.slow
def test_pieces_of_all_tokens(case: Case) -> None:
    for number, special in enumerate((True, False)):
        [expected] = column(case.recorded["pieces"], case.name, number)
        assert len(expected) == case.tok.vocab_size
        for token in case.some_tokens():
            assert case.tok.token_to_piece(token, special=special) == as_bytes(expected[token]), token


@pytest.mark.slow
def test_special_ids_flags_and_attributes(case: Case) -> None:
    tok, [expected] = case.tok, column(case.recorded["described"], case.name, 0)
    assert {key: getattr(tok, f"{key}_id") for key in SPECIAL_IDS} == expected["special_ids"]
    assert (tok.add_bos, tok.add_eos) == (expected["add_bos"], expected["add_eos"])
    assert sorted(tok.eog_ids) == expected["eog_ids"]
    assert list(tok.vocabulary.attributes) == expected["attributes"]
    assert len(tok.vocabulary.tokens) == len(expected["texts"])
    for token in case.some_tokens():
        assert int(tok.token_attributes(token)) == expected["attributes"][token], token
        assert tok.id_to_token(token).encode() == as_bytes(expected["texts"][token]), token
