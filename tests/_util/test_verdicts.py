"""The words for results are those of docs/json.md."""

from __future__ import annotations

from conftest import ROOT

from ggufbpe._util import verdicts
from ggufbpe._util.verdicts import same_or_different


def test_words_for_results_are_documented() -> None:
    words = {value for name, value in vars(verdicts).items() if name.isupper()}
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    assert words == {word for word in words if f'"{word}"' in page}
    assert [same_or_different(each) for each in (True, False)] == ["same", "different"]
