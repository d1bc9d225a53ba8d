"""Compares Go templates with the real Go, on random templates, values and chats.

    python scripts/compare_go_templates.py --cases 20000 --seed 1
    python scripts/compare_go_templates.py --library FOLDER           # templates of Ollama's, *.gotmpl
    python scripts/compare_go_templates.py --cases 3000 --record      # writes fixtures/recorded/go_templates.json.gz

Needs `go` (Debian's golang-go), which compiles scripts/go_template/main.go. Both must give the same text, or both
refuse. What is refused here because it is not supported, or because Go would print an address of its memory, is counted
by reason, and is no difference. Ends with a line of totals, and with status 1 if anything differed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from random_go_templates import RandomGoTemplates

from ggufbpe import ChatError
from ggufbpe.chat.go_template.execution import GoTemplate
from ggufbpe.chat.go_values import go_json_text
from ggufbpe.chat.ollama_prompt import OllamaTemplate
from ggufbpe.chat.ollama_values import typescript_type
from ggufbpe.chat.template.values import plain, viewed

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "fixtures" / "recorded" / "go_templates.json.gz"
SHOWN = 20
_BATCH = 2000
NOT_DONE = re.compile(r"not supported|Go prints an address|more values than verbs")


def compiled(folder: Path) -> Path:
    """The program that asks Go, compiled into `folder`."""
    program = folder / "go_reference"
    source = ROOT / "scripts" / "go_template" / "main.go"
    subprocess.run(
        ["go", "build", "-o", program, source], check=True, env={**os.environ, "GO111MODULE": "off"}
    )
    return program


def answers_of_go(program: Path, cases: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Go's answer to each case: its "text" or its "error"."""
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]


def answer_of_ours(case: dict[str, Any]) -> dict[str, str]:
    """Ours, in the same form."""
    try:
        if "chat" in case:
            return {"text": OllamaTemplate(case["template"]).prompt(case["chat"]).decode("utf-8", "replace")}
        template = GoTemplate(
            viewed(case["template"]),
            {
                "json": go_json_text,
                "toTypeScriptType": typescript_type,
                "currentDate": lambda *formats: time.strftime("%Y-%m-%d"),
            },
        )
        return {"text": plain(template.render(viewed(case["data"])))}
    except ChatError as error:
        return {"error": str(error)}


def differ(theirs: dict[str, str], ours: dict[str, str]) -> bool:
    """Whether one gives a text that the other does not."""
    return theirs.get("text") != ours.get("text")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument(
        "--library", type=Path, metavar="FOLDER", help="compare these templates, each with --cases chats"
    )
    parser.add_argument("--record", action="store_true", help="write the answers as a fixture")
    arguments = parser.parse_args()
    source = RandomGoTemplates(arguments.seed)
    if arguments.library:
        files = sorted(arguments.library.glob("*.gotmpl"))
        cases = [
            {"template": file.read_text(), "chat": source.chat()}
            for file in files
            for _ in range(arguments.cases)
        ]
    else:
        cases = [source.case() for _ in range(arguments.cases)]
    totals: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    recorded = []
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for first in range(0, len(cases), _BATCH):
            batch = cases[first : first + _BATCH]
            for case, theirs in zip(batch, answers_of_go(program, batch), strict=True):
                ours = answer_of_ours(case)
                recorded.append({**case, **theirs})
                totals["refused"] += "error" in theirs
                if not differ(theirs, ours):
                    continue
                if "error" in ours and NOT_DONE.search(ours["error"]):
                    totals["not supported"] += 1
                    reasons[re.sub(r"^.*column \d+: ", "", ours["error"])] += 1
                    continue
                totals["differences"] += 1
                if totals["differences"] <= SHOWN:
                    print(
                        f"DIFFERENCE {json.dumps(case, ensure_ascii=False)}\n  go   {theirs}\n  ours {ours}"
                    )
    if arguments.record:
        with open(RECORDED, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as out:
            out.write(json.dumps(recorded, separators=(",", ":")).encode())
    for reason, count in reasons.most_common(12):
        print(f"not supported, {count} times: {reason}")
    print(
        f"compared with Go: {len(cases)} cases ({totals['refused']} refused by it), {totals['not supported']} not "
        f"supported, {totals['differences']} differences"
    )
    return 1 if totals["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
