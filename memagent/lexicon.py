"""Words of any language, folded so that the same word typed another way is the same term.

Pure and small: no dictionary, no language detection. What is folded away is what people leave out when they type in a
hurry (case, accents, the plural, a possessive); what carries meaning stays (numbers, `C++`, negations in a fingerprint).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STEM_CHARS = 6
"""Longer words are compared by this many first letters: endings fall away in any language that puts them last."""

_SHORTEST_SINGULAR = 3

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"  # Chinese, Japanese, Korean
    "\U00020000-\U0003ffff"
)
# Python's \w leaves out the vowel signs of Arabic, Hebrew and the Indic scripts, which stand inside words.
_LETTER = r"(?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff])"
_WORD = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    r"|(?P<number>\d+(?:[.,:]\d+)+)"
    r"|(?P<sign>(?<![^\W_])[^\W\d_](?:\+\+|\#))"
    rf"|(?P<word>(?:(?![{_UNSPACED}]){_LETTER})+(?:'(?:(?![{_UNSPACED}]){_LETTER})+)*)"
)
_PLAIN_WORD = re.compile(r"\d+(?:[.,:]\d+)+|(?<![a-z0-9])[a-z](?:\+\+|#)|[a-z0-9]+(?:'[a-z0-9]+)*")
"""What `_WORD` finds in a casefolded text of ASCII alone, several times as fast."""
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\uff07": "'"})
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_SINGLE_LETTERS = str.maketrans({"đ": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "\u0131": "i"})
_SENTENCE_MARKS = r"[.,;:!?\u2026\u00a1\u00bf\"\u201c\u201d\u201e\u00ab\u00bb()\[\]{}*_`\u3001\u3002\u300c\u300d\u3010\u3011]"
# A mark between two digits belongs to the number: 3.5 is not 35.
_PUNCTUATION = re.compile(rf"(?<!\d){_SENTENCE_MARKS}|{_SENTENCE_MARKS}(?!\d)")

# English, German, Indonesian, Vietnamese, with the subject that nearly every memory starts with. Matched as spelled, accents
# and all: Vietnamese `ăn` (eat) is not English `an`.
_SMALL_WORDS = """
a about all also am an and any are as at be been being but by can could did do does doing done for from get go had has have
he her here hers him his how i if in into is it its just let like me more my no not now of on or our out over please she
should so some than that the their them then there these they this those to too up us very was we were what when where which
while who whom whose why will with would you your yours i'm i've i'd i'll you're you've he's she's it's we're they're don't
doesn't didn't can't won't isn't aren't wasn't what's that's there's let's user users

aber als am an auch auf aus bei bin bis bist da dann das dass dein dem den der des die dir du ein eine einem einen einer er
es für habe haben hat hier ich ihm ihn ihr ihre im ist ja kann können mein meine meinem meinen meiner mich mir mit nach nicht
noch nur oder sein seine sich sie sind über um und uns vom von vor war was welche welcher welches wenn wer werden wie wir
wird wo zu zum zur nutzer nutzerin benutzer benutzerin

ada adalah aku anda apa apakah atau bagaimana bagi bahwa bisa dalam dan dari dengan di dia harus ini itu juga kamu kami
karena ke kita lebih mana mereka oleh pada saja saya sebagai siapa sudah telah tidak tolong untuk yang pengguna

anh bạn bị bởi các cái cho chị có của cũng được đã đang để đến gì hay họ hơn không khi là làm lại mà mình một mỗi nào này nên
nếu như những nó ở ra rất rồi sao sẽ ta tại thế thì tôi trong từ và vào về với vì người dùng
"""
STOP_WORDS = frozenset(_SMALL_WORDS.split())


def terms(text: str) -> tuple[str, ...]:
    """Return the folded content words of `text`, each once, in order of appearance.

    Stop words of English, German, Indonesian and Vietnamese are left out; a text of nothing else has no terms. Scripts
    without spaces give overlapping pairs of characters. Never raises; lone surrogates are no words.
    """
    return _terms(text) if len(text) <= REPEATED_CHARS else tuple(dict.fromkeys(content_words(text)))


REPEATED_CHARS = 2_000
"""A text up to here is looked at once: a chat sends its messages again with every turn."""


@lru_cache(maxsize=4096)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(content_words(text)))


def content_words(text: str) -> Iterator[str]:
    """As `terms`, but a word comes as often as it stands in the text."""
    if text.isascii():
        return filter(None, map(_term, _PLAIN_WORD.findall(text.lower())))
    return _spelled(text)


def _spelled(text: str) -> Iterator[str]:
    for kind, word in _words(text):
        if kind == "unspaced":
            yield from ("".join(pair) for pair in pairwise(word)) if len(word) > 1 else (word,)
        elif term := _term(word):
            yield term


@lru_cache(maxsize=16_384)
def _term(word: str) -> str:
    """The term of a casefolded word, number or sign; empty for a stop word."""
    bare = word.removesuffix("'s").rstrip("'").replace("'", "")
    if word in STOP_WORDS or bare in STOP_WORDS:
        return ""
    return bare if _UNFOLDED.search(bare) else stem(fold(bare))


_UNFOLDED = re.compile(r"[.,:+#]")
"""Numbers and signs are terms as they stand: `3.5`, `08:30`, `c++`."""


def fold(word: str) -> str:
    """`word` without case and accents: `Đà` is `da`, `Straße` is `strasse`."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", word).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).translate(_SINGLE_LETTERS)


def stem(word: str) -> str:
    """Cut a folded word to what its other forms share: no plural `s`, and no more than `STEM_CHARS` letters."""
    plural = len(word) > _SHORTEST_SINGULAR and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return (word[:-1] if plural else word)[:STEM_CHARS]


@lru_cache(maxsize=8192)
def fingerprint(text: str) -> str:
    """32 hex digits that are equal for the same words in the same order.

    Case, spacing and sentence marks do not count. Accents, numbers, signs and small words do: `má` is not `ma`, `3.5` is
    not `35`, `$5` is not `5%`, and a `not` changes everything.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    pieces = (piece.strip("'") for piece in _PUNCTUATION.sub(" ", plain).split())
    words = [piece for piece in pieces if piece.strip("-\u2013\u2014")]
    digest = hashlib.blake2b(" ".join(words).encode("utf-8", "surrogatepass"), digest_size=16)
    return digest.hexdigest()


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Kind and casefolded spelling of every word, composed (NFKC) so that both ways to type an accent are one."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    for match in _WORD.finditer(plain):
        yield str(match.lastgroup), match.group()
