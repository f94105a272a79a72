"""Three languages: equal keys and placeholders, and sentences made from values."""

from __future__ import annotations

import io
import pickle
import re
import string
from collections.abc import Mapping
from pathlib import Path

import pytest

from archie_env.errors import ArchieError
from archie_env.game import Game
from archie_env.hands import CATEGORIES, HandParts, HandValues
from archie_env.notation import dump
from archie_env.rendering.text import ansi
from archie_env.rules import PRESETS
from archie_env.terminal import main as cli
from archie_env.terminal.explain import explain, preset_table
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


def test_hand_values_are_data() -> None:
    values = HandValues("archie")
    high, low = values.of("As 2d 3c 4h 5s")
    assert values.high(high) == HandParts("high", "straight", "5", True)
    assert values.low(low) == HandParts("low", "low", "5432A", True)
    assert values.low(0) == HandParts("low", "no_low", "", False)
    assert values.high(values.of("4c 4d Qs 8h 3c")[0]) == HandParts("high", "pair", "4Q83", False)
    assert {values.high(v).category for v in range(1, 7463)} == set(CATEGORIES.values())


@pytest.mark.parametrize(
    ("cards", "pt", "es"),
    [
        ("9c 9h 7d 7s 2c", "dois pares de noves e setes, sem baixa", "dobles parejas de nueves y sietes, sin baja"),
        ("As 2d 3c 4h 5s", "sequência ao cinco, roda", "escalera al cinco, rueda"),
        ("2c 4c 7c 8c Qc", "cor à dama, sem baixa", "color a la dama, sin baja"),
        ("6c 6d 6h Ts Tc", "full house de seis com dez, sem baixa", "full de seises y dieces, sin baja"),
        (
            "As 2d 3c 5h 7s",
            "ás como carta mais alta (não se qualifica), baixa sete-cinco",
            "as como carta alta (no clasifica), baja siete-cinco",
        ),
    ],
)
def test_hands_in_portuguese_and_spanish(cards: str, pt: str, es: str) -> None:
    summary = HandValues("archie").summary
    assert (summary(cards, words("pt")), summary(cards, words("es"))) == (pt, es)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("preset", PRESETS)
def test_rules_have_the_same_numbers_in_every_language(language: str, preset: str) -> None:
    rules = PRESETS[preset]
    text = " ".join(explain(rules, words(language)).split())
    for number in (rules.deck_size, rules.reserve, rules.ranks, ", ".join(map(str, rules.stakes.bets))):
        assert re.search(rf"\b{number}\b", text)
    assert ("Anna" in text) == (rules.deck_size == 52)
    assert preset_table(words(language)).count("\n") == len(PRESETS)


def test_examples_are_paid_under_the_rules_in_force() -> None:
    ends = {"archie": "melhor alta leva o pote.", "pagat": "o pote é dividido."}
    for preset, end in ends.items():
        text = " ".join(explain(PRESETS[preset], words("pt")).split())
        assert text.endswith(end)
        assert "Anna leva tudo: ambas as metades." in text
    archie = " ".join(explain(PRESETS["archie"], words("pt")).split())
    assert "Ben tem par de quatros, Q-8-3; Anna tem rei como carta mais alta" in archie


@pytest.mark.parametrize(
    ("language", "typed", "said"),
    [
        ("pt", "aumentar\nconservar\npassar\ntrocar 1 2\nk\npat\npassar\n", ("aumenta para 4", "troca 2", "1 mão jogada")),
        ("es", "subir\nconservar\npasar\ncambiar 1 2\nk\npat\npasar\n", ("subes a 4", "cambias 2", "1 mano jugada")),
        ("pt", "raise\npat\ncheck\nd 1 2\nk\np\nk\n", ("aumenta para 4", "troca 2", "1 mão jogada")),
    ],
)
def test_a_hand_in_another_language(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], language: str, typed: str, said: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"dance\nhelp\n{typed}"))
    arguments = ["play", "--opponent", "call", "--seed", "5", "--hands", "1", "--seat", "dealer", "--lang", language]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert all(sentence in out for sentence in said)
    assert not re.search(r"\b(you|wheel|pot|stands|draws|fold to|Round|Total:  )\b", out)


def test_the_locale_chooses_the_language_of_a_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    game = Game(seed=1, dealer=0)
    game.apply(0)
    (tmp_path / "hand.txt").write_text(dump(game), encoding="utf-8")
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    assert cli.main(["replay", str(tmp_path / "hand.txt")]) == 0
    out = capsys.readouterr().out
    assert "player_0 se retiró" in out
    assert "Resultado: player_0 -1, player_1 +1 fichas" in out
    assert cli.main(["replay", "--lang", "en", str(tmp_path / "hand.txt")]) == 0
    assert "player_0 folds" in capsys.readouterr().out


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables_stay_within_their_width(language: str) -> None:
    for seed in range(20):
        game = Game(seed=seed)
        while not game.over:
            assert all(len(line) <= 99 for line in ansi(game.view(), game.rules, words=words(language)).splitlines())
            game.apply(game.legal_actions()[-1 if not game.drawing else 0])
        assert all(len(line) <= 99 for line in ansi(game.view(), game.rules, words=words(language)).splitlines())
