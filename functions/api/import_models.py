"""Imports at the door: what an upload says of itself, and what a report tells."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from functions.api.answers import Reply
from functions.api.models import Body


class UploadBody(Body):
    """A file that will be sent."""

    filename: Annotated[str, Field(min_length=1, max_length=200)]
    bytes: Annotated[int, Field(ge=1, le=10**12)]


class RowError(Reply):
    """One thing that is wrong in a file."""

    row: int | None = Field(description="As a spreadsheet counts, from 1, the heading included; null: the whole file.")
    column: str | None = Field(description="The column's name in the API, or its heading as typed.")
    code: str = Field(description="Stable and machine-readable.")
    message: str


class ImportQuestion(Reply):
    """Something only the sender knows; answered in `answers` by its key when the file is sent again."""

    key: str
    code: str
    message: str
    rows: list[int] = Field(description="The rows that wait for it, at most 100.")
    candidates: list[Any] = Field(description="Answers that can be given; of players, who they are.")


class ImportReport(Reply):
    """What a file did, or would do. `rows` = `new` + `unchanged` + `corrected` + `skipped` + `bad`, unless refused."""

    status: Literal["done", "refused", "preview"] = Field(
        description="`refused`: strict, and not every row can be taken; nothing was stored."
    )
    mode: Literal["strict", "lenient"]
    rows: int
    new: int
    unchanged: int
    corrected: int
    skipped: int = Field(description="Left out because an answer said so.")
    bad: int = Field(description="Rows with errors, or with questions that wait.")
    errors: list[RowError] = Field(description="At most 1,000; `error_count` counts all.")
    questions: list[ImportQuestion]
    corrections: list[dict[str, Any]] = Field(description="Games that get another content: row, game, changes.")
    registered: list[dict[str, str]] = Field(description="Players who are new with this file.")
    notices: list[dict[str, Any]]
    sheet: str | None = Field(description="Of a workbook, the sheet that was read.")
    sheets: list[str] = Field(description="Of a workbook, its visible sheets.")
    bad_rows_csv: str | None = Field(
        description="The rows that were not taken, with a column `reason`, to be mended and sent again."
    )


class ImportStarted(Reply):
    """The file is done as a job."""

    import_id: str


class Upload(Reply):
    """Where the file goes: a form with these fields, and then the file as `file`."""

    import_id: str
    url: str
    fields: dict[str, str]


class ImportNow(Reply):
    """How far an import is."""

    import_id: str
    status: Literal["waiting", "running", "done", "failed"] = Field(
        description="`waiting`: for the file. `failed`: nothing was stored; the report says why."
    )
    rows: int
    done: int = Field(description="Rows that are settled so far.")
    report: ImportReport | None = None


class RosterPlayer(Reply):
    """A player of a club."""

    player: str
    name: str


class Roster(Reply):
    """A page of a club's players, by name."""

    players: list[RosterPlayer]
    next: str | None


class OwnKey(Reply):
    """Whose key this is."""

    club: str
    name: str
    scopes: list[str]
