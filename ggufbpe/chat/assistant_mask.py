"""What of a prompt the assistant wrote: a mask over its ids, for training on answers alone.

A turn of the assistant begins where the generation prompt ends, or with its first text where the template begins turns
of the past in another way, and ends behind the next token that ends a generation. What the template writes within a
turn, such as `</think>` and the braces around a call, is what the model has to write, so it belongs to the turn: to
the text behind it, or before it at the end of the turn; but marks next to reasoning belong to the reasoning.

Templates need no `{% generation %}` for that. Where one has it, all that these blocks write is the assistant's, and
nothing else, as in transformers and TRL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from .._util.arguments import checked_flag
from .._util.errors import ChatError, printable
from .known_templates import GivenTemplate
from .origins import PromptInParts, PromptPart

if TYPE_CHECKING:
    from .prompt_tokenizer import PromptTokenizer

AssistantPart = Literal["content", "reasoning", "tool_calls", "end"]
ALL_PARTS: frozenset[AssistantPart] = frozenset(get_args(AssistantPart))
_ASSISTANT = "assistant"
_QUESTION = [{"role": "user", "content": "Hi"}]  # what a generation prompt is asked with
_TOOLS = [
    {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
]
_ROLE = re.compile(rb"assistant|model|bot|\bai\b", re.IGNORECASE)  # in a generation prompt


class WrittenSpan(NamedTuple):
    """The bytes from `start` to `end` of a prompt, which the assistant wrote."""

    start: int
    end: int
    part: AssistantPart


class AssistantSpans:
    """Finds what the assistant wrote in prompts of one tokenizer; remembers generation prompts."""

    def __init__(self, tokenizer: PromptTokenizer, parts: Collection[AssistantPart] = ALL_PARTS) -> None:
        """`parts` are those that are wanted. `ValueError` for any other name."""
        if unknown := sorted(set(parts) - ALL_PARTS):
            names = ", ".join(sorted(ALL_PARTS))
            raise ValueError(
                f"the parts of an assistant's turn are {names}, not {printable(str(unknown[0]))}"
            )
        self._tokenizer, self._parts = tokenizer, frozenset(parts)
        self._generation_prompts: dict[str, bytes] = {}
        vocabulary = tokenizer.vocabulary
        self._ends = [vocabulary.tokens[token].encode() for token in sorted(vocabulary.eog_ids)]

    def find(
        self,
        body: Mapping[str, Any],
        chat_template: GivenTemplate = None,
        now: datetime | None = None,
        *,
        whole: bool = True,
        left_out: Collection[int] = (),
    ) -> tuple[PromptInParts, list[WrittenSpan]]:
        """Return the prompt of a request and the spans that the assistant wrote, in order, of the wanted parts.

        Messages whose numbers are in `left_out` give no spans. The other arguments are those of `Chats.prompt`.
        `ChatError` as from there, and where it is not known which parts of the prompt come from which message.
        """
        rendered = self._tokenizer.chats.parts(body, chat_template, now, whole=whole, with_blocks=True)
        if any(part.origin.kind == "unknown" for part in rendered.parts):
            raise ChatError(
                "where the parts of this prompt come from cannot be told, so it has no assistant mask"
            )
        found: list[WrittenSpan] = []
        every = list(_turns(rendered))
        turns = [turn for turn in every if turn.number not in left_out]
        for turn in turns:
            opening = self._generation_prompt(body, chat_template, now)
            found += self._spans(rendered.prompt, turn, opening)
        if rendered.blocks is not None:
            begin = turns[0].begin if turns and left_out else 0
            others = [turn for turn in every if turn.number in left_out]
            blocks = [block for block in rendered.blocks if block[1] > begin and (turns or not left_out)]
            wanted = (block for block in blocks if not any(turn.overlaps(*block) for turn in others))
            found = list(_of_blocks(wanted, found))
        return rendered, [span for span in found if span.part in self._parts and span.start < span.end]

    def _spans(self, prompt: bytes, turn: _Turn, opening: bytes) -> Iterator[WrittenSpan]:
        """The spans of one turn, from behind its header to the end of the token that ends it.

        Texts behind that token are the assistant's only if another header precedes them: some templates write the name
        of the function that was called before its result.
        """
        pieces = [WrittenSpan(each.start, each.end, _part_of(each.origin.field)) for each in turn.texts]
        begin = _behind_header(prompt, turn.begin, pieces[0].start, opening)
        last = pieces[0]._replace(end=pieces[0].start if begin is None else begin)
        for piece in pieces:
            if end := self._end(prompt, last.end, piece.start):
                yield from (WrittenSpan(last.end, end.start, last.part), end)
                begin = _behind_header(prompt, end.end, piece.start, opening)
                if begin is None:
                    return
                last = piece._replace(end=begin)
            yield WrittenSpan(
                last.end, piece.start, "reasoning" if "reasoning" in (last.part, piece.part) else piece.part
            )
            yield piece
            last = piece
        if end := self._end(prompt, last.end, turn.end):
            yield from (WrittenSpan(last.end, end.start, last.part), end)

    def _end(self, prompt: bytes, start: int, end: int) -> WrittenSpan | None:
        """The first token that ends a generation between two places; the longest of several there."""
        found = [(at, -len(text)) for text in self._ends if (at := prompt.find(text, start, end)) >= 0]
        at, size = min(found, default=(0, 0))
        return WrittenSpan(at, at - size, "end") if found else None

    def _generation_prompt(
        self,
        body: Mapping[str, Any],
        chat_template: GivenTemplate,
        now: datetime | None,
    ) -> bytes:
        """What the template writes to begin an answer; b"" if that cannot be told.

        It is asked once for each template and its arguments, always with the same chat, so that no mask depends on the
        chats before.
        """
        tools = _TOOLS if body.get("tools") else None
        key = repr((chat_template, body.get("chat_template_kwargs"), bool(tools)))
        if key not in self._generation_prompts:
            asked = {**body, "messages": _QUESTION, "tools": tools, "add_generation_prompt": True}
            try:
                begun = self._tokenizer.chats.parts(asked, chat_template, now)
            except ChatError:  # of templates that take no such chat
                return b""
            self._generation_prompts[key] = b"".join(
                begun.prompt[at:end] for at, end, of in begun.parts if of.kind == "generation_prompt"
            )
        return self._generation_prompts[key]


class _Turn(NamedTuple):
    """The texts of a message of the assistant, and where what stands before and behind them begins and ends."""

    texts: list[PromptPart]
    begin: int
    end: int

    @property
    def number(self) -> int:
        """The number of its message."""
        return self.texts[0].origin.index or 0

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether some of its texts are between two places."""
        return self.texts[0].start < end and self.texts[-1].end > begin


def _turns(rendered: PromptInParts) -> Iterator[_Turn]:
    """The messages of the assistant; one that another's text divides gives several."""
    texts: list[PromptPart] = []
    begin = 0
    for part in rendered.parts:
        if part.start == part.end or part.origin.kind == "template" or part.origin.field == "role":
            continue
        is_written = rendered.role(part.origin) == _ASSISTANT
        if texts and not (is_written and part.origin.index == texts[0].origin.index):
            yield _Turn(texts, begin, part.start)
            begin, texts = texts[-1].end, []
        if is_written:
            texts.append(part)
        else:
            begin = part.end
    if texts:
        yield _Turn(texts, begin, len(rendered.prompt))


def _of_blocks(blocks: Iterable[tuple[int, int]], spans: Sequence[WrittenSpan]) -> Iterator[WrittenSpan]:
    """All that blocks wrote, divided as the spans say; what is in no span goes with the next one, or else the last."""
    for begin, end in blocks:
        inner = [span for span in spans if span.end > begin and span.start < end]
        for span in inner[:-1]:
            yield WrittenSpan(begin, span.end, span.part)
            begin = span.end
        yield WrittenSpan(begin, end, inner[-1].part if inner else "content")


def _part_of(field: str) -> AssistantPart:
    if field.startswith("reasoning"):
        return "reasoning"
    return "tool_calls" if field.startswith("tool_calls") else "content"


def _behind_header(prompt: bytes, begin: int, first: int, opening: bytes) -> int | None:
    """Return where a turn begins whose first text is at `first`: behind the most of the generation prompt before it.

    That is at least its beginning with the name of the role. What it has more, such as `<think>`, this turn does not
    have. None if it is not there: turns of the past begin in another way.
    """
    role = _ROLE.search(opening)
    for size in range(len(opening), role.end() - 1 if role else len(opening) - 1, -1):
        at = prompt.rfind(opening[:size], begin, first) if size else -1
        if at >= 0:
            return at + size
    return None


def mask_of(spans: Iterable[WrittenSpan], places: Sequence[tuple[int, int]]) -> list[int]:
    """Return 1 for each token that overlaps one of the spans, else 0; `places` are those of the tokens, ascending.

    >>> mask_of([WrittenSpan(2, 4, "content")], [(0, 0), (0, 2), (2, 3), (3, 5), (5, 6)])
    [0, 0, 1, 1, 0]
    """
    wanted = iter(spans)
    span = next(wanted, None)
    mask = []
    for start, end in places:
        while span is not None and span.end <= start:
            span = next(wanted, None)
        mask.append(int(span is not None and start < end and end > span.start))
    return mask


def assistant_mask(
    tokenizer: PromptTokenizer,
    prompt: bytes,
    spans: Iterable[WrittenSpan],
    parts: Collection[AssistantPart] = ALL_PARTS,
) -> tuple[list[int], list[int]]:
    """Return the ids of a prompt, and 1 for each that the assistant wrote, else 0.

    An EOS that the tokenizer adds is the assistant's if its turn goes to the end of the prompt and "end" is wanted.
    """
    found = list(spans)
    ids, places = tokenizer.encode_with_offsets(prompt)
    mask = mask_of(found, places)
    if (
        mask
        and found
        and found[-1].end == len(prompt)
        and "end" in parts
        and ids[-1] in tokenizer.vocabulary.added[1]
    ):
        mask[-1] = 1
    return ids, mask


def wanted_parts(parts: bool | Collection[AssistantPart]) -> frozenset[AssistantPart] | None:
    """Return the parts that `return_assistant_mask` asks for, True for all; None without a mask."""
    if isinstance(parts, Collection) and not isinstance(parts, str):
        if all(isinstance(each, str) for each in parts):
            return frozenset(parts)
    else:
        with suppress(TypeError):
            return ALL_PARTS if checked_flag("return_assistant_mask", parts) else None
    raise TypeError(
        f"return_assistant_mask must be a bool or a collection of names, such as ['content'], not {parts!r}"
    )


def masked_chat(
    tokenizer: PromptTokenizer,
    body: Mapping[str, Any],
    chat_template: GivenTemplate,
    now: datetime | None,
    wanted: frozenset[AssistantPart],
) -> tuple[list[int], list[int]]:
    """Return the ids of a request's prompt and its mask of the `wanted` parts.

    A chat that ends with an answer is over, unless the request asks to continue it.
    """
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, Sequence) and messages else None
    is_over = isinstance(last, Mapping) and last.get("role") == _ASSISTANT
    whole = is_over and body.get("continue_final_message") is None
    rendered, spans = AssistantSpans(tokenizer, wanted).find(body, chat_template, now, whole=whole)
    return assistant_mask(tokenizer, rendered.prompt, spans, wanted)
