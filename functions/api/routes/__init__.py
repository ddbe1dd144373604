"""The routes, a module a subject; importing them fills the table."""

from functions.api.routes import clubs, games, imports, players, pools, reading, service

__all__ = ["clubs", "games", "imports", "players", "pools", "reading", "service"]
