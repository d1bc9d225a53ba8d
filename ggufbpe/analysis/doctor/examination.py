"""Examines one file for `doctor`: the findings of all checks, and the one command that fixes them.

Only the tokenizer and the list of tensors are examined, not the tensors' data nor the rest of the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...gguf.metadata import Overrides
from ...gguf.reader import GGUFFile
from ...hub.model_location import ModelName, locate
from .advice import advised, left_unlike_family
from .checks import findings_of, in_order
from .facts import Facts
from .finding import Examination, Finding
from .tensor_checks import broken_tensors


def doctor(
    path: ModelName, *, overrides: Overrides | None = None, also: Iterable[Finding] = ()
) -> Examination:
    """Find what is wrong or suspicious in the metadata of a model file: where, why it matters, and what to do.

    >>> [finding.id for finding in doctor("model.gguf").findings]           # doctest: +SKIP
    ['pre_missing', 'hf_splitting']

    The most severe findings come first, and `Examination.fix` is the one command for all of them. `path` may be the
    name of a model, and `overrides` are those of `Tokenizer.from_gguf`; `also` adds findings from elsewhere. A file
    whose tokenizer cannot be opened is examined as well. `GGUFError` if the file is not a valid GGUF, `OSError` if it
    cannot be read.
    """
    model_file = locate(path)
    with GGUFFile(model_file.opened()) as file:
        file.require_first_shard()
        model = Facts(file, overrides)
        found = in_order([*findings_of(model), *also])
        if broken := list(broken_tensors(file)):  # `fix` refuses such a file, so that no command is proposed
            return Examination(model_file.name, tuple(in_order([*broken, *found])), None)
        told, proposal = advised(model, found)
        family = model.family.name if model.family else ""
        return Examination(model_file.name, told, proposal, family, left_unlike_family(model, proposal))
