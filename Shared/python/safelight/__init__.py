"""A client for a Safelight photo library: requests, a change feed without gaps, and live fetch results.

    from safelight import Library

    with Library() as library:
        page = library.catalog.call("fetch.assets", {"fetch": {"limit": 5}})

        for change in library.changes():  # each change once, in order, also while the change-broker restarts
            print(change["sequence"])

`safelight.aio` has the same interface for asyncio. The only dependency is pyzmq.
"""

from .errors import Expired, SafelightError
from .feed import CaughtUp, Change, Feed
from .live import LiveList, apply_details

__all__ = [
    "CaughtUp", "Change", "Endpoints", "Expired", "Feed", "Library", "LiveList", "SafelightError", "apply_details",
]


def __getattr__(name):
    # Imported on first use: the state machines (`Feed`, `LiveList`) work without pyzmq.
    if name in ("Library", "Endpoints"):
        from . import library
        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
