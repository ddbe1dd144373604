"""The table's contract, the same over the memory that most tests use, over moto and over MiniStack."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from local.inprocess import System
from shared.ledger.events import Event, event_id
from shared.store import keys, ledger
from shared.store.bucket import Bucket
from shared.store.table import ABSENT, PRESENT, Busy, Check, ConditionFailed, Delete, Put, Table, Update
from tests.integration.ladder import Ladder


@pytest.fixture(params=["memory", "moto", "ministack"])
def ladder(request: pytest.FixtureRequest) -> Ladder:
    """One after the other."""
    if request.param == "memory":
        return Ladder.in_memory(page=2000)
    system: System = request.getfixturevalue("system" if request.param == "moto" else "emulated_system")
    return Ladder.of(system)


@pytest.fixture
def table(ladder: Ladder) -> Table:
    return ladder.ctx.table


@pytest.fixture
def bucket(ladder: Ladder) -> Bucket:
    return ladder.ctx.data


def put(table: Table, pk: str, sk: str, **more: Any) -> None:
    table.write(Put({"pk": pk, "sk": sk, **more}))


def test_what_is_put_comes_back(table: Table) -> None:
    item = {
        "pk": "a",
        "sk": "b",
        "text": "ä <script> 🂡",
        "empty": "",
        "number": 2**60,
        "negative": -(2**56),
        "flag": True,
        "nothing": None,
        "list": [1, "x", [None, {"deep": -3}]],
        "map": {"k": {"n": 0}},
    }
    table.write(Put(item))
    assert table.get("a", "b") == item
    assert table.get("a", "c") is None
    with pytest.raises(TypeError):
        put(table, "a", "f", price=0.1)


def test_conditions_tell_what_is_there(table: Table) -> None:
    table.write(Put({"pk": "a", "sk": "b", "n": 1}, ABSENT))
    with pytest.raises(ConditionFailed) as failed:
        table.write(Put({"pk": "a", "sk": "b", "n": 2}, ABSENT))
    assert (failed.value.failed, failed.value.items) == ((0,), {0: {"pk": "a", "sk": "b", "n": 1}})
    table.write(Put({"pk": "a", "sk": "b", "n": 2}, "#n = :known OR #n = :other", {"known": 1, "other": 7}))
    with pytest.raises(ConditionFailed):
        table.write(Delete(("a", "b"), "#n < :least AND attribute_exists(pk)", {"least": 2}))
    table.write(
        Delete(("a", "b"), "(#n >= :least AND attribute_not_exists(#gone)) OR #n = :other", {"least": 2, "other": 9})
    )
    assert table.get("a", "b") is None
    table.write(Delete(("a", "b")))
    with pytest.raises(ConditionFailed) as gone:
        table.write(Update(("a", "b"), "SET #n = :n", {"n": 1}, PRESENT))
    assert gone.value.items == {}


def test_updates(table: Table) -> None:
    table.write(Update(("a", "b"), "SET #x = :x, #y = :y ADD #count :one", {"x": 1, "y": "z", "one": 1}))
    table.write(
        Update(("a", "b"), "SET #n0 = :v REMOVE #x ADD #count :two", {"v": "5", "two": 2}, names={"#n0": "ban:a:b-c"})
    )
    assert table.get("a", "b") == {"pk": "a", "sk": "b", "y": "z", "count": 3, "ban:a:b-c": "5"}
    table.write(Update(("a", "s"), "ADD #months :months", {"months": {"2026-01"}}))
    table.write(Update(("a", "s"), "ADD #months :months", {"months": {"2026-02", "2026-01"}}))
    assert table.get("a", "s") == {"pk": "a", "sk": "s", "months": {"2026-01", "2026-02"}}


def test_a_transaction_is_whole_or_nothing(table: Table) -> None:
    put(table, "a", "1", n=1)
    with pytest.raises(ConditionFailed) as failed:
        table.transact(
            [
                Put({"pk": "a", "sk": "2"}, ABSENT),
                Put({"pk": "a", "sk": "1", "n": 5}, "#n = :known", {"known": 9}),
                Check(("a", "3"), PRESENT),
                Delete(("a", "1")),
            ][:3]
        )
    assert failed.value.failed == (1, 2)
    assert failed.value.items == {1: {"pk": "a", "sk": "1", "n": 1}}
    assert table.get("a", "2") is None
    table.transact(
        [Put({"pk": "a", "sk": "2"}, ABSENT), Check(("a", "1"), PRESENT), Update(("a", "3"), "SET #n = :n", {"n": 3})]
    )
    assert {item["sk"] for item in table.query("a")} == {"1", "2", "3"}
    table.transact([Put({"pk": "b", "sk": f"{n:03d}"}) for n in range(100)])
    assert table.count("b") == 100


def test_queries_read_every_page(table: Table) -> None:
    table.batch_write(puts=[{"pk": "a", "sk": f"{n:03d}", "text": "x" * 300} for n in range(60)])
    every = [f"{n:03d}" for n in range(60)]

    def found(**how: Any) -> list[str]:
        return [item["sk"] for item in table.query("a", **how)]

    assert found() == every
    assert found(forward=False) == every[::-1]
    assert found(begins="02") == every[20:30]
    assert found(first="010", last="019") == every[10:20]
    assert found(first="055") == every[55:]
    assert found(last="004") == every[:5]
    assert found(last="004", forward=False, limit=2) == ["004", "003"]
    assert found(last="004", forward=False, limit=2, after="003") == ["002", "001"]
    assert found(after="057") == ["058", "059"]
    assert found(limit=7) == every[:7]
    assert found(first="100") == []
    assert table.count("a") == 60
    assert table.count("none") == 0


def test_batches(table: Table) -> None:
    table.batch_write(puts=[{"pk": f"p{n % 7}", "sk": f"{n}", "n": n} for n in range(230)])
    wanted = [(f"p{n % 7}", f"{n}") for n in range(0, 260, 2)]
    found = table.batch_get([*wanted, *wanted])
    assert sorted(item["n"] for item in found.values()) == list(range(0, 230, 2))
    table.batch_write(deletes=wanted)
    assert table.batch_get(wanted) == {}
    assert sum(table.count(f"p{n}") for n in range(7)) == 115
    assert table.batch_get([]) == {}


def test_the_inbox_is_read_over_all_its_shards_and_the_ledger_keeps_everything(table: Table) -> None:
    events = []
    for number in range(30):
        event = Event(
            event_id(1_790_000_000_000_000 + number, f"{number:012d}"),
            "merge",
            1_790_000_000_000_000 + number,
            player=f"s{number}",
        )
        table.transact(ledger.append("p", event))
        events.append(event)
    assert {ledger.inbox_shard(e) for e in events} == set(range(keys.SHARDS))
    assert ledger.read_inbox(table, "p", 1000) == events
    assert ledger.read_inbox(table, "p", 7) == events[:7], "the oldest, whichever shard they are in"
    assert ledger.pending(table, "p") == 30
    with pytest.raises(ConditionFailed):
        table.transact(ledger.append("p", events[3]))
    table.transact([ledger.removal("p", e) for e in events[:10]])
    table.write(ledger.removal("p", events[0]))
    assert ledger.read_inbox(table, "p", 1000) == events[10:]
    assert sorted(ledger.read_month(table, "p", "2026-09"), key=lambda e: e.id) == events
    assert list(ledger.read_month(table, "p", "2026-10")) == []


def test_objects(bucket: Bucket) -> None:
    assert bucket.get("a/b") is None
    assert bucket.etag("a/b") is None
    bucket.put("a/b", b"one", "text/plain")
    bucket.put("a/b", b"two", "text/plain", "no-store")
    bucket.put("a/c", b"", "text/plain")
    assert bucket.get("a/b") == b"two"
    assert bucket.get("a/c") == b""
    assert bucket.etag("a/b") == dict(bucket.list("a/"))["a/b"]
    assert [key for key, _ in bucket.list("a/")] == ["a/b", "a/c"]
    bucket.delete(["a/b", "a/none"])
    assert [key for key, _ in bucket.list("")] == ["a/c"]
    bucket.delete([])


@pytest.mark.parametrize("code", ["SlowDown", "ServiceUnavailable", "503", None])
def test_a_bucket_that_does_not_answer_is_busy(code: str | None) -> None:
    """A request then is answered 503, not 500; and what is forbidden or missing stays what it is."""

    class Silent:
        def __getattr__(self, name: str) -> Any:
            def call(*_: Any, **__: Any) -> Any:
                if code is None:
                    raise EndpointConnectionError(endpoint_url="https://s3")
                raise ClientError({"Error": {"Code": code}}, name)  # type: ignore[typeddict-item]

            return call

    bucket = Bucket(Silent(), "b")  # type: ignore[arg-type]
    for call in (
        lambda: bucket.get("k"),
        lambda: bucket.put("k", b"", "text/plain"),
        lambda: bucket.etag("k"),
        lambda: list(bucket.list("p")),
        lambda: bucket.delete(["k"]),
    ):
        with pytest.raises(Busy):
            call()


def test_a_forbidden_object_is_not_taken_for_a_missing_one(system: System) -> None:
    bucket = Bucket(system.s3, system.names["DataBucket"])
    assert bucket.get("uploads/none") is bucket.etag("uploads/none") is None

    def refuse(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")

    with mock.patch.object(bucket, "client", SimpleNamespace(get_object=refuse)), pytest.raises(ClientError):
        bucket.get("uploads/none")
