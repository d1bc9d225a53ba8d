"""Finds what `{% generation %}` blocks write, which transformers and TRL take for what the assistant wrote.

llama.cpp skips the two statements (common/jinja/parser.cpp), so here the template runs once more with marks in their
place.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._util.errors import ChatError
from .._util.lazy import IMPORT_LOCK
from .render import ChatTemplate, TemplateWriter
from .request.messages import Request

if TYPE_CHECKING:
    from .template.environment import Template

_STATEMENT = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
_BEGIN, _END = "\x1f\x01", "\x1f\x02"  # written by no template
_MARKS = re.compile(f"{_BEGIN}|{_END}")


class _MarkingWriter(TemplateWriter):
    def run(self, template: Template, names: dict[str, Any], request: Request, now: time.struct_time) -> str:
        return _marked(template.source).render(names, now, request.size)


@lru_cache(maxsize=8)
def _marked(source: str) -> Template:
    with IMPORT_LOCK:
        from .template.environment import Template

    return Template(_STATEMENT.sub(_mark, source))


def _mark(statement: re.Match[str]) -> str:
    """Return two statements around a mark, which strip white space as the one that they replace."""
    before, end, after = statement.groups()
    return f"{{%{before} if true %}}{{{{ '{_END if end else _BEGIN}' }}}}{{% endif {after}%}}"


def generation_blocks(
    template: ChatTemplate, request: Request, now: time.struct_time, prompt: bytes
) -> tuple[tuple[int, int], ...] | None:
    """Return the bytes of a prompt that each `{% generation %}` block wrote; None if the template has none.

    None, too, where the blocks cannot be told, since a message has the marks that are used for it.
    """
    if not _STATEMENT.search(template.source):
        return None
    try:
        text = template.with_writer(_MarkingWriter()).prompt(request, now)
    except ChatError:
        return None
    found, at, begin = [], 0, None
    for piece in re.split(f"({_MARKS.pattern})", text):
        if piece == _BEGIN:
            begin = at
        elif piece == _END:
            found.append((at if begin is None else begin, min(at, len(prompt))))
            begin = None
        else:
            at += len(piece)
    # An EOS at the end, which the tokenizer adds itself, may stand before a mark, and then it is still there.
    is_same = _MARKS.sub("", text).encode("latin-1").startswith(prompt) and b"\x1f" not in prompt
    return tuple(found) if is_same else None
