"""Changed tokenizers: other values for the keys of a file. What is overridden is as if it stood in the file."""

from __future__ import annotations

import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import GPT2, RAW_UTF8, ROOT, missing
from loading_rules import byte_alphabet
from reference import (
    NotPreparedError,
    library_is_installed,
    llama_tokenize_command,
    with_pre,
    write_metadata,
)
from synthetic import gpt2_vocabulary

from ggufbpe import (
    GGUFError,
    GGUFWarning,
    MissingKeyError,
    Tokenizer,
    UnknownPreTokenizerError,
    WrongTypeError,
    train,
)
from ggufbpe.analysis.doctor.fix import write_fixed
from ggufbpe.cli import main
from ggufbpe.gguf.constants import GGUFValueType, TokenizerKey
from ggufbpe.gguf.edit import Edit
from ggufbpe.gguf.kv_override import applicable, parse_kv_overrides
from ggufbpe.gguf.reader import GGUFFile

K, T = TokenizerKey, GGUFValueType
TINY = ROOT / "fixtures" / "variants" / "vocabulary-version-3-little.gguf"

WAYS: dict[str, Callable[[Path], Callable[[Any], Tokenizer]]] = {
    "from_gguf": lambda path: lambda overrides: Tokenizer.from_gguf(path, overrides=overrides),
    "with_overrides": lambda path: Tokenizer.from_gguf(path).with_overrides,
    "of a pickle": lambda path: pickle.loads(pickle.dumps(Tokenizer.from_gguf(path))).with_overrides,
}


def told(open_it: Callable[[], Tokenizer]) -> tuple[object, ...]:
    """The vocabulary but for its file, and the warnings; or the kind of error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = open_it().vocabulary
        except GGUFError as error:
            return type(error), error.key
    bare = found._replace(
        path="", architecture="", name="", tokens=list(found.tokens), merges=list(found.merges)
    )
    return bare, [str(warning.message).split(".gguf: ")[-1] for warning in caught]


# Overrides, and how the same would be written to a file.
CASES: list[dict[str, Edit]] = [
    {K.PRE: Edit(K.PRE, T.STRING, "llama-bpe")},
    {K.PRE: Edit(K.PRE)},
    {K.PRE: Edit(K.PRE, T.STRING, "no-such-name")},
    {K.PRE: Edit(K.PRE, T.INT32, -5)},
    {K.ADD_BOS: Edit(K.ADD_BOS, T.BOOL, True), K.BOS_ID: Edit(K.BOS_ID, T.UINT32, 3)},
    {K.ADD_BOS: Edit(K.ADD_BOS, T.UINT32, 1)},
    {K.EOS_ID: Edit(K.EOS_ID, T.UINT32, 2**32 - 1)},
    {K.EOS_ID: Edit(K.EOS_ID, T.UINT64, 2**32)},
    {K.EOS_ID: Edit(K.EOS_ID, T.INT32, -1)},
    {K.EOS_ID: Edit(K.EOS_ID, T.FLOAT32, 1.5)},
    {K.MODEL: Edit(K.MODEL)},
    {K.MODEL: Edit(K.MODEL, T.STRING, "bert")},
    {K.MERGES: Edit(K.MERGES)},
    {K.MERGES: Edit(K.MERGES, T.ARRAY, ["a b"], T.STRING)},
    {K.TOKEN_TYPE: Edit(K.TOKEN_TYPE, T.ARRAY, [1, 2, 3], T.INT32)},
    {K.TOKEN_TYPE: Edit(K.TOKEN_TYPE)},
    {K.TOKEN_TYPE: Edit(K.TOKEN_TYPE, T.STRING, "normal")},
    {"general.name": Edit("general.name", T.STRING, "Phi-3")},
]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", [TINY, RAW_UTF8], ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "edits", CASES, ids=lambda edits: " ".join(f"{e.key}={e.value}" for e in edits.values())
)
def test_an_override_is_as_if_it_stood_in_the_file(
    tmp_path: Path, edits: dict[str, Edit], path: Path, way: str
) -> None:
    written = tmp_path / "written.gguf"
    write_fixed(path, written, edits.values(), check=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_overrides = WAYS[way](path)
    overrides = {key: edit.value for key, edit in edits.items()}
    expected = told(lambda: Tokenizer.from_gguf(written))
    assert told(lambda: with_overrides(overrides)) == expected


@pytest.mark.parametrize(
    ("overrides", "error", "hint"),
    [
        ({"tokenizer.ggml.prre": "gpt-2"}, ValueError, "near: tokenizer.ggml.pre"),
        ({K.PRE: b"gpt-2"}, TypeError, "cannot hold"),
        ({K.PRE: {}}, TypeError, "cannot hold"),
        ({K.PRE: "\ud800"}, TypeError, "cannot hold"),
        ({K.LIST: ["a", "\ud800", "b"]}, TypeError, "cannot hold"),
        ({K.LIST: ["a", 1]}, TypeError, "cannot hold"),
        ({K.EOS_ID: 2**64}, TypeError, "cannot hold"),
        ({K.TOKEN_TYPE: [1, "two"]}, TypeError, "cannot hold"),
        ({5: 1}, TypeError, "the keys of overrides must be str, not int"),
        ([("a", 1)], TypeError, "overrides must be a mapping of keys to values, not list"),
        ("ab", TypeError, "overrides must be a mapping of keys to values, not str"),
        (0, TypeError, "overrides must be a mapping of keys to values, not int"),
        ({K.PRE: 5}, WrongTypeError, "it is overridden"),
        ({K.PRE: "no-such-name"}, UnknownPreTokenizerError, "it is overridden"),
        ({K.MERGES: None}, MissingKeyError, "it is overridden"),
    ],
)
def test_what_cannot_be_an_override(overrides: Any, error: type[Exception], hint: str) -> None:
    with pytest.raises(error, match=hint):
        Tokenizer.from_gguf(TINY, overrides=overrides)


def test_numpys_numbers_are_numbers() -> None:
    types = numpy.ones(20, numpy.int64)
    given = {K.EOS_ID: numpy.int64(2), K.ADD_BOS: numpy.True_, K.TOKEN_TYPE: types}
    found = Tokenizer.from_gguf(TINY, overrides=given)
    assert found == Tokenizer.from_gguf(
        TINY, overrides={K.EOS_ID: 2, K.ADD_BOS: True, K.TOKEN_TYPE: types.tolist()}
    )


def test_a_changed_tokenizer_shares_the_rest() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    with pytest.warns(GGUFWarning, match="cuts tokens such as"):
        changed = tok.with_overrides({K.ADD_BOS: True, K.PRE: "llama-bpe"})
    assert (changed.encode("1234"), tok.encode("1234")) != (tok.encode("1234"), changed.encode("1234"))
    assert changed.encode("a")[0] == changed.bos_id
    assert changed.vocabulary.merges == tok.vocabulary.merges
    assert not tok.add_bos
    assert changed.with_overrides({K.ADD_BOS: None, K.PRE: "gpt-2"}).encode("1234") == tok.encode("1234")
    if tok.engine == "native":
        for field in ("tokens", "merges"):
            assert getattr(changed.vocabulary, field).strings is getattr(tok.vocabulary, field).strings


def test_the_engine_stays() -> None:
    assert Tokenizer.from_gguf(GPT2, "reference").with_overrides({}).engine == "reference"


def test_a_vocabulary_has_no_file() -> None:
    tok = Tokenizer(gpt2_vocabulary())
    for asking in (lambda: tok.with_overrides({}), lambda: tok.with_llama_cpp("b11549"), tok.to_gguf):
        with pytest.raises(ValueError, match="has no file but a Vocabulary; its _replace gives"):
            asking()


def test_warnings_name_who_asked() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    with pytest.warns(GGUFWarning, match="is missing") as caught:
        tok.with_overrides({K.PRE: None})
    assert {warning.filename for warning in caught} == {__file__}


FACTS = (
    *(
        "vocabulary",
        "model",
        "pre",
        "vocab_size",
        "add_bos",
        "add_eos",
        "eog_ids",
        "bos_id",
        "eos_id",
        "eot_id",
    ),
    *(
        "eom_id",
        "unk_id",
        "sep_id",
        "pad_id",
        "mask_id",
        "fim_pre_id",
        "fim_suf_id",
        "fim_mid_id",
        "fim_pad_id",
    ),
    *("fim_rep_id", "fim_sep_id", "engine"),
)


@pytest.mark.parametrize("name", FACTS)
def test_what_cannot_be_changed_is_read_only(name: str) -> None:
    tok = Tokenizer.from_gguf(TINY)
    before = getattr(tok, name)
    with pytest.raises(AttributeError, match=name):
        setattr(tok, name, before)
    with pytest.raises(AttributeError, match=name):
        delattr(tok, name)
    assert getattr(tok, name) is before or getattr(tok, name) == before


def test_the_error_says_what_to_do() -> None:
    tok = Tokenizer.from_gguf(TINY)
    with pytest.raises(AttributeError, match=r"with_overrides\(\{'tokenizer.ggml.add_bos_token': \.\.\.\}\)"):
        tok.add_bos = False  # type: ignore[assignment]


@pytest.mark.parametrize("name", ["encode", "fingerprint", "chats", "nl_id"])
def test_methods_and_what_is_computed_once_cannot_be_replaced(name: str) -> None:
    tok = Tokenizer.from_gguf(TINY)
    before = getattr(tok, name)
    with pytest.raises(AttributeError, match=f"^{name} cannot be changed$"):
        setattr(tok, name, None)
    assert getattr(tok, name) == before


def test_attributes_cannot_be_added_but_by_a_subclass() -> None:
    class Named(Tokenizer):
        label: str
        bos_token = "mine"  # type: ignore[assignment]

    tok = Tokenizer.from_gguf(TINY)
    with pytest.raises(
        AttributeError, match=r"^a Tokenizer has no attribute 'bos_di', and none can be added$"
    ):
        tok.bos_di = 1  # type: ignore[assignment]
    named = Named.from_gguf(TINY)
    named.label = "a name"  # type: ignore[attr-defined]
    assert (named.label, weakref.ref(named)(), pickle.loads(pickle.dumps(tok))) == ("a name", named, tok)  # type: ignore[attr-defined]


# ---- --override-kv, as llama.cpp writes it ------------------------------------------------------------------

# What llama.cpp's parse_csv_row and string_parse_kv_override make of a value of the flag.
PARSED = {
    "one": ("k=str:v", [("k", "str", "v")]),
    "several": (
        "a=int:1,b=bool:true,c=float:1.5",
        [("a", "int", 1), ("b", "bool", True), ("c", "float", 1.5)],
    ),
    "a comma in quotes": ('"k=str:a,b"', [("k", "str", "a,b")]),
    "quotes in quotes": ('"k=str:a""b",c=int:2', [("k", "str", 'a"b'), ("c", "int", 2)]),
    "a quote amid a value": ('k=str:a"b', [("k", "str", 'a"b')]),
    "what follows quotes": ('"k=str:a"b', [("k", "str", "ab")]),
    "an equals sign and colons": ("k=str:a=b:c", [("k", "str", "a=b:c")]),
    "no text": ("k=str:", [("k", "str", "")]),
    "no key": ("=int:1", [("", "int", 1)]),
    "a number and more": ("k=int: -12x", [("k", "int", -12)]),
    "no number": ("k=int:x", [("k", "int", 0)]),
    "a number that is too large": ("k=int:99999999999999999999", [("k", "int", 2**63 - 1)]),
    "no float": ("k=float:", [("k", "float", 0.0)]),
    "an exponent": ("k=float:.5e1z", [("k", "float", 5.0)]),
    "the longest": (f"{'k' * 127}=str:{'v' * 127}", [("k" * 127, "str", "v" * 127)]),
}


@pytest.mark.parametrize(("given", "expected"), PARSED.values(), ids=PARSED)
def test_kv_overrides_are_read(given: str, expected: list[tuple[str, str, Any]]) -> None:
    assert parse_kv_overrides(given) == expected


REFUSED = {
    "nothing": ("", "malformed KV override ''"),
    "no value": ("k", "malformed KV override 'k'"),
    "a long key": (f"{'k' * 128}=int:1", "malformed KV override"),
    "no type": (
        "k=v",
        "invalid type for KV override 'k=v': it is KEY=TYPE:VALUE, and TYPE is int, float, bool or str",
    ),
    "another type": ("k=string:v", "invalid type for KV override"),
    "another type's case": ("k=Int:1", "invalid type for KV override"),
    "no boolean": ("k=bool:1", "invalid boolean value for KV override 'k=bool:1'"),
    "a long text": (f"k=str:{'é' * 64}", "value cannot exceed 127 chars"),
    "the second of two": ("k=int:1,", "malformed KV override ''"),
}


@pytest.mark.parametrize(("given", "said"), REFUSED.values(), ids=REFUSED)
def test_kv_overrides_that_llama_cpp_refuses(
    given: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["tokenize", "-m", str(GPT2), "--override-kv", given, "-p", "a"]) != 0
    assert said in capfd.readouterr().err


LEFT_OUT = {
    "another type than the key's": (
        f"{K.ADD_BOS}=int:1",
        f"bad metadata override type for key '{K.ADD_BOS}', expected bool but got int",
    ),
    "an array": (f"{K.MERGES}=str:a b", "is an array, which llama.cpp does not override"),
    "a key of the model's": ("llama.context_length=int:1", "'llama.context_length' is not a tokenizer key"),
}


@pytest.mark.parametrize(("given", "reason"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_kv_overrides_that_are_left_out(given: str, reason: str) -> None:
    values, [told] = applicable(parse_kv_overrides(given))
    assert (values, reason in told) == ({}, True)


def test_the_first_override_of_a_key_counts_and_ids_wrap_around() -> None:
    """llama.cpp: kv_overrides.insert, and an int64 that becomes a uint32."""
    given = f"{K.PRE}=str:olmo,{K.PRE}=str:mpt,{K.EOS_ID}=int:-1"
    assert applicable(parse_kv_overrides(given)) == ({K.PRE: "olmo", K.EOS_ID: 2**32 - 1}, [])
    values, [told] = applicable(parse_kv_overrides(f"{K.PRE}=int:1,{K.PRE}=str:mpt"))
    assert (values, "expected str but got int" in told) == ({}, True)


COMMANDS = {
    "tokenize": ["--ids", "-p", "a1234"],
    "detokenize": ["64"],
    "count": ["FILE"],
    "info": [],
    "explain": ["-p", "a1234"],
    "stats": ["FILE"],
    "diagnose": ["-p", "a", "--ids", "[64]"],
    "verify": ["--against", "GPT2", "-p", "a"],
    "export": ["--to", "tiktoken", "--no-check", "-o", "OUT"],
    "doctor": [],
    "diff": ["MODEL"],
    "fix": ["-o", "OUT"],
    "train": ["FILE", "--vocab-size", "50260", "-o", "OUT.gguf"],
}
_NAMED_BY = {"diff": [], "train": ["--seed-vocab"]}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_whose_name_is_too_new_opens_under_another(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without the override it is an error that names this way out, with it every command that opens a model goes on."""
    model = with_pre(GPT2, "newer-than-we-are", tmp_path / "model.gguf")
    (tmp_path / "file.txt").write_text("a1234\n")
    places = {
        "FILE": tmp_path / "file.txt",
        "MODEL": model,
        "OUT": tmp_path / "out",
        "OUT.gguf": tmp_path / "out.gguf",
    }
    arguments = [str(places.get(each, each)).replace("GPT2", str(GPT2)) for each in COMMANDS[command]]
    given = [command, *_NAMED_BY.get(command, ["-m"]), str(model), *arguments]
    assert main(given) != 0
    told = capfd.readouterr()
    assert ("newer-than-we-are" if command != "fix" else "nothing to change") in told.err + told.out
    if command not in ("doctor", "fix"):
        said = " ".join(told.err.split())
        assert "made with gpt-2, which keeps 49478 of 49478 tokens whole (100.00%)" in said
        assert f"ggufbpe tokenize -m {model} --override-kv {K.PRE}=str:gpt-2 -p" in said
    assert main([*given, "--override-kv", f"{K.PRE}=str:gpt-2"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("pre", ["sophia", "elmod", "domyn-small"])
def test_an_unknown_name_comes_with_the_nearest_by_the_tokens(pre: str, tmp_path: Path) -> None:
    model = with_pre(GPT2, pre, tmp_path / "model.gguf")
    with pytest.raises(UnknownPreTokenizerError) as error:
        Tokenizer.from_gguf(model)
    assert (error.value.nearest, error.value.share) == ("gpt-2", 1.0)
    said = f'ggufbpe tokenize -m {model} --override-kv {K.PRE}=str:gpt-2 -p "Hello world"'
    assert str(error.value).endswith(said)
    assert Tokenizer.from_gguf(model, overrides={K.PRE: error.value.nearest}).encode("a") == [64]


def test_an_unknown_name_whose_tokens_no_name_allows(tmp_path: Path) -> None:
    """Tokens that go across spaces, as of a model that takes the whole text for one word."""
    merges = [merge for a in "abcdef" for b in "abcdef" for merge in (f"{a} Ġ", f"{a}Ġ {b}")]
    tokens = [*byte_alphabet(), *dict.fromkeys(merge.replace(" ", "") for merge in merges)]
    keys = {
        "general.architecture": "llama",
        K.MODEL: "gpt2",
        K.PRE: "sophia",
        K.LIST: tokens,
        K.MERGES: merges,
    }
    model = write_metadata(tmp_path / "model.gguf", keys)
    with pytest.raises(
        UnknownPreTokenizerError, match="no known name fits, so some ids will be wrong"
    ) as error:
        Tokenizer.from_gguf(model)
    assert error.value.share < 0.5
    assert f"str:{error.value.nearest} -p" in str(error.value)


def test_an_unknown_name_without_tokens_to_judge_by(tmp_path: Path) -> None:
    keys = {
        "general.architecture": "llama",
        K.MODEL: "gpt2",
        K.PRE: "sophia",
        K.LIST: ["a"],
        K.MERGES: ["a b"],
    }
    with pytest.raises(UnknownPreTokenizerError, match="list-pre") as error:
        Tokenizer.from_gguf(write_metadata(tmp_path / "model.gguf", keys))
    assert error.value.nearest == ""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fix", "train"])
def test_what_is_written_has_the_overridden_values(command: str, tmp_path: Path) -> None:
    model, out = with_pre(GPT2, "newer-than-we-are", tmp_path / "model.gguf"), tmp_path / "out.gguf"
    (tmp_path / "file.txt").write_text("abcd abcd")
    given = {"fix": ["-m", str(model)], "train": [str(tmp_path / "file.txt"), "--seed-vocab", str(model)]}[
        command
    ]
    size = ["--vocab-size", "50258"] if command == "train" else []
    override = ["--override-kv", f"{K.PRE}=str:olmo,{K.ADD_BOS}=bool:true,{K.UNK_ID}=int:7"]
    assert main([command, *given, *size, *override, "-o", str(out)]) == 0
    tok = Tokenizer.from_gguf(out)
    assert (tok.pre, tok.add_bos, tok.unk_id) == ("olmo", True, 7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was not an end-of-generation token")
def test_a_seed_loses_the_keys_that_are_overridden_with_none(tmp_path: Path) -> None:
    trained = train(
        ["abcd abcd"], vocab_size=50258, seed_vocab=GPT2, seed_overrides={K.ADD_BOS: True, K.EOS_ID: None}
    )
    trained.save(tmp_path / "out.gguf")
    with GGUFFile(tmp_path / "out.gguf") as file:
        assert (file[K.ADD_BOS], K.EOS_ID in file) == (True, False)


@pytest.mark.parametrize("oracle", ["llama-cpp-python", "llama-tokenize"])
def test_llama_cpp_is_asked_about_the_overridden_model(oracle: str, tmp_path: Path) -> None:
    """The file has a name that it would refuse; llama-bpe cuts digits by threes, GPT-2 does not."""
    if oracle == "llama-cpp-python" and not library_is_installed():
        missing("no llama-cpp-python: `python scripts/reference.py prepare --package` installs it")
    if oracle == "llama-tokenize":
        try:
            oracle = f"llama-tokenize:{llama_tokenize_command()}"
        except NotPreparedError as error:
            missing(str(error))
    model = with_pre(GPT2, "newer-than-we-are", tmp_path / "model.gguf")
    override = ["--override-kv", f"{K.PRE}=str:llama-bpe,{K.ADD_BOS}=bool:true"]
    given = ["verify", "-m", str(model), "--against", oracle, "-p", "It's 1234567", *override]
    assert main(given) == 0
