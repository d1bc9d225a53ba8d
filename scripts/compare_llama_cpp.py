r"""What changed between two states of llama.cpp, as far as tokenizers are concerned.

    python scripts/compare_llama_cpp.py old.tar.gz new.tar.gz
    python scripts/compare_llama_cpp.py old/llama.cpp new/llama.cpp --libraries 0c1e57098 b11549 --texts 20000

A state is a folder with llama.cpp in it, or an archive (a source distribution that carries it). Its sources are read
for names of pre-tokenizers with their flags, patterns, tokenizer models with their special ids, texts that become
special tokens or end a generation, metadata keys, and names that set attributes; a line is printed for each that is
new (+), gone (-) or changed (~). Other changes are inside functions: those whose code changed are named, to be
read. `--libraries` asks two shared libraries (or states of scripts/reference.py) for the ids of random texts, under
each name that both sources have. The status is 1 if anything differs.

But: C++ is read by regular expressions that know how these files are written. If an old state has some facts of a kind
and a new one none, that is an error, not a change.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from random_texts import RandomTexts
from record_fixtures import GPT2, MODELS, RAW, RAW_NAMES
from reference import NEWER, OLDER, NotPreparedError, library, with_pre

from ggufbpe.oracles.llama_cpp import LlamaCpp, LoadError

VOCAB, UNICODE, ARCH = "src/llama-vocab.cpp", "src/unicode.cpp", "src/llama-arch.cpp"
FILES = (VOCAB, UNICODE, ARCH)
SHOWN = 10  # texts whose ids differ

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


# ---- ids --------------------------------------------------------------------------------------------------


@cache
def _texts(count: int, seed: int) -> list[bytes]:
    source = RandomTexts(f"{seed}/compare")
    return [source.text() for _ in range(count)]


def other_ids(libraries: list[Path], names: list[str], count: int, seed: int) -> Iterator[str]:
    """A line for each random text whose ids differ in the second library, at most `SHOWN` for each name."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LlamaCpp(libraries[0], RAW) as old,
        LlamaCpp(libraries[1], RAW) as new,
    ):
        for number, name in enumerate(names):
            path = with_pre(
                RAW if name in RAW_NAMES else GPT2, name, Path(folder) / "v.gguf", MODELS.get(name)
            )
            texts = _texts(count, seed)[number :: len(names)]
            try:
                old.open(path)
                new.open(path)
            except LoadError as error:
                yield f"~ {name}: {error}"
                continue
            pairs = zip(texts, old.tokenize(texts, True, True), new.tokenize(texts, True, True))
            different = [(text, a, b) for text, a, b in pairs if a != b]
            for text, a, b in different[:SHOWN]:
                yield f"~ ids of {text!r} under {name}: {a} -> {b}"
            if len(different) > SHOWN:
                yield f"~ ids of {len(different) - SHOWN} more texts under {name}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", type=Path, help="folder or archive of the old sources")
    parser.add_argument("new", type=Path, help="folder or archive of the new sources")
    parser.add_argument(
        "--libraries",
        nargs=2,
        metavar=("OLD", "NEW"),
        help=f"shared libraries, or {OLDER} or {NEWER}, to compare ids",
    )
    parser.add_argument("--texts", type=int, default=20_000, help="random texts, over all names")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        old, new = facts(sources(arguments.old)), facts(sources(arguments.new))
        lines = list(changes(old, new))
        for line in lines:
            print(line)
        counted = ", ".join(f"{len(found)} {kind}" for kind, found in new.items())
        print(f"compared the sources: {counted}; {len(lines)} changes")
        if arguments.libraries:
            libraries = [
                library(each) if each in (OLDER, NEWER) else Path(each) for each in arguments.libraries
            ]
            names = [name[1:-1] for name in old["pre-tokenizer"] if name in new["pre-tokenizer"]]
            differing = list(other_ids(libraries, names, arguments.texts, arguments.seed))
            for line in differing:
                print(line)
            print(
                f"compared the ids of {arguments.texts} texts under {len(names)} names: {len(differing)} lines"
            )
            lines += differing
    except (OSError, ValueError, NotPreparedError) as error:
        print(f"compare_llama_cpp: {error}", file=sys.stderr)
        return 2
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
