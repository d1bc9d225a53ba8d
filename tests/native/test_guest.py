"""The compiled engine as a guest in somebody else's process: texts that change, locks, forks, the end, memory.

A case that could crash, hang or end its process runs in one of its own. None measures time: how long calls take beside
other threads is what benchmarks/guest.py tells.
"""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from conftest import ROOT
from synthetic import gpt2_vocabulary, native_encoder

from ggufbpe import Tokenizer
from ggufbpe.native import native

IS_NEEDED = os.environ.get("CI") == "true" and os.environ.get("GGUFBPE_ENGINE") != "reference"
pytestmark = pytest.mark.skipif(native is None and not IS_NEEDED, reason="there is no compiled engine")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

GPT2 = Path(__file__).resolve().parents[2] / "ggufbpe" / "models" / "gpt2.gguf"
TINY = ROOT / "fixtures" / "vocabs" / "wpm.gguf"
GENEROUS = 300  # seconds until a child that hangs is ended; all of them take less than ten


def in_a_process(code: str, *arguments: str) -> str:
    """What `code` prints; the process must end with exit code 0 and say nothing else."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, str(GPT2), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GENEROUS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


# ---- texts that change ----------------------------------------------------------------------------------

WORDS = [b"word%06d" % number for number in range(100_000)]
FIRST = b" ".join(WORDS)
SECOND = FIRST.replace(b"word", b"DROW")


def views_of(text: bytearray) -> dict[str, Any]:
    return {
        "bytearray": text,
        "memoryview": memoryview(text),
        "read-only view": memoryview(text).toreadonly(),
        "view of an array": memoryview(array("B", text)),
        "every byte, by strides": memoryview(text)[::-1][::-1],
    }


@pytest.mark.slow
@pytest.mark.parametrize("view", views_of(bytearray()))
def test_a_text_that_changes_has_the_ids_of_one_content_and_poisons_nothing(view: str) -> None:
    tok, fresh = Tokenizer(gpt2_vocabulary(), "native"), Tokenizer(gpt2_vocabulary(), "native")
    contents = {fresh.encode_to_numpy(text).tobytes() for text in (FIRST, SECOND)}
    text, ended = bytearray(FIRST), Event()
    given = views_of(text)[view]
    given_base = given if view == "view of an array" else memoryview(text)

    def change() -> None:
        while not ended.is_set():
            for content in (SECOND, FIRST):
                given_base[:] = content

    changing = Thread(target=change)
    changing.start()
    try:
        found = {tok.encode_to_numpy(given, threads=1 + turn % 2).tobytes() for turn in range(12)}
        batch = tok.encode_batch_to_numpy([given, given])
    finally:
        ended.set()
        changing.join()
    assert found | {ids.tobytes() for ids in batch} <= contents
    for content in (FIRST, SECOND):  # what is in the word cache now
        assert tok.encode_to_numpy(content).tobytes() == fresh.encode_to_numpy(content).tobytes()


# ---- the interpreter's lock ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_long_call_asks_for_the_lock_seldom() -> None:
    """A thread that runs Python code keeps the lock for 5 ms each time that it is asked for."""
    code = """if True:
        import sys, threading, time
        import numpy
        from ggufbpe import Tokenizer
        from ggufbpe.native import native
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        text = b"some words, and more of them. " * 800_000
        expected = tok.count(text)
        ended = False
        def busy():
            while not ended:
                pass
        thread = threading.Thread(target=busy)
        thread.start()
        calls = {
            "count": lambda: tok.count(text) == expected,
            "array": lambda: len(tok.encode_to_numpy(text, threads=2)) == expected,
            "batch": lambda: sum(map(len, tok.encode_batch_to_numpy([text[:3000]] * 5000))) > 0,
        }
        for name, call in calls.items():
            call()  # so that the engine knows that the lock is hard to get
            for _ in range(5):  # other programs can only add requests
                before, begun = native.lock_requests(), time.perf_counter()
                assert call()
                passed = time.perf_counter() - begun
                if seldom := native.lock_requests() - before <= 4 + passed / 0.1:
                    break
            print(name, seldom)
        ended = True
        thread.join()
    """
    assert in_a_process(code).splitlines() == ["count True", "array True", "batch True"]


def test_threads_seldom_wait_for_each_other() -> None:
    """Eight threads on one tokenizer with words that it knows: hardly a call finds a lock of the engine taken."""
    assert native is not None
    tok = Tokenizer(gpt2_vocabulary(), "native")
    texts = [
        b"words %d that come again and again, in each of the threads" % (number % 50)
        for number in range(4000)
    ]
    expected = [tok.encode(text) for text in texts]
    before = native.lock_waits()
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [tok.encode(text) for text in texts], range(8)):
            assert found == expected
    assert native.lock_waits() - before < len(texts) * 8 / 1000


# ---- processes -------------------------------------------------------------------------------------------

WAITING = """
import os, signal, sys, threading, time
import numpy
from ggufbpe import Tokenizer
import ggufbpe.data.training.learn_merges
def ended(child, seconds):
    # The exit code of a child; it is killed where it hangs.
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"
"""

BESIDE = {  # what other threads do while the process forks
    "arrays": "tok.encode_to_numpy(new_words(), threads=2)",
    "short texts": "[tok.encode(b'short %d' % number) for number in range(2000)]",
    "batches": "tok.encode_batch([new_words()[:5000]] * 50, threads=2)",
    "opening": "Tokenizer.from_gguf(sys.argv[1]).encode('abc ' * 2000)",
    "emptying the cache": "tok.encode_to_numpy(new_words()); tok._engine.encoder.release_memory()",
    "training": "__import__('ggufbpe').train([new_words().decode()], vocab_size=300)",
}


@pytest.mark.slow
@forks
@pytest.mark.parametrize("beside", BESIDE)
def test_a_fork_while_threads_are_at_work_leaves_a_child_that_works(beside: str) -> None:
    code = (
        WAITING
        + """
tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
text = b"some words of the child " * 20_000
expected = tok.encode_to_numpy(text).tolist()
stop, number = False, 0
def new_words():
    global number
    number += 1
    return b" ".join(b"x%d" % (7919 * (number * 20_000 + k)) for k in range(20_000))
def work():
    while not stop:
        WORK
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
codes = []
for turn in range(12):
    time.sleep(0.01)
    child = os.fork()
    if not child:
        right = tok.encode("Hello world") == [15496, 995] and tok.encode_to_numpy(text, threads=2).tolist() == expected
        right = right and tok.encode_batch(["Hello world"] * 3, threads=2) == [[15496, 995]] * 3
        right = right and Tokenizer.from_gguf(sys.argv[1]).encode("Hello world") == [15496, 995]
        os._exit(0 if right else 1)
    codes.append(ended(child, 60))
stop = True
for thread in threads:
    thread.join()
print(codes == [0] * 12 or codes)
""".replace("WORK", BESIDE[beside])
    )
    assert in_a_process(code) == "True"


@forks
def test_a_child_does_not_count_the_calls_of_threads_that_it_has_lost() -> None:
    """Where several calls run they let the lock go for each other; in the child it is kept from a busy thread."""
    code = (
        WAITING
        + """
tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
words = b"some words, and more of them. " * 10_000
many_words = words * 80
stop = False
def encode():
    while not stop:
        tok.count(many_words)
def run_python():
    while True:
        pass
threads = [threading.Thread(target=encode) for _ in range(3)]
for thread in threads:
    thread.start()
time.sleep(0.3)  # all of them are in a call nearly all of the time
child = os.fork()
if not child:
    from ggufbpe.native import native
    threading.Thread(target=run_python, daemon=True).start()
    time.sleep(0.01)
    before = native.lock_requests()
    for _ in range(60):
        tok.count(words)
    os._exit(native.lock_requests() - before)
stop = True
for thread in threads:
    thread.join()
print(ended(child, 100))
"""
    )
    # 60 if each lets it go; else some, until one had to wait for it: up to 13, and 30 on a busy machine
    assert min(int(in_a_process(code)) for _ in range(3)) < 45


@pytest.mark.slow
@forks
def test_a_signal_handler_may_fork_in_the_middle_of_a_call() -> None:
    """The child has lost the other threads of the call, and gets its ids all the same."""
    code = (
        WAITING
        + """
tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
words = b" ".join(b"x%d" % (7919 * number) for number in range(300_000))
calls = {
    "array": lambda: tok.encode_to_numpy(words, threads=4).tolist(),
    "count": lambda: tok.count(words, threads=4),
    "batch": lambda: tok.encode_batch([words[:200_000]] * 40, threads=4),
    "few": lambda: tok.encode_batch([words, words], threads=4),
}
expected = {name: call() for name, call in calls.items()}
own, children, is_calling = os.getpid(), [], False
def fork(*_):
    if is_calling and os.getpid() == own and len(children) < 3:
        children.append(os.fork())
        signal.setitimer(signal.ITIMER_REAL, 0.02)  # in the child, too, where it forks no more
signal.signal(signal.SIGALRM, fork)
for name, call in calls.items():
    tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
    children, is_calling = [], True
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    right = True
    while not children:  # a call may be over before the signal comes
        right = call() == expected[name] and right
    is_calling = False  # a handler that waits for its turn forks no more
    signal.setitimer(signal.ITIMER_REAL, 0)
    if os.getpid() != own:
        os._exit(0 if right and call() == expected[name] else 1)
    print(name, right, len(children) > 0, [ended(child, 100) for child in children] == [0] * len(children))
"""
    )
    assert in_a_process(code).splitlines() == [
        f"{name} True True True" for name in ("array", "count", "batch", "few")
    ]


@pytest.mark.slow
@forks
@pytest.mark.parametrize("work", ["tok.encode_to_numpy(words, threads=4)", "train(words)"])
def test_what_a_handler_raises_in_the_child_ends_the_child(work: str) -> None:
    code = (
        WAITING
        + """
tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
words = b" ".join(b"x%d" % (7919 * number) for number in range(300_000))
from ggufbpe.native import native
from ggufbpe.models.pretokenizers import compiled_splitter as tables
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
def train(text):
    native.WordCounter(4).add(tables.compiled_splitter(PRE_TOKENIZERS["gpt-2"]), text * 3)
child = 0
def fork(*_):
    global child
    child = os.fork()
    if not child:
        raise SystemExit(7)
signal.signal(signal.SIGALRM, fork)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while not child:  # the work may be over before the signal comes
        WORK
except SystemExit as end:
    os._exit(end.code)
signal.setitimer(signal.ITIMER_REAL, 0)
print(child > 0, ended(child, 100))
""".replace("WORK", work)
    )
    assert in_a_process(code) == "True 7"


# ---- the end ---------------------------------------------------------------------------------------------

AT_THE_END = {
    "arrays": "tok.encode_to_numpy(text, threads=2)",
    "lists": "tok.encode(text[:200_000])",
    "counts": "tok.count(text)",
    "batches": "tok.encode_batch([text[:10_000]] * 300, threads=2)",
    "short texts": "tok.encode(b'a short text')",
    "tables from files": "Tokenizer.from_gguf(sys.argv[1], engine='native').encode('a short text')",
    "training": "__import__('ggufbpe').train([text.decode()], vocab_size=300)",
}


@pytest.mark.slow
@pytest.mark.parametrize("work", AT_THE_END)
def test_the_interpreter_ends_while_daemon_threads_are_at_work(work: str) -> None:
    code = f"""if True:
        import sys, threading, time
        import numpy, ggufbpe
        from ggufbpe import Tokenizer
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        text = b" ".join(b"x%d" % (7919 * number) for number in range(300_000))
        def work():
            while True:
                {AT_THE_END[work]}
        for _ in range(8):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(float(sys.argv[2]))
    """
    for seconds in ("0.05", "0.12", "0.3"):
        assert in_a_process(code, seconds) == ""


def test_the_interpreter_ends_while_daemon_threads_load() -> None:
    """The rules of loading ask Python for each value, amid which the thread may be ended."""
    code = """if True:
        import sys, threading, time
        from ggufbpe.models.loading import load_vocabulary
        sys.setswitchinterval(1e-6)
        def work():
            while True:
                load_vocabulary(sys.argv[2])
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.15)
    """
    for _ in range(4):
        assert in_a_process(code, str(TINY)) == ""


def test_the_lock_is_taken_back_by_our_own_class_alone() -> None:
    """nanobind's gil_scoped_acquire lets a thread be unwound at the end, and the process is aborted."""
    sources = (ROOT / "ggufbpe" / "native" / "src").rglob("*.[ch]*")
    assert not [path.name for path in sources if "gil_scoped" in path.read_text()]


def test_the_interpreter_ends_while_a_call_asks_python_something() -> None:
    """Which thread is the main one, it asks `threading`: Python code, amid which the thread may be ended."""
    code = """if True:
        import sys, threading, time
        from ggufbpe import Tokenizer
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        tok.encode("short")
        asked, answer = threading.Event(), threading.main_thread
        def main_thread(sleep=time.sleep):
            asked.set()
            sleep(0.2)
            return answer()
        class EndsLate:
            def __del__(self, sleep=time.sleep):
                sleep(1)
        sys.late = EndsLate()  # what the main module has is not even cleared while a thread uses it
        threading.main_thread = main_thread
        threading.Thread(target=tok.encode, args=("a long text " * 1000,), daemon=True).start()
        assert asked.wait(100)
    """
    assert in_a_process(code) == ""


# ---- training --------------------------------------------------------------------------------------------


def test_counters_and_learners_may_be_shared_by_threads() -> None:
    code = """if True:
        import sys, threading
        from ggufbpe import Tokenizer
        from ggufbpe.native import native
        from ggufbpe.models.pretokenizers import compiled_splitter as tables
        from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
        splitter = tables.compiled_splitter(PRE_TOKENIZERS["gpt-2"])
        counter, other = native.WordCounter(2), native.WordCounter(2)
        texts = [b" ".join(b"w%d" % ((number * turn) % 5000) for number in range(30_000)) for turn in range(1, 9)]
        def add(text):
            for _ in range(3):
                counter.add(splitter, text)
                other.add(splitter, text)
        threads = [threading.Thread(target=add, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = native.WordCounter(1)
        for text in texts:
            alone.add(splitter, text)
        print(sorted(counter.words()) == sorted((word, 3 * count) for word, count in alone.words()))
        alphabet = [chr(byte) for byte in range(128)]
        learner = native.Learner(alphabet, [letter.encode() for letter in alphabet], [1] * 128, [], 600, "lowest-ids",
                                 2, 100, [])
        learner.add_counted(other, [byte % 128 for byte in range(256)])
        found = []
        def run():
            while learner.run(0.001):
                found.append(len(learner))
                learner.merges()
        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(learner) == 600 - 128)
        for taken in (counter, other):
            try:
                taken.add(splitter, b"more")
            except RuntimeError as error:
                print("nothing can be added" in str(error))
    """
    assert in_a_process(code).splitlines() == ["True", "True", "True", "True"]


# ---- memory ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what a process has in memory is read from /proc")
def test_memory_has_a_bound_and_goes_back() -> None:
    """3 million different words: at most 64 MB more; when the tokenizer is deleted, all but 16 MB is given back."""
    code = """if True:
        import gc, os, sys
        import numpy
        from ggufbpe import Tokenizer
        def megabytes():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        def words(start):
            return b" ".join(b"%d" % (number * 7919 + 10**9) for number in range(start, start + 20_000))
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        tok.count(words(0))
        before, most = megabytes(), 0
        for start in range(0, 3_000_000, 20_000):
            tok.count(words(start))
            most = max(most, megabytes())
        full = megabytes()
        opened = Tokenizer.from_gguf(sys.argv[1], engine="native")
        opened.count(words(0))
        print(most - before <= 64 or most - before)
        tok._engine.encoder.release_memory()
        tok.count(words(0))
        kept = megabytes() - before
        print(kept <= 16 + 24 or kept)  # what a second tokenizer takes, and what the process keeps
    """
    assert in_a_process(code).splitlines() == ["True", "True"]


def test_words_that_were_used_lately_are_remembered() -> None:
    """A full cache forgets what was not asked for: what comes again and again stays, however much else passes by."""
    tok = Tokenizer(gpt2_vocabulary(), "native")
    frequent = b" ".join(b"frequent%d" % number for number in range(1000))
    expected = tok.encode(frequent)
    for start in range(0, 600_000, 20_000):
        tok.count(b" ".join(b"%d" % (number * 7919 + 10**9) for number in range(start, start + 20_000)))
        assert tok.encode(frequent) == expected
    before = native_encoder(tok).cache_misses
    assert tok.encode(frequent) == expected
    assert native_encoder(tok).cache_misses == before
