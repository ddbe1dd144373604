"""The columns of an import and what they are called in English, German, French and Italian."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.imports.text import search_key

COMMON = ("game_id", "date", "time", "started", "group", "tournament", "round", "note")
TEAM_PLAYERS = ("team1_player1", "team1_player2", "team2_player1", "team2_player2")
PAIR_PLAYERS = ("player1", "player2")
COLUMNS = (
    *COMMON, *TEAM_PLAYERS, *PAIR_PLAYERS, "winner", "striche1", "striche2", "points1", "points2",
)  # fmt: skip
"""Every column an import knows, by its name in the API."""

RESULT = "result"
"""A heading that means the winner where a winner is all there is to say; elsewhere a score, and not read."""
REASON = "reason"
"""The column of ``bad_rows_csv``; read over without a word."""


@dataclass(frozen=True)
class Layout:
    """Which columns one rule system's games have. A new rule system needs one entry in ``LAYOUTS``."""

    players: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...]
    """At least one of these sets of columns must be there, whole."""
    optional: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns this system reads, in the order exports write them."""
        wanted = {*COMMON, *self.players, *self.optional, *(name for names in self.needs for name in names)}
        return tuple(name for name in COLUMNS if name in wanted)


LAYOUTS: Mapping[str, Layout] = {
    "spades": Layout(TEAM_PLAYERS, (("winner",),)),
    "jass": Layout(TEAM_PLAYERS, (("striche1", "striche2"), ("points1", "points2")), ("winner",)),
    "bridier": Layout(PAIR_PLAYERS, (("winner",),)),
}

_PLAIN: Mapping[str, str] = {
    "game_id": "gameid id game idgame gamekey gameno gamenumber spielnr spielnummer nopartie npartita "
    "spielid idspiel spielkennung partieid idpartie partiejeu idjeu idpartita "
    "partitaid idgioco",
    "date": "date day dateplayed playedon datum tag spieldatum spieltag datumdesspiels jour datedujeu datedepartie "
    "data giorno datapartita",
    "time": "time timeofday starttime zeit uhrzeit startzeit beginnzeit heure heuredebut ora orario orainizio",
    "started": "started startedat start begin begun beginn begonnen gestartet startam spielbeginn debut commence "
    "commencele inizio iniziata iniziato",
    "group": "group gruppe groupe gruppo",
    "tournament": "tournament event turnier tournoi torneo",
    "round": "round roundno runde rundennr rundennummer ronde tour manche nronde turno giro",
    "note": "note notes comment comments remark remarks bemerkung bemerkungen notiz anmerkung kommentar remarque "
    "remarques commentaire nota osservazione osservazioni commento",
    "winner": "winner outcome wonby sieger siegerin gewinner gewinnerin siegerteam gewinnerteam vainqueur gagnant "
    "gagnante vincitore vincitrice vincente",
    "player1": "player1 playera playerone white spieler1 spielera spielerin1 weiss joueur1 joueura joueuse1 blancs "
    "blanc giocatore1 giocatorea giocatrice1 bianco",
    "player2": "player2 playerb playertwo black spieler2 spielerb spielerin2 schwarz joueur2 joueurb joueuse2 noirs "
    "noir giocatore2 giocatoreb giocatrice2 nero",
    RESULT: "result ergebnis resultat risultato esito",
    REASON: "reason grund motif motivo",
}
_TEAM_WORDS = ("team", "mannschaft", "paar", "equipe", "paire", "squadra", "coppia", "t")
_PLAYER_WORDS = ("player", "spieler", "spielerin", "joueur", "joueuse", "giocatore", "giocatrice", "p", "s", "j", "g")
_STRICHE_WORDS = ("striche", "strich", "marks", "strokes", "traits", "tratti", "righe")
_POINTS_WORDS = ("points", "score", "punkte", "punti", "punteggio")


def _synonyms() -> dict[str, str]:
    found = {word: column for column, words in _PLAIN.items() for word in words.split()}
    for number, letter in (("1", "a"), ("2", "b")):
        for mark in (number, letter):
            for kind, words in (("striche", _STRICHE_WORDS), ("points", _POINTS_WORDS)):
                for word in words:
                    found[word + mark] = kind + number
                    for team in _TEAM_WORDS:
                        found[word + team + mark] = kind + number
                        found[team + mark + word] = kind + number
            for team in _TEAM_WORDS:
                for player in _PLAYER_WORDS:
                    for seat in "12":
                        column = f"team{number}_player{seat}"
                        found[f"{team}{mark}{player}{seat}"] = column
                        found[f"{player}{seat}{team}{mark}"] = column
        for player in _PLAYER_WORDS:
            for seat in "12":
                found[f"{player}{letter}{seat}"] = f"team{number}_player{seat}"
    return found


_NOT_WORD = re.compile(r"[^a-z0-9]")
SYNONYMS: Mapping[str, str] = _synonyms()


def heading_key(text: str) -> str:
    """A heading without case, accents, spaces, underscores and other signs: ``Équipe 1 - Joueur 2``, equipe1joueur2."""
    return _NOT_WORD.sub("", search_key(text[:100]))


def column_of(heading: str) -> str | None:
    """The column a heading names, or None when it names none."""
    return SYNONYMS.get(heading_key(heading))


def known(cells: Iterable[str]) -> int:
    """How many of the cells name a column."""
    return sum(1 for cell in cells if cell and column_of(cell))
