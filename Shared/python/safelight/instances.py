"""Several instances of one service, of which each request goes to one."""

import hashlib
import time
from typing import Any, Dict, Generic, List, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar

# The methods that change nothing, so that a request may be sent again although an earlier one may have been carried out.
REPEATABLE = frozenset((
    "image.request", "image.data", "image.frames", "image.sheet", "livePhoto.request",
    "video.playback", "video.asset", "video.read",
    "edits.preview", "edits.compare", "edits.suggest", "edits.history", "edits.describe", "editing.begin",
    "health", "figures",
))
# Seconds for which an instance that did not answer is asked after the others.
ABSENCE = 2.0

from .errors import BusyError, ConnectionLostError, SafelightError, UnavailableError


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
    """Chooses the instance for a request, and remembers those that did not answer."""

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

    def missed(self, instance: Instance, error: SafelightError, method: Optional[str]) -> bool:
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

    def reached(self, instance: Instance) -> None:
        self._absent_until.pop(instance.address, None)
