"""Transactions: all of their changes are performed, or none."""

import hashlib
import io
import json
import os
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

from .errors import (
    JSON, HandleExpiredError, IdentifierNotFoundError, InvalidParametersError, NestedChangeError, SafelightError,
)
from .fetching import plain
from .members import Record, anything, boolean, camel_case, integer, optional_text, records, strings, text
from .objects import Object, identifier
from .progress import Progress, ProgressHandler
from .transaction_ids import new_transaction_id

if TYPE_CHECKING:
    from types import TracebackType

    from .library import Library

Path = Union[str, "os.PathLike[str]"]
# The bytes of a file, or its path.
Source = Union[Path, bytes]


class Placeholder:
    """An object that a transaction creates. It has an identifier after the commit."""

    def __init__(self, changes: "Changes", ref: str, is_folder: bool = False) -> None:
        self._changes = changes
        self.ref = ref
        self.is_folder = is_folder

    def target(self, changes: "Changes") -> Any:
        """Returns a reference to the object for a request of `changes`. Raises ValueError if the object belongs to
        another block and does not exist yet: references are valid in their own block only."""
        return {"ref": self.ref} if self._changes is changes else self.id

    @property
    def id(self) -> str:
        """The identifier. Raises ValueError before the commit."""
        outcome = self._changes.outcome
        if outcome is None:
            raise ValueError("the object is created when the block of library.changing() ends")
        return str(outcome.json["placeholders"][self.ref])

    @property
    def is_duplicate(self) -> bool:
        """True if the library already had the bytes of the asset."""
        outcome = self._changes.outcome
        return outcome is not None and self.ref in outcome.duplicates

    @property
    def same_image(self) -> List[str]:
        """The identifiers of assets with the same image data, in files with other bytes."""
        outcome = self._changes.outcome
        named = outcome.same_image if outcome else ()
        return [id for one in named if one.ref == self.ref for id in one.assets]

    @property
    def ignored(self) -> List[str]:
        """Members of its request without effect, such as `sidecar`, because the library already had the asset."""
        outcome = self._changes.outcome
        found = (outcome.ignored if outcome else None) or []
        return [member for one in found if one.get("ref") == self.ref for member in one["members"]]

    def __repr__(self) -> str:
        return f"<Placeholder {self.id if self._changes.outcome else 'not committed yet'}>"


Target = Union[Object, Placeholder]


class SameImage(Record):
    """A new asset whose image data the library already had, in a file with other bytes."""

    request = integer("request", "Index of the request.")
    ref = optional_text("ref", "The name of its placeholder.")
    assets = strings("assets", "Assets with the same image data, in the order of their import.")
    _shown = ("ref", "assets")


class Outcome(Record):
    """The outcome of a transaction."""

    token = text("token", "Token of the transaction.")
    sequence = integer("sequence", "Sequence of the transaction.")
    is_changed = boolean("isChanged", "True if anything changed.")
    placeholders = anything("placeholders", "Identifiers by the names of the placeholders.")
    duplicates = strings("duplicates", "The names of placeholders whose bytes were already in the library.")
    same_image = records("sameImage", SameImage, "New assets whose image data the library had in another file.")
    restored = strings("restored", "Assets taken out of the trash because their bytes were imported again.")
    ignored = anything("ignored", "Members of requests without effect, because the library already had the bytes.")
    healed = strings("healed", "Digests of damaged stored files that these bytes replaced.")
    _shown = ("sequence", "is_changed")


class Changes:
    """The changes of one transaction, which are performed in their order when the block ends.

    If the block raises, nothing is performed. `outcome` is the outcome after the block.
    """

    def __init__(self, library: "Library", transaction: Optional[str] = None, deadline: float = 30.0) -> None:
        self._library = library
        self._transaction = transaction or new_transaction_id()
        self._deadline = deadline
        # Functions that return the requests; those with files upload the files first.
        self._requests: List[Callable[[], JSON]] = []
        self.outcome: Optional[Outcome] = None
        # The digest of the bytes of each upload.
        self._digests: Dict[str, str] = {}

    def __enter__(self) -> "Changes":
        if self._library.active_changes is not None:
            raise NestedChangeError(message="a transaction cannot contain another: use the changes of the outer block")
        self._library.active_changes = self
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: "Optional[TracebackType]"
    ) -> None:
        self._library.active_changes = None
        if kind is None and self._requests:
            self.outcome = self._perform()

    def __len__(self) -> int:
        return len(self._requests)

    def __bool__(self) -> bool:
        return True

    # Assets

    def create_asset(
        self,
        photo: Optional[Source] = None,
        *,
        video: Optional[Source] = None,
        paired_video: Optional[Source] = None,
        alternate_photo: Optional[Source] = None,
        audio: Optional[Source] = None,
        sidecar: Optional[Source] = None,
        filename: Optional[str] = None,
        if_duplicate: str = "useExisting",
        add_keywords: Sequence[str] = (),
        remove_keywords: Sequence[str] = (),
        progress: Optional[ProgressHandler] = None,
        **properties: Any,
    ) -> Placeholder:
        """Imports an asset: exactly one original, and for a Live Photo its `paired_video`.

        Files are uploaded when the block ends. `properties` are those of `update`. From the keywords of the file, of
        `keywords` or of the existing asset, `remove_keywords` are removed, and then `add_keywords` are added.
        `if_duplicate` is `useExisting`, `create` or `createIfTrashed`.
        """
        _check_words("add_keywords", add_keywords)
        _check_words("remove_keywords", remove_keywords)
        placeholder = self._placeholder()
        files: List[Tuple[str, Source]] = [
            (kind, source)
            for kind, source in (
                ("photo", photo), ("video", video), ("audio", audio), ("alternatePhoto", alternate_photo),
                ("pairedVideo", paired_video),
            )
            if source is not None
        ]

        def request() -> JSON:
            members: JSON = {
                "type": "asset.create",
                "ref": placeholder.ref,
                "resources": [self._resource(kind, source, filename, progress) for kind, source in files],
                "ifDuplicate": if_duplicate,
            }
            if sidecar is not None:
                members["sidecar"] = self._sidecar(sidecar)
            if properties:
                members["set"] = _properties(properties)
            if add_keywords:
                members["addKeywords"] = list(add_keywords)
            if remove_keywords:
                members["removeKeywords"] = list(remove_keywords)
            return members

        self._requests.append(request)
        return placeholder

    def update(
        self, asset: Target, *, add_keywords: Sequence[str] = (), remove_keywords: Sequence[str] = (),
        if_revision: Optional[str] = None, **properties: Any,
    ) -> None:
        """Sets properties of an asset: `is_favorite`, `is_hidden`, `rating`, `caption`, `keywords`, `creation_date`,
        `creation_offset`, `location` (a pair of latitude and longitude, a mapping, or None), `represents_burst`,
        `is_user_pick`, `playback_variation`.

        With `if_revision` the transaction is refused with ConflictError if the asset has changed since.
        """
        _check_words("add_keywords", add_keywords)
        _check_words("remove_keywords", remove_keywords)
        self.request(
            "asset.update", id=self._target(asset), set=_properties(properties), addKeywords=list(add_keywords),
            removeKeywords=list(remove_keywords), ifRevision=if_revision,
        )

    def trash(self, *assets: Object) -> None:
        """Moves assets to the trash."""
        self.request("asset.trash", ids=[identifier(asset) for asset in assets])

    def restore(self, *assets: Object) -> None:
        """Takes assets out of the trash."""
        self.request("asset.restore", ids=[identifier(asset) for asset in assets])

    def delete(self, *objects: Object) -> None:
        """Deletes assets permanently, albums without their assets, and folders with the albums in them."""
        by_kind: Dict[str, List[str]] = {}
        for one in objects:
            by_kind.setdefault(identifier(one)[:1], []).append(identifier(one))
        kinds = {"a": "asset.delete", "c": "collection.delete", "l": "list.delete"}
        for letter, ids in by_kind.items():
            if letter not in kinds:
                raise IdentifierNotFoundError(message=f"{ids[0]!r} is not an identifier")
            self.request(kinds[letter], ids=ids)

    # Albums and folders

    def create_album(
        self, title: str, assets: Iterable[Target] = (), parent: Optional[Target] = None
    ) -> Placeholder:
        """Creates an album, in the root folder unless `parent` is given."""
        placeholder = self._placeholder()
        self.request(
            "collection.create", ref=placeholder.ref, title=title, add=[self._target(asset) for asset in assets],
            parent=self._target(parent) if parent is not None else None,
        )
        return placeholder

    def create_folder(self, title: str, members: Iterable[Target] = (), parent: Optional[Target] = None) -> Placeholder:
        """Creates a folder; albums and folders among `members` move into it."""
        placeholder = self._placeholder(is_folder=True)
        self.request(
            "list.create", ref=placeholder.ref, title=title, add=[self._target(member) for member in members],
            parent=self._target(parent) if parent is not None else None,
        )
        return placeholder

    def rename(self, target: Target, title: str) -> None:
        """Renames an album or a folder."""
        kind = "list.update" if _is_folder(target) else "collection.update"
        self.request(kind, id=self._target(target), title=title)

    def add(self, album: Target, assets: Iterable[Target], at: Optional[Sequence[int]] = None) -> None:
        """Adds assets to the end of an album, or albums to a folder; `at` are their indexes afterwards."""
        members = [self._target(asset) for asset in assets]
        if at is not None:
            self._rearrange(album, {"op": "insert", "members": members, "at": list(at)})
        elif _is_folder(album):
            self._rearrange(album, {"op": "add", "members": members})
        else:
            self.request("collection.update", id=self._target(album), add=members)

    def remove(self, album: Target, assets: Iterable[Target]) -> None:
        """Removes assets from an album; they stay in the library. Albums removed from a folder move to the root."""
        members = [self._target(asset) for asset in assets]
        if _is_folder(album):
            self._rearrange(album, {"op": "remove", "members": members})
        else:
            self.request("collection.update", id=self._target(album), remove=members)

    def move(self, album: Target, at: Sequence[int], to: int, token: str) -> None:
        """Moves members of an album from the indexes `at`, in its result at `token`, to index `to` of the others."""
        kind = "list.update" if _is_folder(album) else "collection.update"
        self.request(kind, id=self._target(album), snapshot=token, edits=[{"op": "move", "at": list(at), "to": to}])

    def set_key_asset(self, album: Target, asset: Optional[Object]) -> None:
        """Sets the cover of an album; None for the default."""
        target, key = self._target(album), identifier(asset) if asset is not None else None
        self._requests.append(lambda: {"type": "collection.update", "id": target, "keyAsset": key})

    # Edits of other programs

    def commit_edit(
        self, asset: Object, render: Source, data: bytes, format_identifier: str, format_version: str,
        input_token: Optional[str] = None, if_content_revision: Optional[str] = None,
        render_type: str = "fullSizePhoto",
    ) -> None:
        """Commits an edit that this program rendered, with its own adjustment data: PHContentEditingOutput."""

        def request() -> JSON:
            members: JSON = {
                "type": "asset.edit",
                "id": identifier(asset),
                "render": self._resource(render_type, render, None, None),
                "adjustmentData": {
                    "formatIdentifier": format_identifier, "formatVersion": format_version,
                    "attachment": self._attach(data),
                },
            }
            members.update(
                (name, value)
                for name, value in (("inputToken", input_token), ("ifContentRevision", if_content_revision))
                if value is not None
            )
            return members

        self._requests.append(request)

    def revert(self, asset: Object, if_content_revision: Optional[str] = None) -> None:
        """Discards all edits of an asset."""
        self.request("asset.revert", id=identifier(asset), ifContentRevision=if_content_revision)

    # Requests of the protocol

    def request(self, type: str, **members: Any) -> None:
        """Adds a request of the protocol. Members that are None are left out."""
        request = {"type": type, **{name: plain(value) for name, value in members.items() if value is not None}}
        self._requests.append(lambda: request)

    def _placeholder(self, is_folder: bool = False) -> Placeholder:
        return Placeholder(self, f"new{len(self._requests)}", is_folder)

    def _target(self, target: Target) -> Any:
        return target.target(self) if isinstance(target, Placeholder) else identifier(target)

    def _rearrange(self, target: Target, edit: JSON) -> None:
        kind = "list.update" if _is_folder(target) else "collection.update"
        token = self._library.token if "at" in edit else None
        self.request(kind, id=self._target(target), edits=[edit], snapshot=token)

    def _attach(self, data: bytes) -> int:
        self._attachments.append(data)
        return len(self._attachments) - 1

    def _resource(
        self, kind: str, source: Source, filename: Optional[str], progress: Optional[ProgressHandler]
    ) -> JSON:
        upload, digest = upload_with_digest(self._library, source, progress)
        self._digests[upload] = digest
        resource: JSON = {"type": kind, "upload": upload}
        name = filename or (os.path.basename(os.fspath(source)) if not isinstance(source, bytes) else None)
        if name:
            resource["originalFilename"] = name
        return resource

    def _sidecar(self, source: Source) -> JSON:
        """Attaches a sidecar to the request: the catalog does not accept sidecars as uploads."""
        resource: JSON = {"type": "photo"}
        if isinstance(source, bytes):
            return {**resource, "attachment": self._attach(source)}
        with open(source, "rb") as file:
            resource["attachment"] = self._attach(file.read(MAX_SIDECAR_BYTES + 1))
        return {**resource, "originalFilename": os.path.basename(os.fspath(source))}

    def _perform(self) -> Outcome:
        """Performs the transaction. Repeats it with new uploads if the catalog no longer has one of them."""
        for attempt in range(UPLOAD_ATTEMPTS):
            self._attachments: List[bytes] = []
            self._digests = {}
            try:
                requests = [request() for request in self._requests]
            except BaseException:
                # A file is missing, or the program was interrupted: the uploads before it are not needed.
                self._cancel_uploads()
                raise
            try:
                # The deadline is for the transaction only, not for the uploads.
                return Outcome(self._library.perform(
                    requests, self._transaction, self._deadline, self._attachments, self._digest(requests)
                ))
            except HandleExpiredError:
                # The remaining uploads would count against the limit of this client.
                is_last = not self._digests or attempt == UPLOAD_ATTEMPTS - 1
                self._cancel_uploads()
                if is_last:
                    raise
            except BaseException as error:
                if not isinstance(error, SafelightError) or not error.is_temporary:
                    self._cancel_uploads()
                raise
        raise AssertionError("unreachable")

    def _cancel_uploads(self) -> None:
        """Cancels the uploads of a refused transaction, which would count against the limit of this client."""
        cancel_uploads(self._library, self._digests)
        self._digests = {}

    def _digest(self, requests: List[JSON]) -> Optional[str]:
        """Returns a digest of the requests, with the SHA-256 of each upload instead of its id: a program that repeats
        the transaction has other upload ids. Returns None without uploads."""
        if not self._digests:
            return None

        def named(resource: JSON) -> JSON:
            return {**resource, "upload": self._digests.get(resource.get("upload", ""))}

        listed = []
        for request in requests:
            request = {**request, "resources": [named(one) for one in request.get("resources", [])]}
            listed.append({**request, "render": named(request["render"])} if "render" in request else request)
        digest = hashlib.sha256(json.dumps(listed, sort_keys=True).encode())
        for attachment in self._attachments:
            digest.update(hashlib.sha256(attachment).digest())
        return digest.hexdigest()


def _is_folder(target: Target) -> bool:
    return target.is_folder if isinstance(target, Placeholder) else identifier(target).startswith("l")


def _check_words(name: str, words: Sequence[str]) -> None:
    """Raises InvalidParametersError for a string, whose letters would be taken for words."""
    if isinstance(words, str):
        raise InvalidParametersError(
            message=f"{name}: expected a list of texts, not {words!r}: write [{words!r}]", data={"parameter": name}
        )


def _properties(properties: JSON) -> JSON:
    members: JSON = {}
    for name, value in properties.items():
        if name == "location" and isinstance(value, (list, tuple)):
            value = dict(zip(("latitude", "longitude", "altitude"), value))
        elif isinstance(value, Record):
            value = value.json
        members[camel_case(name)] = plain(value)
    return members


# Uploads

UPLOAD_ATTEMPTS = 20
MAX_SIDECAR_BYTES = 4 << 20


def upload_with_digest(
    library: "Library", source: Source, progress: Optional[ProgressHandler] = None
) -> Tuple[str, str]:
    """Uploads a file and returns the id of the upload, and the SHA-256 of the bytes.

    Begins again if the catalog restarts meanwhile.
    """
    for attempt in range(UPLOAD_ATTEMPTS):
        opened: BinaryIO = io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")
        with opened as file:
            size = len(source) if isinstance(source, bytes) else os.fstat(file.fileno()).st_size
            # Repeated while the catalog restarts; the requests after it are not, because they need this upload.
            begun = library.request(library.catalog, "upload.begin", {"size": size}).result
            path = None if isinstance(source, bytes) else os.fspath(source)
            try:
                return _upload(library, begun, file, size, path, progress)
            except BaseException as error:
                is_lost = isinstance(error, SafelightError) and (
                    error.is_temporary or isinstance(error, HandleExpiredError)
                )
                if not is_lost or attempt == UPLOAD_ATTEMPTS - 1:
                    # Also if the progress handler raises, or after Ctrl-C.
                    cancel_uploads(library, [begun["upload"]])
                    raise
    raise AssertionError("unreachable")


def cancel_uploads(library: "Library", uploads: Iterable[str]) -> None:
    """Cancels uploads, which would stay open and count against the limit of all programs of this identity."""
    for upload in uploads:
        try:
            library.catalog.request("upload.cancel", {"upload": upload}, deadline=1)
        except HandleExpiredError:
            continue
        except SafelightError:
            return


def _upload(
    library: "Library", begun: JSON, file: BinaryIO, size: int, path: Optional[str], progress: Optional[ProgressHandler]
) -> Tuple[str, str]:
    digest, offset = hashlib.sha256(), 0
    while chunk := file.read(begun["chunkBytes"]):
        # Not repeated: the catalog may have appended bytes although its response was lost.
        library.catalog.request("upload.append", {"upload": begun["upload"], "offset": offset}, [chunk])
        digest.update(chunk)
        offset += len(chunk)
        if progress:
            progress(Progress(offset, size, path))
    finished = library.catalog.request("upload.finish", {"upload": begun["upload"], "digest": digest.hexdigest()})
    return str(finished.result["upload"]), digest.hexdigest()
