r"""What changed in llama.cpp since the state that is followed, as far as tokenizers are concerned.

    python scripts/compare_llama_cpp.py
    python scripts/compare_llama_cpp.py --newer FOLDER --older b11549 --texts 20000
    python scripts/compare_llama_cpp.py --sources old.tar.gz new/llama.cpp

Without arguments, the package index is asked once for the newest versions of the packages that carry llama.cpp. If one
of them has a newer build than the one that is followed, it is fetched and compared: by the strings and symbols in its
library, each string put to use (llama_cpp_libraries.py), and by the ids of random texts under each name. `--newer`
names a library or its folder instead, and `--older` another known state than the one that is followed. What changed is
printed, and then what to write where.

`--sources` compares two folders or archives (a source distribution that carries llama.cpp) by their sources: names of
pre-tokenizers with their flags, patterns, tokenizer models with their special ids, texts that become special tokens or
end a generation, metadata keys, and names that set attributes; a line is printed for each that is new (+), gone (-) or
changed (~). Other changes are inside functions: those whose code changed are named, to be read.

The status is 1 if anything differs.

But: C++ is read by regular expressions that know how these files are written. If an old state has some facts of a kind
and a new one none, that is an error, not a change.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from llama_cpp_libraries import Libraries
from reference import NEWER, NotPreparedError, add_c_library, library, needs_c_library

from ggufbpe._util.llama_cpp_states import STATES
from ggufbpe.analysis.oracles.llama_cpp import LibraryError
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

DISTRIBUTIONS = ("llama-cpp-py-sync", "xllamacpp", "llama-cpp-python")  # packages that carry llama.cpp
LIKE_TEXTS = 500  # for which a new name must have the ids of a known one
VOCAB, UNICODE, ARCH = "src/llama-vocab.cpp", "src/unicode.cpp", "src/llama-arch.cpp"
FILES = (VOCAB, UNICODE, ARCH)

Facts = dict[str, dict[str, str]]  # by kind and name

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"({_STRING}|'(?:[^'\\]|\\.)')|//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME_TEST = re.compile(rf"tokenizer_pre\s*==\s*({_STRING})")
_ASSIGNMENT = re.compile(r"\b(\w+)\s*=\s*([^=;{}]+);")


def sources(state: Path) -> dict[str, str]:
    """The text of each of `FILES`, without comments, in a folder or an archive."""
    if state.is_dir():
        roots = [path.parent.parent for path in state.rglob(VOCAB)]
        if not roots:
            raise ValueError(f"no {VOCAB} in {state}")
        found = {name: (roots[0] / name).read_text(encoding="utf-8") for name in FILES}
    else:
        found = {}
        with tarfile.open(state) as tar:
            for member in tar:
                name = next((name for name in FILES if member.name.endswith("/" + name)), None)
                content = tar.extractfile(member) if name else None
                if name and content:
                    found[name] = content.read().decode()
        if missing := set(FILES) - found.keys():
            raise ValueError(f"no {', '.join(sorted(missing))} in {state}")
    return {name: _COMMENT.sub(lambda part: part[1] or " ", text) for name, text in found.items()}


def facts(source: dict[str, str]) -> Facts:
    """The facts in the sources of a state, by kind."""
    vocab = source[VOCAB]
    return {
        "pre-tokenizer": dict(_pre_tokenizers(vocab)),
        "patterns of": dict(_patterns(vocab)),
        "pattern split by hand": dict(_hand_written(source[UNICODE])),
        "tokenizer model": dict(_models(vocab)),
        "special text": dict(_special_texts(vocab)),
        "names that": dict(_telling_names(vocab)),
        "key": dict(re.findall(rf"\{{\s*(LLM_KV_TOKENIZER_\w+)\s*,\s*({_STRING})", source[ARCH])),
        "code of": {**_functions(vocab, "llama-vocab.cpp"), **_functions(source[UNICODE], "unicode.cpp")},
    }


def _block(text: str, start: int) -> str:
    """The text between the next brace from `start` on and the one that closes it."""
    depth = 0
    begin = text.index("{", start)
    for part in re.compile(rf"{_STRING}|'(?:[^'\\]|\\.)'|[{{}}]").finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if depth == 0:
            return text[begin + 1 : part.start()]
    raise ValueError(f"no end of the block at {text[start : start + 60]!r}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _pre_tokenizers(vocab: str) -> Iterator[tuple[str, str]]:
    """Each name in `tokenizer.ggml.pre`, with what its branch assigns."""
    for branch in re.finditer(rf"if\s*\(((?:\s*\|*\s*tokenizer_pre\s*==\s*{_STRING})+)\s*\)", vocab):
        assigned = _one_line(" ".join(part[0] for part in _ASSIGNMENT.finditer(_block(vocab, branch.end()))))
        for name in _NAME_TEST.findall(branch[1]):
            yield name, assigned


def _patterns(vocab: str) -> Iterator[tuple[str, str]]:
    """The patterns and `byte_encode` of each type of pre-tokenizer, from llm_tokenizer_bpe."""
    text = _block(vocab, vocab.index("switch (vocab.get_pre_type())"))
    for part in re.finditer(r"((?:case \w+:\s*|default:\s*)+)(.*?break;)", text, re.DOTALL):
        for name in re.findall(r"LLAMA_VOCAB_PRE_TYPE_(\w+)|(default)", part[1]):
            yield "".join(name), _one_line(part[2])


def _hand_written(unicode: str) -> Iterator[tuple[str, str]]:
    """The patterns that have a hand-written function, and which."""
    for part in re.finditer(
        r"if\s*\(((?:[^(){}]|\([^()]*\))*?regex_expr\s*==.*?)\)\s*\{(.*?)\}", unicode, re.DOTALL
    ):
        for pattern in re.findall(rf"regex_expr\s*==\s*({_STRING})", part[1]):
            yield pattern, _one_line(part[2])


def _models(vocab: str) -> Iterator[tuple[str, str]]:
    """Each name in `tokenizer.ggml.model`, with the special ids and other values that its branch assigns."""
    for branch in re.finditer(rf"if\s*\(((?:\s*\|*\s*tokenizer_model\s*==\s*{_STRING})+)\s*\)", vocab):
        assigned = _one_line(" ".join(part[0] for part in _ASSIGNMENT.finditer(_block(vocab, branch.end()))))
        for name in re.findall(rf"tokenizer_model\s*==\s*({_STRING})", branch[1]):
            yield name, assigned


def _special_texts(vocab: str) -> Iterator[tuple[str, str]]:
    """Each text that is compared with a token's, and what the token becomes: a special id, or an end of generation."""
    found: dict[str, set[str]] = {}
    for branch in re.finditer(rf"if\s*\(\s*false((?:\s*\|\|\s*t\.first\s*==\s*{_STRING})+)\s*\)", vocab):
        block = _block(vocab, branch.end())
        target = re.search(r"(special_\w+)(?:\s*=|\.insert)", block)
        for text in re.findall(_STRING, branch[1]):
            found.setdefault(text, set()).add(target[1] if target else "?")
    for text, targets in found.items():
        yield text, ", ".join(sorted(targets))


def _telling_names(vocab: str) -> Iterator[tuple[str, str]]:
    """The parts of names that set attributes of tokens, by the variable they are searched in."""
    for variable, names in re.findall(r"_contains_any\((\w+), \{([^}]*)\}\)", vocab):
        yield f"set attributes, in {variable}: {', '.join(re.findall(_STRING, names))}", ""


def _functions(text: str, file: str) -> dict[str, str]:
    """The code of each function and class that begins a line; functions of one name are joined."""
    found: dict[str, str] = {}
    for head in re.finditer(
        r"^(?![#}\s])([^;\n=]*?[\w:~]+\s*(?:\([^;{}]*\))?[^;{}()=]*)\{", text, re.MULTILINE
    ):
        names = re.findall(r"[\w:~]+(?=\s*\()|\b(?:struct|class|enum)\s+\w+", head[1])
        name = f"{file}: {names[0] if names else _one_line(head[1])}"
        found[name] = found.get(name, "") + _one_line(head[1] + _block(text, head.start()))
    return found


def changes(old: Facts, new: Facts) -> Iterator[str]:
    """A line for each fact that is new, gone or changed."""
    for kind, before in old.items():
        after = new[kind]
        if not before or not after:
            raise ValueError(f"nothing was found for {kind!r}: are these files written differently now?")
        said = kind != "code of"  # code is too long to be shown
        for name in sorted(before.keys() | after.keys()):
            if name not in before:
                yield f"+ {kind} {name}" + (f": {after[name]}" if after[name] and said else "")
            elif name not in after:
                yield f"- {kind} {name}" + (f": {before[name]}" if before[name] and said else "")
            elif before[name] != after[name]:
                yield f"~ {kind} {name}" + (f": {before[name]} -> {after[name]}" if said else "")


# ---- the newest package -------------------------------------------------------------------------------------


class Package(NamedTuple):
    """A version of a package that carries llama.cpp."""

    distribution: str
    version: str

    @property
    def build(self) -> int:
        """The number of llama.cpp's build in the version, such as 11739 of 0.11739; 0 if it does not have one."""
        last = re.search(r"(?:^|\.)(\d{4,6})(?:\.\d+)?$", self.version)
        return int(last[1]) if last else 0


def newest_packages() -> list[Package]:
    """The newest version of each package in `DISTRIBUTIONS`, by the package index."""
    found = []
    for distribution in DISTRIBUTIONS:
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "index",
            "versions",
            distribution,
        ]
        told = subprocess.run(command, capture_output=True, text=True).stdout
        if version := re.match(rf"{re.escape(distribution)} \(([^)]+)\)", told):
            found.append(Package(distribution, version[1]))
    return found


def fetched(package: Package, folder: Path) -> Path:
    """The folder of a package's wheel, with a C library beside it where the system's is too old."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    requirement = f"{package.distribution}=={package.version}"
    subprocess.run([*command, "--only-binary", ":all:", "--dest", str(folder), requirement], check=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    package_folder = folder / package.distribution.replace("-", "_")
    if needs_c_library():
        add_c_library(package_folder)
    return package_folder


def library_file(folder: Path) -> Path:
    """The library of an unpacked package: its folder, or the extension module that is the library."""
    modules = [*folder.glob("*.abi3.so"), *folder.glob("*.pyd")]
    return modules[0] if modules else folder


def compare(older: Path, newer: Path, texts: int, seed: int) -> tuple[list[str], list[str]]:
    """What changed from one library to another, and what to write: a line for each."""
    lines: list[str] = []
    entries: list[str] = []
    names = [*PRE_TOKENIZERS]
    with Libraries(older, newer) as libraries:
        new = libraries.strings()
        print(f"new strings: {', '.join(new.words)}")
        lines += [f"+ function {symbol}" for symbol in new.symbols]
        lines += [f"- function {symbol}" for symbol in new.gone]
        lines += [f"+ key {key}" for key in new.keys]
        lines += [f"+ pattern {pattern}" for pattern in new.patterns]
        entries += [f'gguf/schema.py, KEY_TYPES; scripts/generate_constants.py: "{key}"' for key in new.keys]
        for name in libraries.accepted("tokenizer.ggml.model", new.names):
            lines.append(f"+ tokenizer model {name!r}")
            entries.append(
                f"models/: a file for {name!r}; llama_cpp_states.py: a StateDifference of kind model"
            )
        for name in libraries.accepted("tokenizer.ggml.pre", new.names):
            like = libraries.splits_like(name, names, LIKE_TEXTS, str(seed))
            lines.append(f"+ pre-tokenizer {name!r}" + (f", with the ids of {like[0]}" if like else ""))
            family = PRE_TOKENIZERS[like[0]].family if like else "A NEW FAMILY, by the new pattern"
            entries.append(
                f'models/pretokenizers/registry.py: *_names("{family}", "{name}"); '
                "llama_cpp_states.py: a StateDifference of kind pre"
            )
        tokens = list(libraries.tokens(new.texts))
        lines += tokens
        entries += [f"models/special_ids.py and llama_cpp_states.py: {line[2:]}" for line in tokens]
        lines += libraries.other_ids(names, texts, str(seed))
    return lines, entries


def say(lines: list[str], entries: list[str], what: str) -> None:
    """Print what changed, and what to write."""
    for line in lines:
        print(line)
    print(f"{what}: {len(lines)} changes")
    if entries:
        print("to write, in ggufbpe/ unless it says otherwise:")
        for entry in entries:
            print(f"  {entry}")


def compare_newest(older: str, newer: Path | None, texts: int, seed: int) -> int:
    """Compare a library, or the newest package's, with a known state; the number of changes."""
    with tempfile.TemporaryDirectory() as folder:
        if newer is None:
            packages = newest_packages()
            print("newest packages: " + ", ".join(f"{each.distribution} {each.version}" for each in packages))
            newest = max(packages, key=lambda each: each.build, default=None)
            if newest is None:
                raise ValueError(f"the package index has none of {', '.join(DISTRIBUTIONS)}")
            if newest.build <= int(NEWER.removeprefix("b")):
                print(f"llama.cpp {NEWER} is followed, and none of them has a newer build")
                if older == NEWER:
                    return 0
                newer = library(NEWER)
            else:
                newer = library_file(fetched(newest, Path(folder)))
        lines, entries = compare(library(older), newer, texts, seed)
        if lines:
            build = Path(newer).name if "newest" not in locals() or newest is None else f"b{newest.build}"
            entries.insert(
                0,
                f'llama_cpp_states.py: "{build}" at the end of STATES, and a StateDifference for each change',
            )
            entries.insert(
                1,
                "scripts/reference.py: NEWER_DISTRIBUTION, NEWER_VERSION and NEWER_SHA256 (`pip hash` of the wheels)",
            )
        say(lines, entries, f"compared the libraries of {older} and {newer}, with {texts} random texts")
    return len(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--sources", nargs=2, type=Path, metavar=("OLD", "NEW"), help="folders or archives of sources"
    )
    parser.add_argument(
        "--newer",
        type=Path,
        metavar="LIBRARY",
        help="a library, or its folder (default: the newest package's)",
    )
    parser.add_argument(
        "--older", choices=STATES, default=NEWER, help=f"the state to compare with (default: {NEWER})"
    )
    parser.add_argument("--texts", type=int, default=20_000, help="random texts, over all names")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        if arguments.sources:
            old, new = (facts(sources(state)) for state in arguments.sources)
            lines = list(changes(old, new))
            counted = ", ".join(f"{len(found)} {kind}" for kind, found in new.items())
            say(lines, [], f"compared the sources: {counted}")
            return 1 if lines else 0
        return 1 if compare_newest(arguments.older, arguments.newer, arguments.texts, arguments.seed) else 0
    except (OSError, ValueError, NotPreparedError, LibraryError, subprocess.CalledProcessError) as error:
        print(f"compare_llama_cpp: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
