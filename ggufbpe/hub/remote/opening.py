"""Opens a remote file: from the cache, or by downloading its metadata.

reference -> metadata_cache.py, and if it is not there:
    huggingface.py or ollama_registry.py -> address -> http_file.py or fsspec_file.py
        -> range_stream.py, with forecast.py
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from ..._util.errors import OfflineError
from ...gguf.source import Source
from ..name_grammar import Address, HubName, OllamaName, Remote, hub_name
from . import huggingface, metadata_cache
from .forecast import ArrivingFile
from .metadata_cache import CachedMetadata
from .range_stream import RangeFile, RangeStream, RemoteLocation, RemoteProgress

if TYPE_CHECKING:
    from .http_file import Client

Watcher = Callable[[RemoteProgress], None]


def remote_source(
    reference: Remote, *, offline: bool = False, refresh: bool = False, progress: Watcher | None = None
) -> Source:
    """The metadata of a remote file, as a source that `GGUFFile` opens; its `size` is that of the whole file.

    Cached metadata is used without asking whether it is current, unless `refresh` is given. `offline` never uses the
    network, and overrides `refresh`. `progress` is called as bytes arrive.

    Raises a `RemoteError` that says what to do, `OfflineError` if the network would be needed, any other `GGUFError`
    if the file is invalid, and `NotInstalledError` without the extra.
    """
    key = _key(reference)
    kept = metadata_cache.found(key)
    if kept is None and (offline or (isinstance(reference, HubName) and huggingface.is_offline())):
        why = "offline=True was given" if offline else "HF_HUB_OFFLINE is set"
        raise OfflineError(
            f"{why}, and the metadata was not read before",
            path=str(reference),
            remedy="open it once with the network, or give a file on this machine",
        )
    if kept is None or (refresh and not offline):
        current = _requested(reference, kept, progress)
        if current != kept:
            metadata_cache.keep({key, _key(_resolved(reference, current.name))}, current)
        kept = current
    return Source(kept.name, kept.data, kept.size)


def _requested(reference: Remote, kept: CachedMetadata | None, progress: Watcher | None) -> CachedMetadata:
    """The metadata from the network; `kept` itself if that is still current."""
    if isinstance(reference, Address) and reference.scheme not in ("http", "https"):
        from .fsspec_file import StoredFile

        stored = StoredFile(reference)
        return kept if kept and kept.version == stored.version else _read(str(reference), stored, progress)
    if isinstance(reference, HubName):
        return _read_at(huggingface.locate_on_hub(reference), None, kept, progress)
    if isinstance(reference, OllamaName):
        from . import ollama_registry
        from .http_file import Client

        client = Client(str(reference), ollama_registry.address(reference))
        with closing(client):
            return _read_at(ollama_registry.locate_in_registry(reference, client), client, kept, progress)
    from .hosts import without_login

    url, secret = without_login(reference.url)
    location = RemoteLocation(str(reference), url, url, secret, None, None)
    return _read_at(location, None, kept, progress)


def _read_at(
    location: RemoteLocation, client: Client | None, kept: CachedMetadata | None, progress: Watcher | None
) -> CachedMetadata:
    """The metadata of the file at `location`, through `client` if there is one already."""
    from .http_file import Client, HTTPFile, UnchangedError

    if kept and kept.version == location.version:
        return kept
    is_new = location.version is None  # the version is unknown until the first range arrives
    if client is None:
        client = Client(location.name, location.named, location.secret)
        client.require_allowed(location.url)
    file = HTTPFile(client, location.url, size=location.size, known=kept.version if kept and is_new else None)
    try:
        read = _read(location.name, file, progress)
    except UnchangedError:
        assert kept is not None
        return kept
    return read if is_new else read._replace(version=location.version or "")


def _read(name: str, file: RangeFile, progress: Watcher | None) -> CachedMetadata:
    """The metadata of a file, with its tensor infos, and little more of it."""
    try:
        stream = RangeStream(file, progress)
        walked = ArrivingFile(name, stream)
        with walked:
            data = stream.first(walked.infos_end())
        file.check()
        return CachedMetadata(name, file.version or "", stream.size, data)
    finally:
        file.close()


def _resolved(reference: Remote, name: str) -> Remote:
    """The reference to the file that was chosen."""
    return hub_name(name) if isinstance(reference, HubName) else reference


def _key(reference: Remote) -> str:
    """A reference's key in the cache. It includes the hub's address, since a mirror may have other files."""
    where = huggingface.endpoint() if isinstance(reference, HubName) else ""
    return f"{where} {reference!r}"
