"""Duplicate matches and crosstables from the command line.

python -m evaluation.duplicate rule_based call_draw --deals 100000 --seed 1
python -m evaluation.duplicate rule_based call_draw --until 50 --json match.json            # killed? add --resume
python -m evaluation.duplicate uniform call raise call_draw --deals 20000 --json table.json
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from tyro.conf import arg

from agents import load
from archie_env.errors import ArchieError
from archie_env.files import locked
from archie_env.policy import Policy
from evaluation.command import (
    Agents,
    JsonFile,
    Resume,
    RulesName,
    SecretSeed,
    Seed,
    TimeLimit,
    check_resume,
    interrupted,
    progress,
    run_command,
)
from evaluation.duplicate.deals import read_secret, secret_hash
from evaluation.duplicate.match import CHUNK, DEALS, MatchResult
from evaluation.duplicate.report import format_match
from evaluation.results import WRITE_EVERY, ResultFile, manifest, reading, weights_hash
from evaluation.tournament.crosstable import Crosstable, crosstable, format_crosstable

_LOG: Final = logging.getLogger(__name__)
MOST_DEALS: Final = 10_000_000
"""Maximum number of deals of a match with ``--until``."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Play every deal twice with seats swapped; the deal pair is the sample.  Two agents play a match, more a crosstable."""

    agents: Agents
    deals: Annotated[int | None, arg(metavar="INT", help_behavior_hint=f"(default: {DEALS})")] = None
    """Deal pairs in each match; with --until the maximum, ten million by default."""
    until: Annotated[float | None, arg(metavar="W", help_behavior_hint="")] = None
    """Stop when the anytime-valid 95 %% interval, from end to end, is narrower than W mbb/hand."""
    seed: Seed = 0
    rules: RulesName = "archie"
    chunk: int = CHUNK
    """Deals played side by side."""
    crosstable: bool = False
    """Print a table even for two agents."""
    markdown: bool = False
    """Print the table as Markdown."""
    strict: bool = False
    """Stop at a player's first fault instead of forfeiting the hand."""
    time_limit: TimeLimit = None
    probabilities: bool = False
    """Ask players for probabilities, check them and sample the actions here."""
    secret_seed: SecretSeed = None
    json: JsonFile = None
    write_every: Annotated[float, arg(metavar="SECONDS")] = WRITE_EVERY
    """Time between two writings of intermediate results to that file."""
    resume: Resume = False

    @property
    def single(self) -> bool:
        """Whether to play a match rather than a crosstable."""
        return len(self.agents) == 2 and not self.crosstable

    @property
    def pairs(self) -> int:
        """Maximum number of deal pairs in each match."""
        return self.deals if self.deals is not None else DEALS if self.until is None else MOST_DEALS

    def check(self) -> None:
        """Raise `ArchieError` for options that contradict each other."""
        if len(self.agents) < 2:
            raise ArchieError(f"{len(self.agents)} players: expected at least 2")
        check_resume(self.resume, "--json FILE", self.json)
        if self.until is not None and not self.single:
            raise ArchieError("--until: expected two agents and no --crosstable")


def _play(options: Options) -> None:
    options.check()
    secret = None if options.secret_seed is None else read_secret(options.secret_seed)
    players = [load(name, options.rules) for name in options.agents]
    made = manifest(
        options.agents,
        options.rules,
        weights=[weights_hash(name, player) for name, player in zip(options.agents, players, strict=True)],
        deals=options.pairs,
        until=options.until,
        seed=options.seed,
        chunk=options.chunk,
        time_limit=options.time_limit,
        probabilities=options.probabilities,
        table=not options.single,
        **({} if secret is None else {"secret_seed_sha256": secret_hash(secret)}),
    )
    file = ResultFile(options.json, made, options.write_every)
    with locked(options.json):
        earlier = _earlier(options, file)
        if secret is not None:
            _LOG.info("secret seed with SHA-256 %s", secret_hash(secret))
        result = _play_on(options, players, secret, earlier, file)
        try:
            file.write(_values(options, result))
        finally:  # print the result even if the disk is full
            if options.single:
                print(format_match(result.results[0], options.until))
            else:
                print(format_crosstable(result, options.markdown))


def _values(options: Options, result: Crosstable) -> dict[str, Any]:
    """Return what a file holds: the match, or the whole crosstable."""
    return (result.results[0] if options.single else result).to_dict()


def _earlier(options: Options, file: ResultFile) -> Sequence[MatchResult]:
    """Read the matches to continue from; raises `ArchieError`."""
    kept = file.read(options.resume)
    if kept is None:
        return ()
    with reading(options.json):
        return (MatchResult.from_dict(kept),) if options.single else Crosstable.from_dict(kept).results


def _play_on(
    options: Options, players: Sequence[Policy], secret: bytes | None, earlier: Sequence[MatchResult], file: ResultFile
) -> Crosstable:
    """Play the rest; intermediate results are written, also at Ctrl-C and after an error."""

    def written(result: Crosstable) -> None:
        file.keep(lambda: _values(options, result))

    matches = len(players) * (len(players) - 1) // 2
    done = sum(match.totals.deals for match in earlier)
    with file.kept(), progress(options.pairs * matches, "deals", done) as advance:
        return crosstable(
            players, options.pairs, options.seed, options.rules, options.chunk, advance, earlier=earlier, written=written,
            strict=options.strict, time_limit=options.time_limit, probabilities=options.probabilities, secret=secret,
            until=options.until,
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(Options, "evaluation.duplicate", _play, arguments, lambda options: interrupted(options.json))
