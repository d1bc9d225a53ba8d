// Texts to begin with; each shows something that tokenizers do unlike each other.

export const EXAMPLES = {
  Prose: "It's 2026, and we're reading: tokenization isn't what it looks like.",
  Code: "def f(x):\n    if x > 10:\n        return {'a': x**2}  # squared\n",
  Languages: "Guten Tag · Привет, мир · こんにちは世界 · مرحبا بالعالم · नमस्ते दुनिया",
  Numbers: "1234567 3.14159 0xDEADBEEF 1,000,000 ½ ٣",
  "White space": "two  spaces\n\n\ttabs\t\t and   more   \r\n",
  Emoji: "🙂 👩🏽‍⚕️ 👨‍👩‍👧‍👦 🇫🇷",
  "Special tokens": "<|im_start|>user\nHello<|im_end|>\n<s>[INST] Hello [/INST]</s>",
};
