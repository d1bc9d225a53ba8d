"""The manifest: the inputs, settings and tokenizer of shards, and the contents of each shard.

While the work goes on, the file is unfinished.json: a JSON object, and behind it one line of JSON for each further
shard. When it is done, the file is manifest.json, a JSON object alone. Equal inputs, settings and tokenizers give equal
manifests, byte for byte: a manifest has no date and no number of workers.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .chunks import FIRST, CorpusPlace
from .corpus_files import absolute_path
from .document_notes import DocumentFacts, all_facts
from .hashed_files import FileFacts
from .marked_ids import IS_WRITTEN
from .records import CorpusError
from .shard_names import HEAD, has_manifest, written_among
from .shard_names import INPUTS as INPUTS
from .shard_names import MANIFEST as MANIFEST
from .shard_names import UNFINISHED as UNFINISHED
from .storage import Folder, Input

VERSION = 2
# What shards cannot be read without, and the totals of a finished run.
_HEADER = {"format": str, "dtype": str, "tokenizer": dict, "settings": dict}
_END = b"\n}\n"  # of a manifest; nothing else in it begins a line with a brace
_TOTALS = ("documents", "rows", "tokens", "bad_records")


class Shard(NamedTuple):
    """A finished shard.

    `name` is what the names of its `files` begin with. `documents` counts the documents that end in it, `rows` its rows
    (documents, or windows of a fixed length), `tokens` its ids, `text_bytes` the bytes of its texts, and `bad_records`
    the records that were left out. `start` is where its first document begins in the corpus, and `carried` counts the
    ids before that, which belong to earlier documents. `assistant_tokens` counts the ids that the assistant wrote; None
    without a mask. `padding_tokens` counts the ids of padding; None unless documents are kept whole. `lengths`,
    `longest` and `notes` are those of `DocumentFacts`.
    """

    name: str
    documents: int
    rows: int
    tokens: int
    text_bytes: int
    bad_records: int
    start: CorpusPlace
    carried: int
    files: list[FileFacts]
    assistant_tokens: int | None = None
    lengths: dict[str, int] | None = None
    longest: int | None = None
    notes: dict[str, int] | None = None
    padding_tokens: int | None = None

    @property
    def facts(self) -> DocumentFacts:
        """How long its documents are, and what else is worth knowing of them."""
        return DocumentFacts(self.lengths, self.longest, self.notes)


class Tail(NamedTuple):
    """What comes after the last shard: documents without a full row, bad records, ids that do not fill a window."""

    documents: int
    text_bytes: int
    bad_records: int
    ids: list[int]
    facts: DocumentFacts = DocumentFacts()


class RunState(NamedTuple):
    """The state of a run: its finished shards, and where the next one begins."""

    header: dict[str, Any]
    shards: list[Shard]
    place: CorpusPlace = FIRST
    carry: Sequence[int] = ()  # ids that do not fill a window yet

    @property
    def _next(self) -> dict[str, Any]:
        return {"place": self.place._asdict(), "carry": list(self.carry)}

    def write(self, folder: Folder) -> int:
        """Write it to `unfinished.json`, and return its size in bytes."""
        shards = [_plain(shard) for shard in self.shards]
        data = to_json({**self.header, "shards": shards, "next": self._next})
        folder.write(UNFINISHED, data)
        return len(data)

    def last_shard(self) -> bytes:
        """The line that adds the last shard to `unfinished.json`."""
        return json.dumps({"shard": _plain(self.shards[-1]), "next": self._next}).encode() + b"\n"


def unfinished(folder: Folder) -> RunState | None:
    """The state of an unfinished run; None if there is none."""
    try:
        content, added = _read(folder, UNFINISHED)
    except FileNotFoundError:
        return None
    try:
        shards, following = [_shard(shard) for shard in content.pop("shards")], content.pop("next")
        for number, line in enumerate(added, 1):
            try:
                entry = json.loads(line)
            except ValueError:
                if number < len(added):
                    raise
                break  # a kill cut the last one off
            shards.append(_shard(entry["shard"]))
            following = entry["next"]
        return RunState(content, shards, CorpusPlace(**following["place"]), following["carry"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise damaged(folder, UNFINISHED) from None


def finish(folder: Folder, state: RunState, tail: Tail) -> dict[str, Any]:
    """Write the manifest of a finished run."""
    content = {**state.header, **totals(state.shards)}
    for name in ("documents", "text_bytes", "bad_records"):
        content[name] += getattr(tail, name)
    content["left_over_tokens"] = len(tail.ids)
    if "assistant_tokens" in content and tail.ids:
        content["left_over_assistant_tokens"] = sum(token >= IS_WRITTEN for token in tail.ids)
    facts = all_facts([*(shard.facts for shard in state.shards), *([tail.facts] if tail.documents else [])])
    content |= {name: value for name, value in facts._asdict().items() if value is not None}
    content["shards"] = [_plain(shard) for shard in state.shards]
    folder.write(MANIFEST, to_json(content))
    if UNFINISHED in folder.names():
        folder.remove(UNFINISHED)
    return content


def totals(shards: Iterable[Shard]) -> dict[str, int]:
    """The totals of shards."""
    every = list(shards)
    counted = ["documents", "rows", "tokens", "text_bytes", "bad_records"]
    for name in ("assistant_tokens", "padding_tokens"):
        if any(getattr(shard, name) is not None for shard in every):
            counted.append(name)
    return {name: sum(getattr(shard, name) for shard in every) for name in counted}


def read_manifest(folder: Folder) -> tuple[dict[str, Any], list[Shard]]:
    """The manifest, and its shards. `CorpusError` if there is none."""
    try:
        content, added = _read(folder, MANIFEST)
    except NotADirectoryError:
        raise CorpusError(f"{folder.name} is a file; give the folder that ggufbpe encode wrote") from None
    except FileNotFoundError:
        if UNFINISHED in folder.names():
            raise CorpusError(
                f"{folder.name}: encoding was not finished; ggufbpe encode … --resume goes on"
            ) from None
        raise CorpusError(
            f"{folder.name}: no shards that ggufbpe encode wrote: there is no {MANIFEST}"
        ) from None
    if any(added) or not all(isinstance(content.get(name), int) for name in _TOTALS):
        raise damaged(folder, MANIFEST)
    try:
        return content, [_shard(shard) for shard in content["shards"]]
    except (KeyError, TypeError):
        raise damaged(folder, MANIFEST) from None


def begin_run(folder: Folder, state: RunState, inputs: Iterable[Input]) -> None:
    """Replace what an earlier run wrote by the inputs and the state of a run without shards."""
    remove_written(folder)
    folder.write(INPUTS, _lines_of(inputs))
    state.write(folder)


def summary_of_inputs(inputs: Sequence[Input]) -> dict[str, Any]:
    """What the manifest says of the list of inputs."""
    return {
        "files": len(inputs),
        "bytes": sum(given.size for given in inputs),
        "sha256": hashlib.sha256(_lines_of(inputs)).hexdigest(),
    }


def _lines_of(inputs: Iterable[Input]) -> bytes:
    return b"".join(json.dumps(given._asdict()).encode() + b"\n" for given in inputs)


def read_inputs(folder: Folder) -> list[Input]:
    """The inputs as they were. `CorpusError` for a list that `begin_run` did not write."""
    try:
        return [Input(**json.loads(line)) for line in folder.read(INPUTS).splitlines()]
    except (TypeError, ValueError, RecursionError):
        raise damaged(folder, INPUTS) from None


def changed_input(before: Sequence[Input], now: Sequence[Input]) -> str:
    """How the inputs have changed, in words; "" if they have not, whatever paths they are named by."""
    old, new = ({absolute_path(given.path): given for given in every} for every in (before, now))
    for place in [*old, *new]:
        if place not in new:
            return f"{old[place].path} is gone"
        if place not in old:
            return f"{new[place].path} is new"
        if old[place]._replace(path="") != new[place]._replace(path=""):
            return f"{new[place].path} was changed"
    if [absolute_path(given.path) for given in before] != [absolute_path(given.path) for given in now]:
        return "the order or number of the inputs has changed"
    return ""


def changed_setting(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """How the header of a run differs from that of an earlier one, in words; "" if it does not."""
    for name in now:
        old_parts, new_parts = _flat(name, before.get(name)), _flat(name, now[name])
        for part, new in new_parts.items():
            old = old_parts.get(part)
            if old != new:
                if part == "padding" and None in (old, new):  # the argument is `whole`
                    part, old, new = "whole", old is not None, new is not None
                return f"{part} {old}, not {new}"
    return ""


def written_names(folder: Folder) -> list[str]:
    """The files of a folder that an earlier run wrote."""
    return written_among(folder.names())


def remove_written(folder: Folder) -> None:
    """Remove these files. What tells whose they are comes last, so that after a kill the next run knows it."""
    last = (MANIFEST, UNFINISHED, INPUTS)
    for name in sorted(written_names(folder), key=lambda name: last.index(name) + 1 if name in last else 0):
        folder.remove(name)


def has_no_shards(folder: Folder) -> bool:
    """Whether a run was begun and finished no shard."""
    try:
        state = unfinished(folder)
    except CorpusError:
        return False
    return state is not None and not state.shards and MANIFEST not in folder.names()


def is_begun(folder: Folder) -> bool:
    """Whether a run has begun to write to a folder. `FileExistsError` for files of others with the names of shards."""

    def head_of(name: str) -> bytes:
        with folder.open(name) as file:
            return file.read(HEAD)

    written = written_names(folder)
    if has_manifest(written, head_of):
        return True
    if written and not (written == [INPUTS] and _has_inputs(folder)):  # a run that was killed at once
        raise FileExistsError(
            f"{folder.name}/{written[0]} has the name of a file that encoding writes; give another folder"
        )
    return False


def _has_inputs(folder: Folder) -> bool:
    """Whether the list of inputs is one that `begin_run` wrote."""
    try:
        read_inputs(folder)
    except CorpusError:
        return False
    return True


def require_others(inputs: Iterable[Input], folder: Folder) -> None:
    """`CorpusError` if one of the inputs is a file that writing to the folder would replace."""
    place = os.path.realpath(folder.name)
    for given in inputs:
        head, name = os.path.split(os.path.realpath(given.path))
        if head == place and written_among([name]):
            raise CorpusError(
                f"{given.path} has the name of a file that encoding writes to {folder.name}; "
                "give another folder for the shards"
            )


def to_json(content: Mapping[str, Any]) -> bytes:
    """A manifest as the bytes of its JSON file."""
    return json.dumps(content, indent=1).encode() + b"\n"


def _plain(shard: Shard) -> dict[str, Any]:
    files = [file._asdict() for file in shard.files]
    entry = {**shard._asdict(), "start": shard.start._asdict(), "files": files}
    return {name: value for name, value in entry.items() if value is not None}


def _shard(entry: dict[str, Any]) -> Shard:
    return Shard(
        **{**entry, "start": CorpusPlace(**entry["start"]), "files": [FileFacts(**f) for f in entry["files"]]}
    )


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A part of the header, with a name for each value."""
    if not isinstance(value, dict):
        return {name: value}
    return {part if name == "settings" else f"{name} {part}": one for part, one in value.items()}


def _read(folder: Folder, name: str) -> tuple[dict[str, Any], list[bytes]]:
    """A manifest, and the lines behind it."""
    data, end, added = folder.read(name).partition(_END)
    try:
        content = json.loads(data + end)
    except RecursionError:
        raise damaged(folder, name) from None
    except ValueError as error:
        raise CorpusError(f"{folder.name}/{name}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise damaged(folder, name)
    if content.get("version") != VERSION:
        raise CorpusError(f"{folder.name}/{name}: not of version {VERSION}, which this ggufbpe writes")
    if not all(isinstance(content.get(part), kind) for part, kind in _HEADER.items()):
        raise damaged(folder, name)
    return content, added.splitlines()


def damaged(folder: Folder, name: str) -> CorpusError:
    """Return the error of a file in a folder of shards that is not as it was written."""
    return CorpusError(f"{folder.name}/{name}: not what ggufbpe writes")
