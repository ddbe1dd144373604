"""The command line apart from serving: the first admin key of a stack, help, refusals in one line."""

from __future__ import annotations

import pytest

from local.__main__ import main, parser
from local.inprocess import System


def test_an_admin_key_is_made_installed_and_shown_once(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin-key", "--table", system.names["Table"], "--region", "eu-central-1"]) == 0
    said = capsys.readouterr().out
    (key,) = [word for word in said.split() if word.startswith("cl_")]
    assert len(key) == 3 + 43  # 256 bits in base 64
    assert system.request("PUT", "/v1/clubs/a", json={"name": "A"}, key=key).status == 201
    (listed,) = [k for k in system.request("GET", "/v1/clubs/admin/keys", key=key).body["keys"] if k["key_id"] in said]
    assert listed["scopes"] == ["admin"]
    assert listed["created_at"] > "2026-"
    stored = str(system.dynamodb.scan(TableName=system.names["Table"])["Items"])
    assert key not in stored


def test_two_admin_keys_differ(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        main(["admin-key", "--table", system.names["Table"], "--region", "eu-central-1"])
    found = [word for word in capsys.readouterr().out.split() if word.startswith("cl_")]
    assert len(set(found)) == 2


def test_a_table_that_does_not_exist_is_said_clearly(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin-key", "--table", "mistyped", "--region", "eu-central-1"]) == 1
    said = capsys.readouterr()
    assert "mistyped" in said.err
    assert "cl_" not in said.out + said.err


@pytest.mark.parametrize("command", ["serve", "demo", "setup", "admin-key"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"python -m local {command}" in capsys.readouterr().out


def test_the_options_that_others_rely_on() -> None:
    served = parser().parse_args(
        ["serve", "--port", "8001", "--admin-key", "K", "--empty", "--site-dir", "d", "--enforce-permissions"]
    )
    assert (served.port, served.admin_key, str(served.site_dir)) == (8001, "K", "d")
    assert not served.demo_data
    assert served.enforce_permissions
    shown = parser().parse_args(["demo", "--once", "--site-dir", "d"])
    assert shown.once
    assert str(shown.site_dir) == "d"
