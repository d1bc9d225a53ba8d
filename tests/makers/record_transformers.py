"""Records the answers of the real transformers to chats in fixtures/chats/transformers.json.xz.

    pip install ggufbpe[transformers]
    python tests/makers/record_transformers.py

- `prompts`: for each template of llama.cpp's collection, the answers to the requests of chat_kinds.py, in the form of
  `answers.json.xz` (record_chats.py), with the time that it has: a prompt, with the BOS that the template writes, or
  [reason];
- `asked`: what `doctor` asks about each of these templates as that of the file, where the folder has the same one, and
  once about another one, by a hash of the question.

The tokenizer is that of `vocabulary.gguf`, exported as a tokenizer.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from record_chats import EOS, VOCABULARY, read_chats, write_chats

from ggufbpe import Tokenizer, export
from ggufbpe.analysis.oracles.chat_answers import Refused
from ggufbpe.analysis.oracles.oracle import Failure
from ggufbpe.analysis.oracles.transformers_oracle import TransformersOracle, arguments_of
from ggufbpe.analysis.verify.upstream_chats import prompt_findings

SECONDS = 300.0
ANOTHER = "Qwen-Qwen3-0.6B", "<|im_end|>", "<|im_end|> "  # a template, and what is replaced in the folder's


def folder_for(out: Path, template: str) -> Path:
    """A folder of transformers with a template, and the tokenizer of the recorded chats."""
    out.mkdir(exist_ok=True)
    if not (out / "tokenizer.json").exists():
        export(VOCABULARY, "tokenizer.json", check=False).save(out)
        config = json.loads((out / "tokenizer_config.json").read_text())
        (out / "tokenizer_config.json").write_text(json.dumps({**config, "eos_token": EOS}))
    (out / "chat_template.jinja").write_text(template, encoding="utf-8", newline="")
    return out


def model_with(template: str) -> Tokenizer:
    """The vocabulary of the recorded chats with a template."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Tokenizer.from_gguf(VOCABULARY, overrides={"tokenizer.chat_template": template})


def scenarios() -> dict[str, tuple[str, str]]:
    """The templates of the file and of the folder, by name."""
    templates = {name: source for name, source in read_chats("templates").items() if name}
    name, written, changed = ANOTHER
    same = {name: (source, source) for name, source in templates.items()}
    return {**same, "another": (templates[name], templates[name].replace(written, changed))}


def key_of(folder: str, question: Mapping[str, Any]) -> str:
    """The key under which an answer is recorded; `folder` is the template of the folder."""
    said = json.dumps({**question, "folder": folder}, sort_keys=True).encode("utf-8", "surrogatepass")
    return hashlib.sha256(said).hexdigest()[:12]


class Recording(TransformersOracle):
    """The real transformers, and what it was asked and answered. One process serves all: `folder` is the template."""

    folder, asked = "", dict[str, Any]()

    def chat_templates(self) -> dict[str, str]:
        return {"": self.folder}

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any] | Refused | Failure:
        if not question:
            return super().answer(question)
        said = super().answer({"chat_template": self.folder, **question})
        if isinstance(said, Failure):
            raise RuntimeError(f"transformers does not answer: {said}")
        self.asked[key_of(self.folder, question)] = recorded_form(said)
        return said


def recorded_form(said: dict[str, Any] | Refused) -> Any:
    """An answer as it is recorded."""
    return [said.reason] if isinstance(said, Refused) else said["prompt"]


def main() -> int:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    start, chats, prompts = time.time(), read_chats("answers"), {}
    now = datetime.fromtimestamp(chats["now"], timezone.utc).replace(tzinfo=None).isoformat()
    asked: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as temporary,
        closing(Recording(str(folder_for(Path(temporary) / "m", "")), model_with(""), SECONDS)) as oracle,
    ):
        for name, (source, oracle.folder) in scenarios().items():
            if source == oracle.folder:
                answers = []
                for request in chats["requests"].values():
                    oracle.asked = {}
                    said = oracle.answer({**arguments_of(request), "now": now})
                    assert not isinstance(said, Failure)
                    answers.append(recorded_form(said))
                different = [each for number, each in enumerate(answers) if each not in answers[:number]]
                prompts[name] = {"answers": different, "index": list(map(different.index, answers))}
            oracle.asked = asked
            list(prompt_findings(model_with(source), oracle))
            print(f"{name}: {len(asked)} questions of doctor, {time.time() - start:.0f} s", flush=True)
        version = oracle.name.split()[1]
    write_chats("transformers", {"transformers": version, "prompts": prompts, "asked": asked})
    return 0


if __name__ == "__main__":
    sys.exit(main())
