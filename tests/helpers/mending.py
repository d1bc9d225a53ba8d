"""Does every fix that is printed while a test marked `tries_fixes` runs, and looks again at what it was printed for.

conftest.py puts this around each such test: what `diagnose` and `verify` say of a file is tried at once; what the
doctor says of the files that the test made, whether it asked for it or not, when the test is over. A fix that `fix`
refuses, or that leaves what it was printed for, fails the test that made the file. The same file and the same fix are
tried once, by whichever process comes first.

But: files that a test writes by itself and overwrites are not seen, and a tokenizer that is not what its file says has
no fixes to be tried.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import shlex
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import pytest
import reference

from ggufbpe import GGUFError, Tokenizer
from ggufbpe.analysis.diagnose import id_diagnosis as diagnosing
from ggufbpe.analysis.diagnose import prompt_diagnosis as chat_diagnosing
from ggufbpe.analysis.doctor import checks
from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.finding import Finding
from ggufbpe.analysis.doctor.merge_checks import unreachable
from ggufbpe.analysis.verify import id_comparison as verifying
from ggufbpe.cli import main
from ggufbpe.gguf.change import COMMAND
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers import families
from ggufbpe.models.vocabulary import Vocabulary
from ggufbpe.tokenizer.inputs import text_of, tokenizer_of

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.gguf"))
_MOST_DATA = 1 << 26  # bytes of a file that is looked at; larger ones have holes
_MOST_TEXT = 1 << 16  # bytes of texts that are compared a second time


class Watch:
    """What was seen of one test."""

    def __init__(self) -> None:
        self.folder: Path | None = None  # one for all processes, with a file for all that was tried
        self.failed: list[str] = []
        self.copies: dict[str, bytes] = {}  # by digest
        self.is_busy = False

    def is_new(self, *what: object) -> bool:
        """Whether nobody has tried this yet."""
        assert self.folder is not None
        name = hashlib.sha256(repr(what).encode("utf-8", "backslashreplace")).hexdigest()
        try:
            (self.folder / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    @contextmanager
    def busy(self) -> Iterator[bool]:
        """Whether to look at what is done; not at what is done by looking."""
        if self.is_busy or self.folder is None:
            yield False
            return
        self.is_busy = True
        try:
            yield True
        finally:
            self.is_busy = False

    def note(self, path: Path) -> None:
        """A file that may be changed or removed before the test is over."""
        if self.folder is not None and path.is_file() and path.stat().st_size <= _MOST_DATA:
            data = path.read_bytes()
            self.copies[hashlib.sha256(data).hexdigest()] = data

    def end(self, folder: Path | None) -> list[str]:
        """What is wrong with the fixes printed for the test, whose own folder is `folder`."""
        for path in sorted(folder.rglob("*.gguf")) if folder else ():
            self.note(path)
        copies, self.copies = self.copies, {}
        for digest, data in copies.items():
            if self.is_new("doctor", digest):
                self.failed += fixes_that_fail(data)[1]
        failed, self.failed = self.failed, []
        return failed


watch = Watch()


def fixes_that_fail(broken: Path | bytes) -> tuple[int, list[str]]:
    """How many commands the doctor has for a file, and those that `fix` refuses or that leave their finding."""
    with watch.busy(), tempfile.TemporaryDirectory() as folder:
        path = broken if isinstance(broken, Path) else Path(folder, "broken.gguf")
        if isinstance(broken, bytes):
            path.write_bytes(broken)
        try:
            found = _examined(path)
        except GGUFError:  # no sound GGUF
            return 0, []
        count, failed = 0, []
        for finding in found:
            for command in COMMAND.findall(finding.fix):
                count += 1
                fixed = done(command, folder)
                if fixed is None or any(
                    (left.id, left.where[:2]) == (finding.id, finding.where[:2]) for left in _examined(fixed)
                ):
                    failed.append(f"doctor, {finding.id}: {command}")
        return count, failed


def _examined(path: Path) -> tuple[Finding, ...]:
    """All findings but of the check that takes longest and never has a fix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "CHECKS", tuple(c for c in checks.CHECKS if c is not unreachable))
        return doctor(path).findings


def done(command: str, folder: str | Path) -> Path | None:
    """The file that a command as it is printed makes, in `folder`; None where it is refused."""
    fixed = Path(folder, "fixed.gguf")
    fixed.unlink(missing_ok=True)
    words = [_template(folder) if word == "FILE" else word for word in shlex.split(command)[1:]]
    arguments = [*words[:-1], "-o"] if words[-1] == "--in-place" else words[:-1]
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())), redirect_stderr(io.StringIO()):
        return fixed if main([*arguments, str(fixed)]) == 0 else None


def _template(folder: str | Path) -> str:
    """The file of a chat template that any model can have, since it has no markers."""
    path = Path(folder, "template.jinja")
    path.write_text(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    return str(path)


def watch_everything() -> None:
    """Look at all that writes files, diagnoses and verifies; before tests import it."""
    reference.with_pre = _noting(reference.with_pre)
    reference.write_metadata = _noting(reference.write_metadata)
    diagnosing.diagnose = _watched_diagnose(diagnosing.diagnose)
    chat_diagnosing.diagnose_prompt = _watched_prompt(chat_diagnosing.diagnose_prompt)
    verifying.ids_compared = _watched_verify(verifying.ids_compared)
    weighed = lru_cache(maxsize=2)(families.families)  # of copies that have the tokens of the one before
    families.families = lambda made: list(weighed(frozenset(made)))


def _noting(write: Callable[..., Path]) -> Callable[..., Path]:
    @wraps(write)
    def noting(*arguments: Any, **options: Any) -> Path:
        path = write(*arguments, **options)
        if path.name != "changes.gguf":  # of with_pre, which makes a file of it
            watch.note(path)
        return path

    return noting


def _watched_diagnose(diagnose: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(diagnose)
    def watched(model: Any, text: Any = None, ids: Any = None, **options: Any) -> Any:
        tokenizer, text = tokenizer_of(model), text if text is None else text_of(text)
        given = ids if ids is None else list(ids)
        found = diagnose(tokenizer, text, given, **options)
        with watch.busy() as is_watched:
            if is_watched and any(item.fix for item in found.explanations) and is_as_its_file(tokenizer):
                watch.failed += _left_by_diagnose(diagnose, tokenizer, text, given, options, found)
        return found

    return watched


def _left_by_diagnose(
    diagnose: Callable[..., Any], tokenizer: Tokenizer, text: bytes | None, ids: Any, options: Any, found: Any
) -> Iterator[str]:
    """The fixes after which the model does not give the ids, but for causes that are not in the file."""
    path = tokenizer.vocabulary.path
    for item in found.explanations:
        if item.explains < 1 or not item.fix or not watch.is_new(_digest(path), text, ids, options, item.fix):
            continue
        elsewhere = {cause.id for cause in item.causes if not cause.change}
        with tempfile.TemporaryDirectory() as folder:
            fixed = done(item.fix, folder)
            again = fixed and diagnose(_of_file(fixed), text, ids, **options)
            left = again and [
                {cause.id for cause in each.causes} for each in again.explanations if each.explains == 1
            ]
            if not again or not (again.match or (elsewhere and any(each <= elsewhere for each in left))):
                yield f"diagnose, {[cause.id for cause in item.causes]}: {item.fix}, then {left}"


def _watched_prompt(diagnose_prompt: Callable[..., Any]) -> Callable[..., Any]:
    """As verify asks it of chats, and diagnose of a prompt."""

    @wraps(diagnose_prompt)
    def watched(tokenizer: Tokenizer, chat: Any, expected: bytes, *others: Any) -> Any:
        found = diagnose_prompt(tokenizer, chat, expected, *others)
        with watch.busy() as is_watched:
            if is_watched and any(item.fix for item in found.explanations) and is_as_its_file(tokenizer):
                watch.failed += _left_by_prompt(diagnose_prompt, tokenizer, chat, expected, found)
        return found

    return watched


def _left_by_prompt(
    diagnose_prompt: Callable[..., Any], tokenizer: Tokenizer, chat: Any, expected: bytes, found: Any
) -> Iterator[str]:
    """The fixes after which the model does not give the prompt, but for causes that are not in the file."""
    path = tokenizer.vocabulary.path
    for item in found.explanations:
        if item.explains < 1 or not item.fix or not watch.is_new(_digest(path), chat, expected, item.fix):
            continue
        with tempfile.TemporaryDirectory() as folder:
            fixed = done(item.fix, folder)
            again = fixed and diagnose_prompt(_of_file(fixed), chat, expected)
            elsewhere = [cause.id for cause in item.causes if not cause.change]
            left = again and [cause.id for each in again.explanations[:1] for cause in each.causes]
            if left is None or left != elsewhere:
                yield f"the prompt, {[cause.id for cause in item.causes]}: {item.fix}, then {left}"


def _watched_verify(verify: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verify)
    def watched(tokenizer: Tokenizer, oracle: Any, texts: Iterable[Any], **options: Any) -> Any:
        again = copy.copy(oracle)
        if hasattr(oracle, "_rest"):  # recorded ids are given once
            again._rest = list(oracle._rest)
        seen: list[Any] = []
        size = 0

        def kept() -> Iterator[Any]:
            nonlocal size
            for text in texts:
                size += len(text.data)
                if size <= _MOST_TEXT:
                    seen.append(text)
                yield text

        found = verify(tokenizer, oracle, kept(), **options)
        with watch.busy() as is_watched:
            if is_watched and found.fix and size <= _MOST_TEXT and is_as_its_file(tokenizer):
                watch.failed += _left_by_verify(verify, tokenizer, again, seen, options, found)
        return found

    return watched


def _left_by_verify(
    verify: Callable[..., Any], tokenizer: Tokenizer, oracle: Any, texts: list[Any], options: Any, found: Any
) -> Iterator[str]:
    """The fix, if differences are left after it whose causes are in the file."""
    data = [text.data for text in texts]
    whole = [difference for difference in found.differences if difference.explains == 1]
    if not whole or not watch.is_new(_digest(tokenizer.vocabulary.path), data, oracle.name, found.fix):
        return
    elsewhere = {cause.id for one in whole for cause in one.causes if not cause.change}
    elsewhere = elsewhere or found.proposal.explained < found.proposal.differing
    with tempfile.TemporaryDirectory() as folder:
        fixed = done(found.fix, folder)
        if fixed is None:
            yield f"verify: {found.fix} is refused"
            return
        options = {name: option for name, option in options.items() if name != "progress"}
        left = verify(Tokenizer(load_vocabulary(fixed)), oracle, texts, **options)
        causes = {cause.id for one in left.differences for cause in one.causes if cause.change}
        if left.fix if elsewhere else not left.same:
            yield f"verify: {found.fix} leaves {causes or left.differences[0].kinds}"


def is_as_its_file(tokenizer: Tokenizer) -> bool:
    """Whether it is what its file says: tests change others in memory."""
    own = tokenizer.vocabulary
    if not os.path.isfile(own.path):
        return False
    try:
        opened = _opened(_digest(own.path), own.path)
    except GGUFError:
        return False
    aside = {"tokens": (), "token_to_id": {}, "merges": (), "warnings": ()}
    if tokenizer.chat_templates and tokenizer.chat_templates != _of_file(own.path).chat_templates:
        return False
    return opened._replace(**aside) == own._replace(**aside) and all(
        len(one) == len(other) for one, other in ((opened.tokens, own.tokens), (opened.merges, own.merges))
    )


def _of_file(path: str | Path) -> Tokenizer:
    """The tokenizer of a file with its chat templates, without what it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Tokenizer.from_gguf(path)


@lru_cache(maxsize=4)
def _opened(digest: str, path: str) -> Vocabulary:
    return load_vocabulary(path)


def _digest(path: str) -> str:
    status = os.stat(path)
    return _digest_of(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _digest_of(path: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
