"""SIGTERM as an exception (cli/_signals.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from ggufbpe.cli._signals import EXIT_TERMINATED, interruption_as_stop, termination_as_exit

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")


def test_the_work_is_cleaned_up_and_the_handler_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    done: list[str] = []

    def work() -> None:
        with termination_as_exit():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("went on")
            finally:
                done.append("cleaned up")

    with pytest.raises(SystemExit) as raised:
        work()
    assert (raised.value.code, done) == (EXIT_TERMINATED, ["cleaned up"])
    assert EXIT_TERMINATED == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_a_signal_nothing_changes() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with termination_as_exit():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(ValueError, match="mine"), termination_as_exit():
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_has_no_signals() -> None:
    found: list[object] = []

    def work() -> None:
        with termination_as_exit():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


def test_an_interruption_stops_and_the_second_one_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    told: list[str] = []
    with interruption_as_stop(lambda: told.append("once")) as is_stopped:
        assert not is_stopped()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stopped()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert told == ["once"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm")
def test_work_that_hangs_is_interrupted_by_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggufbpe.cli._signals._PATIENCE", 0.01)
    with interruption_as_stop(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            threading.Event().wait(60)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("module", ["ggufbpe.cli._arguments", "ggufbpe.cli.tokenize", "ggufbpe.native"])
def test_an_interruption_while_modules_are_imported_is_no_traceback(module: str) -> None:
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from ggufbpe.cli import main\n"
        "sys.argv[1:] = ['tokenize', '-p', 'a']\n"
        "sys.exit(main())\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (found.returncode, found.stderr) == (130, b"")
