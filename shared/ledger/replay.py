"""A ledger folded whole: what anybody can do with the published segments, offline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from shared.ledger.events import Event
from shared.ledger.fold import Closed, Fold, GameRef, Held, Rated, Reset, Start, Story
from shared.ledger.rules import DatedRules
from shared.ledger.segments import Segment, Source, parts_of
from shared.ratings.base import Game, PlayerState, RuleSystem


def follow(aliases: Mapping[str, str]) -> dict[str, str]:
    """Aliases followed through to the last survivor."""
    through: dict[str, str] = {}
    for sid in aliases:
        target, seen = aliases[sid], {sid}
        while target in aliases and target not in seen:
            seen.add(target)
            target = aliases[target]
        if target != sid:
            through[sid] = target
    return through


def rules_in(system: RuleSystem, events: Iterable[Event]) -> tuple[DatedRules, ...]:
    """The newest rules that a ledger tells. Raises ValueError when it tells none."""
    newest: Event | None = None
    for event in events:
        if event.kind == "rules" and (newest is None or event.number >= newest.number):
            newest = event
    if newest is None:
        raise ValueError("the ledger has no rules")
    return tuple(
        DatedRules(entry["from"], system.settings_model.model_validate({k: v for k, v in entry.items() if k != "from"}))
        for entry in newest.value["rules"]
    )


def start_of(system: RuleSystem, rules: tuple[DatedRules, ...], event: Event) -> Start:
    """The carried-over rating of a start event."""
    model = system.start_model.model_validate(event.value)
    return Start(event.player, system.start(model, rules[-1].settings), event.accepted_at)


def story_of(system: RuleSystem, rules: tuple[DatedRules, ...], events: Iterable[Event]) -> Story:
    """What events tell: of each game the newest revision, of each player the newest start, all resets and merges."""
    games: dict[GameRef, Game] = {}
    starts: dict[str, Event] = {}
    resets: list[Reset] = []
    aliases: dict[str, str] = {}
    for event in sorted(events, key=lambda e: e.id):
        if event.game is not None:
            ref = (event.game.club, event.game.game_id)
            if ref not in games or games[ref].revision < event.game.revision:
                games[ref] = event.game
        elif event.kind == "rank-me" and not event.value["on"]:
            resets.append(Reset(event.value["at"], event.player))
        elif event.kind == "start":
            if event.player not in starts or starts[event.player].number <= event.number:
                starts[event.player] = event
        elif event.kind == "merge":
            aliases[event.player] = event.value["into"]
        elif event.kind == "unmerge":
            aliases.pop(event.player, None)
    carried = [start_of(system, rules, event) for event in starts.values()]
    return Story(list(games.values()), carried, resets, follow(aliases))


def fold_ledger(
    system: RuleSystem,
    rules: tuple[DatedRules, ...],
    time_zone: str,
    events: Iterable[Event],
    closed_until: int | None,
) -> tuple[Fold, Iterator[Rated | Closed | Held]]:
    """A fold over a whole ledger and what it tells; run the iterator to its end, then read ``fold.states``."""
    fold = Fold(system, rules, time_zone)
    told = fold.run(story_of(system, rules, events), closings_after=None, closed_until=closed_until)
    return fold, (what for what in told if isinstance(what, Rated | Closed | Held))


def states_of(
    system: RuleSystem,
    rules: tuple[DatedRules, ...],
    time_zone: str,
    events: Iterable[Event],
    closed_until: int | None,
) -> dict[str, PlayerState]:
    """Every player's state after a whole ledger and the closings up to an instant."""
    fold, told = fold_ledger(system, rules, time_zone, events, closed_until)
    for _ in told:
        pass
    return fold.states


def story_of_segments(
    system: RuleSystem,
    rules: tuple[DatedRules, ...],
    segments: Iterable[Segment | Source],
    events: Sequence[Event],
) -> Story:
    """What segments tell, and events beside them.

    Args:
        segments: oldest month first. One that is given as a function is read when the fold reaches its month, and let
            go of when it is through with it (see ``parts_of``).
    """
    told = {(e.game.club, e.game.game_id) for e in events if e.game is not None}
    parts, rest = parts_of([_source(segment) for segment in segments], told)
    # A game told again stands among the plain games of its segment and was left out there: its later event is newer.
    return replace(story_of(system, rules, [*rest, *events]), plain=parts)


def _source(segment: Segment | Source) -> Source:
    return (lambda: segment) if isinstance(segment, Segment) else segment


def states_of_segments(
    system: RuleSystem,
    rules: tuple[DatedRules, ...],
    time_zone: str,
    segments: Iterable[Segment | Source],
    events: Sequence[Event],
    closed_until: int | None,
) -> dict[str, PlayerState]:
    """As ``states_of``, for a ledger that is partly in segments: a fraction of the time."""
    fold = Fold(system, rules, time_zone)
    story = story_of_segments(system, rules, segments, events)
    for _ in fold.stream(story, closings_after=None, closed_until=closed_until):
        pass
    return fold.states
