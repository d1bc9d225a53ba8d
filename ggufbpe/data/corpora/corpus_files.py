"""Lists the files of a corpus: those named, and those in directories named, on this machine or behind URLs.

In directories, all commands that take texts leave out hidden and binary files, links and special files, what
`encode_corpus` wrote, archives, and files that are compressed otherwise than by .gz or .zst. Behind a URL, which fsspec
lists and reads, all files are regular, and only tables are known to be binary.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import IO, Any, NamedTuple

from ..._util.extras import file_system_at
from .records import ARCHIVED, COMPRESSED, CorpusError, Report, decompressed, is_binary_table, unread_kind
from .shard_names import HEAD, shards_among

_HEAD_SIZE = 8000  # where a NUL makes a file binary; buffer_is_binary in git's xdiff-interface.c
_OF_A_REPOSITORY = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"})


# Files of a folder that `save_to_disk` of the package datasets writes, of a dataset and of several.
_SAVED = (frozenset({"dataset_info.json", "state.json"}), frozenset({"dataset_dict.json"}))


_SHARDS = "written by ggufbpe encode"
NEVER_READ = frozenset({_SHARDS, ARCHIVED, COMPRESSED})  # of what is left out: also where it is named


class File(NamedTuple):
    """A file, and the path named on the command line: the file, or a directory above it."""

    path: str
    size: int  # bytes on disk
    root: str
    version: str = ""  # by the listing of a storage; see `file_version`


def files_of(
    paths: Iterable[str],
    skipped: Counter[str],
    report: Report,
    ignored_in: Callable[[str], frozenset[str]] | None = None,
    tables: bool = False,
) -> Iterator[File]:
    """The files named, and those in the directories named, sorted by name in each.

    Files left out of directories are counted in `skipped`, by kind. Errors go to `report`. `ignored_in` gives further
    paths to leave out below a directory. It is called for each directory named, and for each repository below it, since
    git ignores files of one repository only. With `tables`, parquet and arrow files are not taken for binary ones.
    """
    for root in paths:
        if is_url(root):
            try:
                yield from _files_at(root, skipped, tables)
            except FileNotFoundError:  # storages word it each in its way
                report(root, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), root))
            except (OSError, CorpusError) as error:
                report(root, error)
            continue
        to_visit = [root]
        ignored: set[str] = set()
        while to_visit:
            path = to_visit.pop()
            if path in ignored:
                skipped["ignored by git"] += 1
                continue
            try:
                status = os.stat(path) if path == root else os.lstat(path)
                if stat.S_ISDIR(status.st_mode):
                    names = sorted(os.listdir(path), reverse=True)
                    if ignored_in is not None and (path == root or ".git" in names):
                        ignored |= ignored_in(path)
                    shown = [name for name in names if not name.startswith(".")]
                    skipped["hidden"] += len(names) - len(shown)
                    if tables and any(each <= set(names) for each in _SAVED):
                        shown = [name for name in shown if not any(name in each for each in _SAVED)]
                        skipped["metadata of a saved dataset"] += 1
                    shards = shards_among(names, partial(_head, open, os.path.join(path, "")))
                    skipped[_SHARDS] += len(shards)
                    shown = [name for name in shown if name not in shards]
                    to_visit += [os.path.join(path, name) for name in shown]
                elif path != root and not stat.S_ISREG(status.st_mode):
                    skipped["link or special"] += 1
                elif path != root and (kind := unread_kind(path)):
                    skipped[kind] += 1
                elif path != root and not (tables and is_binary_table(path)) and _is_binary(path):
                    skipped["binary"] += 1
                else:
                    yield File(path, status.st_size, root)
            except OSError as error:
                report(path, error)


# ---- behind URLs ----------------------------------------------------------------------------------------


def is_url(path: str) -> bool:
    """Whether a path is one for fsspec."""
    return "://" in path


def absolute_path(path: str) -> str:
    """A path that is equal for all names of a file, apart from links, and the same in every folder; a URL as it is."""
    return path if is_url(path) else os.path.abspath(path)


def find_storage(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. `CorpusError` where nothing reads such URLs."""
    try:
        return file_system_at(url, "corpora")
    except ValueError as error:
        raise CorpusError(str(error)) from None


def open_file(path: str) -> IO[bytes]:
    """A file of this machine or behind a URL, to be read."""
    if not is_url(path):
        return open(path, "rb")
    system, place = find_storage(path)
    file: IO[bytes] = system.open(place, "rb")
    return file


def _files_at(url: str, skipped: Counter[str], tables: bool) -> Iterator[File]:
    system, place = find_storage(url)
    scheme = url.partition("://")[0]
    # Over HTTP any page with links looks like a directory.
    is_folder = url.endswith("/") if scheme in ("http", "https") else system.isdir(place)
    details = system.find(place, detail=True) if is_folder else {place: system.info(place)}
    shards = _shards_below(details, system) if is_folder else frozenset()
    for name, facts in sorted(details.items()):
        below = name.removeprefix(place) if is_folder else ""
        if any(part.startswith(".") for part in below.split("/")):
            skipped["hidden"] += 1
        elif name in shards:
            skipped[_SHARDS] += 1
        elif is_folder and (kind := unread_kind(name)):
            skipped[kind] += 1
        elif is_folder and not tables and is_binary_table(name):
            skipped["binary"] += 1
        else:
            path = name if is_url(name) else f"{scheme}://{name}"
            yield File(path, facts["size"] or 0, url, file_version(facts))


def _shards_below(paths: Iterable[str], system: Any) -> frozenset[str]:
    """Those of the paths that are of files which `encode_corpus` wrote."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, slash, name = path.rpartition("/")
        folders[folder + slash].append(name)

    return frozenset(
        folder + name
        for folder, names in folders.items()
        for name in shards_among(names, partial(_head, system.open, folder))
    )


def _head(opened: Callable[[str, str], IO[bytes]], folder: str, name: str) -> bytes:
    """The first bytes of a file; none if it cannot be read, which is told when it is read as a text."""
    with suppress(OSError), opened(folder + name, "rb") as file:
        return file.read(HEAD)
    return b""


# What fsspec's file systems give alike in a listing and of one file; other times are often rounded in one of them.
_VERSIONS = ("ETag", "etag", "md5Hash", "blob_id", "sha", "mtime", "created")


def file_version(facts: Mapping[str, Any]) -> str:
    """What changes with the content of a file, by what its storage says of it; "" where it says nothing of the kind.

    >>> file_version({"etag": '"1b2"', "mtime": 5}), file_version({"size": 3})
    ('1b2', '')
    """
    version = next((facts[name] for name in _VERSIONS if facts.get(name)), "")
    return str(version.timestamp() if isinstance(version, datetime) else version).strip('"')


# ---- of this machine ------------------------------------------------------------------------------------


def ignored_by_git(folder: str) -> frozenset[str]:
    """What git ignores in a directory of a repository: paths as `files_of` makes them, one per ignored directory.

    Empty if the directory is in no repository or is itself ignored, or if git is not installed.
    """
    import subprocess

    # A repository can name a program in fsmonitor that git would run. In hooks, variables name another repository.
    git = ["git", "-C", folder, "-c", "core.fsmonitor=false"]
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}

    def asked(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*git, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=environment
        )

    try:
        listed = asked("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        if listed.returncode or not asked("check-ignore", "-q", ".").returncode:
            return frozenset()
    except OSError:
        return frozenset()
    names = (os.fsdecode(name).rstrip("/") for name in listed.stdout.split(b"\0"))
    return frozenset(os.path.join(folder, name) for name in names if name not in ("", "."))


def _is_binary(path: str) -> bool:
    """Whether there is a NUL near the beginning of what the file decompresses to."""
    with open(path, "rb") as raw:
        try:
            with decompressed(raw, path) as stream:
                return b"\0" in stream.read(_HEAD_SIZE)
        except CorpusError:
            return False  # it is reported when the file is read
