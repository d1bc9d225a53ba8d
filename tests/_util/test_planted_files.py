"""Files planted beside a model, or in a folder that others may write to: none is written through, followed or replaced.

And what a killed process left: nothing, or a file that the next run deletes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import GPT2
from fix_cases import PRE, metadata, write_model

import ggufbpe
from ggufbpe import InterruptedChangeError
from ggufbpe._util import files
from ggufbpe._util.files import opened_regular, remove_abandoned, replacing, undo_record
from ggufbpe.cli import main
from ggufbpe.data.corpora.storage import LocalFolder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and locks of POSIX systems")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return write_model(folder / "m.gguf")


@pytest.fixture(params=["nameless files", "names"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to write a file that appears whole."""
    if request.param == "names":
        monkeypatch.setattr(files, "_NAMELESS", 0)
    return str(request.param)


# ---- the undo record ------------------------------------------------------------------------------------

PLANTED: dict[
    str, tuple[Callable[[Path, Path], object], str]
] = {  # in the record's place: (how, what it is called)
    "a link to a file": (lambda place, other: place.symlink_to(other), "a symbolic link"),
    "a link to nothing": (
        lambda place, other: place.symlink_to(other.with_name("missing")),
        "a symbolic link",
    ),
    "a link to itself": (lambda place, other: place.symlink_to(place), "a symbolic link"),
    "a link to a folder": (lambda place, other: place.symlink_to(other.parent), "a symbolic link"),
    "a second name": (lambda place, other: os.link(other, place), "another file"),
    "a file": (lambda place, other: place.write_bytes(b"mine"), "another file"),
    "a folder": (lambda place, other: place.mkdir(), "a directory"),
    "a pipe": (lambda place, other: os.mkfifo(place), "a device or a pipe"),
}


def state(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """The mode and the content of everything in a folder; links are not followed."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = os.lstat(path).st_mode
        is_link, is_file = path.is_symlink(), path.is_file()
        found[path.name] = mode, os.readlink(path) if is_link else path.read_bytes() if is_file else b""
    return found


@pytest.mark.parametrize("kind", PLANTED)
def test_what_lies_in_the_place_of_the_undo_record_is_refused_by_name(
    kind: str, way: str, model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    victim, record = model.parent.parent / "victim", Path(undo_record(model))
    victim.write_text("precious")
    plant, words = PLANTED[kind]
    plant(record, victim)
    before = state(model.parent.parent)
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 2
    assert f"{record.name}' is {words}" in capfd.readouterr().err
    with pytest.raises(InterruptedChangeError, match="remove it; the model is unchanged"):
        ggufbpe.fix(model, in_place=True, set={PRE: "olmo"}, force=True)
    assert state(model.parent.parent) == before


def test_a_model_behind_a_link_has_its_record_beside_itself(model: Path) -> None:
    """In the folder of the link, nothing is written."""
    folder = model.parent.parent / "links"
    folder.mkdir()
    (folder / "m.gguf").symlink_to(model)
    (folder / ".m.gguf.undo").symlink_to(model.parent / "missing")
    assert main(["fix", str(folder / "m.gguf"), "--set", f"{PRE}=olmo", "--in-place"]) == 0
    assert (metadata(model)[PRE], os.listdir(model.parent)) == ("olmo", [model.name])


# ---- other files whose names the user did not type --------------------------------------------------------


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("Hello world\n" * 50)
    return path


@pytest.mark.parametrize("name", [".shard-00000.bin.partial", "manifest.json", ".manifest.json.partial"])
@pytest.mark.parametrize("target", ["victim", "missing"])
def test_encode_writes_through_no_link_in_its_folder(
    name: str, target: str, text: Path, tmp_path: Path
) -> None:
    """Planted after the folder was cleaned, as by somebody who waits for that."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = LocalFolder(str(tmp_path / "out"))
    folder.prepare()
    try:
        (tmp_path / "out" / name).symlink_to(tmp_path / target)
        folder.write("manifest.json", b"{}")
        shard = folder.create("shard-00000.bin")
        shard.file.write(b"ids")
        shard.finish()
    finally:
        folder.release()
    assert (victim.read_text(), (tmp_path / "missing").exists()) == ("precious", False)
    assert (folder.read("manifest.json"), folder.read("shard-00000.bin")) == (b"{}", b"ids")


def test_encode_deletes_a_link_to_a_folder_and_not_the_folder(text: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".part-00000.bin.partial").symlink_to(precious)
    assert main(["encode", "-m", str(GPT2), str(text), "-o", str(tmp_path / "out")]) == 0
    assert (precious / "file").read_text() == "mine"
    assert not [name for name in os.listdir(tmp_path / "out") if name.endswith(".partial")]


def test_a_cache_in_a_folder_of_others_is_not_written_through_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ggufbpe.analysis.doctor.local_models import _Verdicts

    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    victim, verdicts = tmp_path / "victim", tmp_path / "cache" / "verdicts.json"
    victim.write_text("precious")
    verdicts.symlink_to(victim)
    kept = _Verdicts()
    kept.of("digest", str(GPT2))
    kept.save()
    assert (victim.read_text(), list(json.loads(verdicts.read_text()))) == ("precious", ["digest"])


# ---- what killed processes leave --------------------------------------------------------------------------

KILLED = """if True:
    import os, sys
    from ggufbpe._util import files
    from ggufbpe.cli import main
    from ggufbpe.gguf import edit
    if sys.argv.pop(1) == "names":
        files._NAMELESS = 0
    copy, put = edit._copy, files._put
    def killed(*arguments):
        copy(*arguments)
        os.kill(os.getpid(), 9)
    def killed_after(*arguments):
        put(*arguments)
        os.kill(os.getpid(), 9)
    {"copied": lambda: setattr(edit, "_copy", killed), "put": lambda: setattr(files, "_put", killed_after)}[
        sys.argv.pop(1)
    ]()
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [["-o"], ["-o", "--force"], ["--in-place"]])
@pytest.mark.parametrize("moment", ["copied", "put"])
def test_kill_9_leaves_nothing_or_what_the_next_fix_deletes(
    how: list[str], moment: str, way: str, model: Path
) -> None:
    before, out = model.read_bytes(), model.with_name("out.gguf")
    if "--force" in how:
        out.write_bytes(b"old")
    target = [how[0], str(out), *how[1:]] if how[0] == "-o" else how
    change = ["--set", f"general.name={'x' * 300}", *target]
    process = [sys.executable, "-c", KILLED, way, moment, "fix", str(model), *change]
    assert subprocess.run(process, timeout=60).returncode == -signal.SIGKILL
    left = [name for name in os.listdir(model.parent) if name.endswith(".partial")]
    assert len(left) == (way == "names" and moment == "copied")
    if moment == "copied":
        assert model.read_bytes() == before
        assert not out.exists() or out.read_bytes() == b"old"
    out.unlink(missing_ok=True)
    assert main(["fix", str(model), *change]) == 0
    assert not [name for name in os.listdir(model.parent) if name.startswith(".")]
    assert metadata(out if how[0] == "-o" else model)["general.name"] == "x" * 300


def test_a_fix_in_place_deletes_what_a_killed_copy_left(model: Path) -> None:
    """Also one of an earlier version, whose names were the same."""
    (model.parent / ".m.gguf.0123abcd.partial").write_bytes(b"half")
    (model.parent / "..m.gguf.undo.0123abcd.partial").write_bytes(b"half")
    assert main(["fix", str(model), "--set", f"{PRE}=olmo", "--in-place"]) == 0
    assert os.listdir(model.parent) == [model.name]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes the file "out", and waits in the middle."""
    script = (
        "import sys\n"
        "from ggufbpe._util import files\n"
        "files._NAMELESS = 0\n"
        "with files.replacing(sys.argv[1]) as (file, path):\n"
        "    file.write(b'whole')\n"
        "    print('begun', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield process


def test_a_file_that_another_process_is_writing_is_not_deleted(
    writer: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    remove_abandoned(str(tmp_path / "out"))
    assert len(os.listdir(tmp_path)) == 1
    writer.communicate()
    assert (writer.returncode, os.listdir(tmp_path)) == (0, ["out"])
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_only_files_with_names_of_ours_are_deleted(tmp_path: Path) -> None:
    kept = ["out", ".out.partial", ".out.0123abcd.part", ".other.0123abcd.partial", ".out.0123ABCD.partial"]
    for name in [*kept, ".out.0123abcd.partial"]:
        (tmp_path / name).write_text("")
    (tmp_path / ".out.00000001.partial").symlink_to(tmp_path / "out")
    (tmp_path / ".out.00000002.partial").mkdir()
    os.mkfifo(tmp_path / ".out.00000003.partial")
    remove_abandoned(str(tmp_path / "out"))
    others = [f".out.0000000{number}.partial" for number in (1, 2, 3)]
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, *others])


# ---- the place of a new file --------------------------------------------------------------------------------


def test_a_file_that_came_meanwhile_is_overwritten_only_by_force(
    way: str, model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from ggufbpe.gguf import edit

    out, copy = model.with_name("out.gguf"), edit._copy

    def slow(*arguments: object) -> bool:
        out.write_bytes(b"of somebody else")
        return copy(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(edit, "_copy", slow)
    command = ["fix", str(model), "--set", f"{PRE}=olmo", "-o", str(out)]
    assert main(command) == 2
    assert "already exists; --force overwrites it" in capfd.readouterr().err
    assert (out.read_bytes(), sorted(os.listdir(model.parent))) == (
        b"of somebody else",
        ["m.gguf", "out.gguf"],
    )
    assert main([*command, "--force"]) == 0
    assert metadata(out)[PRE] == "olmo"


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_new_file_has_the_usual_permissions_both_ways(way: str, overwrite: bool, tmp_path: Path) -> None:
    with replacing(tmp_path / "new", overwrite=overwrite) as (file, path):
        file.write(b"data")
        file.flush()
        assert Path(path).read_bytes() == b"data"
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "new").read_bytes() == b"data"


def test_a_file_system_without_links_still_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files, "_NAMELESS", 0)
    monkeypatch.setattr(files.os, "link", refuse)
    for name, expected in (("new", b"data"), ("old", b"old")):
        (tmp_path / "old").write_bytes(b"old")
        try:
            with replacing(tmp_path / name, overwrite=False) as (file, _):
                file.write(b"data")
        except FileExistsError:
            assert name == "old"
        assert (tmp_path / name).read_bytes() == expected
    assert sorted(os.listdir(tmp_path)) == ["new", "old"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_only_regular_files_are_opened_and_links_where_they_may_be_followed(tmp_path: Path) -> None:
    file, link, pipe = (tmp_path / name for name in ("file", "link", "pipe"))
    file.write_bytes(b"content")
    link.symlink_to(file)
    os.mkfifo(pipe)
    for path, follow in ((file, True), (file, False), (link, True)):
        with opened_regular(str(path), follow=follow) as opened:
            assert opened.read() == b"content"
    for path, follow in (
        (link, False),
        (pipe, True),
        (pipe, False),
        (tmp_path, True),
        (tmp_path / "none", True),
    ):
        with pytest.raises(OSError, match=r"symbolic|not a regular file|No such file"):
            opened_regular(str(path), follow=follow)
