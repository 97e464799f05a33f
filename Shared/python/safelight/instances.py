"""The choice of an instance for each request to a service with several instances."""

import hashlib
import threading
import time
from typing import Any, Dict, Generic, List, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar

from .errors import (
    BusyError, ConnectionLostError, DeadlineExceededError, NotRunningError, SafelightError, UnavailableError,
)

# The methods that change nothing, so that a request may be sent again even if it may have been carried out already.
REPEATABLE = frozenset((
    "image.request", "image.data", "image.frames", "image.sheet", "livePhoto.request",
    "video.playback", "video.asset", "video.read",
    "edits.preview", "edits.compare", "edits.suggest", "edits.history", "edits.describe", "editing.begin",
    "health", "figures",
))
# Seconds for which an instance that did not respond is asked after the others.
ABSENCE = 2.0

# The requests to the catalog that change nothing, so that every catalog of a library can answer them. All others are
# for the catalog that writes.
CATALOG_READS = frozenset((
    "fetch.assets", "fetch.collections", "fetch.lists", "fetch.counts", "fetch.find", "fetch.objects",
    "fetch.keyAssets", "fetch.duplicates", "fetch.can", "ids.toCloud", "ids.toLocal", "changes.details", "details.diff",
    "changes.since", "changes.token", "resource.supports", "quarantine.list", "grants.list", "grants.history",
    "grants.status", "rpc.discover", "health",
))
# Reads that wait, that are expensive, or that concern the memory or the disk of one catalog: they are sent to a second
# catalog only after the first one has failed.
CATALOG_SINGLE_READS = frozenset((
    "fetch.keys", "changes.follow", "transient.create", "transient.release", "edits.status", "jobs.list",
    "library.status", "resource.read", "resource.download", "resource.export", "storage.status", "figures",
))
# The methods of all services that `Library.call` may repeat: those that change nothing. The three excluded reads leave
# something behind each time that they are carried out.
READS = (REPEATABLE | CATALOG_READS | CATALOG_SINGLE_READS | frozenset((
    "feed.head", "feed.since", "fetch.details", "edits.pending", "grants.pending", "cache.status", "video.exportStatus",
))) - {"transient.create", "transient.release", "resource.export"}
# The methods that take a transaction id, under which a request that is repeated is carried out once.
TRANSACTIONS = frozenset((
    "changes.perform", "edits.apply", "edits.copy", "edits.livePhoto", "edits.revert", "edits.undo",
))
# Seconds after which a read is sent to another catalog too.
HEDGING_DELAY = 0.3
# The maximum number of reads of a client that are sent to another catalog too at the same time, so that one slow
# catalog does not double the load of the others.
MAX_HEDGED_READS = 16
# Seconds between two attempts to find the catalog that writes.
WRITER_RETRY_DELAY = 0.1
# Seconds without a response after which a catalog is asked for its health, and seconds for the response to that.
HEALTH_CHECK_DELAY = 1.0
HEALTH_CHECK_TIMEOUT = 2.0
# The errors of a catalog that another one may not have.
ELSEWHERE = frozenset((
    "library_offline", "behind", "missing_resource", "network_access_required", "network_error",
    "handle_expired",  # a transient collection is in the memory of the catalog that created it
))


def is_standby_error(error: SafelightError) -> bool:
    """Returns whether a catalog refused a change because another one writes the library."""
    return error.data.get("standby") is True


def may_be_different_elsewhere(error: SafelightError) -> bool:
    """Returns whether another catalog may answer: this one was lost, does not reach the database, or lacks a file."""
    return (
        isinstance(error, (ConnectionLostError, UnavailableError)) or error.data.get("isStopping") is True
        or is_standby_error(error) or error.name in ELSEWHERE
    )


def decisive_error(failures: Sequence[SafelightError]) -> SafelightError:
    """Returns the error of a request that no instance answered: the first one, but not that of an instance that was
    never there if another one was, which may be restarting."""
    return next((error for error in failures if not isinstance(error, NotRunningError)), failures[0])


class HasAddress(Protocol):
    address: str


Instance = TypeVar("Instance", bound=HasAddress)


def order(addresses: Sequence[str], key: str) -> List[int]:
    """Returns the indexes of addresses, the preferred instance for an asset first: rendezvous hashing.

    All clients that know the same addresses have the same order; each instance is preferred for an equal part of the
    assets, and when one is added or removed only its part moves.
    """

    def weight(index: int) -> Tuple[bytes, str]:
        address = addresses[index]
        return hashlib.sha256(f"{address}\n{key}".encode()).digest()[:8], address

    return sorted(range(len(addresses)), key=weight, reverse=True)


def routing_asset(params: Optional[Mapping[str, Any]]) -> Optional[str]:
    """Returns the asset by which the instance for a request is chosen; None if any will do."""
    values = params or {}
    listed = values.get("assets") or values.get("to") or [None]
    asset = values.get("asset") or listed[0]
    return asset if isinstance(asset, str) else None


class Instances(Generic[Instance]):
    """Chooses the instance for a request, and remembers those that did not respond."""

    def __init__(self, members: Sequence[Instance]) -> None:
        self.members = list(members)
        self._absent_until: Dict[str, float] = {}

    def choose(self, params: Optional[Mapping[str, Any]]) -> List[Instance]:
        """Returns the instances in the order in which they are to be asked."""
        asset = routing_asset(params)
        chosen = self.members
        if asset is not None:
            chosen = [self.members[index] for index in order([one.address for one in self.members], asset)]
        now = time.monotonic()
        return sorted(chosen, key=lambda one: self._absent_until.get(one.address, 0.0) > now)

    def note_error(self, instance: Instance, error: SafelightError, method: Optional[str]) -> bool:
        """Notes an error of an instance.

        Returns whether the request may go to the next one: the instance is lost, and the request was not carried out or
        may be repeated. `method` is None for a request of which the caller has received a part.
        """
        is_stopping = error.data.get("isStopping") is True
        if not is_stopping and not isinstance(error, (ConnectionLostError, UnavailableError)):
            return False
        self._absent_until[instance.address] = time.monotonic() + ABSENCE
        is_unsent = isinstance(error, (BusyError, UnavailableError))
        return is_unsent or method in REPEATABLE

    def mark_present(self, instance: Instance) -> None:
        self._absent_until.pop(instance.address, None)


class CatalogChoice(Generic[Instance]):
    """Chooses the order in which the catalogs of a library are asked; one of them writes."""

    def __init__(self, members: Sequence[Instance]) -> None:
        self.members = list(members)
        # The indexes of the catalog that has answered a read last, and of the one that has accepted a change last.
        self.reader = 0
        self.writer = 0
        self._absent_until: Dict[str, float] = {}
        # The number of current reads, of all threads, that were sent to another catalog too.
        self._hedged_reads = 0
        self._hedging_lock = threading.Lock()

    def order(self, start: int) -> List[int]:
        """Returns the indexes, beginning with `start`; catalogs that recently did not respond come last."""
        indexes = [(start + index) % len(self.members) for index in range(len(self.members))]
        return sorted(indexes, key=self.is_absent)

    def writers(self) -> List[int]:
        """Returns the indexes of the catalogs to ask for a change: those that responded recently, else all."""
        indexes = self.order(self.writer)
        return [index for index in indexes if not self.is_absent(index)] or indexes

    def is_absent(self, index: int) -> bool:
        return self._absent_until.get(self.members[index].address, 0.0) > time.monotonic()

    def mark_absent(self, index: int) -> None:
        """Notes that a catalog does not respond: for a short time, reads ask it last, and changes ask it only if all
        are absent."""
        self._absent_until[self.members[index].address] = time.monotonic() + ABSENCE

    def begin_hedging(self) -> bool:
        """Returns True if a waiting read may be sent to another catalog too; `end_hedging` must then follow."""
        with self._hedging_lock:
            if self._hedged_reads >= MAX_HEDGED_READS:
                return False
            self._hedged_reads += 1
            return True

    def end_hedging(self) -> None:
        with self._hedging_lock:
            self._hedged_reads -= 1

    def note_error(self, index: int, error: SafelightError) -> None:
        """Notes an error of a catalog."""
        if isinstance(error, (ConnectionLostError, UnavailableError)):
            self.mark_absent(index)

    def mark_present(self, index: int) -> None:
        self._absent_until.pop(self.members[index].address, None)

    def note_change_error(self, index: int, error: SafelightError) -> bool:
        """Notes the error of a change. Returns whether it is certain that nothing was changed, so that the next
        catalog may be asked."""
        self.note_error(index, error)
        if isinstance(error, (ConnectionLostError, DeadlineExceededError)) or error.name == "library_offline":
            # If the caller repeats the change, the next catalog is asked first: it may be the writer by then.
            self.writer = (index + 1) % len(self.members)
        is_stopping = isinstance(error, BusyError) and error.data.get("isStopping") is True
        return is_stopping or is_standby_error(error) or isinstance(error, UnavailableError)
