"""Terms and fingerprints: the same word typed another way is the same term; other words are other words."""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.lexicon import STEM_CHARS, STOP_WORDS, _spelled, content_words, fingerprint, fold, stem, terms

any_text = st.text(st.characters(), max_size=80)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Juno's cat is called Mochi", ("juno", "cat", "called", "mochi")),
        ("Juno\u2019s CATS", ("juno", "cat")),
        ("Đà Nẵng", ("da", "nang")),
        ("Người dùng thích cà phê sữa đá", ("thich", "ca", "phe", "sua", "da")),
        ("Pengguna alergi udang", ("alergi", "udang")),
        ("Die Straße in GRÖẞE", ("strass", "grosse")),
        ("I like C++ and C#, not C", ("c++", "c#", "c")),
        ("3.5 or 1,000 at 08:30 in 1998", ("3.5", "1,000", "08:30", "1998")),
        ("user_name@example.com", ("name", "exampl", "com")),
        ("我喜欢咖啡", ("我喜", "喜欢", "欢咖", "咖啡")),
        ("猫", ("猫",)),
        ("iPhoneを買う", ("iphone", "を買", "買う")),
        ("हिन्दी भाषा", ("हिन्दी", "भाषा")),
        ("don't won't isn't", ()),
        ("O'Brien", ("obrien",)),
        ("", ()),
        ("🙂 … !?", ()),
        ("\ud800", ()),
    ],
)
def test_terms_are_folded_content_words(text: str, expected: tuple[str, ...]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    "text",
    ["the and of", "của và là", "yang dan di", "der die das und", "The user", "Người dùng", "Pengguna"],
)
def test_small_words_of_four_languages_are_no_terms(text: str) -> None:
    assert terms(text) == ()


def test_a_vietnamese_word_is_not_taken_for_an_english_small_word() -> None:
    assert terms("ăn cơm") == ("an", "com")
    assert "an" in STOP_WORDS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("allergy", "allergies"),
        ("bicycle", "bicycles"),
        ("running", "runnings"),
        ("promoviert", "promovieren"),
        ("cà phê", "CA PHE"),
        ("Müller", "muller"),
        ("café", "cafe\u0301"),
        ("\uff21\uff22\uff23", "abc"),
        ("İstanbul", "istanbul"),
    ],
)
def test_other_forms_and_spellings_of_a_word_are_the_same_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    ("one", "other"), [("3.5", "35"), ("c", "c++"), ("cat", "car"), ("bus", "bu"), ("boss", "bos")]
)
def test_other_words_are_other_terms(one: str, other: str) -> None:
    assert terms(one) != terms(other)


@settings(max_examples=200)
@given(any_text)
def test_terms_of_any_text_are_folded_distinct_and_short(text: str) -> None:
    found = terms(text)
    assert len(set(found)) == len(found)
    assert all(term == fold(term) for term in found if term.isalpha())
    assert all(found)


@settings(max_examples=100)
@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=12), max_size=8))
def test_neither_case_nor_composition_changes_terms(words: list[str]) -> None:
    text = " ".join(words)
    assert terms(text) == terms(text.upper()) == terms(unicodedata.normalize("NFD", text))


def test_content_words_keep_repetitions() -> None:
    assert list(content_words("tea, tea and more tea")) == ["tea", "tea", "tea"]


@settings(max_examples=200)
@given(any_text)
def test_folding_twice_folds_no_further(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_a_stem_is_never_longer_than_its_bound() -> None:
    assert stem("a" * 40) == "a" * STEM_CHARS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea.", "likes   TEA"),
        ("\u201cLikes tea\u201d", '"likes tea"'),
        ("likes, tea!", "likes tea"),
        ("café", "cafe\u0301"),
        ("it\u2019s", "it's"),
        ("likes - tea", "likes tea"),
        ("", "  \n"),
    ],
)
def test_the_same_words_have_the_same_fingerprint(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes tea", "does not like tea"),
        ("is vegan", "is not vegan"),
        ("má", "ma"),
        ("3.5", "35"),
        ("$5", "5%"),
        ("C++", "C"),
        ("dog bites man", "man bites dog"),
        ("👍", "👎"),
        ("ab c", "a bc"),
        ("8:30", "8 30"),
    ],
)
def test_other_words_have_another_fingerprint(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@settings(max_examples=100)
@given(any_text)
def test_a_fingerprint_is_32_hex_digits_for_any_text(text: str) -> None:
    digits = fingerprint(text)
    assert len(digits) == 32
    assert set(digits) <= set(string.hexdigits.lower())


@given(
    st.text(string.printable + "\x00\x1f\x7f", max_size=80)
    | st.from_regex(r"[aA0.,:+#'_ -]{0,12}", fullmatch=True)
)
def test_a_text_of_ascii_has_the_terms_that_it_has_among_all_scripts(text: str) -> None:
    assert list(content_words(text)) == list(_spelled(text))
