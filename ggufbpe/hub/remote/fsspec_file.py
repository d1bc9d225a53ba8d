"""Reads ranges of a remote file in a storage that fsspec knows, such as `s3://`.

Credentials are the settings of fsspec's package for that scheme. Each range arrives in one piece.
"""

from __future__ import annotations

from typing import Any

from ..._util.errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ..._util.extras import NotInstalledError, file_system_at
from ...gguf.source import ByteRange
from ..name_grammar import Address
from .range_stream import RangePart

_VERSIONS = ("ETag", "etag", "version", "md5Hash", "LastModified", "last_modified", "mtime", "created")


class StoredFile:
    """A file in a storage that serves ranges."""

    connecting = 0.0  # the package's connections are not ours to count

    def __init__(self, address: Address) -> None:
        """Request the file's size."""
        self.name = str(address)
        try:
            self._files, self._path = file_system_at(address.url, "fsspec")
        except ValueError as error:  # of fsspec about the scheme, or of a package about its settings
            remedy = "check the address, and the package and settings that fsspec needs for it"
            raise RemoteError(str(error), path=self.name, remedy=remedy) from None
        except NotInstalledError:
            raise
        except Exception as error:  # some packages connect here
            raise self._unreachable(error) from None
        info = self._asked(self._files.info, self._path)
        self.version: str | None = _version(info)
        size = info.get("size")
        if not isinstance(size, int) or info.get("type") == "directory":
            raise RemoteNotFoundError("this is not a file", path=self.name, remedy="give a .gguf file in it")
        self._size = size

    def open(self, span: ByteRange) -> RangePart:
        """The range, complete when this returns."""
        end = min(span.end, self._size)
        data = self._asked(self._files.cat_file, self._path, start=span.start, end=end)
        if len(data) != end - span.start:
            raise RemoteError(
                f"{len(data)} bytes came where {end - span.start} were requested", path=self.name
            )
        return RangePart(ByteRange(span.start, end), iter((data,)), self._size, _nothing)

    def check(self) -> None:
        """`RemoteError` if the file was replaced since it was opened."""
        self._files.invalidate_cache()
        if _version(self._asked(self._files.info, self._path)) != self.version:
            raise RemoteError(
                "the file was replaced while it was read", path=self.name, remedy="open it again"
            )

    def close(self) -> None:
        """Do nothing: connections belong to the package."""

    def _asked(self, ask: Any, *arguments: Any, **keywords: Any) -> Any:
        """The storage's answer. Packages have their own errors; only those of `OSError` are common."""
        try:
            return ask(*arguments, **keywords)
        except FileNotFoundError:
            raise RemoteNotFoundError(
                "there is no such file", path=self.name, remedy="check the address"
            ) from None
        except PermissionError as error:
            raise RemoteAccessError(
                f"the storage denies access ({error})",
                path=self.name,
                remedy="check the settings of its package",
            ) from None
        except Exception as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> RemoteError:
        problem = f"the storage cannot be reached ({type(error).__name__}: {error})"
        return RemoteError(problem, path=self.name, remedy="check the network and the settings")


def _version(info: dict[str, Any]) -> str:
    return " ".join(str(info[key]) for key in (*_VERSIONS, "size") if info.get(key) is not None)


def _nothing() -> None:
    """There is no connection to close."""
