"""Numbers, dates, order of names and translations."""

from __future__ import annotations

import ast
import datetime as dt
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from site_builder import catalogue
from site_builder.collation import collation_key
from site_builder.words import languages, plain_number, words

TRANSLATED = [code for code in languages() if code != "en"]


def test_languages() -> None:
    assert languages() == ("en", "de", "fr", "it")
    assert words("xx").language == "en"


@pytest.mark.parametrize(
    ("value", "scale", "decimals", "text"),
    [
        (1536_388498, 10**6, 0, "1536"),
        (104_500000, 10**6, 0, "105"),
        (104_499999, 10**6, 0, "104"),
        (-500000, 10**6, 0, "-1"),
        (-499999, 10**6, 0, "0"),
        (1536_388498, 10**6, 3, "1536.388"),
        (562, 1, 0, "562"),
        (5, 100, 1, "0.1"),
    ],
)
def test_rounding_is_exact_and_away_from_zero(value: int, scale: int, decimals: int, text: str) -> None:
    assert plain_number(value, scale, decimals) == text


@settings(deadline=None)
@given(st.integers(-(10**15), 10**15), st.integers(0, 6))
def test_a_rounded_number_is_the_nearest(value: int, decimals: int) -> None:
    text = plain_number(value, 10**6, decimals)
    back = round(float(text) * 10**6) if decimals == 6 else int(re.sub(r"\D", "", text)) * 10 ** (6 - decimals)
    assert abs(abs(value) - abs(back)) * 2 <= 10 ** (6 - decimals)


def test_numbers_by_language() -> None:
    assert words("en").number(20_000) == "20,000"
    assert words("de").number(20_000) == "20.000"
    assert words("fr").number(1234567) == "1\u202f234\u202f567"
    assert words("de").number(1.5, 2, sign=True) == "+1,50"
    assert words("en").number(-1.5, 1) == "−1.5"
    assert words("en").number(0, 1, sign=True) == "±0.0"
    assert words("it").trim(32.0) == "32"
    assert words("it").trim(12.25) == "12,25"
    assert words("en").trim(100) == "100"
    assert words("en").percent(0.513, 1) == "51.3%"
    assert words("de").percent(0.5) == "50\u00a0%"


def test_dates_by_language() -> None:
    day = dt.date(2026, 11, 1)
    assert [words(c).day(day) for c in languages()] == [
        "1 November 2026",
        "1. November 2026",
        "1er novembre 2026",
        "1º novembre 2026",
    ]
    assert words("de").day(dt.date(2026, 3, 14)) == "14. März 2026"
    assert words("fr").day_month(dt.date(2026, 12, 2)) == "2 décembre"
    assert [words(c).month("2026-11") for c in languages()] == [
        "November 2026",
        "November 2026",
        "Novembre 2026",
        "Novembre 2026",
    ]
    assert words("it").month_within("2026-11") == "novembre 2026"
    assert words("en").moment_at(1_793_734_800_000_000, "Europe/Zurich") == "3 November 2026, 20:40"


def test_plural_forms() -> None:
    one, many = "%(number)s game", "%(number)s games"
    assert [words("fr").ngettext(one, many, n) for n in (0, 1, 2)] == [
        "%(number)s partie",
        "%(number)s partie",
        "%(number)s parties",
    ]
    assert words("de").ngettext(one, many, 0) == "%(number)s Spiele"


# -- order of names ------------------------------------------------------------------------------------------------


def test_accents_sort_with_their_letter_where_the_language_says_so() -> None:
    names = ["Zoe", "Ärni", "Arno", "Öz", "Oza"]
    assert sorted(names, key=lambda n: collation_key(n, "de")) == ["Ärni", "Arno", "Öz", "Oza", "Zoe"]
    assert sorted(names, key=lambda n: collation_key(n, "sv")) == ["Arno", "Oza", "Zoe", "Ärni", "Öz"]
    assert sorted(["ñu", "nz", "o"], key=lambda n: collation_key(n, "es")) == ["nz", "ñu", "o"]


def test_accent_then_case_decide_last() -> None:
    names = ["resume", "Resume", "résumé", "Resumes", "de Boer", "Deboer", "10", "9", "#x"]
    order = sorted(names, key=collation_key)
    assert order.index("resume") < order.index("Resume") < order.index("résumé") < order.index("Resumes")
    assert order.index("10") < order.index("9") < order.index("de Boer")


@settings(deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_equal_keys_only_for_equal_texts(one: str, two: str) -> None:
    assert (collation_key(one) == collation_key(two)) == (one == two)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_keys_can_be_compared(text: str) -> None:
    assert collation_key(text, "sv") < collation_key(text + "a", "sv") or unicodedata.combining(text[-1:] or "a")


# -- translations --------------------------------------------------------------------------------------------------


def _key(message: object) -> object:
    identity = message.id  # type: ignore[attr-defined]
    return tuple(identity) if isinstance(identity, list | tuple) else identity


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_text_is_translated_and_none_is_left_over(language: str) -> None:
    wanted = {_key(message) for message in catalogue.extract() if message.id}
    have = {_key(message): message for message in catalogue.read(language) if message.id}
    assert wanted - set(have) == set(), "run python -m site_builder.catalogue"
    assert set(have) - wanted == set()
    for message in have.values():
        strings = message.string if isinstance(message.string, tuple | list) else (message.string,)
        assert all(strings), message.id
        assert not message.fuzzy


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_translation_has_the_same_gaps(language: str) -> None:
    gap = re.compile(r"%\(\w+\)s")
    for message in catalogue.read(language):
        if not message.id:
            continue
        ids = message.id if isinstance(message.id, tuple | list) else (message.id,)
        strings = message.string if isinstance(message.string, tuple | list) else (message.string,)
        for string in strings:
            assert set(gap.findall(string)) == set(gap.findall(ids[-1])), message.id
            assert "%" not in gap.sub("", string)


@pytest.mark.parametrize("language", TRANSLATED)
def test_compiled_catalogues_are_in_step(language: str) -> None:
    path = catalogue.LOCALES / language / "LC_MESSAGES" / "messages.mo"
    assert path.read_bytes() == catalogue.compiled(catalogue.read(language))


def test_locale_data_is_in_step() -> None:
    assert (catalogue.LOCALES / "cldr.json").read_text("utf-8") == catalogue.cldr()


def test_no_text_is_asked_for_where_extraction_does_not_look() -> None:
    """Inside an f-string it would drop out of the catalogues, and with it the translation of a text that is shown."""
    found = []
    for file in sorted(catalogue.HERE.glob("*.py")):
        for text in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(text, ast.JoinedStr):
                calls = [node for node in ast.walk(text) if isinstance(node, ast.Call)]
                names = [getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls]
                found += [f"{file.name}:{text.lineno}" for name in names if name in ("_", "N_", "gettext", "ngettext")]
    assert found == []
