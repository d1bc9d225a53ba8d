"""The causes that diagnose.py can name: what each is called, what shows it, and how to fix it.

    diagnose.py, which finds them -> [this file] -> explanations, for people and programs

A cause is an id, details for programs (with a sentence for people, `what`), and a fix. Changes of the text are in
text_changes.py, and those of a chat in chat_changes.py.

But: nothing is tried here, and no ids are compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..by_name import fix_command
from ..errors import printable
from ..gguf.arguments import id_ranges
from ..gguf.constants import TokenizerKey, TokenType
from ..gguf.edit import CONVERT_VERSION_1, is_of_version_1
from ..models.bpe.families import Evidence, with_alike
from ..models.bpe.model import WITHOUT_MERGES
from ..models.bpe.registry import PRE_TOKENIZERS
from ..pipeline.detokenize import quoted_token
from ..states import Difference
from ..vocab import MADE_CONTROL, TokenAttribute, Vocabulary
from ..wording import percent

# The ids, in the order in which explanations of equally many causes are listed: changes of a chat, then of what is
# around the text, then of the text, then of the model; the least specific come last.
CAUSES = (
    *("generation_prompt", "thinking", "tools", "date", "system", "reasoning", "trimmed", "messages"),
    *("build", "model", "bos", "eos", "sep", "parse_special", "trailing_newline", "newlines", "bom"),
    *("plain_jinja", "template"),
    *("space_prefix", "leading_space", "extra_whitespace", "lower_case", "accents", "charsmap"),
    *("escapes", "invalid_utf8", "normalization", "truncated", "ignore_merges", "special_token_types"),
    *("escape_whitespaces", "byte_fallback", "scores", "pre_type", "merges", "vocabulary"),
    *("text_differs", "prompt_differs", "refused", "unknown"),
)

_K = TokenizerKey

UTF8_FIX = (
    "convert the text to UTF-8 first, for example with iconv; llama.cpp reads each undecodable byte as U+FFFD"
)


class Cause(NamedTuple):
    """Something that makes ids differ: `id` is one of `CAUSES`, `detail` the evidence, `fix` what to do."""

    id: str
    detail: dict[str, object]
    fix: str

    def __repr__(self) -> str:
        return f"<Cause {self.id}: {self.detail.get('what', '')}>"


class Explanation(NamedTuple):
    """Causes that together give the ids, or a part of them: `explains` is the share that agrees, up to 1."""

    causes: tuple[Cause, ...]
    explains: float

    @property
    def fix(self) -> str:
        """The one command that makes all changes to the model file that the causes call for; "" for none."""
        return together(self.causes)

    def __repr__(self) -> str:
        return f"<Explanation {' + '.join(cause.id for cause in self.causes)}, explains {percent(self.explains)}>"


class Diagnosis(NamedTuple):
    """Whether the ids are the model's own; if not, why, the best explanation first.

    `added_as` is the meaning of "add special tokens" that was assumed, if there are two (agreement.py).
    """

    match: bool
    explanations: tuple[Explanation, ...]
    added_as: str = ""

    def to_dict(self) -> dict[str, object]:
        """All of it as `ggufbpe diagnose --json` writes it."""
        explanations = [
            {"causes": [cause._asdict() for cause in item.causes], "explains": item.explains, "fix": item.fix}
            for item in self.explanations
        ]
        return {"match": self.match, "added_as": self.added_as or None, "explanations": explanations}

    def __repr__(self) -> str:
        best = f", {self.explanations[0]!r}" if self.explanations else ""
        return f"<Diagnosis: {'match' if self.match else 'no match'}{best}>"


_COMMAND = re.compile(
    r"(ggufbpe fix .+?)((?: --(?:set\S*|remove|chat-template) \S+)+) -o fixed\.gguf"
)  # as `_fix` writes it


_SIDES = (
    re.compile(  # what causes call the two sides; commands and quoted texts are found to stay as they are
        r"ggufbpe fix .+? -o fixed\.gguf|(?<!\w)'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
        r"|\bthe pre-tokenizer is\b|\bthe (?:given )?ids\b|\bthe other tool\b|\bthe model\b(?! that| file)"
    )
)


def of_two_models(cause: Cause, ours: str, theirs: str) -> Cause:
    """`cause` in words for ids that are known to be those of the model `theirs`, with the names of both."""
    named = {
        "the pre-tokenizer is": f"{theirs} splits like",
        **dict.fromkeys(["the given ids", "the ids"], f"the ids of {theirs}"),
        "the other tool": theirs,
        "the model": ours,
    }

    def in_words(text: str) -> str:
        return _SIDES.sub(lambda match: named.get(match[0], match[0]), text)

    what = in_words(str(cause.detail.get("what", "")))
    if what and theirs not in what:
        what = f"in {theirs}, {what}"
    return cause._replace(detail={**cause.detail, "what": what}, fix=in_words(cause.fix))


def together(causes: Iterable[Cause]) -> str:
    """The one command that makes all changes to the model file that `causes` call for; "" if there are none."""
    found = [match for cause in causes if (match := _COMMAND.search(cause.fix))]
    flags = dict.fromkeys(match[2] for match in found)
    return f"{found[0][1]}{''.join(flags)} -o fixed.gguf" if found else ""


# ---- around the text ------------------------------------------------------------------------------------


def truncated(kept: int, of: int, side: str) -> Cause:
    """The given ids are the first (`side` "end" is cut off) or last of the model's."""
    where = "first" if side == "end" else "last"
    return Cause(
        "truncated",
        {"what": f"the given ids are the {where} {kept} of {of}", "kept": kept, "of": of, "cut": side},
        f"raise the limit of the other tool that cut off {of - kept} ids (such as max_length or the context size)",
    )


# ---- the model ------------------------------------------------------------------------------------------


def pre_type(vocabulary: Vocabulary, names: list[str], alike: list[str], evidence: Evidence) -> Cause:
    """Another pre-tokenizer, known by `names`, all of one family; families `alike` give the same ids."""
    family = PRE_TOKENIZERS[names[0]].family
    name = next((name for name in (evidence.name, family) if name in names), names[0])
    names = sorted(names, key=lambda other: other != name)
    what = f"the pre-tokenizer is {with_alike(name, names)}, not {vocabulary.pre}"
    if alike:
        what += f"; {', '.join(alike)} {'split' if len(alike) > 1 else 'splits'} this text the same way"
    if said := evidence.of_name(name):
        what += f"; {said}"
    fix = set_keys(vocabulary, {_K.PRE: name})
    if vocabulary.tokenizer_model.ignores_pre:
        only = f"{_K.MODEL} is {vocabulary.model}, which always uses its own pre-tokenizer, whatever {_K.PRE} says"
        fix = f"convert the model again: {only}"
    elif vocabulary.pre == WITHOUT_MERGES and not vocabulary.merges:
        fix = (
            f"convert the model again: it has no merges, which llama.cpp only accepts under {WITHOUT_MERGES}"
        )
    detail: dict[str, object] = {"what": what, "pre": name, "names": names, "family": family}
    return Cause("pre_type", {**detail, "alike": alike, "ours": vocabulary.pre}, fix)


def with_known_pre(cause: Cause, ours: Vocabulary, theirs: Vocabulary) -> Cause:
    """A `pre_type` cause for ids of a model whose file says by which pre-tokenizer: none has to be guessed."""
    entry = theirs.pre_tokenizer
    if entry.family not in (cause.detail["family"], *cause.detail["alike"]):  # type: ignore[misc]
        return cause
    what = f"the pre-tokenizer is {entry.name}, not {cause.detail['ours']}"
    detail = {**cause.detail, "what": what, "pre": entry.name, "names": [entry.name], "alike": []}
    fix = cause.fix
    if fix.startswith("ggufbpe fix "):
        fix = set_keys(ours, {_K.PRE: entry.name})
        if ours.named_add_bos is None and entry.add_bos != theirs.add_bos:
            fix = also_set_add_bos(fix, theirs.add_bos)
    return cause._replace(detail=detail, fix=fix)


ALWAYS_ADDS_BOS = "the file cannot express it: under {} llama.cpp always adds BOS, and the ids have none"


def also_set_add_bos(fix: str, added: bool) -> str:
    """`fix` for a pre-tokenizer whose name implies the opposite of `added`, whether BOS is added."""
    return fix.replace(" -o ", f" --set {_K.ADD_BOS}={str(added).lower()} -o ")


def parse_special(parsed: bool) -> Cause:
    """`parsed`: whether the given ids have special tokens where the text has their text."""
    what = "in the given ids, the text of special tokens is {}"
    return Cause(
        "parse_special",
        {"what": what.format("parsed" if parsed else "encoded as plain text"), "theirs": parsed},
        "leave out --no-parse-special (llama.cpp: parse_special=true)"
        if parsed
        else "encode with --no-parse-special (llama.cpp: parse_special=false), or let the other tool parse them",
    )


def ignore_merges(vocabulary: Vocabulary) -> Cause:
    """Words that are tokens are taken whole although merging does not produce them; or the opposite."""
    entry = vocabulary.pre_tokenizer
    theirs = not entry.ignore_merges
    what = "words that are tokens are taken whole, whatever the merges say"
    twins = [
        other
        for other in PRE_TOKENIZERS.values()
        if other.family == entry.family and other.ignore_merges == theirs
    ]
    twin = min(twins, key=lambda other: sum(a != b for a, b in zip(other, entry)), default=None)
    if twin is None:
        fix = (
            f"llama.cpp has no pre-tokenizer that splits like {entry.name} with ignore_merges {str(theirs).lower()}: "
            f"set ignore_merges to {str(entry.ignore_merges).lower()} in the other tool's tokenizer.json"
        )
    else:
        fix = set_keys(vocabulary, {_K.PRE: twin.name})
        if vocabulary.named_add_bos is None and twin.add_bos != vocabulary.add_bos:
            fix = also_set_add_bos(fix, vocabulary.add_bos)
    return Cause("ignore_merges", {"what": what if theirs else f"no {what}", "theirs": theirs}, fix)


def special_token_types(vocabulary: Vocabulary, types: dict[int, int]) -> Cause:
    """Tokens that have another type in the given ids; `types` has the attribute of each."""
    kinds = [(token, _type_name(attribute)) for token, attribute in types.items()]
    tokens = [
        {
            "id": token,
            "token": vocabulary.tokens[token],
            "ours": _type_name(vocabulary.attributes[token]),
            "theirs": kind,
        }
        for token, kind in kinds
    ]
    shown = ", ".join(f"{quoted_token(vocabulary, token)} as {kind}" for token, kind in kinds[:5])
    what = f"the given ids have {shown}" + (f" and {len(kinds) - 5} more" if len(kinds) > 5 else "")
    by_kind = {kind: sorted(token for token, other in kinds if other == kind) for _, kind in kinds}
    changes = ((ids, kind) for kind, found in by_kind.items() for ids in id_ranges(found))
    fix = _fix(vocabulary, *(("--set-token-type", f"{ids}={kind}") for ids, kind in changes))
    named = [vocabulary.tokens[token] for token in by_kind.get("NORMAL", ())]
    if made := [text for text in named if text in MADE_CONTROL]:
        some = ", ".join(map(printable, made[:3]))
        fix = f"let the other tool parse {some}: llama.cpp makes that text a control token, whatever its type"
    return Cause("special_token_types", {"what": what, "tokens": tokens}, fix)


def merges_of(path: str) -> Cause:
    """The merges of another model file."""
    return Cause(
        "merges",
        {"what": f"the words are merged with the merges of {path}", "model": path},
        f"convert the model again with the merges of {path}",
    )


def merges_by_id() -> Cause:
    """Merging by token ids instead of the list of merges, as tiktoken does."""
    return Cause(
        "merges",
        {"what": "the words are merged in the order of token ids, as tiktoken does", "rule": "token ids"},
        "convert the model again with merges derived from the ranks, or let the other tool use the merges",
    )


def merges(
    vocabulary: Vocabulary, words: Sequence[Mapping[str, object]], count: int, consistent: bool
) -> Cause:
    """Other merges, which are unknown: words are split at the same places, but `count` are merged differently."""
    first = words[0]["word"] if words else ""
    what = f"the words are the same, but {count} of them are merged differently, first {first!r}"
    if not consistent:
        what += "; not always in the same way (BPE dropout?)"
    return Cause(
        "merges",
        {"what": what, "words": words, "count": count, "consistent": consistent},
        f"compare {_K.MERGES} with the merges of the original tokenizer, and convert the model again "
        "(with a second -m, the merges of that model are tried)",
    )


def other_build(ours: str, theirs: str, differences: Sequence[Difference]) -> Cause:
    """The ids are those of another build of llama.cpp; `differences` are those that may act on the text."""
    since = "; ".join(f"since {each.since}, {each.description}" for each in differences)
    what = f"the ids differ as llama.cpp {theirs} differs from {ours}, whose ids the model's are: {since}"
    return Cause(
        "build",
        {"what": what, "build": theirs, "ours": ours, "since": [each.since for each in differences]},
        f"use one build of llama.cpp for both; with --llama-cpp {theirs}, tokenize, verify and explain give its ids",
    )


def other_vocabulary(path: str) -> Cause:
    """The ids are those of another model, which is known."""
    return Cause(
        "vocabulary",
        {"what": f"the ids are those of {path}", "problem": "other model", "model": path},
        "use the tokenizer of the model that is to read the ids",
    )


def shifted(by: int, start: int | None) -> Cause:
    """All ids, or those from `start` on, are `by` higher than the model's."""
    which = "all ids" if start is None else f"the ids from {start} on"
    return Cause(
        "vocabulary",
        {"what": f"{which} are shifted by {by:+}", "problem": "shifted", "by": by, "from": start or 0},
        f"use one vocabulary for both: the other one has {abs(by)} {'more' if by > 0 else 'fewer'} tokens before these "
        "(padding or special tokens put first?)",
    )


def out_of_range(ids: list[int], size: int) -> Cause:
    """Ids that this vocabulary does not have."""
    problem = "out of range"
    what = f"{len(ids)} of the ids are out of range, the first is {ids[0]}; the vocabulary has ids 0 to {size - 1}"
    return Cause(
        "vocabulary",
        {"what": what, "problem": problem, "count": len(ids), "first": ids[:5], "size": size},
        "the ids are from another model, or tokens were added that this file lacks: give that model with a second -m",
    )


def foreign(excerpt: str) -> Cause:
    """The ids decode to something unrelated to the text."""
    return Cause(
        "vocabulary",
        {
            "what": f"the ids decode to an unrelated text: {excerpt!r}",
            "problem": "other model",
            "decoded": excerpt,
        },
        "the ids are probably from another model: give that model with a second -m to try it",
    )


def text_differs(detail: dict[str, object]) -> Cause:
    """The ids are those of another text."""
    what = (
        f"the ids decode to another text ({detail['how']} at byte {detail['offset']}): "
        f"{detail['theirs']!r} instead of {detail['ours']!r}"
    )
    return Cause(
        "text_differs", {"what": what, **detail}, "compare the two texts, and give both tools the same bytes"
    )


def unknown(detail: dict[str, object]) -> Cause:
    """What none of the causes explains."""
    return Cause(
        "unknown",
        detail,
        "look there with `ggufbpe explain`, and ask llama.cpp with `ggufbpe verify --against llama-tokenize`",
    )


def invalid_utf8_kept() -> Cause:
    """Bytes that are not UTF-8 are encoded unchanged; how they are merged depends on the tool."""
    what = "bytes that are not UTF-8 are encoded unchanged in the given ids; llama.cpp makes each U+FFFD"
    return Cause("invalid_utf8", {"what": what, "change": "kept"}, UTF8_FIX)


def set_keys(
    vocabulary: Vocabulary, keys: Mapping[str, object] = MappingProxyType({}), remove: Iterable[str] = ()
) -> str:
    """The command that sets `keys` and removes those in `remove`."""
    changes = [("--set", f"{key}={value}") for key, value in keys.items()]
    return _fix(vocabulary, *changes, *(("--remove", key) for key in remove))


def set_template(vocabulary: Vocabulary, name: str) -> str:
    """The command that makes one of llama.cpp's chat templates the model's."""
    return _fix(vocabulary, ("--chat-template", f"known:{name}"))


def _fix(vocabulary: Vocabulary, *changes: tuple[str, str]) -> str:
    if os.path.isfile(vocabulary.path) and is_of_version_1(vocabulary.path):
        return CONVERT_VERSION_1
    return fix_command(vocabulary.path, (word for change in changes for word in change))


def _type_name(attribute: int) -> str:
    """The type in `tokenizer.ggml.token_type` that gives an attribute."""
    kinds = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN, TokenType.NORMAL, TokenType.BYTE)
    return next((kind.name for kind in kinds if attribute & TokenAttribute[kind.name]), TokenType.UNUSED.name)
