"""Checks that a model's ids are those of the repository that it was made from, and finds what is at fault if not.

The repository is given, or a folder with its files: then transformers runs its chat templates, too (upstream_chats.py).
Otherwise the first one that the metadata names and that has a tokenizer.json counts: sources come before base models.
The texts are random ones, made for the tokenizer. A tokenizer.json is read by the package tokenizers, whose own bugs
look like those of the repository.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import closing

from ..._util.errors import ModelNameError, RemoteAccessError, RemoteError, RemoteNotFoundError, printable
from ..._util.wording import counted
from ...gguf.metadata import Overrides
from ...gguf.reader import GGUFFile
from ...hub.model_location import ModelName, locate
from ...hub.name_grammar import HubName, hub_name, parse_name
from ...hub.remote.huggingface import downloaded
from ...models.vocabulary import GGUFWarning
from ...tokenizer import Tokenizer
from ..doctor.finding import Finding, Where
from ..oracles.transformers_oracle import TransformersOracle, folder_of_repository
from .id_comparison import verify
from .result import Difference, Verification
from .upstream_chats import prompt_findings, token_findings
from .upstream_tokenizer import known_limit, limit_findings, other_tokenizer

TEXTS = 300
_IN_FOLDER = ("tokenizer.json", "tokenizer_config.json")  # files for which their folder is meant
_SECONDS = 30.0  # for an answer of transformers
_MOST = 8  # repositories that are tried; a merged model may name many
# Where a GGUF names repositories (gguf-py/gguf/constants.py, Keys.General; older files: docs/gguf.md of ggml).
_KEYS = re.compile(
    r"general\.(source\.(repo_url|huggingface\.repository|url)|base_model\.\d+\.(repo_url|url)|repo_url|url)"
)
_ORDER = ("general.source.", "general.base_model.", "general.")


def upstream(
    model: ModelName, name: str = "", *, overrides: Overrides | None = None, offline: bool = False
) -> tuple[Finding, ...]:
    """Find what differs between a model and its original: its ids, and with a `name` also tokens and chat templates.

    `name` is a folder or a repository such as "hf:OWNER/REPO"; "" is the repository that the metadata names. Notes say
    what does not differ, and each difference says what is at fault. `RemoteNotFoundError` if no repository has a
    tokenizer.json, or with a `name` a tokenizer_config.json; `OracleError` if the packages tokenizers and transformers
    cannot read it, or are not installed.
    """
    found = locate(model, offline=offline)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)  # doctor has the same among its findings
        tokenizer = Tokenizer.from_gguf(found, overrides=overrides)
    if os.path.basename(name) in _IN_FOLDER and os.path.isfile(name):
        name = os.path.dirname(name) or os.curdir
    if name:
        return tuple(_of_folder(tokenizer, name, offline))
    with GGUFFile(found.opened()) as file:
        named = repositories(file)
    repository, key, path = _tokenizer_json(found.name, named, offline)
    if other := other_tokenizer(tokenizer.vocabulary, path, repository.repository):
        return (other,)
    return tuple(_findings(verify(tokenizer, path, fuzz=TEXTS), repository.repository, key, tokenizer))


def _of_folder(tokenizer: Tokenizer, name: str, offline: bool) -> Iterator[Finding]:
    """What differs from a folder, or a repository, that is asked for."""
    is_folder = os.path.isdir(name)
    folder = name if is_folder else folder_of_repository(name, offline=offline)
    # as `fix` takes it, which a web page's address is not
    repository = "" if is_folder else str(parse_name(name))
    with closing(TransformersOracle(folder, tokenizer, _SECONDS, repository)) as oracle:
        path = os.path.join(folder, "tokenizer.json")
        has_tokens = os.path.exists(path)
        if has_tokens and (other := other_tokenizer(tokenizer.vocabulary, path, oracle.source)):
            yield other
            return
        yield from token_findings(tokenizer, oracle)
        yield from prompt_findings(tokenizer, oracle)
        if has_tokens:
            yield from _findings(verify(tokenizer, path, fuzz=TEXTS), oracle.source, None, tokenizer)


def repositories(file: GGUFFile) -> list[tuple[HubName, str]]:
    """The repositories on the hub that the metadata names, each once with its key, the most likely first."""
    keys = [key for key in file if _KEYS.fullmatch(key)]
    found: dict[HubName, str] = {}
    for key in sorted(keys, key=lambda key: [not key.startswith(start) for start in _ORDER]):
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
    """The first repository that has a tokenizer.json, the key that names it, and the path of the downloaded file."""
    remedy = "if you have its tokenizer.json, use `ggufbpe verify --against tokenizer.json`"
    refused: RemoteError | None = None
    for name, key in named:
        try:
            return name, key, downloaded(name, "tokenizer.json", offline=offline)
        except (RemoteNotFoundError, RemoteAccessError) as error:
            refused = refused or error
    if refused is not None:
        raise refused
    raise RemoteNotFoundError("the metadata names no repository on the hub", path=model, remedy=remedy)


def _findings(
    result: Verification, repository: str, key: str | None, tokenizer: Tokenizer
) -> Iterator[Finding]:
    told = f"the tokenizer.json of {repository}"
    for group in result.failures[:1] if result.failed else ():
        failed = f"{told[0].upper()}{told[1:]} gives no ids for {counted(result.failed, 'text')} of {result.texts}."
        why = f"At fault is the package tokenizers or the repository ({printable(group.detail)})."
        yield Finding("warning", "upstream_fails", failed, why, "ask the repository's owner", Where(key))
    limits = []
    for difference in result.differences:
        is_unknown = all(cause.id == "unknown" for cause in difference.causes)
        if is_unknown and (limit := known_limit(difference, tokenizer.vocabulary)):
            limits.append((limit, difference))
            continue
        whose, fix = fault(difference, result.fix)
        differ = counted(difference.places, "place differs", "places differ")
        causes = "; ".join(str(cause.detail.get("what", cause.id)) for cause in difference.causes)
        evidence = f"{differ} in {counted(result.texts, 'text')}, in the step {difference.step}: "
        evidence += causes or "no known cause"
        example = difference.smallest or difference.first
        detail = {
            "repository": repository,
            "whose": whose,
            "causes": [cause.id for cause in difference.causes],
            "text": example.text.data[:200].decode("utf-8", "backslashreplace"),
        }
        why = "The metadata says that the file was made from this repository. " if key else ""
        why += f"At fault is {_FAULTS[whose]}."
        what = f"Some texts get other ids than with {told}."
        yield Finding("warning", "upstream_differs", what, why, fix, Where(key), detail, evidence)
    yield from limit_findings(limits, told)
    if result.same:
        same = f"The ids of {counted(result.compared, 'text')} are those of {told}."
        why = "So the tokenizer is that of the repository."
        yield Finding("note", "upstream_same", same, why, "nothing to do", Where(key))


_FAULTS = {
    "file": "the file, which does not say what the repository says",
    "llama.cpp": "llama.cpp: no key in the file makes it do what the repository's tokenizer does",
    "unknown": "unknown: nothing that the file could say explains it",
}


def fault(difference: Difference, command: str) -> tuple[str, str]:
    """What is at fault for a difference, one of `_FAULTS`, and what to do about it.

    It is the file if changing it, or converting the model again, gives the other ids. `command` is what is proposed for
    all differences, "" for nothing.
    """
    fixes = [cause.fix for cause in difference.causes if cause.fix]
    if command and any(cause.change for cause in difference.causes):
        return "file", command
    if again := [fix for fix in fixes if fix.startswith("convert the model again")]:
        return "file", again[0]
    if all(cause.id == "unknown" for cause in difference.causes):
        return "unknown", fixes[0] if fixes else "look at this place with `ggufbpe explain`"
    return "llama.cpp", "; ".join(dict.fromkeys(fixes))
