"""The reference: llama.cpp in three states, fetched, built, and asked.

    python scripts/reference.py prepare        # vocabularies, libraries and commands, into .cache/

`NEWER` is the state that is followed: its library, in a wheel. Where the system's C library is too old for it, Debian's
newer one is unpacked into the cache, and children that load the library are started with that. `CHATS` is the state
that chats follow: a wheel with llama-server. `OLDER` is the second opinion, and has the commands `llama-tokenize` and
`llama-server`: the source distribution of one release of llama-cpp-python carries it whole, with real vocabularies and
upstream's own test cases. From elsewhere come only the package tokenizers 1.0, which must read the files that `export`
writes, and the tokenizer.json of T5 and umT5, which stable-diffusion.cpp has in its source. Existing files stay;
interrupted steps start again, since every step works under a temporary name and renames at the end. The folder is
`.cache/` of the repository, or $GGUFBPE_REFERENCE.

`Oracle` asks each state through its C functions, in a child process (ggufbpe/analysis/oracles/llama_cpp.py).

But: the older state needs a C++ compiler, and the first `prepare` takes six minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ggufbpe._util.llama_cpp_states import CHATS as CHATS
from ggufbpe._util.llama_cpp_states import FOLLOWED, STATES, checked_state
from ggufbpe.analysis.oracles.llama_cpp import Crash as Crash
from ggufbpe.analysis.oracles.llama_cpp import LibraryError, LlamaCpp
from ggufbpe.analysis.oracles.llama_cpp import LoadError as LoadError
from ggufbpe.analysis.oracles.llama_cpp_child import SPECIAL_IDS as SPECIAL_IDS
from ggufbpe.convert.imported import pack
from ggufbpe.convert.importers.import_files import import_file

# The state of llama.cpp that is followed: a wheel with its shared libraries.
NEWER = FOLLOWED
NEWER_DISTRIBUTION, NEWER_PACKAGE = "llama-cpp-py-sync", "llama_cpp_py_sync"
NEWER_VERSION = "0.11739"
NEWER_SHA256 = (  # of the wheels for Linux on x86_64, macOS on arm64, and Windows
    "c97dd32b41841ab779172f9d20616cc915a73045ae5dca4b81051e6cd2751714",
    "e1ebe30bbbe4e428be573a9db3e38cd083d66aa42d30e7bfdbd1ce7278df21ae",
    "74bbe204b04203bc2cf885a28127919bc398d0dad7bd22353518956620508ca4",
)
NEEDED_GLIBC = (2, 38)  # by its libraries
DEBIAN = "trixie"  # the release whose C library runs them on an older system
_C_LIBRARY_PACKAGES = ("libc6", "libstdc++6", "libgcc-s1", "libgomp1")
# The state that chats follow: a wheel with one library that has the C functions, and llama-server.
CHATS_DISTRIBUTION = "xllamacpp"
CHATS_VERSION = "2026.10.11549"
CHATS_SHA256 = (  # of the wheels for Linux, x86_64 and aarch64
    "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",
    "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",
)
# The oldest one, for its programs and as a second opinion: a source distribution that contains llama.cpp.
OLDER = STATES[0]
DISTRIBUTION = "llama-cpp-python"
VERSION = "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
# Tokenizers of unigram models as they were published: arrays of bytes in these files of stable-diffusion.cpp.
T5_DISTRIBUTION = "stable-diffusion-cpp-python"
T5_VERSION = "0.4.7"
T5_SHA256 = "998d1957260dd5ae4e18a8acc0c14b0a8757aaa9f96515197b6d5bbf46df9282"
T5 = {"t5": "clip_t5.hpp", "umt5": "umt5.hpp"}

ROOT = Path(__file__).resolve().parent.parent
TOKENIZERS_1 = "1.0.0rc3"  # of the package tokenizers, beside the 0.x that is installed
_ARCHIVE = f"llama_cpp_python-{VERSION}.tar.gz"
_DISTRIBUTED = f"llama_cpp_python-{VERSION}/"
_SOURCE = f"{_DISTRIBUTED}vendor/llama.cpp/"
# Sources of the older state that cannot be compiled as one with those beside them, and those of tokenizers.
_COMPILED_ALONE = {"common": ("json.cpp",), "tools/mtmd": ("mtmd-helper.cpp", "mtmd-helper-gen.cpp")}
_TOKENIZERS = {"ggml/src": ("gguf.cpp",), "src": ("llama-model-loader.cpp", "llama-vocab.cpp", "unicode.cpp")}
_LIBRARY = {"win32": "llama.dll", "darwin": "libllama.dylib"}.get(sys.platform, "libllama.so")


class NotPreparedError(RuntimeError):
    """A part of the reference is missing; the message has the command that gets it."""


# ---- what is in the cache -----------------------------------------------------------------------------


def cache_directory() -> Path:
    """The folder of everything fetched or built: $GGUFBPE_REFERENCE, or `.cache` in the repository."""
    return Path(os.environ.get("GGUFBPE_REFERENCE") or ROOT / ".cache")


def vocabulary(name: str) -> Path:
    """The path of a real vocabulary, by the name upstream gives it.

    >>> vocabulary("llama-bpe").name                                        # doctest: +SKIP
    'ggml-vocab-llama-bpe.gguf'

    Raises `NotPreparedError` if it is not in the cache.
    """
    if name in T5:
        return published_tokenizer(name).with_name(f"{name}.gguf")
    path = cache_directory() / "vocabs" / f"ggml-vocab-{name}.gguf"
    if not path.is_file():
        raise NotPreparedError(
            f"no vocabulary {path}: `python scripts/reference.py prepare --vocabs` gets all of them"
        )
    return path


def published_tokenizer(name: str) -> Path:
    """The tokenizer.json of "t5" or "umt5" as it was published. Raises `NotPreparedError` if it is not in the cache."""
    path = _t5() / name / "tokenizer.json"
    if not path.is_file():
        raise NotPreparedError(f"no {path}: `python scripts/reference.py prepare --t5` gets it")
    return path


def llama_tokenize_command() -> Path:
    """The path of the command `llama-tokenize`, of the older state. Raises `NotPreparedError` if it is not built."""
    return _built("llama-tokenize")


def llama_server_command() -> Path:
    """The path of the command `llama-server`, of the older state. Raises `NotPreparedError` if it is not built.

    It needs a model with weights: make_tiny_model.py writes one.
    """
    return _built("llama-server")


def library(state: str = NEWER) -> Path:
    """The shared library of a state with the C functions, or its folder. `NotPreparedError` if it is missing.

    `ValueError` for a state that is not known, or of which `prepare` has no library.
    """
    if checked_state(state) == OLDER:
        return _built(_LIBRARY)
    if state == CHATS:
        for path in (_chats() / CHATS_DISTRIBUTION).glob(f"{CHATS_DISTRIBUTION}.*"):
            return path
        raise NotPreparedError(f"no {_chats()}: `python scripts/reference.py prepare --chats` gets it")
    if state != NEWER:
        raise ValueError(f"`python scripts/reference.py prepare` gets no library of llama.cpp {state}")
    folder = _newer() / NEWER_PACKAGE
    if not folder.is_dir():
        raise NotPreparedError(f"no {folder}: `python scripts/reference.py prepare --newer` gets it")
    return folder


def xllamacpp_packages() -> Path:
    """The folder with the package xllamacpp, for a PYTHONPATH. `NotPreparedError` if it is missing."""
    return library(CHATS).parent.parent


def _newer() -> Path:
    return cache_directory() / f"{NEWER_DISTRIBUTION}-{NEWER_VERSION}"


def _chats() -> Path:
    return cache_directory() / f"{CHATS_DISTRIBUTION}-{CHATS_VERSION}"


def needs_c_library() -> bool:
    """Whether the system's C library is older than that which `NEWER` needs."""
    name, version = platform.libc_ver()
    return name == "glibc" and tuple(map(int, version.split(".")[:2])) < NEEDED_GLIBC


def _t5() -> Path:
    return cache_directory() / f"{T5_DISTRIBUTION}-{T5_VERSION}"


def _older() -> Path:
    """The folder built from the older state: programs, and the shared libraries beside them."""
    return cache_directory() / f"llama.cpp-{OLDER}"


def _built(name: str) -> Path:
    path = _older() / (name if name == _LIBRARY else _executable(name))
    if not path.is_file():
        raise NotPreparedError(f"no {path}: `python scripts/reference.py prepare --older` builds it")
    return path


def tokenizers_1() -> Path:
    """The folder with tokenizers 1.0, for the PYTHONPATH of a child. `NotPreparedError` if it is missing."""
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
    t5: bool = True,
    newer: bool = True,
    chats: bool = True,
    older: bool = True,
    package: bool = True,
    tokenizers: bool = True,
    *,
    optimization: str = "3",
) -> None:
    """Get what is missing, and print each step. `optimization` is the compiler's level for the older state."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    _remove_leftovers()
    if tokenizers:
        _install_aside(f"tokenizers=={TOKENIZERS_1}", cache_directory() / f"tokenizers-{TOKENIZERS_1}")
    if newer:
        requirement = _hashed(NEWER_DISTRIBUTION, NEWER_VERSION, NEWER_SHA256)
        _install_aside(requirement, _newer(), add_c_library if needs_c_library() else None)
    if chats:
        _install_aside(_hashed(CHATS_DISTRIBUTION, CHATS_VERSION, CHATS_SHA256), _chats())
    if vocabs:
        _prepare_vocabularies()
    if t5:
        _prepare_t5()
    if older or package:
        _prepare_older(optimization)
    if package:
        _prepare_package()


def _hashed(distribution: str, version: str, digests: Sequence[str]) -> str:
    """A requirement that takes only these files."""
    return f"{distribution}=={version}" + "".join(f" --hash=sha256:{digest}" for digest in digests)


def add_c_library(package: Path) -> None:
    """Put into a folder with llama.cpp's libraries the C library of `DEBIAN`, by this Debian's own sources of packages.

    The system stays as it is: only a child that loads this library runs under that C library.
    """
    _say(f"C library: getting that of Debian {DEBIAN}, which llama.cpp's libraries need")
    with tempfile.TemporaryDirectory() as folder:
        apt = Path(folder)
        for name in ("etc", "lists/partial", "cache/archives/partial"):
            (apt / name).mkdir(parents=True)
        for number, source in enumerate(_debian_sources()):
            (apt / "etc" / f"{number}{source.suffix}").write_text(_of_release(source.read_text()))
        places = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": apt / "etc",
            "Dir::State::lists": apt / "lists",
            "Dir::Cache": apt / "cache",
            "APT::Sandbox::User": "root",  # which may write here
        }
        command = ["apt-get", "-qq", *(f"-o{key}={place}" for key, place in places.items())]
        _run([*command, "update"])
        subprocess.run([*command, "download", *_C_LIBRARY_PACKAGES], check=True, cwd=apt)
        for archive in apt.glob("*.deb"):
            _run(["dpkg", "-x", str(archive), str(apt / "root")])
        root = apt / "root" / "usr"
        for path in [
            *root.glob("lib64/ld-linux*"),
            *root.glob("lib/ld-linux*"),
            *root.glob("lib/*-linux-gnu/*.so*"),
        ]:
            shutil.copyfile(path, package / path.name)
        for loader in package.glob("ld-linux*"):
            loader.chmod(0o755)


def _debian_sources() -> list[Path]:
    """The files that name this Debian's sources of packages. `NotPreparedError` on another system."""
    apt = Path("/etc/apt")
    files = [apt / "sources.list", *apt.glob("sources.list.d/*.list"), *apt.glob("sources.list.d/*.sources")]
    found = [path for path in files if path.is_file() and re.search(r"\bdebian\b", path.read_text())]
    if not found or _codename() == "":
        wanted = ".".join(map(str, NEEDED_GLIBC))
        raise NotPreparedError(
            f"the libraries of llama.cpp {NEWER} need a C library of version {wanted}, and this is no Debian, whose "
            "newer one could be unpacked"
        )
    return found


def _of_release(sources: str) -> str:
    """Sources of packages for `DEBIAN` instead of this release."""
    return re.sub(rf"\b{re.escape(_codename())}\b", DEBIAN, sources)


def _codename() -> str:
    """The name of the running Debian; "" if it is none."""
    found = platform.freedesktop_os_release()
    return found.get("VERSION_CODENAME", "") if found.get("ID") == "debian" else ""


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


def _prepare_t5() -> None:
    """The files as published, and each imported as a GGUF beside it."""
    if _t5().is_dir():
        _say(f"T5: {_t5()} is there")
        return
    with _partial("t5") as folder:
        _say(f"T5: fetching {T5_DISTRIBUTION} {T5_VERSION}, about 20 MB")
        folder.mkdir()
        archive = _download(T5_DISTRIBUTION, T5_VERSION, T5_SHA256, folder)
        prefix = f"{archive.name.removesuffix('.tar.gz')}/vendor/stable-diffusion.cpp/src/tokenizers/vocab/"
        _extract(archive, folder / "source", prefix)
        archive.unlink()
        for name, file in T5.items():
            (folder / name).mkdir()
            source = (folder / "source" / file).read_text(encoding="ascii")
            (_, numbers) = source.split(f"{name}_tokenizer_json_str[] = {{")
            numbers = numbers[: numbers.index("}")].replace("0x", "").replace(",", "")
            path = folder / name / "tokenizer.json"
            path.write_bytes(bytes.fromhex(numbers))
            path.with_name(f"{name}.gguf").write_bytes(pack(import_file(str(path)).metadata))
        shutil.rmtree(folder / "source")
        folder.rename(_t5())


def _install_aside(requirement: str, target: Path, add: Callable[[Path], None] | None = None) -> None:
    """Install the wheel of a package into a folder of its own, hidden from other imports; `add` puts more into it."""
    if target.is_dir():
        _say(f"package: {target} is there")
        return
    with _partial("package") as folder:
        _say(f"package: {requirement.partition(' ')[0]} into {target}")
        _pip("install", ["--no-deps", "--only-binary", ":all:", "--target", str(folder)], requirement)
        if add is not None:
            add(folder / NEWER_PACKAGE)
        folder.rename(target)


def _prepare_package() -> None:
    """Install llama-cpp-python in this environment, over the libraries built for the programs."""
    if library_is_installed():
        _say(f"package: {DISTRIBUTION} {VERSION} is installed")
        return
    with _partial("python") as folder:
        _say(f"package: {DISTRIBUTION} {VERSION}, with the libraries of {_older()}")
        _extract(_source_distribution(), folder, _DISTRIBUTED, without=_SOURCE)
        (folder / ".gitignore").unlink(missing_ok=True)  # it would keep libraries out of the wheel
        (folder / "llama_cpp" / "lib").mkdir(exist_ok=True)
        for path in _older().glob("*.*"):  # libraries; a program has no suffix
            shutil.copyfile(path, folder / "llama_cpp" / "lib" / path.name)
        _run([*_PIP, "install", "--config-settings", "wheel.cmake=false", str(folder)])


def _prepare_older(optimization: str) -> None:
    """Build programs and libraries of the older state together, since they share most of the compiling."""
    if _older().is_dir():
        _say(f"programs: {_older()} is there")
        return
    archive = _source_distribution()
    with _partial("older") as folder:
        _say("programs: extracting the sources")
        _extract(archive, folder / "source", _SOURCE)
        targets = ["llama-tokenize", "llama-server"]
        built = _build(folder / "source", folder / "build", targets, optimization)
        built.rename(_older())


def _build(source: Path, build: Path, targets: Sequence[str], optimization: str) -> Path:
    """Build programs of llama.cpp; returns the folder with them and their libraries, which can be moved."""
    cmake, generator = _build_tools()
    switched_off = [
        *("LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES", "LLAMA_BUILD_APP", "LLAMA_BUILD_UI"),
        *("LLAMA_CURL", "LLAMA_OPENSSL", "LLAMA_USE_PREBUILT_UI", "LLAMA_LLGUIDANCE"),
        *("GGML_NATIVE", "GGML_OPENMP", "GGML_CCACHE"),
    ]
    switched_on = [
        "LLAMA_BUILD_TOOLS",
        "LLAMA_BUILD_SERVER",
        "BUILD_SHARED_LIBS",
        "CMAKE_BUILD_RPATH_USE_ORIGIN",
        "CMAKE_UNITY_BUILD",  # half the time; llama.cpp compiles its own library by file all the same
    ]
    _set_properties(source, _COMPILED_ALONE, "SKIP_UNITY_BUILD_INCLUSION ON")
    flags = f"-O{optimization} -DNDEBUG"
    less = [f"-DCMAKE_{name}_FLAGS_RELEASE={flags}" for name in ("C", "CXX")] if optimization != "3" else []
    if optimization == "0":  # otherwise each question takes more than it takes to compile these
        _set_properties(source, _TOKENIZERS, "COMPILE_OPTIONS -O1")
    _say(f"programs: compiling {' and '.join(targets)}, about 11 minutes on one core")
    _run(
        [cmake, "-S", str(source), "-B", str(build), *generator, "-DCMAKE_BUILD_TYPE=Release"]
        + [f"-D{name}=ON" for name in switched_on]
        + [f"-D{name}=OFF" for name in switched_off]
        + less
    )
    parallel = ["--parallel", _parallel()]
    _run([cmake, "--build", str(build), "--config", "Release", "--target", *targets, *parallel])
    folders = [build / "bin", build / "bin" / "Release"]
    [folder] = [folder for folder in folders if (folder / _executable(targets[0])).is_file()]
    return folder


def _set_properties(source: Path, names: dict[str, tuple[str, ...]], properties: str) -> None:
    """Set properties of CMake for sources of llama.cpp, which are given by folder."""
    for folder, files in names.items():
        with (source / folder / "CMakeLists.txt").open("a", encoding="utf-8") as lists:
            lists.write(f"\nset_source_files_properties({' '.join(files)} PROPERTIES {properties})\n")


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
    """The source distribution, fetched by pip if it is missing; its hash is checked before it is used."""
    target = cache_directory() / _ARCHIVE
    if target.is_file() and _sha256(target) == SHA256:
        return target
    with _partial("download") as folder:
        _say(f"source: fetching {DISTRIBUTION} {VERSION}, about 75 MB")
        folder.mkdir()
        _download(DISTRIBUTION, VERSION, SHA256, folder).replace(target)
    return target


def _download(distribution: str, version: str, digest: str, folder: Path) -> Path:
    """A source distribution, in an empty folder."""
    options = ["--no-deps", "--no-binary", distribution, "--dest", str(folder)]
    _pip("download", options, f"{distribution}=={version} --hash=sha256:{digest}")
    [archive] = folder.iterdir()
    return archive


_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def _pip(command: str, options: Sequence[str], requirement: str) -> None:
    """Run pip for one requirement, through a file: only there does pip take hashes."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text(requirement + "\n")
        _run([*_PIP, command, *options, "--requirement", str(wanted)])


def _extract(
    archive: Path, folder: Path, prefix: str, flat: bool = False, without: str | None = None
) -> None:
    """Extract the regular files whose names begin with `prefix`, and not with `without`; `flat` drops their folders."""
    folder.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile() or not member.name.startswith(prefix) or ".." in member.name:
                continue
            if without and member.name.startswith(without):
                continue
            name = Path(member.name).name if flat else member.name.removeprefix(prefix)
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

    If `pre` is None, the name stays. `model` replaces `tokenizer.ggml.model`; `extra` has further keys, added or
    replaced, as `write_metadata` takes them (a value None removes the key). Only the changed keys are packed again,
    so a copy of a large vocabulary costs milliseconds.
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
    """Write a GGUF with these keys and no tensors.

    A value is a str, bool, int (uint32, or int32 if negative), float, or a list of one of them (int32 for
    integers); a pair (value, GGUFValueType) or (list, GGUFValueType.ARRAY, element type) gives the type.

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
    writer.kv_data[0].clear()  # drop the architecture, which the writer adds: the caller gives all keys
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
    """Each key of a GGUF with its bytes there: name, type and value."""
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


class Oracle(LlamaCpp):
    """llama.cpp's tokenizer for one vocabulary, in one of the states.

    >>> with Oracle(vocabulary("llama-bpe")) as oracle:                      # doctest: +SKIP
    ...     oracle.tokenize([b"Hello world"], add_special=True, parse_special=True)
    [[128000, 9906, 1917]]

    Options are those of `LlamaCpp`, but an answer has a minute, as tests run on busy machines. Raises
    `NotPreparedError` if the state is not in the cache, `LibraryError` if the library there says that it is of
    another build, and `ValueError` as `library` does.
    """

    def __init__(self, path: str | os.PathLike[str], state: str = NEWER, **options: Any) -> None:
        super().__init__(library(state), path, **{"seconds": 60.0, **options})
        build = self.version.partition(" ")[0]
        if build not in ("", state):
            self.close()
            raise LibraryError(f"{library(state)} is llama.cpp {build}, not {state}", absent=False)


# ---- the command --------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare", help="get what is missing; without options, all parts")
    preparing.add_argument("--vocabs", action="store_true", help="real vocabularies with their test cases")
    preparing.add_argument("--t5", action="store_true", help="the tokenizers of T5 and umT5")
    preparing.add_argument("--newer", action="store_true", help=f"the library of {NEWER}, from its wheel")
    preparing.add_argument("--chats", action="store_true", help=f"the package with {CHATS}, for chats")
    preparing.add_argument("--older", action="store_true", help=f"library and programs of {OLDER}, compiled")
    preparing.add_argument(
        "--package",
        action="store_true",
        help=f"{DISTRIBUTION} with the library of {OLDER}, into this environment",
    )
    preparing.add_argument(
        "--tokenizers",
        action="store_true",
        help=f"the package tokenizers {TOKENIZERS_1}, in a folder of its own",
    )
    preparing.add_argument(
        "--optimization",
        choices=("0", "3"),
        default="3",
        help=f"of the compiler for {OLDER}: 0 compiles in less time; benchmarks want 3, the default",
    )
    arguments = parser.parse_args()
    parts = {
        "vocabs": arguments.vocabs,
        "t5": arguments.t5,
        "newer": arguments.newer,
        "chats": arguments.chats,
        "older": arguments.older,
        "package": arguments.package,
        "tokenizers": arguments.tokenizers,
    }
    try:
        prepare(**(parts if any(parts.values()) else {}), optimization=arguments.optimization)
    except (subprocess.CalledProcessError, NotPreparedError) as error:
        print(f"reference: failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
