"""Matches adjusted for luck, from the command line.

python -m evaluation.aivat rule_based call_draw --deals 20000 --seed 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from agents import load
from archie_env.errors import ArchieError
from evaluation.aivat.match import SAMPLES, AdjustedMatch, check_arguments, play_adjusted
from evaluation.aivat.value_function import DEALS as LEARN_DEALS
from evaluation.aivat.value_function import learn
from evaluation.command import Agents, JsonFile, RulesName, Seed, progress, run_command
from evaluation.duplicate.match import CHUNK, DEALS
from evaluation.results import check_new, manifest, weights_hash, write_json


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

    def check(self) -> None:
        """Raise `ArchieError` for options that make no match."""
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


def _play(options: Options) -> None:
    options.check()
    check_new(options.json)
    a, b = (load(name, options.rules) for name in options.agents)
    teachers = options.teachers or options.agents
    one, other = (load(name, options.rules) for name in teachers)
    made = manifest(
        options.agents,
        options.rules,
        deals=options.deals,
        seed=options.seed,
        chunk=options.chunk,
        weights=[weights_hash(name, player) for name, player in zip(options.agents, (a, b), strict=True)],
        probabilities=True,
        teachers=list(teachers),
    )
    shared, chunk = (options.deals, options.seed, options.rules), options.chunk
    with progress(options.deals + options.learn_deals, "deals") as tell:
        value = learn(one, other, options.learn_deals, options.seed_to_learn, options.rules, chunk, tell)
        result = play_adjusted(a, b, *shared, value, samples=options.samples, chunk=chunk, progress=tell)
    print(format_adjusted(result))
    if options.json is not None:
        write_json(options.json, {"manifest": made, **result.to_dict()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run_command(Options, "evaluation.aivat", _play, arguments)
