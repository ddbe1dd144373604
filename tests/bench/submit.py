"""Five hundred results a second to one pool, for a minute, sent to the real API handler over a model of DynamoDB.

Three questions: does the table bear it when nothing else holds it back (limits raised); what do clubs meet with the
limits as they are shipped; and what, when everybody who was refused comes back in one moment. See ``crowd`` and
``dynamo`` for what is real and what is a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from local import template
from tests.bench import dynamo, limits, pools
from tests.bench.crowd import Crowd, crowd
from tests.bench.table import Line

RATE = 500
UNLIMITED = 0
NAMED = 6
"""So many of the hottest keys are named."""


def shipped() -> tuple[int, int]:
    """Requests a minute of one key, and to one pool, as the template sets them."""
    parameters = template.read()["Parameters"]
    return parameters["KeyRequestsPerMinute"]["Default"], parameters["PoolRequestsPerMinute"]["Default"]


def _hottest(keys: list[tuple[str, float]]) -> str:
    return ", ".join(f"{key} {units:,.0f}" for key, units in keys[:NAMED])


def _stored(name: str, run: Crowd, count: int) -> list[Line]:
    """Every result is in the ledger exactly once, and rated; every refusal was honest."""
    came, ledger = run.came, run.ledger()
    once = len(ledger) == len(set(ledger)) == len(came.accepted) == count
    other = sum(number for status, number in came.answers.items() if status not in (200, 201, 429, 503))
    return [
        Line(f"{name}: in the ledger", len(set(ledger)), "results", "sent", count, "all, each once", once),
        Line(f"{name}: rated", run.rated(), "results", "sent", count, "all", run.rated() == count),
        Line(f"{name}: answered otherwise than 201, 429, 503", other, "requests", budget="none", met=other == 0),
        Line(
            f"{name}: refused without Retry-After",
            came.without_retry_after,
            "requests",
            budget="none",
            met=came.without_retry_after == 0,
        ),
        Line(
            f"{name}: refused, and yet stored",
            came.refused_but_stored,
            "requests",
            budget="none",
            met=came.refused_but_stored == 0,
        ),
    ]


def _load(name: str, run: Crowd, sent: list[tuple[str, float]], throttled: int) -> list[Line]:
    """What it put on the keys. ``sent``: the hottest keys, and ``throttled`` refusals, while results came in."""
    table = run.table
    written, read = table.hottest_writes(), table.hottest_reads()

    def writes(what: str, hottest: list[tuple[str, float]], note: str) -> Line:
        units = hottest[0][1]
        met = units <= limits.KEY_WRITES
        note = f"{_hottest(hottest)}; {note}"
        return Line(f"{name}: {what}", units, "units/s", "limit", limits.KEY_WRITES, "at most the limit", met, note)

    waited = sum(table.throttled.values()) - throttled
    return [
        writes("write units a second, hottest key", written, f"the rater waited {waited} times"),
        writes("... of those that a submission writes", sent, f"refused by the table {throttled} times"),
        Line(
            f"{name}: read units a second, hottest key",
            read[0][1],
            "units/s",
            "limit",
            limits.KEY_READS,
            "limit and one page",
            read[0][1] < limits.KEY_READS + dynamo.PAGE_READS,
            _hottest(read),
        ),
        Line(
            f"{name}: write units in the busiest second",
            table.busiest(),
            "units/s",
            "default quota",
            limits.TABLE_WRITES,
            "below the quota",
            table.busiest() < limits.TABLE_WRITES,
        ),
    ]


SUBMITTED = ("INBOX#", "LEDGER#", "GAME#", "FP#", "LIMIT#", "KEY#", "PLAYER#", "IDEM#", "ATTENTION#")
"""What the partitions begin with that a submission writes to."""


def of_submissions(run: Crowd) -> tuple[list[tuple[str, float]], int]:
    """The hottest keys that submissions write, and how often the table refused one of them."""
    hottest = [(key, units) for key, units in run.table.hottest_writes() if key.startswith(SUBMITTED)]
    refused = sum(number for key, number in run.table.throttled.items() if key.startswith(SUBMITTED))
    return hottest, refused


def raised(system: str, seconds: int) -> list[Line]:
    """Nothing but the table holds it back."""
    count = RATE * seconds
    name = f"{system}, limits raised, {seconds} s"
    with crowd(system, UNLIMITED, UNLIMITED) as run:
        took = _timed(lambda: run.run(run.results(count), RATE, again=False))
        behind = run.waiting()
        run.drain()
        lines = _stored(name, run, count) + _load(name, run, *of_submissions(run))
        lines += [
            Line(f"{name}: waiting when the last came in", behind, "results", note="the inbox holds them"),
            Line(f"{name}: all rated, after the first was sent", run.passed(), "s", "sending took", seconds),
            Line(
                f"{name}: slowest request",
                run.came.slowest / dynamo.SECOND,
                "s",
                note=f"{run.started} processes at once; {took / count * 1000:.2f} ms of CPU here for each request",
            ),
        ]
    return lines


def as_shipped(system: str, seconds: int) -> list[Line]:
    """The limits of the template; clubs send again what was refused when Retry-After is over, until all is in.

    Rated is when all is in: what comes a minute late is a replay each time, and that is measured elsewhere.
    """
    count = RATE * seconds
    name = f"{system}, limits as shipped, {seconds} s"
    per_key, per_pool = shipped()
    with crowd(system, per_key, per_pool) as run:
        run.run(run.results(count), RATE, again=True, rater=False)
        run.drain()
        first, came = run.came.first, run.came
        lines = [
            Line(f"{name}: stored at once", first[201], "results", "sent", count),
            Line(f"{name}: first answered 429, Retry-After", first[429], "results", "sent", count),
            Line(f"{name}: first answered 503, Retry-After", first[503], "results", "sent", count),
            Line(f"{name}: all stored, after the first was sent", came.last_accepted / dynamo.SECOND, "s"),
            Line(f"{name}: requests until then", sum(came.answers.values()), "requests", "sent", count),
        ]
        return lines + _stored(name, run, count) + _load(name, run, *of_submissions(run))


def herd(system: str, waiting: int) -> list[Line]:
    """So many results within one second, as from clients that waited for the same minute; 503 is sent again."""
    name = f"{system}, {waiting:,} at once"
    with crowd(system, UNLIMITED, UNLIMITED) as run:
        run.run(run.results(waiting), waiting, again=True, rater=False)
        run.drain()
        lines = [Line(f"{name}: first answered 503, Retry-After", run.came.first[503], "results", "sent", waiting)]
        return lines + _stored(name, run, waiting) + _load(name, run, *of_submissions(run))


def _timed(run: Callable[[], None]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def measure(scale: float) -> list[Line]:
    """The lines of the table: the whole minute for one system (but ``--small``), some seconds for the others, and for
    the limits as shipped (but ``--full``), where most results are sent several times."""
    minute = 60 if scale >= 0.2 else 6
    shipped = 60 if scale >= 1 else 10
    lines = raised("spades", minute)
    for system in sorted(set(pools.WIDTH) - {"spades"}):
        lines += raised(system, 6)
    return lines + as_shipped("spades", shipped) + herd("spades", 3000)
