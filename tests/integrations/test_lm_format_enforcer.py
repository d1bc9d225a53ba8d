"""lm-format-enforcer over the tokens of a GGUF follows a regular expression and a JSON schema."""

from __future__ import annotations

import json
import pickle

import pytest
from integration_cases import END, TOK, allowed, library

enforcer = library("lmformatenforcer")

from ggufbpe.integrations.lm_format_enforcer import tokenizer_data  # noqa: E402 - after its library

DATA = tokenizer_data(TOK)


def test_masks_of_a_regular_expression() -> None:
    enforced = enforcer.TokenEnforcer(DATA, enforcer.RegexParser("a[0-9]{2}"))
    texts = [f"a{number:02}".encode() for number in range(100)]
    prompt, generated = TOK.encode("A number: "), b""
    for token in [*TOK.encode("a42"), END]:
        assert set(enforced.get_allowed_tokens(prompt).allowed_tokens) == allowed(generated, texts)
        prompt, generated = [*prompt, token], generated + TOK.token_bytes[token]


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [('{"name": "Zoë", "age": 42}', True), ('{"name": "Zoë"}', False), ('{"age": "a"}', False)],
)
def test_a_schema_is_followed(text: str, is_valid: bool) -> None:
    properties = {"name": {"type": "string"}, "age": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["name", "age"]}
    enforced = enforcer.TokenEnforcer(DATA, enforcer.JsonSchemaParser(json.loads(json.dumps(schema))))
    ids: list[int] = []
    steps = []
    for token in [*TOK.encode_ordinary(text), END]:
        steps.append(token in enforced.get_allowed_tokens(ids).allowed_tokens)
        if not steps[-1]:
            break
        ids.append(token)
    assert all(steps) == is_valid


def test_it_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(DATA)).decoder(TOK.encode("naïve")) == "naïve"
