"""The copy of the site in a folder holds what the site holds, and no more."""

from __future__ import annotations

from pathlib import Path

from local.system import remove_file


def test_nothing_is_left_of_a_name_that_is_gone(tmp_path: Path) -> None:
    gone, stays = tmp_path / "p/players/anna/index.html", tmp_path / "p/players/berta/index.html"
    for path in (gone, stays):
        path.parent.mkdir(parents=True)
        path.write_text("x")
    remove_file(tmp_path, "p/players/anna/index.html")
    assert not gone.parent.exists()
    assert stays.exists()
    remove_file(tmp_path, "p/players/anna/index.html")
    remove_file(tmp_path, "p/players/berta/index.html")
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.exists()
