"""A far file of a storage that fsspec knows, such as `s3://`: ranges of it.

    address -> [this file], by fsspec and its package for the scheme -> parts of the file -> stream.py

Who asks is said by the settings of that package. Each range comes in one piece.
"""

from __future__ import annotations

from typing import Any

from ..errors import RemoteAccessError, RemoteError, RemoteNotFoundError
from ..extras import imported
from ..gguf.source import ByteRange
from ..names.grammar import Address
from .stream import RangePart

_VERSIONS = ("ETag", "etag", "version", "md5Hash", "LastModified", "last_modified", "mtime", "created")


class StoredFile:
    """A file of a storage, of which ranges can be asked for."""

    def __init__(self, address: Address) -> None:
        """Ask for the file's size."""
        self.name = str(address)
        fsspec = imported("fsspec", "fsspec", f"{address.scheme}://")
        try:
            self._files, self._path = fsspec.core.url_to_fs(address.url)
        except (ImportError, ValueError) as error:
            raise RemoteError(str(error), path=self.name, remedy="fsspec has a package for it") from None
        info = self._asked(self._files.info, self._path)
        self.version: str | None = _version(info)
        size = info.get("size")
        if not isinstance(size, int) or info.get("type") == "directory":
            raise RemoteNotFoundError("this is no file", path=self.name, remedy="give a .gguf file in it")
        self._size = size

    def open(self, span: ByteRange) -> RangePart:
        """The range, which has come when this returns."""
        end = min(span.end, self._size)
        data = self._asked(self._files.cat_file, self._path, start=span.start, end=end)
        if len(data) != end - span.start:
            raise RemoteError(
                f"{len(data)} bytes came where {end - span.start} were asked for", path=self.name
            )
        return RangePart(ByteRange(span.start, end), iter((data,)), self._size, _nothing)

    def check(self) -> None:
        """`RemoteError` if the file was replaced since it was asked for."""
        self._files.invalidate_cache()
        if _version(self._asked(self._files.info, self._path)) != self.version:
            raise RemoteError(
                "the file was replaced while it was read", path=self.name, remedy="open it again"
            )

    def close(self) -> None:
        """Nothing: lines belong to the package."""

    def _asked(self, ask: Any, *arguments: Any, **keywords: Any) -> Any:
        """What the storage answers. Each package has errors of its own; those of `OSError` are common."""
        try:
            return ask(*arguments, **keywords)
        except FileNotFoundError:
            raise RemoteNotFoundError(
                "there is no such file", path=self.name, remedy="see that the address is right"
            ) from None
        except PermissionError as error:
            raise RemoteAccessError(
                f"the storage does not give this to you ({error})",
                path=self.name,
                remedy="see the settings of its package",
            ) from None
        except Exception as error:
            raise RemoteError(
                f"the storage cannot be asked ({type(error).__name__}: {error})",
                path=self.name,
                remedy="see that the network and the settings are right",
            ) from None


def _version(info: dict[str, Any]) -> str:
    return " ".join(str(info[key]) for key in (*_VERSIONS, "size") if info.get(key) is not None)


def _nothing() -> None:
    """There is no line to be closed."""
