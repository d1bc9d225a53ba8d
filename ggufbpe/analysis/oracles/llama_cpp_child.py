"""The child process that calls llama.cpp's C functions, so that its crash is not ours.

Run by its path, not imported: it needs nothing of ggufbpe. The argument is the name of an installed distribution
in `DISTRIBUTIONS`, the path of a shared library, or a folder that has one. Before it loads the library, the program
restarts itself if it is given a second argument, the size in bytes of its stack, or more: a command that starts
programs under another C library.
A message is a length of 8 bytes, little-endian, and that many bytes of `marshal`. A question is the name of a method of
`CLibrary` with its arguments; an answer is ("ok", value), ("refused", why) for a file that llama.cpp does not accept,
("absent", why) if the distribution is not installed, or ("error", why).
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules must not shadow others of the same name

import ctypes
import glob
import marshal
import os
import re
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from typing import Any

# The package of a distribution, and where in it the shared library is.
DISTRIBUTIONS = {
    "llama-cpp-python": ("llama_cpp", ("lib/libllama.so", "lib/libllama.dylib", "lib/llama.dll")),
    "xllamacpp": ("xllamacpp", ("xllamacpp*.so", "xllamacpp*.pyd")),
}
# The names of llama.cpp's library, and the folders of an installation or a build in which it lies.
LIBRARIES = (
    "libllama.so",
    "libllama.dylib",
    "llama.dll",
    "libllama.dll",
    "libllama.so.0",
    "libllama.0.dylib",
)
FOLDERS = ("", "lib", "bin", "lib64", "build/bin", "lib/*", "*")
# The special ids that llama.cpp reports; it has no function for the unknown token's and for `eom`.
SPECIAL_IDS = ["bos", "eos", "eot", "sep", "nl", "pad", "mask"]
SPECIAL_IDS += ["fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"]


class RefusedError(ValueError):
    """llama.cpp does not accept a file; only its log says why."""


class Parameters(ctypes.Structure):
    """llama_model_params, which is passed by value: at least as large as in any version."""

    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


class CLibrary:
    """The C functions, with Python values in and out. One method a question."""

    def __init__(self, library: str) -> None:
        if library in DISTRIBUTIONS:
            version, path = _find(library)
        else:
            version, path = "", library_in(library) if os.path.isdir(library) else os.path.abspath(library)
        handle = _load(path)
        self.version = version or _build_of(handle, path)
        self._f = _functions(handle)
        _load_backends(handle, os.path.dirname(path))
        self._f.llama_backend_init()
        self._parameters = self._f.llama_model_default_params()
        self._parameters.bytes[_place_of_vocab_only(bytes(self._parameters))] = 1
        self._model: int | None = None
        self._vocab: int | None = None
        self._ids = (ctypes.c_int32 * 65536)()
        self._text = ctypes.create_string_buffer(1 << 20)

    def open(self, path: bytes) -> str:
        """Load a vocabulary; returns the version of the distribution, or the build of a library if it is known."""
        if self._model is not None:
            self._f.llama_model_free(self._model)
        self._model = self._f.llama_model_load_from_file(path, self._parameters)
        if self._model is None:
            raise RefusedError("llama.cpp cannot load the model's vocabulary")
        self._vocab = self._f.llama_model_get_vocab(self._model)
        return self.version

    def tokenize(self, questions: Sequence[tuple[bytes, bool, bool]]) -> list[list[int]]:
        return [self._tokenize(*question) for question in questions]

    def _tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        while True:
            ids = self._ids
            count = self._f.llama_tokenize(
                self._vocab, text, len(text), ids, len(ids), add_special, parse_special
            )
            if count >= 0:
                return ids[:count]
            self._ids = (ctypes.c_int32 * -count)()

    def detokenize(self, questions: Sequence[tuple[Sequence[int], bool, bool]]) -> list[bytes]:
        return [self._detokenize(*question) for question in questions]

    def _detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        given = (ctypes.c_int32 * len(ids))(*ids)
        while True:
            text = self._text
            size = self._f.llama_detokenize(
                self._vocab, given, len(ids), text, len(text), remove_special, unparse_special
            )
            if size >= 0:
                return ctypes.string_at(text, size)
            self._text = ctypes.create_string_buffer(-size)

    def pieces(self, special: bool) -> list[bytes]:
        """The piece of every token; unless `special`, control tokens have none."""
        text, pieces = self._text, []
        for token in range(self._f.llama_vocab_n_tokens(self._vocab)):
            size = self._f.llama_token_to_piece(self._vocab, token, text, len(text), 0, special)
            pieces.append(ctypes.string_at(text, size))
        return pieces

    def describe(self) -> dict[str, Any]:
        f, vocab = self._f, self._vocab
        ids = {name: getattr(f, f"llama_vocab_{name}")(vocab) for name in SPECIAL_IDS}
        tokens = range(f.llama_vocab_n_tokens(vocab))
        return {
            "vocab_type": f.llama_vocab_type(vocab),
            "special_ids": {name: None if token < 0 else token for name, token in ids.items()},
            "add_bos": f.llama_vocab_get_add_bos(vocab),
            "add_eos": f.llama_vocab_get_add_eos(vocab),
            "add_sep": f.llama_vocab_get_add_sep(vocab),
            "eog_ids": [token for token in tokens if f.llama_vocab_is_eog(vocab, token)],
            "texts": [f.llama_vocab_get_text(vocab, token) for token in tokens],
            "attributes": [f.llama_vocab_get_attr(vocab, token) for token in tokens],
        }


def _find(distribution: str) -> tuple[str, str]:
    """The version of an installed distribution, and the path of its shared library."""
    package, patterns = DISTRIBUTIONS[distribution]
    specification = util.find_spec(package)  # imports nothing: a dependency of the package may be missing
    if specification is None:
        raise ModuleNotFoundError(f"No module named {package!r}")
    for folder in specification.submodule_search_locations or ():
        for pattern in patterns:
            for path in glob.glob(os.path.join(glob.escape(folder), pattern)):
                return metadata.version(distribution), path
    raise FileNotFoundError(f"no shared library of llama.cpp in the package {package}")


def library_in(folder: str) -> str:
    """The path of llama.cpp's library in a folder. `FileNotFoundError` if it has none."""
    root = glob.escape(os.path.abspath(folder))
    for inside in FOLDERS:
        for name in LIBRARIES:
            for path in sorted(glob.glob(os.path.join(root, inside, name))):
                return path
    *first, last = LIBRARIES[:3]
    raise FileNotFoundError(
        f"there is no {', '.join(first)} or {last} in {folder}, nor in its lib, bin or build/bin"
    )


def _load(path: str) -> ctypes.CDLL:
    """The library, with those that it needs from its own folder.

    Most builds tell the loader to search their own folder. Libraries of the others are loaded one by one.
    """
    folder = os.path.dirname(path)
    if sys.platform == "win32":
        os.add_dll_directory(folder)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        needed = _neighbours(folder)
        if not needed:
            raise error
    for _ in range(len(needed)):  # each needs others, in an order that their names do not tell
        problems = {each: problem for each in needed if (problem := _problem_of(each))}
        needed = list(problems)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise next((each for each in problems.values() if "GLIBC" in str(each)), error) from None


def _neighbours(folder: str) -> list[str]:
    """The paths of ggml's libraries in a folder."""
    libraries = glob.glob(os.path.join(glob.escape(folder), "*ggml*"))
    return sorted(path for path in libraries if re.search(r"\.(so|dylib|dll)\b", path))


def _problem_of(path: str) -> OSError | None:
    """Load a library for those that need it; returns why it cannot be loaded, None if it is."""
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        return error
    return None


def _load_backends(library: ctypes.CDLL, folder: str) -> None:
    """Load ggml's backends where they are libraries of their own: without one, llama.cpp loads no file."""
    try:
        if library.ggml_backend_reg_count() == 0:
            library.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
            library.ggml_backend_load_all_from_path(os.fsencode(folder))
    except AttributeError:  # before ggml had backends
        pass


def _build_of(library: ctypes.CDLL, path: str) -> str:
    """The build of a library, such as "b11739", with its commit; "" if nothing tells.

    Libraries with llama.cpp's common code know their number, ggml knows the commit, and folders of releases are named
    after the build. Packages write it into a file beside the library.
    """
    build = _number(library, path) or next(_named_builds(os.path.dirname(path)), "")
    commit = ""
    try:
        library.ggml_commit.restype = ctypes.c_char_p
        commit = library.ggml_commit().decode("ascii", "replace").removesuffix("-dirty")
    except AttributeError:
        pass
    known = commit if re.fullmatch("[0-9a-f]{7,40}", commit) else ""
    return f"{build} ({known})" if build and known else build or known


def _number(library: ctypes.CDLL, path: str) -> str:
    """The number of a build, by its own function."""
    libraries = [library]
    for other in sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(path)), "*llama-common*"))):
        try:
            libraries.append(ctypes.CDLL(other))
        except OSError:
            continue
    for each in libraries:
        try:
            number: int = each._Z18llama_build_numberv()  # int llama_build_number(void), of C++
        except AttributeError:
            continue
        if number > 0:
            return f"b{number}"
    return ""


def _named_builds(folder: str) -> Iterator[str]:
    """Builds that files and folders name: those of a package's _version.py, and of a release's folder."""
    try:
        with open(os.path.join(folder, "_version.py"), encoding="utf-8") as file:
            yield from re.findall(r"""llama_cpp_tag\w*\s*=\s*["'](b\d+)""", file.read(65536))
    except (OSError, UnicodeDecodeError):
        pass
    for name in reversed(folder.split(os.sep)[-3:]):
        yield from re.findall(r"(?<![0-9A-Za-z])b\d{4,6}(?![0-9A-Za-z])", name)


def _functions(library: ctypes.CDLL) -> Any:
    """The library with the types of its functions, from include/llama.h."""
    pointer, i32, flag, text = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool, ctypes.c_char_p
    ids = ctypes.POINTER(i32)
    types: dict[str, tuple[Any, list[Any]]] = {
        "llama_backend_init": (None, []),
        "llama_model_default_params": (Parameters, []),
        "llama_model_load_from_file": (pointer, [text, Parameters]),
        "llama_model_free": (None, [pointer]),
        "llama_model_get_vocab": (pointer, [pointer]),
        "llama_tokenize": (i32, [pointer, text, i32, ids, i32, flag, flag]),
        "llama_detokenize": (i32, [pointer, ids, i32, text, i32, flag, flag]),
        "llama_token_to_piece": (i32, [pointer, i32, text, i32, i32, flag]),
        "llama_vocab_n_tokens": (i32, [pointer]),
        "llama_vocab_type": (i32, [pointer]),
        "llama_vocab_get_text": (text, [pointer, i32]),
        "llama_vocab_get_attr": (i32, [pointer, i32]),
        "llama_vocab_is_eog": (flag, [pointer, i32]),
        **{f"llama_vocab_get_add_{name}": (flag, [pointer]) for name in ("bos", "eos", "sep")},
        **{f"llama_vocab_{name}": (i32, [pointer]) for name in SPECIAL_IDS},
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _place_of_vocab_only(defaults: bytes) -> int:
    """The offset of `vocab_only` in the default parameters: the first of the booleans, which follow the pointers.

    Those are null or addresses, `vocab_only` is false, and one of the booleans after it is true.
    """
    for place in range(56, 96, 8):
        booleans = defaults[place : place + 6]
        if any(booleans) and not booleans[0] and max(booleans) == 1:
            return place
    raise ValueError("no booleans in llama_model_default_params()")


def main() -> None:
    """Answer questions until standard input ends."""
    library, *restart = sys.argv[1:]
    if sys.platform != "win32":
        import resource

        if restart:  # stack and C library are fixed when a program starts
            stack, *launcher = restart
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            if int(stack):
                size = int(stack) if hard == resource.RLIM_INFINITY else min(int(stack), hard)
                resource.setrlimit(resource.RLIMIT_STACK, (size, hard))
            command = [*launcher, sys.executable, __file__, library]
            os.execv(command[0], command)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # llama.cpp's output must not mix with the answers
    llama: CLibrary | None = None
    while head := questions.read(8):
        method, *arguments = marshal.loads(questions.read(int.from_bytes(head, "little")))
        try:
            llama = llama or CLibrary(library)
            answer = ("ok", getattr(llama, method)(*arguments))
        except ModuleNotFoundError as error:
            answer = ("absent", str(error))
        except RefusedError as error:
            answer = ("refused", str(error))
        except Exception as error:
            answer = ("error", f"{error}")
        data = marshal.dumps(answer)
        answers.write(len(data).to_bytes(8, "little") + data)
        answers.flush()


if __name__ == "__main__":
    main()
