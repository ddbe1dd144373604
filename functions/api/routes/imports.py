"""Files of results: imports, uploads, how far they are; and the club's players, whom the desk finds as one types."""

from __future__ import annotations

from functions.api import import_models as models
from functions.api.http import Request, parse_json
from functions.api.routes.games import submittable_pool
from functions.api.routing import CURSOR, PREVIEW, PREVIEW_TOKEN, Access, Parameter, route
from shared.problems import BadField, forbidden, invalid
from shared.usecases import clubs, import_jobs, importing
from shared.usecases.drafts import Answer
from shared.usecases.importing import Options

MOST_ANSWERS = 4_096
MOST_FILENAME = 200
MODE = Parameter(
    "mode",
    {"type": "string", "enum": list(importing.MODES), "default": "strict"},
    "`strict`: all rows or none. `lenient`: good rows in, the others back with reasons.",
)
FILENAME = Parameter(
    "filename", {"type": "string", "minLength": 1, "maxLength": MOST_FILENAME}, "As the sender has it."
)
ANSWERS = Parameter(
    "answers",
    {"type": "string", "contentMediaType": "application/json", "maxLength": MOST_ANSWERS},
    "A JSON object: answers to the questions of an earlier report, by their keys.",
)
SHEET = Parameter("sheet", {"type": "string", "minLength": 1, "maxLength": 100}, "Which sheet of a workbook.")
FORFEITS = Parameter(
    "forfeits",
    {"type": "string", "enum": ["skip", "count"], "default": "skip"},
    "Of tournament reports and PGN: whether games won without play are games.",
)
HOW = (MODE, PREVIEW, FILENAME, ANSWERS, SHEET, FORFEITS)


def _options(request: Request, filename: str | None = None) -> Options:
    raw = request.text("answers", MOST_ANSWERS)
    answers = importing.parse_answers(_json(raw)) if raw is not None else {}
    given = {
        "mode": request.text("mode", 20),
        "forfeits": request.text("forfeits", 20),
        "sheet": request.text("sheet", 100),
        "filename": request.text("filename", MOST_FILENAME) or filename,
    }
    return import_jobs.options_from(given.get, answers, preview=request.flag("preview"))


def _json(text: str) -> object:
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"))
    except Exception as error:
        raise invalid([BadField("answers", "not-json", "`answers` is a JSON object.")]) from error


@route(
    "POST",
    "/v1/pools/{pool}/imports",
    Access.SUBMIT,
    {200: models.ImportReport, 202: models.ImportStarted},
    problems=(409,),
    parameters=(*HOW, PREVIEW_TOKEN),
    existing=("pool",),
    takes_file=True,
)
def import_file(request: Request) -> Answer:
    """Send a file of results: CSV, .xlsx, TRF16 or PGN, up to 1 MB; the same again changes nothing."""
    pool = submittable_pool(request)
    options = _options(request)
    token = request.text("preview_token")
    return import_jobs.take(request.ctx, pool, request.club, request.body, options, token)


@route(
    "POST",
    "/v1/pools/{pool}/uploads",
    Access.SUBMIT,
    {201: models.Upload},
    body=models.UploadBody,
    parameters=HOW,
    existing=("pool",),
)
def upload_file(request: Request) -> Answer:
    """Announce a larger file, up to 12 MB and 30,000 rows, and learn where to send it."""
    pool = submittable_pool(request)
    body = request.model(models.UploadBody)
    options = _options(request, body.filename)
    return import_jobs.upload(request.ctx, pool, request.club, body.bytes, options)


@route("GET", "/v1/imports/{import}", Access.SUBMIT, {200: models.ImportNow}, existing=("import",))
def get_import(request: Request) -> Answer:
    """How far an import is, and its report when it is over."""
    import_id = request.existing_id("import")
    return Answer(200, import_jobs.read(request.ctx, import_id, request.club, admin=request.admin))


@route(
    "GET",
    "/v1/clubs/{club}/players",
    Access.SUBMIT,
    {200: models.Roster},
    problems=(422,),
    parameters=(CURSOR,),
    existing=("club",),
)
def club_players(request: Request) -> Answer:
    """A club's own players, by name."""
    club = request.existing_id("club")
    if not request.sender.owns(club):
        raise forbidden("These are the players of another club.")
    if club != request.club:
        clubs.require(request.ctx, club)
    return Answer(200, clubs.players(request.ctx, club, request.text("cursor")))


@route("GET", "/v1/key", Access.SUBMIT, {200: models.OwnKey})
def own_key(request: Request) -> Answer:
    """Whose key this is: what the desk asks first."""
    sender = request.sender
    name = clubs.called(request.ctx, sender.club)
    return Answer(200, {"club": sender.club, "name": name, "scopes": sorted(sender.scopes)})
