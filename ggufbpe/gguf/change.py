"""Changes of a model's metadata as data, for `ggufbpe fix` to apply and for doctor to try in memory.

A change has no command of its own: `fix_command` in hub/model_location.py makes one from `Change.arguments` and the
path of a model.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .._util.errors import printable
from .edit import Edit
from .edit_arguments import id_ranges, parse_remove, parse_set, parse_token_type
from .reader import GGUFFile
from .token_edits import TokenChanges, set_token_types, token_edits

# A command as `model_location.fix_command` writes it.
PLACEHOLDER = "FILE"  # what stands for a file that is for the user to supply
_WORDS = r"""(?:'[^']*'|"[^"]*"|[^'"])+?"""  # what stands between quotation marks ends nothing
_FIRST_PART = r"-00001-of-\d{5}\.gguf"
_OUTPUT = rf"(?:--in-place|-o (?:fixed(?:-\d+)?\.gguf|'[^']*{_FIRST_PART}'|[^\s']*{_FIRST_PART}))"
COMMAND = re.compile(rf"(?:ggufbpe import {_WORDS} -o vocab\.gguf && )?ggufbpe fix {_WORDS} {_OUTPUT}")


@dataclass(frozen=True)
class Change:
    """Changes of keys, of types and texts of tokens, and of chat templates; false if there are none.

    >>> bos = Change({"tokenizer.ggml.add_bos_token": "false"})
    >>> (bos | Change(types={5: "CONTROL", 6: "CONTROL"})).arguments
    ['--set', 'tokenizer.ggml.add_bos_token=false', '--set-token-type', '5..6=CONTROL']

    `keys` maps each key to its new value, as `--set` reads it, or to None if the key is removed. `types` maps ids of
    tokens to the names of their new types, `texts` old texts of tokens (without "=") to new ones, and `templates` names
    of chat templates ("" is the default one) to what `--chat-template` takes.
    """

    keys: Mapping[str, str | None] = field(default_factory=dict)
    types: Mapping[int, str] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.keys or self.types or self.templates or self.texts)

    def __or__(self, other: Change) -> Change:
        """Return both changes as one; where they contradict each other, `other` wins."""
        return Change(
            {**self.keys, **other.keys},
            {**self.types, **other.types},
            {**self.templates, **other.templates},
            {**self.texts, **other.texts},
        )

    @property
    def arguments(self) -> list[str]:
        """The arguments by which `ggufbpe fix` makes this change."""
        return [word for pair in self._pairs() for word in pair]

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for key, value in self.keys.items():
            yield ("--remove", key) if value is None else ("--set", f"{key}={value}")
        for kind in dict.fromkeys(self.types.values()):
            tokens = sorted(token for token, other in self.types.items() if other == kind)
            yield from (("--set-token-type", f"{ids}={kind}") for ids in id_ranges(tokens))
        yield from (("--rename-token", f"{old}={new}") for old, new in self.texts.items())
        for name, template in self.templates.items():
            yield "--chat-template", template_argument(template, name)

    @property
    def described(self) -> list[str]:
        """The changes in words, as the state that the file would have.

        >>> Change({"tokenizer.ggml.pre": "qwen2"}, {5: "CONTROL", 6: "CONTROL"}).described
        ['tokenizer.ggml.pre=qwen2', 'tokens 5..6 of type CONTROL']
        """
        words = {"--set": "{}", "--remove": "no {}", "--chat-template": "the chat template of {}"}
        lines = []
        for flag, value in self._pairs():
            if flag == "--set-token-type":
                ids, _, kind = value.partition("=")
                lines.append(f"{'tokens' if '..' in ids else 'token'} {ids} of type {kind}")
            elif flag == "--rename-token":
                old, _, new = value.partition("=")
                lines.append(f"token {printable(old)} called {printable(new)}")
            else:
                lines.append(words[flag].format(value))
        return lines

    def edits(self, file: GGUFFile) -> list[Edit]:
        """Return the edits of keys and tokens that `ggufbpe fix` makes in this file.

        `ValueError` if it would refuse the change. Chat templates are left to `analysis/doctor/template_edits.py`.
        """
        edits = [
            parse_remove(file, key) if value is None else parse_set(file, f"{key}={value}")
            for key, value in self.keys.items()
        ]
        if self.texts:
            edits += token_edits(file, TokenChanges(rename=list(self.texts.items())))
        return [*edits, set_token_types(file, self.types.items())] if self.types else edits

    @classmethod
    def of_command(cls, command: str) -> Change | None:
        """Return the change that a command of `model_location.fix_command` makes, or None if it needs a file.

        >>> Change.of_command("ggufbpe fix m.gguf --remove tokenizer.ggml.scores -o fixed.gguf").keys
        {'tokenizer.ggml.scores': None}
        """
        words = flags_of_command(command)
        change = cls()
        for flag, value in zip(words[::2], words[1::2]):
            one = _of_argument(flag, value)
            if one is None:
                return None
            change |= one
        return change


def flags_of_command(command: str) -> list[str]:
    """Return the words of a command that say what it changes, without its model and output.

    >>> flags_of_command("ggufbpe import t.json -o vocab.gguf && ggufbpe fix vocab.gguf --remove a -o fixed.gguf")
    ['--remove', 'a']
    """
    words = shlex.split(command)
    if words[1] == "import":  # `ggufbpe import FILE -o vocab.gguf &&`
        del words[:6]
    return words[3:-1] if words[-1] == "--in-place" else words[3:-2]


def template_argument(source: str, name: str = "") -> str:
    """Return the value of `--chat-template` that sets the template called `name`, or the default one, to `source`.

    >>> template_argument("tools.jinja", "tool_use"), template_argument("v=2.gguf")
    ('tool_use=tools.jinja', './v=2.gguf')
    """
    if name:
        return f"{name}={source}"
    return f"./{source}" if re.match(r"\w+=", source) else source


def _of_argument(flag: str, value: str) -> Change | None:
    if flag == "--set":
        key, _, text = value.partition("=")
        return Change({key: text})
    if flag == "--remove":
        return Change({value: None})
    if flag == "--set-token-type":
        token, kind = parse_token_type(value)
        if isinstance(token, str):
            return None
        return Change(types=dict.fromkeys(token if isinstance(token, range) else [token], kind))
    if flag == "--rename-token":
        old, _, new = value.partition("=")
        return Change(texts={old: new})
    named = re.fullmatch(r"(?:(\w+)=)?(.+)", value)
    if flag != "--chat-template" or not named or named[2] == PLACEHOLDER:
        return None
    return Change(templates={named[1] or "": named[2]})


def all_of(changes: Iterable[Change]) -> Change:
    """Return several changes as one; where two contradict each other, the later one wins."""
    combined = Change()
    for change in changes:
        combined |= change
    return combined
