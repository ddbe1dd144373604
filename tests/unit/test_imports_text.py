import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.imports import COLUMNS, Roster, column_of, match_key, match_name, neutralise, restore, search_key

CELLS = st.text(max_size=30) | st.text(alphabet="'=+-@\t\rab", max_size=8)


@given(CELLS)
def test_restore_is_the_exact_inverse_of_neutralise(cell):
    assert restore(neutralise(cell)) == cell


@given(CELLS)
def test_a_neutralised_cell_is_never_a_formula(cell):
    assert neutralise(cell)[:1] not in ("=", "+", "-", "@", "\t", "\r")


def test_a_name_with_an_apostrophe_stays():
    assert neutralise("'t Hooft") == restore("'t Hooft") == "'t Hooft"
    assert neutralise("=1+1") == "'=1+1"
    assert restore("'=1+1") == "=1+1"


@given(st.text(max_size=40))
def test_keys_are_idempotent(text):
    assert match_key(match_key(text)) == match_key(text)
    assert search_key(search_key(text)) == search_key(text)


@given(st.text(max_size=40))
def test_match_key_does_not_see_the_form_of_unicode(text):
    assert match_key(unicodedata.normalize("NFD", text)) == match_key(text)


@pytest.mark.parametrize(
    ("typed", "key"),
    [("Þórð", "thord"), ("Søren", "soren"), ("Strauß", "strauss"), ("STRAUẞ", "strauss"), ("Łukasz", "lukasz"),
     ("Ægir", "aegir"), ("Đorđe", "dorde"), ("  José   ", "jose"), ("O’Neill", "o'neill"), ("İpek", "ipek")],
)  # fmt: skip
def test_search_key(typed, key):
    assert search_key(typed) == key


ROSTER = [("alex", "Alex Frei"), ("a2", "Alex Meier"), ("a3", "alex  meier"), ("thord", "Þórð"), ("frei", "a2")]


@pytest.mark.parametrize(
    ("text", "kind", "handles"),
    [("ALEX", "one", ("alex",)), (" alex frei ", "one", ("alex",)), ("Alex Meier", "several", ("a2", "a3")),
     ("a2", "one", ("a2",)), ("Þórð", "one", ("thord",)), ("Þo\u0301rð", "one", ("thord",)), ("thor", "none", ()),
     ("Thord Nobody", "none", ()), ("", "none", ()), ("Frei, Alex", "one", ("alex",)), ("ａｌｅｘ", "one", ("alex",))],
)  # fmt: skip
def test_match_name(text, kind, handles):
    found = match_name(text, ROSTER)
    assert (found.kind, found.handles) == (kind, handles)
    assert found == Roster(ROSTER).match(text)


@pytest.mark.parametrize(
    ("heading", "column"),
    [("Game ID", "game_id"), ("DATUM", "date"), ("Date", "date"), ("Data", "date"), ("jour", "date"),
     ("Uhrzeit", "time"), ("heure", "time"), ("ora", "time"), ("Début", "started"), ("Started at", "started"),
     ("Gruppe", "group"), ("groupe", "group"), ("gruppo", "group"), ("Turnier", "tournament"), ("torneo", "tournament"),
     ("Runde", "round"), ("ronde", "round"), ("turno", "round"), ("Bemerkung", "note"), ("osservazioni", "note"),
     ("Team 1 Spieler 2", "team1_player2"), ("Équipe 2 - Joueur 1", "team2_player1"),
     ("squadra_1_giocatore_2", "team1_player2"), ("Spieler 2 Team B", "team2_player2"), ("T2P1", "team2_player1"),
     ("Sieger", "winner"), ("vainqueur", "winner"), ("Vincitore", "winner"), ("Striche Team 2", "striche2"),
     ("tratti 1", "striche1"), ("Punkte A", "points1"), ("punti 2", "points2"), ("Weiß", "player1"),
     ("Noirs", "player2"), ("nero", "player2"), ("Wetter", None), ("", None)],
)  # fmt: skip
def test_headings_in_four_languages(heading, column):
    assert column_of(heading) == column


def test_every_column_is_called_by_its_own_name():
    assert [column_of(name) for name in COLUMNS] == list(COLUMNS)
