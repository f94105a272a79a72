"""The library's face: what `evaluation` offers, and when it is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evaluation
from agents import load
from evaluation.duplicate import match


def test_every_offered_name_is_there_and_others_are_refused() -> None:
    for name in evaluation.__all__:
        assert callable(getattr(evaluation, name))
        assert name in dir(evaluation)
    assert evaluation.play_match is match.play_match
    with pytest.raises(AttributeError, match="no attribute 'play_mach'"):
        evaluation.play_mach  # noqa: B018


def test_importing_evaluation_loads_none_of_its_parts() -> None:
    code = "import sys, evaluation; assert not {n for n in sys.modules if n.startswith(('evaluation.', 'tyro', 'matplotlib'))}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_match_is_played_through_the_face() -> None:
    result = evaluation.play_match(load("call_draw", "mini"), load("call", "mini"), deals=10, seed=1, rules="mini")
    assert result.hands == 20
