"""The extras of pyproject.toml are those of the table in docs/commands.md, and `all` has what users can need."""

from __future__ import annotations

import re

from conftest import ROOT

DEVELOPERS = {"bench", "bench-corpora", "dev", "generate", "integrations", "release", "test"}
LLAMA_CPP = {"llama-cpp-python", "xllamacpp"}


def extras() -> dict[str, str]:
    """The requirements of each extra, as they are written."""
    section = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]\n")[2]
    written = section.partition("\n[")[0]
    return dict(re.findall(r"^([\w-]+) = \[(.*?)\](?:\s|$)", written, re.MULTILINE | re.DOTALL))


def test_the_table_has_all_extras_of_users() -> None:
    table = (ROOT / "docs" / "commands.md").read_text().partition("## Extras\n")[2]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert sorted(documented) == sorted(extras().keys() - DEVELOPERS)


def test_all_has_every_extra_but_llama_cpp() -> None:
    [included] = re.findall(r"ggufbpe\[(.*?)\]", extras()["all"])
    assert set(included.split(",")) == extras().keys() - DEVELOPERS - LLAMA_CPP - {"all"}
