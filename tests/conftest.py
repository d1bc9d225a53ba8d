"""Shared by all tests: where the vocabularies are, and what happens while one is absent."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(ROOT / "scripts"),
    str(ROOT / "tests" / "makers"),
    str(ROOT / "tests" / "helpers"),
]  # the makers of the fixtures also read them

import mending  # noqa: E402 - it needs the scripts, too
from reference import NotPreparedError, llama_server_command  # noqa: E402

mending.watch_everything()

import ggufbpe  # noqa: E402 - after what it imports is watched

_tested = Path(ggufbpe.__file__).resolve().parent.parent
if _tested != ROOT and (_tested / "tests" / "conftest.py").exists():
    # an editable install's finder goes before PYTHONPATH
    raise RuntimeError(f"these tests are of {ROOT}, but Python finds ggufbpe in another checkout, {_tested}")

from ggufbpe._util.processors import processors  # noqa: E402
from ggufbpe.analysis.diagnose import chat_search, several  # noqa: E402 - after what it imports is watched
from ggufbpe.analysis.verify import chat_comparison, difference_causes  # noqa: E402

for module, name in (
    (difference_causes, "SHRINK_SECONDS"),
    (difference_causes, "SECONDS"),
    (chat_comparison, "_SHRINK_SECONDS"),
    (chat_comparison, "_SECONDS"),
    (chat_comparison, "SECONDS"),
    (several, "SECONDS"),
    (chat_search, "SECONDS"),
):
    setattr(module, name, 600.0)  # what is found must not depend on how busy a machine is

GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"
RAW_UTF8 = ROOT / "fixtures" / "raw-utf8.gguf"
UNIGRAM = ROOT / "fixtures" / "unigram.gguf"
PLAMO = ROOT / "fixtures" / "plamo.gguf"
UNSPLIT = ROOT / "fixtures" / "unsplit.gguf"


# Files that need packages which the extra `dev` does not have; a package that is missing in CI fails its tests.
PACKAGES = {
    "data/corpora/test_corpus_encoding.py": "pyarrow",
    "data/corpora/test_corpus_files.py": "pyarrow",
    "data/corpora/test_document_notes.py": "pyarrow",
    "data/corpora/test_encode_stage.py": "pyarrow",
    "data/corpora/test_large_documents.py": "pyarrow",
    "data/corpora/test_ray.py": "ray",
    "data/corpora/test_masked_shards.py": "pyarrow",
    "data/corpora/test_readers.py": "pyarrow",
    "data/corpora/test_records.py": "pyarrow",
    "data/corpora/test_row_formats.py": "pyarrow",
    "data/corpora/test_shard_check.py": "pyarrow",
    "data/corpora/test_table_rows.py": "pyarrow",
    "data/corpora/test_whole_rows.py": "pyarrow",
    "data/statistics/test_chat_statistics.py": "pyarrow",
    "repository/test_examples.py": "pyarrow",
    "repository/test_page_of_symptoms.py": "pyarrow",
    "repository/test_pages_for_people.py": "pyarrow",
    "javascript/test_javascript.py": "playwright",
    "server/test_page.py": "playwright",
    "server/test_page_words.py": "playwright",
    "server/test_standalone_page.py": "playwright",
}
collect_ignore = [
    file
    for file, package in PACKAGES.items()
    if find_spec(package) is None and os.environ.get("CI") != "true"
]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two workers more than there are processors: tests also wait, for the processes that they start."""
    return processors() + 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Open only files with such tests for `-m both_engines`: each worker would open twenty times as many."""
    if config.option.markexpr != "both_engines" or not collection_path.name.startswith("test_"):
        return None
    return True if b"both_engines" not in collection_path.read_bytes() else None


def pytest_collection_finish() -> None:
    """Leave the 26,000 tests out of garbage collection, which otherwise takes a twentieth of the time of a run."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for file in collect_ignore:
        terminalreporter.write_line(f"LEFT OUT tests/{file}, which needs {PACKAGES[file]}")


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "both_engines: a test of exactness, to be run with each engine",
        "browser: needs chromium",
        "cluster: needs Ray",
        "tries_fixes: each fix that is printed while it runs is done and looked at (mending.py)",
        "slow: takes seconds with its cases, and is left out of a quick run",
    ):
        config.addinivalue_line("markers", marker)
    if "GGUFBPE_CACHE_DIR" not in os.environ:  # nothing is written into the folder of whoever runs the tests
        folder = tempfile.TemporaryDirectory()
        os.environ["GGUFBPE_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
    # A shell starts what it runs in the background with Ctrl-C ignored, and children inherit that; the tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def missing(what: str) -> NoReturn:
    """Skip a test that needs something not in the repository; fail it in CI, where everything must be."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def peak_growth(work: Callable[[], object]) -> int:
    """How many bytes more memory this process has at most during `work`; Linux only."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _peak_memory()
    work()
    return _peak_memory() - before


def _peak_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    [kib] = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) << 10


def prepared(what: Callable[..., Path], *arguments: str) -> Path:
    """Something of the reference, or no test."""
    try:
        return what(*arguments)
    except NotPreparedError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def gpt2_path() -> Path:
    """GPT-2's vocabulary, which comes with the package."""
    return GPT2


@pytest.fixture(scope="session")
def raw_utf8_path() -> Path:
    """The small vocabulary in raw UTF-8, for the names that do not byte-encode."""
    return RAW_UTF8


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real llama-server with GPT-2's vocabulary and random weights."""
    from make_tiny_model import make_tiny_model  # with numpy

    command = prepared(llama_server_command)
    folder = tmp_path_factory.mktemp("server")
    model = make_tiny_model(folder / "tiny.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["-m", str(model), "--host", "127.0.0.1", "--port", str(port), "-c", "64", "-t", "1"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen([str(command), *arguments], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 60
            while b"listening on" not in (folder / "log").read_bytes():
                assert running.poll() is None, (folder / "log").read_text(errors="replace")[-2000:]
                assert time.monotonic() < end, "llama-server does not start"
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            running.kill()
            running.wait()


@pytest.fixture(autouse=True)
def what_is_shared_is_not_searched_for_garbage() -> None:
    """Tests share vocabularies: millions of objects, and going through them took most of the time of a run.

    What is garbage already is collected first, or it would never be.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def every_fix_mends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """In tests marked `tries_fixes`, each fix that is printed is done, and does what it is for (mending.py)."""
    if request.node.get_closest_marker("tries_fixes") is None:
        yield
        return
    base = tmp_path_factory.getbasetemp()
    mending.watch.folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fixes"
    mending.watch.folder.mkdir(exist_ok=True)
    yield
    failed = mending.watch.end(request.node.funcargs.get("tmp_path"))
    mending.watch.folder = None
    assert not failed, "\n".join(failed)
