"""The collector of garbage, out of the way of a list of 100,000 rows.

It looks through everything that lives, again and again while more is made, and finds nothing in a list: a fifth of the
time of one more game. Where many pages are made it is called by hand, and looks at what is new since the last time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_off() -> Iterator[None]:
    """Do not collect by itself meanwhile. What is left then counts as old: it is not looked through at once."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # into the oldest generation
        if was_on:
            gc.enable()


def sweep() -> None:
    """Collect what was dropped since the last sweep; what is left is not looked at again until the end."""
    gc.collect()
    gc.freeze()
