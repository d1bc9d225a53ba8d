"""The texts of the recorded answers: every branch of every pattern that llama.cpp splits with.

    [this file] -> record_fixtures.py -> fixtures/recorded/

`GROUPS` has them by what they are for; `texts()` has them all once, as bytes, in a fixed order. The branches
are those of the patterns in llm_tokenizer_bpe (src/llama-vocab.cpp) and of the hand-written splitters in
src/unicode.cpp. Many texts are made by rule, since the branches are: a contraction in each case, after each
kind of neighbour; digits by count; each white space alone, doubled, and before and after a letter.

But: no sequence that decodes to more than U+10FFFF, on which llama.cpp ends the process, and no run beyond
some hundred characters outside of white space, on which its regular expressions overflow the stack.
"""

# Lists of texts are read better several to a line.
# fmt: off

from __future__ import annotations

from itertools import product

# The 25 code points of the property White_Space.
WHITE_SPACE = [
    "\t", "\n", "\v", "\f", "\r", " ", "\x85", "\xa0", "\u1680",
    *map(chr, range(0x2000, 0x200B)),
    "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
]
# What is white space elsewhere, or looks like it: Python's str.isspace, or none at all.
NOT_WHITE_SPACE = [
    "\x1c", "\x1d", "\x1e", "\x1f", "\u180e", "\u200b", "\u2060", "\ufeff", "\x00", "\x08", "\x7f",
]

# One code point of each kind that a class of a pattern tells apart, on both sides of ASCII.
KINDS = {
    "lower": "a",
    "upper": "B",
    "letter beyond ASCII, lower": "é",
    "letter beyond ASCII, upper": "É",
    "titlecase": "ǅ",
    "modifier letter": "ʰ",
    "other letter": "ª",
    "digit": "7",
    "digit beyond ASCII": "٣",
    "letter number": "Ⅳ",
    "other number": "²",
    "punctuation": ".",
    "apostrophe": "'",
    "slash": "/",
    "bar": "|",
    "punctuation beyond ASCII": "»",
    "symbol": "$",
    "grave": "`",
    "symbol beyond ASCII": "€",
    "mark": "\u0301",
    "spacing mark": "\u093e",
    "enclosing mark": "\u20dd",
    "space": " ",
    "tab": "\t",
    "line break": "\n",
    "carriage return": "\r",
    "no-break space": "\xa0",
    "ideographic space": "\u3000",
    "control": "\x01",
    "control beyond ASCII": "\x9f",
    "format": "\u200d",
    "unassigned": "\u0378",
    "private use": "\ue000",
    "noncharacter": "\uffff",
    "surrogate": "\ud800",
    "Han": "中",
    "Han extension B": "\U00020000",
    "Han, unassigned": "\U0002a6de",
    "kana": "カ",
    "Hangul": "한",
    "Thai": "ก",
    "emoji": "🦙",
}

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]

CODE = [
    "def fib(n: int) -> int:\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n",
    "\tfor (size_t i = 0; i < n; ++i) {\n\t\tsum += a[i] * 2.5e-3f; // TODO: don't\n\t}\n\n\treturn sum;\n",
    "#include <vector>\n\ntemplate <typename T> T max(T a, T b) { return a > b ? a : b; }\n",
    'fn main() {\n    let x: Vec<u8> = vec![0x1F, 0b1010];\n    println!("{:?}", &x[..]);\n}\n',
    "const f = async (x) => { await g(`${x}`); return x?.y ?? null; };\r\n\r\nexport default f;\r\n",
    "SELECT \"id\", count(*) AS n FROM t WHERE a <> 'it''s' GROUP BY 1 HAVING n >= 10;--end\n",
    '<div class="a b">\n  <p>Tom &amp; Jerry&#39;s</p>\n</div><!-- end -->\n',
    '{"a": [1, 2.50, -3e10, true, null], "b\\n": {"c": "\\u00e9"}}',
    "#!/bin/sh\nset -eu\nfor f in *.txt; do echo \"$f\" | sed 's/a/b/g' >> /tmp/x; done\n",
    "key: value\nlist:\n  - 1\n  - two\n\n\nempty: ~\n",
    "module Main where\n\nmain :: IO ()\nmain = mapM_ print $ filter even [1..10]\n",
    "\\begin{equation}\n  E = mc^2 \\quad \\forall x \\in \\mathbb{R}\n\\end{equation}\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n# Title\n\n* item\n* **bold** _it_\n\n```py\nx = 1\n```\n",
    "camelCase PascalCase snake_case SCREAMING_SNAKE kebab-case HTMLParser iPhone XMLHttpRequest2 eBay",
    "https://example.org/a/b?c=d&e=f#g user@example.org C:\\Users\\x ../..//./ ~/a.b.c v1.2.3-rc4",
    "if(a&&b||!c){x=y==z?1:0;}else{return;}//end\n/*\n * c\n */\n",
    "0x1F 0b1010 1e-9 1_000_000 3.14159265358979 .5 5. 1,234,567.89 12:34:56 2024-01-31 +1-800-555-0199",
]

PROSE = [
    "The quick brown fox jumps over the lazy dog. THE QUICK BROWN FOX! Jumps? Over; the: lazy, dog...",
    "“I don’t know,” she said—‘it’s 5 o’clock’… isn't it? We'LL see; they'Ve gone, I'D go, he'S here.",
    "Der Straßenbauer möchte 3,5 km Straße für 1.234,56 € bauen – „schön“, sagte er.",
    "L'été où j'ai vu l'œuvre d'Éluard : « Ça va ? » N'est-ce pas ?",
    "¿Dónde está la niña? ¡En el jardín, señor! 1.º y 2.ª",
    "Türkiye'nin İstanbul'da ışığı 5'inci kez IĞDIR'a gitti.",
    "Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Árvíztűrő tükörfúrógép.",
    "Tiếng Việt được viết bằng chữ Quốc ngữ, ví dụ: người, nước, phở.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Їжак і ґанок.",
    "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. Ἀρχὴ ἥμισυ παντός· τί;",
    "שלום עולם! בְּרֵאשִׁית בָּרָא אֱלֹהִים 5₪ צה״ל", "السلام عليكم، كيف حالك؟ العَرَبِيَّة ١٢٣٤٥٦٧ كـتـاب۔",
    "سلام دنیا، می\u200cخواهم ۱۲۳ کتاب بخرم.", "ܫܠܡܐ ދިވެހި ߒߞߏ ⴰⵣⵓⵍ ᐃᓄᒃᑎᑐᑦ ᚠᚢᚦ ᏣᎳᎩ ᎠᏂ ꭰꮿ",
    "नमस्ते दुनिया। हिन्दी क्षत्रिय ज्ञान १२३४ ॐ शान्तिः॥",
    "বাংলা ভাষা ১২৩ ক্ষমা। ਪੰਜਾਬੀ ੧੨੩ ગુજરાતી ૧૨૩ ଓଡ଼ିଆ ୧୨୩",
    "தமிழ் மொழி ௧௨௩ తెలుగు ౧౨౩ ಕನ್ನಡ ೧೨೩ മലയാളം ൧൨൩ සිංහල", "สวัสดีชาวโลก ภาษาไทย ๑๒๓ น้ำ ผู้ใหญ่ ฿5 ๆ ฯ",
    "ສະບາຍດີ ພາສາລາວ ໑໒໓ ភាសាខ្មែរ ១២៣៤ សួស្តី។", "မြန်မာဘာသာ ၁၂၃ မင်္ဂလာပါ။ ꩠꩡ ꧠꧡ ၵႃႇ",
    "བོད་ཡིག་ ༡༢༣ བཀྲ་ཤིས། ᠮᠣᠩᠭᠣᠯ ᠑᠒᠓ ꡏꡡ", "ქართული ენა ႠႡ ᲐᲑ ⴀⴁ Հայերեն լեզու։ ԱՖ աֆ",
    "አማርኛ ፩፪፫ ሰላም ለዓለም። ትግርኛ፣",
    "我想在apple工作1314151天～。今天天气很好，我们去公园！《书》、（注）：“好”……",
    "漢字かな交じり文、カタカナｶﾀｶﾅ「ー」・々〆〇。東京2024年1月５日！",
    "한국어 문장입니다. ㄱㄴㄷ ㅏㅑ ㆎ 가각 힣 ힰ 대한민국２０２４년",
    "ㄅㄆㄇㄈ ㄯ ㄪ 注音ㄓㄨˋ ㆠ ꀀꀁ 〱〲 〡〢〣 ㈠ ㊀ ㋀ ㍿ ㎏",
    "𝐀𝐛𝟏𝟐 𝔄𝔟 ｆｕｌｌ ＷＩＤＴＨ １２３ ！？ ﬁﬂ ǅǈ ʰˠ ªº ⅷⅧ ↁ",
    "𐍈𐎠 𐐀𐐨 𐒰𐓘 𐲀𐳀 𑢠𑣀 𞤀𞤢 𐡀 𐤀 𐩠 𒀀 𓀀 𖠀 𛀀 𛅰 𞄀",
]


def contraction_texts() -> list[str]:
    """Each contraction in each mix of case, within a sentence and at every kind of place."""
    found = []
    for contraction in CONTRACTIONS:
        cases = sorted(
            {"".join(letters) for letters in product(*zip(contraction, contraction.upper(), strict=True))}
        )
        found += [f"they{case} 9{case}x .{case}. {case}" for case in cases]
        found.append("".join(cases))
    found += [f"I{c}{c}" for c in CONTRACTIONS]
    found += [f"x\u2019{c[1:]} X\u2019{c[1:].upper()}" for c in CONTRACTIONS]
    found += [
        "'", "''", "'''s", "' s", "'\ns", "'sub 'store 'really 'very 'men 'llama 'dog", "'r 'v 'l", "'R'V'L",
        "'rE",
    ]
    found += [
        "'ſ 'ſt 'ſſ", "don't", "DON'T", "Don'T'd've", "y'all'd've", "o'clock", "rock'n'roll",
        "'\u0130'\u212a", "x'ſ 'ſx it'ſ\u0301 'ſ",
    ]
    found += ["é's É'S 中's 中'S ١'s 😀's \u0301's a\u0301's \t's \n's \xa0's _'s a_'s", "a'b'c'd'e", "it's'"]
    return found


def digit_texts() -> list[str]:
    """Runs of digits by length, alone and between neighbours, and digits of every sort."""
    digits = "1234567890123"
    found = [digits[:count] for count in range(1, 14)]
    found += [f"a{digits[:count]}b {digits[:count]} x" for count in range(1, 9)]
    found += [f"-{digits[:count]}.{digits[:count]}," for count in (1, 2, 3, 4, 6, 7)]
    found += ["٠١٢٣٤٥٦٧٨٩"[:count] for count in (1, 2, 3, 4, 5, 7, 10)]
    found += ["²³¹⁴⁵⁶⁷"[:count] for count in (1, 2, 3, 4)]
    found += [
        "12٣٤٥6", "1²3⁴5", "ⅣⅤⅥⅦ", "½¼¾⅐", "①②③④⑤", "１２３４５６７", "𝟏𝟐𝟑𝟒", "〇一二三四五", "〡〢〣〤",
        "১২৩৪৫৬৭",
    ]
    found += [
        "1 2  3   4    5", "1\n22\n333\n4444", "1a22b333c4444d", "1.2.3", "1,234,567", "12 345 678", "0x7F",
        "1e10",
    ]
    found += [
        "1\u03012", "1\u20e32\ufe0f\u20e3", "5'5\"", "123's", "x1y22z333", "1234567é", "é1234567",
        "中1234中12",
        "12_34_56",
    ]
    found += [
        " 1", "  12", "\t123", "\n1234", "\xa01", "\u30001", "1 ", "1\n", "1\r\n", "1234 ", "1234567\n\n",
        "1_", "_1", "$1", "1$",
    ]
    found += ["1" * count for count in (20, 21, 22, 99, 100, 101, 300)]
    return found


def white_space_texts() -> list[str]:
    """Each white space alone, in runs, and beside letters, digits and punctuation."""
    found = []
    for space in [*WHITE_SPACE, *NOT_WHITE_SPACE]:
        found += [
            space,
            f"a{space}b{space}{space}c{space}",
            f"{space}.{space}{space}1{space} {space}x \n{space}",
        ]
    found += [" " * count for count in range(2, 21)]
    found += ["a" + " " * count + "b" for count in range(2, 21)]
    found += [" " * count + "x" for count in (2, 3, 5, 8)] + ["x" + " " * count for count in (1, 2, 3, 5, 8)]
    found += [" " * count + "y" for count in (31, 32, 33, 64, 65, 128, 129, 255, 256, 257)]
    found += [" " * count for count in (511, 512, 513, 1024, 1025)]
    found += [" " * count + "z" for count in (511, 512, 513, 514, 1024, 1025)]
    found += ["\t" * count for count in (2, 3, 4, 5, 8, 16)] + [
        "a" + "\t" * count + "b" for count in (2, 3, 5)
    ]
    found += ["\u3000" * count + "x" for count in (1, 2, 3, 5)] + ["\xa0" * count for count in (2, 3, 5)]
    found += [
        " \t \t", "\t \t x", " \xa0 \xa0a", "\xa0 a", " \xa0a", "\u2003\u2009 .", " \x85a\x85 b", "a \v\f b",
        "\x0b\x0bx",
    ]
    found += ["\x1c\x1d\x1e\x1f", "a\x1cb", " \x1f x", "\x1f.\x1f1"]
    found += ["▁", "▁▁", " ▁ a▁b", "▁▁▁▁▁▁ x", "Ġ Ċ ĉ Ġthe", "Ā ā Ń ń Ł"]
    return found


def line_break_texts() -> list[str]:
    """Line breaks in each mix, before and after everything that patterns tie them to."""
    found = ["\n" * count for count in (2, 3, 4, 5, 6, 7, 12, 31)]
    found += ["a" + "\n" * count + "b" for count in (1, 2, 3, 4, 5, 8)]
    found += ["\r\n", "\n\r", "\r\r", "\r\n\r\n", "a\rb", "a\r\nb", "a\r\n\r\nb", "a\n\rb", "\r\n\n\r x"]
    found += [
        " \n", "\n ", " \n ", "  \n  ", "\t\n\t", " \n \n ", "\n \n a", "a \n b", "a  \n\n  b",
        "a\n  b\n    c", "\n\t\tx",
    ]
    found += [
        ".\n", ".\n\n", "!\r\n\r\nA", "a.\n\n b", "\n.", "\n\n)", " \n.", "\n 's", "./\n", "a/\n/b",
        ".//\n\n//.", "//\r/\n/",
    ]
    found += ["...\n\n...\n", "{\n\n}\n", ";\n\n\n\tx", "x;\r\n\r\n\ty", "-\n-\n-", "a,\n1.\n中。\n\n文"]
    found += [
        "1\n", "1\n\n2", "\n1", "\n\n12", "é\n\né", "中\n中", "🦙\n🦙", "\u0301\n\u0301", "\n\u0301",
        "\x00\n\x00", "\ue000\n",
    ]
    found += [
        "\u2028\u2029", "a\u2028b\u2029\u2029c", "a\x85b\x85\x85c", "\n\u3000\n\u3000a", "\n\xa0\n\xa0a",
        "\xa0\n", "\x85\n \x85",
    ]
    found += [" \r", "\r ", " \r ", "\r\t.", "\v\n", "\n\v", "\f\n\f"]
    found += ["▁a▁ b▁▁\n▁\n\n c\nd▁", "\n▁\n ▁\nx"]
    return found


def mark_texts() -> list[str]:
    """Combining marks where they belong and where they do not."""
    return [
        "a\u0315\u0300 q\u0307\u0323 \u0344", "\u1112\u1161\u11ab \uac00\u11a8", "\u212b\u2126 \u0958",
        "=\u0338 \u0f73\ufa19",
        "e\u0301", "cafe\u0301 cafe\u0301s", "E\u0301COLE e\u0301cole", "\u0301", " \u0301",
        "\u0301\u0302a", "\u0301A",
        "a \u0301b", "1\u03011", ".\u0301.", "'\u0301s", "s'\u0301s", "e\u0301's", "\n\u0301a", "$\u0301",
        "\u0301\u0301",
        "\u0301.", "\u0301 .", "\u0301\n", "\u03011", "(\u0301)", "(\u0301a)", "क\u094dष", "\u094dक",
        "\u093e\u0928", " \u0947x",
        "a\u20dd b\u20e3", "\u0e31\u0e01", "ก\u0e49\u0e33", "\u05b0ב", "\u064e\u0639", "ไ\u0e17ย",
        "\u3099か\u3099", "\u302aㅏ",
        "A\u0301b\u0301C\u0301", "a\u0301B\u0301c", "É e\u0301 \u0301E", "\ufe0fa", "a\ufe0f\ufe0f",
        "a" + "\u0301" * 40,
        "नि\u093fन\u094d\u200dद",
        # K2 Horizon has marks and both joiners inside words, and in front of them
        "می\u200cخواهم", "क\u094d\u200dष क\u094d\u200cष", "\u200c \u200d\u200c", "\u200da .\u200d. \u200c1\u200d",
        "'\u200d '\u0301s 'ſ\u0301", "\n\u200c\r\u0301 \t\u200da",
    ]


def script_texts() -> list[str]:
    """Words of every major script, bare, after a space, and beside Latin, digits and punctuation."""
    words = [
        "Ελλάδα", "Россия", "Հայ", "שלום", "سلام", "ܫܠܡܐ", "नमस्ते", "বাংলা", "ਪੰਜਾਬ", "ગુજ", "தமிழ்",
        "తెలుగు",
        "ಕನ್ನಡ", "മലയാളം", "සිංහල", "ไทย", "ລາວ", "བོད", "မြန်မာ", "ქართ", "ᲥᲐᲠ", "한국", "አማ", "ᏣᎳᎩ", "ខ្មែរ",
        "ᠮᠣᠩ", "かな", "カナ", "ㄅㄆ", "中文", "ꯃꯤ", "𞤀𞤣", "𐐀𐐨", "ｶﾅ", "가", "ꥠ", "ힰ", "⽅⼀",
    ]
    return [f"{word} {word}a a{word}1{word}.{word}'s {word.upper()}\n{word}" for word in words]


def han_texts() -> list[str]:
    """Code points at both ends of every Han range that llama.cpp has, and just outside."""
    ranges = [
        (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2CEB0, 0x2EBEF), (0x2F800, 0x2FA1F),
    ]
    found = [
        f"a{before}{first}{last}{after}b {first}1{last}. {before}a"
        for before, first, last, after in (map(chr, (a - 1, a, b, b + 1)) for a, b in ranges)
    ]
    edges = [
        0x2E7F, 0x2E80, 0x2F00, 0x2FDF, 0x2FE0, 0x3000, 0x3001, 0x3002, 0x3003, 0x3005, 0x3006, 0x3007,
        0x303F,
        0x3040, 0x3041, 0x3096, 0x3097, 0x3099, 0x309F, 0x30A0, 0x30FB, 0x30FF, 0x3100, 0x3104, 0x3105,
        0x312F,
        0x3130, 0x3131, 0x318E, 0x318F, 0x4DFF, 0x9FA5, 0x9FA6, 0xA000, 0xA97C, 0xA9DF, 0xA9E0, 0xA9FF,
        0xAA00,
        0xAA5F, 0xAA60, 0xAA7F, 0xAA80, 0xABFF, 0xAC00, 0xD7A3, 0xD7A4, 0xD7AF, 0xD7B0, 0xD7FF, 0x8C47,
        0x8C48,
        0x07FF, 0x0800, 0x0DFF, 0x0E3F, 0x0E40, 0x0E7F, 0x0E80, 0x0EFF, 0x0F00, 0x0FFF, 0x1000, 0x109F,
        0x10A0,
        0x10FF, 0x1100, 0x11FF, 0x1200, 0x177F, 0x1780, 0x17FF, 0x1800, 0xFE2F, 0xFE30, 0xFE4F, 0xFE50,
        0xFF00,
        0xFF01, 0xFF0F, 0xFF10, 0xFF19, 0xFF1A, 0xFF5E, 0xFF5F, 0xFF64, 0xFF65, 0xFF9F, 0xFFA0, 0x2013,
        0x2014,
        0x2017, 0x2018, 0x201F, 0x2020, 0x2026, 0x06D4, 0x060C, 0x0964, 0x0965, 0xFF0C, 0x3164, 0xFFDC,
        0xE01EF,
    ]
    found += [f"a{chr(edge)}b {chr(edge)}{chr(edge)}." for edge in edges]
    found += [
        "中a文B1字", "你好ok你好 OK好", "中'文's", "中 文  字", "中。文，字！", "々〆〇",
        "\U00030000\U000323af𠮷野家",
        "中" * 200,
    ]
    return found


def emoji_texts() -> list[str]:
    return [
        "🦙", "🙂🙂", " 🙂", "a🙂b", "🙂a", "🙂 a", "👍🏽", "👩\u200d💻", "👨\u200d👩\u200d👧\u200d👦", "❤️",
        "❤\ufe0f\u200d🔥", "🇩🇪🇫🇷",
        "1\ufe0f\u20e3", "#\ufe0f\u20e3", "🏴\U000e0067\U000e0062\U000e007f", "☺", "☺\ufe0e", "✅✔✓", "→←",
        "©®™", "🫨🪿",
        "🚀 (normal) 😶\u200d🌫️ (multiple emojis concatenated) ✅ (only emoji that has its own token)",
        "\u200d", "\u200da", "a\u200db", "\ufe0f", "\u200b\u200b", "\u202ea\u202c", "\u2066x\u2069",
        "a\u00adb",
    ]


def odd_code_point_texts() -> list[str]:
    """Unassigned, private, noncharacters, controls, and surrogates, which only bytes can hold."""
    odd = [
        0x00, 0x01, 0x07, 0x1B, 0x7F, 0x80, 0x9F, 0xAD, 0x378, 0x0530, 0x061C, 0x085F, 0x0EFF, 0x1ACF,
        0x2065,
        0x20C1, 0x2FE0, 0x31E4, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xF8FF, 0xFDD0, 0xFFF0,
        0xFFF9,
        0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x1000C, 0x1FFFE, 0x1FAFF, 0x2A6E0, 0x2FA1E, 0x323B0, 0xE0001,
        0xE0100,
        0xF0000, 0xFFFFD, 0xFFFFE, 0x100000, 0x10FFFD, 0x10FFFF,
    ]
    found = [f"{chr(point)}a {chr(point)}{chr(point)}.\n{chr(point)}1" for point in odd]
    found += [
        "\x00", "\x00\x00", "a\x00b\x00", " \x00", "\x1b[31mred\x1b[0m", "\x07\x08", "\ud83d\ude00",
        "a\ud800b\udfff",
    ]
    return found


BROKEN_UTF8 = [
    b"\x80", b"\xbf\xbf", b"a\x80b", b"\xc3", b"a\xc3", b"\xc3a", b"\xc3 a", b"\xc3\xc3\xa9", b"\xe2\x82",
    b"\xe2\x82a",
    b"\xe2a", b"\xf0\x9f\xa6", b"\xf0\x9f\xa6a", b"\xf0\x9f", b"\xf0", b"\xf0a", b"\xff", b"\xfe\xff",
    b"\xff\xfea",
    b"\xc0\x80", b"\xc1\xbf", b"\xc0\xaf", b"\xe0\x80\x80", b"\xe0\x80\xaf", b"\xe0\x9f\xbf",
    b"\xf0\x80\x80\x80",
    b"\xf0\x80\x80\xa0", b"\xf0\x8f\xbf\xbf", b"\xc1\x81\xc1\xa1", b"\xc0\xa0a\xc0\xa0", b"\xc0\x8a\xc0\x8a",
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80", b"\xf4\x8f\xbf\xbf", b"\xf5",
    b"\xf8\x88\x80\x80\x80",
    b"\xf4\x90\x80\x80 a", b"a\xf7\xbf\xbf\xbfb", b"\xe0\xa0\x80\xf0\x90\x80\x80", b"\xc0 \xc1a \xe0\x80",
    b"\xf8a", b"\xfc\x80", b"caf\xe9 na\xefve", b"\xa4\xa4\xa4\xe5", b"\x93quoted\x94 it\x92s",
    b"ok\xff\xffok \xff ok",
    b"\xe2\x96", b"\xe2\x96\x81\xe2", b"1\xc3\x28", b"\xe4\xb8\xad\xe6\x96", b"\xe6\x96\x87\x96\x87",
    b"\n\xc2", b"\xc2\n",
    b"\xc2\x85", b"\xc2\xa0\xc2", b"\xef\xbf\xbd", b"\xef\xbb\xbfBOM", b"'\xc5\xbf", b"12\xb9\xb2",
    bytes(range(0x80, 0xC0)),
    bytes(range(32)), bytes(range(32, 127)), bytes(range(0xC0, 0xF4)), b"\xe2\x82\xac\xe2\x82\xe2\x82\xac",
]


def run_texts() -> list[str]:
    """Long runs of one code point of each kind, short of where llama.cpp overflows its stack."""
    found = [kind * 100 for name, kind in KINDS.items()]
    found += [
        "aB" * 60,
        "Ab" * 60,
        "a " * 60,
        "a. " * 40,
        ". " * 60,
        "a\n" * 60,
        "1a" * 60,
        "中a" * 60,
        "a'" * 60,
        "'s" * 60,
    ]
    found += ["=" * 300, "-" * 257, "a" * 300, "A" * 300, "é" * 300, "ab" * 150]
    return found


def neighbour_texts() -> list[str]:
    """Every kind of code point beside every other: alone, after a space, and doubled."""
    found = []
    for first in KINDS.values():
        found.append("\x02".join(first + second for second in KINDS.values()))
        found.append("".join(f" {first}{second}{second}" for second in KINDS.values()))
    return found


def special_texts() -> list[str]:
    """Special tokens, and what only some vocabularies take for one."""
    return [
        "<|endoftext|>", "<|endoftext|><|endoftext|>", "a<|endoftext|>b", "a <|endoftext|> b",
        "a\n<|endoftext|>\n\nb",
        "<|endoftext|", "|endoftext|>", "<<|endoftext|>>", "<|ENDOFTEXT|>", "<|endoftext|>'s",
        " <|endoftext|>", "<|endoftext|> ",
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n",
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>",
        "[INST] Hello [/INST]</s>", "<s>a</s>", "<bos><|turn>user\nHi<turn|>\n<|turn>model\n",
        "<unk><pad><mask>",
        "<|channel>thought\n<channel|>x", "<table>\n</table>", "a<0x0A>b", "<0x41>", "\n\n<|turn>\n\n\n",
        "<h1>x</s>y",
        "<sentinel:12>", "a<sentinel:0>b", "<sentinel:>", "<sentinel:1", "<sentinel:99999><sentinel:1>",
        "<sentinel:١>",
        "IMGIMGABZ", "IMGIMGAZ", "IMGIMGABCDZ", "IMGIMGABCDEZ", "IMGIMGZ", "xIMGIMGIIIIZy", "IMGIMGJZ",
        "IMGIMGABZIMGIMGCZ",
        "<dna>ACGTACGT</dna>", "a <dna>ACGTAC</dna> b", "<dna>acgtnn", "<dna></dna>",
        "<dna>ACG</dna><dna>T</dna>", "</dna>",
        "<oov>", "<think>\nx\n</think>\n\n", "<tool_call>{}</tool_call>", "<｜User｜>x<｜end▁of▁sentence｜>",
        "[UNK_BYTE_0xe2]",
    ]


def punctuation_texts() -> list[str]:
    found = [chr(point) + "a" + chr(point) for point in range(33, 127) if not chr(point).isalnum()]
    found += [
        f" {chr(point)}{chr(point)} {chr(point)}\n" for point in range(33, 127) if not chr(point).isalnum()
    ]
    found += [
        "()", "(a)", "( a )", "a(b)c", "((a))", "a|b", "a||b", "|.,!?…。，、।۔،|",
        "a.b,c!d?e…f。g，h、i।j۔k،l",
        "(a|b)", ")(", " (", " |",
    ]
    found += [
        "...", "…", "--", "—", "!!!", "?!", "a--b", "a - b", "#a #b", "@a", "a@b", "_a_", "__a__", "*a*",
        "**a**", "~a", "`a`", "$a", "a$", "^a",
    ]
    found += [
        "!a ?b", "\"a\" 'b'", "“a”", "‘a’", "«a»", "¡a!", "¿a?", "a·b", "a•b", "§1", "¶", "†", "№5", "€5",
        "5€", "£5", "5%", "5‰", "°C",
    ]
    found += [
        " .", " ,", " !", " ?", "a . b", "a , b", "a ' b", "a 's b", "a 'm b 're c 've d 'll e 't f 'd",
        "a n't", " ' ' ' ", "' '' '",
    ]
    found += [
        "a+b=c", "a<b>c", "a<=b", "a=>b", "x^2", "x~y", "a`b", "$$x$$", "≤≥≠", "±×÷", "∑∫√", "a→b", "x²+y²",
        "¬a", "a¦b", "´a", "¨a", "a¯",
    ]
    return found


GROUPS: dict[str, list[str] | list[bytes]] = {
    "empty and shortest": ["", "a", "A", " ", "\n", "1", ".", "é", "中"],
    "words": [
        "Hello world", " Hello World!", "HELLO", "hELLO", "HeLLo", "aB", "Ab", "ABc", "aBC", "abcDEFghi",
        "a b  c   d",
    ],
    "words beyond ASCII": [
        "éÉ", "Éé", "ÉÉé", "aÉ", "Aé", "ǅungla", "ʰa", "aʰ", "ªº", "ßẞ", "İıIi", "ΣσςΣ", "ﬁ", "K\u212a",
        "中A",
        "A中a", "aA中",
    ],
    "contractions": contraction_texts(),
    "digits": digit_texts(),
    "white space": white_space_texts(),
    "line breaks": line_break_texts(),
    "marks": mark_texts(),
    "punctuation": punctuation_texts(),
    "scripts": script_texts(),
    "Han and other ranges": han_texts(),
    "emoji": emoji_texts(),
    "odd code points": odd_code_point_texts(),
    "broken UTF-8": BROKEN_UTF8,
    "neighbours": neighbour_texts(),
    "runs": run_texts(),
    "special tokens": special_texts(),
    "code": CODE,
    "prose": PROSE,
}


def texts() -> list[bytes]:
    """All texts as bytes, each once, in the order of the groups."""
    every = (text for group in GROUPS.values() for text in group)
    return list(dict.fromkeys(as_bytes(text) for text in every))


def as_bytes(text: str | bytes) -> bytes:
    """UTF-8, in which a surrogate takes three bytes as if it were a character.

    >>> as_bytes("\\ud800")
    b'\\xed\\xa0\\x80'
    """
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


if __name__ == "__main__":
    for name, group in GROUPS.items():
        print(f"{len(group):5}  {name}")
    print(f"{len(texts()):5}  texts, {sum(map(len, texts()))} bytes")
