"""Plausible results, made up from a seed: two Schieber clubs, a Spades club, and duels for a Bridier pool.

    world = generate(seed=7, until=dt.date(2026, 11, 29))

The same seed and day give the same world on every machine. Bodies are as API.md has them and valid under the pools'
rules; nobody plays two games at once. Names are invented.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

Json = dict[str, Any]

MONTHS = 14
"""How long the clubs' results go back."""
SCHIEBER_ZONE = "Europe/Zurich"
SPADES_ZONE = "America/Chicago"

_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "þ": "th", "æ": "ae"}

SCHIEBER_NAMES = (
    ("Limmat", (
        "Annelies Bünzli", "Beat Zgraggen", "Céline Dürrenmatt", "Dario Bernasconi", "Elif Çağlar", "Fritz Oechslin",
        "Gian-Andri Caduff", "Hanspeter Nägeli", "Ilona Szabóová", "Jean-François L’Éplattenier", "Käthi Rüegsegger",
        "Luzia Abächerli", "Mirjam Brönnimann", "Nguyễn Thị Ánh Tuyết", "Ottavia Sciarini", "Peter Meier",
        "Maximiliane-Theodora von Hohenstein-Wyttenbach zu Oberdießbach", "Ruedi Söderström-Häfliger",
        "Samira El-Khoury", "Þórdís Ólafsdóttir", "Ueli Zürcher", "Vreni Schüpbach", "Walter Øvergård", "Yvonne Ait",
    )),
    ("Emme", (
        "Adrian Wüthrich", "Barbla Cavegn", "Chioma Ọlátúnjí", "Daniela Lüthi", "Ernst Gfeller", "Françoise Pâquier",
        "Gertrud Zaugg", "Heiri Röthlisberger", "Ivana Živković", "Jürg Gäumann", "Kurt Ischi", "Łukasz Wiśniewski",
        "Margrit Äschlimann", "Noémie Châtelain", "Peter Meier", "Rosmarie Kühni", "Stefan Müller", "Theres Bögli",
    )),
)  # fmt: skip
SPADES_NAMES = (
    "Abigail Thornbury", "Béla Kovács", "Chidi Okonkwo-Fitzgerald", "Dolores Ibáñez", "Evander Quill", "Fatoumata Diop",
    "Grzegorz Brzęczyszczykiewicz", "Hyacinth Bell", "İpek Yıldız", "Jo Li", "Kwame Boateng", "Leilani Kahale",
    "Märta Ljungqvist", "Niamh Ó Súilleabháin", "Oluwaseun Adéyẹmí", "Priya Venkataraman", "Quentin Beaumarchais",
    "Rosalía Peña y Montalbán de la Cruz-Villanueva", "Siân Llewellyn", "Tomás Ferreira", "宮本 はるか",
    "Zoë van der Meer",
)  # fmt: skip


@dataclass(frozen=True)
class ClubPlan:
    """A club: ``PUT /v1/clubs/{id}``."""

    id: str
    name: str


@dataclass(frozen=True)
class PlayerPlan:
    """A player: ``PUT /v1/players/{id}`` with the key of his club."""

    id: str
    name: str
    club: str
    registered_on: str | None = None

    @property
    def body(self) -> Json:
        """The request's body."""
        return {"name": self.name, "clubs": [self.club], "registered_on": self.registered_on}


@dataclass(frozen=True)
class PoolPlan:
    """A pool: ``PUT /v1/pools/{id}``, start ratings carried over, and its games in played order."""

    id: str
    body: Json
    players: tuple[PlayerPlan, ...]
    games: tuple[tuple[str, Json], ...]
    """(club that sends it, body)."""
    starts: dict[str, Json] = field(default_factory=dict)
    """Player → ``start``."""


@dataclass(frozen=True)
class World:
    """Everything that was made up."""

    clubs: tuple[ClubPlan, ...]
    pools: tuple[PoolPlan, ...]

    @property
    def players(self) -> list[PlayerPlan]:
        """Everybody, each once."""
        return list({player.id: player for pool in self.pools for player in pool.players}.values())


def generate(seed: int, until: dt.date) -> World:
    """The clubs' results of the 14 months up to and including a day.

    Args:
        until: the last day on which games are played; a day that is over everywhere, since no game may be in the
            future.
    """
    schieber_clubs = (ClubPlan("limmat", "Jassclub Limmat"), ClubPlan("emme", "Schieberrunde Emme"))
    spades_club = ClubPlan("riverside", "Riverside Spades Club")
    return World(
        (*schieber_clubs, spades_club),
        (
            _schieber(random.Random(f"{seed}/schieber"), until, schieber_clubs),
            _spades(random.Random(f"{seed}/spades"), until, spades_club),
        ),
    )


def generate_duels(seed: int, until: dt.date, count: int = 600) -> World:
    """Duels of a Bridier pool over some five years, in place of a real forum's: overlapping, with idle players.

    Args:
        until: the last day on which a duel ends.
    """
    club = ClubPlan("forum", "Duelling forum")
    return World((club,), (_duels(random.Random(f"{seed}/duels"), until, club, count),))


# -- common ------------------------------------------------------------------------------------------------------
def player_id(name: str, taken: set[str]) -> str:
    """An id made from a name: ASCII, hyphens, at most 40 characters; a namesake gets a number."""
    folded = "".join(_UMLAUTS.get(c, c) for c in name.casefold())
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if c.isascii() and (c.isalnum() or c in " -"))
    base = "-".join(plain.replace("-", " ").split())[:40].strip("-") or "member"
    found, number = base, 2
    while found in taken:
        found, number = f"{base}-{number}", number + 1
    taken.add(found)
    return found


def first_day(until: dt.date, months: int = MONTHS) -> dt.date:
    """The first day of the month so many months before that of ``until``, that month counted."""
    number = until.year * 12 + until.month - 1 - (months - 1)
    return dt.date(number // 12, number % 12 + 1, 1)


def _days(first: dt.date, last: dt.date, weekday: int) -> Iterator[dt.date]:
    """The days of a week from first to last."""
    day = first + dt.timedelta((weekday - first.weekday()) % 7)
    while day <= last:
        yield day
        day += dt.timedelta(7)


def _at(day: dt.date, clock: dt.time, zone: ZoneInfo) -> dt.datetime:
    """A clock time there, as UTC: adding minutes to it is right on every night of the year."""
    return dt.datetime.combine(day, clock, zone).astimezone(dt.UTC)


def _iso(moment: dt.datetime, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).isoformat()


def _tables(dice: random.Random, present: Sequence[str], most: int) -> list[tuple[list[str], list[str]]]:
    """Players drawn to tables of two against two; who is left over watches."""
    order = list(present)
    dice.shuffle(order)
    seated = [order[n : n + 4] for n in range(0, len(order) - 3, 4)][:most]
    return [([a, c], [b, d]) for a, b, c, d in seated]


def _wins(dice: random.Random, skill: dict[str, float], teams: tuple[Sequence[str], Sequence[str]]) -> bool:
    """Whether the first team wins; skills are about normal, luck is larger."""
    difference = sum(skill[p] for p in teams[0]) - sum(skill[p] for p in teams[1])
    return dice.random() < 1 / (1 + math.exp(-0.55 * difference))


def _skills(dice: random.Random, players: Sequence[PlayerPlan]) -> dict[str, float]:
    return {player.id: dice.gauss(0, 1) for player in players}


def _members(club: ClubPlan, names: Sequence[str], taken: set[str], joined: Sequence[str]) -> list[PlayerPlan]:
    return [
        PlayerPlan(player_id(name, taken), name, club.id, joined[number % len(joined)])
        for number, name in enumerate(names)
    ]


# -- Schieber ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Evening:
    """When and how a group of a club meets."""

    club: str
    group: str
    weekday: int
    clock: dt.time
    tables: int
    games: int
    attendance: float
    in_categories: bool


def _schieber(dice: random.Random, until: dt.date, clubs: tuple[ClubPlan, ClubPlan]) -> PoolPlan:
    first = first_day(until)
    taken: set[str] = set()
    joined = [(first + dt.timedelta(days)).isoformat() for days in (-900, -400, -35, 0)]
    members = {
        club.id: _members(club, names, taken, joined) for club, (_, names) in zip(clubs, SCHIEBER_NAMES, strict=True)
    }
    everybody = [player for players in members.values() for player in players]
    skill = _skills(dice, everybody)
    evenings = (
        _Evening(clubs[0].id, "dienstag", 1, dt.time(19, 15), 3, 3, 0.55, in_categories=True),
        _Evening(clubs[0].id, "senioren", 3, dt.time(14), 1, 2, 0.25, in_categories=False),
        _Evening(clubs[1].id, "stammtisch", 4, dt.time(20), 2, 3, 0.55, in_categories=False),
    )
    games: list[tuple[str, Json]] = []
    for evening in evenings:
        ids = [player.id for player in members[evening.club]]
        regulars = ids if evening.group != "senioren" else ids[1::3]
        for day in _days(first, until, evening.weekday):
            if (day.month, day.day) >= (12, 20) or (day.month, day.day) <= (1, 2) or day.month == 7:
                continue  # closed over Christmas and in July
            games += _schieber_evening(dice, skill, evening, day, regulars)
    for number, month in enumerate((5, 10)):
        day = _tournament_day(until, month)
        if first <= day <= until:
            games += _schieber_tournament(dice, skill, clubs[number].id, day, [player.id for player in everybody])
    middle = first_day(until, MONTHS // 2)
    body = {
        "name": "Schieber Mittelland",
        "system": "jass",
        "time_zone": SCHIEBER_ZONE,
        "languages": ["de", "en"],
        "clubs": [club.id for club in clubs],
        "rules": [
            {"from": first.isoformat(), "k": 40, "minimum_games": 3},
            {"from": middle.isoformat(), "k": 32, "minimum_games": 3},
        ],
    }
    starts: dict[str, Json] = {members[clubs[1].id][n].id: {"rating": rating, "games": played}
              for n, rating, played in ((0, 121.5, 64), (3, 93.25, 31), (7, 108, 12))}  # fmt: skip
    return PoolPlan("schieber", body, tuple(everybody), _in_order(games), starts)


def _schieber_evening(
    dice: random.Random, skill: dict[str, float], evening: _Evening, day: dt.date, regulars: Sequence[str]
) -> Iterator[tuple[str, Json]]:
    zone = ZoneInfo(SCHIEBER_ZONE)
    present = [p for p in regulars if dice.random() < evening.attendance]
    if evening.group == "senioren":
        present = present if len(present) >= 4 else list(regulars[:4])
    for number, teams in enumerate(_tables(dice, present, evening.tables), start=1):
        begins = _at(day, evening.clock, zone)
        for game in range(1, evening.games + 1):
            ends = begins + dt.timedelta(minutes=dice.randint(28, 52))
            result = _schieber_result(dice, skill, teams, in_categories=evening.in_categories)
            yield (
                evening.club,
                {
                    "game_id": f"{day.isoformat()}-{evening.group}-t{number}-g{game}",
                    "started_at": _iso(begins, zone),
                    "finished_at": _iso(ends, zone),
                    "group": evening.group,
                    "result": result,
                },
            )
            begins = ends + dt.timedelta(minutes=dice.randint(2, 6))


def _tournament_day(until: dt.date, month: int) -> dt.date:
    """The second Saturday of that month, this year or the last."""
    year = until.year if until.month > month else until.year - 1
    return list(_days(dt.date(year, month, 1), dt.date(year, month, 20), 5))[1]


def _schieber_tournament(
    dice: random.Random, skill: dict[str, float], club: str, day: dt.date, players: Sequence[str]
) -> Iterator[tuple[str, Json]]:
    """Five rounds of all tables at once, partners drawn anew each round."""
    zone = ZoneInfo(SCHIEBER_ZONE)
    present = [p for p in players if dice.random() < 0.6]
    for number in range(1, 6):
        begins = _at(day, dt.time(9, 30), zone) + dt.timedelta(minutes=55 * (number - 1))
        for table, teams in enumerate(_tables(dice, present, 8), start=1):
            yield (
                club,
                {
                    "game_id": f"{day.isoformat()}-r{number}-t{table}",
                    "started_at": _iso(begins, zone),
                    "finished_at": _iso(begins + dt.timedelta(minutes=45), zone),
                    "tournament": f"{club}-cup-{day.year}",
                    "round": number,
                    "result": _schieber_result(dice, skill, teams, in_categories=number == 5),
                },
            )


def _schieber_result(
    dice: random.Random, skill: dict[str, float], teams: tuple[list[str], list[str]], *, in_categories: bool
) -> Json:
    winner = 0 if _wins(dice, skill, teams) else 1
    berg = winner if dice.random() < 0.62 else 1 - winner
    striche: list[dict[str, int]] = [{}, {}]
    for side in (0, 1):
        striche[side] = {"berg": int(side == berg), "sieg": 2 * int(side == winner), "matsch": 0, "schneider": 0,
                         "kontermatsch": 0}  # fmt: skip
        while striche[side]["matsch"] < 3 and dice.random() < (0.34 if side == winner else 0.16):
            striche[side]["matsch"] += 1
    if berg == winner and dice.random() < 0.16:
        striche[winner]["schneider"] = 2
    if dice.random() < 0.02:
        striche[1 - winner]["kontermatsch"] = 2
    if in_categories:
        return {"teams": [list(t) for t in teams], "striche": striche}
    result: Json = {"teams": [list(t) for t in teams], "striche": [sum(s.values()) for s in striche]}
    if dice.random() < 0.3:
        result["winner"] = f"team{winner + 1}"
    return result


# -- Spades ------------------------------------------------------------------------------------------------------
_QUITTERS_REST = dt.timedelta(hours=3)
"""Longer than any ban of the pool's rules: a club does not let a quitter back to the table on the same evening."""


def _spades(dice: random.Random, until: dt.date, club: ClubPlan) -> PoolPlan:
    first = first_day(until)
    joined = [(first + dt.timedelta(days)).isoformat() for days in (-700, -90, -1)]
    players = _members(club, SPADES_NAMES, set(), joined)
    skill = _skills(dice, players)
    games: list[tuple[str, Json]] = []
    for weekday, group in ((2, "wednesday"), (6, "sunday")):
        for day in _days(first, until, weekday):
            if group == "sunday" and day.day > 14:
                continue
            games += _spades_evening(dice, skill, club.id, group, day, [p.id for p in players])
    later = first_day(until, MONTHS - 5)
    body = {
        "name": "Riverside Spades",
        "system": "spades",
        "time_zone": SPADES_ZONE,
        "languages": ["en"],
        "clubs": [club.id],
        "rules": [
            {
                "from": first.isoformat(),
                "opposition": "pairwise",
                "k": {"first": 50, "up_to_games": 50, "then": 30},
                "quit_ban_minutes": 120,
            },
            {"from": later.isoformat(), "opposition": "team_average", "k": 25, "minimum_games": 5},
        ],
    }
    starts: dict[str, Json] = {
        players[1].id: {"rating": 1612, "games": 88},
        players[6].id: {"rating": 1437.5, "games": 20},
    }
    return PoolPlan("spades", body, tuple(players), _in_order(games), starts)


def _spades_evening(
    dice: random.Random, skill: dict[str, float], club: str, group: str, day: dt.date, players: Sequence[str]
) -> Iterator[tuple[str, Json]]:
    zone = ZoneInfo(SPADES_ZONE)
    present = [p for p in players if dice.random() < 0.42]
    away: set[str] = set()
    begins = _at(day, dt.time(19, 0) if group == "wednesday" else dt.time(15, 30), zone)
    for number in range(1, 4):
        longest = begins
        for table, teams in enumerate(_tables(dice, [p for p in present if p not in away], 2), start=1):
            ends = begins + dt.timedelta(minutes=dice.randint(22, 48))
            longest = max(longest, ends)
            substitutes = [p for p in players if p not in present]
            result = _spades_result(dice, skill, teams, begins, ends, substitutes)
            away.update(quit_["player"] for quit_ in result.get("quits", ()))
            body: Json = {
                "game_id": f"{day.isoformat()}-{group}-{number}{'ab'[table - 1]}",
                "started_at": _iso(begins, zone),
                "finished_at": _iso(ends, zone),
                "group": group,
                "result": result,
            }
            if dice.random() < 0.04 and "quits" not in result:
                body["rated"] = False
            yield club, body
        begins = longest + dt.timedelta(minutes=5)


def _spades_result(
    dice: random.Random,
    skill: dict[str, float],
    teams: tuple[list[str], list[str]],
    begins: dt.datetime,
    ends: dt.datetime,
    substitutes: Sequence[str],
) -> Json:
    outcome: str | None = "team1" if _wins(dice, skill, teams) else "team2"
    if dice.random() < 0.015:
        outcome = "draw"
    result: Json = {"teams": [list(t) for t in teams], "outcome": outcome}
    quits: list[Json] = []
    what = dice.random()
    zone = ZoneInfo(SPADES_ZONE)
    span = (ends - begins).total_seconds()
    if what < 0.075:
        side = dice.randrange(2)
        quitters = list(teams[side]) if what < 0.008 else [dice.choice(teams[side])]
        for number, player in enumerate(quitters):
            at = begins + dt.timedelta(seconds=round(span * (0.3 + 0.2 * number + 0.3 * dice.random())))
            quits.append({"player": player, "at": _iso(at, zone)})
            if what > 0.06:  # back at the table within the three minutes of grace: no quit
                back = min(at + dt.timedelta(seconds=dice.randint(20, 180)), ends)
                quits[-1]["back_at"] = _iso(back, zone)
        if len(quitters) == 2:
            result["outcome"] = None
    gone = [quit_["player"] for quit_ in quits if "back_at" not in quit_]
    if gone:
        takes = {"robot": True} if dice.random() < 0.5 or not substitutes else {"player": dice.choice(substitutes)}
        result["substitutes"] = [{"for": gone[0], **takes}]
    if quits:
        result["quits"] = quits
    nils = _spades_nils(dice, skill, teams)
    if nils:
        result["nils"] = nils
    return result


def _spades_nils(dice: random.Random, skill: dict[str, float], teams: tuple[list[str], list[str]]) -> list[Json]:
    nils: list[Json] = []
    for side in (0, 1):
        for bidder in teams[side]:
            if dice.random() > 0.17:
                continue
            opponents = teams[1 - side]
            is_set = dice.random() < 1 / (1 + math.exp(0.6 - 0.3 * sum(skill[p] for p in opponents)))
            nil: Json = {"bidder": bidder, "set": is_set}
            if is_set and dice.random() < 0.7:
                nil["set_by"] = dice.choice(opponents)
            nils.append(nil)
    return nils


# -- duels -------------------------------------------------------------------------------------------------------
def _duels(dice: random.Random, until: dt.date, club: ClubPlan, count: int) -> PoolPlan:
    players = [PlayerPlan(f"d{number:03d}", f"Duellist {number:03d}", club.id) for number in range(1, 61)]
    skill = _skills(dice, players)
    span = 365 * 5
    first = until - dt.timedelta(span)
    career = {}
    for player in players:
        joins = dice.randint(0, span - 200) if dice.random() < 0.7 else 0
        career[player.id] = (joins, joins + dice.randint(100, span))
    games: list[tuple[str, Json]] = []
    for number in range(count):
        begins = span * number // count
        active = [p for p, (joins, leaves) in career.items() if joins <= begins <= leaves]
        if len(active) < 2:
            continue
        a, b = dice.sample(active, 2)
        started = first + dt.timedelta(begins)
        finished = min(started + dt.timedelta(dice.randint(0, 12)), until)
        result: Json = {"players": [a, b]}
        if dice.random() < 0.03:
            result["draw"] = True
        else:
            result["winner"] = a if _wins(dice, skill, ([a, a], [b, b])) else b
        games.append(
            (
                club.id,
                {
                    "game_id": f"duel-{number + 1:04d}",
                    "started_at": f"{started.isoformat()}T00:00:00Z",
                    "finished_at": f"{finished.isoformat()}T23:00:00Z",
                    "distinct": True,
                    "result": result,
                },
            )
        )
    return PoolPlan("forum", duels_pool(first.isoformat(), club.id), tuple(players), _in_order(games))


def duels_pool(first_day_of_rules: str, club: str) -> Json:
    """The body of the Bridier pool that duels go to."""
    return {
        "name": "Forum duels",
        "system": "bridier",
        "time_zone": "UTC",
        "languages": ["en", "fr"],
        "clubs": [club],
        "rules": [{"from": first_day_of_rules}],
    }


def _in_order(games: list[tuple[str, Json]]) -> tuple[tuple[str, Json], ...]:
    def played(game: tuple[str, Json]) -> tuple[Any, ...]:
        body = game[1]
        finished = dt.datetime.fromisoformat(body["finished_at"].replace("Z", "+00:00"))
        return (finished, body.get("round", 0), game[0], body["game_id"])

    return tuple(sorted(games, key=played))
