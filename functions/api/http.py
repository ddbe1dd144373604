"""HTTP as the routes see it: a request that is parsed strictly and only as far as a route asks; an answer."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, unquote

from pydantic import BaseModel, ValidationError

from shared.fields import MOST_ERRORS, bad_fields, outermost, path_text
from shared.ids import ID_FORM, fold_id
from shared.problems import BadField, Problem, invalid, not_found
from shared.store.clubs import ADMIN
from shared.store.table import Item, Key
from shared.usecases.access import Caller
from shared.usecases.context import Context

MAXIMUM_BODY = 1_000_000
MAXIMUM_DEPTH = 20
MAXIMUM_INTEGER = 2**63 - 1
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
REVISION = re.compile(r'"([1-9][0-9]{0,8})"')

Model = TypeVar("Model", bound=BaseModel)


# -- strict JSON ---------------------------------------------------------------------------------------------------
class _Refused(ValueError):
    """A JSON text that a careful sender would not send."""


class _TooLarge:
    """Stands where a number was that no machine holds, until it is known which field that is."""


_TOO_LARGE = _TooLarge()


def _refuse(what: str) -> NoReturn:
    raise _Refused(f"{what} is not a JSON number")


def _float(text: str) -> float | _TooLarge:
    value = float(text)
    return value if math.isfinite(value) else _TOO_LARGE


def _int(text: str) -> int | _TooLarge:
    return _TOO_LARGE if len(text) > 20 or abs(int(text)) > MAXIMUM_INTEGER else int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("an object has a key twice")
    return found


def _walk(value: Any, wrong: list[BadField], steps: tuple[str | int, ...] = ()) -> Any:
    """The value with None in place of what cannot be held, which is told in ``wrong``."""
    if len(steps) > MAXIMUM_DEPTH:
        raise _Refused(f"it is nested more than {MAXIMUM_DEPTH} levels deep")
    if isinstance(value, dict):
        for name, entry in value.items():
            if not _is_unicode(name):
                raise _Refused("an object has a key with half a character (a surrogate alone)")
            value[name] = _walk(entry, wrong, (*steps, name))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            value[number] = _walk(entry, wrong, (*steps, number))
    elif value is _TOO_LARGE:
        message = f"This number is too large; whole numbers go to {MAXIMUM_INTEGER} at most."
        _note(wrong, steps, "number-too-large", message)
        return None
    elif isinstance(value, str) and not _is_unicode(value):
        message = "The text has half a character (a surrogate alone), which cannot be shown."
        _note(wrong, steps, "not-unicode", message)
        return None
    return value


def _note(wrong: list[BadField], steps: tuple[str | int, ...], code: str, message: str) -> None:
    if len(wrong) < MOST_ERRORS:
        wrong.append(BadField(path_text(steps)[:200], code, message))


def _is_unicode(text: str) -> bool:
    """Whether it has no lone surrogate, which can neither be stored nor sent back."""
    try:
        text.encode()
    except UnicodeError:
        return False
    return True


def parse_json(raw: bytes) -> Any:
    """A JSON text, strictly: UTF-8, no key twice, finite numbers of a size a machine holds, 20 levels at most.

    Raises:
        Problem: 422 ``not-json``.
    """
    value, wrong = parse_in_part(raw)
    if wrong:
        field = wrong[0].field
        raise _not_json(f"{field or 'the whole'}: {wrong[0].message.rstrip('.')}")
    return value


def parse_in_part(raw: bytes) -> tuple[Any, list[BadField]]:
    """As ``parse_json``; numbers and texts that cannot be held become None, and are told by their fields.

    Raises:
        Problem: 422 ``not-json``.
    """
    wrong: list[BadField] = []
    try:
        value = json.loads(
            raw.decode(), parse_constant=_refuse, parse_float=_float, parse_int=_int, object_pairs_hook=_object
        )
        value = _walk(value, wrong)
    except UnicodeError:
        raise _not_json("it is not UTF-8") from None
    except RecursionError:
        raise _not_json(f"it is nested more than {MAXIMUM_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise _not_json(f"line {error.lineno}, column {error.colno}") from None
    except _Refused as error:
        raise _not_json(str(error)) from None
    return value, wrong


def _not_json(why: str) -> Problem:
    detail = f"The body is not JSON as it should be: {why}."
    return Problem(422, "not-json", detail, [BadField("", "not-json", detail)])


# -- the request ---------------------------------------------------------------------------------------------------
@dataclass
class Request:
    """One request: who sent it, where to, and what; every part is parsed when a route asks for it, not before."""

    ctx: Context
    caller: Caller | None
    raw_path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    noted: dict[str, str] = field(default_factory=dict)
    """What the log line says beside the route: pool, game, club."""
    ahead: Mapping[Key, Item | None] = field(default_factory=dict)
    """Items read together with the key."""

    # -- who
    @property
    def sender(self) -> Caller:
        """Who sent it; routes that are not open have one."""
        if self.caller is None:  # pragma: no cover - the router asks for a key first
            raise Problem(401, "unauthorized", "This route needs a key.")
        return self.caller

    @property
    def admin(self) -> bool:
        """Whether an admin sent it."""
        return self.caller is not None and self.caller.is_admin

    @property
    def club(self) -> str:
        """The club it acts for."""
        return self.caller.acts_for if self.caller is not None else ADMIN

    # -- where to
    def path_text(self, name: str) -> str:
        """A part of the path as it was meant."""
        return unquote(self.raw_path[name])

    def existing_id(self, name: str, what: str | None = None) -> str:
        """An id in the path of something that must exist: what cannot be an id cannot exist (404)."""
        folded = fold_id(self.path_text(name))
        if folded is None:
            raise not_found(what or name)
        self._note(name, folded)
        return folded

    def new_id(self, name: str) -> tuple[str, list[BadField]]:
        """An id in the path of something that may be made; with what is wrong with it."""
        folded = fold_id(self.path_text(name))
        if folded is None:
            return "", [BadField(name, "id", ID_FORM)]
        self._note(name, folded)
        return folded, []

    def _note(self, name: str, value: str) -> None:
        if name in ("pool", "club"):
            self.noted[name] = value

    def game(self) -> tuple[str, str]:
        """The game in the path, ``game_id`` of one's own or ``club:game_id``. Raises 404 for what cannot be one."""
        first, colon, second = self.path_text("game").partition(":")
        club, game_id = (fold_id(first), fold_id(second)) if colon else (None, fold_id(first))
        if not colon and self.caller is not None:
            club = self.club
        if club is None or game_id is None:
            raise not_found("game")
        self.noted["game"] = f"{club}:{game_id}"
        return club, game_id

    # -- what
    @cached_property
    def _parsed(self) -> tuple[Any, list[BadField]]:
        return parse_in_part(self.body) if self.body.strip() else ({}, [])

    @property
    def json(self) -> Any:
        """The body. Raises 422 when it is not JSON. No body is an empty object.

        What cannot be held is None in it; ``model`` refuses it.
        """
        return self._parsed[0]

    def peek(self, name: str) -> bool:
        """Whether the body names a field; for access rights that hang on it, before anything is checked."""
        try:
            body = self.json
        except Problem:
            return False
        return isinstance(body, dict) and name in body

    def model(self, model: type[Model], wrong: list[BadField] | None = None, **context: Any) -> Model:
        """The body as a model. Raises 422 with every wrong field, those found before among them."""
        unheld = self._parsed[1]
        wrong = [*(wrong or []), *unheld]
        try:
            parsed = model.model_validate(self.json, strict=True, context=context)
        except ValidationError as error:
            told = {field.field for field in unheld}
            wrong += [field for field in bad_fields(error, self.json) if field.field not in told]
        if wrong:
            raise invalid(wrong[:MOST_ERRORS])
        return parsed

    def model_in_part(self, model: type[Model], **context: Any) -> tuple[Model, list[BadField]]:
        """The body as a model without its wrong fields, and those: what is right can so be checked further.

        Raises 422 where too little is left.
        """
        try:
            return self.model(model, **context), []
        except Problem as problem:
            wrong = list(problem.errors)
            outer = {outermost(error.field) for error in wrong}
            if "" in outer or not isinstance(self.json, dict):
                raise
            required = {name for name, info in model.model_fields.items() if info.is_required()}
            stand_ins = dict.fromkeys(outer & required, "-")
            rest = {name: value for name, value in self.json.items() if name not in outer}
            try:
                return model.model_validate(rest | stand_ins, strict=True, context=context), wrong
            except ValidationError:
                raise problem from None

    def strings(self, name: str) -> list[str]:
        """The texts of a list in the body, as far as there are any: to look up what they name before it is checked."""
        body = self.json
        value = body.get(name) if isinstance(body, dict) else None
        return [v for v in value if isinstance(v, str)][:MOST_ERRORS] if isinstance(value, list) else []

    @property
    def digest(self) -> str:
        """What tells one body from another, however it is laid out."""
        if self._parsed[1]:  # what was sent cannot be told from what stands for it
            return hashlib.sha256(self.body).hexdigest()
        text = json.dumps(self.json, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    # -- parameters
    def flag(self, name: str) -> bool:
        """A parameter that is ``true`` or ``false`` (left out)."""
        value = self.query.get(name, "false")
        if value not in ("true", "false"):
            raise invalid([BadField(name, "not-a-flag", f"`{name}` is `true` or `false`.")])
        return value == "true"

    def text(self, name: str, longest: int = 1000) -> str | None:
        """A parameter, or None."""
        value = self.query.get(name)
        if value is not None and not 0 < len(value) <= longest:
            raise invalid([BadField(name, "length", f"`{name}` has 1 to {longest} characters.")])
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A parameter that is an integer."""
        value = self.query.get(name)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise invalid([BadField(name, "number", f"`{name}` is a whole number from {least} to {most}.")])
        return int(value)

    def if_match(self) -> int:
        """The revision a change builds on. Raises 428 without one, 422 for what is none."""
        value = self.headers.get("if-match")
        if value is None:
            raise Problem(
                428, "if-match-required", 'Send the revision this change builds on: `If-Match: "<revision>"`.'
            )
        found = REVISION.fullmatch(value.strip())
        if found is None:
            raise invalid([BadField("If-Match", "revision", 'A revision in quotes is wanted, such as `"1"`.')])
        return int(found[1])

    def idempotency_key(self) -> str | None:
        """The key under which a repeated request gets the same answer."""
        value = self.headers.get("idempotency-key")
        if value is not None and not IDEMPOTENCY_KEY.fullmatch(value):
            raise invalid([BadField("Idempotency-Key", "pattern", "1 to 255 printable ASCII characters.")])
        return value


# -- the gateway's event -------------------------------------------------------------------------------------------
def event_body(event: Mapping[str, Any]) -> bytes:
    """The bytes of the body. Raises 413 above the limit."""
    text = event.get("body") or ""
    if len(text) > MAXIMUM_BODY * 4 // 3 + 4:
        raise _too_large()
    try:
        raw = base64.b64decode(text, validate=True) if event.get("isBase64Encoded") else text.encode()
    except (UnicodeError, binascii.Error, ValueError):
        raise _not_json("it cannot be read") from None
    if len(raw) > MAXIMUM_BODY:
        raise _too_large()
    return raw


def _too_large() -> Problem:
    detail = f"A body has at most {MAXIMUM_BODY:,} bytes; send larger files as uploads."
    return Problem(413, "too-large", detail, (), {"limit": MAXIMUM_BODY})


def tidy_path(path: str) -> str:
    """The path with each part percent-encoded in one way, whatever the gateway made of it."""
    return "/".join(quote(unquote(part, errors="replace"), safe="") for part in path.split("/"))
