"""The model of DynamoDB's throughput, by numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.bench import units
from tests.bench.dynamo import Clock, LimitedTable
from tests.integration.memory import MemoryTable

KB = 1024


def item(pk: str, sk: str, size: int = 100) -> dict[str, Any]:
    """An item of exactly so many bytes."""
    return {"pk": {"S": pk}, "sk": {"S": sk}, "body": {"S": "x" * (size - len(pk + sk) - len("pkskbody"))}}


def key(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def put(table: LimitedTable, pk: str, sk: str, size: int = 100) -> None:
    table.put_item(TableName="t", Item=item(pk, sk, size))


def refused(error: pytest.ExceptionInfo[ClientError]) -> str:
    return error.value.response["Error"]["Code"]


@pytest.fixture
def table() -> LimitedTable:
    return LimitedTable(MemoryTable(), Clock(0))


def test_items_cost_by_the_kilobyte_begun_and_twice_in_a_transaction() -> None:
    puts = [item("a", "1", KB), item("a", "2", KB + 1)]
    assert [units.size_of(one) for one in puts] == [1024, 1025]
    assert [w.units for w in units.written("put_item", {"Item": puts[0]})] == [1]
    wire = {"TransactItems": [{"Put": {"Item": one}} for one in puts]}
    assert [w.units for w in units.written("transact_write_items", wire)] == [2, 4]


def test_an_update_and_a_deletion_cost_by_the_item_they_meet(table: LimitedTable) -> None:
    put(table, "a", "1", 5 * KB)
    update = {
        "Key": key("a", "1"),
        "UpdateExpression": "SET #n = :n",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":n": {"S": "x" * KB}},
    }
    find = table.memory.find
    assert [w.units for w in units.written("update_item", update, find)] == [7]
    assert [w.units for w in units.written("delete_item", {"Key": key("a", "1")}, find)] == [5]
    assert [w.units for w in units.written("delete_item", {"Key": key("a", "2")}, find)] == [1]


def test_reads_cost_by_four_kilobytes_and_half_when_not_consistent(table: LimitedTable) -> None:
    put(table, "a", "1", 4 * KB)
    put(table, "a", "2", 4 * KB + 1)
    for consistent, expected in ((True, [1, 2, 1]), (False, [0.5, 1, 0.5])):
        wanted = [key("a", "1"), key("a", "2"), key("a", "3")]
        arguments = {"RequestItems": {"t": {"Keys": wanted, "ConsistentRead": consistent}}}
        answer = table.batch_get_item(**arguments)
        assert [taken for _, taken in units.read("batch_get_item", arguments, answer)] == expected


def test_a_key_takes_a_thousand_units_a_second(table: LimitedTable) -> None:
    for number in range(100):
        put(table, "a", str(number), 10 * KB)
        table.clock.now = 0
    with pytest.raises(ClientError) as error:
        put(table, "a", "one more")
    assert refused(error) == "ProvisionedThroughputExceededException"
    put(table, "b", "another key")
    table.clock.now = 1_000_000
    put(table, "a", "one more")
    assert table.hottest_writes()[0] == ("a", 1000)
    assert table.throttled == {"a": 1}


def test_a_transaction_is_refused_whole_and_takes_nothing(table: LimitedTable) -> None:
    for number in range(99):
        put(table, "a", str(number), 10 * KB)
        table.clock.now = 0
    wire = [{"Put": {"Item": item("b", "1")}}, {"Put": {"Item": item("a", "x", 6 * KB)}}]
    with pytest.raises(ClientError) as error:
        table.transact_write_items(TransactItems=wire)
    assert refused(error) == "TransactionCanceledException"
    assert error.value.response["CancellationReasons"] == [{"Code": "None"}, {"Code": "ThrottlingError"}]
    assert table.memory.find(key("b", "1")) is None
    assert dict(table.hottest_writes()) == {"a": 990}


def test_a_transactions_own_items_add_up_on_a_key(table: LimitedTable) -> None:
    wire = [{"Put": {"Item": item("a", str(number), 50 * KB)}} for number in range(11)]
    with pytest.raises(ClientError):
        table.transact_write_items(TransactItems=wire)
    table.transact_write_items(TransactItems=wire[:10])


def test_of_a_batch_what_does_not_fit_is_given_back(table: LimitedTable) -> None:
    requests = [{"PutRequest": {"Item": item("a", str(number), 300 * KB)}} for number in range(4)]
    answer = table.batch_write_item(RequestItems={"t": requests})
    assert answer == {"UnprocessedItems": {"t": requests[3:]}}
    with pytest.raises(ClientError):
        table.batch_write_item(RequestItems={"t": requests[3:]})


def test_a_key_gives_three_thousand_units_a_second(table: LimitedTable) -> None:
    put(table, "a", "1", 300 * KB)  # 75 units to read
    for _ in range(40):
        table.get_item(TableName="t", Key=key("a", "1"), ConsistentRead=True)
        table.clock.now = 0
    with pytest.raises(ClientError):
        table.get_item(TableName="t", Key=key("a", "1"), ConsistentRead=True)
    wanted = {"t": {"Keys": [key("a", "1"), key("b", "1")], "ConsistentRead": True}}
    answer = table.batch_get_item(RequestItems=wanted)
    assert answer["UnprocessedKeys"]["t"]["Keys"] == [key("a", "1")]


def test_calls_take_time(table: LimitedTable) -> None:
    put(table, "a", "1")
    assert table.clock.now == 5_000
    table.transact_write_items(TransactItems=[{"Put": {"Item": item("a", "2")}}] * 1)
    assert table.clock.now == 5_000 + 10_160
