"""From a club to 10 million players: the demo's traffic, × 1,000, and what comes after, replayed against the model.

For each size: which limit comes first, and how long what waits; then what answers it, and the same traffic again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.bench import traffic
from tests.bench.model import Outcome, Settings, Stage, costs, simulate
from tests.bench.table import Line
from tests.bench.table import number as told_figure

CALM = 0.9
"""Below so much of a limit nothing needs to be done."""
LONGEST_DELAY = 900
MOST_UPLOADS = 128
Answer = Callable[[Settings, Stage, float], tuple[Settings, Stage]]


def _set(**change: Callable[[Settings, float], float]) -> Answer:
    def apply(settings: Settings, stage: Stage, share: float) -> tuple[Settings, Stage]:
        return replace(settings, **{name: of(settings, share) for name, of in change.items()}), stage

    return apply


def _split(settings: Settings, stage: Stage, share: float) -> tuple[Settings, Stage]:
    """More pools, each with its part of the players."""
    parts = int(share / CALM) + 1
    recorded = stage.recorded // parts
    return settings, replace(
        stage, pools=stage.pools * parts, players=max(1, stage.players // parts), recorded=recorded
    )


def _publish_less(settings: Settings, stage: Stage, share: float) -> tuple[Settings, Stage]:
    """Gather longer, then upload more at once, then split."""
    if settings.publish_delay < LONGEST_DELAY:
        return replace(settings, publish_delay=LONGEST_DELAY), stage
    if settings.uploads < MOST_UPLOADS:
        return replace(settings, uploads=min(MOST_UPLOADS, int(settings.uploads * max(2, share)))), stage
    return _split(settings, stage, share)


ANSWERS: dict[str, Answer] = {
    "API gateway (ApiRateLimit)": _set(gateway=lambda s, share: round(s.gateway * share * 1.5)),
    "a pool's limit (PoolRequestsPerMinute)": _set(per_pool=lambda s, share: round(s.per_pool * share * 1.5)),
    "table's write units": _set(table_writes=lambda s, share: round(s.table_writes * share * 1.5)),
    "functions at once": _set(concurrency=lambda s, share: round(s.concurrency * share * 1.5)),
    "shards of the stream, wake-ups": _set(parallel=lambda s, share: min(10, int(s.parallel * share / CALM) + 1)),
    "publisher's time": _publish_less,
    "publishers at once": _set(publishers=lambda s, share: min(1_000, round(s.publishers * share * 1.5))),
    "partition of the inbox": _set(inbox_shards=lambda s, share: s.inbox_shards * 2),
    "key of a month's rated rows": _set(rated_shards=lambda s, share: s.rated_shards * 2),
    "replays of late results": _split,
    "one rater's time": _split,
    "key of one tournament's games": _split,
    "key of players' states": _split,
}
NAMES = {
    "gateway": "ApiRateLimit",
    "per_pool": "PoolRequestsPerMinute",
    "publish_delay": "PublishDelaySeconds",
    "uploads": "UPLOADS_AT_ONCE",
    "publishers": "MaximumConcurrency",
    "inbox_shards": "SHARDS",
    "rated_shards": "RATED_SHARDS",
    "table_writes": "the table's quota",
    "concurrency": "the account's concurrency",
    "parallel": "ParallelizationFactor",
}


def changed(before: tuple[Settings, Stage], after: tuple[Settings, Stage]) -> str:
    """What an answer sets."""
    if before[1] != after[1]:
        return f"{after[1].pools:,} pools"
    one, two = vars(before[0]), vars(after[0])
    return ", ".join(f"{NAMES[name]} {two[name]:,.0f}" for name in one if one[name] != two[name])


def stages() -> list[Stage]:
    """The sizes, smallest first."""
    ends = traffic.finishes()
    demo, thousand = traffic.per_second(ends, 1), traffic.per_second(ends, 1000)
    top = max(thousand)
    minute = [500.0] * 60
    return [
        Stage("a club: the demo's busiest hours", demo, 1, 42),
        Stage("a federation: the demo × 30", [30 * n for n in demo], 10, 400),
        Stage("the demo × 1,000, in 100 pools", thousand, 100, 1_000),
        Stage("the demo × 1,000, in one pool", thousand, 1, 42_000),
        Stage("one pool, 500/s for a minute", minute, 1, 10_000),
        Stage("10 million players, 1,000/s at most", [n * 1000 / top for n in thousand], 100, 100_000),
        Stage("... one result in 1,000 a week late", [n * 1000 / top for n in thousand], 100, 100_000, 0.001, 360_000),
        Stage("10 million players in ten pools", [n * 1000 / top for n in thousand], 10, 1_000_000),
    ]


def answered(stage: Stage) -> list[tuple[str, Stage, Settings, Outcome]]:
    """The stage as the template is shipped, and then after each answer, until nothing needs one or none is known."""
    settings, cost = Settings(), costs()
    found = [("as shipped", stage, settings, simulate(stage, settings, cost))]
    while True:
        outcome = found[-1][3]
        over = sorted((-share, name) for name, share in outcome.shares.items() if share > CALM)
        known = [(name, -share) for share, name in over if name in ANSWERS]
        if not known or len(found) > 12:
            return found
        name, share = known[0]
        before = settings, stage
        settings, stage = ANSWERS[name](settings, stage, share)
        if (settings, stage) == before:
            return found
        found.append((changed(before, (settings, stage)), stage, settings, simulate(stage, settings, cost)))


def told(outcome: Outcome) -> str:
    """The limits above a twentieth, and the waits."""
    top = sorted(((share, name) for name, share in outcome.shares.items()), reverse=True)[:4]
    return (
        ", ".join(f"{name} {share:.0%}" for share, name in top)
        + f"; longest until stored {outcome.stored_after} s, rated {outcome.rated_after} s, "
        + f"published {outcome.published_after} s; in one inbox {outcome.most_waiting:,}"
    )


def measure(scale: float) -> list[Line]:
    """The lines of the table. (``scale`` changes nothing: it is a model.)"""
    lines: list[Line] = []
    for stage in stages():
        steps = answered(stage)
        for number, (what, of, _, outcome) in enumerate(steps):
            last = number == len(steps) - 1
            lines.append(
                Line(
                    f"{stage.name}: {what if number == 0 else 'then ' + what}",
                    outcome.shares[outcome.first],
                    f"of limit at {told_figure(max(of.results))} results/s",
                    note=f"first: {outcome.first}. {told(outcome)}" + (f"; {of.pools} pools" if last else ""),
                    more={"pools": of.pools, "shares": outcome.shares},
                )
            )
    return lines
