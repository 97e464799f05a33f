"""Edits: adjustment lists, presets, outcomes, and publishing."""

import hashlib
import json
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import zmq

from .endpoints import split_addresses
from .errors import (
    JSON, DeadlineExceededError, IdentifierNotFoundError, InvalidParametersError, SafelightError, make_error,
)
from .instances import ABSENCE, order
from .members import Record, anything, boolean, camel_case, date, integer, optional_text, text
from .objects import Object, identifier, is_identifier
from .progress import save_bytes
from .transport import Keys, connect, encode_json, new_socket

if TYPE_CHECKING:
    from .library import Library

STATUS_DELAYS = (0.02, 0.05, 0.1, 0.2, 0.4)  # seconds between requests for the states of edits; the last is repeated
SEND_AGAIN_AFTER = 1.0  # seconds after which an edit that the catalog does not know is published again
EDITS_PER_REQUEST = 1000

Adjustments = Mapping[str, Any]


def adjustments(*operations: Union[Mapping[str, Any], str], preset: Optional[str] = None, **values: Any) -> JSON:
    """Returns an adjustment list.

    Each keyword is an operation: `exposure=0.5`, `crop=(x, y, width, height)`, `sharpen={"amount": 1, "radius": 2}`,
    `despeckle=True`. Names are those of `safelight describe adjustments`, in snake_case or camelCase. Positional
    arguments are operations as JSON, whole lists, or names of presets. The order matters within a stage.
    """
    found: List[JSON] = []
    engine: Any = None
    for one in [*operations, *([preset] if preset else [])]:
        listed = load_preset(one) if isinstance(one, str) else one
        engine = listed.get("engine", engine)
        found += [dict(operation) for operation in listed.get("operations", [listed])]
    for name, value in values.items():
        operation: JSON = {"operation": camel_case(name)}
        if value is None or value is False:
            continue
        if name == "crop" and isinstance(value, (list, tuple)):
            if len(value) != 4:
                raise ValueError(f"crop has {len(value)} numbers; it takes x, y, width and height")
            operation.update(zip(("x", "y", "width", "height"), value))
        elif isinstance(value, Mapping):
            operation.update((camel_case(key), one) for key, one in value.items())
        elif value is not True:
            operation["value"] = value
        found.append(operation)
    return {"version": 1, "operations": found, **({"engine": engine} if engine else {})}


# Presets: the files of `safelight preset`


def presets_folder() -> str:
    """Returns the folder of presets: `SAFELIGHT_PRESETS`, or `safelight/presets` in the configuration folder."""
    config = os.getenv("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.getenv("SAFELIGHT_PRESETS") or f"{config}/safelight/presets"


def presets() -> List[str]:
    """Returns the names of all presets, sorted."""
    try:
        names = os.listdir(presets_folder())
    except FileNotFoundError:
        return []
    return sorted(name[:-5] for name in names if name.endswith(".json") and not name.startswith("."))


def load_preset(name: str) -> JSON:
    """Returns the adjustments of a preset. Raises IdentifierNotFoundError, whose message lists the presets."""
    path = _preset_path(name)
    try:
        with open(path, encoding="utf-8") as file:
            loaded: JSON = json.load(file)
            return loaded
    except FileNotFoundError:
        known = ", ".join(presets()) or "none"
        message = f"there is no preset {name!r} in {presets_folder()}; the presets are: {known}"
        raise IdentifierNotFoundError(message=message) from None


def save_preset(name: str, *operations: Any, **values: Any) -> None:
    """Writes a preset, replacing one of the same name."""
    path = _preset_path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    content = encode_json(adjustments(*operations, **values))
    save_bytes(path, content)


def _preset_path(name: str) -> str:
    is_plain = all(one.isalnum() or one in " -_.+" for one in name)
    if not is_plain or not 1 <= len(name.encode()) <= 64 or name[0] in ".-":
        raise ValueError(f"{name!r} is not a preset name: use 1 to 64 bytes of letters, digits, spaces and -_.+")
    return f"{presets_folder()}/{name}.json"


# Results


class EditOutcome(Record):
    """The transaction that committed an edit."""

    asset = optional_text("asset", "The identifier of the asset; None for several assets.")
    token = optional_text("token", "Token of the transaction; a fetch with `at_least` sees it.")
    sequence = integer("sequence", "Sequence of the transaction.")
    is_changed = boolean("isChanged", "True if anything changed.")
    done = integer("done", "Of several assets: the number of edited ones.")
    failed = integer("failed", "Of several assets: the number that failed.")
    dry_run = boolean("dryRun", "True for a dry run: nothing was committed.")
    _shown = ("asset", "sequence", "is_changed", "done", "failed")

    @property
    def results(self) -> List[Tuple[str, Optional[SafelightError]]]:
        """Of several assets: each identifier with its error, which is None if it was edited."""
        return [
            (one["asset"], make_error(one["error"]["name"], one["error"]["message"]) if one.get("error") else None)
            for one in self.json.get("results", [])
        ]


class EditStep(Record):
    """A step of an asset's edit history."""

    step = integer("step", "Number of the step, from 1; 0 is the original.")
    kind = text("kind", "edit or revert.")
    sequence = integer("sequence", "Sequence of the transaction.")
    date = date("date", "Commit date.")
    identity = text("identity", "Identity of the client.")
    client = optional_text("client", "Name of the client program.")
    format_identifier = optional_text("formatIdentifier", "Adjustment data format.")
    format_version = optional_text("formatVersion", "Adjustment data version.")
    adjustments = anything("adjustments", "The list, if it is the editor's own and still stored.")
    _shown = ("step", "kind", "date", "client")


class EditStatus(Record):
    """The state of a published edit."""

    id = text("id", "Id of the edit.")
    asset = text("asset", "The edited asset.")
    state = text("state", "accepted, applied or failed.")
    sequence = integer("sequence", "The transaction that recorded the state.")
    _shown = ("id", "asset", "state", "sequence")

    @property
    def error(self) -> Optional[SafelightError]:
        """Why it failed; None if it did not."""
        name = self.json.get("errorName")
        return make_error(name, self.json.get("errorMessage", "")) if name else None


class PushSockets:
    """The sockets for edits, one for each editor. The edits of an asset go to the same editor while it accepts them."""

    def __init__(self, context: "zmq.Context[Any]", listed: str, keys: Optional[Keys]) -> None:
        self._sockets: Dict[str, "zmq.Socket[bytes]"] = {}
        self._blocked_until: Dict[str, float] = {}
        for address in split_addresses(listed):
            socket = new_socket(context, zmq.PUSH, address, keys)
            socket.immediate = True
            connect(socket, address)
            self._sockets[address] = socket

    def push(self, edit: JSON) -> bool:
        """Sends an edit. Returns whether an editor accepted it."""
        listed = list(self._sockets)
        message = {"jsonrpc": "2.0", "method": "edits.publish", "params": edit}
        for index in order(listed, edit["asset"]):
            address = listed[index]
            socket = self._sockets[address]
            is_blocked = self._blocked_until.get(address, 0.0) > time.monotonic()
            if socket.poll(0 if is_blocked else int(SEND_AGAIN_AFTER * 1000) // len(listed), zmq.POLLOUT):
                try:
                    socket.send(encode_json(message), zmq.NOBLOCK)
                    return True
                except zmq.Again:
                    pass  # the connection was lost meanwhile
            if not is_blocked:
                self._blocked_until[address] = time.monotonic() + ABSENCE
        return False

    def close(self) -> None:
        for socket in self._sockets.values():
            socket.close()


def derived_id(transaction: str, content: str, occurrence: int) -> str:
    """Returns the id of a published edit, 32 hexadecimal digits, from its content and the number of equal edits in the
    list up to it."""
    return hashlib.sha256(f"{transaction}\n{occurrence}\n{content}".encode()).hexdigest()[:32]


class Publisher:
    """Publishes edits until the catalog knows each of them, and reports the final state of each.

    A push has no response, so an edit is published again until the catalog knows its id; the editor recognizes repeated
    edits, and each is applied exactly once, even if a service is killed.
    """

    def __init__(
        self, library: "Library", edits: Iterable[Tuple[Object, Adjustments]], options: JSON, transaction: str,
        has_chosen_id: bool = False,
    ) -> None:
        """If the program chose the transaction id, the id of each edit is derived from its content, because the edit
        may have another position in the list when the program is run again."""
        self._library = library
        self._unfinished: Dict[str, JSON] = {}
        last_of_asset: Dict[str, str] = {}
        equal: "Counter[str]" = Counter()
        for number, (asset, listed) in enumerate(edits):
            if not is_identifier(identifier(asset), "a"):
                # The editor cannot record the failure of an edit that names no asset.
                raise InvalidParametersError(
                    message=f"edit {number} of the list: {identifier(asset)!r} is not the identifier of an asset",
                    data={"parameter": "asset", "index": number},
                )
            message: JSON = {**options, "asset": identifier(asset), "adjustments": dict(listed)}
            if has_chosen_id:
                content = json.dumps(message, sort_keys=True)
                equal[content] += 1
                message["id"] = derived_id(transaction, content, equal[content])
            else:
                message["id"] = f"{transaction}.{number}"
            if message["asset"] in last_of_asset:
                message["after"] = last_of_asset[message["asset"]]
            last_of_asset[message["asset"]] = message["id"]
            self._unfinished[message["id"]] = message

    def run(self, deadline: float) -> Iterator[EditStatus]:
        """Yields the final state of each edit as it is finished: applied or failed. The iteration sends them."""
        sockets = PushSockets(self._library.context, self._library.endpoints.edits, self._library.keys)
        sent: Dict[str, float] = {}
        delays = iter(STATUS_DELAYS)
        end = time.monotonic() + deadline
        try:
            while self._unfinished:
                ids = list(self._unfinished)[:EDITS_PER_REQUEST]
                status = self._status(ids, max(1.0, end - time.monotonic()))
                for one in status["edits"]:
                    if one["state"] != "accepted" and self._unfinished.pop(one["id"], None):
                        yield EditStatus(one)
                for number in status["unknown"]:
                    if time.monotonic() - sent.get(number, -SEND_AGAIN_AFTER) < SEND_AGAIN_AFTER:
                        continue
                    if not sockets.push(self._unfinished[number]):
                        break  # no editor runs, or all have too many edits waiting
                    sent[number] = time.monotonic()
                if self._unfinished and time.monotonic() > end:
                    count = len(self._unfinished)
                    raise DeadlineExceededError(
                        message=f"{count} of the published edits are not applied yet",
                        data={"ids": list(self._unfinished)},
                    )
                if self._unfinished:
                    time.sleep(next(delays, STATUS_DELAYS[-1]))
        finally:
            sockets.close()

    def _status(self, ids: List[str], deadline: float) -> JSON:
        """Returns the states of edits. Repeats the request until the deadline, each time for at most 30 seconds."""
        catalog = self._library.catalog
        status: JSON = self._library.with_retries(
            lambda seconds_left: catalog.request("edits.status", {"ids": ids}, deadline=min(30.0, seconds_left)),
            deadline,
        ).result
        return status
