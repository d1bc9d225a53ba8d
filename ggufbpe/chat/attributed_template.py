"""Runs a template again over attributed strings, so that each character of the prompt has an origin.

The template is also run without the generation prompt, to find where that begins.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from .._util.errors import ChatError
from .origins import Origins, generated
from .render import ChatTemplate, TemplateWriter
from .request.messages import Request
from .request.reasoning import common_length
from .template.attributed_text import origins_of
from .template.attributing_runtime import AttributingRuntime
from .template.environment import Template


class AttributingWriter(TemplateWriter):
    """Writes prompts whose characters have origins."""

    def run(self, template: Template, names: dict[str, Any], request: Request, now: time.struct_time) -> str:
        """The text that the template writes for the names of a request, with origins."""
        return template.render_by(AttributingRuntime(now, request.size), names)

    def append_prefill(self, text: str, prefill: str) -> str:
        """A text followed by the start of the answer, which counts as the generation prompt."""
        return text + generated(prefill)


def attributed_prompt(
    template: ChatTemplate, request: Request, now: time.struct_time, origins: Origins
) -> str:
    """The prompt of a request, in which each character has one of `origins`; the generation prompt is marked as such.

    `ChatError` as from `ChatTemplate.prompt`.
    """
    text = template.with_writer(AttributingWriter()).prompt(origins.of_request(request), now)
    if request.continuation or not request.add_generation_prompt:
        return text
    try:
        without = template.prompt(replace(request, add_generation_prompt=False), now)
    except ChatError:
        return text
    end = 0  # of the text of the last message
    for number in set(origins_of(text)):
        if origins.kind(number) == "message":
            end = max(end, origins_of(text).rfind(number) + 1)
    return generated(text, max(end, common_length(without, text)))
