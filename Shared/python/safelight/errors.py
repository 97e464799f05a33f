"""The errors of the services, and the event for an expired token.

Each name of the error table has a class, so that a program can catch the errors that it handles. The errors that
PhotoKit has are named as in `PHPhotosError`.
"""

from typing import Any, ClassVar, Dict, Mapping, Optional, Type

TEMPORARY_ERRORS = {"busy", "connection_lost", "unavailable", "deadline_exceeded", "behind", "interrupted"}

JSON = Dict[str, Any]


class SafelightError(Exception):
    """An error response of a service.

    `name` and `code` are those of the error table; `message` says what failed and what to do; `data` has details, such
    as the allowed values. Every name has a subclass of its own.
    """

    error_name: ClassVar[str] = ""
    error_code: ClassVar[int] = 0

    def __init__(
        self, name: str = "", message: str = "", code: int = 0, data: Optional[Mapping[str, Any]] = None
    ) -> None:
        self.name = name or self.error_name
        self.message = message
        self.code = code or self.error_code
        self.data: JSON = dict(data or {})
        super().__init__(f"{self.name}: {message}")

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.message, self.code, self.data)

    @property
    def is_temporary(self) -> bool:
        """True if the same request may succeed a little later."""
        return self.name in TEMPORARY_ERRORS or (
            # The error of a stopping service of an earlier version; newer ones send `interrupted`. Without this member,
            # the owner has declined the request, or a later edit has replaced it.
            self.name == "user_cancelled" and self.data.get("isStopping") is True
        )

    @property
    def is_unsent(self) -> bool:
        """True if it is certain that the request was not carried out: it was not sent, or the service was busy."""
        return self.name == "busy" or self.data.get("isUnsent") is True

    @staticmethod
    def from_json(error: Mapping[str, Any]) -> "SafelightError":
        """Creates an error, of the class of its name, from the `error` member of a JSON-RPC response."""
        data = error.get("data") or {}
        return make_error(data.get("name", "internal_error"), error.get("message", ""), error.get("code", 0), data)


# JSON-RPC's own errors


class ParseError(SafelightError):
    """The message is not JSON."""

    error_name, error_code = "parse_error", -32700


class InvalidRequestError(SafelightError):
    """The message is not a JSON-RPC request, or breaks a limit of the connection."""

    error_name, error_code = "invalid_request", -32600


class MethodNotFoundError(SafelightError):
    """The service has no such method."""

    error_name, error_code = "method_not_found", -32601


class InvalidParametersError(SafelightError, ValueError):
    """A parameter is missing, unknown, of the wrong type or out of range."""

    error_name, error_code = "invalid_params", -32602


class InternalError(SafelightError):
    """The service failed unexpectedly."""

    error_name, error_code = "internal_error", -32603


# PhotoKit's errors


class UserCancelledError(SafelightError):
    """The request was cancelled, or the owner of the library declined it."""

    error_name, error_code = "user_cancelled", 3072


class PersistentChangeTokenExpiredError(SafelightError):
    """The token is older than the retained history, or of another history: fetch again."""

    error_name, error_code = "token_expired", 3105


class LibraryVolumeOfflineError(SafelightError):
    """The library's folder cannot be reached."""

    error_name, error_code = "library_offline", 3114


class RelinquishingLibraryBundleToWriterError(SafelightError):
    """The library's folder was moved, renamed or deleted."""

    error_name, error_code = "library_relinquished", 3142


class SwitchingSystemPhotoLibraryError(SafelightError):
    """Another library is being put into the library's folder."""

    error_name, error_code = "library_switching", 3143


class NetworkAccessRequiredError(SafelightError):
    """The bytes are in remote storage, and the request does not allow network access: `network_access_allowed=True`."""

    error_name, error_code = "network_access_required", 3164


class NetworkError(SafelightError):
    """The bytes are in remote storage, and could not be downloaded; `data["problem"]` says why."""

    error_name, error_code = "network_error", 3169


class IdentifierNotFoundError(SafelightError, LookupError):
    """No entity has this identifier."""

    error_name, error_code = "identifier_not_found", 3201


class MultipleIdentifiersFoundError(SafelightError, LookupError):
    """More than one entity matches."""

    error_name, error_code = "multiple_identifiers", 3202


class PersistentChangeDetailsUnavailableError(SafelightError):
    """There are no details of this change."""

    error_name, error_code = "details_unavailable", 3210


class ChangeNotSupportedError(SafelightError):
    """This kind of change is not supported for this entity."""

    error_name, error_code = "change_not_supported", 3300


class OperationInterruptedError(SafelightError):
    """The request was interrupted; send it again."""

    error_name, error_code = "interrupted", 3301


class InvalidResourceError(SafelightError):
    """The bytes are not a photo or video that can be imported."""

    error_name, error_code = "invalid_resource", 3302


class MissingResourceError(SafelightError):
    """The asset does not have the resource that the request needs."""

    error_name, error_code = "missing_resource", 3303


class NotEnoughSpaceError(SafelightError):
    """The disk is full."""

    error_name, error_code = "not_enough_space", 3305


class RequestNotSupportedForAssetError(SafelightError):
    """The request is not supported for this asset."""

    error_name, error_code = "request_not_supported", 3306


class AccessRestrictedError(SafelightError, PermissionError):
    """Access is restricted by configuration."""

    error_name, error_code = "access_restricted", 3310


class AccessUserDeniedError(SafelightError, PermissionError):
    """This identity is not allowed to do that."""

    error_name, error_code = "access_denied", 3311


# Errors without a counterpart in PhotoKit


class BusyError(SafelightError):
    """The service has too many requests in progress; retry after a short delay."""

    error_name, error_code = "busy", 9001


class DeadlineExceededError(SafelightError, TimeoutError):
    """The request was not completed by its deadline. A write may still have been committed: repeat it under its
    transaction id."""

    error_name, error_code = "deadline_exceeded", 9002


class ConnectionLostError(SafelightError, ConnectionError):
    """The connection was lost before the response. Repeat writes under their transaction id."""

    error_name, error_code = "connection_lost", 9003


class LimitExceededError(SafelightError):
    """The request exceeds a limit; the message names it."""

    error_name, error_code = "limit_exceeded", 9004


class BehindError(SafelightError):
    """The service has not reached the token in `atLeast` yet."""

    error_name, error_code = "behind", 9005


class IdReusedError(SafelightError):
    """This transaction id was used with other content."""

    error_name, error_code = "id_reused", 9006


class ConflictError(SafelightError):
    """The entity has changed since the given revision."""

    error_name, error_code = "conflict", 9007


class CycleError(SafelightError):
    """A folder cannot be moved into itself."""

    error_name, error_code = "cycle", 9008


class HandleExpiredError(SafelightError):
    """The upload, cache or observation has expired; begin again."""

    error_name, error_code = "handle_expired", 9009


class ResourceChangedError(SafelightError):
    """The stored bytes are not the bytes that were imported."""

    error_name, error_code = "resource_changed", 9010


class UnsupportedFormatError(SafelightError):
    """The format is not supported; the message lists the supported formats."""

    error_name, error_code = "unsupported_format", 9011


class UnsupportedPredicateError(SafelightError, ValueError):
    """The predicate uses a key or operation that this class does not support."""

    error_name, error_code = "unsupported_predicate", 9012


class UnsupportedSortKeyError(SafelightError, ValueError):
    """This class cannot be sorted by this key."""

    error_name, error_code = "unsupported_sort_key", 9013


class InvalidPredicateError(SafelightError, ValueError):
    """The predicate cannot be parsed."""

    error_name, error_code = "invalid_predicate", 9014


class InvalidOptionsError(SafelightError, ValueError):
    """The options contradict each other."""

    error_name, error_code = "invalid_options", 9015


class RangeError(SafelightError, IndexError):
    """An index is out of range."""

    error_name, error_code = "range_error", 9016


class SnapshotRequiredError(SafelightError):
    """Index operations need the token at which the indexes were read."""

    error_name, error_code = "snapshot_required", 9017


class NestedChangeError(SafelightError):
    """A transaction cannot contain another."""

    error_name, error_code = "nested_change", 9018


class NotObservableError(SafelightError):
    """Change records do not contain changes of transient collections."""

    error_name, error_code = "not_observable", 9019


class MissingPredecessorError(SafelightError):
    """The edit that this one is to be applied after is unknown."""

    error_name, error_code = "missing_predecessor", 9020


class WorkerCrashedError(SafelightError):
    """The worker process crashed while reading these bytes."""

    error_name, error_code = "worker_crashed", 9021


class WorkerTimeoutError(SafelightError):
    """The worker process exceeded its time limit while reading these bytes."""

    error_name, error_code = "worker_timeout", 9022


class QuarantinedError(SafelightError):
    """These bytes are quarantined because workers crashed or hung while reading them."""

    error_name, error_code = "quarantined", 9023


class UnavailableError(SafelightError, ConnectionError):
    """A required service does not respond."""

    error_name, error_code = "unavailable", 9024


class NotRunningError(UnavailableError):
    """A service was not reached even once: it does not run, or its address is wrong.

    It is not temporary: requests do not wait for a service that may never have run, unless the library was opened
    with `wait`.
    """

    @property
    def is_temporary(self) -> bool:
        return False


class PredecessorFailedError(SafelightError):
    """The edit that this one appends to has failed."""

    error_name, error_code = "predecessor_failed", 9025


class LibraryReadOnlyError(SafelightError):
    """The library can only be read: its folder is not writable, or the catalog is a standby."""

    error_name, error_code = "library_read_only", 9026


class ResourcesDisagreeError(SafelightError):
    """The files do not show the same photo; import them as separate assets."""

    error_name, error_code = "resources_disagree", 9030


class NotDeterminedError(SafelightError, PermissionError):
    """The owner of the library has not decided yet what this identity may do."""

    error_name, error_code = "not_determined", 9040


class MissingPurposeError(SafelightError):
    """Access is granted for a stated purpose only."""

    error_name, error_code = "missing_purpose", 9041


ERROR_CLASSES: Dict[str, Type[SafelightError]] = {
    error.error_name: error
    for error in list(globals().values())
    if isinstance(error, type) and issubclass(error, SafelightError) and vars(error).get("error_name")
}


def make_error(name: str, message: str, code: int = 0, data: Optional[Mapping[str, Any]] = None) -> SafelightError:
    """Returns an error of the class of its name; `SafelightError` itself for a name that is not in the table."""
    return ERROR_CLASSES.get(name, SafelightError)(name, message, code, data)


class Expired(JSON):
    """An event: the history no longer reaches back to the token, or the library has a new history.

    Fetch everything again. The feed continues after `head`, so a fetch that starts now misses no change.
    """

    @property
    def head(self) -> str:
        """The newest token, after which the feed continues."""
        return str(self["head"])

    @property
    def oldest(self) -> str:
        """The oldest token from which the history is complete."""
        return str(self["oldest"])
