"""Runs a template again over attributed strings, so that each character of the prompt has an origin.

The template is also run without the generation prompt, to find where that begins.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from ..errors import ChatError
from .origins import Origins, generated
from .render import ChatTemplate
from .request.messages import Request
from .request.reasoning import common_length
from .template.attributed_text import origins_of
from .template.attributing_runtime import AttributingRuntime


class AttributedTemplate(ChatTemplate):
    """A prepared template whose prompts have origins."""

    def __init__(self, template: ChatTemplate) -> None:
        vars(self).update(vars(template))
        self._plain = template

    def attributed_prompt(self, request: Request, now: time.struct_time, origins: Origins) -> str:
        """The prompt with origins; the generation prompt is marked as such."""
        text = self.prompt(origins.of_request(request), now)
        if request.continuation or not request.add_generation_prompt:
            return text
        try:
            without = self._plain.prompt(replace(request, add_generation_prompt=False), now)
        except ChatError:
            return text
        behind = 0  # behind the text of the last message
        for number in set(origins_of(text)):
            if origins.kind(number) == "message":
                behind = max(behind, origins_of(text).rfind(number) + 1)
        return generated(text, max(behind, common_length(without, text)))

    def rendered(self, names: dict[str, Any], request: Request, now: time.struct_time) -> str:
        return self.template.render_by(AttributingRuntime(now, request.size), names)

    def going_on(self, text: str, begun: str) -> str:
        return text + generated(begun)
