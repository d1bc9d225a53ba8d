"""Write ggufbpe/chat/chat_templates.json.xz from models/templates in llama.cpp's sources.

    python scripts/generate_chat_templates.py            # writes the file
    python scripts/generate_chat_templates.py --print    # prints what is in it

The sources of the state that is followed are looked for in .cache/llama.cpp-b11549: a checkout, or a link to one. The
file has each template by its name there, and the names of the models that it belongs to, by which `ggufbpe doctor`
recognizes a model's file. Those come out of the template's name, but for the ones in MODELS.

But: a model's name says which template llama.cpp has for it, not that its publisher has no newer one.
"""

from __future__ import annotations

import json
from pathlib import Path

from generated_file import write_or_print
from reference import CHATS, ROOT, cache_directory

TARGET = ROOT / "ggufbpe" / "chat" / "chat_templates.json.xz"

# What stands before the model in the names of templates.
PUBLISHERS = (
    *("ByteDance", "CohereForAI", "HuggingFaceTB", "IFM", "NVIDIA", "NousResearch", "Qwen", "deepseek-ai"),
    *("fireworks-ai", "google", "ibm-granite", "inclusionai", "llm-jp", "meetkai", "meta-llama", "microsoft"),
    *("mistralai", "moonshotai", "openai", "openbmb", "poolside", "tencent", "unsloth", "upstage"),
)
# The models of templates whose names do not say them. None: one that llama.cpp's authors wrote or changed for a model
# that has another one, or one of unknown models; it is no measure for any.
MODELS: dict[str, tuple[str, ...]] = {
    "Apriel-1.6-15b-Thinker-fixed": (),
    "Cohere2MoE": (),
    "LFM2.5-Instruct": (),
    "MiMo-VL": (),
    "Qwen3-Coder": ("Qwen3-Coder-30B-A3B-Instruct", "Qwen3-Coder-480B-A35B-Instruct"),
    "Spark2.5": ("Spark-X2.5-1.7B", "Spark-X2.5-4B"),  # by models/templates/README.md
    "StepFun3.5-Flash": (),
    "deepseek-ai-DeepSeek-V3.2": (),
    "deepseek-ai-DeepSeek-V4": (),
    "deepseek-ai-DeepSeek-V4-Flash-0731": (),
    "google-gemma-4-31B-it-interleaved": ("gemma-4-31B-it",),
    "llama-cpp-deepseek-r1": (),
    "llama-cpp-rwkv-world": (),
    "meta-llama-Llama-3.1-8B-Instruct": ("Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B-Instruct"),
    "moonshotai-Kimi-K2": ("Kimi-K2-Instruct",),
    "muse-glimmer": (),
    "openai-gpt-oss-120b": ("gpt-oss-120b", "gpt-oss-20b"),
    "unsloth-Apriel-1.5": (),
    "unsloth-mistral-Devstral-Small-2507": (),
}
FOR_TOOLS = "-tool_use"


def models_of(template: str) -> list[str]:
    """The names of the models that a template belongs to, without their publishers."""
    if template in MODELS:
        return list(MODELS[template])
    name = template.removesuffix(FOR_TOOLS)
    publisher = next((each for each in PUBLISHERS if name.startswith(f"{each}-")), None)
    return [name if publisher is None else name[len(publisher) + 1 :]]


def module_text() -> str:
    """What is in the file, unpacked. `FileNotFoundError` where the sources are not."""
    folder: Path = cache_directory() / f"llama.cpp-{CHATS}" / "models" / "templates"
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no {folder}")
    templates = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.jinja"))}
    content = {
        "llama.cpp": CHATS,
        "models": {name: models_of(name) for name in templates},
        "templates": templates,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    write_or_print(__doc__, TARGET, module_text)
