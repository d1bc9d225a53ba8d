"""Missing packages are named with the command that installs them; other errors of an import are not hidden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ggufbpe._util.extras import NotInstalledError, imported, imported_package

IMPORTERS: list[tuple[Callable[..., Any], str]] = [
    (imported, "A plot takes the package made_up: .* install 'ggufbpe\\[made_up\\]'"),
    (imported_package, "A plot needs the package made_up, which is not installed: .* install made_up"),
]


@pytest.mark.parametrize(("importer", "message"), IMPORTERS)
@pytest.mark.parametrize("module", ["made_up", "made_up.part"])
def test_a_missing_package_is_named_with_what_installs_it(
    importer: Callable[..., Any], message: str, module: str
) -> None:
    with pytest.raises(NotInstalledError, match=message) as raised:
        importer(module, "made_up", "A plot")
    assert raised.value.name == "made_up"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import missing_dependency", "No module named 'missing_dependency'"),
        ("from os import missing_name", "cannot import name 'missing_name'"),
    ],
)
@pytest.mark.parametrize("importer", [each for each, _ in IMPORTERS])
def test_a_package_that_fails_to_import_is_not_called_missing(
    importer: Callable[..., Any], source: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=error) as raised:
        importer("broken_package", "broken_package", "A plot")
    assert not isinstance(raised.value, NotInstalledError)
