"""Proposes one command for all findings of a file; each change in it was tried in memory.

The changes are tried together. If that harms, they are tried one after the other, the gravest finding's first, and
those that harm are left out: their findings say why, without a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...gguf.change import Change, all_of
from .facts import Facts
from .family_checks import TOKENS_MOVED, other_values
from .finding import Finding
from .proposal import Proposal, Trial, changes_of, grave_findings, prove


def advised(model: Facts, findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], Proposal | None]:
    """Return the findings, without the commands of changes that would harm, and the proposal for all others.

    The proposal is None if no error or warning has a command that can be run as it is printed; it counts the findings
    that have one, and those that it mends.
    """
    wanted = {place: found for place, each in enumerate(findings) if (found := changes_of(each))}
    if not wanted:
        return tuple(findings), None
    if any(each.id == TOKENS_MOVED for each in findings):
        return _without_commands(
            findings, dict.fromkeys(wanted, "many tokens have other ids than the model was trained with")
        ), None
    with Trial(model.tokenizer, facts=model) as trial:
        first = [changes[0] for changes in wanted.values()]
        proposal = prove(trial, all_of(first))
        objections: dict[int, str] = {}
        if not proposal.command or not _agree(first):
            proposal, objections = _one_by_one(trial, wanted)
        if model.tokenizer is None and proposal.command:
            proposal = _with_revealed(trial, proposal)
        left = len(wanted)
        if proposal.command:
            after = {_key(each) for each in grave_findings(trial.changed(proposal.change))}
            left = sum(_key(findings[place]) in after for place in wanted)
    told = _without_commands(findings, objections)
    return told, proposal._replace(differing=len(wanted), explained=len(wanted) - left, unit="finding")


def _without_commands(findings: Sequence[Finding], objections: Mapping[int, str]) -> tuple[Finding, ...]:
    """Return the findings, with why no command is proposed for those that are at the places of `objections`."""
    return tuple(
        each._replace(fix=f"no command is proposed, because {objections[index]}")
        if index in objections
        else each
        for index, each in enumerate(findings)
    )


def _with_revealed(trial: Trial, proposal: Proposal) -> Proposal:
    """Return a proposal that also mends what is only found once the file can be opened, unless more is wrong then."""
    found = grave_findings(trial.changed(proposal.change))
    more = all_of(each for finding in found for each in changes_of(finding)[:1])
    wider = prove(trial, proposal.change | more)
    if not more or not wider.command:
        return proposal
    after = trial.changed(wider.change)
    known, left = ({_key(each) for each in some} for some in (found, grave_findings(after)))
    if after.tokenizer is None or len(left) > len(known) or left == known:
        return proposal
    return _with_revealed(trial, wider) if _agree((proposal.change, more)) else wider  # which may reveal more


def left_unlike_family(model: Facts, proposal: Proposal | None) -> tuple[str, ...]:
    """Return which values differ from those of the model's family after the proposed change, in words.

    Each of them is right in some models, so no command changes it.
    """
    left = tuple(other_values(model))
    if not left or proposal is None or not proposal.command:
        return left
    with Trial(model.tokenizer, facts=model) as trial:
        return tuple(other_values(trial.changed(proposal.change)))


def _key(finding: Finding) -> tuple[str, str | None]:
    return finding.id, finding.where.key


def _agree(changes: Iterable[Change]) -> bool:
    """Check that no two changes give one thing two values."""
    found = Change()
    for change in changes:
        if found | change != change | found:
            return False
        found |= change
    return True


def _one_by_one(trial: Trial, wanted: Mapping[int, list[Change]]) -> tuple[Proposal, dict[int, str]]:
    """Return the proposal of all changes that harm nothing, and why the changes of other findings are left out.

    `wanted` has for each finding, by its place, the changes any of which would mend it.
    """
    proposal = Proposal()
    objections: dict[int, str] = {}
    for place, changes in wanted.items():
        objection = ""
        for change in changes:
            tried = Proposal(objection="the command for another finding sets another value")
            if _agree((proposal.change, change)):
                tried = prove(trial, proposal.change | change)
            if tried.command:
                proposal, objection = tried, ""
                break
            objection = objection or tried.objection
        if objection:
            objections[place] = objection
    return proposal, objections
