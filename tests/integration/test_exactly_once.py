"""Sent twice, at once, in parallel, throttled, announced three times or never: it has happened exactly once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from functions.rater import app as rater
from local.inprocess import stream_event
from shared.problems import Problem
from shared.store import keys, ledger
from shared.store import table as table_module
from shared.store.table import Busy, Check, ConditionFailed, Delete, Put, Table, Update
from shared.usecases import access, bootstrap, games, merging, previews, rating, reading
from shared.usecases.drafts import GameDraft
from site_builder import publisher
from tests.integration.api_fixture import ADMIN_KEY, Api
from tests.integration.ladder import DAY, HOUR, SECOND, Ladder, at, audit, duel, iso_of, small_steps, spades
from tests.integration.memory import MemoryBucket, MemoryTable
from tests.integration.test_publisher_random import with_site


def at_once(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each answers, or the exception it raises; all are let go at the same moment."""
    answers: list[Any] = [None] * len(actions)
    barrier = threading.Barrier(len(actions))

    def run(number: int) -> None:
        barrier.wait()
        try:
            answers[number] = actions[number]()
        except Exception as error:  # handed to the test
            answers[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def send(ladder: Ladder, draft: GameDraft, key: str | None = None, body: str = "") -> Any:
    """Submit without moving the clock."""
    pool = ladder.pool()
    return games.submit(ladder.ctx, pool, "bern", draft, idempotency_key=key, body_digest=body or repr(draft))


def status(answer: Any) -> Any:
    """Its status; of a refusal its code."""
    return answer.code if isinstance(answer, Problem) else answer.status


GAME = spades("x", "ac-bd", "2026-08-10 20:00", minutes=40)


# -- the same request ------------------------------------------------------------------------------------------------
def test_the_same_submission_three_times_at_once(real: Ladder) -> None:
    for number in range(4):
        draft = spades(f"x{number}", "ac-bd", at("2026-08-10 20:00") + number * HOUR)
        answers = at_once([lambda draft=draft: send(real, draft)] * 3)
        assert sorted(map(status, answers)) == [200, 200, 201], answers
    real.rate()
    assert audit(real).events == 5  # the pool's rules and four games


def test_three_times_at_once_under_one_key(real: Ladder) -> None:
    draft = replace(GAME, game_id=None)
    answers = at_once([lambda: send(real, draft, "k")] * 3)
    assert set(map(status, answers)) <= {201, "still-running"}
    assert 201 in map(status, answers)
    again = send(real, draft, "k")
    assert again.status == 201
    assert {a.body["game_id"] for a in [*answers, again] if not isinstance(a, Problem)} == {again.body["game_id"]}
    real.rate()
    assert audit(real).events == 2


def test_a_key_gives_the_same_answer_again_and_takes_no_other_body(memory: Ladder) -> None:
    draft = replace(GAME, game_id=None)
    first = send(memory, draft, "k", "body")
    memory.rate()
    assert send(memory, draft, "k", "body") == first
    with pytest.raises(Problem) as refused:
        send(memory, replace(draft, round=2), "k", "other")
    assert (refused.value.status, refused.value.errors[0].field) == (422, "Idempotency-Key")
    assert send(memory, draft, "another", "body").status == 201, "another key is another request"
    memory.rate()
    assert audit(memory).events == 3


def test_a_key_is_free_again_when_nothing_was_stored(memory: Ladder) -> None:
    send(memory, replace(GAME, distinct=False))
    for _ in range(2):
        with pytest.raises(Problem) as refused:
            send(memory, replace(GAME, game_id="y", distinct=False), "k", "one")
        assert refused.value.code == "possible-duplicate"
    assert send(memory, replace(GAME, game_id="y", distinct=True), "k", "two").status == 201


def test_a_late_first_request_does_not_store_a_second_game(memory: Ladder) -> None:
    """It slept longer than it may, its mark was taken over, and then it goes on."""
    draft = replace(GAME, game_id=None)

    def overtaken(name: str, arguments: Mapping[str, Any]) -> None:
        if name == "transact_write_items":
            memory.calls.before = None
            memory.now += 60 * SECOND
            assert send(memory, draft, "k", "body").status == 201

    memory.calls.before = overtaken
    assert send(memory, draft, "k", "body").status == 200
    memory.rate()
    assert audit(memory).events == 2


# -- many at once ----------------------------------------------------------------------------------------------------
def test_fifty_parallel_submissions_that_share_players(real: Ladder) -> None:
    teams = ["ac-bd", "ab-cd", "ef-gh", "ae-bf", "cg-dh"]
    drafts = [
        spades(f"g{n}", teams[n % 5], at("2026-08-01 12:00") + (n * 7 % 50) * HOUR, "draw", minutes=n % 3 * 45)
        for n in range(50)
    ]
    stop = threading.Event()

    def rate() -> int:
        done = 0
        while not stop.is_set():
            done += rating.apply(real.ctx, "p").events
        return done

    answers: list[Any] = []

    def submit(part: int) -> None:
        for draft in drafts[part::10]:
            answers.append(send(real, draft))

    def submit_all() -> None:
        try:
            results = at_once([lambda part=part: submit(part) for part in range(10)])
            assert results == [None] * 10, results
        finally:
            stop.set()

    with small_steps():
        outcome = at_once([submit_all, rate, rate])
        assert outcome[0] is None, outcome
        assert not [o for o in outcome if isinstance(o, Exception)], outcome
        real.rate()
    assert [a.status for a in answers] == [201] * 50
    expected = audit(real)
    assert real.cursor().games == 50
    assert expected.events == 51


def test_two_raters_in_parallel_replay_the_same_pool(real: Ladder) -> None:
    with small_steps(IN_PLACE=5, WATCH_SECONDS=0.3):
        for number in range(12):
            send(real, spades(f"g{number}", "ac-bd", at("2026-08-01 12:00") + number * DAY))
        real.rate()
        for number in range(3):
            send(real, spades(f"late{number}", "ef-gh", at("2026-07-30 12:00") + number * HOUR))
        applied = at_once([lambda: rating.apply(real.ctx, "p")] * 2)
        assert not [a for a in applied if isinstance(a, Exception)], applied
        real.rate()
    audit(real)
    assert real.cursor().games == 15


def test_a_replay_that_is_alive_is_left_alone(memory: Ladder) -> None:
    """A second run watches it write, and goes; a dead one it takes over."""
    with small_steps(IN_PLACE=5, TRANSACTION_ITEMS=6):
        for number in range(6):
            send(memory, spades(f"g{number}", "ac-bd", at("2026-08-01 12:00") + number * DAY))
        memory.rate()
        send(memory, spades("late", "ef-gh", "2026-07-30 12:00"))
        seen: list[rating.Applied] = []
        writes = 0

        def watch(name: str, arguments: Mapping[str, Any]) -> None:
            nonlocal writes
            writes += name == "transact_write_items"
            if writes == 4 and not seen:
                memory.calls.after = None
                with mock.patch.object(rating.time, "sleep", progress):
                    seen.append(rating.apply(memory.ctx, "p"))
                memory.calls.after = watch

        def progress(_: float) -> None:
            """While the second run sleeps, the first writes on."""
            pk, sk = "POOL#p", "REPLAY"
            there = memory.ctx.table.get(pk, sk)
            assert there is not None
            memory.ctx.table.write(Put({**there, "done": there["done"] + 1}))

        memory.calls.after = watch
        applied = memory.rate()
        memory.calls.after = None
        assert [(a.left, a.events) for a in seen] == [(True, 0)]
        assert (applied.events, applied.replays) == (1, 1), "the first was not overtaken"
        audit(memory)


# -- possible duplicates ---------------------------------------------------------------------------------------------
def test_a_possible_duplicate_names_the_first(memory: Ladder) -> None:
    plain = replace(GAME, distinct=False)
    assert send(memory, plain).status == 201
    with pytest.raises(Problem) as refused:
        send(memory, replace(plain, game_id="y"))
    assert (refused.value.status, refused.value.code) == (409, "possible-duplicate")
    assert refused.value.extra["existing"] == {"club": "bern", "game_id": "x"}
    for other in (replace(plain, round=2), replace(plain, started_at=at("2026-08-10 19:30"))):
        assert send(memory, replace(other, game_id=f"z{other.round}{other.started_at}")).status == 201
    assert send(memory, replace(plain, game_id="y", distinct=True)).status == 201
    memory.void("x")
    memory.rate()
    audit(memory)
    assert memory.cursor().games == 3


def test_a_void_game_guards_nothing_and_a_corrected_one_its_new_content(memory: Ladder) -> None:
    plain = replace(GAME, distinct=False)
    send(memory, plain)
    memory.correct("x", round=7)
    assert send(memory, replace(plain, game_id="y")).status == 201
    with pytest.raises(Problem) as refused:
        send(memory, replace(plain, game_id="z", round=7))
    assert refused.value.extra["existing"]["game_id"] == "x"
    memory.void("y")
    assert send(memory, replace(plain, game_id="v")).status == 201


@pytest.mark.parametrize("distinct", [False, True])
def test_a_race_of_two_ids_for_one_game(real: Ladder, distinct: bool) -> None:
    drafts = [replace(GAME, game_id=name, distinct=distinct) for name in ("one", "two")]
    answers = at_once([lambda draft=draft: send(real, draft) for draft in drafts])
    wanted = [201, 201] if distinct else [201, "possible-duplicate"]
    assert sorted(map(status, answers), key=str) == wanted
    real.rate()
    audit(real)
    assert real.cursor().games == (2 if distinct else 1)


# -- announced or not ------------------------------------------------------------------------------------------------
@contextmanager
def awake(ladder: Ladder) -> Iterator[list[tuple[str, str]]]:
    """The rater's function over a ladder; the failures it reports."""
    failures: list[tuple[str, str]] = []
    ctx = replace(ladder.ctx, report_failure=lambda pool, reason: failures.append((pool, reason)))
    with (
        mock.patch.object(bootstrap, "context", return_value=ctx),
        mock.patch.object(rater, "context", return_value=ctx),
        mock.patch.dict(os.environ, POWERTOOLS_METRICS_DISABLED="true"),
    ):
        yield failures


def wake(*partitions: str) -> None:
    """The stream announces inserts in these partitions."""
    rater.handler(stream_event(partitions), mock.Mock(function_name="rater"))


def test_a_record_delivered_three_times(memory: Ladder) -> None:
    with awake(memory) as failures:
        send(memory, GAME)
        for _ in range(3):
            wake(keys.inbox("p", 0), keys.inbox("p", 3), keys.inbox("p", 0))
    assert failures == []
    assert memory.cursor().position == 2
    audit(memory)


def test_an_entry_that_is_never_announced_is_found_by_the_sweep(memory: Ladder) -> None:
    send(memory, GAME)
    assert ledger.pending(memory.ctx.table, "p") == 1
    with awake(memory) as failures:
        rater.handler({"task": "sweep"}, mock.Mock(function_name="rater"))
    assert failures == []
    audit(memory)
    assert memory.cursor().games == 1


# -- the table refuses -----------------------------------------------------------------------------------------------
class Refusing:
    """A client that refuses the first calls of an operation."""

    def __init__(self, client: Any, operation: str, errors: Sequence[Exception]) -> None:
        self.client, self.operation, self.errors = client, operation, list(errors)
        self.calls: list[Mapping[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if name != self.operation:
            return method

        def call(**arguments: Any) -> Any:
            self.calls.append(arguments)
            if self.errors:
                error = self.errors.pop(0)
                if isinstance(error, ReadTimeoutError):
                    method(**arguments)  # it has happened; only the answer got lost
                raise error
            return method(**arguments)

        return call


def cancelled(*codes: str) -> ClientError:
    reasons = [{"Code": code} for code in codes]
    answer: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    return ClientError(answer, "TransactWriteItems")


def failing(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "TransactWriteItems")  # type: ignore[typeddict-item]


@pytest.fixture
def impatient() -> Iterator[list[int]]:
    """Nobody sleeps between tries."""
    slept: list[int] = []
    with mock.patch.object(table_module, "_pause", slept.append):
        yield slept


def one(name: str) -> Put:
    return Put({"pk": name, "sk": "a"}, "attribute_not_exists(pk)")


@pytest.mark.parametrize(
    "error",
    [cancelled("None", "TransactionConflict"), cancelled("ThrottlingError", "None"), failing("ThrottlingException")],
    ids=["conflict", "throttled item", "throttled call"],
)
def test_conflicts_and_throttling_are_tried_again(error: ClientError, impatient: list[int]) -> None:
    client = Refusing(MemoryTable(), "transact_write_items", [error] * 3)
    table = Table(client, "t")  # type: ignore[arg-type]
    table.transact([one("1"), one("2")])
    assert table.get("1", "a") is not None
    assert len(impatient) == 3
    stubborn = Table(Refusing(MemoryTable(), "transact_write_items", [error] * 1000), "t")  # type: ignore[arg-type]
    with pytest.raises(Busy):
        stubborn.transact([one("1"), one("2")])
    assert stubborn.get("1", "a") is None


def test_work_that_nobody_waits_for_is_tried_for_longer(impatient: list[int]) -> None:
    """A key that has taken all that it takes in a second is free again in the next."""
    error = cancelled("ThrottlingError", "None")
    client = Refusing(MemoryTable(), "transact_write_items", [error] * (table_module.PATIENT_ATTEMPTS - 1))
    table = Table(client, "t").patient()  # type: ignore[arg-type]
    table.transact([one("1"), one("2")])
    assert table.get("1", "a") is not None
    assert len(impatient) == table_module.PATIENT_ATTEMPTS - 1
    stubborn = Table(Refusing(MemoryTable(), "transact_write_items", [error] * 1000), "t")  # type: ignore[arg-type]
    with pytest.raises(Busy):
        stubborn.patient().transact([one("3"), one("4")])


@pytest.mark.parametrize("code", ["TransactionConflictException", "ThrottlingException"])
def test_a_plain_write_that_meets_a_transaction_is_tried_again(code: str, impatient: list[int]) -> None:
    """No emulator says so: DynamoDB refuses a write of an item that somebody else's transaction is about to write."""
    put = one("1")
    change = Update(("1", "a"), "SET #x = :x", {"x": 1})
    writes = {"put_item": put, "update_item": change, "delete_item": Delete(("1", "a"))}
    memory_table = MemoryTable()
    for name, operation in writes.items():
        client = Refusing(memory_table, name, [failing(code)] * 3)
        Table(client, "t").write(operation)  # type: ignore[arg-type]
        with pytest.raises(Busy):
            Table(Refusing(memory_table, name, [failing(code)] * 1000), "t").write(operation)  # type: ignore[arg-type]
    assert len(impatient) == 3 * (3 + table_module.ATTEMPTS)


def test_a_lost_answer_is_asked_for_again_under_the_same_token(impatient: list[int]) -> None:
    """DynamoDB answers a repeated token as it did the first time; another try after a refusal has another token."""
    lost = ReadTimeoutError(endpoint_url="")
    client = Refusing(
        MemoryTable(), "transact_write_items", [cancelled("TransactionConflict"), failing("InternalServerError")]
    )
    Table(client, "t").transact([one("1"), one("2")])  # type: ignore[arg-type]
    tokens = [call["ClientRequestToken"] for call in client.calls]
    assert tokens[0] != tokens[1] == tokens[2]
    client = Refusing(MemoryTable(), "transact_write_items", [lost])
    with pytest.raises(ConditionFailed):  # the memory knows no tokens: at worst the caller looks and finds his own work
        Table(client, "t").transact([one("1"), one("2")])  # type: ignore[arg-type]


def test_a_failed_condition_beats_a_conflict() -> None:
    client = Refusing(
        MemoryTable(), "transact_write_items", [cancelled("ConditionalCheckFailed", "TransactionConflict")]
    )
    with pytest.raises(ConditionFailed) as failed:
        Table(client, "t").transact([one("1"), Check(("x", "y"), "attribute_exists(pk)")])  # type: ignore[arg-type]
    assert failed.value.failed == (0,)


def test_the_rater_whose_answer_got_lost_counts_nothing_twice(memory: Ladder, impatient: list[int]) -> None:
    send(memory, GAME)
    client: Any = memory.ctx.table.client
    memory.ctx.table.client = Refusing(client, "transact_write_items", [ReadTimeoutError(endpoint_url="")])  # type: ignore[assignment]
    memory.rate()
    memory.ctx.table.client = client
    audit(memory)
    assert memory.cursor().position == 2


@contextmanager
def http(ladder: Ladder) -> Iterator[Api]:
    """The API's function over a ladder."""
    access.install_admin_key(ladder.ctx.table, ADMIN_KEY)
    with mock.patch.object(bootstrap, "context", return_value=ladder.ctx):
        yield Api(ladder.ctx)


def body(game_id: str, *, start: int = at("2026-08-10 19:00")) -> dict[str, Any]:
    return {
        "game_id": game_id,
        "started_at": iso_of(start),
        "finished_at": iso_of(start + HOUR),
        "result": {"teams": [["a", "c"], ["b", "d"]], "outcome": "team1"},
    }


def test_throttling_answers_503_and_nothing_is_stored(memory: Ladder, impatient: list[int]) -> None:
    with http(memory) as api:
        assert api.admin("GET", "/v1/clubs/bern/keys").status == 404  # the key is used, the day noted
        before = memory.items()
        client: Any = memory.ctx.table.client
        throttled = [failing("ProvisionedThroughputExceededException")] * 1000
        memory.ctx.table.client = Refusing(client, "transact_write_items", throttled)  # type: ignore[assignment]
        headers = {"Idempotency-Key": "k"}
        reply = api.admin("POST", "/v1/pools/p/games", body("x"), headers=headers)
        assert (reply.status, reply.body["code"], reply.headers["Retry-After"]) == (503, "busy", "2")
        memory.ctx.table.client = client
        assert memory.items() == before
        assert api.admin("POST", "/v1/pools/p/games", body("x"), headers=headers).status == 201


# -- round trips -----------------------------------------------------------------------------------------------------
def test_a_submission_takes_four_round_trips(memory: Ladder) -> None:
    with http(memory) as api:
        api.admin("POST", "/v1/pools/p/games", body("w", start=at("2026-08-09 19:00")))
        new = {**body("r"), "register": [{"id": "n", "name": "Nora"}, {"id": "m", "name": "Mia"}]}
        new["result"] = {"teams": [["a", "n"], ["m", "d"]], "outcome": "draw"}
        requests: list[tuple[dict[str, Any], dict[str, str], list[str]]] = [
            (body("x"), {}, ["batch_get_item", "batch_get_item", "transact_write_items"]),
            (new, {}, ["batch_get_item", "batch_get_item", "transact_write_items"]),
            (
                body("y", start=at("2026-08-11 19:00")),
                {"Idempotency-Key": "k"},
                ["batch_get_item", "batch_get_item", "put_item", "transact_write_items"],
            ),
        ]
        for sent, headers, calls in requests:
            memory.calls.log.clear()
            reply = api.admin("POST", "/v1/pools/p/games", sent, headers=headers)
            assert reply.status == 201, reply.text
            assert memory.calls.log == calls


def test_rating_a_game_takes_as_many_round_trips_in_a_large_pool(memory: Ladder) -> None:
    """Cursor and pool; the inbox's shards; all that concerns the players; one transaction; the publisher's wake-up."""
    wanted = ["batch_get_item", *["query"] * 4, "batch_get_item", "transact_write_items", "update_item"]
    for number in range(40):
        send(memory, spades(f"g{number}", "ac-bd" if number % 2 else "ef-gh", at("2026-08-01 12:00") + number * HOUR))
        memory.calls.log.clear()
        memory.rate()
        assert memory.calls.log == wanted
    memory.calls.log.clear()
    memory.rate()
    assert memory.calls.log == ["batch_get_item", *["query"] * 4], "nothing to do"


def test_a_game_that_overlaps_others_reads_a_little_more_however_long_the_history(memory: Ladder) -> None:
    end = at("2026-08-01 12:00")
    for number in range(60):
        send(memory, spades(f"g{number}", "ac-bd", end + number * HOUR))
        memory.rate()
    send(memory, spades("long", "ac-bd", end + 60 * HOUR, minutes=60 * 3))
    memory.calls.log.clear()
    memory.rate()
    assert memory.calls.reads() <= 6 + 2 * 4, "for each player his last changes and their rows"
    audit(memory)


# -- previews --------------------------------------------------------------------------------------------------------
def token_of(ladder: Ladder, draft: GameDraft) -> str:
    told = games.submit(ladder.ctx, ladder.pool(), "bern", draft, idempotency_key=None, body_digest="", preview=True)
    return str(told.body["preview_token"])


def test_a_preview_equals_what_then_happens(memory: Ladder) -> None:
    for number in range(5):
        send(memory, spades(f"g{number}", "ac-bd", at("2026-08-01 12:00") + number * DAY))
    late = spades("late", "ab-ef", "2026-08-02 18:00")
    before = memory.items()
    told = games.submit(memory.ctx, memory.pool(), "bern", late, idempotency_key=None, body_digest="", preview=True)
    effects = told.body["effects"]
    assert {k for k in memory.items() if k[0].startswith(("GAME#", "LEDGER#"))} == {
        k for k in before if k[0].startswith(("GAME#", "LEDGER#"))
    }
    assert effects["games_rerated"] == 3
    old = memory.points()
    memory.submit(late, preview_token=told.body["preview_token"])
    memory.rate()
    new = memory.points()
    assert {row["player"] for row in effects["players"]} == {h for h in new if new[h] != old.get(h)}
    assert "c" not in {row["player"] for row in effects["players"]}, "his team's lead is as it was"
    for row in effects["players"]:
        assert round(row["after"]["rating"], 2) == new[row["player"]]
        assert (row["before"] is None) == (row["player"] not in old)
    by_rating = sorted(new.values(), reverse=True)
    assert {row["player"]: row["place_after"] for row in effects["players"]} == {
        row["player"]: 1 + by_rating.index(new[row["player"]]) for row in effects["players"]
    }


@pytest.mark.parametrize("system", ["spades", "bridier"])
def test_the_places_of_a_preview_are_those_of_the_list(system: str) -> None:
    """Who has too few games, or is new and listed apart, has no place and takes none."""
    ladder, bucket = Ladder.in_memory(), MemoryBucket()
    ladder.now = at("2026-08-20 12:00")
    with_site(ladder, bucket)
    more = {"minimum_games": 2} if system == "spades" else {"new_above_index": 480}
    ladder.open_pool(system=system, rules=[{"from": "2026-01-01", **more}])
    ladder.register(*"abcdefgh")
    if system == "spades":
        drafts = [
            spades(f"g{n}", t, at("2026-08-01 12:00") + n * DAY) for n, t in enumerate(["ac-bd", "ab-ef", "gh-cd"])
        ]
        new = spades("new", "ab-gh", "2026-08-10 12:00")
    else:
        pairs = ["ab", "ab", "cb", "da", "ef", "ab", "cd", "cd"]
        drafts = [duel(f"g{n}", *pair, at("2026-08-01 12:00") + n * DAY) for n, pair in enumerate(pairs)]
        new = duel("new", "e", "c", "2026-08-10 12:00")

    def published() -> dict[str, int | None]:
        publisher.publish(ladder.ctx, "p")
        return {
            h: reading.player_in_pool(ladder.ctx, ladder.pool(), h, None)["place"] for h in sorted(ladder.ratings())
        }

    for draft in drafts:
        send(ladder, draft)
    ladder.rate()
    before = published()
    assert None in before.values()
    body = games.submit(ladder.ctx, ladder.pool(), "bern", new, idempotency_key=None, body_digest="", preview=True)
    send(ladder, new)
    ladder.rate()
    after = published()
    rows = body.body["effects"]["players"]
    assert {r["player"]: (r["place_before"], r["place_after"]) for r in rows} == {
        r["player"]: (before[r["player"]], after[r["player"]]) for r in rows
    }
    assert {before[r["player"]] is None for r in rows} == {True, False}


def test_a_token_is_void_once_anything_happened(memory: Ladder) -> None:
    send(memory, GAME)
    draft = spades("y", "ef-gh", "2026-08-12 20:00")
    for happens in ("waiting", "rated", "closing", "another commit"):
        token = token_of(memory, draft)
        if happens == "another commit":
            memory.submit(spades("z", "ab-cd", "2026-08-12 21:00"), preview_token=token)
        elif happens == "closing":
            memory.now = at("2026-09-02 12:00")
        else:
            send(memory, spades(happens, "ab-ef", "2026-08-13 20:00"))
        if happens == "rated":
            memory.rate()
        with pytest.raises(Problem) as refused:
            memory.submit(draft, preview_token=token)
        assert (refused.value.status, refused.value.code) == (409, "pool-moved"), happens
    memory.submit(draft, preview_token=token_of(memory, draft))
    memory.rate()
    audit(memory)


def in_the_same_instant(ladder: Ladder, happens: Callable[[], Any]) -> None:
    """Something happens after the next commit has looked whether the pool moved, and before it is stored."""

    def hook(name: str, _: Mapping[str, Any]) -> None:
        if name == "transact_write_items":
            ladder.calls.before = None
            happens()

    ladder.calls.before = hook


def ratings_after_each_write(memory: Ladder) -> list[dict[str, float]]:
    """Rate what waits, and what everybody had after each transaction on the way."""
    states: list[dict[str, float]] = []

    def look(name: str, _: Mapping[str, Any]) -> None:
        if name == "transact_write_items":
            memory.calls.after = None
            states.append(memory.points())
            memory.calls.after = look

    memory.calls.after = look
    memory.rate()
    memory.calls.after = None
    audit(memory)
    return states


@pytest.mark.parametrize("rated", [False, True], ids=["stored", "stored and rated"])
@pytest.mark.parametrize("limits", [{}, {"IN_PLACE": 5}], ids=["in-place", "new-generation"])
def test_what_is_stored_in_the_instant_of_a_commit_is_rated_after_it(
    memory: Ladder, limits: dict[str, int], rated: bool
) -> None:
    """Or, where the rater was that fast, the commit is refused. It never becomes something that was not previewed."""
    with small_steps(**limits):
        for number in range(5):
            send(memory, spades(f"g{number}", "ac-bd", at("2026-08-01 12:00") + number * DAY))
        late = spades("late", "ab-ef", "2026-08-02 18:00")
        body = games.submit(memory.ctx, memory.pool(), "bern", late, idempotency_key=None, body_digest="", preview=True)
        effects, token = body.body["effects"], body.body["preview_token"]
        old = memory.points()

        def other() -> None:
            for number in range(3):
                send(memory, spades(f"other{number}", "ae-bc", at("2026-07-20 12:00") + number * HOUR))
            if rated:
                memory.rate()

        in_the_same_instant(memory, other)
        if rated:
            with pytest.raises(Problem) as refused:
                memory.submit(late, preview_token=token)
            assert refused.value.code == "pool-moved"
            memory.rate()
            audit(memory)
            return
        assert memory.submit(late, preview_token=token).status == 201
        states = ratings_after_each_write(memory)
        seen = [state for number, state in enumerate(states) if state not in ([old, *states])[: number + 1]]
        assert len(seen) == 2, "first what was previewed, then the rest"
        previewed = {row["player"]: round(row["after"]["rating"], 2) for row in effects["players"]}
        assert {player: points for player, points in seen[0].items() if points != old.get(player)} == previewed
        assert seen[1] == memory.points() != seen[0]


@pytest.mark.parametrize("happens", ["stored", "stored and rated", "a month turns"])
def test_a_merge_becomes_what_was_previewed_or_is_refused(memory: Ladder, happens: str) -> None:
    for number, teams in enumerate(["ac-bd", "gc-bd", "ef-gd"]):
        send(memory, spades(f"g{number}", teams, at("2026-08-01 12:00") + number * DAY))
    preview = merging.merge(memory.ctx, "g", "a", preview=True).body
    token = preview["preview_token"]

    def other() -> None:
        send(memory, spades("other", "ae-bc", "2026-07-20 12:00"))
        if happens == "stored and rated":
            memory.rate()

    if happens == "a month turns":
        memory.now = at("2026-09-02 12:00")
    else:
        in_the_same_instant(memory, other)
    if happens != "stored":
        with pytest.raises(Problem) as refused:
            merging.merge(memory.ctx, "g", "a", preview_token=token)
        assert refused.value.code == "pool-moved"
        memory.calls.before = None
        assert memory.ctx.table.get(keys.merges(), "sid-g") is None
        return
    assert merging.merge(memory.ctx, "g", "a", preview_token=token).status == 202
    states = ratings_after_each_write(memory)
    for row in preview["effects"]["players"]:
        assert states[0].get(row["player"]) == (None if row["after"] is None else round(row["after"]["rating"], 2))
    assert memory.points() == states[-1] != states[0]


def test_a_preview_during_which_the_pool_is_rated_looks_again(memory: Ladder) -> None:
    """Its token and its numbers are of one state."""
    for number in range(3):
        send(memory, spades(f"g{number}", "ac-bd", at("2026-08-01 12:00") + number * DAY))
    memory.rate()
    late = spades("late", "ab-ef", "2026-07-30 18:00")
    for number in range(1, 60):
        reads = 0

        def hook(name: str, _: Mapping[str, Any], number: int = number) -> None:
            nonlocal reads
            reads += 1
            if reads == number:
                memory.calls.before = None
                send(memory, spades(f"other{number}", "ae-bc", at("2026-08-06 12:00") + number * HOUR))
                memory.rate()

        memory.calls.before = hook
        told = games.submit(memory.ctx, memory.pool(), "bern", late, idempotency_key=None, body_digest="", preview=True)
        done, memory.calls.before = memory.calls.before is not None, None
        again = games.submit(
            memory.ctx, memory.pool(), "bern", late, idempotency_key=None, body_digest="", preview=True
        )
        if told.body["preview_token"] == again.body["preview_token"]:
            assert told == again, number
        if done:
            break
    assert 10 < number < 59


def test_two_commits_of_one_preview_at_once(real: Ladder) -> None:
    token = token_of(real, GAME)
    drafts = [spades(name, "ac-bd", "2026-08-10 20:00") for name in ("one", "two")]

    def commit(draft: GameDraft) -> Any:
        return games.submit(
            real.ctx, real.pool(), "bern", draft, idempotency_key=None, body_digest="", preview_token=token
        )

    answers = at_once([lambda draft=draft: commit(draft) for draft in drafts])
    assert sorted(map(status, answers), key=str) == [201, "pool-moved"]
    real.rate()
    audit(real)


@pytest.mark.parametrize("token", ["", "v", "3", "v-1", "vx", "v1.5", "v" + "9" * 40])
def test_a_text_that_is_no_token(memory: Ladder, token: str) -> None:
    with pytest.raises(Problem) as refused:
        previews.guard(memory.ctx, memory.pool(), token)
    assert (refused.value.status, refused.value.errors[0].field) == (422, "preview_token")


def test_the_first_commit_of_a_pool_that_was_never_rated() -> None:
    ladder = Ladder.in_memory()
    ladder.now = at("2026-08-20 12:00")
    ladder.open_pool(system="bridier")
    ladder.register("a", "b")
    ladder.ctx.table.batch_write(deletes=[key for key in ladder.items() if key[0].startswith("INBOX#")])
    ladder.submit(duel("x", "a", "b", "2026-08-10 20:00"), preview_token="v0")
    with pytest.raises(Problem) as refused:
        ladder.submit(duel("y", "a", "b", "2026-08-10 21:00"), preview_token="v0")
    assert refused.value.code == "pool-moved"
