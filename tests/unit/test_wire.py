"""Items to DynamoDB's wire format and back, as boto3's own (slower) serialiser has them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from shared.store.table import from_wire, to_wire

VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.text(max_size=20)
    | st.binary(max_size=9)
    | st.sets(st.text(min_size=1, max_size=5), min_size=1, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=4),
    max_leaves=12,
)


def _ordered(wire: Any) -> Any:
    """Sets have no order."""
    if isinstance(wire, dict):
        return {k: sorted(v) if k == "SS" else _ordered(v) for k, v in wire.items()}
    return [_ordered(entry) for entry in wire] if isinstance(wire, list) else wire


@given(st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=5))
def test_there_and_back_as_boto3(item: dict[str, Any]) -> None:
    wire = to_wire(item)
    assert _ordered(wire) == _ordered({name: TypeSerializer().serialize(value) for name, value in item.items()})
    assert from_wire(wire) == item


def test_numbers_that_are_not_whole() -> None:
    assert from_wire({"a": {"N": "1.5"}, "b": {"N": "2.0"}, "c": {"N": "1E+2"}}) == {"a": 1.5, "b": 2, "c": 100}
    assert TypeDeserializer().deserialize({"N": "1E+2"}) == Decimal(100)


@pytest.mark.parametrize("value", [1.5, Decimal(1), set(), {1, 2}, object()])
def test_what_no_item_holds_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        to_wire({"a": value})
    with pytest.raises(TypeError):
        from_wire({"a": {"NS": ["1"]}})
