"""The result of a duplicate match as text."""

from __future__ import annotations

from evaluation.duplicate.match import MatchResult


def format_match(result: MatchResult, until: float | None = None) -> str:
    """Format a match as a paragraph.

    Args:
        result: the match.
        until: the target width of the interval, if the results decided when to stop.
    """
    mbb, totals = result.mbb, result.totals
    low, high = mbb.interval
    dealer, blind = (value * result.rules.mbb_per_chip for value in (totals.as_dealer, totals.as_big_blind))
    (a_dealer, a_blind), (b_dealer, b_blind) = [[n / totals.deals for n in by_position] for by_position in result.folds]
    reduction = totals.variance_reduction
    lines = [
        f"{result.a} v {result.b}: {totals.deals:,} duplicate deals, rules {result.rules.name}, seed {result.seed}",
        f"  {result.a} wins {mbb} mbb/hand, 95 % interval {low:+.1f} to {high:+.1f}, SE {mbb.standard_error:.1f} "
        f"({result.chips:+.4f} chips/hand)",
        *([] if until is None else [_stop_text(result, until)]),
        f"  as dealer {dealer} mbb/hand, as big blind {blind} mbb/hand",
        f"  showdowns {result.shown_down:.1%} of hands; {result.a} folds {result.folded[0]:.1%} "
        f"(as dealer {a_dealer:.1%}, as big blind {a_blind:.1%}), {result.b} {result.folded[1]:.1%} "
        f"(as dealer {b_dealer:.1%}, as big blind {b_blind:.1%})",
        "  the pairs do not vary at all"
        if reduction is None
        else f"  pairing is worth {reduction:.2f} times the hands of unpaired play",
        *format_faults(result),
    ]
    if result.seconds:
        lines.append(f"  {result.hands / result.seconds:,.0f} hands/s")
    return "\n".join(lines)


def _stop_text(result: MatchResult, until: float) -> str:
    low, high = result.anytime_interval
    reached = "narrower than" if high - low < until else "out of deals before it was narrower than"
    return (
        f"  anytime-valid 95 % interval {low:+.1f} to {high:+.1f} mbb/hand, {reached} {until:g}; "
        "the interval above is NOT valid, as the results decided when to stop"
    )


def format_faults(result: MatchResult) -> list[str]:
    """Lines on each player's forfeited hands by kind, its first faults with their positions, and what a bot's process did."""
    lines = []
    for name, faults in zip((result.a, result.b), result.faults, strict=True):
        if faults.total:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in faults.counts.items())
            lines.append(f"  FAULTS: {name} forfeited {faults.total:,} of {result.hands:,} hands: {kinds}")
            lines += [f"    {report}" for report in faults.reports]
        lines += [f"  {remark}" for remark in faults.remarks]
    return lines
