"""Files that commands write: whole or not at all, over another one only by --force, and named in every error."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Run, assert_error, posix_only, run
from conftest import GPT2

from ggufbpe._util import files
from ggufbpe._util.files import replacing, write_files

__all__ = ["run"]  # the fixture

TRAIN = ["train", "text", "--vocab-size", "280", "--special", "<s>", "-o"]
WRITERS = {  # each command that writes a file, up to the file's name; all of them read the file "text"
    "way.html": ["explain", "-m", GPT2, "-f", "text", "--html"],
    "report.html": ["verify", "-m", GPT2, "--against", str(GPT2), "text", "--html"],
    "plot.svg": ["stats", "-m", GPT2, "text", "--plot"],
    "plot.png": ["stats", "-m", GPT2, "text", "--plot"],
    "vocab.gguf": TRAIN,
    "vocab.json": TRAIN,
    "vocab.txt": TRAIN,
    "merges.txt": ["export", "-m", GPT2, "--to", "merges.txt", "-o"],
    "fixed.gguf": ["fix", GPT2, "--set", "tokenizer.ggml.pre=olmo", "-o"],
}
writers = pytest.mark.parametrize("name", WRITERS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("Hello world, hello worlds")
    return tmp_path


@pytest.mark.slow
@writers
def test_a_file_that_is_there_is_replaced_only_by_force(name: str, run: Run, folder: Path) -> None:
    Path(name).write_text("mine")
    assert_error(run(*WRITERS[name], name), f"'{name}' already exists; --force overwrites it")
    assert Path(name).read_text() == "mine"
    assert run(*WRITERS[name], name, "--force").code == 0
    assert Path(name).read_bytes() != b"mine"
    assert not [each for each in os.listdir() if each.endswith(".partial")]


@pytest.mark.slow
@posix_only
@writers
def test_a_full_disk_leaves_what_was_there_and_names_the_file(name: str, folder: Path) -> None:
    """The system's own refusal, in the middle of the file: 70 bytes fit."""
    Path(name).write_text("mine")
    script = (
        "import contextlib, resource, sys\n"
        "from ggufbpe.cli import main\n"
        "with contextlib.suppress(ImportError):\n"
        "    import matplotlib.font_manager  # which writes a cache when it is first imported\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (70, 70))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, *map(str, WRITERS[name]), name, "--force"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (
        2,
        [f"ggufbpe: error: {name}: File too large"],
    )
    assert Path(name).read_text() == "mine"
    assert not [each for each in os.listdir() if each.endswith(".partial")]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder that takes no files, not even root's")
@writers
def test_a_folder_that_takes_no_files(name: str, run: Run, folder: Path) -> None:
    done = run(*WRITERS[name], f"/proc/{name}", "--force")
    assert done.code == 2
    assert f"/proc/{name}" in done.err
    assert ".partial" not in done.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@writers
def test_a_device_is_written_to_and_not_replaced(name: str, run: Run, folder: Path) -> None:
    device = folder / f"device{Path(name).suffix}"
    device.symlink_to("/dev/full")
    done = run(*WRITERS[name], device)
    assert (done.code, f"{device}: No space left on device" in done.err) == (2, True)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@posix_only
def test_a_link_stays_one_and_permissions_stay(folder: Path) -> None:
    Path("old").write_text("old")
    os.chmod("old", 0o640)
    Path("link").symlink_to("old")
    write_files({"link": b"new", "other": b"new"})
    assert (Path("link").is_symlink(), Path("old").read_text()) == (True, "new")
    modes = [stat.S_IMODE(os.stat(name).st_mode) for name in ("old", "other", "text")]
    assert (modes[0], modes[1]) == (0o640, modes[2])


@pytest.mark.parametrize("nameless", [0, files._NAMELESS])
def test_an_interruption_leaves_what_was_there(
    nameless: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_NAMELESS", nameless)

    def interrupted() -> None:
        with replacing("text") as (file, temporary):
            file.write(b"half")
            assert nameless or os.path.dirname(temporary) == os.path.realpath(folder)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (os.listdir(), Path("text").read_text()) == (["text"], "Hello world, hello worlds")


def test_a_missing_extra_is_named(run: Run, folder: Path) -> None:
    script = (
        "import sys; sys.modules['matplotlib.figure'] = None; from ggufbpe.cli import main; sys.exit(main())"
    )
    command = [*map(str, WRITERS["plot.svg"]), "plot.svg"]
    done = subprocess.run(
        [sys.executable, "-c", script, *command], capture_output=True, text=True, timeout=60
    )
    message = "ggufbpe: error: a plot takes the package matplotlib: pip install 'ggufbpe[plot]'\n"
    assert (done.returncode, done.stderr) == (2, message)
