"""Writes fixtures/raw-utf8.gguf: a small vocabulary in raw UTF-8, for the names that do not byte-encode.

    python tests/makers/make_raw_vocab.py [--out PATH]

The pre-tokenizers gemma4, granite-embed-multi-311m, sarvam-moe and whitespace look words up as they are
written, with "▁" (U+2581) for a space and `<0xXX>` tokens for bytes, so GPT-2's vocabulary says nothing about
them. This one has the shape of Gemma's: control tokens first, then user-defined tokens, runs of line breaks
as normal tokens, byte tokens, characters, and what a byte pair trainer of thirty lines learns from the texts
below, which were written for this file. The same texts always give the same file.

But: it is not a good vocabulary. It has to hold merges of many lengths in many scripts, and no more.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

from gguf import TokenType

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference import ROOT, write_metadata

MERGES = 1200
LINE_BREAK_RUNS = 5  # "\n" to "\n" * 5 are tokens, and merges build them

CONTROL = [
    *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<unused0>", "<unused1>"),
    *("<|image>", "<image|>", "<|tool_response>", "</s>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
]
USER_DEFINED = ["<|channel>", "<channel|>", "<table>", "</table>", "▁▁▁▁▁▁", "[multimodal]", "<h1>", "\t\t"]

TEXTS = """\
A tokenizer turns a text into numbers, and the numbers into a text again. The text is cut into pieces, and
each piece is looked up in a table of tokens. What is not in the table is put together from smaller tokens.
The first rule of merging is that the pair with the lowest rank goes first; the second rule is that the
leftmost of equal pairs goes first. Where no rule applies any more, the word is done.
Don't say it's easy, they'll ask what you've done; we're sure she'd know, and I'm not. DON'T, IT'S, THEY'LL.
Numbers: 0 1 2 3 4 5 6 7 8 9 10 11 12 100 123 1000 1234 2024 3.14159 1,000,000 50% $9.99 1/2 2^10 -40
Punctuation: . , ; : ! ? ... -- () [] {} <> "" '' `` @ # $ % ^ & * _ = + | ~ / \\\\ // /* */ -> => == != <= >=
def merge(pair, word):
    for left, right in zip(word, word[1:]):
        if (left, right) == pair:
            return left + right
    return None
int main(int argc, char ** argv) { printf("Hello, world!\\\\n"); return 0; }
SELECT name, count(*) FROM tokens WHERE rank < 100 GROUP BY name ORDER BY 2 DESC;
<html><body><p class="text">Hello</p></body></html> {"key": [1, 2.5, true, null]}
Der Text wird in Wörter zerlegt, und jedes Wort in kleine Stücke. Größe, Straße, Übung, schön, fünf Äpfel.
Le texte est découpé en mots, puis chaque mot en morceaux. L'été, où ça, français, élève, cœur, naïf, forêt.
El texto se divide en palabras y cada palabra en trozos pequeños. ¿Qué es esto? ¡Mañana, señor! Niño, año.
O texto é dividido em palavras, e cada palavra em pedaços. Não, coração, você, ações, pão, lições.
Metin kelimelere, kelimeler parçalara bölünür. Türkçe'de, İstanbul'dan, ığdır, şimdi, güneş, çok, öğle.
Tekst dzieli się na słowa, a słowa na części. Zażółć gęślą jaźń, łódź, źródło, ćma, święto.
Văn bản được chia thành từ và mỗi từ thành các mảnh nhỏ. Tiếng Việt, người, những, được, không, đường.
Текст делится на слова, а каждое слово на части. Словарь хранит число для каждой части слова. Ещё, объём.
Текст ділиться на слова, а кожне слово на частини. Їжак, єнот, ґанок, свій, її, ці.
Το κείμενο χωρίζεται σε λέξεις και κάθε λέξη σε μικρά κομμάτια. Ελλάδα, ήλιος, ώρα, ύδωρ, φως.
הטקסט מתחלק למילים וכל מילה מתחלקת לחלקים קטנים. שלום, עולם, ספר, ילד, בית.
ينقسم النص إلى كلمات وتنقسم كل كلمة إلى أجزاء صغيرة. السلام عليكم، كتاب، مدرسة؟ ٠١٢٣٤٥٦٧٨٩
متن به واژه\u200cها بخش می\u200cشود و هر واژه به پاره\u200cهای کوچک. سلام دنیا، کتاب، گل، چای، پدر ۰۱۲۳۴۵۶۷۸۹
पाठ को शब्दों में बाँटा जाता है और हर शब्द को छोटे टुकड़ों में। नमस्ते दुनिया, किताब, हिन्दी, क्षत्रिय, ज्ञान।
লেখাটি শব্দে ভাগ হয় এবং প্রতিটি শব্দ ছোট অংশে ভাগ হয়। নমস্কার বিশ্ব, বই, বাংলা, ক্ষমা।
உரை சொற்களாகப் பிரிக்கப்படுகிறது. வணக்கம் உலகம், புத்தகம், தமிழ், நன்றி.
ข้อความถูกแบ่งเป็นคำ และแต่ละคำเป็นส่วนเล็ก ๆ สวัสดีชาวโลก หนังสือ ภาษาไทย น้ำ ผู้ใหญ่
ຂໍ້ຄວາມຖືກແບ່ງເປັນຄຳ ສະບາຍດີຊາວໂລກ ພາສາລາວ
អត្ថបទត្រូវបានបំបែកជាពាក្យ សួស្តីពិភពលោក ភាសាខ្មែរ
စာသားကို စကားလုံးများအဖြစ် ခွဲသည်။ မင်္ဂလာပါ ကမ္ဘာ မြန်မာဘာသာ
文本被切分成词，每个词再切分成小块。你好，世界！中文的书在桌子上。今天天气很好，我们去公园。
文字被切分成詞，每個詞再切分成小塊。你好，世界！這裡有很多書。
文章は単語に分けられ、単語はさらに小さな部分に分けられます。こんにちは、世界！カタカナのテキスト、データ。
글은 낱말로 나뉘고, 낱말은 작은 조각으로 나뉩니다. 안녕하세요, 세계! 한국어 책, 오늘 날씨가 좋습니다.
ტექსტი იყოფა სიტყვებად. გამარჯობა, მსოფლიო! წიგნი, ქართული.
Տեքստը բաժանվում է բառերի։ Բարեւ, աշխարհ։ Գիրք, հայերեն։
ጽሑፉ ወደ ቃላት ይከፈላል። ሰላም ለዓለም። መጽሐፍ፣ አማርኛ።
Signs: © ® ™ € £ ¥ § ¶ † ‡ • … – — ‘ ’ “ ” « » × ÷ ± ≤ ≥ ≠ ∞ √ ∑ ∫ → ← ↑ ↓ ■ □ ★ ☆ ♥ ♪ ² ³ ½ ¼ Ⅳ ①
Faces: 🙂 😀 😂 🤔 👍 👍🏽 👩\u200d💻 👨\u200d👩\u200d👧 🇩🇪 🇫🇷 ❤\ufe0f ✅ 🚀 🦙 1\ufe0f\u20e3
"""


def learn(lines: list[list[str]], count: int) -> list[tuple[str, str]]:
    """The `count` merges that byte pair encoding learns from lines of symbols; joins the symbols in place.

    The most frequent pair goes first; of equally frequent ones the shortest, then the first by code points.

    >>> learn([list("abab")], 1)
    [('a', 'b')]
    """
    merges: list[tuple[str, str]] = []
    for _ in range(count):
        pairs = Counter(pair for line in lines for pair in pairwise(line))
        best = min(pairs, key=lambda pair: (-pairs[pair], len(pair[0] + pair[1]), pair))
        merges.append(best)
        for line in lines:
            join(line, best)
    return merges


def join(line: list[str], pair: tuple[str, str]) -> None:
    """Join each occurrence of `pair` in `line`, in place."""
    position = 0
    while position < len(line) - 1:
        if line[position] == pair[0] and line[position + 1] == pair[1]:
            line[position : position + 2] = [pair[0] + pair[1]]
        position += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "fixtures" / "raw-utf8.gguf")
    out = parser.parse_args().out
    lines = [list(line.replace(" ", "▁")) for line in TEXTS.splitlines()]
    characters = sorted({character for line in lines for character in line})
    merges = [("\n" * (count - 1), "\n") for count in range(2, LINE_BREAK_RUNS + 1)]
    merges += [("▁" * count, "▁" * count) for count in (1, 2, 4)]
    merges += learn(lines, MERGES)
    kinds = dict.fromkeys(CONTROL, TokenType.CONTROL)
    kinds |= dict.fromkeys(USER_DEFINED, TokenType.USER_DEFINED)
    kinds["\n"] = TokenType.NORMAL
    kinds |= {f"<0x{byte:02X}>": TokenType.BYTE for byte in range(256)}
    for token in [*characters, *map("".join, merges)]:
        kinds.setdefault(token, TokenType.NORMAL)
    write_metadata(
        out,
        {
            "general.architecture": "gemma4",
            "general.name": "ggufbpe raw UTF-8 fixture",
            "tokenizer.ggml.model": "gemma4",
            "tokenizer.ggml.pre": "gemma4",
            "tokenizer.ggml.tokens": list(kinds),
            "tokenizer.ggml.token_type": [int(kind) for kind in kinds.values()],
            "tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges],
            "tokenizer.ggml.bos_token_id": list(kinds).index("<bos>"),
            "tokenizer.ggml.eos_token_id": list(kinds).index("<eos>"),
            "tokenizer.ggml.unknown_token_id": list(kinds).index("<unk>"),
            "tokenizer.ggml.padding_token_id": list(kinds).index("<pad>"),
            "tokenizer.ggml.mask_token_id": list(kinds).index("<mask>"),
            "tokenizer.ggml.add_bos_token": True,
        },
    )
    print(f"{out}: {len(kinds)} tokens, {len(merges)} merges, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
