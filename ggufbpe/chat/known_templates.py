"""The chat templates that llama.cpp carries for models, by name: `known:NAME` wherever a template is given.

llama.cpp does not look into its folder of templates when it runs; `--chat-template-file` names a file. Source:
models/templates, taken by scripts/generate_chat_templates.py into data/chat_templates.json.xz.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from .._util.errors import printable
from .._util.lazy import IMPORT_LOCK
from .template.lexer import MOST_SOURCE

GivenTemplate = (
    str | os.PathLike[str] | None
)  # a text, a name, or the path of a file; None for the model's own
PREFIX = "known:"
_FILE = os.path.join(os.path.dirname(__file__), "chat_templates.json.xz")
_FOR_TOOLS = "-tool_use"
_SUGGESTED = 3  # similar names that a message lists
_LONGEST_NAME = 100  # characters of an unknown name that are compared with others

# What llama-server takes for a model without a template; `known:chatml`.
CHATML = """\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\n' -}}
{%- endif -%}"""


class KnownTemplate(NamedTuple):
    """A template of llama.cpp's collection."""

    name: str
    models: tuple[str, ...]  # that it belongs to, without their publishers; () if unknown
    source: str

    @property
    def variant(self) -> str:
        """The name under which a model's file has it: "tool_use", or "" for the default."""
        return "tool_use" if self.name.endswith(_FOR_TOOLS) else ""


def known_templates() -> dict[str, KnownTemplate]:
    """All of them by name."""
    with IMPORT_LOCK:
        return _read()[1]


def known_build() -> str:
    """The build of llama.cpp whose templates these are.

    >>> known_build()
    'b11549'
    """
    with IMPORT_LOCK:
        return _read()[0]


@cache
def _read() -> tuple[str, dict[str, KnownTemplate]]:
    import json
    import lzma

    with lzma.open(_FILE) as file:
        content = json.load(file)
    models, templates = content["models"], content["templates"]
    templates_by_name = {
        name: KnownTemplate(name, tuple(models[name]), text) for name, text in templates.items()
    }
    return content["llama.cpp"], templates_by_name


def known_source(given: str) -> str | None:
    """The template that `known:NAME` names; None if the argument has another form. `ValueError` as below."""
    return known_template(given[len(PREFIX) :]).source if given.startswith(PREFIX) else None


def resolved(given: GivenTemplate) -> str | None:
    """A template as given, with `known:NAME` replaced by the template of that name, and a path by the file's text.

    `ValueError` as below, and for a file that is not UTF-8; `OSError` if it cannot be read.
    """
    text = read_if_path(given)
    source = None if text is None else known_source(text)
    return text if source is None else source


def read_if_path(given: GivenTemplate) -> str | None:
    """The text of the file that a path names; a string or None as given.

    `TypeError` for anything else; further errors as of `file_text`.
    """
    if isinstance(given, os.PathLike):
        return file_text(given)
    if given is not None and not isinstance(given, str):
        raise TypeError(f"chat_template must be a string, a path or None, not {type(given).__name__}")
    return given


def file_text(path: str | os.PathLike[str]) -> str:
    """The text of a template's file.

    `ValueError` if it is empty, too large for a template or not UTF-8, `OSError` if it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(MOST_SOURCE + 1)
    if not data:
        raise ValueError(f"{printable(os.fspath(path))} is empty, so it has no chat template")
    if len(data) > MOST_SOURCE:
        raise ValueError(
            f"{printable(os.fspath(path))} has more than {MOST_SOURCE:,} bytes, too many for a chat template"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(path)} is not UTF-8, {error.reason} at byte {error.start}") from None


def is_template(given: str) -> bool:
    """Check that `given` is "chatml", "" or the text of a template: with a brace, or of several lines.

    Any other text is a name or a path. The file system is not asked, so that a server may call this for a request.

    >>> [is_template(each) for each in ("{{ messages }}", "chatml", "tool_use", "a.jinja")]
    [True, True, False, False]
    """
    return given in ("", "chatml") or "{" in given or "\n" in given


def check_is_template(given: str) -> None:
    """Raise a `ValueError` for what is no template (see `is_template`); for the path of a file, it says so."""
    if is_template(given):
        return
    if os.path.exists(given):
        raise ValueError(
            f"{printable(given)} is the path of a file, not a template; as a pathlib.Path, it is opened"
        )
    near = ", ".join(f"{PREFIX}{name}" for name in nearest_known(given))
    raise ValueError(
        f"{printable(given)} is neither the text of a template nor the name of one; near: {near}"
    )


def known_template(name: str) -> KnownTemplate:
    """The template with a name, ignoring case; "chatml" is among them. `ValueError` with the closest names otherwise.

    >>> known_template("Qwen-Qwen3-0.6B").models
    ('Qwen3-0.6B',)
    """
    if name.lower() == "chatml":
        return KnownTemplate("chatml", (), CHATML)
    templates = known_templates()
    by_name = {known.lower(): known for known in templates}
    if name.lower() in by_name:
        return templates[by_name[name.lower()]]
    raise ValueError(
        f"llama.cpp {known_build()} has no chat template named {printable(name)}; near: "
        f"{', '.join(nearest_known(name))} (`ggufbpe chat --list-templates` lists all)"
    )


def nearest_known(name: str) -> list[str]:
    """The names of known templates nearest to `name`."""
    return nearest(name, ["chatml", *known_templates()])


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """All of the names that contain `name`, ignoring case and punctuation; if there are none, the most similar ones.

    Of a long name, only the first 100 characters are compared.

    >>> nearest("Gemma2", ["chatml", "google-gemma-2-2b-it", "Qwen3-Coder"])
    ['google-gemma-2-2b-it']
    """
    from difflib import SequenceMatcher

    def letters(text: str) -> str:
        return "".join(filter(str.isalnum, text.lower()))

    wanted = letters(name[:_LONGEST_NAME])

    def likeness(each: str) -> float:
        matcher = SequenceMatcher(None, letters(each), wanted)
        return matcher.ratio() + sum(block.size for block in matcher.get_matching_blocks() if block.size > 2)

    containing = [each for each in names if wanted and wanted in letters(each)]
    return containing or sorted(names, key=likeness, reverse=True)[:_SUGGESTED]
