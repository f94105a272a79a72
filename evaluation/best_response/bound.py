"""Lower bounds on what a best response wins from a policy, in games too large for the exact number.

python -m evaluation.best_response rule_based --budget 400000 --seed 1
python -m evaluation.best_response ppo:a.npz --budget 4000000 --out results/a-bound            # killed? add --resume
python -m evaluation.best_response ppo:a.npz --budget 60s --exploiters rule_based lbr ppo

Several opponents are made against the policy, or taken as they are, and play it in duplicate matches on the same deals.  The
one whose 95 % interval has the highest lower end is chosen there, and the bound is what it wins on fresh deals: choosing the
largest of many results and reporting that one would promise too much.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, cast

from agents import load, names
from agents.abstraction import has_tables
from agents.cfr import CFRPolicy
from archie_env.errors import ArchieError, PlayerLeftError
from archie_env.files import make_folder
from archie_env.policy import Policy, name_of
from archie_env.rules import PRESETS, Rules, as_rules
from archie_env.validation import whole_number
from evaluation.best_response.lbr import PARTICLES, LocalBestResponse
from evaluation.duplicate.command import format_faults, manifest, weights_hash
from evaluation.duplicate.match import CHUNK, MatchResult, play_match
from evaluation.duplicate.umpire import TimedPolicy, exception_text
from evaluation.estimates import Estimate
from evaluation.results import read_kept, write_json
from evaluation.tournament.standings import grid

SCRIPTED: Final = ("uniform", "call", "raise", "call_draw", "raise_draw", "rule_based")
"""Opponents taken as they are."""
TELL_EVERY: Final = 10.0
"""Seconds between two lines on an opponent in training."""

_SLOW_CHUNK: Final = 128
"""Deals played side by side at most where the opponent is slow: with more there would be nothing to tell of for minutes."""

TRAVERSALS: Final = 3
"""Traversals of the CFR responder for each decision of the budget."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """How long an opponent may learn: exactly one of the two."""

    decisions: int | None = None
    """Of the learner; the same budget and seed then give the same opponent."""
    seconds: float | None = None
    """Wall time; depends on the machine."""

    def __post_init__(self) -> None:
        if (self.decisions is None) == (self.seconds is None):
            raise ArchieError(f"budget of {self.decisions} decisions and {self.seconds} seconds: expected one of the two")

    @classmethod
    def parse(cls, text: str) -> Budget:
        """``400000`` decisions or ``60s``."""
        number = text.replace("_", "").replace(",", "")
        if re.fullmatch(r"[1-9]\d{0,12}", number):
            return cls(decisions=int(number))
        if re.fullmatch(r"\d+(\.\d*)?s", number) and float(number[:-1]) > 0:
            return cls(seconds=float(number[:-1]))
        raise ArchieError(f"budget {text!r}: expected a number of decisions such as 400000, or seconds such as 60s")

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.decisions is None else f"{self.decisions:,} decisions"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a bound depends on besides the policy."""

    budget: Budget = field(default_factory=lambda: Budget(400_000))
    """Of every opponent that learns."""
    deals: int = 20_000
    """Deal pairs of each match."""
    slow_deals: int = 2_000
    """The same for opponents that think long (`Exploiter.slow`), if fewer."""
    particles: int = PARTICLES
    """Hands that local best response samples."""
    seed: int = 1
    exploiters: tuple[str, ...] = ()
    """Names of `EXPLOITERS`, or of players that `agents.load` takes; empty: `SCRIPTED` and all of `EXPLOITERS` that can."""
    chunk: int = CHUNK
    time_limit: float | None = None
    """Seconds the policy may take for one call, see `evaluation.duplicate.umpire.TimedCalls`."""
    checkpoint: str | None = None
    """Of the run of `training.cfr` that made the policy: the CFR responder then begins with its regrets."""

    @property
    def names(self) -> tuple[str, ...]:
        """The opponents."""
        return self.exploiters or (*SCRIPTED, *EXPLOITERS)

    @property
    def seeds(self) -> tuple[int, int, int]:
        """Of the deals to learn from, to choose on and to report on: no two settings ever share one by two of these names."""
        return 3 * self.seed, 3 * self.seed + 1, 3 * self.seed + 2

    def check(self) -> None:
        """Raise `ArchieError` for what no bound could be found with."""
        for name, least in (("deals", 2), ("slow_deals", 2), ("particles", 1), ("seed", 0), ("chunk", 1)):
            whole_number(name.replace("_", " "), getattr(self, name), least)
        if self.time_limit is not None and not self.time_limit > 0:
            raise ArchieError(f"time limit {self.time_limit}: expected more than 0 seconds")
        if "human" in self.names:
            raise ArchieError("exploiter human: expected players that need no terminal")
        if twice := sorted({name for name in self.names if self.names.count(name) > 1}):
            raise ArchieError(f"exploiters {', '.join(twice)}: named twice")


class Saved(Protocol):
    """An opponent with weights."""

    def save(self, path: Path) -> None:
        """Write them."""
        ...


@dataclass(frozen=True, slots=True)
class Exploiter:
    """A way of making an opponent for one policy."""

    make: Callable[[Policy, Rules, Settings, Tell], tuple[Policy, str]]
    """From the policy, the rules and the settings, with words on how; raises `ArchieError` where there can be none."""
    kind: str | None = None
    """What `agents.load` calls the file that the opponent's ``save(path)`` writes; None: it has no weights."""
    slow: bool = False
    """Whether its matches are cut to `Settings.slow_deals`."""


def _local(target: Policy, rules: Rules, settings: Settings, tell: Tell) -> tuple[Policy, str]:
    return LocalBestResponse(target, rules, settings.particles), f"{settings.particles} sampled hands"


def _now_and_then(tell: Tell) -> Tell:
    """Passes on what is said `TELL_EVERY` seconds after what was passed on before."""
    told = time.perf_counter()

    def say(text: str) -> None:
        nonlocal told
        if time.perf_counter() - told > TELL_EVERY:
            told = time.perf_counter()
            tell(text)

    return say


def _learned(target: Policy, rules: Rules, settings: Settings, tell: Tell) -> tuple[Policy, str]:
    from training.ppo.best_response import train_exploiter  # torch is not needed by the others

    start, say = time.perf_counter(), _now_and_then(tell)

    def progress(share: float, decisions: int, won: float) -> None:
        say(f"ppo: {share:.0%} of {settings.budget}, {won:+,.0f} mbb/hand in its last rollout")

    budget, seed = settings.budget, settings.seeds[0]
    if budget.seconds is not None:
        policy = train_exploiter(target, rules, seconds=budget.seconds, seed=seed, progress=progress)
    else:
        policy = train_exploiter(target, rules, decisions=budget.decisions, seed=seed, progress=progress)
    return policy, f"{policy.meta['decisions']:,} decisions in {time.perf_counter() - start:.0f} s"


def _counterfactual(target: Policy, rules: Rules, settings: Settings, tell: Tell) -> tuple[Policy, str]:
    from training.cfr.best_response import respond

    start, say = time.perf_counter(), _now_and_then(tell)

    def progress(share: float, traversals: int, worth: float) -> None:
        say(f"cfr: {share:.0%} of {settings.budget}, {traversals:,} traversals")

    budget, checkpoint = settings.budget, None if settings.checkpoint is None else Path(settings.checkpoint)
    policy = respond(
        target, rules=rules, seconds=budget.seconds or 0.0, traversals=TRAVERSALS * (budget.decisions or 0),
        seed=settings.seeds[0], checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    begin = "from its strategy" if checkpoint is None else "from its regrets"
    if not isinstance(target, CFRPolicy):
        begin = "against its imitation"
    return policy, f"{policy.meta['traversals']:,} traversals {begin} in {time.perf_counter() - start:.0f} s"


EXPLOITERS: Final[dict[str, Exploiter]] = {
    "lbr": Exploiter(_local, slow=True),
    "ppo": Exploiter(_learned, kind="ppo"),
    "cfr": Exploiter(_counterfactual, kind="cfr"),
}
"""Opponents that are made for the policy, by name."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one opponent won on the deals to choose on."""

    name: str
    how: str
    """How the opponent was made, or why there is none."""
    result: MatchResult | None
    """The opponent is ``a``."""
    seconds: float = field(compare=False, default=0.0)
    """To make it and to play."""

    @property
    def least(self) -> float:
        """The lower end of the 95 % interval, in mbb per hand: what the choice goes by."""
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
    """A lower bound on what a best response wins from a policy, in a duplicate match: the mean of both positions."""

    target: str
    rules: Rules
    settings: Settings
    attempts: tuple[Attempt, ...]
    chosen: str
    """The opponent whose result is the bound."""
    result: MatchResult
    """Of the chosen opponent, which is ``a``, on fresh deals."""
    opponent: str | None = None
    """What `agents.load` calls the chosen opponent: one that was taken as it is, or whose weights were kept; None for others,
    and where the target has no such name."""

    @property
    def replay(self) -> str | None:
        """The command that plays the match of the bound again; None where there is none."""
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
        """Thousandths of a big blind per hand; below 0 where no opponent wins, and 0 is then the better bound."""
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
            "lower_bound": {
                "mbb_per_hand": self.mbb.mean,
                "standard_error": self.mbb.standard_error,
                "interval_95": list(self.mbb.interval),
            },
            "replay": self.replay,
            "result": self.result.to_dict(),
        }


class _Folder:
    """Where attempts are kept: a file for each as it ends, and the weights of those that have some.

    Args:
        path: the folder, or None: nothing is kept.
        made: the manifest of all that is in it.
        resume: use what is there; without it, a folder that holds attempts is refused.
    """

    def __init__(self, path: Path | None, made: Mapping[str, Any], resume: bool) -> None:
        self.path, self._made = path, json.loads(json.dumps(made))
        if path is None:
            return
        make_folder(path)
        found = [*path.glob("*.attempt.json"), *path.glob("bound.json")]
        if found and not resume:
            raise ArchieError(f"{path}: holds {len(found)} results; resume to go on with them, or choose another folder")

    def _file(self, name: str, end: str) -> Path | None:
        if self.path is None:
            return None
        plain = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[-80:]
        if plain != name:  # two names may look alike then
            plain += f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.path / f"{plain}{end}"

    def read(self, name: str, end: str = ".attempt.json") -> dict[str, Any] | None:
        """What was kept; raises `ArchieError` if it was made under another manifest or can't be read."""
        path = self._file(name, end)
        return None if path is None else read_kept(path, self._made)

    def keep(self, name: str, values: Mapping[str, Any], end: str = ".attempt.json") -> None:
        """The inverse of `read`."""
        path = self._file(name, end)
        if path is not None:
            write_json(path, {"manifest": self._made, **values})

    def weights(self, name: str) -> Path | None:
        """Where the weights of an opponent go."""
        return self._file(name, ".npz")


def best_response(
    target: Policy | str,
    rules: Rules | str = "archie",
    settings: Settings | None = None,
    folder: Path | None = None,
    resume: bool = False,
    tell: Tell = lambda text: None,
) -> Bound:
    """Let every opponent try, and measure the best of them on fresh deals.

    Args:
        target: a policy for these rules, or the name of one.
        rules: a preset's name or a `Rules` value.
        settings: budgets, deals and seed; `Settings` as it is unless given.
        folder: where attempts, weights and ``bound.json`` are kept.
        resume: go on with the attempts in ``folder``.
        tell: called with a line on each attempt, and now and then while an opponent learns or plays.

    Raises:
        ArchieError: for settings that can't be, a target that can't be loaded, a folder of another bound, and if no opponent
            could be made.  An opponent that can't be made is told of in its attempt, and the others go on.
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
            load(other, rules)  # what can't be played is found out before anything is
    kept = _Folder(folder, _manifest(name, policy, rules, settings), resume)
    made: dict[str, Policy] = {}
    attempts = []
    for other in tried:
        values, weights = kept.read(other), None if other in EXPLOITERS else weights_hash(other, load(other, rules))
        if values is not None and values.get("weights") != weights:
            raise ArchieError(f"{kept.path}: holds an attempt of another {other}, whose weights have changed since")
        if values is None:
            attempt = _attempt(other, policy, rules, settings, kept, made, tell)
            kept.keep(other, {"weights": weights, **attempt.to_dict()})
        else:
            attempt = Attempt.from_dict(values)
        attempts.append(attempt)
        tell(f"{other}: {_won(attempt)}, {'kept' if values else f'{attempt.seconds:.0f} s'}")
    best = max(attempts, key=lambda attempt: attempt.least)
    if best.result is None:
        raise ArchieError(f"{name}: no opponent could be made: " + "; ".join(f"{a.name} {a.how}" for a in attempts))
    values = kept.read("bound", ".json")
    if values is not None and values["chosen"] == best.name and best.name not in made:
        result = MatchResult.from_dict(values["result"])
    else:
        opponent = made[best.name] if best.name in made else _again(best.name, policy, rules, settings, kept, tell)
        result = _match(opponent, best.name, policy, rules, settings, settings.seeds[2], tell)
    path, source = kept.weights(best.name), EXPLOITERS[best.name].kind if best.name in EXPLOITERS else None
    known = best.name if best.name not in EXPLOITERS else f"{source}:{path}" if source and path else None
    if not isinstance(target, str):
        known = None
    bound = Bound(name, rules, settings, tuple(attempts), best.name, result, known)
    kept.keep("bound", bound.to_dict(), ".json")
    return bound


def _manifest(name: str, policy: Policy, rules: Rules, settings: Settings) -> dict[str, Any]:
    """All that an attempt depends on; who else tries is not among it."""
    same = {key: value for key, value in asdict(settings).items() if key != "exploiters"}
    made = manifest([name], "archie", settings.deals, settings.seed, settings.chunk, weights=[weights_hash(name, policy)])
    played = {"target": name, "weights": made["weights"][0], "rules": rules.to_dict()}
    return played | {"settings": same, "versions": made["versions"], "machine": made["machine"]}


def _guarded(target: Policy, settings: Settings) -> Policy:
    """The policy as opponents ask it, which is outside of matches; tables never hang, and are read by who responds to them."""
    return target if settings.time_limit is None or isinstance(target, CFRPolicy) else TimedPolicy(target, settings.time_limit)


def _attempt(
    name: str, target: Policy, rules: Rules, settings: Settings, kept: _Folder, made: dict[str, Policy], tell: Tell
) -> Attempt:
    """Make an opponent, add it to ``made``, and let it play."""
    start, how = time.perf_counter(), "as it is"
    try:
        if name in EXPLOITERS:
            opponent, how = EXPLOITERS[name].make(_guarded(target, settings), rules, settings, tell)
            path = kept.weights(name)
            if path is not None and EXPLOITERS[name].kind is not None:
                cast(Saved, opponent).save(path)
        else:
            opponent = load(name, rules)
        result = _match(opponent, name, target, rules, settings, settings.seeds[1], tell)
        if name in EXPLOITERS and result.faults[0].total:  # one that fails has proved nothing
            raise ArchieError(result.faults[0].reports[0])
    except ArchieError as error:  # what can't be made against this policy does not end the others' attempts
        return Attempt(name, f"failed: {error}", None, time.perf_counter() - start)
    except PlayerLeftError:
        raise
    except Exception as error:  # raised by the policy, which may be anybody's program
        return Attempt(name, f"failed: {exception_text(error)}", None, time.perf_counter() - start)
    made[name] = opponent
    return Attempt(name, how, result, time.perf_counter() - start)


def _again(name: str, target: Policy, rules: Rules, settings: Settings, kept: _Folder, tell: Tell) -> Policy:
    """An opponent of an attempt that was kept: from its weights where it has some."""
    if name not in EXPLOITERS:
        return load(name, rules)
    path, kind = kept.weights(name), EXPLOITERS[name].kind
    if kind is not None and path is not None and path.exists():
        return load(f"{kind}:{path}", rules)
    return EXPLOITERS[name].make(_guarded(target, settings), rules, settings, tell)[0]


def _match(opponent: Policy, name: str, target: Policy, rules: Rules, settings: Settings, seed: int, tell: Tell) -> MatchResult:
    slow = name in EXPLOITERS and EXPLOITERS[name].slow
    deals, done, say = min(settings.deals, settings.slow_deals) if slow else settings.deals, 0, _now_and_then(tell)

    def progress(more: int) -> None:
        nonlocal done
        done += more
        say(f"{name}: {done:,} of {deals:,} deals played")

    chunk = min(settings.chunk, _SLOW_CHUNK) if slow else settings.chunk
    limits = None if slow else settings.time_limit, settings.time_limit  # a slow one asks the policy many times in one call
    return play_match(
        opponent, target, deals, seed, rules, chunk, progress, time_limit=limits
    )  # fmt: skip


def _won(attempt: Attempt) -> str:
    if attempt.result is None:
        return attempt.how
    return f"{attempt.result.mbb.mean:+,.1f} mbb/hand, standard error {attempt.result.mbb.standard_error:.1f}"


def format_bound(bound: Bound) -> str:
    """Every attempt in a table, then the bound."""
    learn, choose, report = bound.settings.seeds
    rows = [["opponent", "made by", "deals", "mbb/hand", "standard error", "95 % interval"]]
    failed, faults = [], []
    for attempt in bound.attempts:
        if attempt.result is None:
            failed.append(f"{attempt.name} {attempt.how}")
            continue
        low, high = attempt.result.mbb.interval
        mbb = attempt.result.mbb
        rows.append([attempt.name, attempt.how, f"{attempt.result.totals.deals:,}", f"{mbb.mean:+,.1f}"])
        rows[-1] += [f"{mbb.standard_error:,.1f}", f"{low:+,.1f} to {high:+,.1f}"]
        faults += [line for line in format_faults(attempt.result) if line not in faults]
    low, high = bound.mbb.interval
    lines = [
        f"What opponents win from {bound.target}, rules {bound.rules.name}, seed {bound.settings.seed}: deals of seed {learn} "
        f"to learn from, {choose} to choose on, {report} to report on",
        "",
        *grid(rows, text=(0, 1)),
        "",
        *failed,
        f"lower bound on what a best response wins: {bound.mbb.mean:+,.1f} mbb/hand, standard error "
        f"{bound.mbb.standard_error:,.1f}, 95 % interval {low:+,.1f} to {high:+,.1f}",
        f"  by {bound.chosen}, chosen in the table, on {bound.result.totals.deals:,} fresh deals played twice",
    ]
    if bound.replay:
        lines.append(f"  {bound.replay}")
    if bound.mbb.mean < 0:
        lines.append("  nobody wins: the better bound is 0, what the policy wins from itself")
    return "\n".join([*lines, *faults])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.best_response",
        description="A lower bound on what a best response wins from a policy.",
        epilog=f"agents: {', '.join(name for name in names() if name != 'human')}; exploiters also: {', '.join(EXPLOITERS)}",
    )
    default = Settings()
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument(
        "--budget", default=str(default.budget.decisions), metavar="N", help="decisions (400000) or seconds (60s) to learn"
    )
    parser.add_argument("--deals", type=int, default=default.deals, help="deal pairs of a match (default %(default)s)")
    parser.add_argument(
        "--slow-deals", type=int, default=default.slow_deals, help="the same where the opponent is lbr (default %(default)s)"
    )
    parser.add_argument("--particles", type=int, default=PARTICLES, help="hands that lbr samples (default %(default)s)")
    parser.add_argument("--exploiters", nargs="+", default=[], metavar="NAME", help="in place of all of them")
    parser.add_argument("--rules", default="archie", choices=list(PRESETS))
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--chunk", type=int, default=CHUNK, help="deals played side by side (default %(default)s)")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="the agent's time for one batch of decisions")
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="of the training.cfr run that made the agent, for the cfr responder"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep attempts, weights and bound.json here")
    parser.add_argument("--resume", action="store_true", help="go on with the attempts in --out")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.resume and options.out is None:
            raise ArchieError("--resume: expected --out with the folder to go on with")
        settings = Settings(
            Budget.parse(options.budget), options.deals, options.slow_deals, options.particles, options.seed,
            tuple(options.exploiters), options.chunk, options.time_limit, options.checkpoint,
        )  # fmt: skip
        bound = best_response(
            options.agent, options.rules, settings, options.out, options.resume,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip
    except (ArchieError, PlayerLeftError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; attempts are kept where --out was given, go on with --resume", file=sys.stderr)
        return 130
    print(format_bound(bound))
    return 0
