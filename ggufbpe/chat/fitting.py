"""Makes a chat fit: leaves out the fewest of its oldest turns, and cuts long results of tools, so that its prompt fits.

    estimate from the texts -> render and count -> better estimate -> ... -> the fewest turns left out

Templates treat messages unlike (tools with the first, reasoning only in the last, a system prompt that is made up), so
nothing is inferred from parts: each candidate is rendered and counted as a whole. An estimate only says which candidate
comes next, so that few are needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .._util.errors import ChatError, ChatTooLongError
from .._util.lazy import cached_property, computed_once
from .._util.wording import counted
from .content_texts import cut_content, texts_of
from .known_templates import GivenTemplate
from .prompt_tokenizer import SIDES, Side
from .token_origins import ChatTokens, chat_tokens

if TYPE_CHECKING:
    from .prompt_tokenizer import PromptTokenizer

_ESTIMATED = 4  # renderings for which estimates choose the candidates; a search by halves does from then on
_OF_A_MESSAGE = 8  # tokens that a template may write around a message: a first guess, corrected by each count

Message = Mapping[str, Any]


@dataclass(frozen=True)
class FitPolicy:
    """What of a chat may be left out or cut.

    A turn is a message of the user with everything up to the next one. The oldest turns are left out first, whole, so
    that results of tools stay with their calls. Messages with a role in `keep_roles` always stay, and so do the last
    `keep_last` turns and the first `keep_first`. Before any turn is left out, contents of the roles in `shorten` with
    more than `shorten_to` tokens may be cut to that many by `Tokenizer.truncate` with `side` and `marker`, the oldest
    first; of a content in parts, the longest text first. `note`, in which `{dropped}` is the number of messages, is put
    before the first message of the first turn that stays, if any before it were left out.
    """

    keep_roles: tuple[str, ...] = ("system", "developer")
    keep_first: int = 0
    keep_last: int = 1
    shorten: tuple[str, ...] = ()
    shorten_to: int = 256
    side: Side = "middle"
    marker: str = "\n…\n"
    note: str = ""

    def __post_init__(self) -> None:
        """Raise a `ValueError` for a field of the wrong type and for a negative number."""
        for name, default in _DEFAULTS.items():
            value, kind = _as_kind(getattr(self, name), type(default)), type(default)
            if not isinstance(value, kind) or (
                kind is tuple and not all(isinstance(each, str) for each in value)
            ):
                raise ValueError(f"keep: {name} must be of type {_KINDS[kind]}")
            object.__setattr__(self, name, value)
            if kind is int and value < 0:
                raise ValueError(f"keep: {name} must be 0 or more")
        if self.side not in SIDES:
            raise ValueError(f"keep: side must be {', '.join(SIDES)}")

    @classmethod
    def of(cls, given: FitPolicy | Mapping[str, Any] | None) -> FitPolicy:
        """Return a policy from its fields by name.

        `ValueError` for another name or a value of the wrong type, `TypeError` for anything but a mapping.
        """
        if given is None or isinstance(given, cls):
            return given or cls()
        if not isinstance(given, Mapping):
            raise TypeError(
                f"keep must be a FitPolicy or a mapping of its fields, such as {{'keep_last': 2}}, "
                f"not {type(given).__name__}"
            )
        settings: dict[str, Any] = dict(given)
        for name in settings:
            if name not in _DEFAULTS:
                raise ValueError(f"keep has no field {name!r}; there are {', '.join(_DEFAULTS)}")
        return cls(**settings)


def _as_kind(value: Any, kind: type) -> Any:
    """Return `value` with a list made a tuple, and an integer of NumPy an int."""
    if kind is tuple and isinstance(value, list):
        return tuple(value)
    if kind is int and not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(value)
    return None if kind is int else value


_DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(FitPolicy)}
_KINDS: Mapping[type, str] = {tuple: "array of strings", int: "integer", str: "string"}


@dataclass(frozen=True)
class FittedChat:
    """A chat whose prompt fits, and what was done to it. Messages are numbered as in the chat that was given.

    `messages` are those that stay, `prompt` is the UTF-8 of their prompt, and `count` the number of its tokens, at most
    `limit`, from which room for an answer is already taken off. `dropped` and `shortened` are the numbers of the
    messages that were left out and cut, and `renderings` is how often the template was run.
    """

    messages: list[Message]
    prompt: bytes
    count: int
    limit: int
    dropped: tuple[int, ...]
    shortened: tuple[int, ...]
    renderings: int
    _tokens: Callable[[], ChatTokens] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        done = {"dropped": self.dropped, "shortened": self.shortened}
        changes = "".join(f", {len(numbers)} {name}" for name, numbers in done.items() if numbers)
        size = f"{counted(len(self.messages), 'message')}{changes}"
        return f"<FittedChat: {size}; {self.count} of {counted(self.limit, 'token')}>"

    @computed_once
    def tokens(self) -> ChatTokens:
        """The ids of the prompt and the message or field that each comes from; the template is run for this again."""
        return self._tokens()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with the tokens, which need the tokenizer to be made."""
        return {**vars(self), "tokens": self.tokens, "_tokens": None}

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the tokens of each part."""
        return {
            "messages": [dict(message) for message in self.messages],
            "prompt": self.prompt.decode("utf-8", "replace"),
            "count": self.count,
            "limit": self.limit,
            "dropped": list(self.dropped),
            "shortened": list(self.shortened),
            "tokens_by_origin": self.tokens.to_origins()["tokens_by_origin"],
        }


def fit_chat(
    tokenizer: PromptTokenizer,
    body: Mapping[str, Any],
    limit: int,
    keep: FitPolicy | Mapping[str, Any] | None = None,
    chat_template: GivenTemplate = None,
    now: datetime | None = None,
    answer: int = 0,
) -> FittedChat:
    """Return the chat of a request's body with the fewest messages left out that leaves room for the answer.

    Its prompt has at most `limit - answer` tokens. `ChatError` if the chat is refused, `ChatTooLongError` if what must
    stay has more tokens, `ValueError` if the answer alone has. See `Tokenizer.fit_chat`.
    """
    if answer > limit:
        raise ValueError(f"the answer alone exceeds the limit: {answer} tokens of {limit}")
    messages = body.get("messages")
    if (
        isinstance(messages, (str, bytes))
        or not isinstance(messages, Sequence)
        or not all(isinstance(each, Mapping) for each in messages)
    ):
        tokenizer.chats.prompt(body, chat_template, now)  # which says what is wrong
        raise ChatError("'messages' must be an array of objects")
    policy = FitPolicy.of(keep)
    return _Search(tokenizer, body, limit - answer, policy, chat_template, now).result()


@dataclass(frozen=True)
class _Candidate:
    messages: list[Message]
    prompt: bytes
    count: int


class _Search:
    """Looks for the fewest turns to leave out, then for the fewest contents to cut."""

    def __init__(
        self,
        tokenizer: PromptTokenizer,
        body: Mapping[str, Any],
        limit: int,
        policy: FitPolicy,
        chat_template: GivenTemplate,
        now: datetime | None,
    ) -> None:
        self._tokenizer, self._body, self._limit, self._policy = tokenizer, body, limit, policy
        self._chat_template = chat_template
        self._now = datetime.now() if now is None else now
        self._messages: list[Message] = list(body["messages"])
        self._turns = _turns(self._messages, policy)
        self._made: dict[tuple[int, int], _Candidate | None] = {}
        self._sizes = [tokenizer.count(_text(message)) + _OF_A_MESSAGE for message in self._messages]
        self._error = ""

    def result(self) -> FittedChat:
        """The chat that fits."""
        found = self._candidate(0, 0)
        if found is None:
            raise ChatError(self._error)
        turns = cuts = 0
        if found.count > self._limit:
            everything = len(self._short)
            turns = self._fewest(len(self._turns), lambda turns: (turns, everything))
            cuts = self._fewest(everything, lambda cuts: (turns, cuts))
            found = self._candidate(turns, cuts)
            assert found is not None
        dropped = self._dropped(turns)
        shortened = tuple(number for number in self._cut_first(cuts) if number not in dropped)
        body = {**self._body, "messages": found.messages}
        numbers = [number for number in range(len(self._messages)) if number not in dropped]

        def tokens() -> ChatTokens:
            chats = self._tokenizer.chats
            parts = chats.parts(body, self._chat_template, self._now, numbers=numbers)
            return chat_tokens(self._tokenizer, parts)

        return FittedChat(
            found.messages,
            found.prompt,
            found.count,
            self._limit,
            tuple(sorted(dropped)),
            shortened,
            len(self._made),
            tokens,
        )

    def _fewest(self, most: int, key: Callable[[int], tuple[int, int]]) -> int:
        """The smallest number up to `most` whose candidate fits. `ChatError` if not even the last one does."""
        low, high, least = 0, most + 1, None  # low - 1 does not fit, high does or is too large
        tries = 0
        while low < high:
            guess = self._guess(low, high, key) if tries < _ESTIMATED else (low + high - 1) // 2
            tries += 1
            found = self._candidate(*key(guess))
            if found is not None and found.count <= self._limit:
                high = guess
            else:
                low = guess + 1
                least = found or least
        if high > most:
            if least is None:
                problem = (
                    f"the chat does not fit in {self._limit} tokens: what must stay is refused: {self._error}"
                )
                raise ChatError(problem)
            raise ChatTooLongError(least.count, self._limit, *self._remedy(least.count))
        return high

    def _remedy(self, count: int) -> tuple[int, dict[str, Any]] | tuple[None, None]:
        """The number of a message by whose cut what must stay, of `count` tokens, fits, and the policy."""
        policy, dropped = self._policy, self._dropped(len(self._turns))
        for number, message in enumerate(self._messages):
            texts, role = texts_of(message.get("content")), message.get("role")
            if number in dropped or role in policy.shorten or not isinstance(role, str):
                continue
            tokens = sum(self._tokenizer.count(text, add_special=False) for text in texts)
            room = (
                self._limit - (count - tokens) - _OF_A_MESSAGE
            )  # a cut text may join its neighbours otherwise
            if policy.shorten:
                room = min(room, policy.shorten_to)
            if tokens > self._limit and room >= self._tokenizer.count(policy.marker, add_special=False):
                advised = replace(policy, shorten=(*policy.shorten, role), shorten_to=room)
                if not self._fits_under(advised):
                    continue
                changed = {name: value for name, value in asdict(advised).items() if value != _DEFAULTS[name]}
                return number, changed
        return None, None

    def _fits_under(self, policy: FitPolicy) -> bool:
        """Whether what must stay fits if everything is cut that another policy allows to cut."""
        search = _Search(self._tokenizer, self._body, self._limit, policy, self._chat_template, self._now)
        least = search._candidate(len(search._turns), len(search._short))
        return least is not None and least.count <= self._limit

    def _guess(self, low: int, high: int, key: Callable[[int], tuple[int, int]]) -> int:
        """The smallest number below `high` for which the estimate is within the limit, or the largest there is."""
        known = [(each, found) for each, found in self._made.items() if found is not None]
        (turns, cuts), nearest = min(known, key=lambda each: abs(each[1].count - self._limit))
        error = nearest.count - self._estimate(turns, cuts)
        last = high - 1
        while low < last:  # the estimate falls as the number grows
            middle = (low + last) // 2
            if self._estimate(*key(middle)) + error <= self._limit:
                last = middle
            else:
                low = middle + 1
        return low

    def _estimate(self, turns: int, cuts: int) -> int:
        dropped = self._dropped(turns)
        cut = {number: self._short[number][1] for number in self._cut_first(cuts)}
        return sum(
            size - cut.get(number, 0) for number, size in enumerate(self._sizes) if number not in dropped
        )

    def _candidate(self, turns: int, cuts: int) -> _Candidate | None:
        """The chat without the oldest `turns` turns and with `cuts` contents cut; None if the template refuses it."""
        if (turns, cuts) not in self._made:
            dropped = self._dropped(turns)
            messages = self._changed(dropped, cuts)
            body = {**self._body, "messages": messages}
            found = None
            try:
                prompt = self._tokenizer.chats.prompt(body, self._chat_template, self._now)
                found = _Candidate(messages, prompt, self._tokenizer.count(prompt))
            except ChatError as error:
                self._error = str(error)
            self._made[turns, cuts] = found
        return self._made[turns, cuts]

    def _cut_first(self, cuts: int) -> list[int]:
        """The numbers of the `cuts` oldest messages that may be cut."""
        return sorted(self._short)[:cuts] if cuts else []

    def _dropped(self, turns: int) -> set[int]:
        return {number for turn in self._turns[:turns] for number in turn}

    def _changed(self, dropped: set[int], cuts: int) -> list[Message]:
        cut = set(self._cut_first(cuts))
        note = self._policy.note.replace("{dropped}", str(len(dropped))) if dropped else ""
        after = max(dropped, default=-1)
        messages = []
        for number, message in enumerate(self._messages):
            if number in dropped:
                continue
            if number in cut:
                message = self._short[number][0]
            if note and number > after and message.get("role") == "user":
                message = _with_note(message, note)
                note = ""
            messages.append(message)
        return messages

    @cached_property
    def _short(self) -> dict[int, tuple[Message, int]]:
        """The messages that may be cut, each as it is then, and how many tokens that saves."""
        policy = self._policy
        if policy.shorten and not self._tokenizer.fits(policy.marker, policy.shorten_to):
            raise ValueError(f"keep: the marker alone has more than {policy.shorten_to} tokens (shorten_to)")
        found: dict[int, tuple[Message, int]] = {}
        for number, message in enumerate(self._messages):
            if message.get("role") not in policy.shorten:
                continue
            cut = cut_content(
                self._tokenizer, message.get("content"), policy.shorten_to, policy.side, policy.marker
            )
            if cut is not None:
                found[number] = ({**message, "content": cut[0]}, cut[1])
        return found


def _turns(messages: Sequence[Message], policy: FitPolicy) -> list[list[int]]:
    """The messages of each turn that may be left out, oldest first; those before the first user are a turn, too."""
    turns: list[list[int]] = []
    for number, message in enumerate(messages):
        if message.get("role") in policy.keep_roles:
            continue
        if message.get("role") == "user" or not turns:
            turns.append([])
        turns[-1].append(number)
    return turns[policy.keep_first : max(len(turns) - policy.keep_last, policy.keep_first)]


def _text(message: Message) -> str:
    """The texts of a message, to estimate its tokens."""
    texts = texts_of(message.get("content"))
    for name in ("reasoning_content", "tool_calls"):
        if message.get(name):
            texts.append(str(message[name]))
    return "\n".join(texts)


def _with_note(message: Message, note: str) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": f"{note}\n\n{content}"}
    if isinstance(content, Sequence):
        return {**message, "content": [{"type": "text", "text": note}, *content]}
    return message
