"""Names and describes causes, with their evidence and fixes. This module tries nothing and compares no ids.

Changes of the text are described in text_changes.py, those of flags, scores and bytes in model_changes.py, and those of
a chat in chat_changes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..._util.errors import printable
from ..._util.llama_cpp_states import StateDifference, since
from ..._util.wording import counted, listed
from ...gguf.change import Change
from ...gguf.constants import TokenizerKey, TokenType
from ...models.bpe.bpe_model import WITHOUT_MERGES
from ...models.known_families import family_of_tokens
from ...models.pieces import quoted_token
from ...models.pretokenizers.families import Evidence
from ...models.pretokenizers.hf_splitting import SAME_ORIGINAL
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.special_ids import MADE_CONTROL
from ...models.token_attribute import TokenAttribute
from ...models.vocabulary import Vocabulary
from .cause import Cause

_K = TokenizerKey
_ASK_ANOTHER = "`ggufbpe diagnose` with a second -m tries that model"

UTF8_FIX = (
    "convert the text to UTF-8 first, for example with iconv; llama.cpp reads each undecodable byte as U+FFFD"
)


# ---- around the text ------------------------------------------------------------------------------------


def truncated(kept: int, of: int, side: str) -> Cause:
    """The given ids are the first (`side` "end" is cut off) or last of the model's."""
    where, lost = "first" if side == "end" else "last", counted(of - kept, "id")
    return Cause(
        "truncated",
        {"what": f"the given ids are the {where} {kept} of {of}", "kept": kept, "of": of, "cut": side},
        f"raise the limit of the other tool that cut off {lost} (such as max_length or the context size)",
    )


# ---- the model ------------------------------------------------------------------------------------------


def pre_type(vocabulary: Vocabulary, names: list[str], alike: list[str], evidence: Evidence) -> Cause:
    """Another pre-tokenizer, known by `names`, all of one family; families `alike` give the same ids."""
    family, known = PRE_TOKENIZERS[names[0]].family, family_of_tokens(vocabulary.tokens)
    likely = (*(known.pres if known else ()), evidence.name, family)
    name = next((name for name in likely if name in names), names[0])
    names = sorted(names, key=lambda other: other != name)
    told = []
    if len(names) > 1:
        told.append(f"{_some(names[1:])} {'split' if len(names) > 2 else 'splits'} the same way")
    if alike:
        told.append(f"{_some(alike)} {'split' if len(alike) > 1 else 'splits'} this text the same way")
    if said := evidence.of_name(name):
        told.append(said)
    fix, change = "", Change({_K.PRE: name})
    if vocabulary.tokenizer_model.ignores_pre:
        only = f"{_K.MODEL} is {vocabulary.model}, which always uses its own pre-tokenizer, whatever {_K.PRE} says"
        fix, change = f"convert the model again: {only}", Change()
    elif vocabulary.pre == WITHOUT_MERGES and not vocabulary.merges:
        fix = (
            f"convert the model again: it has no merges, which llama.cpp only accepts under {WITHOUT_MERGES}"
        )
        change = Change()
    elif {family, vocabulary.pre_tokenizer.family} in SAME_ORIGINAL:
        fix = f"nothing in the file, unless its converter writes {name}: both names are for one original pattern"
        change = Change()
    what = f"the text was split like {name}, but the file says {_said_pre(vocabulary)}"
    if known and any(PRE_TOKENIZERS[other].family == family for other in known.pres):
        what = f"this is {known.vocabulary}, but the file says {_said_pre(vocabulary)}"
        told.insert(0, f"the text was split like {name}")
    detail: dict[str, object] = {
        "what": what,
        "evidence": told,
        "pre": name,
        "names": names,
        "family": family,
    }
    return Cause("pre_type", {**detail, "alike": alike, "ours": vocabulary.pre}, fix, change)


def _said_pre(vocabulary: Vocabulary) -> str:
    """Return what the file says about its pre-tokenizer, in words."""
    return vocabulary.pre if vocabulary.named_pre else "nothing about its pre-tokenizer"


def _some(names: Sequence[str]) -> str:
    return listed(names, len(names), " and {} more", shown=str)


def with_known_pre(cause: Cause, ours: Vocabulary, theirs: Vocabulary) -> Cause:
    """A `pre_type` cause for ids of a model whose file says by which pre-tokenizer: none has to be guessed."""
    entry = theirs.pre_tokenizer
    if entry.family not in (cause.detail["family"], *cause.detail["alike"]):  # type: ignore[misc]
        return cause
    what = f"the text was split like {entry.name}, but the file says {_said_pre(ours)}"
    detail = {
        **cause.detail,
        "what": what,
        "evidence": [],
        "pre": entry.name,
        "names": [entry.name],
        "alike": [],
    }
    if not cause.change and {entry.family, ours.pre_tokenizer.family} not in SAME_ORIGINAL:
        return cause._replace(detail=detail)
    change = Change({_K.PRE: entry.name})
    if ours.named_add_bos is None and entry.add_bos != theirs.add_bos:
        change |= add_bos(theirs.add_bos)
    return cause._replace(detail=detail, fix="", change=change)


ALWAYS_ADDS_BOS = "the file cannot express it: under {} llama.cpp always adds BOS, and the ids have none"


def add_bos(added: bool) -> Change:
    """The change that says whether BOS is added, whatever the name of the pre-tokenizer implies."""
    return Change({_K.ADD_BOS: str(added).lower()})


def parse_special(parsed: bool) -> Cause:
    """`parsed`: whether the given ids have special tokens where the text has their text."""
    what = "in the given ids, the text of special tokens is {}"
    return Cause(
        "parse_special",
        {"what": what.format("parsed" if parsed else "encoded as plain text"), "theirs": parsed},
        "leave out parse_special=False (llama.cpp: parse_special=true)"
        if parsed
        else "encode with parse_special=False (llama.cpp: parse_special=false), or let the other tool parse them",
    )


def ignore_merges(vocabulary: Vocabulary) -> Cause:
    """Words that are tokens are taken whole although merging does not produce them; or the opposite."""
    entry = vocabulary.pre_tokenizer
    theirs = not entry.ignore_merges
    twins = [
        other
        for other in PRE_TOKENIZERS.values()
        if other.family == entry.family and other.ignore_merges == theirs
    ]
    twin = min(
        twins,
        key=lambda other: (since("pre", other.name), sum(a != b for a, b in zip(other, entry))),
        default=None,
    )
    fix, change = "", Change()
    if twin is None:
        fix = (
            f"llama.cpp has no pre-tokenizer that splits like {entry.name} with ignore_merges {str(theirs).lower()}: "
            f"set ignore_merges to {str(entry.ignore_merges).lower()} in the other tool's tokenizer.json"
        )
    else:
        change = Change({_K.PRE: twin.name})
        if vocabulary.named_add_bos is None and twin.add_bos != vocabulary.add_bos:
            change |= add_bos(vocabulary.add_bos)
    whole = "in the given ids, words that are tokens are taken whole, whatever the merges say"
    merged = "in the given ids, words that are tokens are merged like others, not taken whole"
    return Cause("ignore_merges", {"what": whole if theirs else merged, "theirs": theirs}, fix, change)


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
    change, fix = Change(types=dict(kinds)), ""
    named = [vocabulary.tokens[token] for token, kind in kinds if kind == TokenType.NORMAL.name]
    if made := [text for text in named if text in MADE_CONTROL]:
        some = ", ".join(map(printable, made[:3]))
        fix = f"let the other tool parse {some}: llama.cpp makes that text a control token, whatever its type"
        change = Change()
    shown = listed((quoted_token(vocabulary, token) for token, _ in kinds), len(kinds), " and {} more", str)
    is_parsed = not named
    what = (
        f"the file says that {shown} {'are' if len(kinds) > 1 else 'is'} plain text, but in the given ids "
        f"{'each of them' if len(kinds) > 1 else 'it'} is one special token"
        if is_parsed
        else f"in the given ids, {shown} {'are' if len(kinds) > 1 else 'is'} encoded as plain text, but the file says "
        f"that {'they are special tokens' if len(kinds) > 1 else 'it is a special token'}"
    )
    if named and len(named) < len(kinds):
        shown = ", ".join(f"{quoted_token(vocabulary, token)} as {kind}" for token, kind in kinds[:5])
        what = f"some tokens are of other types in the given ids: {shown}{' and more' * (len(kinds) > 5)}"
    return Cause("special_token_types", {"what": what, "tokens": tokens}, fix, change)


def merges_of(model: str) -> Cause:
    """The merges of another model, which is given by its name."""
    return Cause(
        "merges",
        {"what": f"the words are merged with the merges of {model}", "model": model},
        f"convert the model again with the merges of {model}",
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
    """The unknown merges of another model: `count` of the equally split words are merged differently."""
    first = words[0]["word"] if words else ""
    counts = counted(count, "of them is", "of them are")
    what = f"the words are the same, but {counts} merged differently, first {first!r}"
    if not consistent:
        what += "; not always in the same way (BPE dropout?)"
    has_lines = any(" " in str(each["word"]).strip() for each in words)  # which are the words of Gemma 4
    return Cause(
        "merges",
        {"what": what, "words": words, "count": count, "consistent": consistent},
        f"compare {_K.MERGES} with the merges of the original tokenizer, and convert the model again "
        "(`ggufbpe diagnose` with a second -m tries the merges of that model)"
        + "; if they are the same, the other tool splits lines into words before it merges, and this model does not"
        * has_lines,
    )


def other_build(ours: str, theirs: str, differences: Sequence[StateDifference]) -> Cause:
    """The ids are those of another build of llama.cpp; `differences` are those that may act on the text."""
    since = "; ".join(f"since {each.since}, {each.description}" for each in differences)
    what = f"these are the ids of llama.cpp {theirs}, and the model was asked for those of {ours}: {since}"
    return Cause(
        "build",
        {"what": what, "build": theirs, "ours": ours, "since": [each.since for each in differences]},
        f"use one build of llama.cpp for both; tokenize, verify and explain give these ids with llama_cpp={theirs}",
    )


def other_scores(scores: Sequence[float]) -> Cause:
    """The unknown scores of another model, which choose different tokens for this text."""
    is_flat = are_flat(scores)
    what = "the given ids are other tokens for the same text, which the scores of the file do not choose"
    if is_flat:
        what = "the scores of all tokens are the same in the file, so it does not choose the tokens of the given ids"
    return Cause(
        "scores",
        {"what": what, "problem": "flat" if is_flat else "other", "theirs": "unknown"},
        "convert the model again, with the scores of its own tokenizer (tokenizer.model)",
    )


def are_flat(scores: Sequence[float]) -> bool:
    """Whether all scores are the same."""
    return not scores or min(scores) == max(scores)


# ---- another vocabulary ---------------------------------------------------------------------------------


def lost_tokens(found: Mapping[int, str], size: int) -> Cause:
    """Tokens that the ids have and the file lacks; `found` has their texts as far as the texts tell."""
    shown = [f"{token} ({printable(text)})" for token, text in sorted(found.items())]
    what = f"the file has lost tokens: {listed(shown, len(shown), ' and {} more', str)} in the given ids"
    return Cause(
        "vocabulary",
        {
            "what": what,
            "problem": "lost",
            "tokens": {str(token): text for token, text in found.items()},
            "size": size,
        },
        "convert the model again, with all tokens that were added to its vocabulary",
    )


def replaced_by_fillers(vocabulary: Vocabulary, found: Mapping[int, tuple[str, int]]) -> Cause:
    """Tokens of the other side in whose places the file has fillers; `found` has their texts and attributes."""
    own = {token: vocabulary.tokens[token] for token in sorted(found)}
    shown = [f"{printable(found[token][0])} (id {token})" for token in own]
    fillers = listed(list(own.values()), len(own), " …")
    places = listed(shown, len(shown), " and {} more", str)
    what = f"the file has {'a filler' if len(own) == 1 else 'fillers'} in place of {places}: {fillers}"
    change = Change(
        types={token: _type_name(found[token][1]) for token in own},
        texts={old: found[token][0] for token, old in own.items()},
    )
    texts = {str(token): text for token, (text, _) in found.items()}
    detail = {"what": what, "problem": "lost", "tokens": texts, "size": len(vocabulary.tokens)}
    return Cause("vocabulary", detail, "", change)


def other_vocabulary(path: str) -> Cause:
    """The ids are those of another model, which is known."""
    return Cause(
        "vocabulary",
        {"what": f"the ids are those of {path}", "problem": "other model", "model": path},
        "use the tokenizer of the model that is to read the ids",
    )


def shifted(start: int, by: int) -> Cause:
    """The ids from `start` on are `by` higher than the model's."""
    which = f"the ids from {start} on" if start else "all ids"
    return Cause(
        "vocabulary",
        {"what": f"{which} are shifted by {by:+}", "problem": "shifted", "by": by, "from": start},
        f"use one vocabulary for both: the other one has {abs(by)} {'more' if by > 0 else 'fewer'} tokens before these "
        "(padding or special tokens put first?)",
    )


def exchanged(vocabulary: Vocabulary, pairs: Sequence[tuple[int, int]]) -> Cause:
    """Tokens that have each other's ids."""
    shown = [f"{a} ({quoted_token(vocabulary, a)}) and {b} ({quoted_token(vocabulary, b)})" for a, b in pairs]
    what = f"in the given ids, the tokens {listed(shown, len(shown), shown=str)} have exchanged their ids"
    return Cause(
        "vocabulary",
        {"what": what, "problem": "exchanged", "pairs": [list(pair) for pair in pairs]},
        "one of the two lists of tokens is damaged: convert the model again",
    )


def out_of_range(ids: list[int], size: int) -> Cause:
    """Ids that this vocabulary does not have."""
    some = f"{len(ids)} of the ids are out of range, the first is {ids[0]}"
    what = f"the id {ids[0]} is out of range" if len(ids) == 1 else some
    what += f"; the vocabulary has ids 0 to {size - 1}"
    return Cause(
        "vocabulary",
        {"what": what, "problem": "out of range", "count": len(ids), "first": ids[:5], "size": size},
        f"the ids are from another model, or tokens were added that this file lacks: {_ASK_ANOTHER}",
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
        f"the ids are probably from another model: {_ASK_ANOTHER}",
    )


# ---- the text -------------------------------------------------------------------------------------------


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


def no_ids(ours: Sequence[int]) -> Cause:
    """No ids were given for a text of which the model makes some."""
    what = f"no ids were given, and the model gives {len(ours)}"
    detail = {"what": what, "index": 0, "ours": ours[:5], "theirs": []}
    return Cause("unknown", detail, "pass the ids that the other tool printed")


def invalid_utf8_kept() -> Cause:
    """Bytes that are not UTF-8 are encoded unchanged; how they are merged depends on the tool."""
    what = "bytes that are not UTF-8 are encoded unchanged in the given ids; llama.cpp makes each U+FFFD"
    return Cause("invalid_utf8", {"what": what, "change": "kept"}, UTF8_FIX)


def _type_name(attribute: int) -> str:
    """The type in `tokenizer.ggml.token_type` that gives an attribute."""
    kinds = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN, TokenType.NORMAL, TokenType.BYTE)
    return next((kind.name for kind in kinds if attribute & TokenAttribute[kind.name]), TokenType.UNUSED.name)
