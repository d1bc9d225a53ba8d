"""Tries a change on a copy in memory, and proposes it as a fix if it helps and harms nothing.

A change is proposed if

- (a) every text that it is said to explain gets the other side's ids,
- (b) no token decodes to other bytes, except markers and ordinary words whose type is the defect,
- (c) every text that both sides encoded alike stays as it is,
- (d) `doctor` finds nothing that it did not find before,
- (e) by ids that no model file gave, it switches off no BOS for which only the file speaks, and no EOS of a family.

Any other change is an observation: `Proposal.command` is empty, and `Proposal.objection` says why.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import NamedTuple

from ..._util.errors import GGUFError, printable
from ..._util.extras import NotInstalledError
from ..._util.wording import counted
from ...gguf.change import COMMAND, Change, all_of
from ...gguf.constants import TokenizerKey
from ...gguf.reader import GGUFFile
from ...gguf.value_types import Value
from ...hub.model_location import fix_command
from ...models.pretokenizers.families import Evidence
from ...models.token_table import tokens_that_differ
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import TextOrPath
from .checks import CHECKS_OF_TOKENS, Check, findings_of
from .facts import TEXTS_OF_IDS, Facts
from .finding import Finding
from .marker_tokens import MarkerTokens
from .merge_checks import unreachable
from .model_checks import charsmap
from .pretokenizer_checks import pre_tokenizer
from .template_edits import template_edits
from .template_sources import template_source
from .texts_with_ids import Encode, TextWithIds, encoding, ends_of, parts_of

_K = TokenizerKey
ENDS = "what is around a text"  # BOS and EOS, as a unit that is compared
_WIDENINGS = 2
_SAMPLE = 4096  # tokens whose bytes are compared where a change may affect all of them


class Proposal(NamedTuple):
    """A `change` of a model file that was tried in memory.

    `explained` of the `differing` texts get the other side's ids by it. What is counted is a `unit`: "text", "line",
    "sample text", "finding" (of `doctor`), or "what is around a text" where the change explains no whole text.
    `command` makes the change; it is "" if the change cannot be proposed, and then `objection` says why, in words that
    follow "because". `unmended` of the explained texts differ for another cause as well, which the change does not
    mend, such as lost merges.
    """

    change: Change = Change()
    command: str = ""
    explained: int = 0
    differing: int = 0
    objection: str = ""
    unit: str = "text"
    unmended: int = 0

    @property
    def explains(self) -> str:
        """What the change explains, in words: "explains all 212 texts"; "" if no texts were compared.

        >>> Proposal(explained=209, differing=212).explains
        'explains all but 3 of the 212 texts that differ'
        """
        if not self.differing:
            return ""
        if not self.unmended:
            return self._explains
        where = "" if self.unmended == self.explained else f"in {self.unmended} of them "
        return f"{self._explains}; {where}another cause remains, which it does not mend"

    @property
    def _explains(self) -> str:
        left = self.differing - self.explained
        if self.unit == ENDS:
            return "explains what is around the texts, such as BOS and EOS"
        if left and self.explained:
            return f"explains all but {left} of the {self.differing} {self.unit}s that differ"
        if left:
            return "explains a part of what differs"
        return (
            f"explains the {self.unit}"
            if self.differing == 1
            else f"explains all {self.differing} {self.unit}s"
        )


class Trial:
    """A model file on which changes are tried; a context manager.

    `evidence` gives what the tokens reveal about the pre-tokenizer, where that is already known.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None,
        evidence: Callable[[], Evidence] | None = None,
        facts: Facts | None = None,
    ) -> None:
        """`facts` are those of the file, where it is open; then there may be no tokenizer."""
        self._tokenizer = tokenizer
        self._evidence = evidence
        self._open = ExitStack()
        self._last: tuple[Change, Facts] | None = None
        self._templates: dict[str, str] = {}  # of other models, by what a change calls these
        self._grave: dict[frozenset[Check], list[Finding]] = {}
        if facts is not None:
            self.before = facts

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._last = None
        vars(self).pop("before", None)

    @property
    def path(self) -> str:
        """The path or name of the model, as a command names it; "" if there is none."""
        if self._tokenizer is None:
            return os.fspath(self.before.file.path)
        return self._tokenizer.name

    @cached_property
    def before(self) -> Facts:
        """The facts of the file as it is."""
        assert self._tokenizer is not None
        path = self._tokenizer.vocabulary.path
        if not os.path.isfile(path):  # a remote model, of which the metadata is in memory
            path = self._open.enter_context(self._tokenizer.gguf_file())
        return Facts(self._open.enter_context(GGUFFile(path)), None, evidence=self._evidence)

    def grave_before(self, but: frozenset[Check]) -> list[Finding]:
        """Return `grave_findings` of the file as it is, which are found once."""
        if but not in self._grave:
            self._grave[but] = grave_findings(self.before, but)
        return self._grave[but]

    def changed(self, change: Change) -> Facts:
        """Return the facts of the file after a change. `ValueError` if `ggufbpe fix` would refuse it.

        The last change is kept: it is asked for again when a text is compared in parts, and opening the changed
        tokenizer takes most of the time.
        """
        if self._last is None or self._last[0] != change:
            self._last = change, self.before.changed(self._overrides(change))
        return self._last[1]

    def template_of(self, other: Trial) -> Change:
        """Return the change that takes the chat template of another model, whose name need not open it again."""
        self._templates[other.path] = other.before.template
        return Change(templates={"": other.path})

    def _template(self, given: str) -> TextOrPath:
        text = self._templates.get(given)
        return template_source(given) if text is None else text.encode()

    def _overrides(self, change: Change) -> dict[str, Value | None]:
        """Return the values of the keys that a change sets; None removes a key."""
        file = self.before.source
        templates = {name: self._template(given) for name, given in change.templates.items()}
        edits = [*change.edits(file), *template_edits(file, templates)]
        return {
            edit.key: None if edit.type is None else edit.value
            for edit in edits
            if edit.key != _K.CHAT_TEMPLATES  # llama.cpp does not read the list
        }

    @cached_property
    def markers(self) -> MarkerTokens | None:
        """The markers of the file's vocabulary; None if it cannot be opened."""
        tokenizer = self.before.tokenizer
        return (
            None
            if tokenizer is None
            else MarkerTokens(tokenizer.vocabulary, self.before.template, lambda: self.before.merged)
        )


def prove(
    trial: Trial,
    change: Change,
    compared: Sequence[TextWithIds] = (),
    *,
    encode: Encode | None = None,
    expected: Encode | None = None,
    unit: str = "text",
    widening: int = _WIDENINGS,
) -> Proposal:
    """Try a change in memory, and return the proposal: with a command if the change helps and harms nothing.

    If only `doctor` would then find something new, such as a BOS that is ordinary text, the change that mends that is
    made as well, up to `widening` times.

    `encode` gives the ids of a text by the model as it is, `expected` those by the changed model, where something
    beside the model differs as well, such as the end of the text. `unit` is what the compared texts are: "text",
    "line" or `ENDS`. Without compared texts, only what `doctor` finds and the bytes of tokens decide.
    """
    encode = encode or encoding()
    proposal = Proposal(change, unit=unit)
    if not change:
        return proposal._replace(objection="nothing in the file has to change")
    if not trial.path:
        return proposal._replace(objection="the tokenizer has no file that could be changed")
    try:
        before = trial.before
    except (GGUFError, OSError) as error:  # the file was moved or removed since it was opened
        return proposal._replace(objection=f"the file can no longer be read: {error}")
    if before.version == 1:
        return proposal._replace(objection="the file is of GGUF version 1, which llama.cpp no longer reads")
    try:
        after = trial.changed(change)
    except (GGUFError, OSError, ValueError, TypeError, NotInstalledError) as error:
        return proposal._replace(objection=f"the change cannot be made: {error}")
    if before.tokenizer is None:  # then nothing can become worse but by another error
        return proposal._replace(command=fix_command(trial.path, change.arguments))
    if (tokenizer := after.tokenizer) is None:
        return proposal._replace(objection=f"the model cannot be opened afterwards: {after.refusal}")
    differing, explained, unmended, broken = _texts(before.tokenizer, tokenizer, compared, encode, expected)
    proposal = proposal._replace(differing=differing, explained=explained, unmended=unmended)
    if differing and not explained:
        return proposal._replace(objection="no text gets the other side's ids by it")
    if broken:
        texts = counted(broken, "text that is now the same", "texts that are now the same")
        return proposal._replace(objection=f"{texts} would differ")
    if token := _other_bytes(trial, tokenizer, change, compared):
        return proposal._replace(objection=f"{token} would decode to other text")
    if warnings := new_findings(trial, after):
        wider = change | all_of(each for finding in warnings for each in changes_of(finding)[:1])
        if widening and wider != change:
            tried = prove(
                trial, wider, compared, encode=encode, expected=expected, unit=unit, widening=widening - 1
            )
            if tried.command:
                return tried
        return proposal._replace(objection=f"`ggufbpe doctor` would then warn: {warnings[0].what}")
    return proposal._replace(command=fix_command(trial.path, change.arguments))


def prove_by_parts(
    trial: Trial,
    change: Change,
    compared: Sequence[TextWithIds],
    *,
    encode: Encode | None = None,
    expected: Encode | None = None,
    exchanged: Iterable[tuple[int, int]] = (),
) -> Proposal:
    """Try a change in memory as `prove` does; where it explains no whole text, on lines, and then on their ends alone.

    Something else may be wrong in each text that no command can mend, such as merges or scores. `exchanged` are pairs
    of tokens that have each other's ids on the other side.
    """
    proposal = prove(trial, change, compared, encode=encode, expected=expected)
    tokenizer = trial.before.tokenizer if proposal.differing and not proposal.explained else None
    if tokenizer is None:
        return proposal
    lines = [part for each in compared for part in parts_of(tokenizer, each, exchanged)]
    ends = [part for each in compared for part in ends_of(tokenizer, each)]
    for unit, some in (("line", lines), (ENDS, ends)):
        found = prove(trial, change, some, encode=encode, expected=expected, unit=unit)
        if found.command and found.explained:  # there may be no parts, and then nothing is shown
            return found
    return proposal


class _Texts(NamedTuple):
    """How many texts differ before a change, how many of them it explains and does not mend, and how many it breaks."""

    differing: int = 0
    explained: int = 0
    unmended: int = 0
    broken: int = 0


def _texts(
    before: Tokenizer,
    after: Tokenizer,
    compared: Sequence[TextWithIds],
    encode: Encode,
    expected: Encode | None,
) -> _Texts:
    """Compare texts before and after a change; `encode` and `expected` are those of `prove`."""
    differing = explained = unmended = broken = 0
    for each in compared:
        is_mended = encode(after, each) == each.ids
        is_right = expected(after, each) == each.ids if expected else is_mended
        if encode(before, each) == each.ids:
            broken += not (is_right or is_mended)
        else:
            differing += 1
            explained += is_right
            unmended += is_right and not is_mended
    if explained and expected and _explains_nothing(before, after, compared, encode, expected):
        return _Texts(broken=broken)
    return _Texts(differing, explained, unmended, broken)


def _explains_nothing(
    before: Tokenizer, after: Tokenizer, compared: Iterable[TextWithIds], encode: Encode, expected: Encode
) -> bool:
    """Check that all texts that get the other side's ids get them without the change, by what no file can express."""
    differing = (each for each in compared if encode(before, each) != each.ids == expected(after, each))
    return all(expected(before, each) == each.ids for each in differing)


def _other_bytes(trial: Trial, after: Tokenizer, change: Change, compared: Iterable[TextWithIds]) -> str:
    """Return a token, quoted, that decodes to other bytes after the change and must not; "" if there is none."""
    before, markers = trial.before.tokenizer, trial.markers
    if before is None or markers is None or _K.MODEL in change.keys:  # by which every token is read otherwise
        return ""
    ours, theirs = before.vocabulary, after.vocabulary
    may_differ = [
        token
        for token in tokens_that_differ(ours.attributes, theirs.attributes)
        if not (token in change.types and markers.may_become(token, change.types[token]))
        and ours.attributes[token]  # 0 is a type that does not exist, with which it decodes to nothing
    ]
    if ours.pre_tokenizer.byte_encode != theirs.pre_tokenizer.byte_encode:
        may_differ += {token for each in compared for token in each.ids if 0 <= token < len(ours.tokens)}
        may_differ += range(0, len(ours.tokens), max(len(ours.tokens) // _SAMPLE, 1))
        may_differ = [
            token for token in may_differ if not before.token_to_piece(token).startswith(b"[UNK_BYTE")
        ]
    for token in may_differ:
        for special in (True, False):
            if before.token_to_piece(token, special=special) != after.token_to_piece(token, special=special):
                return f"token {token}, {printable(ours.tokens[token])},"
    return ""


def unless_ends_are_lost(trial: Trial, proposal: Proposal) -> Proposal:
    """Return a proposal made by ids, without its command if texts lose a BOS or EOS that other tools may leave out."""
    before, after = trial.before, trial.changed(proposal.change)
    lost = [name for name in ("bos", "eos") if before.adds(name) and not after.adds(name)]
    bos, family, told = before.tokenizer.bos_id if before.tokenizer else None, before.family, ""
    begins = {*TEXTS_OF_IDS[_K.BOS_ID]} - {*TEXTS_OF_IDS[_K.EOS_ID]}
    is_asked_for = "bos" in lost and before.scalar(_K.ADD_BOS) is True and family is None
    if is_asked_for and bos is not None and before.tokens[bos] in begins:
        told = f"ids without {before.quoted(bos)}, which the file itself asks for, do not speak against it"
    elif "eos" in lost and family and family.add_eos:
        told = f"ids without EOS, which all {family.name} files add, do not speak against it"
    return proposal._replace(command="", objection=told) if told else proposal


def changes_of(finding: Finding) -> list[Change]:
    """Return the changes any of which would mend a finding; none for a note."""
    if finding.severity == "note":
        return []
    return [change for command in COMMAND.findall(finding.fix) if (change := Change.of_command(command))]


def new_findings(trial: Trial, after: Facts) -> list[Finding]:
    """Return the errors and warnings of `doctor` about the changed file that the file as it is does not have."""
    but = checks_left_out(trial.before, after)
    if trial.before.entry.ignore_merges and not after.entry.ignore_merges:
        but -= {unreachable}  # tokens that were taken whole whatever the merges said
    found = grave_findings(after, but)
    if not found:
        return []
    known = {key for finding in trial.grave_before(but) for key in _keys(finding)}
    return [finding for finding in found if not known.issuperset(_keys(finding))]


def checks_left_out(one: Facts, other: Facts) -> frozenset[Check]:
    """Return the checks that need not run on two files of one vocabulary to tell them apart.

    Under one pre-tokenizer, that is what the tokens reveal about it, which takes long to find out, and with one
    charsmap, whether it is damaged.
    """
    left = CHECKS_OF_TOKENS
    if (one.pre, one.model) != (other.pre, other.model):
        return left
    is_same = one.array(_K.PRECOMPILED_CHARSMAP) == other.array(_K.PRECOMPILED_CHARSMAP)
    return left | {pre_tokenizer, charsmap} if is_same else left | {pre_tokenizer}


def grave_findings(model: Facts, but: Container[Check] = CHECKS_OF_TOKENS) -> list[Finding]:
    """Return the errors and warnings of `doctor` about a model, without those of the checks in `but`."""
    return [each for each in findings_of(model, but) if each.severity != "note"]


def _keys(finding: Finding) -> list[tuple[object, ...]]:
    """Return what makes a finding another one: its kind and place, and each token or marker that it lists."""
    detail = finding.detail or {}
    listed = [*detail.get("ids", ()), *detail.get("markers", ())]
    place = (finding.id, finding.where.key)
    return [(*place, each) for each in listed] or [(*place, finding.where.token)]
