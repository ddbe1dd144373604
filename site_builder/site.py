"""One function per kind of page. Each gives every object of that page: a language each, and the data beside it.

Same input, same bytes. Nothing is looked up anywhere: what a page shows is in its view.

``/``                          ``home_pages``          pools; with 404, ``/site.json``, ``/robots.txt``
``/{pool}/``                   ``list_pages``          a page of the list, and its JSON
``/{pool}/players/{player}/``  ``player_pages``        with JSON and Atom feed
``/{pool}/games/{club}/{g}/``  ``game_pages``
``/{pool}/lists/``             ``index_pages``         all months, clubs, groups, tournaments, years
``/{pool}/lists/2026-11/``     ``month_pages``
``/{pool}/clubs/{club}/``      ``label_pages``         and groups, tournaments, years
``/{pool}/changes/``           ``changes_pages``
``/{pool}/rules/``             ``rules_pages``
``/{pool}/calculator/``        ``calculator_pages``
``/{pool}/statistics/``        ``statistics_pages``
``/{pool}/ledger/``            ``ledger_pages``
``/{pool}/best/``              ``best_pages``
``/embed/{pool}/``             ``embed_pages``
``/{pool}/feed.xml``           ``feed_pages``
``/{pool}/picture.png``        ``picture_page``
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from operator import itemgetter
from pathlib import Path
from secrets import token_hex
from typing import Any, cast
from zlib import crc32

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from shared.ledger.calendar import day_of
from shared.ledger.order import iso
from shared.ratings.base import Settings
from site_builder import charts, data, picture, statistics
from site_builder.addresses import Addresses, key, prefix
from site_builder.assets import asset
from site_builder.figures import Figures
from site_builder.rows import Lines, pager
from site_builder.views import (
    BestEver,
    ChangeNote,
    GameChange,
    GameLine,
    GamePage,
    IndexPage,
    LabelPage,
    LedgerPage,
    MonthPage,
    Page,
    Person,
    PlayerPage,
    PoolSummary,
    PoolView,
    SiteView,
    Standing,
    StatisticsPage,
)
from site_builder.words import words

HTML = "text/html; charset=utf-8"
PNG = "image/png"
ATOM = "application/atom+xml; charset=utf-8"
ACCENTS = 8
PAGE_SIZE = 100
"""Players on a page of a list."""
MOVING = ("main", "new", "established", "inactive", "unlisted")
"""Lists that tell movement since the last closing; a list by a figure has places of its own."""
RECORD = 8
"""Numbers of a label's record: games, won, drawn, lost, for, against, gained, beside."""
TEMPLATES = [str(Path(__file__).parent / "templates")]
"""Where templates are looked for; an operator's own rule system puts its folder in front (``add_templates``)."""


class _Compiled(BytecodeCache):
    """Compile each template once, not once per language."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


_compiled = _Compiled()


def add_templates(folder: str) -> None:
    """Look for templates there first: ``rules/{system}.html`` and ``calculator/{system}.html`` of another system."""
    TEMPLATES.insert(0, folder)
    _environment.cache_clear()


@cache
def _environment(language: str) -> Environment:
    text = words(language)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n"],
        bytecode_cache=_compiled,
    )
    environment.policies["ext.i18n.trimmed"] = True
    environment.install_gettext_callables(text.gettext, text.ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.globals["gettext"] = _remembered(cast("Callable[..., Any]", environment.globals["gettext"]))
    environment.globals.update(words=text, asset=asset, iso=iso, who=_who)
    environment.filters.update(xml=_xml)
    return environment


def _remembered(gettext: Callable[..., Any]) -> Callable[..., Any]:
    """Texts without names or numbers in them are made once: a list has some of them in every line."""
    known: dict[str, Any] = {}

    @pass_context
    def remembering(context: Context, message: str, /, **variables: Any) -> Any:
        if variables:
            return gettext(context, message, **variables)
        found = known.get(message)
        if found is None:
            found = known[message] = gettext(context, message)
        return found

    return remembering


def _xml(text: str) -> Markup:
    """Escaped, without the characters that XML has no way to hold."""
    fit = "".join(
        c for c in text if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")
    )
    return escape(fit)


@pass_context
def _who(context: Context, player: str | None) -> Markup:
    """A player by the id that content and explanations use, linked to his page."""
    people: Mapping[str, Person] = context.get("people") or {}
    person = people.get(player or "") or Person(None, player or "")
    return _link(context, person)


def _link(context: Context, person: Person) -> Markup:
    name = person.name or person.handle or context["words"].gettext("a former player")
    if person.handle is None:
        return Markup(f'<span dir="auto">{escape(name)}</span>')  # noqa: S704 - escaped
    address = escape(context["to"].player(person.handle))
    return Markup(f'<a href="{address}" dir="auto">{escape(name)}</a>')  # noqa: S704 - escaped


@pass_context
def _person(context: Context, person: Person) -> Markup:
    return _link(context, person)


def accent(pool: PoolView | PoolSummary) -> int:
    """Which of the colours is the pool's."""
    chosen = getattr(pool, "accent", None)
    return int(chosen) % ACCENTS if chosen is not None else crc32(pool.id.encode()) % ACCENTS


class _Rules:
    """What a rule system's template says, with ``rules/_default.html`` for what it leaves unsaid."""

    def __init__(self, language: str, system: str, context: dict[str, Any]) -> None:
        environment = _environment(language)
        self._own = environment.get_template(f"rules/{system}.html").make_module(context)
        self._default = environment.get_template("rules/_default.html").make_module(context)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name, None) or getattr(self._default, name)


def render_page(template: str, language: str, context: dict[str, Any]) -> bytes:
    """A template in a language, as bytes."""
    environment = _environment(language)
    return environment.get_template(template).render(context).encode()


def _languages(pool: PoolView) -> tuple[str, ...]:
    return pool.languages or ("en",)


class _Tongue:
    """A pool in one language: what its pages share. Kept while pages of the same pool follow each other."""

    def __init__(self, site: SiteView, pool: PoolView, language: str) -> None:
        self.site, self.pool, self.language = site, pool, language
        text = self.text = words(language)
        self.figures = Figures(pool, text)
        self.to = Addresses(pool, language)
        self.context: dict[str, Any] = {
            "site": site,
            "pool": pool,
            "language": language,
            "home": prefix(site.languages, language) if language in site.languages else "/",
            "to": self.to,
            "figures": self.figures,
            "tz": pool.time_zone,
            "accent": accent(pool),
            "person": _person,
            "people": {},
            "date": lambda at: text.date_at(at, pool.time_zone),
            "short_date": lambda at: text.short_day(day_of(at, pool.time_zone)),
            "moment": lambda at: text.moment_at(at, pool.time_zone),
            "since": None if pool.last_closing is None else text.day_month(day_of(pool.last_closing, pool.time_zone)),
        }

    @cached_property
    def rules(self) -> _Rules:
        """The rule system's template, for pages whose people it is told one by one."""
        return _Rules(self.language, self.pool.system, self.context)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The newest settings."""
        return _settings(self.pool.settings_at())

    @cached_property
    def lines(self) -> Lines:
        """Writes the lines of its lists."""
        return Lines(self.figures, self.to, self.rules)

    @cached_property
    def forms(self) -> dict[Hashable, list[bytes]]:
        """Pages of lists, cut at the marks in place of number, pager and lines, by all else that tells them apart."""
        return {}


class _Number(int):
    """A page's number that prints as a mark, so that one page serves as a form for all that follow it."""

    def __str__(self) -> str:
        return _NUMBER

    def __format__(self, _: str) -> str:
        return _NUMBER


_NUMBER, _PAGER, _ROWS = (f"-{name}-{token_hex(16)}-" for name in ("number", "pager", "rows"))
"""Marks in forms; no name can hold them, as nobody knows them."""
_MARKS = re.compile(f"({_NUMBER}|{_PAGER}|{_ROWS})")
_FORM = _Number(2)
MOST_FORMS = 64

_kept: list[_Tongue] = []


def _tongue(site: SiteView, pool: PoolView, language: str) -> _Tongue:
    """A pool in a language; the one of the page before where it is the same."""
    global _kept
    kept = [one for one in _kept if one.pool is pool and one.site is site]
    found = next((one for one in kept if one.language == language), None)
    if found is None:
        found = _Tongue(site, pool, language)
        _kept = [*kept, found]
    return found


def _pool_pages(
    site: SiteView,
    pool: PoolView,
    template: str,
    where: Callable[[Addresses], str],
    make: Callable[[_Tongue], dict[str, Any]],
) -> Iterator[Page]:
    """A page of a pool in each of its languages."""
    alternates = [(language, words(language).name, where(Addresses(pool, language))) for language in _languages(pool)]
    for language, _, address in alternates:
        tongue = _tongue(site, pool, language)
        context = {**tongue.context, "address": address, "alternates": alternates, **make(tongue)}
        # Where a page has people of its own, so must the template that names them.
        context["rules_of"] = _Rules(language, pool.system, context) if context["people"] else tongue.rules
        yield Page(key(address), HTML, render_page(template, language, context))


def pages_needed(players: int) -> int:
    """How many pages a list of so many players has; at least one."""
    return max(1, -(-players // PAGE_SIZE))


# -- home ----------------------------------------------------------------------------------------------------------


def home_pages(site: SiteView) -> Iterator[Page]:
    """The home page in every language, ``404.html``, the desk, ``site.json``, ``robots.txt``. Written last of all."""
    from site_builder.desk import desk_pages  # it is made with what stands here

    alternates = [(code, words(code).name, prefix(site.languages, code)) for code in site.languages]
    for language, _, address in alternates:
        text = words(language)
        pools = []
        for summary in site.pools:
            if not summary.sitemaps:
                continue  # opened, and its pages are not there yet
            shown = language if language in summary.languages else next(iter(summary.languages), "en")
            pool = PoolView(
                summary.id,
                summary.name,
                summary.system,
                summary.time_zone,
                summary.languages,
                ({"from": "1900-01-01"},),
                0,
            )
            figures = Figures(pool, text)
            about = _Rules(language, summary.system, {"figures": figures, "pool": pool})
            to = Addresses(pool, shown)
            rows = Lines(figures, to, about).rows(summary.leaders)
            pools.append((summary, to, accent(summary), rows, figures, about))
        context = {
            "site": site,
            "language": language,
            "home": address,
            "address": address,
            "alternates": alternates,
            "accent": 0,
            "pool": None,
            "pools": pools,
            "short_day": lambda at, tz, text=text: text.short_day(day_of(at, tz)),
        }
        yield Page(key(address), HTML, render_page("home.html", language, context))
        if address == "/":
            yield Page("404.html", HTML, render_page("404.html", language, {**context, "alternates": []}))
    yield from desk_pages(site)
    yield data.site_json(site)
    robots = f"User-agent: *\nAllow: /\nSitemap: {site.origin}/sitemap.xml\n"
    yield Page("robots.txt", "text/plain; charset=utf-8", robots.encode())


# -- lists ---------------------------------------------------------------------------------------------------------


def _list_pages(
    site: SiteView,
    pool: PoolView,
    template: str,
    where: Callable[[Addresses, int], str],
    make: Callable[[_Tongue], tuple[Markup, dict[str, Any]]],
    number: int,
    pages: int,
) -> Iterator[Page]:
    """A page of a long list in every language. From the second on they differ in number, pager and lines alone, so what
    is around these is rendered once: one more game moves hundreds of pages.

    Args:
        make: lines, and what else the template asks for.
    """
    for language in _languages(pool):
        tongue = _tongue(site, pool, language)
        rows, context = make(tongue)
        turn = pager(tongue.text, number, pages, partial(where, tongue.to))
        if number == 1:
            body = _list_form(tongue, template, where, {**context, "number": 1, "pages": pages}, rows, turn).encode()
        else:
            known = (template, where(tongue.to, 1), pages, *sorted(context.items(), key=itemgetter(0)))
            form = tongue.forms.get(known)
            if form is None:
                if len(tongue.forms) >= MOST_FORMS:
                    tongue.forms.clear()
                marked = {**context, "number": _FORM, "pages": pages}
                whole = _list_form(tongue, template, where, marked, Markup(_ROWS), Markup(_PAGER))  # noqa: S704
                form = tongue.forms[known] = [part.encode() for part in _MARKS.split(whole)]
            filled = {_NUMBER.encode(): str(number), _PAGER.encode(): turn, _ROWS.encode(): rows}
            body = b"".join(filled[part].encode() if part in filled else part for part in form)
        yield Page(key(where(tongue.to, number)), HTML, body)


def _list_form(
    tongue: _Tongue,
    template: str,
    where: Callable[[Addresses, int], str],
    context: Mapping[str, Any],
    rows: Markup,
    turn: Markup,
) -> str:
    pool, number = tongue.pool, context["number"]
    found = [(code, words(code).name, where(Addresses(pool, code), number)) for code in _languages(pool)]
    more = {
        "address": where(tongue.to, number),
        "alternates": found,
        "rules_of": tongue.rules,
        "settings": tongue.settings,
    }
    whole = {**tongue.context, **context, **more, "rows": rows, "pager": turn}
    return _environment(tongue.language).get_template(template).render(whole)


def list_pages(
    site: SiteView,
    pool: PoolView,
    standings: Sequence[Standing],
    number: int = 1,
    pages: int = 1,
    *,
    variant: str = "main",
    variants: Sequence[str] = (),
    recent: Sequence[GameLine] = (),
    live: Sequence[GameLine] = (),
    around: tuple[Standing | None, Standing | None] = (None, None),
) -> Iterator[Page]:
    """A page of the list in every language, and its JSON.

    Args:
        standings: the players of this page, at most ``PAGE_SIZE``.
        variant: ``main``, or a list apart: ``new``, ``established``, ``inactive``, ``unlisted`` (too few games).
        variants: those of the lists apart that exist, for the tabs.
        recent: the newest games, on page 1.
        live: games being played now, on page 1.
        around: the last player of the page before and the first of the page after, so that ratings that print alike
            on both sides of the cut are told apart.
    """
    first = variant == "main" and number == 1

    def make(tongue: _Tongue) -> tuple[Markup, dict[str, Any]]:
        movement = tongue.context["since"] is not None and variant in MOVING
        rows, decimals = tongue.lines.of_list(standings, around, variant=variant, movement=movement)
        return rows, {
            "decimals": decimals,
            "movement": movement,
            "variant": variant,
            "variants": tuple(variants),
            "recent": recent if first else (),
            "live": live if first else (),
            "all_new": all_new,
        }

    all_new = _all_new(standings)
    yield data.standings_json(pool, standings, number, pages, variant)
    yield from _list_pages(site, pool, "list.html", lambda to, page: to.list(page, variant), make, number, pages)


def _all_new(standings: Sequence[Standing]) -> bool:
    """Whether the new stand in the main list, for want of others."""
    return any(not line.apart and line.figures.get("class") == "new" for line in standings)


def embed_pages(site: SiteView, pool: PoolView, standings: Sequence[Standing]) -> Iterator[Page]:
    """``/embed/{pool}/``: the first players in a page to put into another site's frame."""

    def make(tongue: _Tongue) -> dict[str, Any]:
        return {"rows": tongue.lines.rows(standings)}

    def where(to: Addresses) -> str:
        return prefix(_languages(pool), to.language) + f"embed/{pool.id}/"

    yield from _pool_pages(site, pool, "embed.html", where, make)


def month_pages(site: SiteView, pool: PoolView, month: MonthPage) -> Iterator[Page]:
    """A page of a month's list. JSON and CSV hold the whole list: ``data.month_json``, ``data.month_csv``."""

    def make(tongue: _Tongue) -> dict[str, Any]:
        lines = tongue.lines
        groups = lines.of_month(month.standings)
        return {
            "month": month,
            "groups": [(apart, rows) for apart, rows, _ in groups],
            "settings": _settings(pool.settings_at(month.rules)),
            "all_new": _all_new(month.standings),
            "decimals": any(decimals for _, _, decimals in groups),
            "number": month.page,
            "pages": month.pages,
            "pager": pager(tongue.text, month.page, month.pages, partial(tongue.to.month, month.month)),
        }

    yield from _pool_pages(site, pool, "month.html", lambda to: to.month(month.month, month.page), make)


def label_pages(site: SiteView, pool: PoolView, label: LabelPage) -> Iterator[Page]:
    """A page of the list of a club, group, tournament or year."""

    name = f"{label.kind}:{label.id}"

    def make(tongue: _Tongue) -> tuple[Markup, dict[str, Any]]:
        lines = tongue.lines
        rows, decimals = lines.of_label(label, name, tallied=tallied, points=beside)
        return rows, {
            "kind": label.kind,
            "name": label.name,
            "one_year": label.year,
            "years": label.years,
            "games": label.games,
            "games_total": label.games_total,
            "label_key": name,
            "gainers": tuple(lines.rows(label.gainers)),
            "rounds": rounds,
            "base": label.id.partition(":")[0],
            "decimals": decimals,
            "tallied": tallied,
            "points": beside,
        }

    def where(to: Addresses, page: int) -> str:
        return to.label(label.kind, label.id, page)

    records = [record for line in label.standings if len(record := line.labels.get(name, ())) == RECORD]
    tallied = any(map(itemgetter(4), records)) or any(map(itemgetter(5), records))
    beside = any(map(itemgetter(7), records))
    rounds = _by_round(label.games)
    yield from _list_pages(site, pool, "label.html", where, make, label.page, label.pages)


def _by_round(games: Sequence[GameLine]) -> tuple[tuple[int | None, list[GameLine]], ...]:
    """Games by round, ascending; those of no round last."""
    found: dict[int | None, list[GameLine]] = {}
    for game in games:
        found.setdefault(game.round, []).append(game)
    return tuple(sorted(found.items(), key=lambda entry: (entry[0] is None, entry[0] or 0)))


def best_pages(site: SiteView, pool: PoolView, best: Sequence[BestEver]) -> Iterator[Page]:
    """The best ratings that anybody ever had, with their dates; equal ones share a place.

    Args:
        best: the first ``PAGE_SIZE`` players, or all where there are fewer.
    """
    places: list[int] = []
    for number, line in enumerate(best, 1):
        shared = number > 1 and line.rating == best[number - 2].rating
        places.append(places[-1] if shared else number)

    def make(_: _Tongue) -> dict[str, Any]:
        return {"best": list(zip(places, best, strict=True)), "first": len(best) >= PAGE_SIZE}

    yield from _pool_pages(site, pool, "best.html", lambda to: to.section("best"), make)


def index_pages(site: SiteView, pool: PoolView, index: IndexPage) -> Iterator[Page]:
    """All lists of the pool."""
    yield from _pool_pages(site, pool, "lists.html", lambda to: to.section("lists"), lambda _: {"index": index})


# -- players and games ---------------------------------------------------------------------------------------------


def player_pages(site: SiteView, pool: PoolView, page: PlayerPage) -> Iterator[Page]:
    """A player's page in every language, his JSON and his feed. Says nothing that another's game would change."""

    def make(tongue: _Tongue) -> dict[str, Any]:
        text, figures = tongue.text, tongue.figures
        bands = [(band.lower, band.upper, figures.band_name(band)) for band in pool.bands]
        chart = charts.line_chart(
            [(at, rating) for at, rating, _ in page.series], figures.unit, pool.time_zone, text.months_short, bands
        )
        about = {
            "@context": "https://schema.org",
            "@type": "Person",
            "name": page.standing.name,
            "url": site.origin + tongue.to.player(page.standing.player),
            "memberOf": [{"@type": "Organization", "name": name} for _, name in page.clubs],
        }
        return {"page": page, "standing": page.standing, "chart": chart, "person_ld": htmlsafe_json_dumps(about)}

    handle = page.standing.player
    yield data.player_json(pool, page)
    if pool.pictures:
        text = Figures(pool, words("en")).show((page.standing.rating, page.standing.index)).replace(" ", "")
        body = picture.of_player(text, [(at, rating) for at, rating, _ in page.series], accent(pool))
        yield Page(f"{pool.id}/players/{handle}.png", PNG, body)
    first = _languages(pool)[0]
    to, figures = Addresses(pool, first), Figures(pool, words(first))
    entries = [
        {
            "title": f"{figures.show(line.after)} ({figures.change(line.before, line.after)})",
            "address": to.game(line.club, line.game_id) if line.club and line.game_id else to.player(handle),
            "id": f"{to.player(handle)}#{line.at}-{line.kind}-{line.club or ''}-{line.game_id or ''}",
            "at": iso(line.at),
        }
        for line in page.history[:30]
        if line.kind != "start"
    ]
    yield _feed(
        site,
        first,
        f"{pool.id}/players/{handle}/feed.xml",
        f"{page.standing.name} – {pool.name}",
        to.player(handle),
        entries,
    )
    # Last, as it links to the others.
    yield from _pool_pages(site, pool, "player.html", lambda to: to.player(handle), make)


def _explained(rules_of: _Rules, changes: Sequence[GameChange]) -> list[tuple[list[GameChange], Markup]]:
    """The changes with their explanations; players whom the same words explain (partners, mostly) stand together."""
    told: list[tuple[list[GameChange], Markup]] = []
    for change in changes:
        text = Markup(rules_of.explain(change, change.explanation))  # noqa: S704 - made by an escaping template
        for others, known in told:
            if known == text and others[0].kind == change.kind:
                others.append(change)
                break
        else:
            told.append(([change], text))
    return told


def game_pages(site: SiteView, pool: PoolView, game: GamePage) -> Iterator[Page]:
    """A game with the explanation of every change, in every language."""

    def make(_: _Tongue) -> dict[str, Any]:
        number = game.rules % len(pool.rules)
        return {
            "game": game,
            "explained": _explained,
            "people": game.people,
            "rules": pool.rules[number],
            "rules_number": number + 1,
            "settings": _settings(pool.settings_at(number)),
        }

    yield from _pool_pages(site, pool, "game.html", lambda to: to.game(game.club, game.game_id), make)


# -- the rest ------------------------------------------------------------------------------------------------------


def changes_pages(site: SiteView, pool: PoolView, notes: Sequence[ChangeNote]) -> Iterator[Page]:
    """Corrections, voids, merges with their reasons, newest first."""
    yield from _pool_pages(site, pool, "changes.html", lambda to: to.section("changes"), lambda _: {"notes": notes})


def _settings(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json")


def rules_pages(site: SiteView, pool: PoolView) -> Iterator[Page]:
    """The rules in words and formulas, every number from the pool's settings, and how they changed over time."""

    def make(_: _Tongue) -> dict[str, Any]:
        dated = [(entry["from"], _settings(pool.settings_at(number))) for number, entry in enumerate(pool.rules)]
        return {"dated": dated, "settings": dated[pool.present][1]}

    yield from _pool_pages(site, pool, "rules.html", lambda to: to.section("rules"), make)


def calculator_pages(site: SiteView, pool: PoolView) -> Iterator[Page]:
    """The calculator: works with a script; without it the page explains the way by the API."""

    def make(tongue: _Tongue) -> dict[str, Any]:
        settings = _settings(pool.settings_at(pool.present))
        return {
            "settings": settings,
            "settings_json": json.dumps(settings, ensure_ascii=False, separators=(",", ":")),
            "script": asset(f"calculator/{pool.system}.js"),
            "start": tongue.figures.first(pool.rule_system.start(None, pool.settings_at()).rating),
            "start_index": pool.rule_system.start(None, pool.settings_at()).index,
        }

    yield from _pool_pages(site, pool, "calculator.html", lambda to: to.section("calculator"), make)


def statistics_pages(site: SiteView, pool: PoolView, page: StatisticsPage) -> Iterator[Page]:
    """Ratings spread out, activity by month, and how well the ratings foretell results."""
    honesty = statistics.honesty(page.scores)

    def make(tongue: _Tongue) -> dict[str, Any]:
        text, figures = tongue.text, tongue.figures
        spread = statistics.distribution(page.ratings, figures.unit)
        drawn = [(text.number(low, group=False), count) for low, count in spread]
        months = [(text.short_month(month), games) for month, games, _ in page.activity[-36:]]
        return {
            "page": page,
            "spread": drawn,
            "spread_chart": charts.bars(drawn),
            "activity_chart": charts.bars(months, first=_month_number(page.activity[-36:])),
            "honesty": honesty,
        }

    yield from _pool_pages(site, pool, "statistics.html", lambda to: to.section("statistics"), make)


def _month_number(activity: Sequence[tuple[str, int, int]]) -> int:
    """Months since the year 0, of the first: January is a multiple of twelve."""
    return int(activity[0][0][:4]) * 12 + int(activity[0][0][5:]) - 1 if activity else 0


def stub_page(site: SiteView, pool: PoolView, path: str) -> Page:
    """What stands at a page's place before the page itself: other pages may link to it already."""
    roots = [Addresses(pool, language).pool.removeprefix("/") for language in _languages(pool)]
    root = next(root for root in roots if path.startswith(root))
    below = path.removeprefix(root).removesuffix("index.html")
    pages = _pool_pages(site, pool, "stub.html", lambda to: to.pool + below, lambda _: {"alternates": ()})
    return next(page for page in pages if page.path == path)


def ledger_pages(site: SiteView, pool: PoolView, ledger: LedgerPage) -> Iterator[Page]:
    """How to recompute the ratings, and the files that it takes."""
    yield from _pool_pages(site, pool, "ledger.html", lambda to: to.section("ledger"), lambda _: {"ledger": ledger})


def _feed(
    site: SiteView, language: str, path: str, title: str, address: str, entries: Sequence[Mapping[str, str]]
) -> Page:
    updated = max((entry["at"] for entry in entries), default="1970-01-01T00:00:00Z")
    context = {"site": site, "path": path, "title": title, "address": address, "entries": entries, "updated": updated}
    return Page(path, ATOM, render_page("feed.xml", language, context))


def picture_page(pool: PoolView, ratings: Sequence[int]) -> Page:
    """``/{pool}/picture.png`` for shared links: how the ratings are spread. Rewritten with the whole-pool files."""
    spread = statistics.distribution(ratings, Figures(pool, words("en")).unit)
    return Page(f"{pool.id}/picture.png", PNG, picture.of_pool([count for _, count in spread], accent(pool)))


def feed_pages(
    site: SiteView, pool: PoolView, games: Sequence[GameLine], months: Iterable[tuple[str, int]] = ()
) -> Iterator[Page]:
    """``/{pool}/feed.xml``: the newest games and the months' lists.

    Args:
        months: (month, instant of its closing).
    """
    first = _languages(pool)[0]
    text, to = words(first), Addresses(pool, first)
    entries = [
        {
            "title": ", ".join(
                game.people[player].name or player
                for player in pool.rule_system.players(dict(game.content))
                if player in game.people
            ),
            "address": to.game(game.club, game.game_id),
            "id": to.game(game.club, game.game_id),
            "at": iso(game.at),
        }
        for game in games
    ] + [
        {"title": text.month(month), "address": to.month(month), "id": to.month(month), "at": iso(at)}
        for month, at in months
    ]
    entries.sort(key=lambda entry: (entry["at"], entry["id"]), reverse=True)
    yield _feed(site, first, f"{pool.id}/feed.xml", pool.name, to.pool, entries[:50])
