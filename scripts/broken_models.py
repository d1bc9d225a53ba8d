"""Broken copies of healthy vocabularies, made by a seed: one to three defects that people meet, and texts for each.

    python scripts/broken_models.py list --seed 1 --count 20       # which cases there are
    python scripts/broken_models.py write FOLDER --seed 1 --case 17   # the files of one case

A case is a base (a healthy vocabulary), its defects, and whether the texts contain markers such as <|im_start|>.
Seed and number determine a case completely. Over the numbers, each combination of defects that any base can have comes
before one comes again, and the bases take turns. scripts/measure_advice.py asks ggufbpe for advice about the cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from reference import vocabulary

from ggufbpe import Tokenizer
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.token_checks import FILLER
from ggufbpe.chat.known_templates import known_template
from ggufbpe.gguf.constants import TokenizerKey, TokenType
from ggufbpe.gguf.edit import Edit, write_edited
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.schema import as_fields
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

_K = TokenizerKey
ROOT = Path(__file__).resolve().parent.parent
Keys = dict[str, Any]  # metadata keys with their new values; None removes a key

MOST_DEFECTS = 3


# ---- healthy vocabularies -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Base:
    """A healthy vocabulary, which the broken copies are made of.

    `keys` are added to the file, so that it is as published models have it. `lacks` are the defects that change nothing
    of such a vocabulary, that cannot be told, or that make a file which cannot be opened.
    """

    name: str
    kind: str  # the name of the tokenizer model in llama.cpp's source
    find: Callable[[], Path]
    keys: Keys = field(default_factory=dict)
    template: str = ""  # the name of one of llama.cpp's chat templates
    lacks: tuple[str, ...] = ()

    @cached_property
    def values(self) -> Keys:
        """The tokenizer's metadata."""
        with GGUFFile(self.find()) as file:
            values = {key: file[key] for key in file.keys() if key.startswith("tokenizer.")}  # noqa: SIM118
        return {key: value for key, value in {**values, **self.added}.items() if value is not None}

    @cached_property
    def added(self) -> Keys:
        """The keys that the healthy copy has and the original lacks."""
        template = {_K.CHAT_TEMPLATE: known_template(self.template).source} if self.template else {}
        return {**self.keys, **template}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The healthy tokenizer."""
        return self.opened({})

    def opened(self, keys: Mapping[str, Any]) -> Tokenizer:
        """The tokenizer of the healthy copy, changed by `keys` in memory."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Tokenizer.from_gguf(self.find(), overrides={**self.added, **keys})

    @cached_property
    def facts(self) -> Facts:
        """What `doctor` looks at in the healthy copy; the file stays open."""
        return Facts(GGUFFile(self.find()), self.added)

    @cached_property
    def healthy(self) -> bytes:
        """The file of the healthy copy."""
        with tempfile.TemporaryDirectory() as folder:
            return self.copy(Path(folder) / "good.gguf", {}).read_bytes()

    @cached_property
    def markers(self) -> list[int]:
        """The ids of the tokens that stand for something other than their text, except padding and white space."""
        kinds = (int(TokenType.CONTROL), int(TokenType.USER_DEFINED))
        tokens, types = self.values[_K.LIST], self.values[_K.TOKEN_TYPE]
        return [
            index
            for index, (token, kind) in enumerate(zip(tokens, types))
            if kind in kinds and not FILLER.fullmatch(token) and token[:1] in "<[" and len(token) > 2
        ]

    @cached_property
    def shown(self) -> list[int]:
        """Up to six markers that the texts of this base contain."""
        return Random(self.name).sample(self.markers, min(len(self.markers), 6))

    def copy(self, path: Path, keys: Mapping[str, Any]) -> Path:
        """Write the healthy copy, changed by `keys`, to `path`."""
        changed = {**self.added, **keys}
        fields = as_fields({key: value for key, value in changed.items() if value is not None})
        edits = [Edit(key, *fields.get(key, ())) for key in changed]
        write_edited(str(self.find()), str(path), edits)
        return path


def _real(name: str) -> Callable[[], Path]:
    return lambda: vocabulary(name)


_NO_UNKNOWN = ("unk_id", "sep_id")  # neither comes out of a text
_BPE_LACKS = ("space_prefix", "scores", *_NO_UNKNOWN)
_OTHERS_LACK = ("pre_wrong", "pre_missing", "merges_cut", "types_missing")
_TYPES = ("types_all", "types_some", "types_missing")  # llama.cpp makes <|endoftext|> a control token anyway

BASES = (
    Base(
        "gpt-2",
        "BPE",
        lambda: ROOT / "ggufbpe" / "models" / "gpt2.gguf",
        lacks=(*_BPE_LACKS, *_TYPES, "tokens_lost"),
    ),
    Base(
        "llama-bpe",
        "BPE",
        _real("llama-bpe"),
        template="meta-llama-Llama-3.1-8B-Instruct",
        lacks=_BPE_LACKS,
    ),
    Base("qwen2", "BPE", _real("qwen2"), lacks=_BPE_LACKS),
    Base("deepseek-coder", "BPE", _real("deepseek-coder"), lacks=_BPE_LACKS),
    Base("deepseek-llm", "BPE", _real("deepseek-llm"), lacks=(*_BPE_LACKS, "tokens_lost")),
    Base("starcoder", "BPE", _real("starcoder"), lacks=(*_BPE_LACKS, "tokens_lost")),
    Base("falcon", "BPE", _real("falcon"), lacks=(*_BPE_LACKS, *_TYPES, "tokens_lost")),
    Base("command-r", "BPE", _real("command-r"), lacks=_BPE_LACKS),
    Base("llama-spm", "SPM", _real("llama-spm"), lacks=(*_OTHERS_LACK, *_NO_UNKNOWN, "tokens_lost")),
    Base("phi-3", "SPM", _real("phi-3"), lacks=(*_OTHERS_LACK, *_NO_UNKNOWN)),
    Base("baichuan", "SPM", _real("baichuan"), lacks=(*_OTHERS_LACK, *_NO_UNKNOWN, "tokens_lost")),
    Base(
        "bert-bge",
        "WPM",
        _real("bert-bge"),
        lacks=(*_OTHERS_LACK, "bos_flag", "eos_flag", "space_prefix", "scores", "tokens_lost"),
    ),
    Base(
        "t5", "UGM", _real("t5"), lacks=(*_OTHERS_LACK, "bos_flag", "space_prefix", "tokens_lost", "sep_id")
    ),
    Base(
        "rwkv",
        "RWKV",
        lambda: ROOT / "fixtures" / "vocabs" / "rwkv.gguf",
        {_K.BOS_ID: 0, _K.EOS_ID: 0},
        lacks=(
            *(*_OTHERS_LACK, *_TYPES, "bos_flag", "eos_flag", "space_prefix", "scores", "tokens_lost"),
            *(*_NO_UNKNOWN, "model_wrong"),  # it has too few tokens to tell its model
        ),
    ),
)


# ---- defects ------------------------------------------------------------------------------------------


class Defect(NamedTuple):
    """Something that goes wrong when models are converted or edited.

    Defects of one `part` of the file exclude each other. `broken` gives the changed keys, None where the defect would
    change nothing. `named` is a pattern that is in what advice prints if it names the defect.
    """

    name: str
    part: str
    broken: Callable[[Base, Random, Sequence[str]], Keys | None]
    is_fixable: bool = True  # by `ggufbpe fix`
    named: str = ""


def _pre_wrong(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    own = base.tokenizer.vocabulary.pre_tokenizer
    usual = ["default", "gpt-2", "llama-bpe", "qwen2", "starcoder", "tekken", "gpt-4o", "command-r", "falcon"]
    others = [
        entry
        for entry in PRE_TOKENIZERS.values()
        if entry.byte_encode and entry.family != own.family and not entry.escape_whitespaces
    ]
    near = [entry for entry in others if entry.name in usual]
    return {_K.PRE: dice.choice(near if dice.random() < 0.6 else others).name}


def _pre_missing(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    return {_K.PRE: None} if _K.PRE in base.values else None


def _model_wrong(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    """The name of another tokenizer model, as which the file can be opened and encodes the texts."""
    others = []
    for name in ("gpt2", "llama", "bert", "t5", "rwkv"):
        try:
            base.opened({_K.MODEL: name}).encode_batch(texts)
        except ValueError:  # a `GGUFError`, or a byte without a token
            continue
        others.append(name)
    return {_K.MODEL: dice.choice([name for name in others if name != base.values[_K.MODEL]])}


def _flag(key: str, attribute: str) -> Callable[[Base, Random, Sequence[str]], Keys | None]:
    def broken(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
        return {key: not getattr(base.tokenizer, attribute)}

    return broken


def _special_id(key: str) -> Callable[[Base, Random, Sequence[str]], Keys | None]:
    """The id of an ordinary token, or of another special token."""

    def broken(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
        right = base.values.get(key)
        normal = [index for index, kind in enumerate(base.values[_K.TOKEN_TYPE][:300]) if kind == 1]
        others = [index for index in base.markers if index != right]
        return {key: dice.choice(others if others and dice.random() < 0.5 else normal)}

    return broken


def _types(share: float) -> Callable[[Base, Random, Sequence[str]], Keys | None]:
    """All special tokens, or a share of those in the texts, become normal tokens."""

    def broken(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
        types = list(base.values[_K.TOKEN_TYPE])
        special = (int(TokenType.CONTROL), int(TokenType.USER_DEFINED))
        chosen = [index for index, kind in enumerate(types) if kind in special]
        if share < 1:
            chosen = dice.sample(base.shown, max(round(len(base.shown) * share), 1))
        for index in chosen:
            types[index] = int(TokenType.NORMAL)
        return {_K.TOKEN_TYPE: types}

    return broken


def _word_special(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    """An ordinary word becomes a control token, or a user-defined one, and is cut out of other words."""
    types = list(base.values[_K.TOKEN_TYPE])
    types[_word(base, dice, texts)] = int(dice.choice((TokenType.CONTROL, TokenType.USER_DEFINED)))
    return {_K.TOKEN_TYPE: types}


def _types_exchanged(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    """A marker of the texts and an ordinary word have each other's type."""
    if not base.shown:
        return None
    types = list(base.values[_K.TOKEN_TYPE])
    word, marker = _word(base, dice, texts), dice.choice(base.shown)
    types[word], types[marker] = types[marker], types[word]
    return {_K.TOKEN_TYPE: types}


def _word(base: Base, dice: Random, texts: Sequence[str]) -> int:
    """An ordinary token of at least two letters that the texts contain."""
    tokens, types = base.values[_K.LIST], base.values[_K.TOKEN_TYPE]
    used = {token for text in texts for token in base.tokenizer.encode(text, add_special=False)}
    words = (token for token in used if types[token] == 1 and len(tokens[token]) > 1)
    return dice.choice(
        sorted(token for token in words if tokens[token].isascii() and tokens[token].isalpha())
    )


def _types_missing(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    return {_K.TOKEN_TYPE: None}


def _merges_cut(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    merges = base.values[_K.MERGES]
    return {_K.MERGES: merges[: round(len(merges) * dice.uniform(0.02, 0.5))]}


def _tokens_swapped(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    """Two tokens that the texts contain exchange their ids."""
    tokens, types = list(base.values[_K.LIST]), base.values[_K.TOKEN_TYPE]
    used = {token for text in texts for token in base.tokenizer.encode(text, add_special=False)}
    words = sorted(token for token in used if types[token] == 1 and tokens[token][-1:].isalpha())
    first, second = dice.sample(words, 2)
    tokens[first], tokens[second] = tokens[second], tokens[first]
    return {_K.LIST: tokens}


def _tokens_lost(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    """The tokens behind the last special id are cut off."""
    kept = max(value for key, value in base.values.items() if key.endswith("_token_id")) + 1
    arrays = (_K.LIST, _K.TOKEN_TYPE, _K.SCORES)
    return {key: base.values[key][:kept] for key in arrays if key in base.values}


def _space_prefix(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    return {_K.ADD_PREFIX: not base.tokenizer.vocabulary.add_space_prefix}


def _scores(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    scores = base.values[_K.SCORES]
    return {_K.SCORES: [0.0] * len(scores) if dice.random() < 0.5 else dice.sample(scores, len(scores))}


def _template_other(base: Base, dice: Random, texts: Sequence[str]) -> Keys | None:
    others = [
        "Qwen-Qwen3-0.6B",
        "meta-llama-Llama-3.1-8B-Instruct",
        "google-gemma-2-2b-it",
        "deepseek-ai-DeepSeek-V3.1",
        "microsoft-Phi-3.5-mini-instruct",
    ]
    return {_K.CHAT_TEMPLATE: known_template(dice.choice([o for o in others if o != base.template])).source}


_PRE_NAMED = r"pre-tokenizer|tokenizer\.ggml\.pre|split"
_TYPES_NAMED = r"types?\b|special tokens?|parse_special"

DEFECTS = (
    Defect("pre_wrong", "pre", _pre_wrong, True, _PRE_NAMED),
    Defect("pre_missing", "pre", _pre_missing, True, _PRE_NAMED),
    Defect("bos_flag", "bos flag", _flag(_K.ADD_BOS, "add_bos"), True, r"\bbos|add_bos"),
    Defect("eos_flag", "eos flag", _flag(_K.ADD_EOS, "add_eos"), True, r"\beos|add_eos"),
    Defect("bos_id", "bos id", _special_id(_K.BOS_ID), True, r"\bbos"),
    Defect("eos_id", "eos id", _special_id(_K.EOS_ID), True, r"\b(eos|sep)\b|eos_token_id"),
    Defect("types_all", "types", _types(1), True, _TYPES_NAMED),
    Defect("types_some", "types", _types(0.5), True, _TYPES_NAMED),
    Defect("types_missing", "types", _types_missing, True, _TYPES_NAMED),
    Defect("merges_cut", "merges", _merges_cut, False, r"merge"),
    Defect(
        "tokens_swapped", "tokens", _tokens_swapped, False, r"vocabulary:|swap|exchange|(other|different) ids"
    ),
    Defect(
        "tokens_lost",
        "tokens",
        _tokens_lost,
        False,
        r"vocabulary:|out of range|lost.tokens|tokens? fewer|tokens? only in|number of tokens",
    ),
    Defect("space_prefix", "space prefix", _space_prefix, True, r"space_prefix|space before|leading space"),
    Defect("scores", "scores", _scores, False, r"score"),
    Defect("template_other", "template", _template_other, False, r"template"),
)
# Defects of which there are cases only where they are asked for, so that those of a seed stay what they are.
OTHER_DEFECTS = (
    Defect("word_special", "types", _word_special, True, _TYPES_NAMED),
    Defect("types_exchanged", "types", _types_exchanged, True, _TYPES_NAMED),
    Defect(
        "model_wrong", "model", _model_wrong, True, r"tokenizer\.ggml\.model|tokenizer model|the model is"
    ),
    Defect("unk_id", "unk id", _special_id(_K.UNK_ID), True, r"\bunk|unknown"),
    Defect("sep_id", "sep id", _special_id(_K.SEP_ID), True, r"\bsep|seperator_token_id"),
)
BY_NAME = {defect.name: defect for defect in (*DEFECTS, *OTHER_DEFECTS)}


# ---- texts --------------------------------------------------------------------------------------------

_LINES = """\
The quick brown fox doesn't jump over the lazy dog; it's {n} o'clock, and they've seen {n} of them.
I'll do it(x), I'd say, but we're {n} and you can't. DON'T SHOUT, IT'S LATE!
In {n}, about {n},{n} people lived there (roughly 12.5% more than in 1999).
def area(radius: float) -> float:\n    \"\"\"Area, in m².\"\"\"\n    return 3.14159 * radius ** {n}  # approx.
for (int i = 0; i < {n}; ++i) {{\n\tif (a[i] != b->c[i]) return -1;\n}}
{{"name": "item_{n}", "tags": ["a", "b-c", "d.e"], "price": {n}.{n}, "ok": true, "none": null}}
SELECT id, COUNT(*) FROM users_{n} WHERE created_at >= '2024-0{d}-1{d}' GROUP BY id;
Straße, naïve café, Ångström: übergroße Bären fraßen {n} Äpfel für 3,50 €.
L'été dernier, j'ai vu qu'il n'y avait plus d'eau à l'auberge n° {n}.
Съешь ещё этих мягких французских булок, да выпей чаю в {n} году.
今天天气很好，我们去公园散步{n}分钟吧。你觉得怎么样？
東京タワーは{n}メートルで、カタカナとひらがなが混ざります。
안녕하세요, 오늘은 {n}월 {d}일입니다. 반갑습니다!
مرحبا بالعالم، هذا نص قصير رقم {n}.
हिन्दी में {n} शब्द लिखे गए हैं।
  indented by two,\n    by four,\n\tby a tab;   three   spaces   and trailing   \n\n\n{n} lines later
https://example.org/path/to/file-{n}.html?query=a+b&x={d}#section_{d}
Emails: first.last@example.com, {n} unread... "quoted" — ‘single’ – and (parenthesized)!!
👍🏽 great 🎉🎉 {n}% 👨‍👩‍👧 family 🇩🇪 flag ☕️
camelCaseWords, snake_case_words, SCREAMING_CASE, HTTPServer2Go, v{d}.{d}.{n}-rc{d}
import numpy as np, os, sys\nprint(f"{{np.pi:.{d}f}} != {n}")\n
E = mc², ∑ x_i ≥ ½·{n}, α→β, x ∈ ℝ ∖ {{0}}, 10⁻³ µm
Mr. O'Neill's cat said: "What's up?" and left at {d}:{d}0 p.m. ...
git commit -m "fix #{n}" && git push --force-with-lease origin HEAD~{d}
""".splitlines()
_KINDS = [line.replace("\\n", "\n").replace("\\t", "\t") for line in _LINES]


def make_texts(base: Base, seed: str, count: int, with_markers: bool) -> list[str]:
    """Texts as people have them: prose in several scripts, code, numbers, white space, and markers if asked for.

    All of the kinds of lines come in each three texts in turn, so that what a pre-tokenizer changes shows up.
    """
    dice, found = Random(seed), []
    kinds: list[str] = []
    names = [base.values[_K.LIST][index] for index in base.shown]
    for _ in range(count):
        lines = []
        for _ in range(8):
            kinds = kinds or dice.sample(_KINDS, len(_KINDS))
            numbers = {"n": str(dice.choice((7, 42, 365, 1984, 65536, 1234567, dice.randrange(10**6))))}
            lines.append(kinds.pop().format(**numbers, d=dice.randrange(1, 9)))
        if with_markers and names:
            lines = [f"{dice.choice(names)}{line}" if dice.random() < 0.6 else line for line in lines]
            lines += [f"{name}user\nHi{name}" for name in names]
        found.append("\n".join(lines))
    return found


# ---- cases --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A base with its defects, and the texts that are compared and held out."""

    seed: str
    number: int
    base: Base
    defects: tuple[Defect, ...]
    with_markers: bool

    def __str__(self) -> str:
        texts = "with markers" if self.with_markers else "without markers"
        names = " + ".join(defect.name for defect in self.defects)
        return f"case {self.number} of seed {self.seed}: {self.base.name}, {names}; texts {texts}"

    @cached_property
    def compared(self) -> list[str]:
        """The texts that the advice is given."""
        return make_texts(self.base, f"{self.seed}/{self.number}/compared", 6, self.with_markers)

    @cached_property
    def held_out(self) -> list[str]:
        """Other texts of the same kind, on which the fixed model must agree with the good one."""
        return make_texts(self.base, f"{self.seed}/{self.number}/held out", 6, self.with_markers)

    @cached_property
    def with_all_markers(self) -> list[str]:
        """Texts with markers, whether those that are compared have some or not: no advice may harm these."""
        return make_texts(self.base, f"{self.seed}/{self.number}/all", 3, True)

    @cached_property
    def changes(self) -> dict[str, Keys]:
        """The keys that each defect changes; a defect that would change nothing has none."""
        found = {}
        for defect in self.defects:
            dice = Random(f"{self.seed}/{self.number}/{defect.name}")
            found[defect.name] = defect.broken(self.base, dice, self.compared) or {}
        if lost := found.get("tokens_lost"):
            size = len(lost[_K.LIST])
            for name in {
                "bos_id",
                "eos_id",
            } & found.keys():  # a file with an id that it lacks cannot be opened
                found[name] = {key: token for key, token in found[name].items() if token < size}
        return found

    def broken(self, but: Sequence[str] = ()) -> Keys:
        """All the changed keys, without those of the defects called `but`."""
        found = {
            key: value
            for name, keys in self.changes.items()
            if name not in but
            for key, value in keys.items()
        }
        if "tokens_lost" in self.changes and "tokens_lost" not in but:
            size = len(found[_K.LIST])
            for key in (_K.TOKEN_TYPE, _K.SCORES):
                if found.get(key):
                    found[key] = found[key][:size]
        return found


@cache
def _combinations(
    names: tuple[str, ...], size: int, seed: str, asked: tuple[str, ...]
) -> list[tuple[tuple[Defect, ...], list[Base]]]:
    """The combinations of so many defects that at least one base can have, with these bases, both shuffled.

    If defects are `asked` for, each combination has one of them.
    """
    dice, found = Random(f"{seed}/{size}"), []
    known = (*DEFECTS, *(each for each in OTHER_DEFECTS if each.name in asked))
    for chosen in combinations(known, size):
        if asked and not any(defect.name in asked for defect in chosen):
            continue
        fitting = [
            base
            for base in BASES
            if base.name in names and not any(defect.name in base.lacks for defect in chosen)
        ]
        if len({defect.part for defect in chosen}) == size and fitting:
            found.append((chosen, dice.sample(fitting, len(fitting))))
    dice.shuffle(found)
    return found


def case(
    seed: str,
    number: int,
    bases: tuple[str, ...] = tuple(base.name for base in BASES),
    asked: tuple[str, ...] = (),
) -> Case:
    """The case of a number: one, two and three defects in turn, with and without markers in the texts.

    `asked` are names of defects, one of which it has.
    """
    size, turn = 1 + number % MOST_DEFECTS, number // MOST_DEFECTS
    possible = _combinations(bases, size, seed, asked)
    defects, fitting = possible[turn % len(possible)]
    round_number = turn // len(possible)
    base = fitting[round_number % len(fitting)]
    return Case(seed, number, base, defects, (turn + round_number) % 3 != 0)


def cases(seed: str, count: int, bases: tuple[str, ...] = ()) -> Iterator[Case]:
    """The first `count` cases of a seed."""
    for number in range(count):
        yield case(seed, number, *([bases] if bases else []))


def write(made: Case, folder: Path) -> None:
    """Write the files of a case as people have them: good.gguf, bad.gguf, text.txt, good.json, and texts/."""
    (folder / "good.gguf").write_bytes(made.base.healthy)
    made.base.copy(folder / "bad.gguf", made.broken())
    text = "\n".join(made.compared)
    (folder / "text.txt").write_text(text, encoding="utf-8")
    (folder / "good.json").write_text(json.dumps(made.base.tokenizer.encode(text)))
    (folder / "texts").mkdir()
    for number, each in enumerate(made.compared):
        (folder / "texts" / f"{number}.txt").write_text(each, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="print cases")
    listing.add_argument("--count", type=int, default=20)
    writing = commands.add_parser("write", help="write the files of a case")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--case", type=int, required=True)
    for command in (listing, writing):
        command.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    if arguments.command == "list":
        for made in cases(arguments.seed, arguments.count):
            print(made)
    else:
        arguments.folder.mkdir(parents=True)
        made = case(arguments.seed, arguments.case)
        write(made, arguments.folder)
        print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
