"""Validate what `--json` prints against the JSON Schemas in the package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from ggufbpe import json_schema
from ggufbpe.cli import COMMANDS


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json_schema(name))


def documents(command: str, out: bytes) -> list[Any]:
    """What was printed: one document, or of `decode` one a line."""
    text = out.decode()
    if command == "decode" and not text.startswith('{\n  "schema"'):
        return [json.loads(line) for line in text.splitlines()]
    return [json.loads(text)]


def require_schema(arguments: Sequence[str], code: int, out: bytes) -> None:
    """Assert that what a command line with `--json` printed is what its schema, or that of errors, allows."""
    command = next((each for each in arguments if each in COMMANDS or each == "error"), None)
    if command is None or "--json" not in arguments[1:] or not out or "--help" in arguments:
        return
    if arguments[arguments.index("--json") - 1] in ("-p", "--prompt"):
        return  # it is the text
    for document in documents(command, out):
        is_error = code == 2 and isinstance(document, dict) and set(document) == {"schema", "error"}
        errors = list(_validator("error" if is_error else command).iter_errors(document))
        assert not errors, "\n".join(f"{command}: {each.json_path}: {each.message[:300]}" for each in errors)
