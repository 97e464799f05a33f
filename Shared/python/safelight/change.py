"""Change records: each describes one transaction, with all objects that it changed, before and after."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, List, Mapping, Optional, Type, TypeVar

from .errors import JSON
from .members import Record, date_from_json, optional_text, text
from .objects import Asset, AssetCollection, CollectionList, LibraryObject

if TYPE_CHECKING:
    from .library import Library

Item = TypeVar("Item", bound=LibraryObject)


class ObjectChange(Generic[Item]):
    """The change of one object by a transaction: PHObjectChangeDetails.

    `before` is None if the object was inserted, `after` is None if it was deleted.
    """

    def __init__(self, json: Mapping[str, Any], kind: Type[Item], library: "Optional[Library]") -> None:
        self.json = json
        before, after = json.get("before"), json.get("after")
        self.before: Optional[Item] = kind(before, library) if before else None
        self.after: Optional[Item] = kind(after, library) if after else None

    @property
    def id(self) -> str:
        """The identifier of the object."""
        found = self.after or self.before
        return found.id if found is not None else ""

    @property
    def kind(self) -> str:
        """`inserted`, `updated` or `deleted`."""
        if self.before is None:
            return "inserted"
        return "deleted" if self.after is None else "updated"

    @property
    def object_was_deleted(self) -> bool:
        """True if the object was deleted from the library."""
        return self.after is None

    @property
    def asset_content_changed(self) -> bool:
        """True if the pixels of an asset changed."""
        before, after = self.before, self.after
        return (
            isinstance(before, Asset) and isinstance(after, Asset)
            and before.content_revision != after.content_revision
        )

    @property
    def changed_members(self) -> List[str]:
        """The names of the JSON members that differ, sorted; for an update only."""
        if self.before is None or self.after is None:
            return []
        before, after = self.before.json, self.after.json
        return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id}>"


class Origin(Record):
    """The author of a change."""

    identity = text("identity", "The identity of the connection, such as uid:1000 or key:ann.")
    client = optional_text("client", "The name of the client program.")
    transaction = optional_text("transaction", "The transaction id that the client chose.")
    _shown = ("identity", "client")


class EditChange(Record):
    """A published edit whose state changed."""

    id = text("id", "The id of the edit.")
    asset = text("asset", "The identifier of the asset.")
    state = text("state", "accepted, applied or failed.")
    error_name = optional_text("errorName", "The name of the error if it failed.")
    error_message = optional_text("errorMessage", "Why it failed.")
    _shown = ("id", "asset", "state", "error_name")


class Change(JSON):
    """A change record: one transaction, with all objects that it changed.

    It is the record as it was received (a dict), with an attribute for each member. With topics it contains only the
    entries of these topics.
    """

    client_library: "Optional[Library]" = None

    @property
    def sequence(self) -> int:
        """The number of the transaction, which increases by one with each."""
        return int(self["sequence"])

    @property
    def history(self) -> str:
        """The history that the record belongs to; a restored copy of the library has a new one."""
        return str(self["library"])

    @property
    def token(self) -> str:
        """The position of the record. `changes(since=change.token)` continues after it."""
        return f"{self.history}.{self.sequence}"

    @property
    def date(self) -> datetime:
        """The date of the commit."""
        return date_from_json(self["date"])

    @property
    def origin(self) -> Origin:
        """The author of the change."""
        return Origin(self.get("origin") or {})

    @property
    def assets(self) -> List[ObjectChange[Asset]]:
        """The changed assets."""
        return [ObjectChange(one, Asset, self.client_library) for one in self.get("assets", [])]

    @property
    def collections(self) -> List[ObjectChange[AssetCollection]]:
        """The changed albums and moments."""
        return [ObjectChange(one, AssetCollection, self.client_library) for one in self.get("collections", [])]

    @property
    def lists(self) -> List[ObjectChange[CollectionList]]:
        """The changed folders."""
        return [ObjectChange(one, CollectionList, self.client_library) for one in self.get("lists", [])]

    @property
    def edits(self) -> List[EditChange]:
        """The published edits whose state changed."""
        return [EditChange(one) for one in self.get("edits", [])]

    @property
    def grants(self) -> List[JSON]:
        """The grants that were requested or decided, as JSON."""
        return list(self.get("grants", []))

    @property
    def questions(self) -> List[JSON]:
        """The questions about consent that were asked or decided, as JSON."""
        return list(self.get("questions", []))

    def __repr__(self) -> str:
        parts = [f"{name}={found!r}" for name in ("assets", "collections", "lists", "edits")
                 if (found := getattr(self, name))]
        return f"<{' '.join(['Change', str(self.sequence), *parts])}>"


class CaughtUp(JSON):
    """An event: all changes up to `token` have been delivered."""

    @property
    def token(self) -> str:
        """The position of the feed."""
        return str(self["token"])
