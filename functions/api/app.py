"""The API function: one Lambda behind a catch-all route, so that every answer, refusals too, is ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import orjson
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.api import routes
from functions.api.http import Request, event_body, tidy_path
from functions.api.routing import ROUTES, Access, Route
from shared.ids import fold_id
from shared.problems import BadField, Problem, busy, forbidden, invalid
from shared.store import keys
from shared.store.table import Busy, Item, Key
from shared.usecases import access, bootstrap, watch
from shared.usecases.access import Caller
from shared.usecases.drafts import Answer

JSON = "application/json"
PROBLEM = "application/problem+json"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
ALLOWED_HEADERS = "Authorization, Content-Type, If-Match, Idempotency-Key"
EXPOSED_HEADERS = "ETag, Location, Retry-After, X-Request-Id"

app = APIGatewayHttpResolver()
log = Logger(service="api")
assert routes  # noqa: S101 - importing them has filled the table


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request, and log it in one line: never a name, a note, a player or a key."""
    began = time.perf_counter()
    http = event["requestContext"]["http"]
    head = http["method"] == "HEAD"
    request_id = str(event["requestContext"].get("requestId", ""))
    app.append_context(noted={}, request_id=request_id)  # type: ignore[no-untyped-call]
    noted: dict[str, Any] = app.context["noted"]
    tidy = {**event, "rawPath": tidy_path(event["rawPath"])}
    if head:
        tidy["requestContext"] = {**event["requestContext"], "http": {**http, "method": "GET"}}
    answer = app.resolve(tidy, context)
    answer["headers"] = {k: v for k, v in answer.get("headers", {}).items() if v} | _common_headers(event, request_id)
    if head:
        answer["body"] = ""
    line = {
        "method": http["method"] if http["method"] in METHODS else "other",
        "status": answer["statusCode"],
        "milliseconds": round((time.perf_counter() - began) * 1000, 1),
        "request_id": request_id,
        **noted,
    }
    (log.error if answer["statusCode"] >= 500 else log.info)("request", extra=line)
    return answer


def _common_headers(event: Mapping[str, Any], request_id: str) -> dict[str, str]:
    headers = {"X-Request-Id": request_id, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    origin = bootstrap.context().site_origin
    if origin and event.get("headers", {}).get("origin") == origin:  # as the gateway does; on one machine we are it
        headers |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED_HEADERS}
    return headers


# -- one route -----------------------------------------------------------------------------------------------------
def _endpoint(route: Route) -> Callable[..., Response[Any]]:
    def call(**path: str) -> Response[Any]:
        noted = app.context["noted"]
        noted["route"] = route.path
        event = app.current_event.raw_event
        headers = {k.lower(): v for k, v in event.get("headers", {}).items()}
        query = dict(event.get("queryStringParameters") or {})
        body, ctx = event_body(event), bootstrap.context()
        ahead: dict[Key, Item | None] = {}
        caller = _caller(route, headers, query, path, ahead)
        if caller is not None:
            noted.update(sender=caller.club, key_id=caller.key_id)
        _count(route, caller, path)
        if route.method != "GET":
            _refuse_unknown(route, query)
        answer = route.function(Request(ctx, caller, path, query, headers, body, noted, ahead))
        for name, told in (("game", "game_id"), ("import_id", "import_id")):
            if name not in noted and isinstance(answer.body.get(told), str):
                noted[name] = answer.body[told]
        return _response(answer)

    call.__name__ = route.function.__name__
    return call


def _caller(
    route: Route,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    path: Mapping[str, str],
    ahead: dict[Key, Item | None],
) -> Caller | None:
    """Who sent it: 401, then 403 by scope. The pool in the path is read in the same round trip."""
    header = headers.get("authorization")
    if route.access is Access.OPEN or (route.access is Access.KNOWN and header is None):
        return None
    acts_for = query.get("club")
    folded = fold_id(acts_for) if acts_for is not None else None
    try:
        pool = fold_id(unquote(path.get("pool", "")))
        also = [keys.pool(pool)] if pool is not None and route.access is Access.SUBMIT else []
        caller = access.authenticate(bootstrap.context(), header, folded, also, ahead)
    except Problem as problem:
        if problem.status == 401:
            bootstrap.context().limits.address(bootstrap.context().clock(), _source())
        raise
    if acts_for is not None and folded is None:
        raise access.unknown_club("club")
    if route.access is Access.ADMIN and not caller.is_admin:
        raise forbidden("Only an admin may do this.")
    if route.access in (Access.SUBMIT, Access.MANAGE) and not caller.may(route.access.value):
        raise forbidden(f"This key does not have the scope `{route.access.value}`.")
    return caller


def _count(route: Route, caller: Caller | None, path: Mapping[str, str]) -> None:
    """429: too many requests of this key or address, or to this pool. Nothing but the key has been read so far."""
    ctx = bootstrap.context()
    if caller is None:
        ctx.limits.address(ctx.clock(), _source())
        return
    ctx.limits.key(ctx.table, ctx.clock(), f"{caller.club}/{caller.key_id}")
    pool = fold_id(path.get("pool", ""))
    if pool is not None and route.method != "GET" and route.access is not Access.OPEN:
        ctx.limits.pool(ctx.table, ctx.clock(), pool)


def _source() -> str:
    http: Mapping[str, Any] = app.current_event.raw_event["requestContext"]["http"]
    return str(http.get("sourceIp", ""))


def _refuse_unknown(route: Route, query: Mapping[str, str]) -> None:
    """A mistyped ``?prewiew=true`` must not store what was meant to be tried."""
    unknown = sorted(set(query) - route.query)
    if unknown:
        raise invalid([BadField(name[:80], "unknown-parameter", "There is no such parameter.") for name in unknown])


for _route in ROUTES:
    app.route(_route.path.replace("{", "<").replace("}", ">"), method=[_route.method])(_endpoint(_route))


# -- answers -------------------------------------------------------------------------------------------------------
def _response(answer: Answer) -> Response[Any]:
    if answer.status == 204:
        return Response(204, headers=dict(answer.headers))
    return Response(answer.status, JSON, orjson.dumps(answer.body).decode(), headers=dict(answer.headers))


def _refusal(problem: Problem) -> Response[Any]:
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(problem.retry_after)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if "allow" in problem.extra:
        headers["Allow"] = ", ".join(problem.extra["allow"])
    app.context["noted"]["code"] = problem.code
    return Response(problem.status, PROBLEM, orjson.dumps(problem.document()).decode(), headers=headers)


@app.exception_handler(Problem)  # type: ignore[untyped-decorator]
def _problem(problem: Problem) -> Response[Any]:
    return _refusal(problem)


@app.exception_handler(Busy)  # type: ignore[untyped-decorator]
def _busy(_: Busy) -> Response[Any]:
    return _refusal(busy())


@app.exception_handler(Exception)  # type: ignore[untyped-decorator]
def _unexpected(error: Exception) -> Response[Any]:
    """A fault of ours. The log gets where it happened and of what kind it was; messages may hold what people sent."""
    app.context["noted"].update(watch.fault(error))
    detail = "Something went wrong on our side. Nothing can be said about whether it was stored; please try again."
    return _refusal(Problem(500, "internal", detail, extra={"request_id": app.context["request_id"]}))


@app.not_found
def _no_route(_: NotFoundError) -> Response[Any]:
    path, method = app.current_event.path, app.current_event.http_method
    allowed = {r.method for r in ROUTES if _matches(r.path, path)}
    if not allowed:
        return _refusal(Problem(404, "no-such-route", "There is no such address."))
    known = sorted({*allowed, "OPTIONS", *({"HEAD"} if "GET" in allowed else ())})
    if method == "OPTIONS":
        return Response(204, headers={"Allow": ", ".join(known), **_preflight(known)})
    detail = f"This address knows {', '.join(known)}."
    return _refusal(Problem(405, "method-not-allowed", detail, extra={"allow": known}))


def _preflight(allowed: list[str]) -> dict[str, str]:
    if not bootstrap.context().site_origin:
        return {}
    return {
        "Access-Control-Allow-Methods": ", ".join(allowed),
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": "600",
    }


def _matches(template: str, path: str) -> bool:
    wanted, given = template.split("/"), path.split("/")
    return len(wanted) == len(given) and all(
        g if w.startswith("{") else w == g for w, g in zip(wanted, given, strict=True)
    )
