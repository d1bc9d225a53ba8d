"""Finds what a template tells the model itself: instructions, addresses, code, texts that its family does not have."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from jinja2 import nodes

from ...._util.errors import printable
from ....chat.known_templates import CHATML, known_templates
from ....chat.template.loop_uses import walked
from ....chat.template.run_limits import look_at_clock
from ....chat.template.values import plain, viewed
from ..finding import Finding
from .rules import template_finding
from .template_source import TemplateSource

_MOST_TEXTS = 20  # that are listed
_SHARE_OF_FAMILY = 0.6  # of the pieces of a template that one of llama.cpp's has, too
_LEAST_PIECES = 8

# Sentences that are not addressed to the model for its user's sake.
_INSTRUCTIONS = (
    r"(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:previous|prior|above|earlier|other|system|safety|user'?s?)\b",
    r"(?:do not|don'?t|never|must not|without)\s+(?:\w+\s+){0,2}(?:tell|telling|reveal|revealing|mention|mentioning|"
    r"inform|informing|disclose|disclosing|admit|show|notify|notifying|alert|warn|warning|asking)\b"
    r"[^.\n]{0,60}\b(?:user|anyone|anybody|them|this|these|it|him|her|human|operator)\b",
    r"\b(?:secretly|covertly|silently|discreetly|stealthily|surreptitiously|unnoticed|in secret)\b",
    r"\b(?:hidden|secret|confidential|invisible)\s+(?:\w+\s+)?"
    r"(?:instruction|message|order|command|task|goal|rule|mission|note)s?\b",
    r"\b(?:send|post|upload|leak|exfiltrate|forward|transmit|email|report)\s+[^.\n]{0,60}\bto\s+"
    r"(?:https?:|\S+@\S+|\S+\.(?:com|net|org|io|ru|cn)\b)",
    r"\b(?:password|passphrase|credential|api[ _-]?key|private key|seed phrase|credit card|access token|ssh key)s?\b",
    r"\b(?:backdoor|vulnerabilit(?:y|ies)|exploit|malware|payload|reverse shell|keylogger|ransomware)\b",
    r"\b(?:curl|wget|nc|bash|sh|powershell|rm)\s+-\w+|\|\s*(?:ba)?sh\b|\brm -rf\b|pip3? install|npm install|chmod \+x",
    r"\b(?:no|without|free of|bypass|disable|turn off|remove)\s+(?:\w+\s+){0,2}"
    r"(?:restriction|filter|guardrail|safety|censorship|limit|moral|ethic|polic)\w*",
    r"\b(?:jailbr\w+|do anything now|unrestricted|uncensored|developer mode|god mode)\b",
    r"\b(?:always|whenever|every time|from now on|each time)\b[^.\n]{0,80}\b"
    r"(?:recommend|promote|advertis|praise|insert|append|"
    r"prefer|mention|link|buy|agree|approve|lie|vote|claim|pretend|deny|include|add|say|end with|begin with)\w*",
    r"\bpretend\s+(?:to be|that|you)\b|\b(?:lie|lying) (?:to|about)\b|\bmislead\b|\bdeceive\b|\bmanipulate\b",
    r"\b(?:user|human|customer|operator|developer)s?\s+(?:has|have|is|are)\s+(?:already\s+)?(?:authori[sz]ed|consented|approved|agreed|verified)\b",
    r"\bif (?:the )?(?:user|human|anyone|someone|they|he|she|asked)\b[^.\n]{0,80}"
    r"\b(?:asks?|asked|mentions?|wants?|says?|requests?|questions?)\b"
    r"[^.\n]{0,80}\b(?:refuse|deny|say|answer|reply|recommend|insert|lie|claim|write|pretend|respond with|direct)\b",
    r"忽略.{0,8}(?:之前|以上|先前)|不要(?:告诉|透露|提及)|秘密地|悄悄",
    r"(?:ignoriere?|vergiss)\s+(?:\w+\s+){0,3}(?:vorherigen?|bisherigen?|obigen?)|"
    r"(?:verrate|erwähne|sag)\w*\s+[^.\n]{0,40}\b(?:nicht|niemals|nie)\b|heimlich",
    r"(?:ignora|olvida)\s+(?:\w+\s+){0,3}(?:anterior|previa)\w*|no\s+(?:le\s+)?(?:digas|menciones|reveles)|en secreto",
    r"(?:ignore[zs]?|oublie[zs]?)\s+(?:\w+\s+){0,3}(?:précédent|antérieur)\w*|ne\s+(?:dis|dites|révèle|mentionne)\w*\s+(?:pas|jamais)|secrètement",
    r"ignora(?:re|te)?\s+(?:\w+\s+){0,3}(?:precedent|anterior)\w*|non\s+(?:dire|rivelare|menzionare)|in segreto",
    r"(?:não|nunca)\s+(?:conte|diga|revele|mencione)|em segredo|secretamente",
    r"\bkeep\s+(?:\w+\s+){1,4}to yourself\b|\bspeak\s+(?:ill|badly)\s+of\b|\bin favou?r of\b",
    r"игнорируй|забудь\s+(?:все\s+)?(?:предыдущ|прежн)\w*|не\s+(?:говори|сообщай|упоминай)|тайно",
    r"(?:以前|これまで|上記)の指示を無視|ユーザーに(?:言わ|伝え|知らせ)な|秘密に|密かに",
)
INSTRUCTION = re.compile("|".join(_INSTRUCTIONS), re.IGNORECASE)
WEB_CODE = re.compile(
    r"<\s*(?:script|iframe|object|embed|svg|style|link|meta|base)\b(?=[^<>|]*[\s/=>])|\bon(?:error|load|click|mouseover)\s*=|"
    r"javascript:|data:text/html|<img\s[^>]{0,500}>",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"\b(?:https?|ftp|wss?|file)://[^\s'\"<>)]*|\bwww\.\w[^\s'\"<>)]*|\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?|"
    r"\b[\w.+-]{1,64}@[\w-]{1,64}\.(?:com|net|org|io|ru|cn|example|dev)\b",
    re.IGNORECASE,
)
_PICTURE = re.compile(r"!\[[^\]\n]{0,80}\]\(")
_ENCODED = re.compile(
    r"[A-Za-z0-9+/_-]{40,}={0,2}|(?:[0-9a-fA-F]{2}[ ,:]?){24,}|(?:\\u[0-9a-f]{4}){6,}|(?:[01]{8} ?){6,}"
)
_WORD = re.compile(r"[^\W\d_]{2,}(?:['’-][^\W\d_]+)*|[\u3040-\u9fff\uac00-\ud7a3]{2}")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n\s*\n|\n(?=\W)")
_MARKER = re.compile(r"<[^<>\n]{1,60}>|\[[^\[\]\n]{1,60}\]")
_SPACES = re.compile(r"\s+")


class NearestTemplate(NamedTuple):
    """The known template that a template is most like, and the share of its pieces that this one has."""

    name: str
    share: float

    @property
    def is_sure(self) -> bool:
        """Whether the template is a copy of it with changes."""
        return self.share >= _SHARE_OF_FAMILY


def texts(source: TemplateSource) -> Iterator[Finding]:
    """Findings about what the template writes itself."""
    for position, sentence in _sentences(source):
        if (match := INSTRUCTION.search(sentence)) and not (match[0] in _known_text() and is_known(sentence)):
            yield template_finding(
                source, "hidden_instruction", position, f"It says {_around(sentence, match)}."
            )
    for position, text in _written_texts(source):
        if (match := WEB_CODE.search(text)) and not is_known(match[0]):
            yield template_finding(source, "web_code", position, f"It writes {_around(text, match)}.")
        for match in (*_ADDRESS.finditer(text), *_PICTURE.finditer(text)):
            if not is_known(match[0]):
                yield template_finding(source, "web_address", position, f"It writes {_around(text, match)}.")
                break
        if (match := _ENCODED.search(text)) and not is_known(match[0]):
            yield template_finding(source, "encoded_text", position, f"It writes {printable(match[0], 60)}.")
    yield from _unfamiliar(source)


def _unfamiliar(source: TemplateSource) -> Iterator[Finding]:
    family = family_of(source.text)
    least = 2 if family.is_sure else 5
    seen: set[str] = set()
    for position, sentence in _sentences(source, literally=True):
        words = _WORD.findall(_MARKER.sub(" ", sentence))
        if len(words) < least or sentence in seen or is_known(sentence):
            continue
        seen.add(sentence)
        if len(seen) > _MOST_TEXTS:
            return
        if family.is_sure:
            fix = f"compare it with llama.cpp's template: known:{family.name}"
            told = f"known:{family.name} does not have {printable(sentence)}."
            yield template_finding(source, "unfamiliar_text", position, told, fix=fix)
        else:
            yield template_finding(source, "own_text", position, f"It is {printable(sentence)}.")


def _around(text: str, match: re.Match[str]) -> str:
    start = max(match.start() - 20, 0)
    return printable(text[start : match.end() + 40].strip())


def _written_texts(source: TemplateSource, literally: bool = False) -> Iterator[tuple[int, str]]:
    """The texts that may get into a prompt: all but those of refusals; of a broken template, all that it has.

    Those of a place are put together as far as they are constant, or with `literally` left as they are written.
    """
    if source.problem:
        yield 0, source.text
        return
    left_out = set()
    for call in source.of_kind(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "raise_exception":
            left_out |= {id(each) for each in walked(call)}
    written: dict[int, str] = {}
    for node in source.ordered:
        if id(node) in left_out:
            continue
        if isinstance(node, nodes.TemplateData):
            written[node.lineno] = str(plain(node.data))
        elif isinstance(node, nodes.Const if literally else nodes.Expr):
            value = source.constants.of(node)
            if isinstance(value, str) and len(value) > len(written.get(node.lineno, "")):
                written[node.lineno] = str(plain(value))
    for position, text in written.items():
        look_at_clock(False)
        yield position, text


def _sentences(source: TemplateSource, literally: bool = False) -> Iterator[tuple[int, str]]:
    for position, text in _written_texts(source, literally):
        # text outside of blocks, whose sentences have places of their own
        is_plain = source.view.startswith(viewed(text[:40]), position)
        at, place = 0, position
        for sentence in _SENTENCE_END.split(text):
            if is_plain:
                start = max(text.find(sentence, at), at)
                place += len(viewed(text[at:start]))
                at = start
            look_at_clock(False)
            if sentence.strip():
                yield place, _SPACES.sub(" ", sentence.strip())


# ---- known templates ------------------------------------------------------------------------------------


_ESCAPE = re.compile(r"\\[nt]")
_RUN = 3  # words that are compared at once


@cache
def _known_runs() -> frozenset[tuple[str, ...]]:
    """All runs of two and three words of llama.cpp's templates."""
    found_runs: set[tuple[str, ...]] = set()
    for known in known_templates().values():
        words = _words(_ESCAPE.sub(" ", known.source))
        found_runs.update(itertools.pairwise(words))
        found_runs.update(zip(words, words[1:], words[2:]))
    return frozenset(found_runs)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def is_known(text: str) -> bool:
    """Whether llama.cpp's templates have most runs of words of a text."""
    words = _words(text)
    size = min(_RUN, len(words))
    if size < 2:
        return any(text.strip() in known.source for known in known_templates().values())
    runs = list(zip(*(words[start:] for start in range(size))))
    unknown = sum(run not in _known_runs() for run in runs)
    return unknown <= _UNKNOWN_SHARE * len(runs)


_UNKNOWN_SHARE = 0.34


@cache
def _known_text() -> str:
    """All of llama.cpp's templates with single spaces."""
    return _SPACES.sub(" ", " ".join(_ESCAPE.sub(" ", known.source) for known in known_templates().values()))


_BLOCK_END = re.compile(r"[%}]\}|\{[%{]|\n")


def _pieces(text: str) -> set[str]:
    """What stands between the ends of blocks and lines."""
    return {piece for each in _BLOCK_END.split(text) if len(piece := _SPACES.sub(" ", each).strip(" -")) > 3}


@cache
def _pieces_of_known() -> dict[str, set[str]]:
    return {
        "chatml": _pieces(CHATML),
        **{name: _pieces(known.source) for name, known in known_templates().items()},
    }


def family_of(text: str) -> NearestTemplate:
    """The known template that has most pieces of a template.

    >>> family_of(known_templates()["Qwen-Qwen3-0.6B"].source + "x")
    NearestTemplate(name='Qwen-Qwen3-0.6B', share=1.0)
    """
    own = _pieces(text)
    best = NearestTemplate("", 0.0)
    for name, pieces in _pieces_of_known().items():
        share = len(own & pieces) / max(len(own), 1)
        if share > best.share and len(own & pieces) >= min(_LEAST_PIECES, len(pieces)):
            best = NearestTemplate(name, share)
    return best
