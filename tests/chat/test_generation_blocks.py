"""What `{% generation %}` blocks of a template write, by the place in the prompt."""

from __future__ import annotations

import time

import pytest
from recorded_chats import VOCABULARY

from ggufbpe import Tokenizer
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.generation_blocks import generation_blocks
from ggufbpe.chat.render import ChatTemplate
from ggufbpe.chat.request.messages import parse_request

TOK = Tokenizer.from_gguf(VOCABULARY)
NOW = time.gmtime(0)

TEMPLATES = {
    "x{% generation %}a{% endgeneration %}y": [b"a"],
    "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %};{% endfor %}": [
        b"Hi",
        b"there",
    ],
    # white space goes as it does without marks
    "x \n{%- generation %}\n a {%- endgeneration -%} \n y": [b" a"],
    "{%generation%}{%-endgeneration-%} x": [b""],
    "{% generation %}a": [],  # it has no end
    "x{% endgeneration %}y": [b""],
}


@pytest.mark.parametrize("source", TEMPLATES)
def test_what_blocks_write(source: str) -> None:
    template = ChatTemplate(source, BosEos.of(TOK))
    messages = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "there"}]
    request = parse_request({"messages": messages}, False)
    prompt = template.prompt(request, NOW).encode("latin-1")
    found = generation_blocks(template, request, NOW, prompt)
    assert found is not None
    assert [prompt[start:end] for start, end in found] == TEMPLATES[source]


def test_none_without_blocks_and_where_a_message_has_the_marks() -> None:
    request = parse_request({"messages": [{"role": "user", "content": "\x1f\x01"}]}, False)
    for source in (
        "{{ messages[0].content }}",
        "{% generation %}{{ messages[0].content }}{% endgeneration %}",
    ):
        template = ChatTemplate(source, BosEos.of(TOK))
        prompt = template.prompt(request, NOW).encode("latin-1")
        assert generation_blocks(template, request, NOW, prompt) is None
