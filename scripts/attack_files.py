"""Attacks on what reads and changes model files: is each result a clear error or a right answer, and is nothing lost?

    python scripts/attack_files.py [--count 6000] [--seed 1] [--only PART ...]      # `.ci/run` takes --count 300

mutations   Files with damaged bytes and lying tensor infos are given to `doctor`, `fix` and `Tokenizer`. Each answers
            with a `GGUFError` whose message is one line, or rightly: a copy has the change, other keys and all tensor
            data. A model is as it was where the answer is an error. If llama.cpp is in the cache, its verdict on the
            tensors is the same.
links       Links, folders and pipes lie in the place of a model, of its undo record or of the output. `fix` gives
            an error, and follows, replaces and deletes none of them.
kills       `kill -9` hits `fix` before and after each call that writes, syncs, links, renames or deletes, and within
            writes. The model is the old or the new one, if need be after `ggufbpe fix MODEL`; then the same fix
            succeeds, and no hidden file is left.
disk        Files may not grow beyond a limit, or a tmpfs is full where one may be mounted. `fix` succeeds, or answers
            with an error that names the file; the model is as it was, and nothing lies beside it.

Every case runs in a process with a time limit. Exit code 1 if anything does not hold; the case is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import os
import random
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from damage import NUMBERS, damaged
from gguf_by_hand import Section, T, tiny_vocabulary
from tensors_by_hand import FOUR, Tensor, info_of, model_with

import ggufbpe
from ggufbpe import GGUFError, Tokenizer
from ggufbpe._util import files
from ggufbpe._util.files import undo_record
from ggufbpe.cli import main as ggufbpe_command
from ggufbpe.gguf import in_place
from ggufbpe.gguf.edit import PADDING
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.source import ByteRange
from ggufbpe.gguf.tensors import check_tensors, tensor_alignment, tensor_infos
from ggufbpe.gguf.value_types import Field

PACKAGE = str(Path(ggufbpe.__file__).parent)
PRE = "tokenizer.ggml.pre"
MEMORY = "/dev/shm"  # where syncing costs nothing
SECONDS = 60  # for a single case, on a busy machine
SHORT, LONG = f"{PRE}=olmo", f"general.name={'x' * 3000}"  # has room before the tensors, and has none


class WrongError(Exception):
    """Something that must hold does not."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise WrongError(what)


# ---- a case in a process of its own -------------------------------------------------------------------------


class Ended(NamedTuple):
    """How a process ended."""

    status: int  # the exit code, or minus the signal; None stands for no end in time
    output: str
    in_time: bool = True


def in_child(work: Callable[[], int], seconds: float = SECONDS) -> Ended:
    """Run `work` in a forked process, with its output; its result is the exit code."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        code = 70
        try:
            os.close(reading)
            for number in (1, 2):
                os.dup2(writing, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            code = work()
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "backslashreplace"))
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(code)
    os.close(writing)
    output, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and select.select([reading], [], [], left)[0]:
        data = os.read(reading, 1 << 16)
        if not data:
            break
        output += data
    in_time = time.monotonic() < end
    if not in_time:
        os.kill(process, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(process, 0)
    return Ended(os.waitstatus_to_exitcode(status), output.decode("utf-8", "replace"), in_time)


def fix_in_child(*arguments: str | Path, before: Callable[[], object] = lambda: None) -> Ended:
    """`ggufbpe fix` in a child, which calls `before` first."""

    def work() -> int:
        before()
        return ggufbpe_command(["fix", *map(str, arguments)])

    done = in_child(work)
    require(done.in_time, f"`ggufbpe fix` did not end in {SECONDS} seconds")
    return done


def fix_here(*arguments: str | Path) -> Ended:
    """`ggufbpe fix` in this process, where nothing is expected to go wrong."""
    data = io.BytesIO()
    told = io.TextIOWrapper(data)
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        status = ggufbpe_command(["fix", *map(str, arguments)])
        told.flush()
    return Ended(status, data.getvalue().decode("utf-8", "replace"))


def hidden_files(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


# ---- damaged files --------------------------------------------------------------------------------------------


def bases() -> list[bytes]:
    """Sound models that are damaged."""
    changes = {"general.file_type": Field(T.UINT32, 1)}
    return [
        model_with(),
        model_with(alignment=256, changes=changes),
        model_with(alignment=1, tail=b"end"),
        model_with(byteorder="big"),
        model_with([]),
        model_with([], alignment=1 << 31, tail=bytes(40)),
        model_with([Tensor(f"blk.{number}.weight", (number % 5, 3)) for number in range(12)]),
    ]


def lying_tensors(dice: random.Random) -> bytes:
    """A model with tensor infos of which one or two lie."""
    tensors = list(FOUR) * dice.choice((1, 1, 1, 2))
    tensors = [each._replace(name=f"{number}.{each.name!s}") for number, each in enumerate(tensors)]
    for _ in range(dice.choice((1, 1, 2))):
        number = dice.randrange(len(tensors))
        tensor = tensors[number]
        lies: list[dict[str, Any]] = [
            {"name": dice.choice((b"", b"\xff", b"a\0b", b"x" * 63, b"x" * 64, b"x" * 70_000))},
            {"name": dice.choice(tensors).name},
            {"shape": tuple(signed(dice.choice(NUMBERS)) for _ in range(dice.randrange(6)))},
            {"shape": tuple(dice.randrange(9) for _ in range(dice.randrange(5)))},
            {"rank": dice.choice((0, 1, 3, 4, 5, 2**32 - 1))},
            {"kind": dice.choice((-1, -(2**31), 2**31 - 1, *range(45)))},
            {"offset": dice.choice((*NUMBERS, 96, 128, 160, 192, 224, 256))},
        ]
        tensors[number] = tensor._replace(**dice.choice(lies))
    alignment = dice.choice((None, None, None, 1, 2, 16, 4096, 1 << 31))
    if alignment == 1 << 31:  # the data would begin at 2 GB
        section = Section()
        for key, field in tiny_vocabulary({"general.alignment": Field(T.UINT32, alignment)}).items():
            section.add(key, field)
        head = section.file(tensor_count=len(tensors))
        return head + b"".join(info_of(each, section, 0) for each in tensors) + bytes(dice.randrange(100))
    return model_with(
        tensors,
        alignment=alignment,
        cut=dice.choice((0, 0, 0, 1, 5, 60)),
        tail=dice.choice((b"", b"", b"x", bytes(5000))),
    )


def signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


class Ggml:
    """ggml's reader of GGUF files, and the checks of llama.cpp's loader."""

    def __init__(self, path: Path) -> None:
        class Parameters(ctypes.Structure):
            _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]

        self._library = library = ctypes.CDLL(str(path))
        self._parameters = Parameters(True, None)
        library.gguf_init_from_file.argtypes = [ctypes.c_char_p, Parameters]
        library.gguf_init_from_file.restype = ctypes.c_void_p
        for name in ("gguf_get_n_tensors", "gguf_get_data_offset", "gguf_free"):
            getattr(library, name).argtypes = [ctypes.c_void_p]
        for name in ("gguf_get_tensor_offset", "gguf_get_tensor_size", "gguf_get_tensor_name"):
            getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_int64]
            getattr(library, name).restype = ctypes.c_uint64
        library.gguf_get_tensor_name.restype = ctypes.c_char_p
        library.gguf_get_n_tensors.restype = ctypes.c_int64
        library.gguf_get_data_offset.restype = ctypes.c_uint64

    def accepts(self, path: Path) -> bool:
        """Whether llama.cpp would go on to load the tokenizer (gguf_init_from_file, llama_tensor_weight)."""
        library = self._library
        context = library.gguf_init_from_file(os.fsencode(path), self._parameters)
        if context is None:
            return False
        try:
            numbers = range(library.gguf_get_n_tensors(context))
            start, size = library.gguf_get_data_offset(context), path.stat().st_size
            names = {library.gguf_get_tensor_name(context, number) for number in numbers}
            return len(names) == len(numbers) and all(
                start
                + library.gguf_get_tensor_offset(context, number)
                + library.gguf_get_tensor_size(context, number)
                <= size
                for number in numbers
            )
        finally:
            library.gguf_free(context)


def ggml_library() -> Path | None:
    """The library of the state that chats follow: the newer one loads only where the C library is new enough."""
    from reference import CHATS, NotPreparedError, library

    try:
        return library(CHATS)
    except NotPreparedError:
        return None


def attempt(work: Callable[[], object]) -> GGUFError | None:
    """Do something with a model; a `GGUFError` must have a message of one line. All else is passed on."""
    try:
        work()
    except GGUFError as error:
        require(str(error).isprintable(), f"a message that is not one line: {error!r}")
        return error
    return None


def own_verdict(path: Path) -> bool | None:
    """Whether llama.cpp accepts the tensors by our reading; None if it has another opinion of the keys."""
    try:
        with GGUFFile(path) as file:
            if file.version == 1 or file.byteorder == "big" or file.tensor_count == 0:
                return None
            try:
                check_tensors(file)
            except GGUFError:
                return False
            return True
    except GGUFError:
        return None


def contents(path: Path) -> tuple[dict[str, bytes], bytes]:
    """The bytes of each key but the padding, and everything from the data section on."""
    with GGUFFile(path) as file:
        kept = {key: b"".join(file.blocks(span)) for key, span in file.spans().items() if key != PADDING}
        infos = b""
        end = file.metadata_end
        for info in tensor_infos(file):
            end = info.end
        infos = b"".join(file.blocks(ByteRange(file.metadata_end, end)))
        start = end + -end % tensor_alignment(file)
        return kept, infos + b"|" + b"".join(file.blocks(ByteRange(min(start, file.size), file.size)))


def examine(data: bytes, folder: Path, ggml: Ggml | None) -> str:
    """Give one file to everything that takes a model. Returns the outcome for the summary."""
    path, out = folder / "model.gguf", folder / "out.gguf"
    path.write_bytes(data)
    outcome = "opens"
    if (error := attempt(lambda: Tokenizer.from_gguf(path).encode("hello world"))) is not None:
        outcome = type(error).__name__
    attempt(lambda: ggufbpe.doctor(path))
    verdict = own_verdict(path)
    if ggml is not None and verdict is not None:
        asked = ggml.accepts(path)
        require(verdict is asked, f"tensors: {verdict} here, {asked} by llama.cpp")
    for target, force in ((out, False), (out, True), (None, False), (None, True)):
        path.write_bytes(data)
        error = attempt(lambda target=target, force=force: fix(path, target, force))  # type: ignore[misc]
        require(
            sorted(os.listdir(folder)) in (["model.gguf"], ["model.gguf", "out.gguf"]), "a file is left over"
        )
        if error is not None:
            require(path.read_bytes() == data, "the model was changed by a fix that failed")
            require(not out.exists(), "an output of a fix that failed")
        else:
            require_fixed(data, path if target is None else out)
        outcome += ", refused by fix" * (error is not None and target is out and not force)
        out.unlink(missing_ok=True)
    return outcome


def fix(path: Path, target: Path | None, force: bool) -> None:
    ggufbpe.fix(path, target, in_place=target is None, set={PRE: "olmo"}, force=force)


def require_fixed(before: bytes, done: Path) -> None:
    """The change is there; all other keys, the infos and the data are as they were."""
    require(done.stat().st_size < len(before) + 100_000, "the copy is far larger than the model")
    old = done.with_name("old.gguf")
    old.write_bytes(before)
    try:
        (keys, data), (new_keys, new_data) = contents(old), contents(done)
        with GGUFFile(done) as file:
            require(file[PRE] == "olmo", "the change is missing")
        keys.pop(PRE, None)
        new_keys.pop(PRE)
        require(new_keys == keys, "other keys were changed")
        require(new_data == data, "tensor infos or data were changed")
    finally:
        old.unlink()


def mutations(count: int, seed: int, folder: Path) -> Counter[str]:
    """Damage `count` files. In groups, so that one that hangs or crashes can be named."""
    library = ggml_library()
    ggml = None if library is None else Ggml(library)
    if ggml is None:
        print("  llama.cpp is not in the cache: its verdicts are not asked (scripts/reference.py prepare)")
    sound, outcomes = bases(), Counter[str]()
    group = 50

    def data_of(number: int) -> bytes:
        dice = random.Random(seed << 32 | number)
        return lying_tensors(dice) if number % 3 == 0 else damaged(dice.choice(sound), dice)

    for first in range(0, count, group):

        def work(first: int = first) -> int:
            warnings.simplefilter("ignore")
            for number in range(first, min(first + group, count)):
                print(f"#{number}", flush=True)
                print(f"={examine(data_of(number), folder, ggml)}", flush=True)
            return 0

        done = in_child(work, SECONDS * 10)
        outcomes.update(line[1:] for line in done.output.splitlines() if line.startswith("="))
        if done.status != 0 or not done.in_time:
            at = [line for line in done.output.splitlines() if line.startswith("#")][-1:]
            number = int(at[0][1:]) if at else first
            kept = Path(tempfile.gettempdir(), f"attack_files-{seed}-{number}.gguf")
            kept.write_bytes(data_of(number))
            ending = f"status {done.status}" if done.in_time else "no end in time"
            raise WrongError(f"file {number} of seed {seed} ({kept}): {ending}\n{done.output[-1500:]}")
    return outcomes


# ---- planted files --------------------------------------------------------------------------------------------

PLANTS: dict[str, Callable[[Path, Path], object]] = {
    "a link to a file": lambda place, victim: place.symlink_to(victim),
    "a link to nothing": lambda place, victim: place.symlink_to(victim.with_name("missing")),
    "a link to itself": lambda place, victim: place.symlink_to(place.name),
    "a link to a folder": lambda place, victim: place.symlink_to(victim.parent),
    "a link to /dev/zero": lambda place, victim: place.symlink_to("/dev/zero"),
    "a second name": lambda place, victim: os.link(victim, place),
    "a folder": lambda place, victim: place.mkdir(),
    "a pipe": lambda place, victim: os.mkfifo(place),
    "an empty file": lambda place, victim: place.touch(),
}


def everything(folder: Path) -> dict[str, object]:
    """What is in a folder: kinds, targets of links, contents."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        mode = os.lstat(path).st_mode
        about = os.readlink(path) if stat.S_ISLNK(mode) else path.read_bytes() if stat.S_ISREG(mode) else ""
        found[str(path.relative_to(folder))] = stat.S_IFMT(mode), about
    return found


def links(folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    for kind, plant in PLANTS.items():
        for place in ("undo record", "output", "model"):
            for nameless in (files._NAMELESS, 0):
                inner = folder / "models"
                shutil.rmtree(inner, ignore_errors=True)
                inner.mkdir()
                model, out = inner / "model.gguf", inner / "out.gguf"
                (folder / "victim").write_bytes(b"precious")
                at = {"undo record": Path(undo_record(model)), "output": out, "model": model}[place]
                if place != "model":
                    model.write_bytes(model_with())
                plant(at, folder / "victim")
                # A pipe or a device as the output is written to: that is what it was given for.
                if place == "output" and kind in ("a pipe", "a link to /dev/zero"):
                    continue
                before = everything(folder)
                target = ["-o", out] if place == "output" else ["--in-place"]
                ended = fix_in_child(
                    model, "--set", SHORT, *target, before=lambda n=nameless: setattr(files, "_NAMELESS", n)
                )
                case = f"{kind} in the place of the {place}"
                require(ended.status == 2, f"{case}: exit code {ended.status}: {ended.output}")
                require(len(ended.output.splitlines()) == 1, f"{case}: not one line: {ended.output}")
                require(everything(folder) == before, f"{case}: something was changed")
                done[place] += 1
    return done


# ---- kills ------------------------------------------------------------------------------------------------------

CALLS = {
    "write",
    "fsync",
    "flush",
    "open",
    "close",
    "replace",
    "rename",
    "link",
    "unlink",
    "truncate",
    "chmod",
}
CALLS |= {"chown", "flock", "pread", "__exit__"}


def kill_at(number: int, *, after: bool) -> Callable[[], None]:
    """End this process by SIGKILL at one of its calls that may change a file."""
    seen, wanted = 0, "c_return" if after else "c_call"

    def watch(frame: Any, event: str, function: Any) -> None:
        nonlocal seen
        place = frame.f_code.co_filename
        is_ours = place.startswith((PACKAGE, "<frozen")) or "contextlib" in place
        if is_ours and event == wanted and getattr(function, "__name__", "") in CALLS:
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    return lambda: sys.setprofile(watch)


def kill_within(number: int, share: float) -> Callable[[], None]:
    """End this process within one of the writes in place, after a part of the bytes."""
    write, seen = in_place._write, [0]

    def half(file: Any, offset: int, data: bytes) -> None:
        if seen[0] == number:
            write(file, offset, data[: int(len(data) * share)])
            os.kill(os.getpid(), signal.SIGKILL)
        seen[0] += 1
        write(file, offset, data)

    return lambda: setattr(in_place, "_write", half)


SCENARIOS = {  # what is being done: (the change, where to, whether something is at the output)
    "a new copy": (SHORT, "-o", False),
    "a copy over another file": (SHORT, "-o", True),
    "in place": (SHORT, "--in-place", False),
    "in place, by a copy": (LONG, "--in-place", False),
}


def has_change(path: Path, change: str) -> bool:
    key, _, value = change.partition("=")
    with GGUFFile(path) as file:
        return file[key] == value


def kills(folder: Path, every: int) -> Counter[str]:
    """Kill at each point; `every` second, third … in the short form."""
    done: Counter[str] = Counter()
    for name in SCENARIOS:
        for nameless in (files._NAMELESS, 0):
            moments: list[tuple[str, Callable[[int], Callable[[], None]]]] = [
                ("before call", lambda number: kill_at(number, after=False)),
                ("after call", lambda number: kill_at(number, after=True)),
            ]
            if name == "in place":
                for share in (0.0, 0.3, 0.99):
                    moments.append(("within write", lambda number, share=share: kill_within(number, share)))
            for words, killing in moments:
                number = 0
                while kill_once(folder, name, nameless, killing(number), f"{name}, {words} {number}"):
                    done[name] += 1
                    number += every
    done["recovery"] += kill_recovery(folder, every)
    return done


def kill_once(
    folder: Path,
    name: str,
    nameless: int,
    killing: Callable[[], None],
    case: str,
) -> bool:
    """One kill and what must hold after it. False if the fix was over before."""
    change, where, is_there = SCENARIOS[name]
    model, out = fresh(folder)
    if is_there:
        out.write_bytes(b"old")
    before = model.read_bytes()
    target = [where, out, *["--force"] * is_there] if where == "-o" else [where]

    def prepare() -> None:
        files._NAMELESS = nameless
        killing()

    ended = fix_in_child(model, "--set", change, *target, before=prepare)
    if ended.status != -signal.SIGKILL:
        require(ended.status == 0, f"{case}: exit code {ended.status}: {ended.output}")
        return False
    if where == "-o":
        require(model.read_bytes() == before, f"{case}: the model was changed")
        require(out.exists() or not is_there, f"{case}: the file at the output is gone")
        if out.exists() and not (is_there and out.read_bytes() == b"old"):
            require(is_whole(out) and has_change(out, change), f"{case}: half a file at the output")
        out.unlink(missing_ok=True)
        require(fix_here(model, "--set", change, "-o", out).status == 0, f"{case}: no copy afterwards")
        require_same_tensors(before, out, case)
    else:
        require_recovered(model, before, change, case)
    require(not hidden_files(folder), f"{case}: {hidden_files(folder)} left over")
    return True


def fresh(folder: Path) -> tuple[Path, Path]:
    """An empty folder with a new model; the paths of the model and of an output."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    model, out = folder / "model.gguf", folder / "out.gguf"
    model.write_bytes(model_with())
    return model, out


def is_whole(path: Path) -> bool:
    """Whether there is a model whose tensors are all there."""
    try:
        with GGUFFile(path) as file:
            check_tensors(file)
    except (GGUFError, OSError):
        return False
    return True


def require_same_tensors(before: bytes, path: Path, case: str) -> None:
    old = path.with_name("old.gguf")
    old.write_bytes(before)
    require(contents(old)[1] == contents(path)[1], f"{case}: the tensors are others")
    old.unlink()


def require_recovered(model: Path, before: bytes, change: str, case: str) -> None:
    """The model is the old or the new one, or `fix MODEL` makes it so; then the same fix succeeds."""
    half = model.read_bytes()
    if not half.startswith(b"GGUF"):
        require(not is_whole(model), f"{case}: half a change is taken for a model")
    ended = fix_here(model)  # without a change: exit code 2 if there is nothing to recover
    require(ended.status in (0, 2), f"{case}: no recovery: {ended.output}")
    is_old = model.read_bytes() == before
    require(
        is_old or (is_whole(model) and has_change(model, change)),
        f"{case}: neither the old nor the new model",
    )
    require_same_tensors(before, model, case)
    ended = fix_here(model, "--set", change, "--in-place")
    require(ended.status == 0 and has_change(model, change), f"{case}: no fix afterwards: {ended.output}")
    require_same_tensors(before, model, case)


def kill_recovery(folder: Path, every: int) -> int:
    """Kills while an interrupted change is undone or finished."""
    done = 0
    for write, share in ((1, 0.3), (1, 1.0), (2, 0.5)):  # undone; finished; finished, but for the magic
        for after in (False, True):
            number = 0
            while True:
                model, _ = fresh(folder)
                before = model.read_bytes()
                ended = fix_in_child(model, "--set", SHORT, "--in-place", before=kill_within(write, share))
                require(ended.status == -signal.SIGKILL, f"the first kill: {ended.status}: {ended.output}")
                ended = fix_in_child(model, before=kill_at(number, after=after))
                case = f"recovery from write {write}, {'after' if after else 'before'} call {number}"
                if ended.status != -signal.SIGKILL:
                    require(ended.status == 0, f"{case}: exit code {ended.status}: {ended.output}")
                    break
                require_recovered(model, before, SHORT, case)
                require(not hidden_files(folder), f"{case}: {hidden_files(folder)} left over")
                done += 1
                number += every
    return done


# ---- a full disk ------------------------------------------------------------------------------------------------


def disk(folder: Path, every: int) -> Counter[str]:
    done: Counter[str] = Counter()
    size = len(model_with())
    for limit in range(0, size + 4000, 97 * every):
        for name in SCENARIOS:

            def limited(limit: int = limit) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

            done["limits on the size of files"] += full_once(folder, name, limited, f"{name}, limit {limit}")
    done["full file systems"] += full_tmpfs(folder, every)
    return done


def full_once(folder: Path, name: str, limited: Callable[[], None], case: str) -> int:
    """One fix that may fail for want of space. Output of the command goes to a pipe, so it needs none."""
    change, where, is_there = SCENARIOS[name]
    model, out = fresh(folder)
    if is_there:
        out.write_bytes(b"old")
    before = everything(folder)
    target = [where, out, *["--force"] * is_there] if where == "-o" else [where]
    ended = fix_in_child(model, "--set", change, *target, before=limited)
    require(not hidden_files(folder), f"{case}: {hidden_files(folder)} left over")
    if ended.status == 0:
        done = out if where == "-o" else model
        require(is_whole(done) and has_change(done, change), f"{case}: a success without the change")
        return 0
    require(ended.status == 2, f"{case}: exit code {ended.status}: {ended.output}")
    told = ended.output.splitlines()
    require(len(told) == 1 and ".gguf" in told[0], f"{case}: no clear message: {ended.output}")
    require(everything(folder) == before, f"{case}: something was changed")
    return 1


def full_tmpfs(folder: Path, every: int) -> int:
    """Fixes on file systems with room for one to twenty pages beside the model, where mounting is allowed."""
    mounted = folder.with_name("mounted")
    mounted.mkdir(exist_ok=True)
    done = 0
    for pages in range(1, 20, every):
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={4096 * pages},mode=700",
            "ggufbpe-attack",
            str(mounted),
        ]
        if subprocess.run(command, capture_output=True).returncode != 0:
            print("  no file system may be mounted here: a full one is not tried")
            return done
        try:
            for name in SCENARIOS:
                with contextlib.suppress(OSError):  # no room for the model itself
                    done += full_once(mounted / "models", name, lambda: None, f"{name}, {pages} pages")
        finally:
            subprocess.run(["umount", str(mounted)], check=True)
    return done


def load_everything(folder: Path) -> None:
    """Import what a fix imports when it runs, so that not every child has to."""
    model, out = folder / "first.gguf", folder / "first-out.gguf"
    model.write_bytes(model_with())
    with (
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())),
    ):
        for arguments in (["-o", str(out)], ["-o", str(out)], ["--in-place"]):
            ggufbpe_command(["fix", str(model), "--set", SHORT, *arguments])
        ggufbpe.doctor(model)


# ---- the command --------------------------------------------------------------------------------------------------


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--count", type=int, default=6000, help="damaged files; below 1000, all parts are short"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument(
        "--folder", default=MEMORY if os.path.isdir(MEMORY) else None, help="where the files lie"
    )
    arguments = parser.parse_args()
    every = 1 if arguments.count >= 1000 else 5
    code = 0
    with tempfile.TemporaryDirectory(prefix="ggufbpe-attack-", dir=arguments.folder) as home:
        os.environ["HOME"] = home
        load_everything(Path(home))
        for part in arguments.only:
            folder = Path(home, part)
            folder.mkdir()
            begun = time.monotonic()
            try:
                done = PARTS[part](folder, arguments.count, arguments.seed, every)
            except WrongError as wrong:
                print(f"{part}: WRONG: {wrong}", flush=True)
                code = 1
                continue
            told = ", ".join(f"{number} {name}" for name, number in done.most_common())
            print(
                f"{part}: {sum(done.values())} attacks in {time.monotonic() - begun:.0f} s: {told}",
                flush=True,
            )
    return code


PARTS: dict[str, Callable[[Path, int, int, int], Counter[str]]] = {
    "mutations": lambda folder, count, seed, _: mutations(count, seed, folder),
    "links": lambda folder, *_: links(folder),
    "kills": lambda folder, _, __, every: kills(folder / "models", every),
    "disk": lambda folder, _, __, every: disk(folder / "models", every),
}


if __name__ == "__main__":
    sys.exit(main())
