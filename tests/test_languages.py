"""Three languages: equal keys and placeholders, and sentences made from values."""

from __future__ import annotations

import pickle
import string
from collections.abc import Mapping

import pytest

from archie_env.errors import ArchieError
from archie_env.words import LANGUAGES, default_language, words


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogues_have_equal_keys_and_placeholders(language: str) -> None:
    english, other = words("en").catalogue(), words(language).catalogue()
    assert other.keys() == english.keys()
    assert {key: placeholders(text) for key, text in other.items()} == {k: placeholders(text) for k, text in english.items()}
    assert all(isinstance(text, str) and text.strip() for text in other.values())


def test_forms_for_persons_and_numbers_come_in_pairs() -> None:
    keys = words("en").catalogue().keys()
    for one, other in (("one", "other"), ("you", "they")):
        assert {key.rpartition(".")[0] for key in keys if key.endswith(f".{one}")} == {
            key.rpartition(".")[0] for key in keys if key.endswith(f".{other}")
        }


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "pt_PT.UTF-8"}, "pt"),
        ({"LANG": "es"}, "es"),
        ({"LANG": "es_ES@euro", "LC_MESSAGES": "pt"}, "pt"),
        ({"LANG": "es_ES", "LC_MESSAGES": "pt_PT", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "pt_PT", "LC_ALL": ""}, "pt"),
        ({"LANGUAGE": "pt", "LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "estonian"}, "en"),
    ],
)
def test_the_language_of_the_locale(environment: Mapping[str, str], language: str) -> None:
    assert default_language(environment) == language


def test_unknown_languages_are_refused() -> None:
    with pytest.raises(ArchieError, match="language 'de': expected one of en, pt, es"):
        words("de")


def test_words_are_one_object_for_each_language() -> None:
    assert pickle.loads(pickle.dumps(words("pt"))) is words("pt")
