"""Audits one file for `doctor`: what its chat templates and metadata can do to their user.

Only the metadata is read, so that remote files work as well; the tokenizer need not open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ...._util.errors import ChatError, printable
from ...._util.extras import imported
from ....chat.bos_eos import BosEos
from ....gguf.constants import GGUFValueType, TokenizerKey
from ....gguf.metadata import Metadata, Overrides
from ....gguf.reader import GGUFFile
from ....hub.model_location import ModelName, locate
from ....models.chat_templates import chat_templates
from ..checks import in_order
from ..finding import Examination, Finding

_KEY = TokenizerKey.CHAT_TEMPLATE
# Ends that stand for whatever the file has: what a template does with texts does not depend on them.
_ENDS = BosEos(b"<s>", b"</s>")
_MOST_OF_EACH, _MOST_MADE = 10, 500  # findings of a check
_SECONDS = 0.8  # of a processor, to check the source of a template
_MOST_CHECKED = 1 << 18  # characters of a template; the largest known one has 51,000


def audit(path: ModelName, *, overrides: Overrides | None = None) -> Examination:
    """Find what is unsafe in the chat templates and the metadata of a model file, the gravest first.

    >>> [finding.id for finding in audit("model.gguf").findings]            # doctest: +SKIP
    ['sandbox_escape', 'content_as_control']

    Errors are what only attacks do, warnings what no known template does. `NotInstalledError` without jinja2,
    `GGUFError` if the file is not a valid GGUF, `OSError` if it cannot be read.
    """
    imported("jinja2", "chat", "an audit of chat templates")
    model_file = locate(path)
    with GGUFFile(model_file.opened()) as file:
        file.require_first_shard()
        return Examination(model_file.name, tuple(in_order(list(_findings(file, overrides)))))


def _findings(file: GGUFFile, overrides: Overrides | None) -> Iterator[Finding]:
    from .metadata_checks import string_findings, token_names

    metadata = Metadata(file, overrides)
    yield from string_findings(file)
    yield from token_names(metadata, file)
    for key, text in _templates(file, metadata).items():
        name = key.removeprefix(_KEY).removeprefix(".")
        found = template_findings(text, name, key)
        yield from found
        if (before := text.partition("\0")[0]) != text and before:  # what llama.cpp reads
            yield from (each for each in template_findings(before, name, key) if each not in found)


def _templates(file: GGUFFile, metadata: Metadata) -> dict[str, str]:
    """All templates by their keys: those that llama.cpp uses, and those that only other programs may look for."""
    from .metadata_checks import decoded

    found = {f"{_KEY}.{name}" if name else _KEY: text for name, text in chat_templates(metadata).items()}
    for key in file:
        is_template = key.startswith(_KEY) and file.value_type(key) is GGUFValueType.STRING
        if is_template and (key not in metadata.overridden or key not in found):
            found[key] = decoded(file.raw_strings(key)[0])
    return {key: text for key, text in found.items() if text}


def template_findings(text: str, name: str = "", key: str = _KEY) -> list[Finding]:
    """The findings about one template, the gravest first, and of each kind the first few.

    `name` is "" for the default one, and `key` is where it is stored. It takes 2 seconds of a processor at most,
    whatever the template does; one that takes longer to read gives an error.
    """
    from .accesses import accesses
    from .characters import odd_characters
    from .conditions import conditions
    from .probes import Probes
    from .prompt_checks import prompt_checks
    from .rules import template_finding
    from .template_source import TemplateSource
    from .texts import texts
    from .time_limit import OutOfTimeError, TimeLimit

    source = TemplateSource(text[:_MOST_CHECKED], name, key)
    if len(text) > _MOST_CHECKED:
        source.limit = f"ggufbpe reads at most {_MOST_CHECKED:,} characters, and it has {len(text):,}."

    def all_findings() -> Iterator[Finding]:
        if source.limit:
            yield template_finding(source, "template_large", None, source.limit)
        if "\0" in text:
            at = source.position_of(text.index("\0"))
            yield template_finding(
                source, "nul_character", at, f"{len(text.partition(chr(0))[2]):,} characters follow it."
            )
        for odd in odd_characters(source.text):
            yield template_finding(
                source, odd.id, source.position_of(odd.at), f"It has {printable(odd.shown)}."
            )
        try:
            with TimeLimit(_SECONDS).timed():
                for check in (accesses, conditions, texts):
                    yield from _first_of_each(check(source))
        except OutOfTimeError:
            yield template_finding(source, "template_slow", None, f"It takes more than {_SECONDS} seconds.")
            return
        if source.problem or source.limit:
            return
        try:
            yield from prompt_checks(source, Probes(text, _ENDS))
        except ChatError as error:
            yield template_finding(source, "not_run", None, f"It says {printable(error.reason, 120)}.")

    return in_order(list(all_findings()))


def _first_of_each(findings: Iterator[Finding]) -> Iterator[Finding]:
    """The first findings of each kind; no more are made once there are many."""
    counts: Counter[str] = Counter()
    for finding in islice(findings, _MOST_MADE):
        counts[finding.id] += 1
        if counts[finding.id] <= _MOST_OF_EACH:
            yield finding
