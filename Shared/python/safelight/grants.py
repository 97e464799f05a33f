"""Access: what the owner of the library allows other identities."""

from typing import TYPE_CHECKING, Any, Iterable, List, NamedTuple, Optional

from .errors import JSON
from .members import Record, boolean, date, integer, optional_text, strings, text
from .objects import Object, identifier

if TYPE_CHECKING:
    from .library import Library


class Session(Record):
    """The access that this program has: the result of `Library.request_authorization`."""

    identity = text("identity", "The identity of the connection.")
    status = text("status", "notDetermined, restricted, denied, authorized or limited.")
    status_number = integer("statusNumber", "PhotoKit's number of the status.")
    access = text("access", "addOnly or readWrite.")
    scope = text("scope", "all or limited.")
    consent = text("consent", "The changes that the owner is asked about: never, destructive or always.")
    is_owner = boolean("isOwner", "True if the identity is the owner of the library.")
    _shown = ("identity", "status", "access", "scope", "consent", "is_owner")


class Grant(Record):
    """The access of an identity."""

    id = text("id", "The identity, key:NAME or uid:N.")
    status = text("status", "notDetermined, restricted, denied, authorized or limited.")
    access = text("access", "addOnly or readWrite.")
    scope = text("scope", "all or limited.")
    consent = text("consent", "The transactions that the owner is asked about: never, destructive or always.")
    purpose = text("purpose", "Why the client wants access.")
    client = text("client", "The name that the client gave itself.")
    date = date("date", "The date of the request or the decision.")
    decided_by = optional_text("decidedBy", "The identity that decided.")
    asset_count = integer("assetCount", "The number of assets on the list of a limited grant.")
    _shown = ("id", "status", "access", "scope", "purpose")


class ConsentQuestion(Record):
    """A transaction that waits for the owner's consent."""

    id = text("id", "The identifier of the question, for approve and deny.")
    identity = text("identity", "The identity whose transaction waits.")
    state = text("state", "asked, approved, declined or expired.")
    summary = text("summary", "What the transaction would do.")
    objects = strings("objects", "The first objects that the requests name.")
    _shown = ("id", "identity", "state", "summary")


class Pending(NamedTuple):
    """The requests for access and the transactions that wait for the owner of the library."""

    grants: List[Grant]
    questions: List[ConsentQuestion]


class Grants:
    """Grants and questions about consent. Only the owner of the library may call the methods."""

    def __init__(self, library: "Library") -> None:
        self._library = library

    def list(self) -> "List[Grant]":
        """Returns all grants."""
        found: List[Grant] = []
        while True:
            page = self._call("list", {"from": len(found), "count": 1000})
            found += [Grant(one) for one in page["grants"]]
            if len(found) >= page["count"] or not page["grants"]:
                return found

    def pending(self) -> Pending:
        """Returns the requests for access and the transactions that wait for a decision."""
        result = self._call("pending", {})
        return Pending(
            [Grant(one) for one in result["grants"]], [ConsentQuestion(one) for one in result["questions"]]
        )

    def approve(
        self, identity: Optional[str] = None, *, question: Optional[str] = None, access: Optional[str] = None,
        scope: Optional[str] = None, consent: Optional[str] = None, purpose: Optional[str] = None,
    ) -> Any:
        """Approves a request for access or a question about consent. Returns the grant or the question."""
        return self._decide("approve", identity=identity, question=question, access=access, scope=scope,
                            consent=consent, purpose=purpose)

    def deny(self, identity: Optional[str] = None, *, question: Optional[str] = None) -> Any:
        """Denies a request for access or a question about consent."""
        return self._decide("deny", identity=identity, question=question)

    def revoke(self, identity: str) -> Any:
        """Revokes the access of an identity, within a second."""
        return self._decide("revoke", identity=identity)

    def limit(self, identity: str, assets: Iterable[Object], action: str = "set") -> Any:
        """Limits an identity to a list of assets: `set` replaces the list, `add` and `remove` change it."""
        return self._decide("limit", identity=identity, assets=[identifier(one) for one in assets], action=action)

    def history(self, identity: Optional[str] = None, count: int = 100) -> "List[JSON]":
        """Returns the decisions as change records, the latest first."""
        params = {"count": count, **({"identity": identity} if identity else {})}
        records: "List[JSON]" = self._call("history", params)["records"]
        return records

    def _decide(self, name: str, **params: Any) -> Any:
        result = self._call(name, {key: value for key, value in params.items() if value is not None})
        return Grant(result["grant"]) if result.get("grant") else ConsentQuestion(result["question"])

    def _call(self, name: str, params: JSON) -> Any:
        return self._library.request(self._library.catalog, f"grants.{name}", params).result
