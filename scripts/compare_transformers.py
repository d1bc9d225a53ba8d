"""Checks what is said about chats that llama.cpp renders otherwise than transformers, by asking both.

    python scripts/reference.py prepare --newer
    pip install ggufbpe[transformers]
    python scripts/compare_transformers.py --chats 10000 --seed 1 --processes 2

Random chats go to the recorded templates (record_chats.py). Of each, `AsTransformers` says whether the two prompts
differ and in which parts of the chat. llama-server and transformers are then asked themselves: the prompts must differ
exactly where that is said, and our prompt must be llama-server's. Without the parts that are named, llama-server's
prompt must be that of transformers, up to BOS and EOS, dates and white space where these are named.

Ends with the number of templates and chats by what differs, and with status 1 if anything said is not true.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from chat_server import ChatServer, Refusal, ServerGoneError
from compare_chats import parser_of
from make_tiny_model import make_tiny_model
from random_chats import RandomChats
from record_chats import VOCABULARY, read_chats
from record_transformers import folder_for, model_with

from ggufbpe import Tokenizer
from ggufbpe.analysis.oracles.chat_answers import ChatAnswer, Prompt, Refused
from ggufbpe.analysis.oracles.oracle import Failure
from ggufbpe.analysis.oracles.transformers_oracle import TransformersOracle
from ggufbpe.analysis.verify.as_transformers import AsTransformers, is_same_answer
from ggufbpe.analysis.verify.chat_topics import Two, topics, without, without_all

SECONDS = 300.0
SHOWN = 20


@dataclass
class Result:
    totals: Counter[str] = field(default_factory=Counter)
    by_topic: Counter[str] = field(default_factory=Counter)
    templates: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by topic
    untrue: list[str] = field(default_factory=list)


class Comparison:
    """llama-server and transformers with the template of a model, and what is said about them."""

    def __init__(
        self,
        name: str,
        server: ChatServer,
        tokenizer: Tokenizer,
        oracle: TransformersOracle,
        result: Result,
        every: int = 1,
    ) -> None:
        """The parts that differ are named for chats whose number is a multiple of `every`."""
        self._every = every
        self._name, self._server, self._result = name, server, result
        self._tokenizer, self._oracle = tokenizer, oracle
        self._now: datetime | None = None

    @property
    def _engines(self) -> Two:
        """Both, at the time at which llama-server answered."""
        return AsTransformers(self._tokenizer, self._oracle, now=self._now).engines

    def compare(self, chat: dict[str, Any], number: int) -> None:
        """Check what is said about one chat."""
        result = self._result
        real = self._by_server(chat)
        engines = self._engines
        ours, theirs = engines.one(chat), engines.other(chat)
        if any(isinstance(answer, Failure) for answer in (real, ours, theirs)):
            result.totals["no answer"] += 1
            return
        result.totals["chats"] += 1
        is_said = not is_same_answer(ours, theirs)
        if not is_same_answer(real, ours) or is_said == is_same_answer(real, theirs):
            self._untrue("the prompts", number, chat)
        if not is_said:
            return
        result.totals["differ"] += 1
        if number % self._every:
            return
        result.totals["explained"] += 1
        named = topics(chat, engines)
        key = " + ".join(topic.id for topic in named)
        result.by_topic[key] += 1
        result.templates[key].add(self._name)
        if named[0].id in ("other", "no_messages"):
            return
        smaller = without(chat, named)
        one = self._by_server(smaller)
        engines = self._engines
        other = engines.other(smaller)
        if isinstance(one, Failure) or isinstance(other, Failure):
            result.totals["no answer"] += 1
            return
        if not isinstance(one, Prompt) or not isinstance(other, Prompt):
            self._untrue(f"without {key}", number, chat)
            return
        if without_all(one.text, named, engines) != without_all(other.text, named, engines):
            self._untrue(f"without {key}", number, chat)

    def _by_server(self, chat: Mapping[str, Any]) -> ChatAnswer:
        try:
            answer, second = self._server.ask_at(dict(chat))
        except ServerGoneError:
            return Failure("crash", "llama-server ended")
        self._now = datetime.fromtimestamp(second, timezone.utc)
        return (
            Refused(answer.message)
            if isinstance(answer, Refusal)
            else Prompt(answer.prompt.encode("utf-8", "surrogatepass"))
        )

    def _untrue(self, what: str, number: int, chat: dict[str, Any]) -> None:
        self._result.totals["untrue"] += 1
        if len(self._result.untrue) < SHOWN:
            self._result.untrue.append(
                f"{self._name}, chat {number}: {what}: {json.dumps(chat, ensure_ascii=False)}"
            )


def run(job: tuple[list[tuple[str, int]], str, int]) -> Result:
    """Do one job, some templates with a number of chats for each, a seed, and `--every`: a process's work."""
    of_templates, seed, every = job
    result, sources = Result(), read_chats("templates")
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder_for(Path(temporary) / "folder", "")  # transformers is given each template
        model = make_tiny_model(Path(temporary) / "tiny.gguf", VOCABULARY)
        with (
            ChatServer(model) as server,
            closing(TransformersOracle(str(folder), model_with(""), SECONDS)) as oracle,
        ):
            for name, count in of_templates:
                result.totals["templates"] += 1
                if server.open(sources[name]) is not None:
                    result.totals["templates refused"] += 1
                    continue
                comparison = Comparison(name, server, model_with(sources[name]), oracle, result, every)
                chats = RandomChats(f"{seed}/{name}")
                for number in range(count):
                    comparison.compare(chats.request(), number)
    return result


def main() -> int:
    parser = parser_of(__doc__, "all")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="name parts for every Nth chat only"
    )
    arguments = parser.parse_args()
    names = arguments.only or [name for name in read_chats("templates") if name]
    share, rest = divmod(arguments.chats, len(names))
    counts = [(name, share + (number < rest)) for number, name in enumerate(names)]
    jobs = [
        (counts[first :: arguments.processes], arguments.seed, arguments.every)
        for first in range(arguments.processes)
    ]
    start, whole = time.perf_counter(), Result()
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for part in pool.imap(run, jobs):
            whole.totals.update(part.totals)
            whole.by_topic.update(part.by_topic)
            for key, of_part in part.templates.items():
                whole.templates[key] |= of_part
            for told in part.untrue:
                print(f"UNTRUE {told}", flush=True)
    for key, count in whole.by_topic.most_common():
        print(f"{key}: {count} chats of {len(whole.templates[key])} templates")
    totals, differing = whole.totals, set().union(*whole.templates.values())
    print(
        f"{totals['templates']} templates ({totals['templates refused']} refused, {len(differing)} with differences), "
        f"{totals['chats']} chats, {totals['differ']} differ ({totals['explained']} explained), "
        f"{totals['no answer']} without an answer, "
        f"{totals['untrue']} untrue, {time.perf_counter() - start:.0f} seconds"
    )
    return 1 if totals["untrue"] else 0


if __name__ == "__main__":
    sys.exit(main())
