"""Settings of a run: one-line errors that name file, key, value and what is allowed; encodings; keys of version 0.1."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from archie_env.errors import ConfigError
from training.settings import AgentName, RunSettings, Settings, Several, differences


class Walk(Settings):
    renamed = {"count": "steps"}  # noqa: RUF012
    steps: int = Field(default=10, ge=1, le=99)
    pace: float = Field(default=1.0, ge=0.5, le=1e4)
    by_night: bool = False
    gait: Literal["trot", "amble"] = "amble"
    stops: Annotated[Several[Annotated[int, Field(ge=1, le=9)]], Field(min_length=1)] = (1, 2)
    shares: dict[AgentName, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)


class Journey(RunSettings):
    name: str = "there"
    walks: Several[Walk] = (Walk(),)
    last: Walk = Walk()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"last": {"steps": 0}}, "last.steps = 0: expected a whole number 1 to 99"),
        ({"last": {"steps": 100}}, "last.steps = 100: expected a whole number 1 to 99"),
        ({"last": {"steps": True}}, "last.steps = True: expected a whole number 1 to 99"),
        ({"last": {"steps": 3.0}}, "last.steps = 3.0: expected a whole number 1 to 99"),
        ({"last": {"steps": "3"}}, "last.steps = '3': expected a whole number 1 to 99"),
        ({"last": {"steps": -(16**5000)}}, "last.steps = a int too large to print: expected a whole number 1 to 99"),
        ({"last": {"pace": 16**5000}}, "last.pace = a int too large to print: expected a number 0.5 to 10000"),
        ({"last": {"pace": float("nan")}}, "last.pace = nan: expected a number 0.5 to 10000"),
        ({"last": {"pace": float("inf")}}, "last.pace = inf: expected a number 0.5 to 10000"),
        ({"last": {"pace": True}}, "last.pace = True: expected a number 0.5 to 10000"),
        ({"last": {"by_night": 1}}, "last.by_night = 1: expected true or false"),
        ({"last": {"gait": "run"}}, "last.gait = 'run': expected one of 'trot', 'amble'"),
        ({"last": {"gait": ["trot"]}}, "last.gait = ['trot']: expected one of 'trot', 'amble'"),
        ({"last": {"stops": []}}, "last.stops = []: expected a list of at least one item, each a whole number 1 to 9"),
        ({"last": {"stops": 3}}, "last.stops = 3: expected a list of at least one item, each a whole number 1 to 9"),
        ({"last": {"stops": [1, 0]}}, "last.stops[1] = 0: expected a whole number 1 to 9"),
        ({"last": {"shares": {"a b\n": 2}}}, "last.shares.'a b\\n' = 2: expected a number 0 to 1"),
        ({"last": {"shares": 1}}, "last.shares = 1: expected a table"),
        ({"last": 3}, "last = 3: expected a table"),
        ({"name": 3}, "name = 3: expected a string"),
        ({"\ud800": 3}, "'\\ud800': expected characters of Unicode"),
        ({"walks": [{}, {"steps": 0}]}, "walks[1].steps = 0: expected a whole number 1 to 99"),
        ({"walks": [3]}, "walks[0] = 3: expected a table"),
        ({"last": {"count": 3}}, "last.count is called last.steps since version 0.2"),
        ({"walks": [{"count": 3}]}, "walks[0].count is called walks[0].steps since version 0.2"),
        ({"nme": 3}, "unknown key 'nme': expected one of rules, name, walks, last"),
        ({"last": {"nme": 3}}, "unknown key 'last.nme': expected one of steps, pace, by_night, gait, stops, shares"),
        ({"rules": 3}, "rules = 3: expected one of archie, "),
        ({"rules": "poker"}, "rules = 'poker': "),
        (3, "configuration = 3: expected a table"),
    ],
)
def test_a_bad_value_is_refused_in_one_line_with_key_value_and_what_is_allowed(values: Any, message: str) -> None:
    with pytest.raises(ConfigError) as found:
        Journey.from_values(values, "a.toml")
    assert str(found.value).startswith(f"a.toml: {message}")
    assert "\n" not in str(found.value)


def test_values_nested_without_end_are_refused_in_one_line() -> None:
    deep: Any = 3
    for _ in range(5000):
        deep = {"last": [deep]}
    for values in (deep, {"name": deep}, {"rules": deep}, {"last": {"shares": {"x": deep}}}, {"walks": deep}):
        with pytest.raises(ConfigError) as found:
            Journey.from_values(values, "a.toml")
        assert len(str(found.value)) < 700


def test_a_whole_number_is_a_float_and_a_list_is_a_tuple() -> None:
    walk = Walk.from_values({"pace": 3, "stops": [4, 5]}, "a.toml")
    assert (walk.pace, type(walk.pace), walk.stops) == (3.0, float, (4, 5))
    with pytest.raises(ValueError, match="frozen"):
        walk.steps = 4


def test_a_file_may_begin_with_a_byte_order_mark_and_must_be_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbfname = 'S\xc3\xa3o'\n")
    assert Journey.load(file).name == "São"
    for encoding in ("latin-1", "utf-16"):
        file.write_bytes("name = 'São'\n".encode(encoding))
        with pytest.raises(ConfigError, match=r"a\.toml: not TOML in UTF-8: ") as found:
            Journey.load(file)
        assert "\n" not in str(found.value)


def test_changes_apply_after_the_file_and_are_named_in_errors(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("[last]\nsteps = 3\n")
    changed = Journey.load(file, ["last.steps=4", "name=plain words", "last.shares.call=0.5"])
    assert (changed.last.steps, changed.name, changed.last.shares) == (4, "plain words", {"call": 0.5})
    with pytest.raises(ConfigError, match=r"a\.toml with --set: last\.steps = 0: expected a whole number"):
        Journey.load(file, ["last.steps=0"])
    with pytest.raises(ConfigError, match=r"--set 'last\.steps\.x=1': 'steps' is not a table"):
        Journey.load(file, ["last.steps.x=1"])


def test_differences_name_each_key_with_both_values() -> None:
    one, other = Journey(), Journey(name="back", last=Walk(steps=3, shares={"call": 1.0}))
    expected = ["name = 'there' and 'back'", "last.steps = 10 and 3", "last.shares.call = not set and 1.0"]
    assert differences(one, other) == expected
