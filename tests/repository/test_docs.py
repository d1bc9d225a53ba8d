"""Documentation that can be checked: examples run, public names exist, and each says what it is for."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import doctest
import importlib
import inspect
import pkgutil
import pydoc
import re
import shutil
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import GPT2, ROOT, missing

import ggufbpe
from ggufbpe._util.extras import NotInstalledError
from ggufbpe.tokenizer.vocabulary_facts import Fact

MODULES = [
    module.name
    for module in pkgutil.walk_packages(ggufbpe.__path__, "ggufbpe.")
    if not module.name.endswith("__main__") and not module.name.startswith("ggufbpe.integrations.")
]  # tests/integrations/ imports the adapters, each of which wants its library
TOK = ggufbpe.Tokenizer.from_gguf(GPT2)
CORE = (
    "_util.errors gguf.metadata gguf.reader models.bpe.merge models.pretokenizers.pattern "
    "models.pretokenizers.registry models.pretokenizers.splitter "
    "tokenizer.detokenization tokenizer.encode_methods tokenizer.special_tokens tokenizer _util.unicode_classes "
    "_util.utf8 models.vocabulary"
)


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except NotInstalledError as error:
        missing(str(error))


def test_all_modules_are_found() -> None:
    assert {f"ggufbpe.{name}" for name in CORE.split()} <= set(MODULES)


# ---- examples in docstrings ------------------------------------------------------------------------------

# what the examples need that are not run
SKIPPED = {
    "LlamaCpp": "the package xllamacpp and a Llama 3 model",
    "argument_for": "a file whose flag has the type of a number",
    "audit": "a hostile template",
    "check_draft": "two models of a family",
    "compare": "two models that split digits differently",
    "count_chat": "a projector",
    "count_files": "a folder of texts",
    "diff": "two models with different pre-tokenizers",
    "doctor": "a model with faults",
    "from_huggingface": "a folder of Hugging Face",
    "gguf_file": "the program llama-tokenize",
    "import_vocabulary": "a folder of Hugging Face",
    "local_drafts": "models in a program's store",
    "local_models": "models in a program's store",
    "locate": "a model of Ollama's store",
    "to_tokenizer_json": "the package tokenizers",
    "verify": "the program llama-tokenize",
}
WITH_EXAMPLES = [
    name
    for name in dir(ggufbpe.Tokenizer)
    if ">>>" in (inspect.getdoc(inspect.getattr_static(ggufbpe.Tokenizer, name)) or "")
]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What examples may take for granted: `tok` has the GPT-2 vocabulary, as have two files in the current folder."""
    for file in ("gpt2.gguf", "model.gguf"):
        shutil.copy(GPT2, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    return {"tok": TOK, "Tokenizer": ggufbpe.Tokenizer}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("name", ["ggufbpe", *MODULES])
def test_examples_run(name: str, names: dict[str, Any]) -> None:
    assert doctest.testmod(load(name), extraglobs=names).failed == 0


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_of_the_tokenizer_run(name: str, names: dict[str, Any]) -> None:
    """In a module, doctest finds no methods of base classes, which are named after `Tokenizer`, and no attributes."""
    text = inspect.getdoc(inspect.getattr_static(ggufbpe.Tokenizer, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, dict(names), name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_there_are_examples_of_the_tokenizer() -> None:
    assert {"common_prefix", "encode_stream", "fits", "token_bytes"} <= set(WITH_EXAMPLES)


def test_skipped_examples_are_listed_with_what_they_need() -> None:
    skipping = [
        node.name
        for file in (ROOT / "ggufbpe").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and "+SKIP" in (ast.get_docstring(node) or "")
    ]
    assert sorted(skipping) == sorted(SKIPPED)


@pytest.mark.slow
def test_there_are_examples() -> None:
    found = [test for name in MODULES for test in doctest.DocTestFinder().find(load(name))]
    assert sum(doctest.SKIP not in example.options for test in found for example in test.examples) >= 20


# ---- public names ---------------------------------------------------------------------------------------


def test_public_names_are_sorted_and_listed_once() -> None:
    assert ggufbpe.__all__ == sorted(set(ggufbpe.__all__))
    assert {"Tokenizer", "GGUFError", "GGUFWarning", "TokenAttribute"} <= set(ggufbpe.__all__)


def test_type_checkers_see_the_same_public_names() -> None:
    stub = ast.parse((ROOT / "ggufbpe" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert {(alias.name, alias.asname): node.module for node in imports for alias in node.names} == {
        (name, name): home for name, home in ggufbpe._HOMES.items()
    }
    variables = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    assert variables == {"LLAMA_CPP", "__version__"}


FUNCTIONS = {
    name: getattr(ggufbpe, name) for name in ggufbpe.__all__ if inspect.isfunction(getattr(ggufbpe, name))
}
METHODS = {
    f"Tokenizer.{name}": getattr(ggufbpe.Tokenizer, name)
    for name in dir(ggufbpe.Tokenizer)
    if not name.startswith("_") and callable(getattr(ggufbpe.Tokenizer, name))
}
NOT_OURS = {
    *dir(builtins),
    *dir(typing),
    *dir(collections.abc),
    "np",
    "npt",
    "NDArray",
    "int32",
    "int64",
    "uint8",
}


@pytest.mark.parametrize("function", {**FUNCTIONS, **METHODS}.values(), ids=[*FUNCTIONS, *METHODS])
def test_types_that_public_functions_return_are_public(function: Any) -> None:
    returned = function.__annotations__["return"]
    assert set(re.findall(r"\w+", returned)) <= {*ggufbpe.__all__, *NOT_OURS}


@pytest.mark.parametrize("function", {**FUNCTIONS, **METHODS}.values(), ids=[*FUNCTIONS, *METHODS])
def test_help_shows_defaults_that_can_be_written(function: Any) -> None:
    assert re.findall(r"<function [^>]*>|mappingproxy|<\w.* at 0x", str(inspect.signature(function))) == []


# Attributes of public classes that are for the package itself: what they are made of is not described.
INNER = {
    *(
        "ReferenceEngine",
        "TokenizerModel",
        "PreTokenizer",
        "SpecialTokens",
        "PairRanks",
        "Capabilities",
        "Source",
    ),
    *("Remote", "RemoteProgress", "Form", "Seed", "_Vision", "_Audio"),
}
ALIASES = {
    "Facts",
    "Ids",
    "Kind",
    "Message",
    "Request",
    "Row",
    "Sections",
    "Side",
}  # of types that are public


def annotations_of(kind: type) -> Iterator[str]:
    """The types of public attributes and of what public methods return, as they are written."""
    for base in (base for base in kind.__mro__ if base.__module__.startswith("ggufbpe.")):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for node in body:
            if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):  # type: ignore[union-attr]
                yield ast.unparse(node.annotation)
            if isinstance(node, ast.FunctionDef):
                if node.returns is not None and not node.name.startswith("_"):
                    yield ast.unparse(node.returns)
                arguments = {each.arg: each.annotation for each in node.args.args}
                for inner in ast.walk(node):
                    target = inner.target if isinstance(inner, ast.AnnAssign) else None
                    found = inner.annotation if isinstance(inner, ast.AnnAssign) else None
                    if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name):
                        target, found = inner.targets[0], arguments.get(inner.value.id)
                    is_public = isinstance(target, ast.Attribute) and not target.attr.startswith("_")
                    if is_public and found is not None:
                        yield ast.unparse(found)


CLASSES = [name for name in ggufbpe.__all__ if inspect.isclass(getattr(ggufbpe, name))]


@pytest.mark.parametrize("name", CLASSES)
def test_types_of_the_parts_of_a_result_are_public(name: str) -> None:
    written = [re.sub(r"'[^']*'", "", each) for each in annotations_of(getattr(ggufbpe, name))]
    types = {word for each in written for word in re.findall(r"\b_?[A-Z]\w+", each)}
    assert types - INNER - ALIASES <= {*ggufbpe.__all__, *NOT_OURS}


@pytest.mark.parametrize("name", ggufbpe.__all__)
def test_public_name_exists_and_says_what_it_is(name: str) -> None:
    found = getattr(ggufbpe, name)
    assert found.__name__ == name
    assert is_documented(found)
    assert name in dir(ggufbpe)


def test_what_a_tab_shows_is_public() -> None:
    shown = {name for name in dir(ggufbpe) if not name.startswith("_")}
    assert shown == {*ggufbpe.__all__, "LLAMA_CPP"}


def test_texts_for_people_are_short() -> None:
    tok = ggufbpe.Tokenizer.from_gguf(GPT2)
    assert repr(tok) == "<Tokenizer gpt2 gpt-2 of 50257 tokens>"
    assert repr(tok.vocabulary) == "<Vocabulary gpt2 gpt-2 of 50257 tokens>"


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'ggufbpe' has no attribute 'Tokeniser'"):
        ggufbpe.Tokeniser  # noqa: B018


def test_every_public_error_and_warning_is_exported() -> None:
    homes = (load("ggufbpe._util.errors"), load("ggufbpe.models.vocabulary"))
    named = {
        name
        for home in homes
        for name, value in vars(home).items()
        if inspect.isclass(value)
        and issubclass(value, Exception)
        and value.__module__ in ("ggufbpe", home.__name__)
    }
    assert named <= set(ggufbpe.__all__)
    for name in named - {
        "GGUFWarning",
        "ChatError",
        "ChatTooLongError",
        "ModelNameError",
    }:  # of a chat or name, no file is to blame
        assert issubclass(getattr(ggufbpe, name), ggufbpe.GGUFError)


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
)
def test_errors_that_a_page_names_can_be_caught(page: str) -> None:
    named = set(re.findall(r"`(\w+(?:Error|Warning))`", (ROOT / page).read_text(encoding="utf-8")))
    of_javascript = {"TokenizerError"} if page == "docs/javascript.md" else set()
    assert named - of_javascript <= {*ggufbpe.__all__, *dir(builtins)}


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
)
def test_what_a_page_names_of_the_package_exists(page: str) -> None:
    named = set(re.findall(r"`(ggufbpe(?:\.\w+)+)", (ROOT / page).read_text(encoding="utf-8")))
    for name in sorted(named - {"ggufbpe.wasm"}):
        if not name.startswith("ggufbpe.integrations"):  # tests/integrations/ has the libraries for these
            assert pkgutil.resolve_name(name) is not None, name


def test_a_path_is_no_vocabulary() -> None:
    with pytest.raises(TypeError, match=r"but str; Tokenizer\.from_gguf\(path\) opens a file"):
        ggufbpe.Tokenizer("model.gguf")  # type: ignore[arg-type]


def test_import_is_light() -> None:
    """What a command does not need is not imported with the package: numpy takes longer than a whole run."""
    assert heavy_after("import ggufbpe; ggufbpe.Tokenizer") == []


PLAIN = [
    "tokenize -p Hello --ids",
    "tokenize -p Hello",
    "detokenize 15496",
    "count -p Hello",
    "info --json",
    "explain Hello --json",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", PLAIN)
def test_plain_output_imports_nothing_that_draws(command: str) -> None:
    run = f"from ggufbpe.cli import main; assert main({command.split()}) == 0"
    assert not {"rich", "jinja2"} & set(heavy_after(run))


def heavy_after(program: str) -> list[str]:
    """What a program imports of packages that take long."""
    heavy = ["numpy", "gguf", "regex", "rich", "jinja2", "hypothesis"]
    program += f"; import sys; print(*[m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stderr.splitlines()[-1].split()


# ---- docstrings -----------------------------------------------------------------------------------------


def is_documented(found: object) -> bool:
    """A docstring of its own: not inherited, and not the signature that a NamedTuple gets."""
    own = vars(found).get("__doc__") if inspect.isclass(found) else getattr(found, "__doc__", None)
    return bool(own and own.strip() and not own.startswith(f"{getattr(found, '__name__', '')}("))


def public_parts(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Public functions, classes, methods and properties that are written in `module`."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield name, value
        if not inspect.isclass(value):
            continue
        for part, member in vars(value).items():
            function = getattr(member, "__func__", None) or getattr(member, "fget", None)
            function = inspect.unwrap(function or getattr(member, "func", None) or member)
            in_this_file = (
                getattr(getattr(function, "__code__", None), "co_filename", None) == module.__file__
            )
            if not part.startswith("_") and inspect.isfunction(function) and in_this_file:
                yield f"{name}.{part}", function


@pytest.mark.parametrize("name", MODULES)
def test_module_is_documented(name: str) -> None:
    assert is_documented(load(name))


@pytest.mark.parametrize("name", CORE.split())
def test_public_parts_of_module_are_documented(name: str) -> None:
    """Of the modules between a file and its ids."""
    module = load(f"ggufbpe.{name}")
    undocumented = [part for part, value in public_parts(module) if not is_documented(value)]
    assert undocumented == []


def test_help_has_every_attribute_of_the_tokenizer() -> None:
    """With what it is, as `help(Tokenizer)` shows it; also those that are set on first use."""
    shown = pydoc.render_doc(ggufbpe.Tokenizer, renderer=pydoc.plaintext)
    names = [name for name in dir(ggufbpe.Tokenizer) if not name.startswith("_")]
    assert {"bos_id", "engine", "eot_id", "nl_id", "pre", "vocabulary"} <= set(names)
    for name in names:
        said = inspect.getdoc(inspect.getattr_static(ggufbpe.Tokenizer, name))
        assert said, name
        head, _, _ = said.partition("\n")
        assert re.search(rf"^ \|  {name}\b.*\n \|      {re.escape(head)}", shown, re.MULTILINE), name


@pytest.mark.parametrize("name", ggufbpe.__all__)
def test_public_name_is_on_a_page(name: str) -> None:
    """Of functions and classes; the errors are told by what raises them."""
    if inspect.isclass(getattr(ggufbpe, name)) and issubclass(getattr(ggufbpe, name), Exception):
        name = "GGUFError"
    pages = "".join(
        page.read_text(encoding="utf-8") for page in (ROOT / "README.md", ROOT / "docs" / "python.md")
    )
    assert re.search(rf"\b{name}\b", pages)


def test_every_public_name_of_the_tokenizer_is_documented() -> None:
    parts = dict(public_parts(load("ggufbpe.tokenizer")))
    methods = {
        name
        for name, member in vars(ggufbpe.Tokenizer).items()
        if not name.startswith("_") and not (isinstance(member, Fact) and member.__doc__ != Fact.__doc__)
    }
    assert {f"Tokenizer.{name}" for name in methods} <= set(parts)


def test_files_that_the_table_of_places_names_exist() -> None:
    """A stranger opens the file that docs/design.md names for a new command, model or pre-tokenizer."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = page.partition("## Where something new goes\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w./]+\.(?:py|cpp|txt|md))`", table))
    files = [
        path.relative_to(ROOT).as_posix()
        for folder in ("ggufbpe", "scripts", "tests", "docs")
        for path in (ROOT / folder).rglob("*")
    ]
    assert len(named) >= 30
    assert [
        name for name in sorted(named) if not any(f"/{file}".endswith(f"/{name}") for file in files)
    ] == []
