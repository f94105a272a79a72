"""``python -m evaluation.benchmark`` with a protocol of some seconds, in place of ``--quick``."""

from __future__ import annotations

import sys

from evaluation.benchmark import protocol
from evaluation.best_response.exploiters import Budget, Settings

_BOUND = Settings(Budget(20_000), 20_000, exploiters=("call", "cfr"))
vars(protocol).update(
    FULL_GAME="mini",
    SMALL=("mini",),
    REFERENCES=("call", "rule_based"),
    QUICK=protocol.Protocol("soak", 8_000, _BOUND, "rank_isomorphic", 0.02),
)

from evaluation.benchmark.command import main  # noqa: E402  (after the protocol is changed)

if __name__ == "__main__":
    sys.exit(main())
