"""Compares the prompts of chats with those of the real llama-server, on random chats and random templates.

    python scripts/reference.py prepare --chats
    python scripts/compare_chats.py --chats 100000 --seed 1 --processes 2
    python scripts/compare_chats.py --only Qwen-Qwen3-0.6B --chats 1000

Half of the chats go to the recorded templates (record_chats.py), half to random ones (random_templates.py), over a
vocabulary that adds BOS and EOS or not. Both must give the same prompt, number of tokens, or both refuse; the line of
the template that refuses must be the same, too. How many reasons are worded in another way is counted, and shown with
`--reasons`. A difference is shrunk and printed; with `--templates FOLDER`, its template is written there.

Ends with a line of totals, and with status 1 if anything differed. The same seed asks the same questions, whatever the
number of processes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from chat_server import Answer, ChatServer, Refusal, ServerGoneError
from make_tiny_model import make_tiny_model
from random_chats import RandomChats
from random_templates import RandomTemplates
from record_chats import VOCABULARY, read_chats

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.chats import Chats
from ggufbpe.chat.known_templates import CHATML
from ggufbpe.chat.render import ChatTemplate
from ggufbpe.chat.template.environment import Template
from ggufbpe.chat.template.run_limits import LimitError

SHOWN = 20  # differences of a job that are printed; all are counted
CHATS_OF_RANDOM_TEMPLATE = 60
CHATS_OF_A_JOB = 500
RANDOM_SHARE = 0.5
_ADDED = {  # what the vocabulary adds to a prompt
    "BOS": {"tokenizer.ggml.add_bos_token": True},
    "nothing": {"tokenizer.ggml.add_bos_token": False},
    "both": {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True},
    "EOS": {"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": True},
}
_LINE = re.compile(r"While executing \w+ at line (\d+), column")  # those of a JSON parser are others


@dataclass(frozen=True)
class Job:
    """Some chats under one template: a recorded one by its name, or a random one where that is None."""

    name: str | None
    chats: int
    seed: str


@dataclass
class Result:
    totals: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[str, str]] = field(default_factory=list)  # what is told, and the template


class Comparison:
    """llama-server and ours, over one template."""

    def __init__(self, server: ChatServer, tok: Tokenizer, template: str, result: Result) -> None:
        self._server = server
        self._tok = tok
        self._chats = Chats(tok)
        self._template = template
        self.result = result
        self.may_exceed_limits = False  # ours; llama-server has none

    def compare(self, name: str, request: dict[str, Any]) -> None:
        """Ask both, and note what differs."""
        totals = self.result.totals
        totals["chats"] += 1
        try:
            theirs, ours = self._both(request)
        except ServerGoneError:
            totals["ends of the server"] += 1
            return
        totals["refused"] += isinstance(theirs, Refusal)
        if isinstance(theirs, Refusal) and isinstance(ours, ChatError):
            expected = _reason(theirs.message)
            if ours.reason != expected:
                totals["reasons in other words"] += 1
                self.result.reasons[f"{expected!r}\n  ours: {ours.reason!r}"] += 1
        if self.may_exceed_limits and isinstance(theirs, Answer) and _is_beyond_limits(ours):
            totals["beyond our limits"] += 1
        elif differ(theirs, ours):
            totals["differences"] += 1
            if len(self.result.differences) < SHOWN:
                self._report(name, request)

    def _both(self, request: dict[str, Any]) -> tuple[Answer | Refusal, Answer | ChatError]:
        theirs, second = self._server.ask_at(request)
        now = datetime.fromtimestamp(second, timezone.utc)
        try:
            prompt = self._chats.prompt(request, self._template or None, now)
        except ChatError as error:
            return theirs, error
        return theirs, Answer(prompt.decode("utf-8", "replace"), self._tok.count(prompt))

    def _report(self, name: str, request: dict[str, Any]) -> None:
        def still_differs(smaller: dict[str, Any]) -> bool:
            try:
                return differ(*self._both(smaller))
            except ServerGoneError:
                return False

        request = shrunk(request, still_differs)
        theirs, ours = self._both(request)
        told = f"{name}\n  chat   {json.dumps(request, ensure_ascii=False)}\n  server {theirs!r}\n  ours   {ours!r}"
        self.result.differences.append((told, self._template))


def _reason(message: str) -> str:
    """A refusal without the part of the template that it shows."""
    before, shown, _ = message.partition("\n------------\n")
    return before + message.rpartition("\nError: ")[2] if shown else message


def _is_beyond_limits(ours: Answer | ChatError) -> bool:
    """Whether the template made more than ours lets one make, such as 20 million characters."""
    cause: BaseException | None = ours if isinstance(ours, ChatError) else None
    while cause and not isinstance(cause, LimitError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def differ(theirs: Answer | Refusal, ours: Answer | ChatError) -> bool:
    """Whether answers are not the same; of two refusals only the line of the template counts."""
    if isinstance(theirs, Answer) or isinstance(ours, Answer):
        return theirs != ours
    lines = _LINE.findall(theirs.message)
    return bool(lines) and ours.line != int(lines[0])


def shrunk(value: Any, still: Callable[[Any], bool]) -> Any:
    """The request with as much left out as can be, so that `still` holds."""
    found = True
    while found:
        found = False
        for smaller in _smaller(value):
            if still(smaller):
                value, found = smaller, True
                break
    return value


def _smaller(value: Any) -> Iterator[Any]:
    """The value with one part of it left out."""
    if isinstance(value, dict):
        for key in value:
            yield {name: inner for name, inner in value.items() if name != key}
        for key, inner in value.items():
            yield from ({**value, key: other} for other in _smaller(inner))
    elif isinstance(value, list):
        for number in range(len(value)):
            yield value[:number] + value[number + 1 :]
        for number, inner in enumerate(value):
            yield from ([*value[:number], other, *value[number + 1 :]] for other in _smaller(inner))
    elif isinstance(value, str) and len(value) > 1:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
        yield value[1:]
        yield value[:-1]


def run(job: Job) -> Result:
    """Do one job: a process's work."""
    result, dice = Result(), random.Random(f"{job.seed}/added")
    added = dice.choice(list(_ADDED))
    with tempfile.TemporaryDirectory() as folder:
        model = make_tiny_model(Path(folder) / "tiny.gguf", VOCABULARY, _ADDED[added])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tok = Tokenizer.from_gguf(model)
        with ChatServer(model) as server:
            if job.name is None:
                _compare_random_templates(server, tok, job, result)
            else:
                template = read_chats("templates")[job.name]
                comparison = _opened(server, tok, template, result)
                source = RandomChats(job.seed)
                for number in range(job.chats if comparison else 0):
                    assert comparison is not None
                    name = f"{job.name or 'no template'}, {added} added, seed {job.seed}, chat {number}"
                    comparison.compare(name, source.request())
    return result


def _compare_random_templates(server: ChatServer, tok: Tokenizer, job: Job, result: Result) -> None:
    left, number = job.chats, 0
    while left > 0:
        seed = f"{job.seed}/{number}"
        number += 1
        templates, source = RandomTemplates(seed), RandomChats(seed)
        pieces = templates.pieces()
        parsed = [piece for piece in pieces if _parses(piece)]
        for piece in pieces:
            if piece not in parsed:  # alone, since it would take the others with it
                _opened(server, tok, _if_probed(piece), result)
        template = templates.template(parsed)
        comparison = _opened(server, tok, template, result, blamed=False)
        if comparison is None:
            if _is_taken(tok, template):
                _opened(server, tok, templates.template([]), result)
                _report_refused(server, tok, parsed, result)
            left -= 1
            continue
        comparison.may_exceed_limits = True
        asked = min(left, len(parsed) + CHATS_OF_RANDOM_TEMPLATE)
        left -= asked
        for chat in range(asked):
            keywords = {"probe": chat} if chat < len(parsed) else {}
            piece = f": {parsed[chat]!r}" if chat < len(parsed) else ""
            comparison.compare(f"random template {seed}, chat {chat}{piece}", source.request(**keywords))


def _parses(piece: str) -> bool:
    """Whether our engine can parse it."""
    try:
        Template(piece)
    except ChatError:
        return False
    return True


def _is_taken(tok: Tokenizer, template: str) -> bool:
    """Whether a server of ours would start with it."""
    try:
        return ChatTemplate(template or CHATML, BosEos.of(tok)).supports_thinking in (True, False)
    except ChatError:
        return False


def _if_probed(piece: str) -> str:
    """A template with a piece that is parsed and not run: one that fails would keep the server from starting."""
    return f"{{%- if probe is defined -%}}{piece}{{%- endif -%}}"


def _report_refused(server: ChatServer, tok: Tokenizer, pieces: list[str], result: Result) -> None:
    """Find the piece that llama-server cannot parse."""
    while len(pieces) > 1:
        half = pieces[: len(pieces) // 2]
        refused = server.open(_if_probed("".join(half))) is not None
        pieces = half if refused else pieces[len(half) :]
    _opened(server, tok, _if_probed("".join(pieces)), result)


def _opened(
    server: ChatServer, tok: Tokenizer, template: str, result: Result, blamed: bool = True
) -> Comparison | None:
    """A comparison for a template; None if the server does not take it, which ours must not, either.

    With `blamed` False that it does not is no difference yet: the caller finds the piece that is to blame.
    """
    result.totals["templates"] += 1
    try:
        refused = server.open(template or None)
    except ServerGoneError:
        result.totals["ends of the server"] += 1
        return None
    if refused is None:
        if not _is_taken(tok, template):
            result.totals["differences"] += 1
            result.differences.append(
                (f"llama-server takes the template, and we do not: {template!r}", template)
            )
            return None
        return Comparison(server, tok, template, result)
    result.totals["templates refused"] += 1
    if blamed and _is_taken(tok, template):
        result.totals["differences"] += 1
        result.differences.append(
            (f"llama-server takes no such template, and we do: {template[:200]!r}", template)
        )
    return None


def jobs(chats: int, seed: str, names: list[str] | None) -> list[Job]:
    """The chats, spread over the recorded templates and random ones."""
    for_random = 0 if names else int(chats * RANDOM_SHARE)
    found = [
        Job(None, min(CHATS_OF_A_JOB, for_random - first), f"{seed}/random/{first}")
        for first in range(0, for_random, CHATS_OF_A_JOB)
    ]
    known = names or list(read_chats("templates"))
    share, rest = divmod(chats - for_random, len(known))
    for number, name in enumerate(known):
        of_template = share + (number < rest)
        for first in range(0, of_template, CHATS_OF_A_JOB):
            found.append(Job(name, min(CHATS_OF_A_JOB, of_template - first), f"{seed}/{name}/{first}"))
    return found


def parser_of(description: str, default: str) -> argparse.ArgumentParser:
    """The arguments of all comparisons of random chats; `default` says which templates they compare without --only."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"recorded templates; default: {default}")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    return parser


def main() -> int:
    parser = parser_of(__doc__, "all, and random ones")
    parser.add_argument("--reasons", action="store_true", help="show reasons that are worded in another way")
    parser.add_argument("--templates", type=Path, help="a folder for the templates of differences")
    arguments = parser.parse_args()
    start, result = time.perf_counter(), Result()
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for part in pool.imap(run, jobs(arguments.chats, arguments.seed, arguments.only)):
            result.totals.update(part.totals)
            result.reasons.update(part.reasons)
            for told, template in part.differences:
                print(f"DIFFERENCE {told}", flush=True)
                if arguments.templates:
                    arguments.templates.mkdir(parents=True, exist_ok=True)
                    name = re.sub(r"\W+", "-", told.partition(", chat")[0].partition("\n")[0])
                    (arguments.templates / f"{name}.jinja").write_text(template, encoding="utf-8")
    if arguments.reasons:
        for reasons, count in result.reasons.most_common():
            print(f"REASONS {count} times: {reasons}")
    totals = result.totals
    print(
        f"compared with llama-server: {totals['templates']} templates ({totals['templates refused']} refused), "
        f"{totals['chats']} chats ({totals['refused']} refused, {totals['reasons in other words']} in other words, "
        f"{totals['beyond our limits']} beyond our limits), "
        f"{totals['ends of the server']} ends of the server, "
        f"{totals['differences']} differences, "
        f"{time.perf_counter() - start:.0f} seconds"
    )
    return 1 if totals["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
