# SPDX-License-Identifier: MIT
"""The lines of the reference check: 200 varied ones, the same every time."""
import random

COUNT = 200
SEED = 20240607

FIXED = [
    "The cat sits on the mat.",
    "A man is eating a piece of bread.",
    "Someone is having a meal.",
    "",
    " ",
    "\t \t",
    ".",
    "?!…—–‘’“”«»",
    "[CLS]",
    "[SEP][MASK] [PAD]x[UNK]y",
    "a [MASK] in the middle, [mask] in lower case, [ MASK ] with spaces",
    "##ing ## # hash ##s",
    "Élève, naïve café, Ångström, Łódź, İstanbul, ǅ, ﬁne, ﬀ, ß, ẞ, Σίσυφος, ΑΣ",
    "e\u0301le\u0300ve and a\u0328\u0301\u0323 and \u0301 alone, \u1e69 \u0073\u0323\u0307 \u0073\u0307\u0323",
    "今天天气很好，我们去公园散步吧。",
    "東京タワーはとても高いです。ｶﾀｶﾅ ﾊﾝｶｸ Ｆｕｌｌｗｉｄｔｈ １２３",
    "오늘은 날씨가 참 좋네요. \u1100\u1161\u11a8",
    "混合 mixed 文字 text テキスト 텍스트 текст κείμενο",
    "Привет, как дела? Ёлка и йод.",
    "مرحبا بالعالم، كيف حالك؟ مَرْحَبًا",
    "שלום עולם, שָׁלוֹם",
    "नमस्ते दुनिया, कैसे हो?",
    "สวัสดีชาวโลก ภาษาไทย",
    "Xin chào thế giới, tiếng Việt",
    "😀 smile 👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽 skin 🏴󠁧󠁢󠁥󠁮󠁧󠁿 tag",
    "🎉🎉🎉",
    "x" * 100,
    "x" * 101,
    "antidisestablishmentarianism" * 8,
    "é" * 100 + " " + "é" * 101,
    "汉" * 300,
    "3.14159 -1e-5 1,000,000 $12.50 50% 2024-06-07T12:34:56Z +1 (555) 010-9999",
    "user@example.org, www.example.org/path?a=b&c=d#e, C:\\dir\\file.txt, ~/.profile",
    "if (x < 0 && y >= 1) { return a[i++] ^ ~b | c; } // code",
    "tab\tvertical\x0bform\x0cfeed bell\x07 escape\x1b[31m delete\x7f next\x85line nul\x00byte",
    "no\u00a0break\u2003em\u2009thin\u3000ideographic\u200bzero\u200dwidth\u2060joiner\ufeffmark\u2028line\u2029paragraph",
    "soft\u00adhyphen left\u200eto\u200fright \u202aembed\u202c replacement \ufffd private \ue000 \U000f0000 unassigned \u0378",
    "carriage\rreturn in the middle",
    "trailing spaces   ",
    "ALL CAPITALS ARE LOWERED",
    "don't can't it's o'clock rock'n'roll",
    "m² x³ H₂O ½ ¼ № ℃ Ω Ω K K Å Å ϒ",
    "𝒽𝑒𝓁𝓁ℴ 𝕨𝕠𝕣𝕝𝕕 𝟏𝟐𝟑 Ⓐⓑ",
    "\u0344\u0374\u037e\u0387\u1fef\u2000\u212a\u2126\uf900\U0002f800",
    "ÀÁÂÃÄÅĀĂĄǍǞǠǺȀȂȦȺḀẠẢẤẦẨẪẬẮẰẲẴẶ",
]

# Not UTF-8: every ill-formed part becomes one U+FFFD.
BROKEN = [
    b"broken \xff\xfe bytes",
    b"cut short \xe2\x82",
    b"overlong \xc0\xaf and \xe0\x80\xaf, surrogate \xed\xa0\x80, too large \xf4\x90\x80\x80",
    b"caf\xe9 in another encoding",
]

WORDS = """time year people way day man thing woman life child world school state family student group country
problem hand part place case week company system program question work government number night point home
water room mother area money story fact month lot right study book eye job word business issue side kind
head house service friend father power hour game line end member law car city community name president team
quickly slowly transformer attention embedding tokenizer unbelievable internationalization running jumped
café naïve Zürich São Köln smörgåsbord über fiancé résumé 東京 北京 서울 Москва Αθήνα 😀 🚀 2024 3.5 U.S.A.
e-mail state-of-the-art AT&T don't O'Brien""".split()


def random_sentence(rng):
    words = [rng.choice(WORDS) for _ in range(rng.randint(3, 40))]
    words[0] = words[0].capitalize()
    for _ in range(rng.randint(0, 3)):
        words.insert(rng.randrange(len(words)), rng.choice([",", ";", "-", "(", ")", "\"", "..."]))
    return " ".join(words) + rng.choice([".", "?", "!", ""])


def random_points(rng):
    """Code points from anywhere, which no language would put together."""
    planes = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F),
              (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF),
              (0xAC00, 0xD7A3), (0xFB00, 0xFFFF), (0x1F300, 0x1FAFF)]
    return "".join(chr(rng.randint(*rng.choice(planes))) + " " * (rng.random() < 0.2) for _ in range(rng.randint(5, 80)))


def lines():
    """COUNT lines of bytes, without their line feeds."""
    rng = random.Random(SEED)
    found = [text.encode() for text in FIXED] + BROKEN
    found += [" ".join(rng.choice(WORDS) for _ in range(600)).encode() for _ in range(6)]
    while len(found) < COUNT:
        make = random_points if len(found) % 4 == 0 else random_sentence
        found.append(make(rng).replace("\n", " ").encode())
    return found


def text_of(line):
    """What a reader of UTF-8 sees in a line of bytes."""
    return line.decode("utf-8", errors="replace")
