"""Pictures: the kinds of hands, the counts of a player's decisions, learning curves, and the command."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents import load
from archie_env.actions import discard
from archie_env.cards import parse_cards
from archie_env.errors import ArchieError
from archie_env.policy import Actions, Masks, Observations, UniformPolicy
from evaluation.duplicate.match import play_match
from evaluation.estimates import NORMAL_95
from evaluation.pictures import command
from evaluation.pictures.command import main as pictures
from evaluation.pictures.learning_curves import Curve, band, read_curves, write_curves
from evaluation.pictures.play_style import KEPT, HandKinds, PlayStyle, watch
from tests.test_tournament import looks_drawn

ARCHIE = HandKinds("archie")


@pytest.mark.parametrize(
    ("hand", "kind"),
    [
        ("2c 3d 4h 6s Ac", "six low or better"),
        ("2c 3d 4h 5s Ac", "six low or better"),  # a straight as well
        ("2c 3c 4c 7c 8c", "eight low"),  # a flush as well
        ("2c 3d 5h 6s 7c", "seven low"),
        ("9c Tc Jc Qc 2c", "straight or flush"),
        ("9c Td Jc Qh Kc", "straight or flush"),
        ("9c 9d 9h Kc Ks", "full house or better"),
        ("9c 9d 9h 9s Ks", "full house or better"),
        ("2c 2d 2h 9s Ks", "three of a kind"),
        ("2c 2d 9h 9s Ks", "two pair"),
        ("2c 2d 4h 6s 7s", "and a draw to a low"),
        ("2c 2d 4h 6s 9s", "deuces"),
        ("Ac Ad 4h 6s 9s", "aces"),
        ("2c 3d 5h 6s Kc", "one card short of a six low or better"),
        ("Ac 3d 5h 7s Kc", "one card short of a seven low"),
        ("Ac 3d 5h 8s Kc", "one card short of an eight low"),
        ("Tc 2d Jh Qs Kc", "one card short of a straight or flush"),
        ("2c 3c 4c Qc Kd", "one card short of a straight or flush"),
        ("2c 3d 4c Qc Kd", "three low cards"),
        ("2c 3d Jc Qc Kd", "two low cards"),
    ],
)
def test_first_hands_are_called_what_a_player_calls_them(hand: str, kind: str) -> None:
    cards = np.array([sorted(parse_cards(hand.replace(" ", "")))])
    assert ARCHIE.names[int(ARCHIE.kinds(cards)[0])] == kind


@pytest.mark.parametrize(
    ("hand", "discarded", "kept"),
    [
        ("2c 3d 4h 6s Ac", "", "everything"),
        ("2c 3d 4h 6s Kc", "Kc", "four low cards"),
        ("2c 3c 4c 6c Kd", "Kd", "four low cards"),
        ("2c 2d 4h 6s Kc", "2c Kc", "three low cards"),
        ("2c 2d 4h 6s Kc", "4h 6s Kc", "a pair or more, alone"),
        ("2c 2d 4h 6s Kc", "4h 6s", "a pair and more cards"),
        ("2c 2d Kh Ks 6c", "6c", "a pair or more, alone"),
        ("2c 9c Jc Qc Kd", "Kd", "draw to a flush"),
        ("9c Td Jc Qh 2c", "2c", "draw to a straight"),
        ("9c Kd 2c 3h 4c", "9c 2c 3h 4c", "other cards"),
        ("9c Kd 2c 3h 4c", "9c Kd 2c 3h", "one low card"),
        ("9c Kd 2c 3h 4c", "9c Kd 2c 3h 4c", "nothing"),
    ],
)
def test_kept_cards_have_the_names_that_players_use(hand: str, discarded: str, kept: str) -> None:
    cards = sorted(parse_cards(hand.replace(" ", "")))
    action = discard(cards, parse_cards(discarded.replace(" ", "")))
    assert KEPT[int(ARCHIE.kept(np.array([cards]), np.array([action]))[0])] == kept


@pytest.mark.parametrize("rules", ["archie", "pagat", "mini", "midi"])
def test_a_play_style_counts_every_decision_once_and_reads_back(rules: str) -> None:
    style, result = watch(load("uniform", rules), None, 200, 1, rules)
    assert result == replace(play_match(load("uniform", rules), load("uniform", rules), 200, 1, rules), seconds=result.seconds)
    hands = result.hands
    assert style.betting[0, 0, 1].sum() >= hands  # the dealer owes half a blind in every hand
    assert style.betting[0, 0, 0].sum() == 0
    assert hands + style.betting[1, 0, 0].sum() <= style.opening.sum() <= 2 * hands  # the big blind may never act
    assert style.keeping.sum() == style.drawing[:, 0].sum()
    assert style.keeping.sum(axis=0)[0] == style.drawing[:, 0, 0].sum()
    again = PlayStyle.from_dict(json.loads(json.dumps(style.to_dict())))
    assert again.to_dict() == style.to_dict()


def test_play_styles_of_known_players() -> None:
    style, _ = watch(load("call_draw"), load("raise_draw"), 100, 1)
    assert style.opponent == "raise_draw"
    assert style.betting[..., 0].sum() == style.betting[..., 2].sum() == 0
    assert style.opening.sum() == 200  # its first decision in either position
    assert style.drawing.sum(axis=2).tolist() == [[100] * 3] * 2


def test_a_watched_player_that_answers_nonsense_is_named_by_the_match() -> None:
    class Wild(UniformPolicy):
        name = "wild"

        def act(self, observations: Observations, masks: Masks, rng: np.random.Generator) -> Actions:
            return np.full(len(masks), 99)

    with pytest.raises(ArchieError, match="wild: action 99 is not legal"):
        watch(Wild(), None, 2)


def test_pictures_of_a_player_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["uniform", "--against", "call_draw", "--deals", "300", "--seed", "4", "--out", str(tmp_path)]
    assert pictures(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("uniform v call_draw: ")
    assert printed[1:] == [str(tmp_path / name) for name in ("play_style.json", "play_style.png", "starting_hands.png")]
    assert looks_drawn(tmp_path / "play_style.png")
    assert looks_drawn(tmp_path / "starting_hands.png")
    assert json.loads((tmp_path / "play_style.json").read_text())["match"]["hands"] == 600


def test_learning_curves_hold_the_band_of_one_run_or_of_several(tmp_path: Path) -> None:
    x = np.array([1e6, 2e6, 3e6])
    one = Curve("one", "call", x, np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.5]))
    steps, mean, reach = band([one])
    np.testing.assert_array_equal(reach, NORMAL_95 * one.errors)
    two = Curve("two", "call", x[:2] + 5e5, np.array([3.5, 4.5]), np.zeros(2))
    steps, mean, reach = band([one, two])
    np.testing.assert_array_equal(steps, [2e6])
    assert mean[0] == 3.0
    assert reach[0] == pytest.approx(12.7062047 * math.sqrt(2) / math.sqrt(2))
    write_curves([one, two], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    with pytest.raises(ArchieError, match="no event files"):
        read_curves([tmp_path])


def test_learning_curves_are_read_from_event_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer_of = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    writer = writer_of(tmp_path / "run")
    for step, mean in ((1000, -50.0), (2000, 25.5)):
        writer.add_scalar("match/call_mbb_per_hand", mean, step)
        writer.add_scalar("match/call_standard_error", 4.0, step)
        writer.add_scalar("speed/hands_per_second", 1.0, step)
    writer.close()
    (curve,) = read_curves([tmp_path / "run"])
    assert (curve.run, curve.opponent, curve.means.tolist(), curve.errors.tolist()) == (
        "run",
        "call",
        [-50.0, 25.5],
        [4.0, 4.0],
    )
    assert pictures(["--curves", str(tmp_path / "run"), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "learning_curves.png").exists()
    assert pictures(["--out", str(tmp_path)]) == 2
    assert "nothing to draw" in capsys.readouterr().err


def test_a_picture_that_cannot_be_drawn_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("latex was not found")

    monkeypatch.setattr(command, "write_play_style", broken)
    assert pictures(["call", "--against", "raise", "--rules", "mini", "--deals", "20", "--out", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("call v raise: ")
    assert (tmp_path / "play_style.json").exists()
    assert (tmp_path / "starting_hands.png").exists()
    assert f"{tmp_path / 'play_style.png'}: not drawn: RuntimeError: latex was not found" in err
