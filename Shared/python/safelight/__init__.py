"""A Safelight photo library from Python: requests, a change feed without gaps, live fetch results.

    from safelight import Library
    with Library() as library:
        page = library.catalog.call("fetch.assets", {"fetch": {"limit": 5}})
        for change in library.changes():  # each change once, in order, through restarts of the change-broker
            print(change["sequence"])

`safelight.aio` offers the same with asyncio. Only pyzmq is needed.
"""

from .errors import Expired, SafelightError
from .feed import Change, CaughtUp, Feed
from .live import LiveList, apply_details

__all__ = [
    "CaughtUp", "Change", "Expired", "Feed", "Library", "LiveList", "Places", "SafelightError", "apply_details",
]


def __getattr__(name):
    # The state machines need no pyzmq: only what opens sockets does.
    if name in ("Library", "Places"):
        from . import library
        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
