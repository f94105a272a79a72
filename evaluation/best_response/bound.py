"""Lower bounds on the winnings of a best response to a policy, in games too large for the exact number.

Several opponents are made against the policy, or take part unchanged, and play it in duplicate matches on the same deals.  The
opponent whose 95 % interval has the highest lower end is chosen, and the bound is its result on fresh deals: reporting the
largest of many results itself would be biased upwards.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from agents import cfr, load, ppo
from agents.abstraction import has_tables
from agents.archive import check_form
from agents.cfr import CFRPolicy
from archie_env.errors import ArchieError, PlayerLeftError, described, shown
from archie_env.files import check_replaceable, locked, make_folder
from archie_env.policy import Policy, name_of
from archie_env.rules import PRESETS, Rules, as_rules
from evaluation.best_response.exploiters import EXPLOITERS, OccasionalLog, Saved, Settings
from evaluation.best_response.form import AttemptForm, BoundForm
from evaluation.command import progress, table
from evaluation.duplicate.match import CHUNK, MatchResult, play_match
from evaluation.duplicate.report import format_faults
from evaluation.estimates import Estimate
from evaluation.players import TimedPolicy
from evaluation.results import ResultFolder, checked, manifest, weights_hash

_SLOW_CHUNK: Final = 128
"""Most deals played side by side against a slow opponent: with more, minutes would pass between two signs of progress."""
_ATTEMPT: Final = ".attempt.json"
_WEIGHTS: Final = ".npz"

_FORMS: Final = {"cfr": cfr.FORMAT, "ppo": ppo.FORMAT}
"""Of the weights of opponents, by `Exploiter.kind`."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of one opponent on the deals for choosing."""

    name: str
    how: str
    """How the opponent was made, or why that failed."""
    result: MatchResult | None
    """Result of the match; the opponent is ``a``."""
    seconds: float = field(compare=False, default=0.0)
    """Time to make the opponent and to play."""

    @property
    def least(self) -> float:
        """Lower end of the 95 % interval in mbb per hand, by which opponents are compared."""
        return self.result.mbb.interval[0] if self.result else float("-inf")

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`."""
        result = self.result.to_dict() if self.result else None
        return {"name": self.name, "how": self.how, "seconds": self.seconds, "result": result}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Attempt:
        """The inverse of `to_dict`."""
        result = MatchResult.from_dict(values["result"]) if values["result"] else None
        return cls(values["name"], values["how"], result, values["seconds"])


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the winnings of a best response to a policy in a duplicate match, the mean of both positions."""

    target: str
    rules: Rules
    settings: Settings
    attempts: tuple[Attempt, ...]
    chosen: str
    """The opponent whose result is the bound."""
    result: MatchResult
    """Result of the chosen opponent, which is ``a``, on fresh deals."""
    opponent: str | None = None
    """Name of the chosen opponent for `agents.load`, if it took part unchanged or its weights were kept; None for others, and
    if the target has no such name."""

    @property
    def replay(self) -> str | None:
        """The command that plays the match of the bound again, or None."""
        settings = self.settings
        if self.opponent is None or PRESETS.get(self.rules.name) != self.rules:
            return None
        rules = "" if self.rules.name == "archie" else f" --rules {self.rules.name}"
        chunk = "" if settings.chunk == CHUNK else f" --chunk {settings.chunk}"
        limit = "" if settings.time_limit is None else f" --time-limit {settings.time_limit:g}"
        players = shlex.join((self.opponent, self.target))
        deals, seed = self.result.totals.deals, settings.seeds[2]
        return f"python -m evaluation.duplicate {players} --deals {deals} --seed {seed}{rules}{chunk}{limit}"

    @property
    def mbb(self) -> Estimate:
        """Thousandths of a big blind per hand; if it is below 0, no opponent wins and 0 is the better bound."""
        return self.result.mbb

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "target": self.target,
            "rules": self.rules.to_dict(),
            "settings": asdict(self.settings),
            "seeds": dict(zip(("learn", "choose", "report"), self.settings.seeds, strict=True)),
            "attempts": [attempt.to_dict() for attempt in self.attempts],
            "chosen": self.chosen,
            "lower_bound": self.mbb.to_dict(),
            "replay": self.replay,
            "result": self.result.to_dict(),
        }


def best_response(
    target: Policy | str,
    rules: Rules | str = "archie",
    settings: Settings | None = None,
    folder: Path | None = None,
    resume: bool = False,
) -> Bound:
    """Let every opponent play, and measure the best of them on fresh deals.

    Args:
        target: a policy for these rules, or the name of one.
        rules: a preset's name or a `Rules` value.
        settings: budgets, deals and seed; by default `Settings()`.
        folder: keep attempts, weights and ``bound.json`` here.
        resume: continue from the attempts in ``folder``.

    Raises:
        ArchieError: for invalid settings, a target that cannot be loaded, a folder of another bound, and if no opponent could
            be made.  The failure of a single opponent is recorded in its attempt.
    """
    rules, settings = as_rules(rules), settings or Settings()
    settings.check()
    if target == "human":
        raise ArchieError("agent human: expected a player that needs no terminal")
    policy = load(target, rules) if isinstance(target, str) else target
    name = target if isinstance(target, str) else name_of(target)
    tried = settings.names
    if not settings.exploiters and not has_tables(rules):
        tried = tuple(other for other in tried if other != "cfr")
    for other in tried:
        if other not in EXPLOITERS:
            load(other, rules)  # fail before the first match
    if folder is not None:
        make_folder(folder)
    with locked(folder):
        kept = ResultFolder(folder, _manifest(name, policy, rules, settings), resume)
        _check_weights(kept, tried)
        return _measure(target, name, policy, rules, settings, tried, kept)


def _check_weights(kept: ResultFolder, names: Sequence[str]) -> None:
    """Raise `ArchieError` for files that would be lost to the weights of these opponents."""
    for name in names:
        if name in EXPLOITERS and (kind := EXPLOITERS[name].kind):
            check_replaceable(kept.place(name, _WEIGHTS), partial(check_form, form=_FORMS[kind]))


def _measure(
    target: Policy | str,
    name: str,
    policy: Policy,
    rules: Rules,
    settings: Settings,
    tried: tuple[str, ...],
    kept: ResultFolder,
) -> Bound:
    """Play all attempts, then the match of the best opponent on fresh deals."""
    made: dict[str, Policy] = {}
    attempts = []
    for other in tried:
        weights = None if other in EXPLOITERS else weights_hash(other, load(other, rules))
        values = kept.read(other, partial(checked, AttemptForm), _ATTEMPT)
        if values is not None and values.get("weights") != weights:
            raise ArchieError(f"{kept.path}: holds an attempt of another {other}, whose weights have changed since")
        if values is None:
            attempt = _attempt(other, policy, rules, settings, kept, made)
            kept.file(other, _ATTEMPT).write({"weights": weights, **attempt.to_dict()})
        else:
            attempt = Attempt.from_dict(values)
            if attempt.name != other:  # a name is loaded, and its module imported
                raise ArchieError(f"{kept.path}: the attempt of {other} names {shown(attempt.name)}: expected {other}")
        attempts.append(attempt)
        _log.info(f"{other}: {_won(attempt)}, {'kept' if values else f'{attempt.seconds:.0f} s'}")
    best = max(attempts, key=lambda attempt: attempt.least)
    if best.result is None:
        raise ArchieError(f"{name}: no opponent could be made: " + "; ".join(f"{a.name} {a.how}" for a in attempts))
    values = kept.read("bound", partial(checked, BoundForm))
    if values is not None and values["chosen"] == best.name and best.name not in made:
        result = MatchResult.from_dict(values["result"])
    else:
        opponent = made[best.name] if best.name in made else _again(best.name, policy, rules, settings, kept)
        result = _match(opponent, best.name, policy, rules, settings, settings.seeds[2])
    path, source = kept.place(best.name, _WEIGHTS), EXPLOITERS[best.name].kind if best.name in EXPLOITERS else None
    known = best.name if best.name not in EXPLOITERS else f"{source}:{path}" if source and path else None
    if not isinstance(target, str):
        known = None
    bound = Bound(name, rules, settings, tuple(attempts), best.name, result, known)
    kept.file("bound").write(bound.to_dict())
    return bound


def _manifest(name: str, policy: Policy, rules: Rules, settings: Settings) -> dict[str, Any]:
    """Everything an attempt depends on, which excludes the other opponents."""
    same = {key: value for key, value in asdict(settings).items() if key != "exploiters"}
    made = manifest([name], rules, weights=[weights_hash(name, policy)])
    played = {"target": name, "weights": made["weights"][0], "rules": rules.to_dict()}
    return played | {"settings": same, "versions": made["versions"], "machine": made["machine"]}


def _guarded(target: Policy, settings: Settings) -> Policy:
    """Wrap the policy in a time limit for questions outside of matches; CFR tables never hang, and the responder reads them."""
    return target if settings.time_limit is None or isinstance(target, CFRPolicy) else TimedPolicy(target, settings.time_limit)


def _attempt(
    name: str, target: Policy, rules: Rules, settings: Settings, kept: ResultFolder, made: dict[str, Policy]
) -> Attempt:
    """Make an opponent, add it to ``made``, and play its match."""
    start, how = time.perf_counter(), "unchanged"
    try:
        if name in EXPLOITERS:
            opponent, how = EXPLOITERS[name].make(_guarded(target, settings), rules, settings)
            path = kept.place(name, _WEIGHTS)
            if path is not None and EXPLOITERS[name].kind is not None:
                cast(Saved, opponent).save(path)
        else:
            opponent = load(name, rules)
        result = _match(opponent, name, target, rules, settings, settings.seeds[1])
        if name in EXPLOITERS and result.faults[0].total:  # the result of an opponent with faults proves nothing
            raise ArchieError(result.faults[0].reports[0])
    except ArchieError as error:  # the failure of one opponent must not end the others' attempts
        return Attempt(name, f"failed: {error}", None, time.perf_counter() - start)
    except PlayerLeftError:
        raise
    except Exception as error:  # raised by the policy, which may be anyone's program
        return Attempt(name, f"failed: {described(error, folder=False)}", None, time.perf_counter() - start)
    made[name] = opponent
    return Attempt(name, how, result, time.perf_counter() - start)


def _again(name: str, target: Policy, rules: Rules, settings: Settings, kept: ResultFolder) -> Policy:
    """Load the opponent of a kept attempt from its weights, or make it again."""
    if name not in EXPLOITERS:
        return load(name, rules)
    path, kind = kept.place(name, _WEIGHTS), EXPLOITERS[name].kind
    if kind is not None and path is not None and path.exists():
        return load(f"{kind}:{path}", rules)
    return EXPLOITERS[name].make(_guarded(target, settings), rules, settings)[0]


def _match(opponent: Policy, name: str, target: Policy, rules: Rules, settings: Settings, seed: int) -> MatchResult:
    slow = name in EXPLOITERS and EXPLOITERS[name].slow
    deals, done, log = min(settings.deals, settings.slow_deals) if slow else settings.deals, 0, OccasionalLog()
    chunk = min(settings.chunk, _SLOW_CHUNK) if slow else settings.chunk
    limits = None if slow else settings.time_limit, settings.time_limit  # a slow one asks the policy many times in one call
    with progress(deals, "deals") as advance:

        def played(more: int) -> None:
            nonlocal done
            done += more
            advance(more)
            log(f"{name}: {done:,} of {deals:,} deals played")

        return play_match(opponent, target, deals, seed, rules, chunk, played, time_limit=limits)


def _won(attempt: Attempt) -> str:
    return attempt.how if attempt.result is None else f"{attempt.result.mbb} mbb/hand"


def format_bound(bound: Bound) -> str:
    """Format every attempt in a table, then the bound; ± is the 95 % interval."""
    learn, choose, report = bound.settings.seeds
    rows = [["opponent", "made by", "deals", "mbb/hand", "95 % interval"]]
    failed, faults = [], []
    for attempt in bound.attempts:
        if attempt.result is None:
            failed.append(f"{attempt.name} {attempt.how}")
            continue
        mbb = attempt.result.mbb
        rows.append([attempt.name, attempt.how, f"{attempt.result.totals.deals:,}", str(mbb), _interval(mbb)])
        faults += [line for line in format_faults(attempt.result) if line not in faults]
    lines = [
        f"Winnings of opponents from {bound.target}, rules {bound.rules.name}, seed {bound.settings.seed}: deals of seed "
        f"{learn} for learning, {choose} for choosing, {report} for reporting",
        "",
        *table(rows, markdown=True, text=(0, 1)),
        "",
        *failed,
        f"lower bound on the winnings of a best response: {bound.mbb} mbb/hand (95 % interval {_interval(bound.mbb)})",
        f"  by {bound.chosen}, chosen in the table, on {bound.result.totals.deals:,} fresh duplicate deals",
    ]
    if bound.replay:
        lines.append(f"  {bound.replay}")
    if bound.mbb.mean < 0:
        lines.append("  no opponent wins: the better bound is 0, the winnings of the policy from itself")
    return "\n".join([*lines, *faults])


def _interval(mbb: Estimate) -> str:
    low, high = mbb.interval
    return f"{low:+,.1f} to {high:+,.1f}"
