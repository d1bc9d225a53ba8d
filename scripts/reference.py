"""The reference: llama.cpp, fetched, built, and asked.

    python scripts/reference.py prepare        # vocabularies, library and commands, into .cache/

Everything comes from the source distribution of one release of llama-cpp-python, which carries llama.cpp
whole: real vocabularies with upstream's own test cases, the library, and the commands `llama-tokenize` and
`llama-server`. Only the package tokenizers 1.0, which has to read what `export` writes, comes from elsewhere. What
is already there stays; what was interrupted starts again, for every step works under a temporary name and renames at
the end. The folder is `.cache/` of the repository, or $GGUFBPE_CACHE.

`Oracle` asks llama.cpp in process, by way of its C functions. The process is a child of its own, because
llama.cpp can abort on a text or a file (a failed assertion, an uncaught exception) or overflow its stack:
such an answer is a `Crash`, and the next question gets a new child.

But: it needs a C++ compiler, and the first `prepare` takes fifteen minutes of two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import mmap
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

DISTRIBUTION = "llama-cpp-python"
VERSION = "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
COMMIT = "0c1e57098"  # of llama.cpp, vendored in it

ROOT = Path(__file__).resolve().parent.parent
# The special ids that llama.cpp tells; it has no function for the unknown token's and for `eom`.
SPECIAL_IDS = ["bos", "eos", "eot", "sep", "nl", "pad", "mask"]
SPECIAL_IDS += ["fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"]
TOKENIZERS_1 = "1.0.0rc3"  # of the package tokenizers, beside the 0.x that is installed
_ARCHIVE = f"llama_cpp_python-{VERSION}.tar.gz"
_SOURCE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/"


class NotPreparedError(RuntimeError):
    """Something of the reference is not there; the message has the command that gets it."""


# ---- what is in the cache -----------------------------------------------------------------------------


def cache_directory() -> Path:
    """The folder of everything fetched or built: $GGUFBPE_CACHE, or `.cache` in the repository."""
    return Path(os.environ.get("GGUFBPE_CACHE") or ROOT / ".cache")


def vocabulary(name: str) -> Path:
    """The path of a real vocabulary, by the name upstream gives it.

    >>> vocabulary("llama-bpe").name                                        # doctest: +SKIP
    'ggml-vocab-llama-bpe.gguf'

    Raises `NotPreparedError` while it is not in the cache.
    """
    path = cache_directory() / "vocabs" / f"ggml-vocab-{name}.gguf"
    if not path.is_file():
        raise NotPreparedError(
            f"no vocabulary {path}: `python scripts/reference.py prepare --vocabs` gets all of them"
        )
    return path


def llama_tokenize_command() -> Path:
    """The path of the command `llama-tokenize`. Raises `NotPreparedError` while it is not built."""
    return _built("llama-tokenize", "--command")


def llama_server_command() -> Path:
    """The path of the command `llama-server`. Raises `NotPreparedError` while it is not built.

    It needs a model with weights: make_tiny_model.py writes one.
    """
    return _built("llama-server", "--server")


def _built(program: str, flag: str) -> Path:
    path = _place(program)
    if not path.is_file():
        raise NotPreparedError(f"no {path}: `python scripts/reference.py prepare {flag}` builds it")
    return path


def _place(program: str) -> Path:
    return cache_directory() / "bin" / _executable(program)


def tokenizers_1() -> Path:
    """The folder with tokenizers 1.0 in it, for the PYTHONPATH of a child. `NotPreparedError` while it is not there."""
    path = cache_directory() / f"tokenizers-{TOKENIZERS_1}"
    if not path.is_dir():
        raise NotPreparedError(f"no {path}: `python scripts/reference.py prepare --tokenizers` gets it")
    return path


def library_is_installed() -> bool:
    """Whether this environment has the llama-cpp-python that is the reference."""
    try:
        return importlib.metadata.version(DISTRIBUTION) == VERSION
    except importlib.metadata.PackageNotFoundError:
        return False


def prepare(
    vocabs: bool = True,
    library: bool = True,
    command: bool = True,
    server: bool = True,
    tokenizers: bool = True,
) -> None:
    """Get what is missing, and say what is being done."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    _remove_leftovers()
    if tokenizers:
        _prepare_tokenizers_1()
    if vocabs:
        _prepare_vocabularies()
    if library:
        _prepare_library()
    programs = ["llama-tokenize"] * command + ["llama-server"] * server
    if programs:
        _prepare_programs(programs)


def _prepare_vocabularies() -> None:
    target = cache_directory() / "vocabs"
    if target.is_dir():
        _say(f"vocabularies: {target} is there")
        return
    archive = _source_distribution()
    with _partial("vocabs") as folder:
        _say(f"vocabularies: extracting to {target}")
        _extract(archive, folder, _SOURCE + "models/ggml-vocab-", flat=True)
        folder.rename(target)


def _prepare_tokenizers_1() -> None:
    target = cache_directory() / f"tokenizers-{TOKENIZERS_1}"
    if target.is_dir():
        _say(f"tokenizers: {target} is there")
        return
    with _partial("tokenizers") as folder:
        _say(f"tokenizers: {TOKENIZERS_1} into {target}")
        _run([*_PIP, "install", "--no-deps", "--target", str(folder), f"tokenizers=={TOKENIZERS_1}"])
        folder.rename(target)


def _prepare_library() -> None:
    """Install the reference library in this environment, from a wheel that is built once."""
    if library_is_installed():
        _say(f"library: {DISTRIBUTION} {VERSION} is installed")
        return
    wheels = cache_directory() / "wheels"
    if not wheels.is_dir():
        archive = _source_distribution()
        with _partial("wheels") as folder:
            _say("library: compiling, about 8 minutes of one core")
            options = "-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAVA_BUILD=OFF"
            _run(
                [*_PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(archive)],
                CMAKE_ARGS=f"{options} {os.environ.get('CMAKE_ARGS', '')}",
                CMAKE_BUILD_PARALLEL_LEVEL=_parallel(),
            )
            folder.rename(wheels)
    _say("library: installing")
    _run([*_PIP, "install", *map(str, wheels.glob("*.whl"))])


def _prepare_programs(programs: Sequence[str]) -> None:
    """Build those that are missing, in one build folder, since they share most of what is compiled."""
    wanted = [program for program in programs if not _place(program).is_file()]
    for program in programs:
        if program not in wanted:
            _say(f"command: {_place(program)} is there")
    if not wanted:
        return
    archive = _source_distribution()
    with _partial("command") as folder:
        _say("command: extracting the sources")
        _extract(archive, folder / "source", _SOURCE)
        for program, built in zip(wanted, _build(folder / "source", folder / "build", wanted), strict=True):
            _place(program).parent.mkdir(exist_ok=True)
            built.rename(_place(program))
            _say(f"command: {_place(program)}")


def _build(source: Path, build: Path, targets: Sequence[str]) -> list[Path]:
    """Build programs of llama.cpp, each a single file; returns where they are."""
    cmake, generator = _build_tools()
    switched_off = [
        *("LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES", "LLAMA_BUILD_APP", "LLAMA_BUILD_UI"),
        *("LLAMA_CURL", "LLAMA_OPENSSL", "LLAMA_USE_PREBUILT_UI", "LLAMA_LLGUIDANCE"),
        *("BUILD_SHARED_LIBS", "GGML_NATIVE", "GGML_OPENMP", "GGML_CCACHE"),
    ]
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_BUILD_SERVER=ON"]
    _say(f"command: compiling {' and '.join(targets)}, about 20 minutes of one core")
    _run(
        [cmake, "-S", str(source), "-B", str(build), *generator, *options]
        + [f"-D{name}=OFF" for name in switched_off]
    )
    parallel = ["--parallel", _parallel()]
    _run([cmake, "--build", str(build), "--config", "Release", "--target", *targets, *parallel])
    folders = [build / "bin", build / "bin" / "Release"]
    [folder] = [folder for folder in folders if (folder / _executable(targets[0])).is_file()]
    return [folder / _executable(target) for target in targets]


def _build_tools() -> tuple[str, list[str]]:
    """The command `cmake`, and the options that choose a generator: the system's, or else pip's."""
    cmake, ninja = shutil.which("cmake"), shutil.which("ninja")
    if cmake and (ninja or shutil.which("make") or sys.platform == "win32"):
        return cmake, (["-G", "Ninja"] if ninja else [])
    tools = cache_directory() / "tools"
    if not tools.is_dir():
        with _partial("tools") as folder:
            _say("command: getting cmake and ninja")
            _run([*_PIP, "install", "--target", str(folder), "cmake", "ninja"])
            folder.rename(tools)
    [ninja_program] = {path.resolve() for path in tools.rglob(_executable("ninja")) if path.is_file()}
    cmake_program = tools / "cmake" / "data" / "bin" / _executable("cmake")
    return str(cmake_program), ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja_program}"]


def _source_distribution() -> Path:
    """The source distribution, fetched by pip if it is not there; its hash is checked before it is used."""
    target = cache_directory() / _ARCHIVE
    if target.is_file() and _sha256(target) == SHA256:
        return target
    with _partial("download") as folder:
        _say(f"source: fetching {DISTRIBUTION} {VERSION}, about 75 MB")
        folder.mkdir()
        wanted = folder / "requirements.txt"  # a file, since only there can pip be told the hash
        wanted.write_text(f"{DISTRIBUTION}=={VERSION} --hash=sha256:{SHA256}\n")
        download = ["download", "--no-deps", "--no-binary", DISTRIBUTION, "--require-hashes"]
        _run([*_PIP, *download, "--dest", str(folder), "--requirement", str(wanted)])
        (folder / _ARCHIVE).replace(target)
    return target


_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def _extract(archive: Path, folder: Path, prefix: str, flat: bool = False) -> None:
    """Extract the regular files whose name begins with `prefix`; `flat` drops their folders."""
    folder.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile() or not member.name.startswith(prefix) or ".." in member.name:
                continue
            name = Path(member.name).name if flat else member.name.removeprefix(_SOURCE)
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = tar.extractfile(member)
            assert content is not None
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)
            path.chmod(member.mode | 0o600)


@contextlib.contextmanager
def _partial(what: str) -> Iterator[Path]:
    """A path for work in progress, removed afterwards unless it was renamed."""
    path = cache_directory() / f"partial-{what}-{os.getpid()}"
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _remove_leftovers() -> None:
    """Remove the work in progress of processes that were killed."""
    for path in cache_directory().glob("partial-*"):
        if not _is_running(int(path.name.rpartition("-")[2])):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _run(command: Sequence[str], **environment: str) -> None:
    subprocess.run(command, check=True, env={**os.environ, **environment})


def _parallel() -> str:
    return os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)


def _executable(name: str) -> str:
    return name + ".exe" if sys.platform == "win32" else name


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _say(message: str) -> None:
    print(f"reference: {message}", flush=True)


# ---- copies of a vocabulary with other keys -----------------------------------------------------------


def with_pre(
    vocabulary: str | os.PathLike[str],
    pre: str | None,
    out: str | os.PathLike[str],
    model: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Copy a vocabulary with another pre-tokenizer name, so that llama.cpp answers for that name.

    `pre` None leaves the name as it is. `model` replaces `tokenizer.ggml.model`; `extra` has further keys,
    added or replaced, as `write_metadata` takes them (a value None removes the key). Only the changed keys
    are packed anew, so that a copy of a large vocabulary costs milliseconds.
    """
    changes: dict[str, Any] = dict(extra or {})
    if pre is not None:
        changes["tokenizer.ggml.pre"] = pre
    if model is not None:
        changes["tokenizer.ggml.model"] = model
    out = Path(out)
    parts = _packed_keys(Path(vocabulary))
    written = {key: value for key, value in changes.items() if value is not None}
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "changes.gguf"
        write_metadata(small, {"general.architecture": "llama", **written})
        packed = _packed_keys(small)
    for key, value in changes.items():
        if value is None:
            parts.pop(key, None)
        else:
            parts[key] = packed[key]
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(parts))
    partial = out.with_name(out.name + ".partial")
    partial.write_bytes(head + b"".join(parts.values()))
    partial.replace(out)
    return out


def write_metadata(path: str | os.PathLike[str], keys: Mapping[str, Any]) -> Path:
    """Write a GGUF that has these keys and no tensors.

    A value is a str, bool, int (uint32, or int32 if negative), float, or a list of one of them (int32 for
    integers); a pair (value, GGUFValueType) or (list, GGUFValueType.ARRAY, element type) says the type.

    >>> write_metadata("tiny.gguf", {"tokenizer.ggml.tokens": ["a", "b"]})   # doctest: +SKIP
    PosixPath('tiny.gguf')
    """
    from gguf import GGUFValueType, GGUFWriter

    types = {
        bool: GGUFValueType.BOOL,
        int: GGUFValueType.UINT32,
        float: GGUFValueType.FLOAT32,
        str: GGUFValueType.STRING,
        bytes: GGUFValueType.STRING,
    }
    path = Path(path)
    writer = GGUFWriter(path, "llama", dry_run=False)
    writer.kv_data[0].clear()  # the architecture, which the writer adds: the caller says all keys
    for key, value in keys.items():
        if isinstance(value, tuple):
            writer.add_key_value(key, *value)
        elif isinstance(value, list):
            element = types[type(value[0])] if value else GGUFValueType.STRING
            element = GGUFValueType.INT32 if element is GGUFValueType.UINT32 else element
            writer.add_key_value(key, value, GGUFValueType.ARRAY, element)
        else:
            negative = type(value) is int and value < 0
            writer.add_key_value(key, value, GGUFValueType.INT32 if negative else types[type(value)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def _packed_keys(path: Path) -> dict[str, bytes]:
    """Each key of a GGUF with the bytes that it takes there: name, type and value."""
    from ggufbpe.gguf.reader import GGUFFile

    with GGUFFile(path) as file:
        if file.version != 3 or file.byteorder != "little":
            raise ValueError(f"{path} is not a little-endian GGUF of version 3")
        keys = file.keys()
        starts = [file.offset(key) - 4 - len(key.encode()) - 8 for key in keys]
        end = file.metadata_end
    data = path.read_bytes()
    return {key: data[a:b] for key, a, b in zip(keys, starts, [*starts[1:], end], strict=True)}


# ---- llama.cpp, asked in process ----------------------------------------------------------------------


@dataclass(frozen=True)
class Crash:
    """llama.cpp gave no answer: it aborted, overflowed its stack, or took too long."""

    reason: str


class LoadError(RuntimeError):
    """llama.cpp refused a file (`crash` is None) or crashed on it."""

    def __init__(self, message: str, crash: Crash | None = None) -> None:
        super().__init__(message)
        self.crash = crash


@dataclass(frozen=True)
class Description:
    """What llama.cpp made of a vocabulary on load."""

    vocab_type: int  # LLAMA_VOCAB_TYPE_*: 2 is BPE
    special_ids: dict[str, int | None]  # by the names in SPECIAL_IDS
    add_bos: bool
    add_eos: bool
    add_sep: bool
    eog_ids: list[int]  # sorted
    texts: list[bytes]  # of all tokens
    attributes: list[int]  # of all tokens, LLAMA_TOKEN_ATTR_*


class Oracle:
    """llama.cpp's tokenizer for one vocabulary, in a child process; a context manager.

    >>> with Oracle(vocabulary("llama-bpe")) as oracle:                      # doctest: +SKIP
    ...     oracle.tokenize([b"Hello world"], add_special=True, parse_special=True)
    [[128000, 9906, 1917]]

    Questions go in batches: a batch costs one round trip, and one of a thousand texts is no slower a text
    than llama.cpp itself. `seconds` bounds a single text; a batch gets that or what its number of texts
    suggests. `stack` is the size in bytes of the child's stack; None leaves it as it is.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        seconds: float = 20.0,
        stack: int | None = None,
        show_log: bool = False,
    ) -> None:
        self._seconds = seconds
        self._stack = stack
        self._show_log = show_log
        self._child: subprocess.Popen[bytes] | None = None
        self._progress = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the oracle; the number of the question in hand, for after a crash
        self._progress.write(bytes(8))
        self._progress.flush()
        self.crashes = 0
        try:
            self.open(path)
        except BaseException:  # no library, or a file that llama.cpp refuses: nobody has an oracle to close
            self.close()
            raise

    def open(self, path: str | os.PathLike[str]) -> None:
        """Go over to another vocabulary, in the same child."""
        self.path = os.fspath(path)
        answer = self._ask(("open", self.path))
        if isinstance(answer, Crash):
            raise LoadError(f"llama.cpp crashed on {self.path}: {answer.reason}", answer)
        if answer is not None:
            raise LoadError(f"llama.cpp refused {self.path}: {answer}")

    def tokenize(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int] | Crash]:
        """The ids of each text, or the crash that it caused."""
        return self.tokenize_each([(text, add_special, parse_special) for text in texts])

    def tokenize_each(self, questions: Sequence[tuple[bytes, bool, bool]]) -> list[list[int] | Crash]:
        """As `tokenize`, with flags for each text: (text, add_special, parse_special)."""
        return self._each("tokenize", questions)

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes | Crash:
        """The text of ids."""
        return self.detokenize_each([(ids, remove_special, unparse_special)])[0]

    def detokenize_each(self, questions: Sequence[tuple[Sequence[int], bool, bool]]) -> list[bytes | Crash]:
        """The text of each sequence of ids: (ids, remove_special, unparse_special)."""
        return self._each("detokenize", questions)

    def pieces(self, special: bool) -> list[bytes]:
        """The piece of every token; where `special` is false, control tokens have none."""
        answer: list[bytes] = self._sure(("pieces", special))
        return answer

    def describe(self) -> Description:
        """What llama.cpp made of the vocabulary on load."""
        return Description(**self._sure(("describe",)))

    def close(self) -> None:
        """End the child."""
        self._end_child()
        self._progress.close()

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            child.wait()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, what: str, questions: Sequence[Any]) -> list[Any]:
        """Ask a batch; where the child dies of one question, note that and ask the others again."""
        found: list[Any] = []
        rest = list(questions)
        while rest:
            answers = self._ask((what, rest), len(rest))
            if not isinstance(answers, Crash):
                return found + answers
            self.crashes += 1
            self._progress.seek(0)
            [number] = struct.unpack("<Q", self._progress.read(8))
            found += [*self._each(what, rest[:number]), answers]
            rest = rest[number + 1 :]
        return found

    def _sure(self, question: tuple[Any, ...]) -> Any:
        answer = self._ask(question, 10)
        if isinstance(answer, Crash):
            raise LoadError(f"llama.cpp crashed on {question} for {self.path}: {answer.reason}", answer)
        return answer

    def _ask(self, question: tuple[Any, ...], weight: int = 1) -> Any:
        """One round trip; a `Crash` if the child does not survive it."""
        if self._child is None:
            self._child = _start_child(self._progress, self._show_log, self._stack)
            if question[0] != "open":
                reopened = self._ask(("open", self.path))
                assert reopened is None, f"{self.path} opened before, and now: {reopened}"
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        timer = threading.Timer(max(self._seconds, weight * 0.1), child.kill)
        timer.start()
        try:
            _send(child.stdin, question)
            return _receive(child.stdout)
        except (EOFError, BrokenPipeError):
            status = child.wait()
            late = not timer.is_alive()
            self._end_child()
            return Crash("no answer in time" if late else f"ended with status {status}")
        finally:
            timer.cancel()


def _start_child(progress: IO[bytes], show_log: bool, stack: int | None) -> subprocess.Popen[bytes]:
    """A process that answers questions; see `_answer_questions`."""

    def limit() -> None:  # in the child, before it becomes Python: a stack is measured when a program starts
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if stack is not None:
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            size = stack if hard == resource.RLIM_INFINITY else min(stack, hard)
            resource.setrlimit(resource.RLIMIT_STACK, (size, hard))

    if not library_is_installed():
        raise NotPreparedError(
            f"no {DISTRIBUTION} {VERSION}: `python scripts/reference.py prepare --library` installs it"
        )
    return subprocess.Popen(
        [sys.executable, os.fspath(Path(__file__).resolve()), "answer", str(progress.fileno())]
        + ["--show-log"] * show_log,
        pass_fds=[progress.fileno()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if show_log else subprocess.DEVNULL,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # or an abort starts a debugger
        preexec_fn=None if sys.platform == "win32" else limit,
    )


def _send(stream: IO[bytes], message: Any) -> None:
    data = pickle.dumps(message, protocol=5)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    [length] = struct.unpack("<Q", head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _answer_questions(progress: int, show_log: bool) -> None:
    """The child's life: read a question, ask llama.cpp, write the answer."""
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what llama.cpp prints must not run into the answers
    llama = _Llama(mmap.mmap(progress, 8), show_log)
    while True:
        try:
            what, *arguments = _receive(questions)
        except EOFError:
            return
        _send(answers, getattr(llama, what)(*arguments))


class _Llama:
    """llama.cpp's C functions, with Python values in and out. One method a question of `Oracle`."""

    def __init__(self, progress: mmap.mmap, show_log: bool) -> None:
        import ctypes

        # Its low-level module is enough; the package itself would import ten times as much.
        package = types.ModuleType("llama_cpp")
        specification = importlib.util.find_spec("llama_cpp")
        assert specification is not None
        package.__path__ = list(specification.submodule_search_locations or ())
        sys.modules["llama_cpp"] = package
        import llama_cpp.llama_cpp as functions

        self._progress = progress
        self._c = ctypes
        self._f = functions
        self._model: Any = None
        self._vocab: Any = None
        if not show_log:
            self._silence = functions.llama_log_callback(lambda *_: None)  # kept, since C has a pointer to it
            functions.llama_log_set(self._silence, ctypes.c_void_p())
        functions.llama_backend_init()
        self._ids = (functions.llama_token * 65536)()
        self._text = ctypes.create_string_buffer(1 << 20)

    def open(self, path: str) -> str | None:
        """Load a vocabulary; returns what is wrong, if something is."""
        f = self._f
        if self._model is not None:
            f.llama_model_free(self._model)
        parameters = f.llama_model_default_params()
        parameters.vocab_only = True
        self._model = f.llama_model_load_from_file(os.fsencode(path), parameters)
        if not self._model:
            self._model = None
            return "it could not be loaded"
        self._vocab = f.llama_model_get_vocab(self._model)
        return None

    def _noted(self, questions: list[Any]) -> Iterator[Any]:
        """The questions, with the number of the one in hand where the parent finds it."""
        for number, question in enumerate(questions):
            struct.pack_into("<Q", self._progress, 0, number)
            yield question

    def tokenize(self, questions: list[tuple[bytes, bool, bool]]) -> list[list[int]]:
        return [self._tokenize(*question) for question in self._noted(questions)]

    def _tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        f, ids = self._f, self._ids
        count = f.llama_tokenize(self._vocab, text, len(text), ids, len(ids), add_special, parse_special)
        if count < 0:
            ids = self._ids = (f.llama_token * -count)()
            count = f.llama_tokenize(self._vocab, text, len(text), ids, len(ids), add_special, parse_special)
        found: list[int] = ids[:count]
        return found

    def detokenize(self, questions: list[tuple[Sequence[int], bool, bool]]) -> list[bytes]:
        return [self._detokenize(*question) for question in self._noted(questions)]

    def _detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        f, c = self._f, self._c
        given = (f.llama_token * len(ids))(*ids)
        for _ in range(2):
            size = f.llama_detokenize(
                self._vocab, given, len(ids), self._text, len(self._text), remove_special, unparse_special
            )
            if size >= 0:
                break
            self._text = c.create_string_buffer(-size)
        return c.string_at(self._text, size)

    def pieces(self, special: bool) -> list[bytes]:
        f, c, text = self._f, self._c, self._text
        found = []
        for token in range(f.llama_vocab_n_tokens(self._vocab)):
            size = f.llama_token_to_piece(self._vocab, token, text, len(text), 0, special)
            found.append(c.string_at(text, size))
        return found

    def describe(self) -> dict[str, Any]:
        f, vocab = self._f, self._vocab
        ids = {name: getattr(f, f"llama_vocab_{name}")(vocab) for name in SPECIAL_IDS}
        tokens = range(f.llama_vocab_n_tokens(vocab))
        return {
            "vocab_type": f.llama_vocab_type(vocab),
            "special_ids": {name: None if token < 0 else token for name, token in ids.items()},
            "add_bos": bool(f.llama_vocab_get_add_bos(vocab)),
            "add_eos": bool(f.llama_vocab_get_add_eos(vocab)),
            "add_sep": bool(f.llama_vocab_get_add_sep(vocab)),
            "eog_ids": [token for token in tokens if f.llama_vocab_is_eog(vocab, token)],
            "texts": [f.llama_vocab_get_text(vocab, token) for token in tokens],
            "attributes": [f.llama_vocab_get_attr(vocab, token) for token in tokens],
        }


# ---- the command --------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare", help="get what is missing; all parts if none is named")
    preparing.add_argument("--vocabs", action="store_true", help="real vocabularies with their test cases")
    preparing.add_argument("--library", action="store_true", help="the library, into this environment")
    preparing.add_argument(
        "--command", action="store_true", dest="program", help="the program llama-tokenize"
    )
    preparing.add_argument("--server", action="store_true", help="the program llama-server")
    preparing.add_argument(
        "--tokenizers",
        action="store_true",
        help=f"the package tokenizers {TOKENIZERS_1}, in a folder of its own",
    )
    answering = commands.add_parser("answer", help="answer questions on stdin; `Oracle` starts this")
    answering.add_argument("progress", type=int, help="file descriptor to note the number of the question in")
    answering.add_argument("--show-log", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "answer":
        _answer_questions(arguments.progress, arguments.show_log)
        return 0
    parts = {
        "vocabs": arguments.vocabs,
        "library": arguments.library,
        "command": arguments.program,
        "server": arguments.server,
        "tokenizers": arguments.tokenizers,
    }
    try:
        prepare(**(parts if any(parts.values()) else {}))
    except subprocess.CalledProcessError as error:
        print(f"reference: failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
