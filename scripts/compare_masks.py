"""Compares masks of what the assistant wrote with those of transformers, on templates with `{% generation %}`.

    python -m venv /tmp/masks && /tmp/masks/bin/pip install . transformers && /tmp/masks/bin/pip install --no-deps trl
    /tmp/masks/bin/python scripts/compare_masks.py --chats 60 --seed 1
    /tmp/masks/bin/python scripts/compare_masks.py --record     # fixtures/chats/masks.json.xz

The templates are those below and, if TRL is installed, the ones that it trains with: it gives them to transformers'
`apply_chat_template(return_assistant_tokens_mask=True)`, as is done here. Nothing of TRL is imported, so it needs none
of its dependencies. Both sides have one vocabulary, which is exported to a tokenizer.json for transformers.

A chat for which the ids differ is not compared: llama.cpp renders it otherwise, or one side refuses it. Prints a line
for each template, then totals; status 1 if masks of equal ids differ. `--record` keeps transformers' ids and masks for
the templates below, for tests/chat/test_recorded_masks.py.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ggufbpe import ChatError, Tokenizer, export

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "chats"
VOCABULARY = FIXTURES / "vocabulary.gguf"
RECORDED = FIXTURES / "masks.json.xz"
RECORDED_CHATS = 25
_HEAD = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
_TAIL = "{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
TEMPLATES = {
    "end inside": _HEAD + "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}" + _TAIL,
    "end outside": _HEAD + "{% generation %}{{ m.content }}{% endgeneration %}<|im_end|>" + _TAIL,
    "header inside": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}<|im_start|>assistant\n"
    "{{ m.content }}<|im_end|>\n{% endgeneration %}{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endif %}{% endfor %}",
    "white space": _HEAD
    + " \n{%- generation -%} \n {{ m.content }} \n {%- endgeneration -%} \n <|im_end|>"
    + _TAIL,
    "last turn": _HEAD + "{% if loop.last %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}" + _TAIL,
    "reasoning and calls": _HEAD
    + "{% generation %}{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
    "</think>\n\n{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}\n<tool_call>\n"
    "{{ c.function.name }}({{ c.function.arguments | tojson }})\n</tool_call>{% endfor %}<|im_end|>{% endgeneration %}"
    + _TAIL,
    "two blocks": _HEAD + "{% generation %}{{ m.content }}{% endgeneration %} -- {% generation %}<|im_end|>"
    "{% endgeneration %}" + _TAIL,
}
_WORDS = [
    "Hello",
    "there",
    "it rains",
    "  spaced ",
    "x = 1\n",
    "naïve",
    "者",
    "🙂",
    "\n",
    "<b>",
    "ok.",
]
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "d",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


class Chat(NamedTuple):
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None


def random_chats(count: int, seed: int) -> Iterator[Chat]:
    """Finished chats, some with a system message, reasoning, and calls of a tool."""
    rng = random.Random(seed)
    for _ in range(count):
        messages = [{"role": "system", "content": _text(rng)}] if rng.random() < 0.4 else []
        has_tools = rng.random() < 0.3
        for _ in range(rng.randrange(1, 4)):
            messages.append({"role": "user", "content": _text(rng)})
            answer: dict[str, Any] = {"role": "assistant", "content": _text(rng)}
            if rng.random() < 0.3:
                answer["reasoning_content"] = _text(rng)
            if has_tools and rng.random() < 0.6:
                arguments = {"city": rng.choice(["Bonn", "Köln"])}
                call = {"name": "weather", "arguments": arguments}
                answer["tool_calls"] = [{"id": "call_123456", "type": "function", "function": call}]
                result = {
                    "role": "tool",
                    "tool_call_id": "call_123456",
                    "name": "weather",
                    "content": _text(rng),
                }
                messages += [answer, result]
                answer = {"role": "assistant", "content": _text(rng)}
            messages.append(answer)
        yield Chat(messages, _TOOLS if has_tools else None)


def _text(rng: random.Random) -> str:
    parts = (rng.choice(_WORDS) + rng.choice([" ", "", " "]) for _ in range(rng.randrange(1, 6)))
    return "".join(parts).strip() or "x"


def transformers_tokenizer() -> Any:
    """The vocabulary, opened by transformers."""
    from transformers import PreTrainedTokenizerFast

    with tempfile.TemporaryDirectory() as folder:
        export(VOCABULARY, "tokenizer.json", check=False).save(folder)
        return PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")


Masked = tuple[list[int], list[int]]


def theirs(tokenizer: Any, chat: Chat, template: str) -> Masked:
    """transformers' ids and mask."""
    found = tokenizer.apply_chat_template(
        chat.messages,
        tools=chat.tools,
        chat_template=template,
        return_dict=True,
        return_assistant_tokens_mask=True,
        # not of the tokenizer, which would make EOS a special token; in this vocabulary it is a plain one
        bos_token="<s>",
        eos_token="</s>",
    )
    return found["input_ids"], found["assistant_masks"]


def ours(tok: Tokenizer, chat: Chat, template: str) -> Masked:
    """The ids and mask of ggufbpe."""
    return tok.apply_chat_template(
        chat.messages, tools=chat.tools, chat_template=template, return_assistant_mask=True
    )


def without_added(masked: Masked, tok: Tokenizer) -> Masked:
    """Without a BOS, which one side's template writes and the other side's tokenizer adds."""
    has_bos = masked[0][:1] == [tok.bos_id]
    return masked[0][has_bos:], masked[1][has_bos:]


def trl_templates() -> dict[str, str]:
    """The templates that TRL trains with; none if it is not installed."""
    try:
        files = metadata.files("trl") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (Path(str(file.locate())) for file in files if file.name.endswith("_training.jinja"))
    return {f"trl {path.stem}": path.read_text() for path in sorted(found)}


def compare(tok: Tokenizer, tokenizer: Any, template: str, chats: list[Chat]) -> Counter[str]:
    """How many chats have equal masks, other masks, other ids, or are refused."""
    found: Counter[str] = Counter()
    for chat in chats:
        try:
            one = without_added(theirs(tokenizer, chat, template), tok)
            other = without_added(ours(tok, chat, template), tok)
        except Exception as error:
            if not isinstance(error, ChatError) and "jinja" not in type(error).__module__:
                raise
            found["refused"] += 1
            continue
        if one[0] != other[0]:
            found["other ids"] += 1
        elif one[1] == other[1]:
            found["equal"] += 1
        else:
            found["different"] += 1
            print(f"  differs: {json.dumps(chat.messages, ensure_ascii=False)}\n  {one}\n  {other}")
    return found


def record(tokenizer: Any) -> None:
    """Write transformers' answers for the templates of this file."""
    chats = list(random_chats(RECORDED_CHATS, 0))
    content = {
        "transformers": metadata.version("transformers"),
        "chats": [chat._asdict() for chat in chats],
        "templates": [
            {"name": name, "source": source, "answers": [theirs(tokenizer, chat, source) for chat in chats]}
            for name, source in TEMPLATES.items()
        ],
    }
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    RECORDED.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    print(f"{RECORDED}: {RECORDED.stat().st_size} bytes, {len(data)} unpacked")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chats", type=int, default=60, help="of each template")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tokenizer = transformers_tokenizer()
    if arguments.record:
        record(tokenizer)
        return 0
    tok = Tokenizer.from_gguf(VOCABULARY)
    chats = list(random_chats(arguments.chats, arguments.seed))
    total: Counter[str] = Counter()
    for name, template in {**TEMPLATES, **trl_templates()}.items():
        found = compare(tok, tokenizer, template, chats)
        total += found
        print(f"{name:45} {_counts(found)}", flush=True)
    print(f"{'total':45} {_counts(total)}")
    return int(total["different"] > 0)


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{found[kind]} {kind}" for kind in ("equal", "different", "other ids", "refused"))


if __name__ == "__main__":
    sys.exit(main())
