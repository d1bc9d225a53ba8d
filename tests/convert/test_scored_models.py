"""SPM, UGM and WPM in the files of other libraries, and out of them: ids are ours, or a limit says where not."""

from __future__ import annotations

import base64
import json
import math
import random
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers
from charsmaps import charsmap
from conftest import ROOT, UNIGRAM, missing, prepared
from exporting import FIXTURES, asked_of_version_1, differing, ids_or_none, names, sample, tokenizer
from real_vocabularies import cached
from reference import T5, NotPreparedError, Oracle, published_tokenizer, vocabulary
from sentencepiece import sentencepiece_model_pb2 as protocol
from tokenizer_json_cases import mutations

from ggufbpe import Tokenizer
from ggufbpe._util.unicode_classes import class_of
from ggufbpe.analysis.conversion import parity
from ggufbpe.cli import main
from ggufbpe.convert.export_formats import FORMATS, Export, export_to
from ggufbpe.convert.imported import NotImportableError, pack
from ggufbpe.convert.importers.import_files import import_file
from ggufbpe.convert.importers.import_hf import import_tokenizer
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.convert.score_merges import merges_by_scores, scores_by_merges
from ggufbpe.gguf.constants import TokenizerKey
from ggufbpe.models.vocabulary import CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

REAL = ("llama-spm", "phi-3", "baichuan", "bert-bge", "nomic-bert-moe")
ALGORITHMS = ("scores", "unigram", "word pieces")
SMALL = [
    path
    for path in [*FIXTURES, UNIGRAM]
    if tokenizer(path).vocabulary.tokenizer_model.algorithm in ALGORITHMS
]
CASES = [
    (path, kind)
    for path in SMALL
    for kind, form in FORMATS.items()
    if tokenizer(path).vocabulary.tokenizer_model.algorithm in form.writers
]


def path_of(name: str | Path) -> Path:
    return cached(name) if isinstance(name, str) else name


@cache
def exported(name: str | Path, kind: str) -> Export | None:
    """None where the format is refused."""
    try:
        return export_to(kind, tokenizer(path_of(name)).vocabulary)
    except NotExpressibleError:
        return None


# ---- what the limits speak of ---------------------------------------------------------------------------


def has_class(kinds: str) -> Callable[[Vocabulary, str], bool]:
    return lambda vocabulary, text: any(class_of(ord(char)) in kinds and char > "\x7f" for char in text)


def has_control_token(vocabulary: Vocabulary, text: str) -> bool:
    attributes = vocabulary.first_attributes or vocabulary.attributes
    return any(
        kind & (CONTROL | UNKNOWN) and token in unicodedata.normalize("NFKC", text)
        for token, kind in zip(vocabulary.tokens, attributes)
    )


def begins_user_defined_token(vocabulary: Vocabulary, text: str) -> bool:
    found = zip(vocabulary.tokens, vocabulary.attributes)
    return any(kind & USER_DEFINED and token[0] in text for token, kind in found)


def is_repetitive(vocabulary: Vocabulary, text: str) -> bool:
    return any(a == b for a, b in pairwise(text))


def has_spaces_at_an_end(vocabulary: Vocabulary, text: str) -> bool:
    """At the end of a part between control tokens; charsmaps make spaces of invisible characters, too."""
    found = zip(vocabulary.tokens, vocabulary.attributes)
    control = "|".join(re.escape(token) for token, kind in found if kind & CONTROL)
    last = [part[-1] for part in re.split(control, text) if part]
    return any(not each.isprintable() or each in " \ufffd\u2581" for each in last)


# Which texts may get other ids by each limit; of those that are not here, any.
SPOKEN_OF: dict[str, Callable[[Vocabulary, str], bool]] = {
    "newer_unicode": has_class("-"),
    "older_punctuation": lambda _, text: any(
        class_of(ord(c)) == "P" or c in "\u166d\U000111c9" for c in text
    ),
    "escaped_spaces": lambda _, text: "\u2581" in text,
    "white_space_beyond_ascii": has_class("W"),
    "control_tokens_in_text": has_control_token,
    "charsmap_by_graphemes": lambda _, text: (
        "\r\n" in text or any(unicodedata.category(c)[0] in "MC" for c in text)
    ),
    "spaces_at_the_end": has_spaces_at_an_end,
    "older_composition": lambda _, text: unicodedata.normalize("NFD", text) != text,
    "composed_texts": lambda _, text: unicodedata.normalize("NFC", text) != text,
    "unused_tokens": lambda _, text: "[PAD" in text,
    "scores_of_unused_tokens": lambda _, text: "[PAD" in text,
    "bytes_without_tokens": lambda _, text: False,  # there are no ids in llama.cpp
    "order_of_equal_scores": is_repetitive,
    "rounded_sums": is_repetitive,  # sums of the same scores in another order
    "user_defined_prefixes": begins_user_defined_token,
    "spaces_beside_user_defined_tokens": begins_user_defined_token,
}


def unexplained(
    tok: Tokenizer, export: Export, library: parity.CheckedLibrary, texts: list[str]
) -> list[Any]:
    """Texts with other ids that no limit speaks of."""
    told = names(export.limits)
    return [
        (text, *flags)
        for text, *flags in differing(tok, library, texts)
        if not any(SPOKEN_OF.get(limit, lambda _, text: True)(tok.vocabulary, text) for limit in told)
    ]


# ---- into the libraries ---------------------------------------------------------------------------------

IN_LIBRARIES = {
    ("llama-spm", "tokenizer.json"): {"order_of_equal_scores"},
    ("llama-spm", "sentencepiece"): set(),
    ("phi-3", "tokenizer.json"): {"order_of_equal_scores", "white_space_beyond_ascii"},
    ("phi-3", "sentencepiece"): set(),
    ("baichuan", "tokenizer.json"): {"order_of_equal_scores"},
    ("baichuan", "sentencepiece"): set(),
    ("bert-bge", "tokenizer.json"): {"newer_unicode", "older_punctuation", "escaped_spaces"},
    ("nomic-bert-moe", "tokenizer.json"): {
        "control_tokens_in_text",
        "scores_of_unused_tokens",
        "charsmap_by_graphemes",
        "white_space_beyond_ascii",
    },
}  # fmt: skip
NEVER_SEEN = {"order_of_equal_scores"}  # told, but these models' ids are ours on all texts that were tried


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), IN_LIBRARIES)
def test_real_vocabularies_in_their_library(name: str, kind: str) -> None:
    tok, export = tokenizer(cached(name)), exported(name, kind)
    assert export is not None
    assert names(export.limits) == IN_LIBRARIES[name, kind]
    library = parity.library_for(kind, export)
    assert library is not None
    told = export._replace(limits=tuple(each for each in export.limits if each.name not in NEVER_SEEN))
    assert unexplained(tok, told, library, sample(tok, 250)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("llama-spm", {"add_space_prefix": False}),
        ("bert-bge", {"lowercase": False, "strip_accents": False}),
        ("bert-bge", {"lowercase": False, "strip_accents": True}),
        ("bert-bge", {"lowercase": True, "strip_accents": False}),
        (UNIGRAM, {"charsmap": b""}),
        (UNIGRAM, {"add_space_prefix": False}),
        (UNIGRAM, {"add_space_prefix": False, "remove_extra_whitespaces": False}),
        (UNIGRAM, {"add_space_prefix": True, "remove_extra_whitespaces": False}),
        (UNIGRAM, {"nfc": True}),
        (UNIGRAM, {"nfc": True, "charsmap": b"", "remove_extra_whitespaces": False}),
    ],
)
def test_flags_are_carried(name: str | Path, changes: dict[str, Any]) -> None:
    tok = Tokenizer(tokenizer(path_of(name)).vocabulary._replace(**changes))
    for kind in ("tokenizer.json", "sentencepiece"):
        if tok.vocabulary.tokenizer_model.algorithm in FORMATS[kind].writers:
            export = export_to(kind, tok.vocabulary)
            library = parity.library_for(kind, export)
            assert library is not None
            texts = sample(tok, 120)
            decomposed = [unicodedata.normalize("NFD", text) for text in texts] if tok.vocabulary.nfc else []
            assert unexplained(tok, export, library, texts + decomposed) == []


COMPOSED = {
    "<unk>": 0.0,
    "e": -1.0,
    "\xe9": -1.125,
    "\u0301": -1.25,
    "x": -1.375,
    "\u2581": -1.5,
    "\u07fd": -1.625,
}


def composing(**changes: Any) -> Vocabulary:
    """A unigram model that composes texts, and whose tokens show whether one was composed."""
    vocabulary = tokenizer(UNIGRAM).vocabulary
    kinds = [UNKNOWN, *(NORMAL for _ in range(len(COMPOSED) - 1))]
    return vocabulary._replace(
        tokens=list(COMPOSED),
        token_to_id={text: token for token, text in enumerate(COMPOSED)},
        attributes=kinds,
        first_attributes=kinds,
        scores=list(COMPOSED.values()),
        special_ids={**dict.fromkeys(vocabulary.special_ids), "unk": 0},
        special_token_ids=(0,),
        eog_ids=frozenset(),
        add_bos=False,
        add_eos=False,
        **{
            "nfc": True,
            "charsmap": b"",
            "remove_extra_whitespaces": False,
            "add_space_prefix": False,
            **changes,
        },
    )


@pytest.mark.parametrize(
    ("text", "with_nfc", "without"),
    [
        ("xe\u0301x", ["x", "\xe9", "x"], ["x", "e", "\u0301", "x"]),
        ("\xe9 e\u0301", ["\xe9", "\u2581", "\xe9"], ["\xe9", "\u2581", "e", "\u0301"]),
        ("\u0301e", ["\u0301", "e"], ["\u0301", "e"]),
    ],
)
def test_texts_are_composed_in_the_library(text: str, with_nfc: list[str], without: list[str]) -> None:
    for nfc, tokens in ((True, with_nfc), (False, without)):
        vocabulary = composing(nfc=nfc)
        library = parity.library_for("tokenizer.json", export_to("tokenizer.json", vocabulary))
        assert library is not None
        for ids in (library.encode(text, False, False), Tokenizer(vocabulary).encode(text)):
            assert [vocabulary.tokens[token] for token in ids] == tokens


def test_texts_are_composed_before_the_charsmap() -> None:
    """The charsmap has U+00E9 as a key, and nothing for the two code points that it is composed of."""
    vocabulary = composing(charsmap=charsmap({"\xe9".encode(): b"x"}))
    library = parity.library_for("tokenizer.json", export_to("tokenizer.json", vocabulary))
    assert library is not None
    ids = Tokenizer(vocabulary).encode("e\u0301")
    assert [vocabulary.tokens[token] for token in ids] == ["x"]
    assert library.encode("e\u0301", False, False) == ids


@pytest.mark.parametrize(
    ("kind", "limit", "text"),
    [
        ("tokenizer.json", "older_composition", "e\u07fd\u0301x"),
        ("sentencepiece", "composed_texts", "e\u0301"),
    ],
)
def test_limits_of_composition_are_real(kind: str, limit: str, text: str) -> None:
    vocabulary = composing()
    export = export_to(kind, vocabulary)
    library = parity.library_for(kind, export)
    assert library is not None
    assert limit in names(export.limits)
    assert limit not in names(export_to(kind, composing(nfc=False)).limits)
    assert Tokenizer(vocabulary).encode(text) != library.encode(text, False, False)


@pytest.mark.slow
def test_sums_in_sentencepiece_are_almost_equal_where_ids_differ() -> None:
    """What the limit `rounded_sums` says: both paths have the same sum but for rounding."""
    tok, export = tokenizer(cached("nomic-bert-moe")), exported("nomic-bert-moe", "sentencepiece")
    assert export is not None
    assert names(export.limits) == {"rounded_sums", "unused_tokens"}
    library = parity.sentencepiece(*export.files.values())

    def total(ids: list[int] | None) -> float:
        return sum(tok.vocabulary.scores[token] for token in ids or [])

    texts = [text for text in sample(tok, 400) if "[PAD" not in text]
    different = differing(tok, library, texts)
    assert len(different) < len(texts) / 20
    for text, *flags in different:
        ours = tok.encode(text, add_special=flags[0], parse_special=flags[1])
        assert total(ours) == pytest.approx(total(library.encode(text, *flags)), rel=1e-6)


@pytest.mark.parametrize(("path", "kind"), CASES, ids=lambda value: getattr(value, "stem", value))
def test_fixtures_in_their_library(path: Path, kind: str) -> None:
    tok, export = tokenizer(path), exported(path, kind)
    if export is None:
        with pytest.raises(NotExpressibleError, match=r"[a-z.-]+ (can|can carry it|does)"):
            export_to(kind, tok.vocabulary)
        return
    library = parity.library_for(kind, export)
    if library is not None:
        assert unexplained(tok, export, library, sample(tok, 60)) == []


@pytest.mark.parametrize(
    ("stem", "kind", "limit", "text"),
    [
        ("spm-without-space", "tokenizer.json", "tokens_without_merges", "hello world"),
        ("spm-user-defined", "sentencepiece", "spaces_beside_user_defined_tokens", "lo"),
        ("spm-user-defined", "sentencepiece", "overlapping_special_tokens", "  hello"),
        ("spm-unused-and-control-tokens-are-merged", "sentencepiece", "merged_special_tokens", "he"),
        ("spm-phi-3", "tokenizer.json", "white_space_beyond_ascii", "<|user|>\u3000"),
        ("wpm", "tokenizer.json", "older_punctuation", "a\u061db"),
        ("wpm-begins-alone", "tokenizer.json", "beginning_alone", "s"),
        ("wpm-special-tokens", "tokenizer.json", "special_tokens_in_words", "x"),
        ("wpm-unknown-missing", "tokenizer.json", "unknown_missing", "\u0e01"),
        ("unigram", "tokenizer.json", "control_tokens_in_text", "<pad>"),
        ("unigram", "tokenizer.json", "charsmap_by_graphemes", "\uff21\u0301"),
        ("unigram", "sentencepiece", "spaces_beside_user_defined_tokens", "<sep>"),
    ],
)
def test_limits_are_real(stem: str, kind: str, limit: str, text: str) -> None:
    path = next(path for path in SMALL if path.stem == stem)
    export = exported(path, kind)
    assert export is not None
    assert limit in names(export.limits)
    library = parity.library_for(kind, export)
    assert library is not None
    ways = [(False, False), (False, library.parses_special)]
    tok = tokenizer(path)
    assert any(ids_or_none(tok, text, flags) != library.encode(text, *flags) for flags in ways)


@pytest.mark.slow
def test_lists_of_code_points_leave_only_newer_characters() -> None:
    tok = tokenizer(cached("bert-bge"))
    export = export_to("tokenizer.json", tok.vocabulary, code_points=True)
    assert names(export.limits) == {"newer_unicode", "escaped_spaces", "not_read_by_tokenizers_1"}
    library = parity.library_for("tokenizer.json", export)
    assert library is not None
    found = parity.agreement(tok, library, random_texts=0)
    assert [p for p in found.differing_characters if class_of(p) != "-" and p != 0x2581] == []
    assert found.characters > 12_000


@pytest.mark.slow
def test_version_1_gives_our_ids(tmp_path: Path) -> None:
    """One child for all; the ids in 0.x are in the tests above."""
    cases = [*REAL, *(path for path in SMALL if path.stem in ("spm", "spm-user-defined", "wpm", "unigram"))]
    questions = []
    for number, name in enumerate(cases):
        export = exported(name, "tokenizer.json")
        assert export is not None
        (tmp_path / f"{number}.json").write_bytes(export.files["tokenizer.json"])
        texts = sample(tokenizer(path_of(name)), 120)
        flags = [(False, False), (True, True)]
        questions.append({"path": str(tmp_path / f"{number}.json"), "texts": texts, "flags": flags})
    answers = asked_of_version_1(tmp_path, questions)
    for name, question, answer in zip(cases, questions, answers, strict=True):
        assert answer.get("library", answer).startswith("tokenizers 1.0"), name
        known = dict(zip(question["texts"], answer["ids"], strict=True))
        library = parity.CheckedLibrary(str(name), lambda text, a, p, known=known: known[text][int(p)])  # type: ignore[misc]
        paired = library._replace(parses_special=False, adds_special=False)
        export = exported(name, "tokenizer.json")
        assert export is not None
        assert unexplained(tokenizer(path_of(name)), export, paired, question["texts"]) == []


def test_each_model_says_which_formats_it_has() -> None:
    found = {
        model: sorted(kind for kind, form in FORMATS.items() if model in form.writers)
        for model in ("merges", *ALGORITHMS, "longest match")
    }
    assert found == {
        "merges": ["merges.txt", "tiktoken", "tokenizer.json"],
        "scores": ["sentencepiece", "tokenizer.json"],
        "unigram": ["sentencepiece", "tokenizer.json"],
        "word pieces": ["tokenizer.json", "vocab.txt"],
        "longest match": [],
    }


# ---- scores and merges ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "pairs", "circular"),
    [
        ({"ab": 2, "abc": 1, "bc": 0}, [("a", "b"), ("ab", "c"), ("a", "bc"), ("b", "c")], []),
        # of one score: what is left of another comes first
        ({"ab": 0, "bc": 0}, [("a", "b"), ("b", "c")], []),
        ({"bc": 0, "ab": 0, "cd": 0}, [("a", "b"), ("b", "c"), ("c", "d")], []),
        ({"aa": 0, "ab": 0}, [("a", "a"), ("a", "b")], []),
        # each is left of the other
        ({"ab": 0, "ba": 0}, [("a", "b"), ("b", "a")], ["ab", "ba"]),
        ({"aa": 0, "aaa": 0}, [("aa", "a"), ("a", "aa"), ("a", "a")], ["aaa", "aa"]),
    ],
)
def test_scores_as_merges(scores: dict[str, int], pairs: list[Any], circular: list[str]) -> None:
    known = {**dict.fromkeys("abcd", -99), **scores}
    ranks = [-score for score in known.values()]
    ids = {text: token for token, text in enumerate(known)}
    found = merges_by_scores(known, ranks, ids)
    assert found.pairs == pairs
    assert found.circular == circular
    if len(set(scores.values())) == len(scores):
        again = scores_by_merges(found.pairs).scores
        assert sorted(again, key=again.__getitem__) == sorted(scores, key=scores.__getitem__)


# ---- there and back -------------------------------------------------------------------------------------


def loaded(metadata: dict[str, Any], folder: Path) -> Tokenizer:
    path = folder / "v.gguf"
    path.write_bytes(pack(metadata))
    return Tokenizer.from_gguf(path)


def written(export: Export, folder: Path, *, without: str = "") -> Path:
    for name, data in export.files.items():
        if name != without:
            (folder / name).write_bytes(data)
    return folder / next(iter(export.files))


CARRIED = (
    "model",
    "tokens",
    "attributes",
    "first_attributes",
    "scores",
    "special_ids",
    "eog_ids",
    "add_bos",
    "add_eos",
)
CARRIED += (
    "add_sep",
    "add_space_prefix",
    "lowercase",
    "strip_accents",
    "remove_extra_whitespaces",
    "charsmap",
    "nfc",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [*CASES, *((name, kind) for name in REAL for kind in ("tokenizer.json", "sentencepiece", "vocab.txt"))],
    ids=lambda value: getattr(value, "stem", value),
)
def test_there_and_back_gives_the_same_vocabulary(name: str | Path, kind: str, tmp_path: Path) -> None:
    tok, export = tokenizer(path_of(name)), exported(name, kind)
    if export is None:
        return  # refused: see above
    again = loaded(import_file(str(written(export, tmp_path))).metadata, tmp_path)
    for field in CARRIED:
        before, after = getattr(tok.vocabulary, field), getattr(again.vocabulary, field)
        if field == "scores" and not before:
            after = [score for score in after if score]
        same = (
            list(before) == list(after)
            if isinstance(before, (list, tuple)) or field == "scores"
            else before == after
        )
        assert same, field
    for text in sample(tok, 40):
        for flags in [(False, False), (True, True)]:
            assert ids_or_none(tok, text, flags) == ids_or_none(again, text, flags)


@pytest.mark.parametrize(
    ("kind", "without"),
    [("tokenizer.json", ""), ("tokenizer.json", "tokenizer_config.json"), ("sentencepiece", "")],
)
@pytest.mark.parametrize("nfc", [True, False])
def test_composition_there_and_back(kind: str, without: str, nfc: bool, tmp_path: Path) -> None:
    vocabulary = composing(nfc=nfc)
    metadata = import_file(str(written(export_to(kind, vocabulary), tmp_path, without=without))).metadata
    assert loaded(metadata, tmp_path).vocabulary.nfc is nfc
    assert (TokenizerKey.NORMALIZER_NFC in metadata) is nfc  # older files stay as they were


NFC_STEP: dict[str, Any] = {"type": "NFC"}
SPACES: dict[str, Any] = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}


@pytest.mark.parametrize(
    ("steps", "nfc", "limit"),
    [
        ("NFC, charsmap, spaces", True, "composition"),
        ("spaces, NFC, charsmap", True, "composition"),
        ("charsmap, NFC, spaces", False, "normalizer"),
        ("charsmap, spaces, NFC", False, "normalizer"),
        ("charsmap, spaces", False, ""),
    ],
)
def test_order_of_composition(steps: str, nfc: bool, limit: str) -> None:
    """llama.cpp composes before the charsmap, so a step behind that is none that it has."""
    document = json.loads(export_to("tokenizer.json", composing()).files["tokenizer.json"])
    data = base64.b64encode(charsmap({"\xe9".encode(): b"x"})).decode()
    parts = {
        "NFC": NFC_STEP,
        "charsmap": {"type": "Precompiled", "precompiled_charsmap": data},
        "spaces": SPACES,
    }
    document["normalizer"] = {"type": "Sequence", "normalizers": [parts[each] for each in steps.split(", ")]}
    imported = import_tokenizer(document)
    assert imported.metadata.get(TokenizerKey.NORMALIZER_NFC, False) is nfc
    assert names(imported.limits) & {"composition", "normalizer"} == ({limit} if limit else set())


def test_merges_alone_are_enough(tmp_path: Path) -> None:
    """tokenizer.json of Llama 2 without the file beside it."""
    tok, export = tokenizer(cached("llama-spm")), exported("llama-spm", "tokenizer.json")
    assert export is not None
    imported = import_file(str(written(export, tmp_path, without="tokenizer_config.json")))
    assert names(imported.limits) == set()
    again = loaded(imported.metadata, tmp_path)
    assert again.vocabulary.scores != tok.vocabulary.scores
    assert again.vocabulary.special_ids == tok.vocabulary.special_ids
    texts = sample(tok, 150)
    assert again.encode_batch(texts) == tok.encode_batch(texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("llama-spm", "sentencepiece"), ("nomic-bert-moe", "tokenizer.json"), ("bert-bge", "vocab.txt")],
)
def test_llama_cpp_loads_what_was_imported(name: str, kind: str, tmp_path: Path) -> None:
    tok, export = tokenizer(cached(name)), exported(name, kind)
    assert export is not None
    target = tmp_path / "v.gguf"
    target.write_bytes(pack(import_file(str(written(export, tmp_path))).metadata))
    texts = sample(tok, 40)
    try:
        with Oracle(target) as oracle:
            found = oracle.tokenize([text.encode() for text in texts], True, True)
    except NotPreparedError as error:
        missing(str(error))
    assert found == tok.encode_batch(texts)


# ---- files that others made -----------------------------------------------------------------------------

LINES = [
    line
    for path in sorted(ROOT.glob("docs/*.md"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.strip()
    and "<|" not in line  # or it would become a token, which llama.cpp takes for a control token
]
AS_IT_IS = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
TEXTS = [*LINES[::9], "naïve 你好 😀", "  two  spaces ", "tab\there", "", " ", "１２３ ﬁne"]


def trained(folder: Path, model_type: str, **options: Any) -> Path:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(folder / "tokenizer"),
        model_type=model_type,
        vocab_size=700,
        character_coverage=0.999,
        minloglevel=2,
        **options,
    )
    return folder / "tokenizer.model"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_type", "options", "limits"),
    [
        ("bpe", {"byte_fallback": True, **AS_IT_IS}, set()),
        ("bpe", {"byte_fallback": True}, {"normalizer", "extra_white_space"}),
        ("unigram", {}, {"rounded_sums"}),
        (
            "unigram",
            {"user_defined_symbols": ["docs/"]},
            {"rounded_sums", "spaces_beside_user_defined_tokens"},
        ),
    ],
)
def test_models_that_sentencepiece_trained(
    model_type: str, options: dict[str, Any], limits: set[str], tmp_path: Path
) -> None:
    path = trained(tmp_path, model_type, **options)
    imported = import_file(str(path))
    assert names(imported.limits) == limits
    tok = loaded(imported.metadata, tmp_path)
    library = parity.library_reading(str(path), tok.vocabulary)
    assert library is not None
    different = differing(tok, library, TEXTS)
    known = {"normalizer": "  two  spaces ", "spaces_beside_user_defined_tokens": "docs/"}
    allowed = [part for limit, part in known.items() if limit in limits]
    if "normalizer" in limits:
        different = [
            each for each in different if unicodedata.normalize("NFKC", each[0]) == " ".join(each[0].split())
        ]
    if "rounded_sums" in limits:
        different = [each for each in different if not have_equal_sums(tok, library, *each)]
    assert [each for each in different if not any(part in each[0] for part in allowed)] == []
    assert len(different) < len(TEXTS)


def have_equal_sums(
    tok: Tokenizer, library: parity.CheckedLibrary, text: str, add_special: bool, parse_special: bool
) -> bool:
    """Whether both chose paths whose scores add up to the same but for the rounding of 32 bits."""
    paths = (
        tok.encode(text, add_special=add_special, parse_special=parse_special),
        library.encode(text, add_special, parse_special),
    )
    one, other = (math.fsum(tok.vocabulary.scores[token] for token in path) for path in paths)
    return math.isclose(one, other, rel_tol=1e-6)


def train_unigram() -> tokenizers.Tokenizer:
    tok = tokenizers.Tokenizer(tokenizers.models.Unigram())
    tok.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    tok.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=600, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>"
    )
    tok.train_from_iterator(LINES, trainer)
    tok.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    document = json.loads(tok.to_str())
    for each in document["model"][
        "vocab"
    ]:  # scores whose sums are exact: no rounding decides between equal paths
        each[1] = round(each[1] * 1024) / 1024
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def train_word_pieces() -> tokenizers.Tokenizer:
    tok = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = tokenizers.normalizers.BertNormalizer()
    tok.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(
        LINES, tokenizers.trainers.WordPieceTrainer(vocab_size=600, special_tokens=special)
    )
    tok.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tok


def train_llama() -> tokenizers.Tokenizer:
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", byte_fallback=True))
    prepend, replace = tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")
    tok.normalizer = tokenizers.normalizers.Sequence([prepend, replace])
    tok.pre_tokenizer = None
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = [word for line in LINES for word in line.split()]
    tok.train_from_iterator(words, tokenizers.trainers.BpeTrainer(vocab_size=900, special_tokens=special))
    tok.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    document = json.loads(tok.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    return tokenizers.Tokenizer.from_str(json.dumps(document))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("train", "model", "limits"),
    [
        (train_llama, "llama", {"pairs_without_merges"}),
        (train_unigram, "t5", {"control_tokens_in_text", "spaces_at_the_end"}),
        (train_word_pieces, "bert", {"normalization", "newer_unicode", "long_words", "escaped_spaces"}),
    ],
)
def test_files_that_the_library_trained(
    train: Callable[[], tokenizers.Tokenizer], model: str, limits: set[str], tmp_path: Path
) -> None:
    library = train()
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    imported = import_file(str(path))
    assert imported.metadata["tokenizer.ggml.model"] == model
    assert names(imported.limits) == limits
    tok = loaded(imported.metadata, tmp_path)
    spoken_of = [SPOKEN_OF[limit] for limit in limits if limit in SPOKEN_OF]
    texts = [text for text in TEXTS if not any(found(tok.vocabulary, text) for found in spoken_of)]
    assert len(texts) > len(TEXTS) / 2
    assert [text for text in texts if tok.encode(text) != library.encode(text).ids] == []


@pytest.mark.slow
def test_scores_with_more_digits_than_a_gguf_has_are_told(tmp_path: Path) -> None:
    document = json.loads(train_unigram().to_str())
    document["model"]["vocab"][5][1] -= 1e-12
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    imported = import_file(str(tmp_path / "tokenizer.json"))
    assert [(limit.name, limit.number) for limit in imported.limits if "score" in limit.name] == [
        ("rounded_scores", 1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("t5", {"charsmap_by_graphemes", "control_tokens_in_text", "spaces_at_the_end"}),
        ("umt5", {"control_tokens_in_text", "spaces_at_the_end", "unused_tokens"}),
    ],
)
def test_unigram_models_as_published(name: str, limits: set[str]) -> None:
    """umT5 has two pieces without text."""
    path = prepared(published_tokenizer, name)
    imported = import_file(str(path))
    assert names(imported.limits) == limits
    assert pack(imported.metadata) == vocabulary(name).read_bytes()
    tok = tokenizer(vocabulary(name))
    library = parity.hugging_face(path.read_bytes())
    different = [
        text
        for text, *_ in differing(tok, library, sample(tok, 300))
        if not any(SPOKEN_OF[limit](tok.vocabulary, text) for limit in {*limits, "escaped_spaces"})
    ]
    assert different == []


@pytest.mark.slow
@pytest.mark.parametrize("name", T5)
def test_llama_cpp_gives_the_ids_of_published_unigram_models(name: str) -> None:
    tok = tokenizer(prepared(vocabulary, name))
    texts = sample(tok, 150)
    with Oracle(vocabulary(name)) as oracle:
        for flags in ((True, True), (False, False)):
            found = oracle.tokenize([text.encode() for text in texts], *flags)
            assert found == tok.encode_batch(texts, add_special=flags[0], parse_special=flags[1])


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


@pytest.mark.parametrize(
    ("steps", "pre_tokenizers", "limits"),
    [
        ([], [{"type": "WhitespaceSplit"}, METASPACE], {"white_space"}),
        (
            [
                {"type": "Strip", "strip_left": False, "strip_right": True},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
            ],
            [METASPACE],
            set(),
        ),
    ],
    ids=["as XLM-RoBERTa has it", "as T5 has it"],
)
def test_steps_of_models_own_files(
    steps: list[Any], pre_tokenizers: list[Any], limits: set[str], tmp_path: Path
) -> None:
    export = exported(UNIGRAM, "tokenizer.json")
    assert export is not None
    document = json.loads(export.files["tokenizer.json"])
    charsmap = document["normalizer"]["normalizers"][0]
    document["normalizer"] = {"type": "Sequence", "normalizers": [charsmap, *steps]}
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": pre_tokenizers}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    imported = import_file(str(path))
    assert names(imported.limits) == {"control_tokens_in_text", "charsmap_by_graphemes", *limits}
    tok = loaded(imported.metadata, tmp_path)
    library = parity.hugging_face(path.read_bytes())
    assert [text for text in TEXTS if tok.encode(text) != library.encode(text, True, True)] == []


# ---- what is beside a file ------------------------------------------------------------------------------


def piece(text: str, score: float, kind: int = 1) -> dict[str, Any]:
    return {"piece": text, "score": score, "type": kind}


def model_of(pieces: list[dict[str, Any]], model_type: int = 2, **normalizer: Any) -> bytes:
    model = protocol.ModelProto()
    for each in pieces:
        model.pieces.add(**each)
    model.trainer_spec.model_type = model_type
    for key, value in normalizer.items():
        setattr(model.normalizer_spec, key, value)
    return bytes(model.SerializeToString())


PIECES = [
    piece("<unk>", 0, 2),
    piece("<s>", 0, 3),
    piece("</s>", 0, 3),
    piece("▁", -1),
    piece("a", -2),
    piece("▁a", -0.5),
]


def test_files_beside_a_model_are_read(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model_of(PIECES, remove_extra_whitespaces=False))
    config = {
        "add_eos_token": True,
        "eos_token": {"content": "<|end|>"},
        "chat_template": "{{ x }}",
        "added_tokens_decoder": {
            "6": {"content": "<|end|>", "special": False},
            "7": {"content": "▁▁", "special": False},
            "9": {"content": "<tool>", "special": True},
        },
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": "</s>"}')
    (tmp_path / "added_tokens.json").write_text('{"<extra>": 8}')
    keys = import_file(str(tmp_path / "tokenizer.model")).metadata
    assert keys["tokenizer.ggml.tokens"][6:] == ["<|end|>", "  ", "<extra>", "<tool>"]
    assert keys["tokenizer.ggml.token_type"] == [2, 3, 3, 1, 1, 1, 3, 4, 4, 3]
    assert keys["tokenizer.ggml.scores"][6:] == [-1000.0] * 4
    found = {
        key.split(".")[-1]: value for key, value in keys.items() if key.endswith(("_id", "add_eos_token"))
    }
    assert found == {
        "bos_token_id": 1,
        "eos_token_id": 6,
        "unknown_token_id": 0,
        "padding_token_id": 2,
        "add_eos_token": True,
    }
    assert keys["tokenizer.chat_template"] == "{{ x }}"
    assert keys["tokenizer.ggml.add_space_prefix"] is True


def test_ids_of_fairseq_go_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sentencepiece.bpe.model"
    path.write_bytes(model_of(PIECES, model_type=1))
    keys = import_file(str(path)).metadata
    assert keys["tokenizer.ggml.tokens"] == ["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "▁a", "<mask>"]
    assert keys["tokenizer.ggml.token_type"] == [3, 3, 3, 2, 1, 1, 1, 3]


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        ({}, (True, True)),
        ({"do_lower_case": False}, (False, False)),
        ({"do_lower_case": True, "strip_accents": False}, (True, False)),
    ],
)
def test_lines_of_word_pieces(config: dict[str, Any], flags: tuple[bool, bool], tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    keys = import_file(str(tmp_path / "vocab.txt")).metadata
    assert keys["tokenizer.ggml.tokens"] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁play", "ing"]
    assert keys["tokenizer.ggml.token_type"] == [3, 3, 3, 3, 3, 1, 1]
    normalizer = "tokenizer.ggml.normalizer"
    assert (keys[f"{normalizer}.lowercase"], keys[f"{normalizer}.strip_accents"]) == flags
    tok = loaded(keys, tmp_path)
    assert tok.encode("playing play") == [2, 5, 6, 5, 3]


# ---- broken files ---------------------------------------------------------------------------------------

BROKEN = {
    "nothing": (b"", "it has no pieces"),
    "text": (b"hello, this is no model\n", "this is not a sentencepiece model"),
    "a length beyond the end": (b"\x0a\xff\xff\xff\xff\x0f", "this is not a sentencepiece model"),
    "a cut": (model_of(PIECES)[:-9], "this is not a sentencepiece model"),
    "not UTF-8": (b"\x0a\x04\x0a\x02\xff\xfe", "piece 0 is not UTF-8"),
    "the same twice": (model_of([*PIECES, piece("a", -3)]), "two pieces are 'a'"),
    "an empty piece": (model_of([*PIECES, piece("", -3)]), "piece 6 is ''"),
    "a NUL": (model_of([*PIECES, piece("a\0", -3)]), "can be empty or have a NUL"),
    "no number": (
        model_of([*PIECES, piece("b", float("nan"))]),
        "the score of piece 6, 'b', is not a number",
    ),
    "words": (model_of(PIECES, model_type=3), "splits into words or characters"),
    "a short charsmap": (
        model_of(PIECES, 1, precompiled_charsmap=b"\xff\xff\xff\x7f"),
        "too few for an array",
    ),
}


@pytest.mark.parametrize(("data", "problem"), BROKEN.values(), ids=BROKEN)
def test_broken_model_is_refused(
    data: bytes, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(data)
    with pytest.raises(NotImportableError, match=problem):
        import_file(str(path))
    assert main(["import", str(path), "-o", str(tmp_path / "v.gguf")]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[UNK]\n[CLS]\n\nplay\n", "line 3 is ''"),
        (b"[UNK]\n[CLS]\nplay\nplay\n", "line 3, 'play', is there twice"),
        (b"[UNK]\n\xff\n", "byte 6 is not UTF-8"),
        (b"[UNK]\n[CLS]\na\0b\n", "line 3 is 'a\\\\x00b'"),
        ("[UNK]\n[CLS]\n##a\n##▁b\n▁b\n".encode(), None),
        ("[UNK]\n[CLS]\n##▁b\nb\n".encode(), "two word pieces become the token '▁b'"),
    ],
)
def test_broken_lines_are_refused(data: bytes, problem: str | None, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(data)
    if problem is None:
        import_file(str(path))
        return
    with pytest.raises(NotImportableError, match=problem):
        import_file(str(path))


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"added_tokens_decoder": {"999999999999": {"content": "x"}}}, "has the id '999999999999'"),
        ({"added_tokens_decoder": {"888888": {"content": "x"}}}, "has the id 888888, and there are 6 pieces"),
        ({"added_tokens_decoder": {"-1": {"content": "x"}}}, "has the id '-1'"),
        ({"added_tokens_decoder": {"6": {"content": 1}}}, "'6' has no text"),
        ({"added_tokens_decoder": {"6": {}}}, "not as transformers writes them"),
        ({"added_tokens_decoder": [1]}, "not as transformers writes them"),
        ({"added_tokens_decoder": {"6": {"content": "a"}}}, "two ids have the token 'a'"),
        ({"gguf": {"token_types": {"3": [99]}}}, "has a type for 99"),
    ],
)
def test_broken_configuration_is_refused(config: dict[str, Any], problem: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model_of(PIECES))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(NotImportableError, match=problem):
        import_file(str(tmp_path / "tokenizer.model"))


UNK = ["<unk>", 0.0]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": {"type": "Unigram", "vocab": [UNK, UNK]}}, "two ids have the token '<unk>'"),
        ({"model": {"type": "Unigram", "vocab": [UNK, ["a"]]}}, "each has a text and a finite score"),
        (
            {"model": {"type": "Unigram", "vocab": [UNK, ["a", float("nan")]]}},
            "each has a text and a finite score",
        ),
        ({"model": {"type": "Unigram", "vocab": [UNK, ["a", 1e300]]}}, "each has a text and a finite score"),
        (
            {"model": {"type": "Unigram", "vocab": {"a": 0}}},
            "this is not how the vocabulary of a Unigram model is written",
        ),
        (
            {"model": {"type": "Unigram", "vocab": [UNK], "unk_id": 1}},
            "the unknown token is 1, which is not a token id",
        ),
        ({"model": {"type": "Unigram", "vocab": []}}, "the file has no tokens"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "////fw=="}}, "too few for an array"),
        (
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}},
            "not as the tokenizers package writes it",
        ),
        ({"model": {"type": "WordPiece", "vocab": {"a": 0, "b": -1}}}, "are not all numbers from 0 up"),
        (
            {"model": {"type": "WordPiece", "vocab": {"a": 0}, "continuing_subword_prefix": "@@"}},
            "continuing pieces begin with '@@', and must begin with '##'",
        ),
        (
            {"model": {"type": "WordPiece", "vocab": {"▁a": 0, "##▁▁a": 1}}},
            "two word pieces become the token '▁▁a'",
        ),
        (
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}, "normalizer": {"type": "Prepend"}},
            "a merge is 'a', not two tokens",
        ),
    ],
)
def test_broken_document_is_refused(changes: dict[str, Any], problem: str) -> None:
    given = {"model": {"type": "Unigram", "vocab": [UNK], "unk_id": 0}, **changes}
    with pytest.raises(NotImportableError, match=re.escape(problem)):
        import_tokenizer(given)


def test_no_broken_model_is_a_defect(tmp_path: Path) -> None:
    """Whatever bytes are changed: it is imported and opened, or refused in words."""
    dice = random.Random(2)
    given, path = (
        model_of([*PIECES, *(piece(chr(0x4E00 + n), -n) for n in range(40))]),
        tmp_path / "tokenizer.model",
    )
    refused = 0
    for _ in range(300):
        data = bytearray(given)
        for _ in range(dice.choice([1, 1, 2, 8])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data[: dice.choice([len(data), dice.randrange(len(data))])])
        try:
            pack(import_file(str(path)).metadata)
        except NotImportableError:
            refused += 1
    assert 50 < refused < 300


@pytest.mark.parametrize("stem", ["spm", "wpm", "unigram"])
def test_no_broken_document_is_a_defect(stem: str) -> None:
    export = exported(next(path for path in SMALL if path.stem == stem), "tokenizer.json")
    assert export is not None
    document, config = (json.loads(data) for data in export.files.values())
    dice = random.Random(3)
    refused = 0
    for _ in range(200):
        try:
            pack(import_tokenizer(mutations(document, dice), mutations(config, dice)).metadata)
        except NotImportableError:
            refused += 1
    assert 10 < refused < 200


# ---- the commands ---------------------------------------------------------------------------------------


def test_commands_carry_a_model_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = next(path for path in SMALL if path.stem == "spm")
    assert main(["export", "-m", str(source), "--to", "sentencepiece", "-o", str(tmp_path / "files")]) == 0
    output = capsys.readouterr().out
    assert "sentencepiece 0" in output
    assert "all ids the same" in output
    assert main(["import", str(tmp_path / "files"), "-o", str(tmp_path / "v.gguf")]) == 0
    output = capsys.readouterr().out
    assert f"{tokenizer(source).vocab_size} tokens, model llama" in output
    assert "all ids the same" in output


@pytest.mark.parametrize(
    ("stem", "kind", "problem"),
    [
        (
            "rwkv",
            "tokenizer.json",
            "none of these formats has a place for; the format vocab-gguf can carry it",
        ),
        ("wpm", "sentencepiece", "tokenizer.json, vocab.txt and vocab-gguf can carry it"),
        ("spm", "vocab.txt", "vocab.txt has no place for that"),
        ("spm-newline-as-character", "sentencepiece", "255 of 256 bytes have a token"),
    ],
)
def test_export_says_what_a_format_cannot_do(
    stem: str, kind: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ROOT / "fixtures" / "vocabs" / f"{stem}.gguf"
    assert main(["export", "-m", str(source), "--to", kind, "-o", str(tmp_path / "out")]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_import_of_an_empty_folder_and_of_a_name_that_does_not_go_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(tmp_path), "-o", str(tmp_path / "v.gguf")]) == 2
    assert "has none of tokenizer.json, tokenizer.model" in capsys.readouterr().err
    (tmp_path / "vocab.txt").write_text("[UNK]\n")
    assert main(["import", str(tmp_path), "--pre", "gpt-2", "-o", str(tmp_path / "v.gguf")]) == 2
    assert "the pre-tokenizer 'gpt-2' is for byte pair encoding with merges" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "package"),
    [("sentencepiece.sentencepiece_model_pb2", "sentencepiece"), ("google.protobuf", "protobuf")],
)
def test_without_sentencepiece_the_extra_is_named(
    module: str,
    package: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    source = ROOT / "fixtures" / "vocabs" / "spm.gguf"
    assert main(["export", "-m", str(source), "--to", "sentencepiece", "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"takes the package {package}: " in said
    assert "pip install 'ggufbpe[sentencepiece]'" in said
