"""Writes the page of `ggufbpe serve` as a static site, which opens models in the browser by WebAssembly."""

from __future__ import annotations

from pathlib import Path

from .._util.files import write_files
from .page_files import page_files

_PACKAGE = Path(__file__).parents[1] / "javascript"
_FIRST_MODEL = Path(__file__).parents[1] / "models" / "gpt2.gguf"
# Models come from any address, so requests may go anywhere; nothing is sent with them.
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self' http: https:; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


class NoWebAssemblyError(FileNotFoundError):
    """This installation has no `ggufbpe.wasm`."""

    def __init__(self) -> None:
        super().__init__(
            "this installation has no WebAssembly module, which the page needs: install a wheel of a release, "
            "or run scripts/wasm.sh in a checkout"
        )


def standalone_files() -> dict[str, bytes]:
    """Return the files of the static site, by their paths in its folder.

    `NoWebAssemblyError` if the package was built without `ggufbpe.wasm`.
    """
    package = {path.name: path.read_bytes() for path in sorted(_PACKAGE.iterdir()) if path.is_file()}
    if "ggufbpe.wasm" not in package:
        raise NoWebAssemblyError
    files = dict(page_files())
    files |= {
        path.name: path.read_bytes() for path in sorted((Path(__file__).parent / "standalone").iterdir())
    }
    files["index.html"] = _with_policy(files["index.html"])
    files[_FIRST_MODEL.name] = _FIRST_MODEL.read_bytes()
    return {**files, **{f"ggufbpe/{name}": content for name, content in package.items()}}


def _with_policy(page: bytes) -> bytes:
    """The page with the policies that a server would send as headers."""
    first = b'<meta charset="utf-8" />'
    assert page.count(first) == 1
    added = (
        '<meta name="referrer" content="no-referrer" />',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}" />',
    )
    return page.replace(first, b"\n    ".join((first, *(each.encode() for each in added))))


def write_standalone_page(folder: Path) -> list[Path]:
    """Write the static site into `folder`, which is made if there is none, and return the files that were written.

    Files of the same names are replaced. `NoWebAssemblyError` if the package was built without `ggufbpe.wasm`.
    """
    files = {folder / name: content for name, content in standalone_files().items()}
    for parent in {path.parent for path in files}:
        parent.mkdir(parents=True, exist_ok=True)
    write_files({str(path): content for path, content in files.items()})
    return list(files)
