"""Lists the files of a repository on the Hugging Face hub and finds the address of one.

The work is done by the package huggingface_hub, which reads its own settings: HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE
and others. Its errors become this project's, with a remedy.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import quote, urljoin

from ... import __version__
from ..._util.errors import OfflineError, RemoteAccessError, RemoteError, RemoteNotFoundError, printable
from ..._util.extras import NotInstalledError, imported
from ..name_grammar import HubName, is_file
from ..quantization import chosen, is_first_part, is_model, quantization
from .range_stream import RemoteFile, RemoteLocation
from .refusals import answer_error
from .retries import Retries

MOST_FILES = 20_000  # of a repository; the rest is not listed
MOST_PAGES = 200  # of the list of them; the hub's have some hundred files or more
LARGEST_TOKENIZER = 1 << 28  # bytes of a tokenizer.json; the largest have some 40 MB
_WHAT = "a model of the hub"
# of an answer; the attribute is one of the library's, which asks the hub for a list of programs
_NOT_UNDERSTOOD = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_LIBRARY = {"library_name": "ggufbpe", "library_version": __version__}


def is_offline() -> bool:
    """Whether the library's own settings forbid network access."""
    if constants := sys.modules.get("huggingface_hub.constants"):
        return bool(constants.HF_HUB_OFFLINE)
    said = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return said.upper() in ("1", "ON", "YES", "TRUE")  # huggingface_hub/constants.py, _is_true


def endpoint() -> str:
    """The hub's address, from the library's own settings."""
    if constants := sys.modules.get("huggingface_hub.constants"):
        return str(constants.ENDPOINT)
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def files_on_hub(name: HubName) -> list[RemoteFile]:
    """The .gguf files of a repository in the hub's order, including `mmproj` and all parts."""
    hub = imported("huggingface_hub", "hub", _WHAT)
    with _asking(name):
        entries = [
            (str(each["path"]), int(each["size"]))
            for each in islice(_tree(name), MOST_FILES)
            if each["type"] == "file"
        ]
        return [
            RemoteFile(path, size, hub.hf_hub_url(name.repository, path, revision=name.revision))
            for path, size in entries
            if path.lower().endswith(".gguf") and is_file(path)
        ]


def _tree(name: HubName) -> Iterator[dict[str, Any]]:
    """The entries of a repository, page by page, as `HfApi.list_repo_tree` requests them.

    That has no time limit, so a server that sends nothing would be waited for without end.
    """
    from .hosts import origin

    utils: Any = imported("huggingface_hub.utils", "hub", _WHAT)
    utils.validate_repo_id(name.repository)
    revision = quote(name.revision or "main", safe="")
    url = f"{endpoint()}/api/models/{name.repository}/tree/{revision}?recursive=true&expand=false"
    asked: set[str] = set()
    retries = Retries()  # of all pages together
    while url:
        if url in asked:
            raise ValueError("the list of files leads in a circle")
        if len(asked) == MOST_PAGES:
            raise ValueError(f"the list of files has more than {MOST_PAGES} pages")
        asked.add(url)
        response = _answered(partial(_page, utils, url), retries)
        if response.is_redirect:  # of a repository that was renamed
            following = urljoin(url, response.headers.get("Location", ""))
        else:
            entries = response.json()
            if not isinstance(entries, list):
                raise TypeError(f"a list of files is {type(entries).__name__}")
            yield from entries
            linked = response.links.get("next", {}).get("url")
            following = linked and urljoin(url, linked)
        if following and origin(following) != origin(url):
            raise ValueError("the list of files is at another server")
        url = following


def _page(utils: Any, url: str) -> Any:
    """The answer to one request of a list of files. Raises the library's errors for a refusal."""
    from .http_file import TIMEOUT

    response = utils.http_backoff(
        "GET",
        url,
        headers=utils.build_hf_headers(**_LIBRARY),
        timeout=TIMEOUT,
        follow_redirects=False,
        retry_on_exceptions=(),
        retry_on_status_codes=(),
    )
    utils.hf_raise_for_status(response)
    return response


def _answered(ask: Callable[[], Any], retries: Retries) -> Any:
    """What `ask` returns. A busy hub is asked again when it says, a silent one once more.

    The library's own retries have no limit to what a hub may demand, and write to the standard error.
    """
    from .http_file import SILENT_TRIES

    refusal: type[Any] = imported("huggingface_hub.errors", "hub", _WHAT).HfHubHTTPError
    while True:
        try:
            return ask()
        except refusal as error:
            if not retries.wait_for_busy(error.response.status_code, error.response.headers):
                raise
        except _silence():
            if retries.sent >= SILENT_TRIES:
                raise
            retries.wait()


def _metadata(url: str) -> Any:
    """What the hub says of a file: its address, its version and its size."""
    hub = imported("huggingface_hub", "hub", _WHAT)
    return _answered(partial(hub.get_hf_file_metadata, url, **_LIBRARY), Retries())


def locate_on_hub(name: HubName) -> RemoteLocation:
    """Where the file is that `name` means. One request, and another for the list of files if `name` gives none."""
    hub = imported("huggingface_hub", "hub", _WHAT)
    file = name.file or _chosen(name)
    resolved = HubName(name.owner, name.repo, None, file, name.revision)
    with _asking(resolved):
        url = hub.hf_hub_url(name.repository, file, revision=name.revision)
        metadata = _metadata(url)
        headers = imported("huggingface_hub.utils", "hub", _WHAT).build_hf_headers(**_LIBRARY)
    return RemoteLocation(str(resolved), metadata.location, url, headers, metadata.etag, metadata.size)


def downloaded(name: HubName, file: str, *, offline: bool = False) -> str:
    """The path of a small file of a repository, downloaded into the library's own cache."""
    hub = imported("huggingface_hub", "hub", _WHAT)
    wanted = HubName(name.owner, name.repo, None, file, name.revision)
    if offline:
        # `hf_hub_download` makes a request's headers in any case, and asks the hub for what goes into them.
        known = hub.try_to_load_from_cache(name.repository, file, revision=name.revision)
        if not isinstance(known, str):
            raise _no_copy(wanted)
        return known
    with _asking(wanted):
        url = hub.hf_hub_url(name.repository, file, revision=name.revision)
        size = _metadata(url).size or 0
        if size > LARGEST_TOKENIZER:
            raise RemoteError(
                f"it has {size} bytes, too many for a tokenizer",
                path=f"hf:{name.repository}/{file}",
                remedy="check that the metadata names the right repository",
            )
        try:
            path: str = hub.hf_hub_download(name.repository, file, revision=name.revision, **_LIBRARY)
        except imported("huggingface_hub.errors", "hub", _WHAT).LocalEntryNotFoundError as error:
            raise error.__cause__ or error from None
    return path


def _no_copy(name: HubName) -> OfflineError:
    return OfflineError(
        "the network is off limits or unreachable, and the library has no copy",
        path=str(name),
        remedy="try again with the network",
    )


def _chosen(name: HubName) -> str:
    """The file that llama.cpp chooses in the repository."""
    names = [file.name for file in files_on_hub(name)]
    choice = chosen(names, name.quant)
    if choice is not None:
        return choice
    models = [file for file in names if is_model(file) and is_first_part(file)]
    problem = f"no file is a {printable(name.quant)}" if name.quant and models else "it has no .gguf model"
    there = ", ".join(dict.fromkeys(filter(None, map(quantization, models))))
    raise RemoteNotFoundError(
        problem,
        path=str(name),
        remedy=f"there are {there}" if there else "look for a repository of GGUF files",
    )


@contextmanager
def _asking(name: HubName) -> Iterator[None]:
    """Ask the hub: the library's errors are raised as ours, and at once if there is no network."""
    errors: Any = imported("huggingface_hub.errors", "hub", _WHAT)
    page = f"{endpoint()}/{name.repository}"

    def missing(what: str, remedy: str) -> RemoteNotFoundError:
        return RemoteNotFoundError(what, path=str(name), remedy=remedy)

    try:
        _require_network()
        yield
    except (RemoteError, NotInstalledError):
        raise
    except errors.OfflineModeIsEnabled:
        said = "HF_HUB_OFFLINE is set, and the metadata was not read before"
        raise OfflineError(said, path=str(name), remedy="unset it") from None
    except errors.GatedRepoError:
        remedy = f"accept its terms at {page}, then set HF_TOKEN or run `hf auth login`"
        raise RemoteAccessError("the repository is gated", path=str(name), remedy=remedy) from None
    except errors.RepositoryNotFoundError:
        remedy = "check the name; for a private one set HF_TOKEN or run `hf auth login`"
        raise missing("there is no such repository, or it is private", remedy) from None
    except errors.RevisionNotFoundError:
        revision = printable(name.revision or "main")
        remedy = f"{page}/tree/main shows its branches"
        raise missing(f"the repository has no revision {revision}", remedy) from None
    except errors.LocalEntryNotFoundError:
        raise _no_copy(name) from None
    except errors.EntryNotFoundError:
        remedy = f"`ggufbpe models --remote hf:{name.repository}` lists its files"
        raise missing("the repository has no such file", remedy) from None
    except errors.HfHubHTTPError as error:
        response = error.response
        if response.status_code in (401, 403):
            raise RemoteAccessError(
                f"the hub denies access ({response.status_code})",
                path=str(name),
                remedy=f"check HF_TOKEN and what it may read; {page} says who has access",
            ) from None
        raise answer_error(str(name), response.status_code, str(response.url), response.headers) from None
    except (*_NOT_UNDERSTOOD, errors.FileMetadataError) as error:
        raise RemoteError(
            f"the hub's answer, or the name, is not understood ({type(error).__name__}: {error})",
            path=str(name),
            remedy="check the name, HF_ENDPOINT and HF_TOKEN",
        ) from None
    except _errors_of_transport() as error:
        raise RemoteError(
            f"the hub cannot be reached ({error or type(error).__name__})",
            path=str(name),
            remedy="check the network and HF_ENDPOINT; models that were read before open with offline=True",
        ) from None
    except (ImportError, OSError) as error:  # of a SOCKS proxy without its package, of certificates
        if getattr(error, "filename", None):  # of a file of the library's own, such as the token's
            raise
        raise RemoteError(
            f"the hub cannot be asked ({error})",
            path=str(name),
            remedy="check the settings of proxies and certificates, such as ALL_PROXY and SSL_CERT_FILE",
        ) from None


def _require_network() -> None:
    """`socket.gaierror` if the hub's host has no address; the library would try again for half a minute.

    `RemoteError` if HF_ENDPOINT is an address that is never asked.
    """
    from .hosts import Lookups, origin
    from .pinned_transport import find_proxy

    scheme, host, port = origin(endpoint())
    if Lookups().is_never_asked(host):
        raise RemoteError(
            f"{host} is a link-local address or a cloud's metadata service, which is never asked",
            path=endpoint(),
            remedy="set HF_ENDPOINT to the address of a hub",
        )
    if host and not is_offline() and not find_proxy(scheme, host, port):
        socket.getaddrinfo(host, None)


def _silence() -> tuple[type[Exception], ...]:
    """The time-outs of its HTTP library."""
    return tuple(each.TimeoutException for each in _libraries())


def _libraries() -> list[Any]:
    """The HTTP libraries that are loaded; which one the hub's library uses depends on its version."""
    return [sys.modules[name] for name in ("httpx2", "httpx") if name in sys.modules]


def _errors_of_transport() -> tuple[type[Exception], ...]:
    """Errors of its HTTP library that it lets through."""
    return socket.gaierror, *(kind for each in _libraries() for kind in (each.HTTPError, each.InvalidURL))
