"""Matches adjusted for luck, from the command line.

python -m evaluation.aivat rule_based call_draw --deals 20000 --seed 1
python -m evaluation.aivat rule_based call_draw --deals 200000 --json adjusted.json          # killed? add --resume
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from tyro.conf import arg

from agents import load
from archie_env.errors import ArchieError
from archie_env.files import locked
from archie_env.policy import Policy
from archie_env.rules import as_rules
from evaluation.aivat.form import FinishedForm, Played, kept, restored
from evaluation.aivat.match import SAMPLES, AdjustedMatch, check_arguments, play_adjusted
from evaluation.aivat.value_function import DEALS as LEARN_DEALS
from evaluation.aivat.value_function import learn
from evaluation.command import Agents, JsonFile, Resume, RulesName, Seed, check_resume, interrupted, progress, run_command
from evaluation.duplicate.match import CHUNK, DEALS
from evaluation.estimates import Estimate
from evaluation.results import WRITE_EVERY, ResultFile, checked, manifest, reading, weights_hash

_SECONDS_PER_DEAL: Final = 1e-4
"""Added to the time between two writings of what was played, 90 bytes a deal: a long match writes a large file."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Play every deal twice with seats swapped, and adjust the results of two agents for luck."""

    agents: Agents
    deals: int = DEALS
    """Deal pairs."""
    seed: Seed = 0
    rules: RulesName = "archie"
    chunk: int = CHUNK
    """Deals played side by side."""
    samples: int = SAMPLES
    """Fresh deals and draws for each expected value."""
    learn_deals: int = LEARN_DEALS
    """Deal pairs that the value function is learnt from."""
    learn_seed: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: seed + 1)")] = None
    """Seed of these deals."""
    teachers: Annotated[tuple[str, str] | None, arg(metavar="AGENT AGENT", help_behavior_hint="(default: the two agents)")] = (
        None
    )
    """Players of these deals."""
    json: JsonFile = None
    resume: Resume = False

    def check(self) -> None:
        """Raise `ArchieError` for options that make no match."""
        check_resume(self.resume, "--json FILE", self.json)
        if len(self.agents) != 2:
            raise ArchieError(f"{len(self.agents)} players: expected 2")
        check_arguments(self.deals, self.seed, self.chunk, self.samples, self.seed_to_learn)

    @property
    def seed_to_learn(self) -> int:
        """Seed of the deals that the value function is learnt from."""
        return self.seed + 1 if self.learn_seed is None else self.learn_seed


def format_adjusted(of: AdjustedMatch) -> str:
    """Format an adjusted match as a paragraph."""
    raw, adjusted, value = of.mbb(of.raw), of.mbb(of.adjusted), of.value
    (raw_hand, raw_pair), (hand, pair) = of.deviations(of.raw), of.deviations(of.adjusted)
    players = [name for name, is_known in zip((of.a, of.b), of.known, strict=True) if is_known]
    unknown = [name for name, is_known in zip((of.a, of.b), of.known, strict=True) if not is_known]
    ratios = f"; {raw_hand / hand:.2f} and {raw_pair / pair:.2f} times smaller" if pair and raw_pair else ""
    return "\n".join(
        [
            f"{of.a} v {of.b}: {of.deals:,} duplicate deals, rules {of.rules.name}, seed {of.seed}",
            f"  value function learnt from {value.teachers[0]} v {value.teachers[1]}, {value.deals:,} duplicate deals, "
            f"seed {value.seed}; {of.samples} samples for each expected value",
            f"  corrected: chance{''.join(f', the decisions of {name}' for name in players)}",
            *(f"  not corrected: the decisions of {name}, whose probabilities are not known" for name in unknown),
            *(
                f"  {name:<10}{mbb!s:>18} mbb/hand, 95 % interval {mbb.interval[0]:+,.1f} to {mbb.interval[1]:+,.1f}, "
                f"SE {mbb.standard_error:.1f}"
                for name, mbb in (("raw", raw), ("adjusted", adjusted))
            ),
            f"  standard deviation of a hand {raw_hand:,.0f} raw, {hand:,.0f} adjusted; "
            f"of a pair {raw_pair:,.0f} raw, {pair:,.0f} adjusted{ratios}",
            f"  adjusting is worth {of.worth:.2f} times the deals"
            if of.worth
            else f"  the {'adjusted' if of.worth is None else 'raw'} pairs do not vary at all",
            f"  {of.seconds:.1f} s",
        ]
    )


def format_finished(options: Options, values: Mapping[str, Any]) -> str:
    """Format the result in a finished file as a line; raises `ArchieError` where there is none."""
    with reading(options.json):
        form = checked(FinishedForm, values)
    raw, adjusted = (Estimate(of.mbb_per_hand, of.mbb_standard_error) for of in (form.raw, form.adjusted))
    a, b = options.agents
    return f"{a} v {b}: {options.deals:,} duplicate deals, played before; raw {raw}, adjusted {adjusted} mbb/hand"


def _play(options: Options) -> None:
    options.check()
    a, b = (load(name, options.rules) for name in options.agents)
    teachers = options.teachers or options.agents
    one, other = (load(name, options.rules) for name in teachers)
    file = ResultFile(options.json, _made(options, (a, b), (one, other)), max(WRITE_EVERY, options.deals * _SECONDS_PER_DEAL))
    with locked(options.json):
        values = file.read(options.resume)
        if values is not None and values.get("finished") is True:
            print(format_finished(options, values))
            return
        with reading(options.json):
            earlier = None if values is None else restored(values.get("played", {}), as_rules(options.rules).reserve)
        result = _play_on(options, (a, b), (one, other), earlier, file)
        try:
            file.write(result.to_dict())
        finally:  # a full disk does not lose what was played
            print(format_adjusted(result))


def _play_on(
    options: Options,
    players: tuple[Policy, Policy],
    teachers: tuple[Policy, Policy],
    earlier: Played | None,
    file: ResultFile,
) -> AdjustedMatch:
    """Learn the value function, which gives the same again, and play what is left; results so far are kept."""

    def written(played: Played) -> None:
        file.keep(lambda: {"played": kept(played)})

    rules, chunk, done = options.rules, options.chunk, 0 if earlier is None else len(earlier[0])
    with file.kept(), progress(options.deals + options.learn_deals, "deals", done) as tell:
        value = learn(*teachers, options.learn_deals, options.seed_to_learn, rules, chunk, tell)
        return play_adjusted(
            *players, options.deals, options.seed, rules, value,
            samples=options.samples, chunk=chunk, progress=tell, earlier=earlier, written=written,
        )  # fmt: skip


def _made(options: Options, players: Sequence[Policy], teachers: Sequence[Policy]) -> dict[str, Any]:
    """Everything the result depends on."""
    names = options.teachers or options.agents
    return manifest(
        options.agents,
        options.rules,
        deals=options.deals,
        seed=options.seed,
        chunk=options.chunk,
        weights=[weights_hash(name, player) for name, player in zip(options.agents, players, strict=True)],
        probabilities=True,
        samples=options.samples,
        teachers=list(names),
        teachers_weights=[weights_hash(name, player) for name, player in zip(names, teachers, strict=True)],
        learn_deals=options.learn_deals,
        learn_seed=options.seed_to_learn,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.aivat", _play, arguments, lambda options: interrupted(options.json))
