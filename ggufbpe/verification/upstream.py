"""Whether a model's ids match the repository that it says it was made from, and whose fault it is if not.

    metadata -> repositories -> [this file], by remote/hub.py -> tokenizer.json -> verify.py -> findings, as doctor's

The first repository with a tokenizer.json counts: first what the file was converted from, then what that was
fine-tuned from. The texts are random, made for the tokenizer.

But: a tokenizer.json is read by the package tokenizers, whose own mistakes look like those of the repository.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from ..by_name import ModelName, locate
from ..diagnosis.causes import together
from ..errors import ModelNameError, RemoteAccessError, RemoteError, RemoteNotFoundError, printable
from ..examination.finding import Finding, Where
from ..gguf.metadata import Overrides
from ..gguf.reader import GGUFFile
from ..names.grammar import HubName, hub_name, parse_name
from ..remote.hub import downloaded
from ..tokenizer import Tokenizer
from ..vocab import GGUFWarning
from ..wording import counted
from .result import Difference, Result
from .verify import verify

TEXTS = 300
_MOST = 8  # repositories to ask; a merged model may name many
# The keys that name repositories (gguf-py/gguf/constants.py, Keys.General; older files: docs/gguf.md of ggml).
_KEYS = re.compile(
    r"general\.(source\.(repo_url|huggingface\.repository|url)|base_model\.\d+\.(repo_url|url)|repo_url|url)"
)
_ORDER = ("general.source.", "general.base_model.", "general.")


def upstream(
    model: ModelName, *, overrides: Overrides | None = None, offline: bool = False
) -> tuple[Finding, ...]:
    """Where a model's ids differ from those of the tokenizer.json that it comes from, and whose fault that is.

    A single note if there are none. `RemoteNotFoundError` if the metadata names no repository of the hub, or none with
    a tokenizer.json; `OracleError` if the package tokenizers cannot read it.
    """
    found = locate(model, offline=offline)
    with GGUFFile(found.opened()) as file:
        named = repositories(file)
    repository, key, path = _tokenizer_json(found.name, named, offline)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)  # doctor has the same among its findings
        tokenizer = Tokenizer.from_gguf(found, overrides=overrides)
    result = verify(tokenizer, f"hf:{path}", fuzz=TEXTS)
    return tuple(_findings(result, repository.repository, key))


def repositories(file: GGUFFile) -> list[tuple[HubName, str]]:
    """The hub repositories that the metadata names, each once and with its key, the likeliest first."""
    keys = [key for key in file if _KEYS.fullmatch(key)]
    found: dict[HubName, str] = {}
    for key in sorted(
        keys, key=lambda key: next(n for n, start in enumerate(_ORDER) if key.startswith(start))
    ):
        value = file[key]
        if not isinstance(value, str):
            continue
        try:
            name = hub_name(value) if key.endswith(".repository") else parse_name(value)
        except ModelNameError:
            continue
        if isinstance(name, HubName):
            found.setdefault(HubName(name.owner, name.repo, revision=name.revision), key)
    return list(found.items())[:_MOST]


def _tokenizer_json(model: str, named: list[tuple[HubName, str]], offline: bool) -> tuple[HubName, str, str]:
    """The first repository with a tokenizer.json, the key that names it, and the path of the downloaded file."""
    remedy = "`ggufbpe verify --against hf:tokenizer.json` compares with one that you have"
    refused: RemoteError | None = None
    for name, key in named:
        try:
            return name, key, downloaded(name, "tokenizer.json", offline=offline)
        except (RemoteNotFoundError, RemoteAccessError) as error:
            refused = refused or error
    if refused is not None:
        raise refused
    raise RemoteNotFoundError("the metadata names no repository of the hub", path=model, remedy=remedy)


def _findings(result: Result, repository: str, key: str) -> Iterator[Finding]:
    told = f"the tokenizer.json of {repository}"
    for group in result.failures[:1] if result.failed else ():
        failed = f"{told} gives no ids for {counted(result.failed, 'text')} of {result.texts}"
        why = f"whose fault: the library's, or the repository's ({printable(group.detail)})"
        yield Finding("warning", "upstream_fails", failed, why, "ask the repository's owner", Where(key))
    for difference in result.differences:
        whose, fix = fault(difference)
        what = f"{counted(difference.places, 'place')} in {counted(result.texts, 'text')} differ from {told}"
        causes = "; ".join(str(cause.detail.get("what", cause.id)) for cause in difference.causes)
        what += f", in the step {difference.step}: {causes or 'no known cause'}"
        example = difference.smallest or difference.first
        detail = {
            "repository": repository,
            "whose": whose,
            "causes": [cause.id for cause in difference.causes],
            "text": example.text.data[:200].decode("utf-8", "backslashreplace"),
        }
        why = f"The file says that it was made from this repository. Whose fault: {_FAULTS[whose]}."
        yield Finding("warning", "upstream_differs", what, why, fix, Where(key), detail)
    if result.same:
        same = f"the ids of {counted(result.compared, 'text')} are those of {told}"
        yield Finding(
            "note", "upstream_same", same, "So the file is what it says.", "nothing to do", Where(key)
        )


_FAULTS = {
    "file": "the file's, which disagrees with the repository",
    "llama.cpp": "llama.cpp's; no key of the file makes it do what the repository's tokenizer does",
    "unknown": "unknown; nothing that the file could say explains it",
}


def fault(difference: Difference) -> tuple[str, str]:
    """Whose fault a difference is, a key of `_FAULTS`, and what to do about it.

    The file's if changing or reconverting it gives the other ids.
    """
    fixes = [cause.fix for cause in difference.causes]
    if command := together(difference.causes):
        return "file", command
    if again := [fix for fix in fixes if fix.startswith("convert the model again")]:
        return "file", again[0]
    if all(cause.id == "unknown" for cause in difference.causes):
        return "unknown", fixes[0] if fixes else "look at the place with `ggufbpe explain`"
    return "llama.cpp", "; ".join(dict.fromkeys(fixes))
