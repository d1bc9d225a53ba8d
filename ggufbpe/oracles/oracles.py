"""The tokenizers that ours is compared with, each a real one behind one interface.

    verify.py -> [this file] -> llama-tokenize, llama-server, llama_cpp.py, library_child.py, recorded ids, another GGUF

`ORACLES` has each by the name that `--against` gives it. None is trusted: it may crash, hang, or answer with
garbage, and each of these is a `Failure` in place of the ids, after which the next text gets its answer.

But: they are asked for ids alone, since not all can give more.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import printable
from ..tokenizer import Tokenizer
from ..vocab import Vocabulary

if TYPE_CHECKING:
    import subprocess
    from queue import SimpleQueue

GET_LLAMA_TOKENIZE = (
    "llama-tokenize comes with llama.cpp: https://github.com/ggml-org/llama.cpp/releases has it built, `brew "
    "install llama.cpp` installs it, and `cmake -B build && cmake --build build --target llama-tokenize` builds "
    "it; then put it on PATH or give --against llama-tokenize:PATH"
)
_LOG_LINE = re.compile(r"[\d.]+ [DIW] |\s*$")
_EXTRAS = {"tokenizers": "tokenizers", "tiktoken": "tiktoken"}


class OracleError(ValueError):
    """An oracle that cannot be asked at all: not there, not installed, or it refuses the model."""


class Failure(NamedTuple):
    """No ids: the oracle crashed, took too long ("timeout"), gave garbage, or cannot take this text ("refused")."""

    kind: str
    detail: str


Answer = list[int] | Failure


class Oracle:
    """A tokenizer to compare with; a context manager.

    `tokenizer` is set where the oracle is our own engine, `recorded` where it cannot be asked about other
    texts than those whose ids it has, in their order.
    """

    name: str
    recorded = False
    batch = 64  # texts asked for at a time
    tokenizer: Tokenizer | None = None
    note = ""  # what the reader of a comparison has to know

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        """The ids of each text, or why there are none; the flags are those of `Tokenizer.encode`."""
        raise NotImplementedError

    def add_special(self, wanted: bool) -> bool:
        """Whether to compare with BOS and EOS: `wanted`, unless the oracle cannot."""
        return wanted

    def first_recorded(self) -> list[int]:
        """The recorded ids of the first text, where these are all there is."""
        return []

    def close(self) -> None:
        """End what was started."""

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_oracle(given: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    """The oracle that `--against` names, such as "llama-tokenize" or "server:http://localhost:8080".

    `model` is the file that `tokenizer` comes from; `seconds` bounds the answer for one text. Raises
    `OracleError` that says what to do.
    """
    name, _, rest = given.partition(":")
    if name not in ORACLES:
        raise OracleError(f"there is no oracle {printable(given)}; there are {', '.join(USAGES)}")
    if not rest and name in NEED_ARGUMENT:
        raise OracleError(f"{name} needs something after a colon: {NEED_ARGUMENT[name]}")
    return ORACLES[name](rest, model, tokenizer, seconds)


# ---- the command llama-tokenize -------------------------------------------------------------------------


class LlamaTokenize(Oracle):
    """The command, run once a text, as many at a time as there are processors.

    It passes "the model wants BOS" as "add special tokens" (tools/tokenize/tokenize.cpp), so a model without
    BOS gets no EOS either.
    """

    def __init__(self, path: str, model: str, tokenizer: Tokenizer, seconds: float) -> None:
        self.name = "llama-tokenize"
        self._command = _find_command(path)
        self._model = model
        self._adds_bos = tokenizer.add_bos
        self._seconds = seconds
        self._running: set[subprocess.Popen[bytes]] = set()
        self.batch = 2 * (os.cpu_count() or 1)
        status, _, errors, failure = self._run(b"Hello", True, True)
        if status != 0:
            problem = failure.detail if failure else _last_error(errors) or "it says nothing"
            raise OracleError(
                f"{self._command} cannot take this model ({_ending(status)}): {printable(problem, 200)}"
            )

    def add_special(self, wanted: bool) -> bool:
        return wanted and self._adds_bos

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            try:
                return list(pool.map(lambda text: self._encode(text, add_special, parse_special), texts))
            except BaseException:  # interrupted: nobody waits for the answers
                pool.shutdown(wait=False, cancel_futures=True)
                for child in list(self._running):
                    _kill(child)
                raise

    def _encode(self, text: bytes, add_special: bool, parse_special: bool) -> Answer:
        status, output, errors, problem = self._run(text, add_special, parse_special)
        if problem is not None:
            return problem
        if status != 0:
            last = _last_error(errors)
            return Failure("crash", _ending(status) + (f": {printable(last, 200)}" if last else ""))
        body = output.strip()
        numbers = body[1:-1].split(b", ") if len(body) > 2 else []
        if body[:1] != b"[" or body[-1:] != b"]" or not all(number.isdigit() for number in numbers):
            return _garbage(output)
        return [int(number) for number in numbers]

    def _run(self, text: bytes, add: bool, parse: bool) -> tuple[int, bytes, str, Failure | None]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text")
            with open(path, "wb") as file:
                file.write(text)
            flags = ["--no-bos"] * (not add) + ["--no-parse-special"] * (not parse)
            command = [self._command, "-m", self._model, "-f", path, "--ids", "--no-escape", *flags]
            # an id and what follows take 11 bytes at most, and a byte that is not UTF-8 becomes three tokens
            return _run(command, self._seconds, 4096 + 33 * len(text), self._running)


def _find_command(path: str) -> str:
    import shutil

    if not path:
        found = shutil.which("llama-tokenize")
        if found is None:
            raise OracleError(f"llama-tokenize is not on PATH; {GET_LLAMA_TOKENIZE}")
        return found
    inside = os.path.join(path, "llama-tokenize")
    found = shutil.which(inside if os.path.isdir(path) else os.path.abspath(path))
    if found is None:
        raise OracleError(f"{path} is no command that can be run; {GET_LLAMA_TOKENIZE}")
    return found


def _run(
    command: list[str], seconds: float, limit: int, running: set[subprocess.Popen[bytes]]
) -> tuple[int, bytes, str, Failure | None]:
    """Run a command: its status, at most `limit` bytes of output, the end of its errors, and what went wrong.

    While it runs, it is in `running`.
    """
    import subprocess
    import threading

    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}  # or an abort starts a debugger
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # so that what it starts ends with it
    ) as child:
        running.add(child)
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(child)

        timer = threading.Timer(seconds, end)
        errors = bytearray()
        reader = threading.Thread(target=_keep_end, args=(child.stderr, errors))
        timer.start()
        reader.start()
        assert child.stdout is not None
        output = child.stdout.read(limit + 1)
        if len(output) > limit:
            _kill(child)
        status = child.wait()
        timer.cancel()
        reader.join()
        running.discard(child)
    said = errors.decode("utf-8", "replace").strip()
    if late.is_set():
        return status, output, said, Failure("timeout", f"no answer within {seconds:g} s")
    return status, output, said, _garbage(output) if len(output) > limit else None


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a child and, where there are process groups, all that it started."""
    if sys.platform == "win32":
        child.kill()
        return
    import signal
    from contextlib import suppress

    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _keep_end(stream: Any, kept: bytearray) -> None:
    """Read a stream to its end, and keep the last of it."""
    while block := stream.read1(1 << 16):
        kept += block
        del kept[:-4096]


def _last_error(said: str) -> str:
    """The last line that is no warning or information of llama.cpp's log: "0.00.123.456 W …"."""
    lines = [line for line in said.splitlines() if not _LOG_LINE.match(line)]
    return lines[-1].strip() if lines else ""


def _garbage(output: bytes) -> Failure:
    shown = printable(output[:60].decode("utf-8", "replace"))
    return Failure("garbage", f"the output is no list of ids: {shown}" if output else "no output")


def _ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"exit code {status}"
    import signal

    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


# ---- llama.cpp in process -------------------------------------------------------------------------------


class InProcess(Oracle):
    """The library llama.cpp of a Python package, in a child process that is started anew when it crashes or hangs."""

    def __init__(self, package: str, model: str, seconds: float) -> None:
        from .llama_cpp import LibraryError, LlamaCpp, LoadError

        self._seconds = seconds
        try:
            self._llama = LlamaCpp(package, os.path.abspath(model), seconds=seconds)
        except LibraryError as error:
            if error.absent:
                raise OracleError(_not_installed(package, str(error))) from None
            raise OracleError(f"{package} cannot be asked: {printable(str(error), 200)}") from None
        except LoadError as error:
            if error.crash is not None:
                failure = _of_crash(error.crash.status, seconds)
                raise OracleError(f"{package} does not survive opening this: {failure.detail}") from None
            raise OracleError(
                f"{package} cannot open this: llama.cpp cannot load the model's vocabulary"
            ) from None
        self.name = f"{package} {self._llama.version}"

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        from .llama_cpp import LoadError

        try:
            answers = self._llama.tokenize(texts, add_special, parse_special)
        except LoadError as error:  # by a child that was started anew
            return [Failure("crash", str(error))] * len(texts)
        return [ids if isinstance(ids, list) else _of_crash(ids.status, self._seconds) for ids in answers]

    def close(self) -> None:
        self._llama.close()


def _of_crash(status: int | None, seconds: float) -> Failure:
    """What became of a process that ended with a status, or gave no answer in time."""
    if status is None:
        return Failure("timeout", f"no answer within {seconds:g} s")
    return Failure("crash", _ending(status))


def _in_process(package: str) -> Callable[[str, str, Tokenizer, float], Oracle]:
    def opened(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
        if rest:
            raise OracleError(f"{package} takes nothing after a colon: it opens the model of -m")
        return InProcess(package, model, seconds)

    return opened


# ---- Python packages, in a child process ----------------------------------------------------------------


class Library(Oracle):
    """Another tokenizer's package, in a child process that is started anew when it crashes or hangs."""

    def __init__(self, library: str, config: dict[str, Any], label: str, seconds: float) -> None:
        self._config = {"library": library, **config}
        self._seconds = seconds
        self._child: _Child | None = None
        self.name = f"{label} {self._started().version}".strip()

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._encode(text, add_special | parse_special << 1) for text in texts]

    def _encode(self, text: bytes, flags: int) -> Answer:
        child = self._started()
        answer = child.ask(bytes([flags]) + text, self._seconds)
        if answer[:1] == b"+":
            return array("i", answer[1:]).tolist()
        if answer[:1] == b"-":
            return Failure("refused", answer[1:].decode("utf-8", "replace"))
        self._child = None
        return child.failure(self._seconds, late=answer == b"late")

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._config, max(self._seconds, 60.0))
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """One process of library_child.py. Raises `OracleError` where the library cannot be used."""

    def __init__(self, config: dict[str, Any], seconds: float) -> None:
        import json
        import subprocess
        import threading
        from queue import SimpleQueue

        script = os.path.join(os.path.dirname(__file__), "library_child.py")
        self._process = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
        )
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        answer = self.ask(json.dumps(config).encode(), seconds)
        if answer[:1] != b"+":
            failure = (
                "" if answer[:1] in b"?!" and answer else self.failure(seconds, answer == b"late").detail
            )
            self.end()
            raise OracleError(_cannot_open(config, answer, failure))
        self.version = answer[1:].decode()

    def ask(self, message: bytes, seconds: float) -> bytes:
        """The answer to a message; b"late" or b"" where there is none."""
        from queue import Empty

        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(len(message).to_bytes(8, "little") + message)
            stdin.flush()
            return self._answers.get(timeout=seconds)
        except BrokenPipeError:
            return b""
        except Empty:
            return b"late"

    def failure(self, seconds: float, late: bool) -> Failure:
        """What became of a process that gave no answer; it is ended."""
        status = None if late else self._process.wait()
        self.end()
        return _of_crash(status, seconds)

    def end(self) -> None:
        from contextlib import suppress

        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while head := stdout.read(8):
            self._answers.put(stdout.read(int.from_bytes(head, "little")))
        self._answers.put(b"")


def _cannot_open(config: dict[str, Any], answer: bytes, failure: str) -> str:
    extra = _EXTRAS[config["library"]]
    said = answer[1:].decode("utf-8", "replace")
    if answer[:1] == b"?":
        return _not_installed(extra, said)
    if failure:
        return f"{extra} does not survive opening this: {failure}"
    if config["library"] == "tiktoken" and "file" not in config:
        known = "an encoding's name needs the network, or a file in TIKTOKEN_CACHE_DIR"
        return f"tiktoken cannot open {config['name']} ({printable(said, 200)}); {known}"
    return f"{extra} cannot open this: {printable(said, 200)}"


def _not_installed(package: str, said: str) -> str:
    return f"the package {package} is not installed ({said}): pip install 'ggufbpe[{package}]'"


def _tokenizers(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    path = os.path.join(rest, "tokenizer.json") if os.path.isdir(rest) else rest
    _check_file(path)
    return Library("tokenizers", {"file": os.path.abspath(path)}, "tokenizers", seconds)


class _Tiktoken(Library):
    note = "compared without BOS and EOS, which tiktoken does not add"

    def add_special(self, wanted: bool) -> bool:
        return False


def _tiktoken(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    if not rest.endswith(".tiktoken") and not os.path.exists(rest):
        return _Tiktoken("tiktoken", {"name": rest}, f"tiktoken {rest}", seconds)
    _check_file(rest)
    name = os.path.basename(rest).removesuffix(".tiktoken")
    config = {"name": name, "file": os.path.abspath(rest), **_as_tiktoken(tokenizer.vocabulary)}
    return _Tiktoken("tiktoken", config, f"tiktoken {printable(name)[1:-1]}", seconds)


def _as_tiktoken(vocabulary: Vocabulary) -> dict[str, Any]:
    """A pattern and special tokens for a file that has none: the model's own, for an encoding of no known name.

    What llama.cpp's pattern does not match stays a piece; tiktoken would drop it, so it gets an alternative.
    """
    special = {vocabulary.tokens[token]: token for token in vocabulary.special_token_ids}
    first, *others = vocabulary.pre_tokenizer.patterns
    if others:
        return {"pattern": "", "special": special}
    return {"pattern": rf"{first}|(?:(?!{first})[\s\S])+", "special": special}


def _check_file(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise OracleError(f"{path}: {error.strerror}") from error


# ---- llama-server ---------------------------------------------------------------------------------------


class Server(Oracle):
    """A running llama-server, asked by POST /tokenize (tools/server/server-context.cpp, post_tokenize)."""

    def __init__(self, url: str, model: str, tokenizer: Tokenizer, seconds: float) -> None:
        from urllib.parse import urlsplit
        from urllib.request import ProxyHandler, build_opener

        url = url if "://" in url else f"http://{url}"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OracleError(f"{printable(url)} is no address of a server, such as http://127.0.0.1:8080")
        self._url = url.rstrip("/") + "/tokenize"
        self._seconds = seconds
        near = parts.hostname in ("localhost", "::1") or parts.hostname.startswith("127.")
        self._open = build_opener(*[ProxyHandler({})] * near).open
        self.name = f"llama-server at {parts.netloc.rpartition('@')[2]}"
        [answer] = self.encode([b"Hello"], True, True)
        if isinstance(answer, Failure):
            raise OracleError(f"no llama-server answers at {printable(self._url)}: {answer.detail}")

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._encode(text, add_special, parse_special) for text in texts]

    def _encode(self, text: bytes, add_special: bool, parse_special: bool) -> Answer:
        import json
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        try:
            question = {"content": text.decode(), "add_special": add_special, "parse_special": parse_special}
        except UnicodeDecodeError as error:
            return Failure("refused", f"the text is not UTF-8 at byte {error.start}, which JSON cannot carry")
        request = Request(
            self._url, json.dumps(question).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with self._open(request, timeout=self._seconds) as response:
                body = _read_in_time(response, self._seconds, 4096 + 64 * len(text))
        except HTTPError as error:
            with error:
                said = printable(error.read(500).decode("utf-8", "replace"), 200)
            return Failure("refused", f"HTTP {error.code}: {said}")
        except TimeoutError:
            return Failure("timeout", f"no answer within {self._seconds:g} s")
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                return Failure("timeout", f"no answer within {self._seconds:g} s")
            return Failure("crash", f"no connection: {printable(str(reason), 200)}")
        return _ids_of_answer(body)


def _read_in_time(response: Any, seconds: float, limit: int) -> bytes:
    """A body of at most a byte over `limit`. `TimeoutError` where it drips in for too long."""
    import time

    end = time.monotonic() + seconds
    body = b""
    while len(body) <= limit and (block := response.read1(1 << 16)):
        body += block
        if time.monotonic() > end:
            raise TimeoutError
    return body


def _ids_of_answer(body: bytes) -> Answer:
    import json

    try:
        ids = json.loads(body)["tokens"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return _garbage(body)
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        return _garbage(body)
    return ids


# ---- recorded ids, and our own engine over another file -------------------------------------------------


class Recorded(Oracle):
    """Ids from a file, for one text after the other."""

    recorded = True

    def __init__(self, path: str, model: str, tokenizer: Tokenizer, seconds: float) -> None:
        from .recorded import parse_ids

        _check_file(path)
        with open(path, "rb") as file:
            data = file.read()
        try:
            self._rest = parse_ids(data)
        except ValueError as error:
            raise OracleError(f"{path}: {error}") from error
        self.name = f"the ids of {printable(os.path.basename(path))[1:-1]}"
        self._path = path
        self._total = len(self._rest)
        self._rest.reverse()

    def first_recorded(self) -> list[int]:
        return self._rest[-1] if self._rest else []

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        if len(texts) > len(self._rest):
            raise OracleError(
                f"{self._path} has ids of {self._total} texts, and there are more texts (give each text as it "
                "was when the ids were made; a file is one text)"
            )
        return [self._rest.pop() for _ in texts]


class OtherModel(Oracle):
    """Our own engine with another GGUF."""

    def __init__(self, other: Tokenizer) -> None:
        self.tokenizer = other
        self.name = printable(os.path.basename(other.vocabulary.path))[1:-1]

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        assert self.tokenizer is not None
        return [
            self.tokenizer.encode(text, add_special=add_special, parse_special=parse_special)
            for text in texts
        ]


def _other_model(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> Oracle:
    return OtherModel(Tokenizer.from_gguf(rest))


ORACLES: dict[str, Callable[[str, str, Tokenizer, float], Oracle]] = {
    "llama-tokenize": LlamaTokenize,
    "llama-cpp-python": _in_process("llama-cpp-python"),
    "xllamacpp": _in_process("xllamacpp"),
    "server": Server,
    "hf": _tokenizers,
    "tiktoken": _tiktoken,
    "ids": Recorded,
    "gguf": _other_model,
}
NEED_ARGUMENT = {
    "server": "the address of a llama-server, such as server:http://127.0.0.1:8080",
    "hf": "the path of a tokenizer.json",
    "tiktoken": "a .tiktoken file or the name of an encoding",
    "ids": "the path of a file of ids",
    "gguf": "the path of another GGUF",
}
USAGES = (
    "llama-tokenize[:PATH]",
    "llama-cpp-python",
    "xllamacpp",
    "server:URL",
    "hf:tokenizer.json",
    "tiktoken:FILE.tiktoken",
    "tiktoken:ENCODING",
    "ids:FILE",
    "gguf:other.gguf",
)
