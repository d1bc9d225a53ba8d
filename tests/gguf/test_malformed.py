"""Files that lie: each has a named error that says where and what to do, and nothing worse happens.

fixtures/malformed has one file for each way to lie, and `expected.json` beside them says what must come of
each; both are made by tests/makers/make_malformed.py. Behind them come random damage to a sound vocabulary, and
random sound sections, which must read back as written.
"""

from __future__ import annotations

import gc
import json
import math
import pickle
import random
import re
import shutil
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
from damage import damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import bounded

from ggufbpe import GGUFError, Tokenizer
from ggufbpe._util import errors
from ggufbpe.gguf.reader import GGUFFile

pytestmark = pytest.mark.both_engines

ROOT = Path(__file__).resolve().parents[2]
MALFORMED = ROOT / "fixtures" / "malformed"
VARIANTS = ROOT / "fixtures" / "variants"

EXPECTED: dict[str, dict[str, Any]] = json.loads((MALFORMED / "expected.json").read_text(encoding="utf-8"))
REFUSED = sorted(name for name, case in EXPECTED.items() if case["error"])
ACCEPTED = sorted(name for name, case in EXPECTED.items() if not case["error"])
OF_THE_READER = {  # errors that need no knowledge of tokenizers
    "NotGGUFError",
    "UnsupportedVersionError",
    "TruncatedFileError",
    "CorruptMetadataError",
    "DuplicateKeyError",
}


def refusal(opening: Callable[[Path], Any], path: Path) -> GGUFError:
    """The error that `opening` the file raises. Warnings before it are no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(GGUFError) as caught:
            opening(path)
    return caught.value


def read_all(path: Path) -> dict[str, Any]:
    """Every value of the file, decoded."""
    with GGUFFile(path) as file:
        return dict(zip(file, map(file.__getitem__, file), strict=True))


# ---- the folder -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_folder_is_what_the_script_writes(tmp_path: Path) -> None:
    script = ROOT / "tests" / "makers" / "make_malformed.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in MALFORMED.iterdir()}
    assert set(written) == {*EXPECTED, "expected.json"}


def test_every_kind_of_error_is_in_the_folder() -> None:
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, GGUFError)
    }
    # test_fix.py, test_names.py, test_tensors.py
    beside_the_file = {"InterruptedChangeError", "StoreError", "TensorError"}
    beside_the_file |= {
        "OfflineError",
        "RemoteAccessError",
        "RemoteError",
        "RemoteNotFoundError",
    }  # test_remote.py
    assert {EXPECTED[name]["error"] for name in REFUSED} | beside_the_file == kinds


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_named_error(name: str) -> None:
    case = EXPECTED[name]
    error = refusal(Tokenizer.from_gguf, MALFORMED / name)
    if case["error"] == "GGUFError":  # any of them
        assert type(error) is not GGUFError
    else:
        assert type(error).__name__ == case["error"]
    assert error.key == case["key"]
    if case["offset"] is None:
        assert error.offset is None
    else:
        first, last = case["offset"]
        assert error.offset is not None
        assert first <= error.offset <= last


@pytest.mark.parametrize("name", REFUSED)
def test_message_says_what_where_and_what_to_do(name: str) -> None:
    case = EXPECTED[name]
    error = refusal(Tokenizer.from_gguf, MALFORMED / name)
    message = str(error)
    assert str(MALFORMED / name) in message
    assert error.offset is None or f"byte {error.offset}" in message
    assert error.key is None or errors.printable(error.key) in message
    assert error.remedy
    assert error.remedy in message
    assert message.isprintable()  # one line, no escape sequences
    assert len(message) < len(str(MALFORMED / name)) + 700
    assert [word for word in case["words"] if word.lower() not in message.lower()] == []


@pytest.mark.parametrize("name", [name for name in REFUSED if EXPECTED[name]["error"] in OF_THE_READER])
def test_the_reader_alone_refuses_what_no_section_can_hold(name: str) -> None:
    alone = refusal(GGUFFile, MALFORMED / name)
    whole = refusal(Tokenizer.from_gguf, MALFORMED / name)
    assert (type(alone), str(alone)) == (type(whole), str(whole))


@pytest.mark.parametrize(
    "name",
    [name for name in REFUSED if EXPECTED[name]["error"] not in OF_THE_READER and name != "utf8-key.gguf"],
)
def test_the_reader_alone_takes_what_only_the_tokenizer_refuses(name: str) -> None:
    with GGUFFile(MALFORMED / name) as file:
        assert len(file) == len(file.keys())


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_as_llama_cpp_does(name: str) -> None:
    words = EXPECTED[name]["words"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tokenizer = Tokenizer.from_gguf(MALFORMED / name)
        tokenizer.encode("hello world!\nhello <|endoftext|> \x00\u4f60")
    messages = [str(warning.message) for warning in caught]
    told = [*messages, *(correction.what for correction in tokenizer.vocabulary.corrections)]
    if words:
        assert any(all(word.lower() in each.lower() for word in words) for each in told), told
    else:
        assert told == []
    assert all(message.isprintable() and str(MALFORMED / name) in message for message in messages)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_memory_and_time_are_bounded_by_the_size_of_the_file(name: str) -> None:
    """No length or count of the file is believed before the bytes are there."""
    path = MALFORMED / name
    budget = 300_000 + 20 * path.stat().st_size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _attempt(Tokenizer.from_gguf, path)  # what is built on first use belongs to no file
        gc.collect()
        tracemalloc.start()
        start = time.process_time()
        _attempt(Tokenizer.from_gguf, path)
        seconds = time.process_time() - start
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < budget
    assert seconds < 5


def _attempt(opening: Callable[[Path], Any], path: Path) -> str:
    """The name of the error class, or "opens"; whatever is no `GGUFError` goes through."""
    try:
        opening(path)
    except GGUFError as error:
        return type(error).__name__ if str(error).isprintable() else "garbled message"
    return "opens"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "tab\there", "caf\u00e9 \u4f60\u597d"])
def test_names_of_files_cannot_garble_the_message(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.gguf"
    try:
        shutil.copy(MALFORMED / "empty.gguf", path)
    except OSError:
        pytest.skip("no such names here")
    error = refusal(GGUFFile, path)
    assert str(error).isprintable()
    assert error.path == str(path)
    assert (name in str(error)) == name.isprintable()


def test_errors_survive_pickling() -> None:
    for name in REFUSED:
        error = refusal(Tokenizer.from_gguf, MALFORMED / name)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize("model", ["none", "test"])
def test_unsupported_tokenizers_name_their_model(model: str) -> None:
    error = refusal(Tokenizer.from_gguf, MALFORMED / f"model-{model}.gguf")
    assert isinstance(error, errors.UnsupportedTokenizerError)
    assert error.model == model
    assert read_all(MALFORMED / f"model-{model}.gguf")["tokenizer.ggml.model"] == model


def test_no_error_of_a_lower_layer_is_in_the_chain() -> None:
    """`raise … from None`: a traceback shows no UnicodeDecodeError or struct.error beneath."""
    for name in REFUSED:
        error = refusal(Tokenizer.from_gguf, MALFORMED / name)
        assert error.__cause__ is None, name
        assert error.__context__ is None or error.__suppress_context__, name


# ---- random damage ----------------------------------------------------------------------------------

SEED = 20240229


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_random_damage_gives_a_named_error_or_a_tokenizer(
    tmp_path: Path, version: int, byteorder: str
) -> None:
    sound = (VARIANTS / f"vocabulary-version-{version}-{byteorder}.gguf").read_bytes()
    path = tmp_path / "damaged.gguf"
    outcomes: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dice = random.Random(SEED + version)
        for _ in range(1000):
            path.write_bytes(damaged(sound, dice))
            outcomes[_attempt(read_all, path)] += 1
            outcomes[_attempt(_open_and_use, path)] += 1
    assert "garbled message" not in outcomes
    assert len(outcomes) > 6  # the damage reaches many checks
    assert outcomes["opens"] > 20  # and leaves some files alone


def _open_and_use(path: Path) -> None:
    tokenizer = Tokenizer.from_gguf(path)
    ids = tokenizer.encode("hello world!\nhello <|endoftext|>")
    tokenizer.decode_bytes(ids)


@pytest.mark.slow
def test_every_truncation_gives_a_named_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    for name in ("types-version-3-little.gguf", "types-version-1-big.gguf"):
        sound = (VARIANTS / name).read_bytes()
        outcomes = set()
        for length in range(1, len(sound)):
            path.write_bytes(sound[:length])
            outcomes.add(_attempt(GGUFFile, path))
        assert outcomes == {"TruncatedFileError"}


# ---- random sound sections --------------------------------------------------------------------------

T = gguf.GGUFValueType
BITS = {
    T.UINT8: 8,
    T.UINT16: 16,
    T.UINT32: 32,
    T.UINT64: 64,
    T.INT8: 8,
    T.INT16: 16,
    T.INT32: 32,
    T.INT64: 64,
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def scalars(kind: gguf.GGUFValueType) -> st.SearchStrategy[Any]:
    """Any value of a type that is not an array."""
    if kind is T.STRING:
        return TEXT
    if kind is T.BOOL:
        return st.booleans()
    if kind is T.FLOAT32:
        return st.floats(width=32)
    if kind is T.FLOAT64:
        return st.floats()
    half = 2 ** (BITS[kind] - 1)
    return st.integers(0, 2 * half - 1) if kind.name.startswith("U") else st.integers(-half, half - 1)


KINDS = [kind for kind in T if kind is not T.ARRAY]
SINGLES = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.none(), scalars(kind)))
ARRAYS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(T.ARRAY), st.just(kind), st.lists(scalars(kind), min_size=1, max_size=20))
)
SECTIONS = st.dictionaries(TEXT.filter(bool), SINGLES | ARRAYS, max_size=12)


def equal(left: Any, right: Any) -> bool:
    """Equality in which NaN equals NaN, and True is not 1."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and bool(left == right)


@pytest.mark.slow
@settings(bounded(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(section=SECTIONS, endian=st.sampled_from(gguf.GGUFEndian))
def test_what_the_gguf_package_writes_reads_back(tmp_path: Path, section: Any, endian: Any) -> None:
    path = tmp_path / "written.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=endian)
    writer.kv_data[0].clear()  # its own general.architecture
    for key, (kind, element, value) in section.items():
        writer.add_key_value(key, value, kind, element)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with GGUFFile(path) as file:
        found = {key: (file.value_type(key), file.element_type(key), file[key]) for key in file}
        assert file.metadata_end == path.stat().st_size
    assert list(found) == list(section)
    for key, (kind, element, value) in section.items():
        assert found[key][:2] == (kind, element)
        assert equal(found[key][2], value)


def test_expected_names_are_plain() -> None:
    """The names of the files can be checked out on every system."""
    assert [name for name in EXPECTED if not re.fullmatch(r"[a-z0-9._-]+\.gguf", name, re.IGNORECASE)] == []
    assert len({name.lower() for name in EXPECTED}) == len(EXPECTED)


def test_a_file_of_one_byte_is_told_in_the_singular(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"G")
    with pytest.raises(errors.TruncatedFileError, match="ends after 1 byte, inside the magic"):
        GGUFFile(tmp_path / "model.gguf")
