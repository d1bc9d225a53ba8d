"""Parses a model's name into a store or address, the model in it, and the file of that model.

    PATH                                              a file; a drive letter, as in C:\\model.gguf, is no scheme
    ollama:[HOST/][NAMESPACE/]MODEL[:TAG]             as `ollama run` takes it
    hf:OWNER/REPO[:QUANT | /FILE.gguf][@REVISION]     as llama.cpp's -hf takes it, or with a file or a revision
    lmstudio:PUBLISHER/MODEL[@QUANT | /FILE.gguf]
    llama.cpp:NAME                                    what llama.cpp downloaded, by file or by OWNER/REPO[:QUANT]
    https://…, s3://… and other addresses
    NAME                                              anything else: looked up in the stores of this machine

Every part is checked here, so that the parts of a reference can safely be joined to a folder or an address: none is
empty, "." or "..", and none has a slash where a single name belongs.

This module never looks at a file, a folder or the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from .._util.errors import ModelNameError, printable

OLLAMA_HOST, OLLAMA_NAMESPACE, OLLAMA_TAG = "registry.ollama.ai", "library", "latest"
HUB_HOSTS = ("huggingface.co", "hf.co")


@dataclass(frozen=True)
class FilePath:
    """A path, whether there is a file or not."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class OllamaName:
    """A model of an Ollama registry. Source: types/model/name.go, ParseName and DisplayShortest."""

    model: str
    tag: str = OLLAMA_TAG
    namespace: str = OLLAMA_NAMESPACE
    host: str = OLLAMA_HOST
    scheme: str = "https"  # "http" for a private registry without a certificate

    def __str__(self) -> str:
        """The shortest form, which always has a tag: "ollama:llama3.2:latest"."""
        place = ""
        if self.host.lower() != OLLAMA_HOST:
            place = f"{'http://' if self.scheme == 'http' else ''}{self.host}/{self.namespace}/"
        elif self.namespace.lower() != OLLAMA_NAMESPACE:
            place = f"{self.namespace}/"
        return f"ollama:{place}{self.model}:{self.tag}"


@dataclass(frozen=True)
class HubName:
    """A repository of the Hugging Face hub, and which file: by quantization, by name, or (both None) the usual one."""

    owner: str
    repo: str
    quant: str | None = None  # compared case-insensitively
    file: str | None = None  # relative to the repository, with slashes; never with ".." in it
    revision: str | None = None  # a branch, a tag, a commit or "refs/pr/1"; None is "main"

    @property
    def repository(self) -> str:
        """Owner and repository, such as "bartowski/Llama-3.2-1B-Instruct-GGUF"."""
        return f"{self.owner}/{self.repo}"

    def __str__(self) -> str:
        what = f"/{self.file}" if self.file else f":{self.quant}" if self.quant else ""
        return f"hf:{self.repository}{what}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True)
class LMStudioName:
    """A model in LM Studio's folder, and which file, as in `HubName`."""

    publisher: str
    model: str
    quant: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        what = f"/{self.file}" if self.file else f"@{self.quant}" if self.quant else ""
        return f"lmstudio:{self.publisher}/{self.model}{what}"


@dataclass(frozen=True)
class LlamaCppName:
    """A file in llama.cpp's own cache: its name there, or the repository that it was downloaded from."""

    name: str

    def __str__(self) -> str:
        return f"llama.cpp:{self.name}"


@dataclass(frozen=True)
class Address:
    """A file at an http(s) URL, or at one of another scheme that fsspec supports."""

    url: str

    @property
    def scheme(self) -> str:
        """The scheme of the address in lower case, such as "https"."""
        return self.url.partition("://")[0].lower()

    def __str__(self) -> str:
        """The address without possible secrets: the password before the host, and the query of a signed address."""
        shown = re.sub(r"^([^:]+://)[^/?#]*@", r"\1", self.url)
        place, query, _ = shown.partition("?")
        return place + ("?…" if query else "")


@dataclass(frozen=True)
class BareName:
    """A name without a prefix that is no existing path: to be looked up in the local stores."""

    name: str

    def __str__(self) -> str:
        return self.name


Reference = FilePath | OllamaName | HubName | LMStudioName | LlamaCppName | Address | BareName
Remote = OllamaName | HubName | Address  # what can be downloaded

PREFIXES = ("ollama:", "hf:", "lmstudio:", "llama.cpp:")


def parse_name(name: str | os.PathLike[str]) -> Reference:
    """What `name` refers to; a path object is always a path. `ModelNameError` if it fits no form.

    >>> parse_name("hf:bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0")
    HubName(owner='bartowski', repo='Llama-3.2-1B-Instruct-GGUF', quant='Q8_0', file=None, revision=None)
    >>> str(parse_name("ollama:gemma3"))
    'ollama:gemma3:latest'
    """
    if not isinstance(name, str):
        return FilePath(os.fsdecode(name))
    if not name or "\0" in name:
        _refuse(name, "a model's name must not be empty or contain NUL")
    for prefix, read in _READERS.items():
        if name.startswith(prefix):
            return read(name[len(prefix) :], name)
    if _LIKE_A_PATH.match(name):
        return FilePath(name)
    if match := _SCHEME.match(name):
        return _address(name, match["scheme"].lower())
    return BareName(name) if _BARE.fullmatch(name) else FilePath(name)


def hub_name(text: str, file: str | None = None) -> HubName:
    """The model of llama.cpp's `-hf OWNER/REPO[:QUANT]` and `--hf-file FILE`; the file overrides the quantization."""
    reference = _hub(text.removeprefix("hf:"), f"-hf {text}")
    if file is None:
        return reference
    _check_file(file, f"--hf-file {file}")
    return HubName(reference.owner, reference.repo, None, file, reference.revision)


# ---- one form each --------------------------------------------------------------------------------------

_LIKE_A_PATH = re.compile(r"[A-Za-z]:|\.{0,2}[/\\]|~")  # a drive, a root, ./ and ../, a home folder
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<rest>.*)", re.DOTALL)
_BARE = re.compile(r"[\w.+-][\w./:@+-]*")
_REVISION = re.compile(r"[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*")
_QUANT = re.compile(r"[A-Za-z0-9_.+-]+")

# types/model/name.go, isValidPart
_OLLAMA_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}")
_OLLAMA_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_OLLAMA_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")

_HUB_PART = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")  # common/hf-cache.cpp, is_valid_repo_id
_HUB = re.compile(
    r"(?P<owner>[^/:@]+)/(?P<repo>[^/:@]+)(?::(?P<quant>[^/@]*)|/(?P<file>.+?\.gguf|[^@]*))?(?:@(?P<revision>.*))?",
    re.DOTALL | re.IGNORECASE,
)
_LM_STUDIO = re.compile(
    r"(?P<publisher>[^/@]+)/(?P<model>[^/@]+)(?:@(?P<quant>[^/]*)|/(?P<file>.*))?", re.DOTALL
)


def _ollama(text: str, name: str) -> OllamaName:
    rest, _, tag = text.rpartition(":") if text.rfind(":") > text.rfind("/") else (text, "", OLLAMA_TAG)
    scheme, marked, place = rest.rpartition("://")
    parts = place.rsplit("/", 2)
    host, namespace, model = [OLLAMA_HOST, OLLAMA_NAMESPACE][: 3 - len(parts)] + parts
    checks = (
        (host, _OLLAMA_HOST),
        (namespace, _OLLAMA_NAMESPACE),
        (model, _OLLAMA_PART),
        (tag, _OLLAMA_PART),
    )
    if marked and scheme not in ("http", "https"):
        _refuse(name, "a registry is reached by http or https")
    if not all(form.fullmatch(part) for part, form in checks) or ".." in host or not _has_sound_port(host):
        _refuse(name, "Ollama's names are ollama:[HOST/][NAMESPACE/]MODEL[:TAG]")
    return OllamaName(model, tag, namespace, host, scheme or "https")


def _hub(text: str, name: str) -> HubName:
    match = _HUB.fullmatch(text)
    if not match or not is_repository(f"{match['owner']}/{match['repo']}"):
        _refuse(name, "a model of the hub is hf:OWNER/REPO[:QUANT | /FILE.gguf][@REVISION]")
    quant, file, revision = match["quant"], match["file"], match["revision"]
    if quant is not None and not _QUANT.fullmatch(quant):
        _refuse(name, "what follows the colon must be a quantization, such as Q4_K_M")
    if file is not None:
        _check_file(file, name)
    if revision is not None and not is_revision(revision):
        _refuse(name, "what follows the @ must be a branch, a tag or a commit")
    return HubName(match["owner"], match["repo"], quant, file, revision)


def _lm_studio(text: str, name: str) -> LMStudioName:
    match = _LM_STUDIO.fullmatch(text)
    if not match or not (_is_part(match["publisher"]) and _is_part(match["model"])):
        _refuse(name, "a model of LM Studio is lmstudio:PUBLISHER/MODEL[@QUANT | /FILE.gguf]")
    if match["quant"] is not None and not _QUANT.fullmatch(match["quant"]):
        _refuse(name, "what follows the @ must be a quantization, such as Q4_K_M")
    if match["file"] is not None:
        _check_file(match["file"], name)
    return LMStudioName(match["publisher"], match["model"], match["quant"], match["file"])


def _llama_cpp(text: str, name: str) -> LlamaCppName:
    place, colon, quant = text.partition(":")
    if not all(map(_is_part, place.split("/"))) or (colon and not _QUANT.fullmatch(quant)):
        _refuse(name, "llama.cpp's models are llama.cpp:FILE or llama.cpp:OWNER/REPO[:QUANT]")
    return LlamaCppName(text)


_READERS: dict[str, Callable[[str, str], Reference]] = dict(
    zip(PREFIXES, (_ollama, _hub, _lm_studio, _llama_cpp))
)


def _address(name: str, scheme: str) -> Reference:
    """An address. A web page of the hub stands for the file or repository that it shows."""
    from urllib.parse import parse_qs, unquote, urlsplit
    from urllib.request import url2pathname

    try:
        parts = urlsplit(name)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        _refuse(name, f"this is not an address ({error})")
    if scheme == "file":
        return FilePath(url2pathname(parts.path))
    if not (host or parts.path.strip("/")) or re.search(r"[\s\x00-\x1f\x7f]", name):
        _refuse(name, "this is not an address")
    if scheme in ("http", "https") and host in HUB_HOSTS:
        owner, repo, kind, revision, *rest = [*map(unquote, parts.path.strip("/").split("/")), "", "", ""]
        file = "/".join(filter(None, rest))
        if kind == "blob":
            return _hub(f"{owner}/{repo}/{file}@{revision}", name)
        if (kind == "tree" or not kind) and not file and is_repository(f"{owner}/{repo}"):
            shown = parse_qs(parts.query).get("show_file_info", [""])[0]  # the panel beside the page
            what = f"/{shown}" * bool(shown) + f"@{revision}" * bool(revision)
            return _hub(f"{owner}/{repo}{what}", name)
    return Address(name)


# ---- parts ----------------------------------------------------------------------------------------------


def is_repository(text: str) -> bool:
    """Whether this is an OWNER/REPO of the hub. Source: common/hf-cache.cpp, is_valid_repo_id; `huggingface_hub`."""
    owner, _, repo = text.partition("/")
    return len(text) <= 256 and bool(_HUB_PART.fullmatch(owner) and _HUB_PART.fullmatch(repo))


def is_revision(text: str) -> bool:
    """Whether this can be a branch, a tag or a commit, and is safe to join to a folder."""
    return bool(_REVISION.fullmatch(text)) and len(text) <= 256 and all(map(_is_part, text.split("/")))


def is_file(text: str) -> bool:
    """Whether this is a relative path that stays within a repository, on any system.

    >>> is_file("Q8_0/model.gguf"), is_file("../model.gguf"), is_file("/model.gguf")
    (True, False, False)
    """
    return len(text) <= 1024 and all(map(_is_part, text.split("/")))


def _has_sound_port(host: str) -> bool:
    from urllib.parse import urlsplit

    try:
        urlsplit(f"//{host}").port  # noqa: B018 - raises where it is none
    except ValueError:
        return False
    return True


def _is_part(text: str) -> bool:
    """Whether this is a single file name that leads nowhere else on any system and has no invisible characters."""
    return bool(text) and text not in (".", "..") and not re.search(r"[/\\\x00-\x1f\x7f]|^[A-Za-z]:", text)


def _check_file(file: str, name: str) -> None:
    if not is_file(file):
        _refuse(name, "the file must be a path within the repository")
    if not file.lower().endswith(".gguf"):
        _refuse(name, "the file must be a .gguf; a quantization follows a colon")


def _refuse(name: str, why: str) -> NoReturn:
    raise ModelNameError(f"{printable(name, 200)} names no model: {why}")
