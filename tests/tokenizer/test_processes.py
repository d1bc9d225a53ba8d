"""A tokenizer in several processes: forked at any moment, started in any way, sent as an argument.

What a fork meets is made as likely as it can be: other threads do nothing but what the child must not find half done.
A child that hangs is killed, and that fails the test. Forks are in processes of their own, without pytest's threads.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT

from ggufbpe import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
TINY = ROOT / "fixtures" / "variants" / "vocabulary-version-3-little.gguf"
SECONDS = 60  # that a child may take: a busy machine is no defect
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

# `other` is what other threads do again and again, `child` what the child does; both may use what is above them.
FORK = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-6)
import ggufbpe
from ggufbpe import Tokenizer
path, tiny = sys.argv[1:3]
tok = Tokenizer.from_gguf(path, {engine!r})
fresh = [tok.vocabulary]
{setup}
def other():
    while not done.is_set():
        {other}
def child():
    {child}
def forked():
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.alarm({seconds})  # ends a child that hangs
        child()
        status = 0
    finally:
        os._exit(status)
done = threading.Event()
threads = [threading.Thread(target=other, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
statuses = []
for _ in range({forks}):
    time.sleep(0.001)
    statuses.append(os.waitpid(forked(), 0)[1])
done.set()
for thread in threads:
    thread.join()
print(statuses)
"""

ENCODE = "assert tok.encode('Hello world') == [15496, 995]"
ENCODE_ANEW = "assert Tokenizer(tok.vocabulary, {engine!r}).encode('Hello world') == [15496, 995]"
FORGET_MODULES = (
    "for name in ('pipeline.compiled', 'pipeline.pipeline', 'pipeline.special', 'pipeline.offsets', 'models.bpe.text',"
    " 'trace.trace'): sys.modules.pop('ggufbpe.' + name, None)"
)

CASES: dict[str, dict[str, str]] = {
    "others open files": {
        "other": "Tokenizer.from_gguf(tiny)",
        "child": "Tokenizer.from_gguf(tiny).encode('a')",
    },
    "others make encoders": {
        "other": "Tokenizer.from_gguf(tiny, {engine!r}).encode('a')",
        "child": ENCODE_ANEW,
    },
    "others encode": {"other": "tok.encode('Hello world, and some more words')", "child": ENCODE},
    "others ask for all that is made once": {
        "other": "new = Tokenizer.from_gguf(tiny, {engine!r}); new.nl_id; new.pre_tokenize('a'); new.decode([1]); "
        "new.trace('a'); new.encode_with_offsets('a')",
        "child": "new = Tokenizer.from_gguf(tiny, {engine!r}); new.nl_id; new.pre_tokenize('a'); new.decode([1]); "
        "new.trace('a'); new.encode_with_offsets('a')",
    },
    "others train": {
        "other": "ggufbpe.train(['low lower lowest'], vocab_size=260, pre='gpt-2').encode('low')",
        "child": "ggufbpe.train(['low lower lowest'], vocab_size=260, pre='gpt-2').encode('low'); " + ENCODE,
    },
    "others import": {
        "other": FORGET_MODULES + "\n        Tokenizer(tok.vocabulary, 'reference').encode('a')",
        "child": "Tokenizer(tok.vocabulary, 'reference').encode('a')",
    },
    "others import what finds offsets": {
        "other": FORGET_MODULES + "\n        tok.encode_with_offsets('a')",
        "child": "tok.encode_with_offsets('a')",
    },
    "the thread that forks makes something itself": {
        "setup": "from ggufbpe._util.lazy import IMPORT_LOCK",
        "other": "Tokenizer.from_gguf(tiny, {engine!r}).encode('a')",
        "child": "from ggufbpe._util.lazy import IMPORT_LOCK\n    with IMPORT_LOCK: " + ENCODE_ANEW,
    },
}


def run(program: str) -> str:
    """What a program prints, in a process of its own that has the package."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(GPT2), str(TINY)], capture_output=True, text=True, timeout=540
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@forking
@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_a_fork_in_the_middle_leaves_a_child_that_works(case: str, engine: str) -> None:
    forks = 8
    parts = {part: text.replace("{engine!r}", repr(engine)) for part, text in CASES[case].items()}
    program = FORK.format(engine=engine, seconds=SECONDS, forks=forks, **{"setup": "", **parts})
    assert run(program) == str([0] * forks)


@forking
def test_a_thread_may_fork_while_it_makes_something() -> None:
    """As a signal handler does that comes in the middle of it; and the parent works, too."""
    program = textwrap.dedent(
        f"""
        import os, signal, sys, warnings
        from ggufbpe import Tokenizer
        from ggufbpe._util.lazy import IMPORT_LOCK
        tok = Tokenizer.from_gguf(sys.argv[1])
        def fork(*_):
            pid = os.fork()
            if not pid:
                signal.alarm({SECONDS})
                os._exit(tok.encode("Hello world") != [15496, 995])
            statuses.append(os.waitpid(pid, 0)[1])
        statuses = []
        signal.signal(signal.SIGUSR1, fork)
        with IMPORT_LOCK:
            os.kill(os.getpid(), signal.SIGUSR1)
            fork()
        print(statuses, tok.encode("Hello world"), tok.pre_tokenize("a"))
        """
    )
    assert run(program) == "[0, 0] [15496, 995] ['a']"


# ---- multiprocessing and concurrent.futures ---------------------------------------------------------------

given: Tokenizer | None = None  # in a child: what it was started with


def ids_of(tok: Tokenizer, text: str) -> tuple[list[int], str, bool]:
    return tok.encode(text), tok.engine, tok.add_bos


def start_with(tok: Tokenizer) -> None:
    global given
    given = tok


def ids_of_given(text: str) -> list[int]:
    assert given is not None
    return given.encode(text)


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_processes_of_each_start_method(method: str, engine: Any) -> None:
    tok = Tokenizer.from_gguf(GPT2, engine, overrides={"tokenizer.ggml.add_bos_token": True})
    tok.encode("used before")
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context, initializer=start_with, initargs=(tok,)) as pool:
        found = pool.submit(ids_of, tok, "Hello world")
        assert list(pool.map(ids_of_given, ["Hello world"] * 3)) == [[50256, 15496, 995]] * 3
        assert found.result(timeout=SECONDS) == ([50256, 15496, 995], tok.engine, True)
    with context.Pool(1) as several:
        assert several.apply(ids_of, (tok, "Hello world")) == ([50256, 15496, 995], tok.engine, True)


@forking
def test_a_global_tokenizer_in_forked_processes(tmp_path: Path) -> None:
    start_with(Tokenizer.from_gguf(GPT2))
    try:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            assert list(pool.map(ids_of_given, ["Hello world"] * 4)) == [[15496, 995]] * 4
    finally:
        globals()["given"] = None
