"""A corrected copy: the keys that were to change changed, all else byte for byte; or nothing happened at all."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import missing
from fix_cases import ADD_BOS, EOS, PRE, TYPES, metadata, tensors, write_model
from gguf import GGUFReader
from reference import LoadError, NotPreparedError, Oracle, with_pre

import ggufbpe
from ggufbpe import ChatError, GGUFError, InterruptedChangeError, Tokenizer
from ggufbpe._util.extras import NotInstalledError
from ggufbpe._util.files import undo_record
from ggufbpe.analysis.doctor.fix import write_fixed
from ggufbpe.chat.known_templates import known_template, known_templates
from ggufbpe.chat.template.lexer import MOST_SOURCE
from ggufbpe.cli import main
from ggufbpe.gguf import edit as fix
from ggufbpe.gguf import in_place
from ggufbpe.gguf.constants import GGUFValueType, TokenizerKey, TokenType
from ggufbpe.gguf.edit_arguments import parse_remove, parse_set, parse_token_type
from ggufbpe.gguf.in_place import recover
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.schema import ID_KEYS, KEY_TYPES
from ggufbpe.gguf.token_edits import set_token_types

pytestmark = pytest.mark.tries_fixes

T = GGUFValueType


NO_ROOM = f"general.name={'x' * 300}"  # longer than what lies before the tensors: the file is copied


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return write_model(folder / "model.gguf")


def edited(
    model: Path,
    *settings: str,
    remove: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    check: bool = True,
) -> Path:
    """A copy with these settings, made by the functions."""
    with GGUFFile(model) as file:
        edits = [parse_set(file, setting) for setting in settings]
        edits += [parse_remove(file, key) for key in remove]
        edits += [set_token_types(file, map(parse_token_type, types))] if types else []
    out = model.with_name("fixed.gguf")
    write_fixed(model, out, edits, check=check)
    return out


def raw_tensors(path: Path) -> dict[str, tuple[Any, ...]]:
    """Name, type, shape, bytes and alignment of every tensor, as the gguf package reads them."""
    reader = GGUFReader(path)
    found = {
        tensor.name: (tensor.tensor_type, tensor.shape.tolist(), tensor.data.tobytes())
        for tensor in reader.tensors
    }
    assert all(int(tensor.data_offset) % reader.alignment == 0 for tensor in reader.tensors)
    return found


# ---- what is written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("name", ["x", "llama-bpe", "x" * 31, "x" * 32, "x" * 5000])
def test_tensors_stay_as_they_were_and_aligned(
    tmp_path: Path, alignment: int | None, byteorder: str, name: str
) -> None:
    model = write_model(tmp_path / "model.gguf", alignment=alignment, byteorder=byteorder)
    out = edited(model, f"general.name={name}")
    assert raw_tensors(out) == raw_tensors(model)
    assert len(raw_tensors(out)) == len(tensors())
    assert metadata(out) == metadata(model) | {"general.name": name}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_version_and_byte_order_stay(tmp_path: Path, version: int, byteorder: str) -> None:
    model = write_model(tmp_path / "model.gguf", version=version, byteorder=byteorder)
    out = edited(model, f"{PRE}=llama-bpe", f"{EOS}=3")
    with GGUFFile(out) as file:
        assert (file.version, file.byteorder, file[PRE], file[EOS]) == (version, byteorder, "llama-bpe", 3)


def test_the_same_edit_back_gives_the_same_file(model: Path) -> None:
    there = edited(model, f"{PRE}=llama-bpe")
    back = there.with_name("back.gguf")
    with GGUFFile(there) as file:
        write_fixed(there, back, [parse_set(file, f"{PRE}=gpt-2")])
    assert there.read_bytes() != model.read_bytes()
    assert back.read_bytes() == model.read_bytes()


def test_metadata_alone_gets_no_padding(gpt2_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "fixed.gguf"
    with GGUFFile(gpt2_path) as file:
        write_fixed(gpt2_path, out, [parse_set(file, f"{PRE}=olmo")])
        end = file.metadata_end
    padded = gpt2_path.stat().st_size > end
    with GGUFFile(out) as file:
        assert (out.stat().st_size > file.metadata_end) == padded


def test_keys_keep_their_order_and_new_ones_come_last(model: Path) -> None:
    out = edited(model, f"{ADD_BOS}=true", f"{PRE}=llama-bpe", remove=("general.name",))
    keys = [key for key in metadata(model) if key != "general.name"]
    assert list(metadata(out)) == [*keys, ADD_BOS]


@pytest.mark.slow
def test_llama_cpp_runs_the_copy(tmp_path: Path) -> None:
    """A whole model, tensors and all, as llama.cpp loads it for inference."""
    from make_tiny_model import make_tiny_model

    try:
        model = make_tiny_model(tmp_path / "model.gguf", changes={PRE: "default"})
        out = tmp_path / "fixed.gguf"
        assert main(["fix", str(model), "--set", f"{PRE}=gpt-2", "-o", str(out)]) == 0
        with Oracle(out) as oracle:
            ids = oracle.tokenize([b"It's 2024"], True, True)
    except (NotPreparedError, ImportError) as error:
        missing(str(error))
    assert ids == [Tokenizer.from_gguf(out).encode("It's 2024")]
    assert raw_tensors(out) == raw_tensors(model)
    script = (
        "import llama_cpp, sys\n"
        "model = llama_cpp.Llama(sys.argv[1], n_ctx=64, verbose=False, n_threads=1)\n"
        "model.eval([1, 2, 3])\n"
        "print(float(model.scores[:3].sum()))\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
        for path in (model, out)
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[1].stderr[-2000:]
    assert runs[0].stdout == runs[1].stdout != ""


def test_memory_does_not_grow_with_the_tensors(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing longer than a block is written at once, but the packed keys."""
    monkeypatch.setattr(GGUFFile, "COPIED_BLOCK", 16)
    with GGUFFile(model) as file:
        head = fix._Layout(file, [parse_set(file, f"{PRE}=llama-bpe")]).head()
    assert head is not None
    new = [part for part in head.parts if isinstance(part, bytes)]
    assert sum(map(len, new)) < 200
    out = edited(model, f"{PRE}=llama-bpe")
    assert raw_tensors(out) == raw_tensors(model)


# ---- values ---------------------------------------------------------------------------------------------

GOOD = [
    (f"{PRE}=a=b", T.STRING, "a=b"),
    (f"{PRE}=STRING:UINT32:5", T.STRING, "UINT32:5"),
    (f"{PRE}=", T.STRING, ""),
    (f"{EOS}=0x10", T.UINT32, 16),
    (f"{ADD_BOS}=true", T.BOOL, True),
    (f"{ADD_BOS}=0", T.BOOL, False),
    ("general.name=true", T.STRING, "true"),
    ("new.key=UINT8:255", T.UINT8, 255),
    ("new.key=INT8:-128", T.INT8, -128),
    ("new.key=FLOAT32:0.5", T.FLOAT32, 0.5),
    ("new.key=UINT64:18446744073709551615", T.UINT64, 2**64 - 1),
    ("new.key=INT32:[1, -2]", T.ARRAY, [1, -2]),
    ("new.key=FLOAT32:[1, 0.5]", T.ARRAY, [1.0, 0.5]),
    ("new.key=BOOL:[true, false]", T.ARRAY, [True, False]),
    ('tokenizer.ggml.merges=["a b"]', T.ARRAY, ["a b"]),
    ("tokenizer.ggml.suppress_tokens=[1]", T.ARRAY, [1]),
]


@pytest.mark.parametrize(("setting", "kind", "value"), GOOD, ids=[case[0] for case in GOOD])
def test_a_value_has_the_type_of_its_key(model: Path, setting: str, kind: GGUFValueType, value: Any) -> None:
    key = setting.partition("=")[0]
    with GGUFFile(model) as file:
        edit = parse_set(file, setting)
    out = model.with_name("fixed.gguf")
    write_fixed(model, out, [edit], check=False)
    with GGUFFile(out) as file:
        assert (file.value_type(key), file[key]) == (kind, value)


BAD = [
    (PRE, "not of the form KEY=VALUE"),
    ("=x", "not of the form KEY=VALUE"),
    ("new.key=5", "say its type"),
    (f"{EOS}=-1", "neither an id nor the text of a special token"),
    (f"{EOS}=4294967296", "not a value of type UINT32"),
    (f"{EOS}=five", "neither an id nor the text of a special token"),
    (f"{ADD_BOS}=maybe", "not a value of type BOOL"),
    ("new.key=INT8:128", "not a value of type INT8"),
    ("new.key=INT8:[1, 128]", "not a JSON list of INT8"),
    ("new.key=INT32:[true]", "not a JSON list of INT32"),
    ("new.key=INT32:[]", "empty array"),
    ("tokenizer.ggml.merges=a b", "not a JSON list of STRING"),
    ("new.key=STRING:\udcff", "'new.key=STRING:\\udcff' is not UTF-8"),
    ("new.\udcff=STRING:a", "'new.\\udcff=STRING:a' is not UTF-8"),
    (r'new.key=STRING:["\ud800"]', "not a JSON list of STRING"),
]


@pytest.mark.parametrize(("setting", "message"), BAD, ids=[case[0] for case in BAD])
def test_what_is_no_value_is_refused(
    model: Path, setting: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["fix", str(model), "--set", setting, "-o", str(model.with_name("out.gguf"))]) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1
    assert os.listdir(model.parent) == ["model.gguf"]


def test_an_id_out_of_range_is_refused_where_it_was_set(
    model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the doctor calls it an error; one that was there before is none of this edit's."""
    before, out = model.read_bytes(), model.with_name("out.gguf")
    for key in ID_KEYS:
        assert main(["fix", str(model), "--set", f"{key}=999999", "-o", str(out)]) == 2
        assert "999999 is out of range: the vocabulary has ids 0 to 12" in capfd.readouterr().err
        assert unchanged(model, before)
    assert main(["fix", str(model), "--set", f"{EOS}=999999", "--in-place", "--force"]) == 0
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "-o", str(out)]) == 0
    assert "999999 is out of range" in capfd.readouterr().err
    assert metadata(out)[PRE] == "olmo"


def test_one_error_after_the_other_can_be_mended(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = edited(model, f"{PRE}=nonsense", f"{ADD_BOS}=UINT8:1", check=False)
    half, whole = model.with_name("half.gguf"), model.with_name("whole.gguf")
    assert main(["fix", str(broken), "--set", f"{PRE}=still-nonsense", "-o", str(half)]) == 2
    assert main(["fix", str(broken), "--set", f"{PRE}=olmo", "-o", str(half)]) == 0
    assert "must be of type BOOL" in capfd.readouterr().err
    assert main(["fix", str(half), "--set", f"{ADD_BOS}=true", "-o", str(whole)]) == 0
    assert Tokenizer.from_gguf(whole).add_bos


def test_key_types_are_those_that_opening_wants(model: Path) -> None:
    """A key of any other type is refused, of this type never."""
    others = {T.STRING: "UINT32:1", T.UINT32: "STRING:x", T.BOOL: "UINT32:1"}
    checked = 0
    for key, wanted in KEY_TYPES.items():
        if isinstance(wanted, tuple) or key == TokenizerKey.CHAT_TEMPLATE:
            continue
        with GGUFFile(model) as file:
            edit = parse_set(file, f"{key}={others[wanted]}")
        with pytest.raises(GGUFError, match="must be"):
            write_fixed(model, model.with_name("out.gguf"), [edit])
        checked += 1
    assert checked > 25


@pytest.mark.parametrize("token", ["3", "c"])
def test_token_types_by_id_and_by_text(model: Path, token: str) -> None:
    out = edited(model, types=(f"{token}=USER_DEFINED", "h=UNUSED"))
    types = metadata(model)[TYPES]
    expected = [*types[:3], TokenType.USER_DEFINED, *types[4:8], TokenType.UNUSED, *types[9:]]
    assert metadata(out)[TYPES] == expected
    assert Tokenizer.from_gguf(out).encode("abcab") == [11, 3, 11]


def test_token_types_where_the_file_has_none(model: Path) -> None:
    bare = edited(model, remove=(TYPES,))
    with GGUFFile(bare) as file:
        edit = set_token_types(file, [(0, "CONTROL")])
    assert edit.value == metadata(model)[TYPES]


def test_token_types_of_a_range(model: Path) -> None:
    out = edited(model, types=("3..5=USER_DEFINED", "4=UNUSED"))
    assert metadata(out)[TYPES][2:7] == [TokenType[kind] for kind in RANGE]


RANGE = ("NORMAL", "USER_DEFINED", "UNUSED", "USER_DEFINED", "NORMAL")
NO_TYPES = [
    "99=CONTROL",
    "3=SPECIAL",
    "zz=CONTROL",
    "CONTROL",
    "1..99=CONTROL",
    "5..4=CONTROL",
    "3..=CONTROL",
]


@pytest.mark.parametrize("argument", NO_TYPES)
def test_token_types_that_make_no_sense_are_refused(model: Path, argument: str) -> None:
    assert main(["fix", str(model), "--set-token-type", argument, "-o", str(model.with_name("o.gguf"))]) == 2
    assert os.listdir(model.parent) == ["model.gguf"]


# ---- what is refused, and what stays whole --------------------------------------------------------------


def unchanged(model: Path, before: bytes) -> bool:
    """Whether the model is as it was, and nothing lies beside it."""
    return model.read_bytes() == before and os.listdir(model.parent) == [model.name]


def test_a_copy_that_cannot_be_opened_is_not_written(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = model.read_bytes()
    arguments = ["fix", str(model), "--set", f"{PRE}=no-such-name"]
    assert main([*arguments, "--in-place"]) == 2
    assert main([*arguments, "-o", str(model.with_name("fixed.gguf"))]) == 2
    problem, copy = capfd.readouterr().err.splitlines()
    assert problem.startswith(f"ggufbpe: error: key '{PRE}': unknown pre-tokenizer 'no-such-name'")
    assert problem.endswith("give another value (nothing was written; --force writes it)")
    assert copy == problem
    assert unchanged(model, before)
    assert main([*arguments, "--in-place", "--force"]) == 0
    assert metadata(model)[PRE] == "no-such-name"


def test_where_it_goes_must_be_said_and_be_another_file(
    model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = model.read_bytes()
    link = model.parent.parent / "link.gguf"
    link.symlink_to(model)
    setting = ["fix", str(model), "--set", f"{PRE}=olmo"]
    for arguments, message in (
        (setting, "-o PATH, or --in-place"),
        ([*setting, "-o", str(model)], "--in-place"),
        ([*setting, "-o", str(model), "--force"], "--in-place"),
        ([*setting, "-o", str(link), "--force"], "--in-place"),
        ([*setting, "-o", str(model.parent)], "is a directory"),
        ([*setting, "-o", f"{model.parent / 'none'}/"], "none/: Is a directory"),
        ([*setting, "-o", str(model.parent / "none" / "x.gguf")], "No such file"),
        ([*setting, "-o", "x.gguf", "--in-place"], "-o PATH, or --in-place"),
        (["fix", str(model), "-o", "x.gguf"], "nothing to change: give one of --set, --remove"),
        (["fix", str(model)], "nothing to change: give one of --set, --remove"),
        ([*setting, "--set", f"{PRE}=mpt", "-o", "x.gguf"], "changed twice"),
        (["fix", str(model), "--remove", "tokenizer.ggml.pr", "-o", "x.gguf"], "near: tokenizer.ggml.pre"),
        (["fix", "--set", f"{PRE}=olmo", "-o", "x.gguf"], "which model"),
        (["fix", str(model), "--set", "general.alignment=UINT32:64", "-o", "x.gguf"], "cannot change"),
    ):
        assert main(arguments) == 2
        assert message in capfd.readouterr().err
        assert unchanged(model, before)


def test_an_existing_file_needs_force(model: Path) -> None:
    out = model.with_name("fixed.gguf")
    out.write_bytes(b"precious")
    arguments = ["fix", str(model), "--set", f"{PRE}=olmo", "-o", str(out)]
    assert main(arguments) == 2
    assert out.read_bytes() == b"precious"
    assert main([*arguments, "--force"]) == 0
    assert metadata(out)[PRE] == "olmo"


def test_in_place_keeps_permissions_and_links(model: Path) -> None:
    model.chmod(0o640)
    link = model.parent.parent / "link.gguf"
    link.symlink_to(model)
    assert main(["fix", str(link), "--set", f"{PRE}=olmo", "--in-place"]) == 0
    assert link.is_symlink()
    assert metadata(model)[PRE] == "olmo"
    assert model.stat().st_mode & 0o777 == 0o640
    assert os.listdir(model.parent) == [model.name]


def test_a_new_file_gets_the_usual_permissions(model: Path) -> None:
    out, plain = edited(model, f"{PRE}=olmo"), model.with_name("plain")
    plain.write_bytes(b"")
    assert out.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("after", [0, 100, 800])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_and_an_interruption_leave_the_file_whole(
    model: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, after: int
) -> None:
    before = model.read_bytes()
    copy, written = fix._copy, [0]

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: bytes) -> None:
            written[0] += len(data)
            self.file.write(data)
            if written[0] > after:
                raise failure

    monkeypatch.setattr(fix, "_copy", lambda source, parts, file: copy(source, parts, Full(file)))
    code = main(["fix", str(model), "--set", NO_ROOM, "--in-place"])
    assert code == (2 if isinstance(failure, OSError) else 130)
    assert written[0] > after
    assert unchanged(model, before)


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failure_at_the_end_leaves_the_file_whole(
    model: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = model.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with GGUFFile(model) as file:
        edits = [parse_set(file, NO_ROOM)]
    monkeypatch.setattr(fix.os, step, fail)
    with pytest.raises(OSError, match="Input/output"):
        write_fixed(model, model, edits)
    monkeypatch.undo()
    assert unchanged(model, before)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on file sizes")
def test_a_limit_on_file_sizes_leaves_the_file_whole(model: Path) -> None:
    """The system's own refusal, in the middle of the copy."""
    before = model.read_bytes()
    script = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) // 2}, {len(before) // 2}))\n"
        "from ggufbpe.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "fix", str(model), "--set", NO_ROOM, "--in-place"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert "File too large" in run.stderr
    assert unchanged(model, before)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("is_nameless", [False, True])
def test_signals_leave_the_file_whole(
    model: Path, number: signal.Signals, code: int, is_nameless: bool
) -> None:
    before = model.read_bytes()
    script = (
        "import sys, time\n"
        "from ggufbpe._util import files\n"
        f"files._NAMELESS *= {is_nameless:d}\n"
        "from ggufbpe.gguf import edit as fix\n"
        "copy = fix._copy\n"
        "def slowly(*arguments):\n"
        "    copy(*arguments)\n"
        "    print('copied', flush=True)\n"
        "    time.sleep(60)\n"
        "fix._copy = slowly\n"
        "from ggufbpe.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "fix", str(model), "--set", NO_ROOM, "--in-place"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"copied\n"
        assert is_nameless or len(os.listdir(model.parent)) == 2  # the copy lies beside it
        child.send_signal(number)
        assert child.wait(timeout=30) == code
    assert unchanged(model, before)


# ---- in place -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
@pytest.mark.parametrize("name", ["", "x", "a mod", "x" * 20, "x" * 33, "x" * 3000])
def test_in_place_is_what_a_copy_is(tmp_path: Path, alignment: int | None, name: str) -> None:
    """Whether there is room or not: the same keys but for the padding, and the same tensors, for every reader."""
    model = write_model(tmp_path / "model.gguf", alignment=alignment)
    copied = edited(model, f"general.name={name}")
    with GGUFFile(model) as file:
        edits = [parse_set(file, f"general.name={name}")]
    before, size = raw_tensors(model), model.stat().st_size
    done = write_fixed(model, model, edits)
    found = metadata(model)
    padding = found.pop(fix.PADDING, "")
    assert (found, raw_tensors(model), padding.strip()) == (metadata(copied), before, "")
    assert (done == "in place") is (model.stat().st_size == size)


def test_in_place_writes_the_metadata_alone(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with model.open("ab") as file:
        file.truncate(40 * 10**9)  # no block of it is written, so it takes no time and no room
    identity = model.stat().st_ino
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--remove", "general.name", "--in-place"]) == 0
    assert "only its metadata, in place; 40000000000 bytes" in capfd.readouterr().out
    assert (model.stat().st_ino, model.stat().st_size) == (identity, 40 * 10**9)
    assert (metadata(model)[PRE], model.stat().st_blocks < 10_000) == ("olmo", True)
    assert (
        main(["fix", str(model), "--set", f"{PRE}=llama-bpe", "--set", "general.name=a", "--in-place"]) == 0
    )
    assert (metadata(model)[PRE], model.stat().st_ino) == ("llama-bpe", identity)  # the padding is room again
    assert os.listdir(model.parent) == [model.name]


CRASH = """if True:
    import os, sys
    from ggufbpe.gguf import in_place
    step, size = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    write, remove = in_place._write, in_place._remove
    calls = []
    def half(file, offset, data):
        calls.append(offset)
        write(file, offset, data[:size] if len(calls) == step else data)
        if len(calls) == step:
            os._exit(9)
    in_place._write = half
    in_place._remove = lambda record: os._exit(9)
    from ggufbpe.cli import main
    sys.exit(main(sys.argv[1:]))
"""


def crashed(model: Path, step: int, size: int) -> bytes:
    """The bytes of the model before a fix in place whose process ended `size` bytes into a step of it."""
    before = model.read_bytes()
    settings = ["--set", f"{PRE}=olmo", "--set", "general.name=b"]
    command = [sys.executable, "-c", CRASH, str(step), str(size), "fix", str(model), *settings, "--in-place"]
    assert subprocess.run(command, timeout=60).returncode == 9
    assert sorted(os.listdir(model.parent)) == [f".{model.name}.undo", model.name]
    return before


STEPS = {  # what is being written: the magic away, the bytes, the magic back; or the record is still to go
    "magic": (1, 0),
    "some of the magic": (1, 2),
    "nothing": (2, 0),
    "some": (2, 40),
    "all": (2, 10**6),
    "some of the new magic": (3, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_in_place_is_found_by_the_next_run(
    model: Path, step: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = crashed(model, *STEPS[step])
    half = model.read_bytes()
    if step == "magic":
        assert half == before
        Tokenizer.from_gguf(model)  # it is whole
    else:
        assert half[:4] != b"GGUF"  # so no program takes it for a model
        with pytest.raises(InterruptedChangeError, match="`ggufbpe fix MODEL` ends it"):
            Tokenizer.from_gguf(model)
    assert main(["fix", str(model)]) == 0
    if step in ("all", "some of the new magic"):
        assert "it is now finished" in capfd.readouterr().err
        assert metadata(model)[PRE] == "olmo"
    else:
        assert "it is now undone" in capfd.readouterr().err
        assert model.read_bytes() == before
    assert os.listdir(model.parent) == [model.name]


def test_a_record_that_was_left_behind_does_no_harm(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    crashed(model, 9, 0)  # all is done but for the record
    assert Tokenizer.from_gguf(model).pre == "olmo"
    assert main(["fix", str(model)]) == 0
    assert "it is now finished" in capfd.readouterr().err
    assert os.listdir(model.parent) == [model.name]


def test_a_fix_after_a_crash_undoes_and_goes_on(model: Path) -> None:
    crashed(model, 2, 40)
    assert main(["fix", str(model), "--set", f"{PRE}=mpt", "--in-place"]) == 0
    assert metadata(model)[PRE] == "mpt"


def test_a_change_of_something_else_is_not_overwritten(model: Path) -> None:
    crashed(model, 2, 40)
    with model.open("r+b") as file:
        file.write(b"GGUF" + bytes(model.stat().st_size - 4))
    found = model.read_bytes()
    with pytest.raises(InterruptedChangeError, match="does not fit it"):
        recover(model)
    assert model.read_bytes() == found


def planted(model: Path, offset: int, before: bytes, after: bytes, /, **other: int) -> bytes:
    """A record as somebody may write one."""
    status = model.stat()
    head = {
        "number": status.st_ino,
        "file_size": status.st_size,
        "offset": offset,
        "size": len(before),
        **other,
    }
    content = struct.pack("<QQQQ", *head.values()) + before + after
    return b"ggufbpe undo 1\n" + hashlib.sha256(content).digest() + content


NO_RECORDS: dict[str, Callable[[Path], bytes]] = {
    "empty": lambda model: b"",
    "text": lambda model: b"x" * 200,
    "cut off": lambda model: planted(model, 20, b"abcd", b"efgh")[:-1],
    "damaged": lambda model: planted(model, 20, b"abcd", b"efgh")[:-1] + b"x",
    "a size that lies": lambda model: planted(model, 20, b"aaaabbbb", b"", size=1 << 60),
    "a place that lies": lambda model: planted(model, 20, b"aaaa", b"bbbb", offset=(1 << 64) - 1),
    "the magic": lambda model: planted(model, 0, b"GGUF", b"XXXX"),
    "of another file": lambda model: planted(model, 20, b"aaaa", b"bbbb", number=7),
    "of another size": lambda model: planted(model, 20, b"aaaa", b"bbbb", file_size=7),
}


@pytest.mark.parametrize("kind", NO_RECORDS)
def test_what_is_no_record_of_the_file_does_nothing(kind: str, model: Path) -> None:
    """Somebody may have put it there, or the model was downloaded again."""
    before, record = model.read_bytes(), NO_RECORDS[kind](model)
    Path(undo_record(model)).write_bytes(record)
    assert recover(model) is None
    assert Tokenizer.from_gguf(model).pre == "gpt-2"
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 2
    assert (model.read_bytes(), Path(undo_record(model)).read_bytes()) == (before, record)
    Path(undo_record(model)).unlink()
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 0
    assert (metadata(model)[PRE], os.listdir(model.parent)) == ("olmo", [model.name])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
@pytest.mark.parametrize(
    "make", [os.mkdir, getattr(os, "mkfifo", None), lambda path: os.symlink("/dev/zero", path)]
)
def test_a_record_is_a_regular_file(make: Any, model: Path) -> None:
    make(undo_record(model))
    assert recover(model) is None
    assert Tokenizer.from_gguf(model).pre == "gpt-2"


def test_a_record_is_for_nobody_else_to_read(model: Path) -> None:
    model.chmod(0o600)
    crashed(model, 2, 40)
    assert Path(undo_record(model)).stat().st_mode & 0o777 == 0o600


def test_other_names_of_a_file_keep_what_they_had(model: Path) -> None:
    other = model.parent.parent / "other.gguf"
    os.link(model, other)
    before = other.read_bytes()
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 0
    assert (metadata(model)[PRE], other.read_bytes() == before) == ("olmo", True)


def test_a_long_name(tmp_path: Path) -> None:
    model = write_model(tmp_path / ("x" * 245 + ".gguf"))
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 0
    assert (metadata(model)[PRE], len(os.listdir(tmp_path))) == ("olmo", 1)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_in_place_is_undone_at_once(
    model: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, at: int
) -> None:
    before, write, calls = model.read_bytes(), in_place._write, []

    def once(file: Any, offset: int, data: bytes) -> None:
        calls.append(offset)
        write(file, offset, data[:3] if len(calls) == at else data)
        if len(calls) == at:
            raise failure

    monkeypatch.setattr(in_place, "_write", once)
    code = main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"])
    assert code == (2 if isinstance(failure, OSError) else 130)
    assert (len(calls), unchanged(model, before)) == (at + 3, True)


def test_a_fix_in_place_that_is_refused_writes_nothing(model: Path) -> None:
    before = model.read_bytes()
    assert main(["fix", str(model), "--set", f"{EOS}=99999", "--in-place"]) == 2
    assert unchanged(model, before)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems share blocks in other ways")
@pytest.mark.parametrize("alignment", [None, 4096, 1 << 18])
def test_a_copy_shares_the_blocks_of_tensors_where_it_can(
    tmp_path: Path, alignment: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the system's call by its contract: of whole blocks, both at places that a block divides, or it fails."""
    import fcntl

    asked = []

    def clone(target: int, request: int, given: bytes) -> int:
        source, start, size, at = struct.unpack("qQQQ", given)
        end = start + size if size else os.fstat(source).st_size
        assert (request, start % 4096, at % 4096) == (0x4020940D, 0, 0)
        assert end == os.fstat(source).st_size or end % 4096 == 0
        os.pwrite(target, os.pread(source, end - start, start), at)
        asked.append(end - start)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", clone)
    model = write_model(tmp_path / "model.gguf", alignment=alignment)
    with model.open("ab") as file:
        file.write(bytes(range(256)) * 10_000)
    out = edited(model, NO_ROOM)
    assert raw_tensors(out) == raw_tensors(model)
    assert out.read_bytes().endswith(bytes(range(256)) * 10_000)
    assert asked[-1] > 2_000_000
    found = metadata(out)
    assert (found.pop(fix.PADDING, "").strip(), found) == ("", metadata(model) | {"general.name": "x" * 300})


# ---- files that are not sound ---------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0.3, 0.62])
def test_a_truncated_file_is_not_copied(model: Path, kept: float) -> None:
    data = model.read_bytes()
    with GGUFFile(model) as file:
        end = file.metadata_end
    cut = int(end * kept) if kept < 0.5 else end + 20  # in the metadata, in the list of tensors
    model.write_bytes(data[:cut])
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 2
    assert unchanged(model, data[:cut])


def test_version_1_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from conftest import ROOT

    old = ROOT / "fixtures" / "variants" / "vocabulary-version-1-little.gguf"
    out = tmp_path / "fixed.gguf"
    assert main(["fix", str(old), "--set", f"{PRE}=olmo", "-o", str(out)]) == 2
    assert "version 1" in capfd.readouterr().err
    assert not out.exists()


def test_other_tokenizers_can_be_fixed_as_well(tmp_path: Path, model: Path) -> None:
    other = tmp_path / "other.gguf"
    with GGUFFile(model) as file:
        edit = parse_set(file, "tokenizer.ggml.model=test")
    write_fixed(model, other, [edit])
    assert metadata(other)["tokenizer.ggml.model"] == "test"


@pytest.mark.slow
def test_a_wrong_flag_mended_is_what_llama_cpp_takes(gpt2_path: Path, tmp_path: Path) -> None:
    broken = with_pre(gpt2_path, None, tmp_path / "broken.gguf", extra={ADD_BOS: 1})  # UINT32
    out = tmp_path / "fixed.gguf"
    assert main(["fix", str(broken), "--set", f"{ADD_BOS}=true", "-o", str(out)]) == 0
    try:
        with Oracle(out) as oracle:
            assert oracle.describe().add_bos
            with pytest.raises(LoadError):
                oracle.open(broken)
    except NotPreparedError as error:
        missing(str(error))


# ---- chat templates -------------------------------------------------------------------------------------

TEMPLATE, NAMES = TokenizerKey.CHAT_TEMPLATE, TokenizerKey.CHAT_TEMPLATES
PLAIN = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
ONLY_WITH_TOOLS = "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}" + PLAIN
QWEN = "Qwen-Qwen3-0.6B"

# What --chat-template says, and the keys that it sets; the file plain.jinja has PLAIN, tools.jinja ONLY_WITH_TOOLS.
CHAT_TEMPLATES: dict[str, tuple[list[str], dict[str, object]]] = {
    "a file": (["plain.jinja"], {TEMPLATE: PLAIN}),
    "a byte order mark": (["marked.jinja"], {TEMPLATE: PLAIN}),
    "one of llama.cpp's": ([f"known:{QWEN}"], {TEMPLATE: known_template(QWEN).source}),
    "in another case": ([f"known:{QWEN.upper()}"], {TEMPLATE: known_template(QWEN).source}),
    "the name that means none": (["default=plain.jinja"], {TEMPLATE: PLAIN}),
    "for chats with tools": (
        ["tool_use=tools.jinja"],
        {f"{TEMPLATE}.tool_use": ONLY_WITH_TOOLS, NAMES: ["tool_use"]},
    ),
    "several": (
        ["plain.jinja", "tool_use=tools.jinja", f"rag=known:{QWEN}"],
        {
            TEMPLATE: PLAIN,
            f"{TEMPLATE}.tool_use": ONLY_WITH_TOOLS,
            f"{TEMPLATE}.rag": known_template(QWEN).source,
            NAMES: ["tool_use", "rag"],
        },
    ),
}


@pytest.fixture
def template_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of templates, good and bad, which is the current one."""
    for name, data in {
        "plain.jinja": PLAIN.encode(),
        "marked.jinja": PLAIN.encode("utf-8-sig"),
        "tools.jinja": ONLY_WITH_TOOLS.encode(),
        "open.jinja": b"{% for message in messages %}\n{{ message.content",
        "refusing.jinja": b"a\n\n{{ raise_exception('no chats') }}",
        "latin.jinja": b"caf\xe9",
        "blank.jinja": b" \n",
        "nul.jinja": b"a\0b",
        "long.jinja": b"a" * (MOST_SOURCE + 1),
    }.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CHAT_TEMPLATES)
def test_a_chat_template_is_set(case: str, model: Path, template_files: Path) -> None:
    given, expected = CHAT_TEMPLATES[case]
    before = metadata(model)
    flags = [part for each in given for part in ("--chat-template", each)]
    assert main(["fix", str(model), *flags, "-o", "fixed.gguf"]) == 0
    after = metadata(template_files / "fixed.gguf")
    assert {key: value for key, value in after.items() if before.get(key) != value} == expected
    assert main(["fix", str(model), *flags, "--in-place"]) == 0
    assert metadata(model) == after
    assert Tokenizer.from_gguf(model).chat_templates.get("", "") == expected.get(TEMPLATE, "")


BAD_CHAT_TEMPLATES: dict[str, tuple[list[str], str]] = {
    "not closed": (["open.jinja"], "line 2 of the chat template: Parser Error: Expected }} (Got )"),
    "refuses a chat": (
        ["refusing.jinja"],
        "Jinja Exception: no chats (nothing was written; --force",
    ),
    "without the tools it wants": (["tools.jinja"], "Jinja Exception: no tools (nothing was written"),
    "not UTF-8": (["latin.jinja"], "'latin.jinja' is not UTF-8: unexpected end of data at byte 3"),
    "white space": (["blank.jinja"], "'blank.jinja' is empty; to remove the model's"),
    "a NUL": (["nul.jinja"], "'nul.jinja' contains a NUL character"),
    "too long": (["long.jinja"], "'long.jinja' has more than 1,048,576 bytes"),
    "not there": (["none.jinja"], "none.jinja: No such file or directory"),
    "unknown": (["known:Qwen3-0.6B"], "no chat template named 'Qwen3-0.6B'; near: Qwen-Qwen3-0.6B"),
    "twice": (["plain.jinja", "known:x"], "two chat templates are given"),
    "a name twice": (["a=plain.jinja", "a=plain.jinja"], "the chat template a is given twice"),
    "no name": (["naïve=plain.jinja"], "'naïve' is not a valid name of a chat template"),
}


@pytest.mark.parametrize("case", BAD_CHAT_TEMPLATES)
def test_a_chat_template_that_cannot_be_is_refused(
    case: str, model: Path, template_files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given, message = BAD_CHAT_TEMPLATES[case]
    before = model.read_bytes()
    flags = [part for each in given for part in ("--chat-template", each)]
    assert main(["fix", str(model), *flags, "--in-place"]) == 2
    assert message in capfd.readouterr().err
    assert model.read_bytes() == before
    if "nothing was written" in message:
        assert main(["fix", str(model), *flags, "--in-place", "--force"]) == 0
        assert metadata(model)[TEMPLATE] == (template_files / given[0]).read_text()


def test_a_chat_template_from_python(
    model: Path, template_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text, a path or a name; tried by jinja2 where that is installed, and by nothing with force."""
    for given in (PLAIN, PLAIN.encode(), Path("plain.jinja"), {"": PLAIN}, {"default": Path("plain.jinja")}):
        done = ggufbpe.fix(model, "fixed.gguf", chat_template=given, force=True)
        assert [(change.key, change.after) for change in done.changes] == [(TEMPLATE, PLAIN)]
    with pytest.raises(ChatError, match="no chats") as refused:
        ggufbpe.fix(model, in_place=True, chat_template=Path("refusing.jinja"))
    assert refused.value.line == 3
    with pytest.raises(ValueError, match="changed twice"):
        ggufbpe.fix(model, in_place=True, chat_template=PLAIN, set={TEMPLATE: PLAIN})
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(NotInstalledError, match=r"ggufbpe\[chat\]' to try it"):
        ggufbpe.fix(model, in_place=True, chat_template=PLAIN)
    assert ggufbpe.fix(model, in_place=True, chat_template=PLAIN, force=True).changes


@pytest.mark.slow
def test_all_known_templates_can_be_set(model: Path, tmp_path: Path) -> None:
    """Each makes a prompt as it is."""
    assert len(known_templates()) == 73
    for name, known in known_templates().items():
        given = {known.variant: f"known:{name}"}
        ggufbpe.fix(model, tmp_path / "fixed.gguf", chat_template=given, force=False)
        assert Tokenizer.from_gguf(tmp_path / "fixed.gguf").chat_templates[known.variant] == known.source
        (tmp_path / "fixed.gguf").unlink()
