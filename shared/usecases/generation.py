"""Writing a new generation of a pool's ratings: several transactions at a time, resumable, harmless when overtaken.

A replay's writes come in one order, that of its plan; how many of them are made is kept beside the claim (``REPLAY``),
and tells others that the run is alive. Rated rows go in transactions that several threads send: each row carries a
condition of its own (``store.change_operation``), so they need not touch the cursor, on which they would wait for each
other. Pointers go as plain batches: one too many leads nowhere. Everything else, of which there is less, goes one
transaction after another, each of which checks the claim.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from shared.store.rated import Change, View, change_operation
from shared.store.table import TRANSACTION_ITEMS, Busy, Check, ConditionFailed, Item, Key, Operation, Put, Table

REPORT_WRITES = 2_000
"""How far a long replay is is written down after so many writes, ..."""
REPORT_SECONDS = 0.5
"""... and at least so often, so that nobody takes the run for dead while it reads and folds."""
POINTERS_AT_ONCE = 500
"""Rows are sent when so many pointers wait with them."""
PATIENCE = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before a transaction that the table did not take is sent again; then the run ends, and the next one
goes on."""


class Overtaken(Exception):
    """Another run has moved the pool's cursor; read again."""


def progress_key(pool: str) -> Key:
    """How far the replay of a pool is that is being written."""
    return f"POOL#{pool}", "REPLAY"


def progress(pool: str, generation: int, done: int, beat: int) -> Put:
    """How far it is. ``beat``: another number each time, so that it is seen to be alive."""
    pk, sk = progress_key(pool)
    return Put({"pk": pk, "sk": sk, "generation": generation, "done": done, "beat": beat})


@dataclass
class _Sending:
    """Rows, and pointers to them, that are sent together."""

    rows: list[Operation]
    pointers: list[Item]
    writes: int
    """How far the plan is written once these are."""


def _patiently(write: Callable[[], None]) -> bool:
    """Do what may be done twice until the table takes it; whether it had to be asked again."""
    for number in range(len(PATIENCE) + 1):
        try:
            write()
            break
        except ConditionFailed:
            raise Overtaken from None
        except Busy:
            if number == len(PATIENCE):
                raise
            time.sleep(PATIENCE[number])
    return number > 0


class GenerationWriter:
    """Writes a plan from where it stands.

    Args:
        fence: checks that the claim is still this run's.
        done: how many writes of the plan were made before.
        at_once: transactions sent at a time; 1: in this thread.
    """

    def __init__(
        self, table: Table, pool: str, generation: int, fence: Check, *, view: View, done: int, beat: int, at_once: int
    ) -> None:
        self.table, self.pool, self.generation, self.fence, self.view = table, pool, generation, fence, view
        self.done = done
        """Writes made, all that come before them in the plan included."""
        self.transactions = 0
        self._beat = beat
        self._planned = 0
        self._next = _Sending([], [], 0)
        self._sent: deque[tuple[Future[bool], _Sending]] = deque()
        self._threads = ThreadPoolExecutor(at_once) if at_once > 1 else None
        self._most = self._width = at_once
        self._reported, self._reported_at = done, time.monotonic()

    def change(self, change: Change, pointers: Sequence[Key]) -> None:
        """A rated row and the pointers to it, next in the plan.

        Raises:
            Overtaken: the claim is no longer this run's.
            Busy: the table takes no more; what was written stands.
        """
        if self._write_of_plan() and change.beside != self.generation:
            self._next.rows.append(change_operation(change, self.view, self.generation))
        for pk, sk in pointers:
            if self._write_of_plan():
                self._next.pointers.append({"pk": pk, "sk": sk})
        if len(self._next.rows) >= TRANSACTION_ITEMS or len(self._next.pointers) >= POINTERS_AT_ONCE:
            self._send()
        self.alive()

    def _write_of_plan(self) -> bool:
        """Count a write; whether it is still to be made."""
        self._planned += 1
        self._next.writes = self._planned
        return self._planned > self.done

    def alive(self) -> None:
        """To be called now and then: writes down how far it is when it is time to."""
        late = time.monotonic() - self._reported_at > REPORT_SECONDS
        if late or self.done - self._reported >= REPORT_WRITES:
            self._commit([])

    def all_sent(self) -> None:
        """Wait until all rows so far are written, and write that down."""
        self._send()
        while self._sent:
            self._taken()
        self._commit([])

    def one_by_one(self, operations: Iterable[Operation]) -> None:
        """What may only be written while the claim holds, next in the plan. All rows are written before."""
        for operation in operations:
            if self._write_of_plan():
                self._next.rows.append(operation)
            if len(self._next.rows) >= TRANSACTION_ITEMS - 2:
                self._commit_next()
        self._commit_next()

    def _commit_next(self) -> None:
        if self._next.rows:
            self.done = self._next.writes
            self._commit(self._next.rows)
            self._next = _Sending([], [], self._planned)

    def close(self) -> None:
        """Begin nothing more, and wait for what is on its way."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    # -- rows ----------------------------------------------------------------------------------------------------
    def _send(self) -> None:
        sending, self._next = self._next, _Sending([], [], self._planned)
        if not sending.rows and not sending.pointers:  # all of it was there: done once what was sent before is
            if self._sent:
                self._sent[-1][1].writes = sending.writes
            else:
                self.done = max(self.done, sending.writes)
            return
        if self._threads is None:
            self._write(sending)
            self._wrote(sending, throttled=False)
            return
        self._sent.append((self._threads.submit(self._write, sending), sending))
        while len(self._sent) > self._width:
            self._taken()

    def _taken(self) -> None:
        """Wait for the oldest that was sent."""
        future, sending = self._sent.popleft()
        self._wrote(sending, throttled=future.result())

    def _wrote(self, sending: _Sending, *, throttled: bool) -> None:
        self.transactions += 1
        self.done = max(self.done, sending.writes)
        # Half as many at a time when the table throttles, one more after each that it takes: others write too.
        self._width = max(1, self._width // 2) if throttled else min(self._most, self._width + 1)

    def _write(self, sending: _Sending) -> bool:
        """Write rows and pointers; whether the table had to be asked again. Touches nothing of the run's own."""

        def write() -> None:
            self.table.batch_write(sending.pointers)
            if sending.rows:
                self.table.transact(sending.rows)

        return _patiently(write)

    # -- under the claim -----------------------------------------------------------------------------------------
    def _commit(self, operations: Sequence[Operation]) -> None:
        """Write these and how far it is, if the claim still holds."""
        self._beat += 1
        told = progress(self.pool, self.generation, self.done, self._beat)
        _patiently(lambda: self.table.transact([self.fence, told, *operations]))
        self.transactions += 1
        self._reported, self._reported_at = self.done, time.monotonic()
