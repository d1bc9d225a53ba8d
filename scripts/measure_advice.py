"""What becomes of broken models when people follow ggufbpe's advice: the printed command is run and judged.

    python scripts/measure_advice.py --seed 1 --count 200            # a table
    python scripts/measure_advice.py --seed 1 --count 200 -v         # also each case that did not end well
    python scripts/measure_advice.py --seed 1 --case 17 -v           # one case, with what was printed
    python scripts/measure_advice.py --count 2000 --log advice.jsonl  # can be stopped and run again
    python scripts/measure_advice.py --count 2000 --in-turn           # one kind of advice for each case
    python scripts/measure_advice.py --defect word_special            # cases with this defect
    python scripts/measure_advice.py --healthy                       # pairs of healthy models, which need no advice

Cases come from scripts/broken_models.py. Each of the five kinds of advice is asked of a broken model: `diagnose` with
the good model's ids, `verify` against the good model, `diff` in both directions, and `doctor` alone. The command that
is printed is run in a scratch folder, and the model that it writes is compared with the good one on other texts:

    mended       the ids of all other texts are the good model's, but for what no command can mend
    named        no command can mend what the texts show, and the cause has been named
    unseen       the texts do not show the defects, and nothing was harmed
    described    no command was printed that mends all that one could mend, but all causes have been named
    nothing      no command was printed, although one could mend the model, and a cause has not been named
    too little   the command leaves a difference that a command could have mended
    unnamed      no command can mend what the texts show, and the cause has not been named
    harm         something that was right before is wrong after: ids, decoded text, or a new finding of `doctor` that
                 is not left where everything is mended that can be; or the healthy model is to be changed

A text is not harmed whose ids are those of the model in which everything is mended that a command can mend: where most
merges are lost, a wrong pre-tokenizer that takes whole words without merging hides that in some texts.

What a command can mend is known from the defects. `diff` must not offer a command where both models look healthy.
`doctor` has one file alone: it need only name a flag that is right in some models, such as the space before texts, and
cannot see that two tokens have exchanged their texts that no merge of the file makes. Of a model that adds EOS and no
BOS, `diagnose` also takes the ids that the command llama-tokenize prints, which have neither; so if the good model adds
neither, it cannot see that the flag of EOS is wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from functools import cached_property
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from broken_models import BASES, BY_NAME, MOST_DEFECTS, Case, Defect, case, make_texts, write

from ggufbpe import GGUFError, Tokenizer
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.proposal import grave_findings
from ggufbpe.cli import main as ggufbpe
from ggufbpe.gguf.change import PLACEHOLDER, Change
from ggufbpe.gguf.constants import TokenizerKey
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.merge import texts_made_by
from ggufbpe.models.token_table import tokens_that_differ

COMMAND = re.compile(r"ggufbpe fix .+? (?:-o|--output) [^\s,;]+")
_NEEDS_FILE = re.compile(rf"[ =]{PLACEHOLDER} ")
_CASES_A_PROCESS = 100
_ALL = re.compile(r"^\s*all: ", re.MULTILINE)
OUTCOMES = ("mended", "named", "unseen", "described", "nothing", "too little", "unnamed", "harm")
BAD = frozenset(("nothing", "too little", "unnamed", "harm"))
_THE_SAME = re.compile(r"^the same: .*$", re.MULTILINE)  # what `diff` says of sections that do not differ

ADVICE = {
    "diagnose": "diagnose -m bad.gguf -f text.txt --ids good.json",
    "verify": "verify -m bad.gguf --against good.gguf texts",
    "diff bad good": "diff bad.gguf good.gguf -f text.txt",
    "diff good bad": "diff good.gguf bad.gguf -f text.txt",
    "doctor": "doctor bad.gguf",
}


_DOUBTFUL = ("space_prefix", "eos_flag")  # defects that are right in some models, which `doctor` only names


class Outcome(NamedTuple):
    """What came of one kind of advice about one case."""

    advice: str
    case: str
    defects: int
    outcome: str  # one of `OUTCOMES`
    seconds: float  # of processor time, until the advice was printed
    commands: int  # different ones that were printed
    detail: str
    printed: str


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a ggufbpe command in `folder`, in this process; return the exit code and all it printed."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", write_through=True)
    with chdir(folder), redirect_stdout(out), redirect_stderr(out):
        code = ggufbpe(shlex.split(command)[0 if not command.startswith("ggufbpe ") else 1 :])
    out.flush()
    return code, raw.getvalue().decode("utf-8", "replace")


def the_command(printed: str) -> tuple[str, int]:
    """The command that people run after reading `printed`, "" for none, and how many different ones there are.

    The one for all changes if there is one, otherwise the first. None of those that need a file of the user's.
    """
    every = [each for each in dict.fromkeys(COMMAND.findall(printed)) if not _NEEDS_FILE.search(each)]
    together = [COMMAND.search(line) for line in printed.splitlines() if _ALL.match(line)]
    chosen = next((found[0] for found in together if found), every[0] if every else "")
    return chosen, len(every)


class Trial:
    """A case with its files in a folder, and the tokenizers that advice is judged by."""

    def __init__(self, made: Case, folder: Path) -> None:
        self.case, self.folder = made, folder
        write(made, folder)
        self.good, self.bad = made.base.tokenizer, self._opened(folder / "bad.gguf")
        self.compared = self._of_compared(self.good)
        differs = self._of_compared(self.bad) != self.compared
        self.visible = [defect for defect in made.defects if differs and self._shows(defect.name)]
        self._best: dict[tuple[str, ...], Tokenizer] = {}  # by the names of the defects that are gone
        self._followed: dict[Hashable, tuple[Tokenizer | None, str]] = {}  # by what a command does
        self._open = ExitStack()

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _opened(self, path: Path) -> Tokenizer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Tokenizer.from_gguf(path)

    def _of_compared(self, tokenizer: Tokenizer) -> list[list[int]]:
        return [tokenizer.encode(text) for text in self.case.compared]

    def _without(self, names: Iterable[str]) -> Tokenizer:
        """The broken model without the defects `names`; the good one if no other is left."""
        if not (keys := self.case.broken(but=list(names))):
            return self.good
        return self.case.base.opened(keys)

    def _shows(self, name: str) -> bool:
        """Whether the compared texts show a defect: alone, or by what remains without it."""
        others = [defect.name for defect in self.case.defects if defect.name != name]
        if not self.case.changes[name]:
            return False
        alone = self._without(others) if others else self.bad
        if self._of_compared(alone) != self.compared:
            return True
        return bool(others) and self._of_compared(self._without([name])) != self._of_compared(self.bad)

    @cached_property
    def _is_eos_doubtful(self) -> bool:
        """Whether ids with neither BOS nor EOS are the broken model's own as well, as llama-tokenize prints them."""
        ours, right = self.bad.vocabulary, self.good.vocabulary
        return ours.add_eos and not (ours.add_bos or right.add_bos or right.add_eos)

    @cached_property
    def _has_merges_of_swapped(self) -> bool:
        """Whether a merge of the broken file makes one of the tokens that have exchanged their texts."""
        tokens = self.case.changes.get("tokens_swapped", {}).get(TokenizerKey.LIST, ())
        swapped = {own for own, other in zip(self.good.vocabulary.tokens, tokens) if own != other}
        return not swapped.isdisjoint(texts_made_by(self.bad.vocabulary.merges))

    def visible_to(self, advice: str) -> list[Defect]:
        """The defects that the compared texts show to one kind of advice."""
        hidden = ""
        if advice == "diagnose" and self._is_eos_doubtful:
            hidden = "eos_flag"
        if advice == "doctor" and not self._has_merges_of_swapped:
            hidden = "tokens_swapped"
        return [each for each in self.visible if each.name != hidden]

    def best(self, visible: Sequence[Defect]) -> Tokenizer:
        """The best that a command can reach: the visible defects that a command can mend are gone."""
        names = tuple(defect.name for defect in visible if defect.is_fixable)
        if names not in self._best:
            self._best[names] = self._without(names)
        return self._best[names]

    def asked(self, advice: str) -> Outcome:
        """Ask for one kind of advice, follow it, and judge the result."""
        start = time.process_time()
        code, printed = run(ADVICE[advice], self.folder)
        seconds = time.process_time() - start
        found = self.judged(code, printed, advice)
        return found._replace(advice=advice, seconds=seconds)

    def judged(self, code: int, printed: str, advice: str = "") -> Outcome:
        """Follow advice that ended with this exit code, and judge the result."""
        command, number = the_command(printed)
        outcome, detail = self._judged(code, printed, command, advice)
        return Outcome("", str(self.case), len(self.case.defects), outcome, 0.0, number, detail, printed)

    def _judged(self, code: int, printed: str, command: str, advice: str) -> tuple[str, str]:
        visible = self.visible_to(advice)
        if "unexpected " in printed and code == 2:
            return "harm", "the command failed"
        if not command:
            return self._not_harmed(self.bad, printed, command, visible, advice)
        key = _what_it_does(command)
        if key not in self._followed:
            self._followed[key] = self._follow(command)
        fixed, problem = self._followed[key]
        if fixed is None:
            return "too little", f"the command is refused: {problem}"
        if problem:
            return "harm", f"{problem}: {command}"
        return self._not_harmed(fixed, printed, command, visible, advice)

    def _follow(self, command: str) -> tuple[Tokenizer | None, str]:
        """The model that a command writes, None if it is refused, and why, or what harm it does."""
        source = Path(shlex.split(command)[2]).name
        if source == "good.gguf":
            return self.good, "the healthy model is changed"
        before = set(self.folder.iterdir())
        code, said = run(command, self.folder)
        new = [path for path in self.folder.iterdir() if path not in before]
        if code or len(new) != 1:
            return None, said.strip()
        fixed = self._opened(new[0])
        harm = self._harm(fixed, self.bad, new[0])
        new[0].unlink()
        return fixed, harm

    def _not_harmed(
        self, fixed: Tokenizer, printed: str, command: str, visible: Sequence[Defect], advice: str
    ) -> tuple[str, str]:
        said = _THE_SAME.sub("", printed)
        not_named = [d for d in visible if not re.search(d.named, said, re.IGNORECASE)]
        unnamed = [defect.name for defect in not_named if not defect.is_fixable]
        texts = [*self.case.compared, *self.case.held_out]
        right = self.best(visible), self.best(self.visible), self.good

        def is_right(tokenizer: Tokenizer, text: str) -> bool:
            return tokenizer.encode(text) in [each.encode(text) for each in right]

        left = [text for text in texts if not is_right(fixed, text)]
        if left and advice == "doctor" and not not_named:
            for doubtful in (*combinations(_DOUBTFUL, 1), _DOUBTFUL):
                sure = self.best([each for each in visible if each.name not in doubtful])
                if all(fixed.encode(text) == sure.encode(text) for text in texts):
                    return "described", command
        if left:
            shown = ", ".join(defect.name for defect in visible if defect.is_fixable)
            outcome = "too little" if command else "nothing" if not_named else "described"
            return outcome, f"{len(left)} texts differ ({shown}); {command}"
        if unnamed:
            return "unnamed", f"{', '.join(unnamed)}; {command}"
        if any(not is_right(self.bad, text) for text in texts):
            return "mended", command
        return ("unseen" if all(defect.is_fixable for defect in visible) else "named"), command

    # ---- harm -----------------------------------------------------------------------------------

    def _harm(self, fixed: Tokenizer, before: Tokenizer, path: Path) -> str:
        """What was right before the fix and is wrong after; "" if nothing."""
        if len(fixed.vocabulary.tokens) != len(before.vocabulary.tokens):
            return "the fix changes the tokens"
        texts = [*self.case.compared, *self.case.held_out, *self.case.with_all_markers]
        mended = self.best(self.case.defects)
        for text in texts:
            right = self.good.encode(text)
            if before.encode(text) == right != fixed.encode(text) != mended.encode(text):
                return f"a text that was right has other ids: {text[:40]!r}"
        if worse := self._other_pieces(fixed, before, texts):
            return worse
        new = self._found(path, like=self._broken) - self._found_before
        if new and (new := new - self._found_in_best):
            return f"doctor has new findings: {', '.join(sorted(new))}"
        return ""

    def _other_pieces(self, fixed: Tokenizer, before: Tokenizer, texts: list[str]) -> str:
        """A token that decodes to another text than before, except those whose types are the defect."""
        ours, theirs, right = (t.vocabulary.attributes for t in (fixed, before, self.good))
        for index in tokens_that_differ(ours, theirs):
            if index >= len(right) or theirs[index] == right[index]:
                pieces = [each.decode([index]) for each in (fixed, before)]
                if pieces[0] != pieces[1]:
                    return f"token {index} decodes to {pieces[0]!r}, and to {pieces[1]!r} before"
        broken = set(tokens_that_differ(theirs[: len(right)], right[: len(theirs)]))
        for text in texts:
            ids = [token for token in self.good.encode(text) if token < len(ours) and token not in broken]
            decoded = [each.decode(ids) for each in (self.good, before, fixed)]
            if decoded[0] == decoded[1] != decoded[2]:
                return f"ids decode to another text: {decoded[2][:60]!r}"
        return ""

    @cached_property
    def _broken(self) -> Facts:
        """What `doctor` looks at in the broken file, which stays open as long as the case."""
        facts = Facts(self._open.enter_context(GGUFFile(self.folder / "bad.gguf")), None)
        facts.share(self.case.base.facts)  # what follows from tokens and merges, if these are the same
        return facts

    @cached_property
    def _found_before(self) -> set[str]:
        return {finding.id for finding in grave_findings(self._broken, ())}

    @cached_property
    def _found_in_best(self) -> set[str]:
        """What `doctor` warns of where all is mended that a command can mend; other defects may have hidden it."""
        mendable = [defect.name for defect in self.case.defects if defect.is_fixable]
        path = self.case.base.copy(self.folder / "best.gguf", self.case.broken(but=mendable))
        try:
            return self._found(path, like=self._broken)
        finally:
            path.unlink()

    def _found(self, path: Path, like: Facts) -> set[str]:
        """The ids of what `doctor` warns of in a file."""
        with GGUFFile(path) as file:
            facts = Facts(file, None)
            facts.share(like)
            return {finding.id for finding in grave_findings(facts, ())}


def _what_it_does(command: str) -> Hashable:
    """What makes a command do something else: its file and changes, in any order; or its text."""
    change = Change.of_command(command)
    if change is None:
        return command
    parts = change.keys, change.types, change.templates, change.texts
    return command.split()[2], *(frozenset(part.items()) for part in parts)


def outcomes(made: Case, advice: Sequence[str] = tuple(ADVICE)) -> list[Outcome]:
    """What comes of each kind of advice about a case."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            opened = Trial(made, Path(folder))
        except GGUFError as error:
            raise AssertionError(f"{made}: the broken model cannot be opened: {error}") from error
        with opened as trial:
            return [trial.asked(each) for each in advice]


# ---- healthy pairs ------------------------------------------------------------------------------------


def proposals_for_healthy(advice: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs of healthy models, the kind of advice and the command that it proposes, "" for none.

    Pairs are a model with itself, with a copy under an equivalent name of its pre-tokenizer, and with each other model.
    """
    bases = [each for each in BASES if each.name in names]
    for base in bases:
        twin = {"tokenizer.ggml.pre": name} if (name := _equivalent(base.tokenizer)) else {}
        for what, second, keys in (
            ("itself", base, {}),
            ("an equivalent", base, twin),
            *((other.name, other, {}) for other in bases if other is not base),
        ):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder)
                base.copy(path / "bad.gguf", {})
                good = Tokenizer.from_gguf(second.copy(path / "good.gguf", keys))
                texts = make_texts(base, base.name, 3, True)
                (path / "text.txt").write_text("\n".join(texts), encoding="utf-8")
                (path / "good.json").write_text(json.dumps(good.encode("\n".join(texts))))
                (path / "texts").mkdir()
                for index, text in enumerate(texts):
                    (path / "texts" / f"{index}.txt").write_text(text, encoding="utf-8")
                for each in advice:
                    yield f"{base.name} and {what}", each, the_command(run(ADVICE[each], path)[1])[0]


def _equivalent(tokenizer: Tokenizer) -> str:
    """Another name of the pre-tokenizer that splits the same way with the same flags; "" if there is none."""
    from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

    if not tokenizer.vocabulary.tokenizer_model.has_pre_tokenizer:
        return ""
    own = tokenizer.vocabulary.pre_tokenizer
    same = (entry for entry in PRE_TOKENIZERS.values() if entry._replace(name=own.name) == own)
    return next((entry.name for entry in same if entry.name != own.name), "")


# ---- the command --------------------------------------------------------------------------------------


def table(found: Sequence[Outcome]) -> str:
    """The outcomes by kind of advice and number of defects, in Markdown."""
    head = ["advice", "defects", "cases", *OUTCOMES, "several commands", "median s", "95 % s", "most s"]
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for advice in dict.fromkeys(outcome.advice for outcome in found):
        for size in (*range(1, MOST_DEFECTS + 1), 0):
            those = [o for o in found if o.advice == advice and (not size or o.defects == size)]
            if not those:
                continue
            counts = Counter(outcome.outcome for outcome in those)
            seconds = sorted(outcome.seconds for outcome in those)
            times = median(seconds), seconds[int(0.95 * (len(seconds) - 1))], seconds[-1]
            numbers = [len(those), *(counts[name] for name in OUTCOMES)]
            numbers.append(sum(outcome.commands > 1 for outcome in those))
            cells = [advice, str(size or "all"), *map(str, numbers)]
            lines.append(" | ".join([*cells, *(f"{each:.1f}" for each in times)]))
    return "\n".join(f"| {line} |" for line in lines)


def _logged(path: Path) -> list[Outcome]:
    """What an earlier run has found."""
    if not path.exists():
        return []
    return [Outcome(*json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def kinds_for(made: Case, advice: Sequence[str], in_turn: bool) -> tuple[str, ...]:
    """The kinds of advice that a case asks for: all of `advice`, or one of them that its seed and number determine."""
    return (Random(f"{made.seed}/{made.number}/advice").choice(advice),) if in_turn else tuple(advice)


def _one(arguments: tuple[str, int, tuple[str, ...], tuple[str, ...], tuple[str, ...]]) -> list[Outcome]:
    seed, number, bases, asked, advice = arguments
    return outcomes(case(seed, number, bases, asked), advice)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=100, help="how many cases (default: 100)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case (default: 0)")
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument(
        "--in-turn", action="store_true", help="one kind of advice for each case, by its number"
    )
    parser.add_argument("--healthy", action="store_true", help="only pairs of healthy models")
    parser.add_argument(
        "--advice", action="append", choices=list(ADVICE), help="only this kind; may be repeated"
    )
    parser.add_argument(
        "--base", action="append", choices=[b.name for b in BASES], help="only this vocabulary"
    )
    parser.add_argument(
        "--defect", action="append", choices=list(BY_NAME), help="only cases with this one; may be repeated"
    )
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many cases at a time (default: 1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the cases that did not end well")
    parser.add_argument("--log", type=Path, help="keep what was found in this file, and go on from there")
    arguments = parser.parse_args()
    advice = tuple(arguments.advice or ADVICE)
    bases = tuple(arguments.base or [base.name for base in BASES])
    if arguments.healthy:
        wrong = 0
        for pair, each, command in proposals_for_healthy(advice, bases):
            wrong += bool(command)
            if command or arguments.verbose:
                print(f"{pair}: {each}: {command or 'no proposal'}", flush=True)
        print(f"{wrong} proposals for healthy models")
        return int(wrong > 0)
    numbers = range(arguments.first, arguments.first + arguments.count)
    numbers = numbers if arguments.case is None else range(arguments.case, arguments.case + 1)
    found = _logged(arguments.log) if arguments.log else []
    known = {outcome.case for outcome in found}
    asked = tuple(arguments.defect or ())
    made = [case(arguments.seed, number, bases, asked) for number in numbers]
    wanted = [each for each in made if str(each) not in known]
    jobs = [
        (arguments.seed, each.number, bases, asked, kinds_for(each, advice, arguments.in_turn))
        for each in wanted
    ]
    # a process reads each vocabulary once; a new one now and then frees what the cases leave in memory
    with get_context("fork").Pool(arguments.jobs, maxtasksperchild=_CASES_A_PROCESS) as pool:
        for each in pool.imap(_one, jobs):
            found += each
            if arguments.log:
                with arguments.log.open("a", encoding="utf-8") as log:
                    log.writelines(json.dumps(outcome) + "\n" for outcome in each)
            for outcome in each:
                if arguments.verbose and (outcome.outcome in BAD or arguments.case is not None):
                    _show(outcome, whole=arguments.case is not None)
    print(table(found))
    return int(any(outcome.outcome == "harm" for outcome in found))


def _show(outcome: Outcome, whole: bool) -> None:
    print(f"{outcome.case}\n  {outcome.advice}: {outcome.outcome}: {outcome.detail}", flush=True)
    if whole:
        print("".join(f"    {line}\n" for line in outcome.printed.splitlines()), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    sys.exit(main())
