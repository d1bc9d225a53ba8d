"""Defines `Cause`: something that makes ids differ, with its description, evidence and remedy."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...gguf.change import Change

# The ids, in the order in which explanations of equally many causes are listed: changes of a chat, then of what is
# around the text, then of the text, then of the model; the least specific come last.
CAUSES = (
    *("generation_prompt", "thinking", "tools", "date", "system", "reasoning", "trimmed", "messages"),
    *("build", "model", "bos", "eos", "sep", "parse_special", "trailing_newline", "newlines", "bom"),
    *("plain_jinja", "template"),
    *("space_prefix", "leading_space", "extra_whitespace", "lower_case", "accents", "charsmap"),
    *("escapes", "invalid_utf8", "normalization", "truncated", "ignore_merges", "special_token_types"),
    *("escape_whitespaces", "byte_fallback", "unk", "scores", "pre_type", "merges", "vocabulary"),
    *("text_differs", "prompt_differs", "refused", "unknown"),
)


class Cause(NamedTuple):
    """Something that makes ids differ: `id` is one of `CAUSES`, and `detail` says what, with the evidence.

    `fix` says what to do outside of the model file, "" if nothing. `change` is what would have to change in the file;
    analysis/doctor/proposal.py decides whether that is proposed.
    """

    id: str
    detail: dict[str, object]
    fix: str = ""
    change: Change = Change()

    @property
    def place(self) -> int:
        """The place of the cause in `CAUSES`."""
        return CAUSES.index(self.id)

    def to_dict(self) -> dict[str, object]:
        """The cause as `--json` writes it."""
        return {"id": self.id, "detail": self.detail, "fix": self.fix}

    def __repr__(self) -> str:
        return f"<Cause {self.id}: {self.detail.get('what', '')}>"


_SIDES = re.compile(  # what causes call the two sides; quoted texts are found to stay as they are
    r"(?<!\w)'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
    r"|\b[Tt]he (?:given )?ids\b|\b[Tt]he other tool\b|\b[Tt]he (?:model|file)\b(?! that| file)"
)


def of_two_models(cause: Cause, ours: str, theirs: str) -> Cause:
    """`cause` in words for ids that are known to be those of the model `theirs`, with the names of both."""
    named = {
        **dict.fromkeys(["the given ids", "the ids"], f"the ids of {theirs}"),
        "the other tool": f"the model {theirs}",
        "the model": f"the model {ours}",
        "the file": f"the file {ours}",
    }

    def in_words(text: str) -> str:
        return _SIDES.sub(lambda match: _like(match[0], named.get(match[0].lower(), match[0])), text)

    what = in_words(str(cause.detail.get("what", "")))
    if what and theirs not in what:
        what = f"in {theirs}, {what}"
    return cause._replace(detail={**cause.detail, "what": what}, fix=in_words(cause.fix))


def _like(old: str, new: str) -> str:
    """Return `new` with a capital if `old` begins with one."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new
