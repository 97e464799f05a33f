"""A photo library, with blocking calls. It may be used by several threads."""

import contextlib
import math
import os
import threading
import time
import weakref
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, Literal, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union,
    overload,
)

import zmq

from . import editing, images, importing
from .changing import Changes, Target, upload_with_digest
from .editing import Adjustments, EditOutcome, EditStatus, EditStep, Publisher
from .endpoints import Endpoints, split_addresses
from .errors import (
    JSON, DeadlineExceededError, Expired, IdentifierNotFoundError, MultipleIdentifiersFoundError,
    PersistentChangeTokenExpiredError, SafelightError, UnavailableError, UserCancelledError, make_error,
)
from .change import CaughtUp, Change
from .feed import Event, Feed, filtered, topic_filter
from .fetching import ChangeDetails, FetchResult, Predicate, Sort, description
from .following import Subscription, advance_feed, advance_live_list, should_deliver
from .grants import Grants, Session
from .images import Frame, ImageData, LivePhoto, Size, VideoPlayback
from .importing import ImportedFile
from .instances import READS, TRANSACTIONS
from .jobs import UploadJobs
from .live import LiveList
from .objects import Asset, AssetCollection, CollectionList, Object, identifier, is_identifier
from .progress import Path, Progress, ProgressHandler, save_parts
from .transaction_ids import new_transaction_id
from .transport import (
    Attachments, Catalogs, Keys, NotificationHandler, Reply, Service, ServiceInstances, context_of_process,
)

RETRY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)  # seconds; the last one is repeated
PART_SIZE = 8 << 20  # bytes of a part of a file
DOWNLOAD_DEADLINE = 600.0  # seconds for a part of a file that must be downloaded first
ROOT_FOLDER = "l" + 26 * "0"

Result = TypeVar("Result")


class Assets:
    """The assets of a library by their identifiers: `library.assets[id]`."""

    def __init__(self, library: "Library") -> None:
        self._library = library

    def __getitem__(self, id: str) -> Asset:
        """Returns an asset, also a hidden one. Raises IdentifierNotFoundError."""
        found = self.get(id)
        if found is None:
            raise IdentifierNotFoundError(message=f"there is no asset {id}; it may be in the trash")
        return found

    def get(self, id: str, default: Optional[Asset] = None) -> Optional[Asset]:
        """Returns an asset, or the default if there is none."""
        # A string that cannot be an identifier, such as a mistyped one, names no asset.
        found = self._library.fetch(ids=[id]).first() if is_identifier(identifier(id), "a") else None
        return default if found is None else found

    def many(self, ids: Iterable[Object]) -> List[Asset]:
        """Returns assets in the order of their identifiers, without those that do not exist."""
        valid = [id for id in map(identifier, ids) if is_identifier(id, "a")]
        return [asset for start in range(0, len(valid), 1000)
                for asset in self._library.fetch(ids=valid[start:start + 1000])]

    def __contains__(self, id: object) -> bool:
        return isinstance(id, (str, Asset)) and self.get(identifier(id)) is not None

    def __iter__(self) -> Iterator[Asset]:
        return iter(self._library.fetch())

    def __len__(self) -> int:
        return self._library.count()


class Albums:
    """The albums of a library, by identifier or title: `library.albums["Alps"]`."""

    def __init__(self, library: "Library") -> None:
        self._library = library

    def __getitem__(self, key: str) -> AssetCollection:
        """Returns a collection by its identifier, or an album by its title.

        Raises IdentifierNotFoundError, or MultipleIdentifiersFoundError if several albums have the title.
        """
        if len(key) == 27 and key.startswith("c"):
            by_id = self._library.collections(ids=[key]).first()
            if by_id is not None:
                return by_id
        found = self._library.collections("title == %@", arguments=[key], type="album")
        if len(found) > 1:
            raise MultipleIdentifiersFoundError(
                message=f"{len(found)} albums are called {key!r}; use an identifier", data={"candidates": found.ids()}
            )
        if not found:
            raise IdentifierNotFoundError(message=f"there is no album {key!r}")
        return found[0]

    def get(self, key: str, default: Optional[AssetCollection] = None) -> Optional[AssetCollection]:
        """Returns a collection or an album, or the default if there is none."""
        try:
            return self[key]
        except IdentifierNotFoundError:
            return default

    def __iter__(self) -> Iterator[AssetCollection]:
        return iter(self._library.collections(type="album"))

    def __len__(self) -> int:
        return len(self._library.collections(type="album"))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None


class Library:
    """A photo library.

    - `endpoints`: the addresses of the services; by default environment variables and the run folder
    - `client`: the name of this program, which the change history shows
    - `keys`: the paths of the client's secret certificate and the server's public one, for TCP; by default
      `SAFELIGHT_CLIENT_KEY` and `SAFELIGHT_SERVER_KEY`
    - `wait`: seconds to wait for services that are not running yet; without it a request fails at once

    `catalog`, `thumbnailer`, `editor` and `broker` are clients of the services, for requests of the protocol.
    """

    def __init__(
        self, endpoints: Union[Endpoints, str, None] = None, client: str = "python", keys: Optional[Keys] = None,
        context: "Optional[zmq.Context[Any]]" = None, wait: float = 0.0,
    ) -> None:
        self.endpoints = endpoints if isinstance(endpoints, Endpoints) else Endpoints(endpoints)
        self.client = client
        self.keys = keys or keys_of_environment()
        self._wait = wait
        self._context: "zmq.Context[Any]" = context or zmq.Context.instance()
        self._process = os.getpid()
        self._local = threading.local()
        self._subscriptions: "weakref.WeakSet[Subscription]" = weakref.WeakSet()
        self._closings = 0
        self.catalog = self._service("catalog", self.endpoints.catalog, wait)
        self.thumbnailer = self._service("thumbnailer", self.endpoints.thumbnailer, wait)
        self.editor = self._service("editor", self.endpoints.editor, wait)
        self.broker = self._service("change-broker", self.endpoints.broker, wait)
        self.assets = Assets(self)
        self.albums = Albums(self)
        self.grants = Grants(self)
        self.upload_jobs = UploadJobs(self)

    def _service(self, name: str, address: str, wait: float) -> Service:
        listed = split_addresses(address) if name != "change-broker" else [address]
        if len(listed) == 1:
            return Service(self.context, address, self.keys, name, wait)
        if name == "catalog":
            catalogs = [Service(self.context, one, self.keys, name, is_replaceable=True) for one in listed]
            return Catalogs(catalogs, wait)
        return ServiceInstances([Service(self.context, one, self.keys, name) for one in listed], wait)

    @property
    def context(self) -> "zmq.Context[Any]":
        """The context of the sockets. A forked process has its own context and connections."""
        self._context = context_of_process(self._context, self._process)
        self._process = os.getpid()
        return self._context

    def __reduce__(self) -> Any:
        return equal_library, (self.endpoints, self.client, self.keys, self._wait)

    def __deepcopy__(self, _: Any) -> "Library":
        return self  # a copied asset uses the connections of the asset

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. A later request opens new ones.

        The requests of other threads raise UserCancelledError, and their `changes` and `live` end.
        """
        self._closings += 1
        for subscription in list(self._subscriptions):
            subscription.is_closed = True
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            service.close()

    def __repr__(self) -> str:
        return f"<Library at {self.endpoints.catalog}>"

    # Requests

    def call(self, method: str, params: Optional[Mapping[str, Any]] = None, deadline: float = 30.0) -> Any:
        """Returns the result of a method of the protocol, or `(result, attachments)`, from the service that has it.

        Reads are repeated after temporary errors until the deadline, in seconds. So are the methods that take a
        `transaction`, always with the same id: the one in the parameters, or a new one. A request of another method
        might be carried out twice, so it is sent again only if it is certain that it was not carried out.
        """
        service = self.service_of(method)
        params = dict(params or {})
        if method in TRANSACTIONS:
            params.setdefault("client", self.client)
            params.setdefault("transaction", new_transaction_id())
        is_safe = method in READS or method in TRANSACTIONS
        reply = self.with_retries(
            lambda seconds_left: service.request(method, params, deadline=seconds_left), deadline,
            may_repeat=lambda error: error.is_temporary and (is_safe or error.is_unsent),
        )
        return (reply.result, reply.attachments) if reply.attachments else reply.result

    def service_of(self, method: str) -> Service:
        """Returns the service that has a method."""
        family = method.split(".")[0]
        if family in ("image", "cache", "video", "livePhoto"):
            return self.thumbnailer
        if method in ("fetch.observe", "fetch.details", "fetch.unobserve") or family == "feed":
            return self.broker
        if family == "editing" or (family == "edits" and method not in ("edits.status", "edits.pending")):
            return self.editor
        return self.catalog

    def request(
        self, service: Service, method: str, params: Optional[Mapping[str, Any]] = None,
        attachments: Attachments = (), deadline: float = 30.0,
        on_notification: Optional[NotificationHandler] = None,
    ) -> Reply:
        """Returns the reply of a service. The request must be safe to repeat: it is repeated after temporary errors."""
        return self.with_retries(
            lambda seconds_left: service.request(method, params, attachments, seconds_left, on_notification), deadline
        )

    def with_retries(
        self, function: Callable[[float], Result], deadline: float = 30.0, *, is_limited: bool = True,
        may_repeat: Callable[[SafelightError], bool] = lambda error: error.is_temporary,
    ) -> Result:
        """Returns the result of `function(seconds_left)`.

        Calls it again after a temporary error, with growing delays, until the deadline in seconds. Without a limit the
        function receives infinity and may take any time: the deadline then limits the time of consecutive errors.
        """
        end = time.monotonic() + deadline if is_limited else math.inf
        delays = iter(RETRY_DELAYS)
        closings = self._closings
        while True:
            started = time.monotonic()
            try:
                return function(max(0.1, end - started) if is_limited else math.inf)
            except SafelightError as error:
                now = time.monotonic()
                # A service that worked on the request for this long was running, unless it waited for another service.
                is_unavailable = isinstance(error, (UnavailableError, DeadlineExceededError))
                is_new_row = now - started >= deadline and not is_unavailable
                if not is_limited and (end == math.inf or is_new_row):
                    end, delays = now + deadline, iter(RETRY_DELAYS)
                delay = next(delays, RETRY_DELAYS[-1])
                if not may_repeat(error) or now + delay >= end:
                    raise
                time.sleep(delay)
                if self._closings != closings:
                    raise UserCancelledError(message="the library was closed before the request was repeated") from None

    @property
    def token(self) -> str:
        """The newest token of the library."""
        return str(self.request(self.catalog, "changes.token").result["token"])

    @property
    def oldest_token(self) -> str:
        """The oldest token from which the history is complete."""
        return str(self.request(self.catalog, "changes.token").result["oldest"])

    def status(self, after: Optional[int] = None, deadline: float = 30.0) -> JSON:
        """Returns whether the library can be read and written, and if not, why: `state`, `isReadable`, `problems`.

        With `after`, the `since` of a known status, it waits for another status until the deadline, in seconds.
        The topic `availability` of the live feed has the same messages.
        """
        params = {} if after is None else {"after": after}
        status: JSON = self.request(self.catalog, "library.status", params, deadline=deadline).result
        return status

    def health(self) -> Dict[str, JSON]:
        """Returns the health of each service by its name, and of further instances by name and address.

        Raises the error of the first one that does not answer; `data["health"]` is the health of the others.
        """
        found: Dict[str, JSON] = {}
        names: List[str] = []
        failures: List[SafelightError] = []
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            for one in service.instances:
                name = f"{one.name} {one.address}" if one.name in names else one.name
                names.append(name)
                try:
                    found[name] = one.request("health").result
                except SafelightError as error:
                    failures.append(error)
        if failures:
            failures[0].data["health"] = found
            raise failures[0]
        return found

    # Fetches

    def fetch(
        self, where: Optional[Predicate] = None, *, sort: Sort = (), limit: int = 0, at: Optional[str] = None,
        **options: Any,
    ) -> FetchResult[Asset]:
        """Returns assets. Their pages are fetched when they are needed, all at one token: `at`, or the newest.

        `safelight.fetching.description` has the parameters: `arguments`, `offset`, `album`, `ids`, `media_type`,
        `include_hidden`, `in_trash` and others.
        """
        fetch = description(where, sort=sort, limit=limit, **options)
        return FetchResult(self, "fetch.assets", "assets", Asset, fetch, at)

    def collections(
        self, where: Optional[Predicate] = None, *, sort: Sort = (), limit: int = 0, at: Optional[str] = None,
        **options: Any,
    ) -> FetchResult[AssetCollection]:
        """Returns albums, smart albums and moments: `type="smartAlbum"`, `containing=asset`."""
        fetch = description(where, sort=sort, limit=limit, kind="collections", **options)
        return FetchResult(self, "fetch.collections", "collections", AssetCollection, fetch, at)

    def folders(
        self, where: Optional[Predicate] = None, *, sort: Sort = (), limit: int = 0, at: Optional[str] = None,
        **options: Any,
    ) -> FetchResult[CollectionList]:
        """Returns folders and other lists of collections."""
        fetch = description(where, sort=sort, limit=limit, kind="lists", **options)
        return FetchResult(self, "fetch.lists", "lists", CollectionList, fetch, at)

    def moments(self, **options: Any) -> FetchResult[AssetCollection]:
        """Returns the moments: assets that were taken at about the same time and place."""
        return self.collections(type="moment", **options)

    def children(self, folder: Object = ROOT_FOLDER) -> List[Union[AssetCollection, CollectionList]]:
        """Returns the albums and folders directly in a folder, or in the root, in their order."""
        found: List[Union[AssetCollection, CollectionList]] = []
        token: JSON = {}
        while True:
            fetch = {"kind": "children", "in": identifier(folder)}
            params = {"fetch": fetch, "from": len(found), "count": 1000, **token}
            page = self.request(self.catalog, "fetch.collections", params).result
            token = {"token": page["token"]}
            by_id: Dict[str, Union[AssetCollection, CollectionList]] = {
                one["id"]: AssetCollection(one, self) for one in page["collections"]
            }
            by_id.update((one["id"], CollectionList(one, self)) for one in page.get("lists", []))
            found += [by_id[id] for id in page.get("order", [])]
            if len(found) >= page["count"] or not page.get("order"):
                return found

    def count(self, where: Optional[Predicate] = None, **options: Any) -> int:
        """Returns the number of assets that `fetch` would return."""
        return self.counts([description(where, **options)])[0]

    def counts(self, fetches: Sequence[Mapping[str, Any]]) -> List[int]:
        """Returns the counts of several fetches at one token. `safelight.fetching.description` creates fetches."""
        found: List[int] = self.request(self.catalog, "fetch.counts", {"fetches": list(fetches)}).result["counts"]
        return found

    def duplicates(self) -> Iterator[List[Asset]]:
        """Yields groups of at least two assets with the same image data, in the order of their import.

        Their files differ in their metadata at most. Assets in the trash are left out.
        """
        after: JSON = {}
        while True:
            page = self.request(self.catalog, "fetch.duplicates", after).result
            for group in page["groups"]:
                assets = self.assets.many(group["assets"])
                if len(assets) > 1:
                    yield assets
            if "next" not in page:
                return
            after = {"after": page["next"]}

    def ids(self, fetch: Optional[JSON] = None, deadline: float = 30.0) -> Tuple[List[str], str]:
        """Returns the identifiers of a fetch of assets, and the token at which they are valid."""
        result = FetchResult(self, "fetch.assets", "assets", Asset, dict(fetch or {}))
        return result.ids(), result.token

    def change_details(self, result: FetchResult[Any], to: Optional[str] = None) -> Optional[ChangeDetails]:
        """Returns the changes of a fetch result since its token, up to `to` or now; None if there are none."""
        params = {"from": result.token, "fetch": result.fetch, **({"to": to} if to else {})}
        reply = self.request(self.catalog, "changes.details", params).result
        details = reply.get("details")
        return ChangeDetails.from_json(details, reply["to"], reply.get("objectWasDeleted", False)) if details else None

    # Changes

    @property
    def active_changes(self) -> Optional[Changes]:
        """The transaction of the `with` block that this thread executes."""
        return getattr(self._local, "changes", None)

    @active_changes.setter
    def active_changes(self, changes: Optional[Changes]) -> None:
        self._local.changes = changes

    def changing(self, transaction: Optional[str] = None, deadline: float = 30.0) -> Changes:
        """Returns a transaction for a `with` block, at whose end all its changes are performed, or none.

        The request is repeated under one transaction id until its outcome is known, so that it is performed exactly
        once. With an id of your own, running a program again performs nothing twice.
        """
        return Changes(self, transaction, deadline)

    def perform(
        self, requests: Sequence[Mapping[str, Any]], transaction: Optional[str] = None, deadline: float = 30.0,
        attachments: Attachments = (), digest: Optional[str] = None,
    ) -> JSON:
        """Performs change requests of the protocol in one transaction, exactly once.

        A repeated transaction is recognized by its requests, or by their `digest` if it is given.
        """
        transaction = transaction or new_transaction_id()
        params = {"requests": list(requests), "client": self.client, "transaction": transaction}
        if digest:
            params["requestDigest"] = digest
        performed: JSON = self.request(self.catalog, "changes.perform", params, attachments, deadline).result
        return performed

    @overload
    def changes(
        self, since: Optional[str] = None, topics: Iterable[str] = (), events: Literal[False] = False,
        follow: bool = True,
    ) -> Iterator[Change]: ...

    @overload
    def changes(
        self, since: Optional[str] = None, topics: Iterable[str] = (), *, events: bool, follow: bool = True
    ) -> Iterator[Event]: ...

    def changes(
        self, since: Optional[str] = None, topics: Iterable[str] = (), events: bool = False, follow: bool = True
    ) -> Iterator[Any]:
        """Yields every change after a token exactly once, in order and without gaps: `Change` objects.

        Without a token it starts with the next change after this call, with "start" at the oldest retained change.
        `topics` restricts the changes to topics such as "asset.<id>"; "changes" means all. Without `follow` it ends
        with the newest change, and without a token it then begins with the oldest retained one.

        With `events` it also yields `CaughtUp` and `Expired` events. Without `events`, an expired token raises
        PersistentChangeTokenExpiredError. The iteration ends if another thread closes the library.
        """
        if since == "start":
            since = self.oldest_token
        listed = topic_filter(topics)
        return self._follow(since or self.token, listed, events) if follow else self._retained(since, listed, events)

    def _follow(self, since: str, topics: Iterable[str], events: bool) -> Iterator[Any]:
        state = Feed(since, topics)
        with self._subscription(state.topics or ["changes"]) as subscription:
            while not subscription.is_closed:
                try:
                    found = advance_feed(self, state, subscription)
                except UserCancelledError:
                    if subscription.is_closed:
                        return
                    raise
                for event in found:
                    if should_deliver(event, events):
                        yield self._bound(event)

    def _subscription(self, topics: Iterable[str]) -> Subscription:
        subscription = Subscription(self, topics)
        self._subscriptions.add(subscription)
        return subscription

    def _retained(self, since: Optional[str], topics: Set[str], events: bool) -> Iterator[Any]:
        while True:
            params: JSON = {"topics": sorted(topics), "limit": 500}
            params.update({"token": since} if since else {})
            try:
                page = self.request(self.catalog, "changes.since", params).result
            except PersistentChangeTokenExpiredError as error:
                if not events or "head" not in error.data:
                    raise
                yield Expired(head=error.data["head"], oldest=error.data["oldest"])
                return
            for one in page["records"]:
                part = filtered(one, topics)
                if part is not None:
                    yield self._bound(Change(part))
            if page["token"] in (page["head"], since):
                if events:
                    yield CaughtUp(token=page["token"])
                return
            since = page["token"]

    def _bound(self, event: Event) -> Event:
        if isinstance(event, Change):
            event.client_library = self
        return event

    def live(self, fetch: Optional[Mapping[str, Any]] = None, **options: Any) -> Iterator[LiveList]:
        """Yields the list of identifiers of a fetch of assets, now and after each change of it.

        The fetch is a description, or the parameters of `fetch`: `library.live(where="rating > 3", limit=20)`. Yields
        the same `LiveList` each time, with `ids`, `token` and `details`: the change from the previous list, or None if
        it is not known. The iteration ends if another thread closes the library.
        """
        return self._live(LiveList(live_description(fetch, options)))

    def _live(self, state: LiveList) -> Iterator[LiveList]:
        delivered_version = 0
        with self._subscription([]) as subscription:
            while not subscription.is_closed:
                try:
                    advance_live_list(self, state, subscription)
                except UserCancelledError:
                    if subscription.is_closed:
                        return
                    raise
                if state.version > delivered_version and state.next_action == ("live",):
                    delivered_version = state.mark_delivered(delivered_version)
                    yield state

    # Files

    def upload(self, source: Union[Path, bytes], progress: Optional[ProgressHandler] = None) -> str:
        """Uploads a file or bytes. Returns the id, for the member `upload` of a resource of the protocol."""
        return upload_with_digest(self, source, progress)[0]

    def import_files(
        self, paths: Union[Path, Iterable[Path]], album: Optional[Target] = None,
        progress: Optional[ProgressHandler] = None,
    ) -> List[ImportedFile]:
        """Imports files and folders. Files of one name become one asset: a photo with its raw file, the video of its
        Live Photo, and its XMP sidecar. Files that the library already has are recognized.

        Returns the result for each; a broken file is listed with its error.
        """
        return importing.import_files(self, paths, album, progress)

    def read_parts(
        self, service: Service, method: str, params: Mapping[str, Any], offset: int, end: int
    ) -> Iterator[bytes]:
        """Yields a range of a file in parts. A part that must be downloaded first may take ten minutes."""
        deadline = DOWNLOAD_DEADLINE if params.get("networkAccessAllowed") else 30.0
        while offset < end:
            part = {**params, "offset": offset, "length": min(PART_SIZE, end - offset)}
            data = b"".join(self.request(service, method, part, deadline=deadline).attachments)
            if not data:
                raise SafelightError("invalid_params", f"{method}: the file ends at {offset}, before {end}")
            yield data
            offset += len(data)

    # Images and videos

    def thumbnail(
        self, asset: Object, size: Size = 512, progress: Optional[ProgressHandler] = None, **options: Any
    ) -> ImageData:
        """Returns an image of an asset as bytes. `safelight.images.request` has the options.

        With `network_access_allowed`, an original that is only in remote storage is downloaded, and `progress` is
        called meanwhile. Otherwise NetworkAccessRequiredError is raised.
        """
        return list(self.thumbnails(asset, size, progress, **{"delivery": "highQualityFormat", **options}))[-1]

    def thumbnails(
        self, asset: Object, size: Size = 512, progress: Optional[ProgressHandler] = None, **options: Any
    ) -> Iterator[ImageData]:
        """Yields images of an asset, after the last one is ready: degraded ones first, the requested one last."""
        params = {"asset": identifier(asset), **images.request(size, **{"delivery": "opportunistic", **options})}
        yield from self._images("image.request", params, progress)

    def image_data(
        self, asset: Object, version: str = "current", *, network_access_allowed: bool = False,
        progress: Optional[ProgressHandler] = None,
    ) -> ImageData:
        """Returns the file of an image, with its orientation: requestImageDataAndOrientation."""
        params = {"asset": identifier(asset), "version": version, "networkAccessAllowed": network_access_allowed}
        return list(self._images("image.data", params, progress))[-1]

    def download(
        self, asset: Object, type: str = "photo", progress: Optional[ProgressHandler] = None
    ) -> bool:
        """Downloads a resource to the catalog's machine if it is not there. Returns whether it was downloaded."""
        params = {"asset": identifier(asset), "type": type, "networkAccessAllowed": True}
        downloaded: bool = self.download_request(self.catalog, "resource.download", params, progress)[0]["isDownloaded"]
        return downloaded

    def download_request(
        self, service: Service, method: str, params: JSON, progress: Optional[ProgressHandler] = None,
        deadline: float = 30.0, on_notification: Optional[NotificationHandler] = None,
    ) -> Reply:
        """Sends a request that may download originals, and passes on its progress.

        With network access it takes as long as the download; the deadline then limits the time of consecutive errors.
        An exception of the handler cancels the request and its download.
        """

        def notified(name: str, values: JSON, attachments: List[bytes]) -> None:
            if name == "resource.progress":
                if progress:
                    progress(Progress(values["progress"], 1.0))
            elif on_notification:
                on_notification(name, values, attachments)

        is_limited = not params.get("networkAccessAllowed")
        sent = params if is_limited else {**params, "credit": 1 << 24}
        return self.with_retries(
            lambda seconds_left: service.request(method, sent, (), seconds_left, notified), deadline,
            is_limited=is_limited,
        )

    def _images(
        self, method: str, params: JSON, progress: Optional[ProgressHandler] = None
    ) -> Iterator[ImageData]:
        found: List[ImageData] = []
        parts: List[bytes] = []

        def notified(name: str, described: JSON, attachments: List[bytes]) -> None:
            if name == "image.degraded":
                found.append(ImageData(described, b"".join(attachments)))
            elif name == "image.chunk":
                if described["offset"] == 0:
                    parts.clear()
                parts.extend(attachments)

        reply = self.download_request(self.thumbnailer, method, params, progress, on_notification=notified)
        yield from found
        yield ImageData(reply.result, b"".join(reply.attachments or parts))

    def playback(
        self, asset: Object, version: str = "current", *, network_access_allowed: bool = False,
        progress: Optional[ProgressHandler] = None,
    ) -> VideoPlayback:
        """Returns the data that a player of the video needs."""
        params = {"asset": identifier(asset), "version": version, "networkAccessAllowed": network_access_allowed}
        reply = self.download_request(self.thumbnailer, "video.playback", params, progress)
        return VideoPlayback(reply.result, self, network_access_allowed)

    def frames(
        self, asset: Object, count: Optional[int] = None, times: Sequence[float] = (), size: Size = 256,
        network_access_allowed: bool = False, progress: Optional[ProgressHandler] = None, **options: Any,
    ) -> List[Frame]:
        """Returns frames of a video: `count` at equal distances, or those at `times` in seconds."""
        params: JSON = {"asset": identifier(asset), "targetSize": images.target_size(size),
                        "networkAccessAllowed": network_access_allowed, **options}
        if count is not None:
            params["count"] = count
        else:
            params["times"] = [round(time * 1e6) for time in times]
        reply = self.download_request(self.thumbnailer, "image.frames", params, progress)
        return images.frames(reply.result, reply.attachments)

    def export_video(
        self, asset: Object, path: Path, preset: str = "highest", version: str = "current",
        progress: Optional[ProgressHandler] = None, network_access_allowed: bool = False,
    ) -> None:
        """Exports a video with a preset to a file. `progress` is called with seconds of the video."""
        params = {"asset": identifier(asset), "preset": preset, "version": version,
                  "networkAccessAllowed": network_access_allowed}
        thumbnailer = self.thumbnailer.instance(params)
        export = self.download_request(thumbnailer, "video.export", params).result
        try:
            while export["state"] in ("waiting", "running"):
                status = {"export": export["export"], "wait": 500}
                export = self.request(thumbnailer, "video.exportStatus", status).result
                if progress:
                    progress(Progress(export["done"] / 1e6, export["duration"] / 1e6, os.fspath(path)))
            if export["state"] != "done":
                error = export.get("error") or {"name": "user_cancelled", "message": "the export was cancelled"}
                raise make_error(error["name"], error["message"])
            stream = {"asset": identifier(asset), "stream": export["stream"]}
            parts = self.read_parts(thumbnailer, "video.read", stream, 0, export["size"])
            save_parts(path, parts, export["size"])
        finally:
            # The number of exports of a client is limited, and finished ones count.
            with contextlib.suppress(SafelightError):
                thumbnailer.request("video.cancelExport", {"export": export["export"]}, deadline=5.0)

    def live_photo(
        self, asset: Object, size: Size = None, *, network_access_allowed: bool = False,
        progress: Optional[ProgressHandler] = None, **options: Any,
    ) -> LivePhoto:
        """Returns the still and the video of a Live Photo."""
        params = {"asset": identifier(asset), "targetSize": images.target_size(size),
                  "deliveryMode": "highQualityFormat", "networkAccessAllowed": network_access_allowed, **options}
        reply = self.download_request(self.thumbnailer, "livePhoto.request", params, progress)
        still = ImageData(reply.result["still"], b"".join(reply.attachments))
        return LivePhoto(still, VideoPlayback(reply.result["film"], self, network_access_allowed))

    # Edits

    def edit(
        self, assets: Iterable[Object], *operations: Any, mode: str = "replace", engine: Optional[str] = None,
        enhance: bool = False, magick: Optional[str] = None, dry_run: bool = False, transaction: Optional[str] = None,
        progress: Optional[ProgressHandler] = None, deadline: float = 600.0, network_access_allowed: bool = False,
        **values: Any,
    ) -> EditOutcome:
        """Renders and commits an edit of several assets, one transaction for each. `results` has each outcome.

        `safelight.editing.adjustments` describes the operations. `mode` is `replace` or `append`; `engine` is `fused`
        or `imagemagick`; `magick` are options of ImageMagick's convert; `enhance` inserts what `suggestion` returns;
        `dry_run` validates only. With `network_access_allowed`, originals in remote storage are downloaded first.
        """
        options = _edit_options(operations, values, mode, engine, enhance, magick)
        ids = [identifier(asset) for asset in assets]
        if not ids:
            return EditOutcome({"done": 0, "failed": 0, "isChanged": False, "dryRun": dry_run, "results": []})
        options.update(assets=ids, dryRun=dry_run, networkAccessAllowed=network_access_allowed)
        return self._commit_edit("edits.apply", options, transaction, deadline, progress)

    def edit_one(
        self, asset: Object, *operations: Any, mode: str = "replace", engine: Optional[str] = None,
        enhance: bool = False, magick: Optional[str] = None, dry_run: bool = False, transaction: Optional[str] = None,
        if_content_revision: Optional[str] = None, deadline: float = 120.0, network_access_allowed: bool = False,
        progress: Optional[ProgressHandler] = None, **values: Any,
    ) -> EditOutcome:
        """Renders and commits an edit of one asset. With `if_content_revision` it is refused with ConflictError if the
        pixels have changed since. With `network_access_allowed`, an original in remote storage is downloaded first, and
        `progress` is called meanwhile."""
        options = _edit_options(operations, values, mode, engine, enhance, magick)
        options.update(asset=identifier(asset), dryRun=dry_run, networkAccessAllowed=network_access_allowed)
        if if_content_revision:
            options["ifContentRevision"] = if_content_revision
        return self._commit_edit("edits.apply", options, transaction, deadline, downloads=progress)

    def copy_edits(
        self, source: Object, assets: Iterable[Object], *, mode: str = "replace", geometry: bool = True,
        transaction: Optional[str] = None, deadline: float = 600.0, network_access_allowed: bool = False,
    ) -> EditOutcome:
        """Applies the operations of one asset to others; without `geometry`, not crop, rotation and the like."""
        ids = [identifier(one) for one in assets]
        if not ids:
            return EditOutcome({"done": 0, "failed": 0, "isChanged": False, "results": []})
        params = {"from": identifier(source), "to": ids, "mode": mode, "geometry": geometry,
                  "networkAccessAllowed": network_access_allowed}
        return self._commit_edit("edits.copy", params, transaction, deadline)

    def undo(self, asset: Object, step: Optional[int] = None, *, transaction: Optional[str] = None) -> EditOutcome:
        """Restores a step of an asset's history, 0 for the original; without one, the step before the last."""
        params = {"asset": identifier(asset), **({} if step is None else {"step": step})}
        return self._commit_edit("edits.undo", params, transaction, 120.0)

    def revert(self, asset: Object, *, transaction: Optional[str] = None) -> EditOutcome:
        """Discards all edits of an asset."""
        return self._commit_edit("edits.revert", {"asset": identifier(asset)}, transaction, 120.0)

    def _commit_edit(
        self, method: str, params: JSON, transaction: Optional[str], deadline: float,
        progress: Optional[ProgressHandler] = None, downloads: Optional[ProgressHandler] = None,
    ) -> EditOutcome:
        params.update(client=self.client, transaction=transaction or new_transaction_id())

        def notified(name: str, count: JSON, _: List[bytes]) -> None:
            if progress and name == "edits.progress":
                progress(Progress(count["done"] + count["failed"], count["total"]))

        if progress:
            params["credit"] = 1 << 20
        return EditOutcome(self.download_request(self.editor, method, params, downloads, deadline, notified).result)

    def preview(self, asset: Object, *operations: Any, size: int = 1024, engine: Optional[str] = None,
                magick: Optional[str] = None, network_access_allowed: bool = False,
                progress: Optional[ProgressHandler] = None, **values: Any) -> ImageData:
        """Renders an edit without committing it."""
        params: JSON = {"asset": identifier(asset), "maximumSide": size,
                        "adjustments": editing.adjustments(*operations, **values),
                        "networkAccessAllowed": network_access_allowed}
        params.update((name, value) for name, value in (("engine", engine), ("magick", magick)) if value)
        reply = self.download_request(self.editor, "edits.preview", params, progress)
        return ImageData({"asset": params["asset"], **reply.result}, b"".join(reply.attachments))

    def compare(self, asset: Object, size: int = 1024) -> ImageData:
        """Returns the original and the current image side by side."""
        reply = self.request(self.editor, "edits.compare", {"asset": identifier(asset), "maximumSide": size})
        return ImageData({"asset": identifier(asset), **reply.result}, b"".join(reply.attachments))

    def history(self, asset: Object) -> List[EditStep]:
        """Returns the steps of an asset's edits, the oldest first."""
        steps = self.request(self.editor, "edits.history", {"asset": identifier(asset)}).result["steps"]
        return [EditStep(one) for one in steps]

    def publish(
        self, edits: Iterable[Tuple[Object, Adjustments]], *, mode: str = "replace", engine: Optional[str] = None,
        transaction: Optional[str] = None, deadline: float = 600.0, network_access_allowed: bool = False,
    ) -> Iterator[EditStatus]:
        """Publishes edits, pairs of an asset and its `adjustments`, and yields the final state of each. They are
        sent while the result is iterated: `for status in library.publish(edits)`.

        Edits of one asset are applied in their order. Each is applied exactly once, even if services are killed. With
        an id of your own, publishing the same edits again applies nothing twice: two edits are the same if asset,
        adjustments and options are equal, at any position in the list.
        """
        options: JSON = {"mode": mode, **({"engine": engine} if engine else {})}
        if network_access_allowed:
            options["networkAccessAllowed"] = True
        return Publisher(self, edits, options, transaction or new_transaction_id(), bool(transaction)).run(deadline)

    def publish_one(
        self, asset: Object, *operations: Any, mode: str = "replace", engine: Optional[str] = None,
        deadline: float = 120.0, network_access_allowed: bool = False, **values: Any,
    ) -> EditStatus:
        """Publishes an edit and waits until it is applied. Raises the error if it fails."""
        listed = editing.adjustments(*operations, **values)
        status = next(iter(self.publish(
            [(asset, listed)], mode=mode, engine=engine, deadline=deadline,
            network_access_allowed=network_access_allowed,
        )))
        if status.error is not None:
            raise status.error
        return status

    # Access

    def request_authorization(
        self, purpose: str = "", access: str = "readWrite", deadline: float = 30.0
    ) -> Session:
        """Asks for access, and waits for the owner's decision until the deadline, at most ten minutes.

        Returns the access of this program; `status` is `notDetermined` if nobody has decided yet.
        """
        params = {"client": self.client, "purpose": purpose, "access": access}
        return Session(self.request(self.catalog, "session.open", params, deadline=deadline).result)


def _edit_options(
    operations: Sequence[Any], values: JSON, mode: str, engine: Optional[str], enhance: bool, magick: Optional[str]
) -> JSON:
    options: JSON = {"adjustments": editing.adjustments(*operations, **values), "mode": mode, "enhance": enhance}
    options.update((name, value) for name, value in (("engine", engine), ("magick", magick)) if value)
    return options


def live_description(fetch: Optional[Mapping[str, Any]], options: JSON) -> JSON:
    """Returns the description of a live list. Raises ValueError for both a description and parameters."""
    if fetch is not None and options:
        raise ValueError(f"give the description of a fetch, or its parameters: not both ({', '.join(sorted(options))})")
    return dict(fetch) if fetch is not None else description(**options)


# The libraries of unpickled objects, by their parameters.
_unpickled: Dict[str, Library] = {}


def equal_library(endpoints: Endpoints, client: str, keys: Optional[Keys], wait: float) -> Library:
    """Returns the library of unpickled objects with these parameters. They share one, so that not each object opens
    connections of its own."""
    key = repr((sorted(vars(endpoints).items(), key=str), client, keys, wait))
    return _unpickled.get(key) or _unpickled.setdefault(key, Library(endpoints, client, keys, wait=wait))


def keys_of_environment() -> Optional[Keys]:
    """Returns the paths of the keys in `SAFELIGHT_CLIENT_KEY` and `SAFELIGHT_SERVER_KEY`."""
    client, server = os.getenv("SAFELIGHT_CLIENT_KEY"), os.getenv("SAFELIGHT_SERVER_KEY")
    return (client, server) if client and server else None


