"""Fetches, and their lazily paged results."""

import threading
from collections import OrderedDict
from collections.abc import Sequence as AbstractSequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union,
    overload,
)

from .errors import JSON, LimitExceededError
from .live import apply_details
from .members import camel_case
from .objects import LibraryObject, Object, identifier, is_identifier

if TYPE_CHECKING:
    from .library import Library

PAGE_SIZE = 200
PAGES_IN_MEMORY = 50
IDS_PER_PAGE = 100_000

# A condition: NSPredicate's format, a tree as JSON, or a Boolean.
Predicate = Union[str, bool, Mapping[str, Any]]
# "-creationDate" is descending; snake_case names are accepted, too.
Sort = Union[str, Mapping[str, Any], Sequence[Union[str, Mapping[str, Any]]]]

Item = TypeVar("Item", bound=LibraryObject)


def plain(value: Any) -> Any:
    """Returns a value as JSON: dates as RFC 3339 text, objects as their identifiers. Naive dates are local time."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.astimezone()).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, LibraryObject):
        return value.id
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, AbstractSequence)) and not isinstance(value, (str, bytes)):
        return [plain(one) for one in value]
    return value


def sort_descriptors(sort: Sort) -> List[JSON]:
    """Returns sort descriptors for keys such as `-creationDate`."""
    keys = [sort] if isinstance(sort, (str, Mapping)) else sort
    descriptors: List[JSON] = []
    for key in keys:
        if isinstance(key, str):
            descriptors.append({"key": camel_case(key.lstrip("+-")), "ascending": not key.startswith("-")})
        else:
            descriptors.append(dict(key))
    return descriptors


def description(
    where: Optional[Predicate] = None,
    *,
    arguments: Sequence[Any] = (),
    sort: Sort = (),
    limit: int = 0,
    offset: int = 0,
    album: Optional[Object] = None,
    ids: Optional[Iterable[Object]] = None,
    media_type: Optional[str] = None,
    **options: Any,
) -> JSON:
    """Returns the description of a fetch.

    - `where`: a condition in NSPredicate's format; each `%@` in it stands for one of the `arguments`
    - `sort`: one key or several; `-creationDate` is descending; ties are broken by the identifiers
    - `limit`: the maximum count, 0 for all; `offset`: the number of results to skip
    - `album`: the collection that contains the assets, or the folder below which they are
    - `ids`: only these, in this order
    - `media_type`: `image`, `video` or `audio`
    - `include_hidden`, `in_trash`, `include_all_burst_assets`, `burst_identifier`, `source_types`, `containing`,
      `type`, `subtype`: as in the protocol
    """
    fetch: JSON = {camel_case(name): plain(value) for name, value in options.items() if value is not None}
    if where is not None:
        fetch["predicate"] = {"format": where, "arguments": plain(arguments)} if arguments else plain(where)
    if sort:
        fetch["sort"] = sort_descriptors(sort)
    if limit:
        fetch["limit"] = limit
    if offset:
        fetch["offset"] = offset
    if album is not None:
        fetch["in"] = identifier(album)
    if ids is not None:
        fetch["ids"] = [identifier(one) for one in ids]
    if media_type is not None:
        fetch["mediaType"] = media_type
    return fetch


class FetchResult(Sequence[Item]):
    """The result of a fetch, as it was at `token`: a sequence whose pages are fetched when they are needed.

    All pages are read at the same token, whatever has changed since. At most 50 pages are kept in memory.
    """

    def __init__(
        self, library: "Library", method: str, member: str, make: "Callable[[JSON, Library], Item]", fetch: JSON,
        token: Optional[str] = None, page_size: int = PAGE_SIZE,
    ) -> None:
        self._library = library
        self._method = method
        self._member = member
        self._make = make
        self._fetch = fetch
        self._token = token
        self._page_size = page_size
        self._count: Optional[int] = None
        self._pages: "OrderedDict[int, List[Item]]" = OrderedDict()
        # Held while the first page is read, because all others are read at its token, and while `_pages` is used.
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        parts = (self._library, self._method, self._member, self._make, self._fetch, self.token, self._page_size)
        return type(self), parts

    @property
    def fetch(self) -> JSON:
        """The description of the fetch, as the protocol has it."""
        return dict(self._fetch)

    @property
    def token(self) -> str:
        """The token at which the result was read. `Library.changes(since=result.token)` continues from there."""
        if self._token is None:
            self._page(0)
        return str(self._token)

    @property
    def sequence(self) -> int:
        """The sequence of the last change that the result contains."""
        return int(self.token.rsplit(".", 1)[1])

    def __len__(self) -> int:
        if self._count is None:
            self._page(0)
        return self._count or 0

    def __bool__(self) -> bool:
        return len(self) > 0

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> List[Item]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Item, List[Item]]:
        """Returns an object, or the list of objects of a slice."""
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if index < 0 or (self._count is not None and index >= self._count):
            raise IndexError(f"the result has {len(self)} objects")
        page = self._page(index // self._page_size)
        within = index % self._page_size
        if within >= len(page):
            raise IndexError(f"the result has {len(self)} objects")
        return page[within]

    def __iter__(self) -> Iterator[Item]:
        number = 0
        while True:
            page = self._page(number)
            yield from page
            number += 1
            if number * self._page_size >= len(self):
                return

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (str, LibraryObject)) and self._find(identifier(value)) is not None

    def index(self, value: Any, start: int = 0, stop: Optional[int] = None) -> int:
        """Returns the index of an object or an identifier. Raises ValueError if it is not in the result."""
        found = self._find(identifier(value)) if isinstance(value, (str, LibraryObject)) else None
        if found is None or found < start or (stop is not None and found >= stop):
            raise ValueError(f"{value!r} is not in the result")
        return found

    def first(self) -> Optional[Item]:
        """Returns the first object; None if there is none."""
        return self[0] if self else None

    def ids(self) -> List[str]:
        """Returns the identifiers of all objects, without fetching the objects."""
        found: List[str] = []
        while True:
            params = {"fetch": self._fetch, "from": len(found), "count": IDS_PER_PAGE, "members": ["id"]}
            page = self._read(params)
            found += [one["id"] for one in page[self._member]]
            if len(found) >= page["count"] or not page[self._member]:
                return found

    def refreshed(self) -> "FetchResult[Item]":
        """Returns the result of the same fetch at the newest token."""
        return FetchResult(self._library, self._method, self._member, self._make, self._fetch)

    def _find(self, id: str) -> Optional[int]:
        """Returns the index of an object; None for an identifier, or another text, that is not in the result."""
        if not is_identifier(id):
            return None
        params = {"fetch": self._fetch, "token": self.token, "ids": [id]}
        result = self._library.request(self._library.catalog, "fetch.find", params).result
        found: List[Optional[int]] = result["indexes"]
        return found[0]

    def _page(self, number: int) -> List[Item]:
        with self._lock:
            page = self._pages.get(number)
            if page is not None:
                self._pages.move_to_end(number)
                return page
        objects = self._objects(number * self._page_size, self._page_size)
        page = [self._make(one, self._library) for one in objects]
        with self._lock:
            self._pages[number] = page
            if len(self._pages) > PAGES_IN_MEMORY:
                self._pages.popitem(last=False)
        return page

    def _objects(self, start: int, count: int) -> List[JSON]:
        """Returns the objects of a page, in parts if all together are too large for a message."""
        try:
            objects: List[JSON] = self._read({"fetch": self._fetch, "from": start, "count": count})[self._member]
            return objects
        except LimitExceededError:
            if count == 1:
                raise
        half = count // 2
        return self._objects(start, half) + self._objects(start + half, count - half)

    def _read(self, params: Dict[str, Any]) -> JSON:
        if self._token is None:
            with self._lock:
                if self._token is None:
                    return self._request(params)
        return self._request({**params, "token": self._token})

    def _request(self, params: Dict[str, Any]) -> JSON:
        page: JSON = self._library.request(self._library.catalog, self._method, params).result
        self._token, self._count = page["token"], page["count"]
        return page

    def __repr__(self) -> str:
        if self._count is None:
            return f"<FetchResult of {self._fetch}, not fetched yet>"
        return f"<FetchResult of {self._count} {self._member} at {self._token}>"


@dataclass(frozen=True)
class ChangeDetails:
    """The differences between a result before and after: PHFetchResultChangeDetails."""

    token: str
    has_incremental_changes: bool
    count_before: int
    count_after: int
    # Pairs of an identifier and its index before.
    removed: Tuple[Tuple[str, int], ...]
    # Pairs of an identifier and its index after.
    inserted: Tuple[Tuple[str, int], ...]
    # An identifier, its index before and its index after.
    moved: Tuple[Tuple[str, int, int], ...]
    changed: Tuple[Tuple[str, int, int], ...]
    object_was_deleted: bool
    json: JSON

    @staticmethod
    def from_json(details: JSON, token: str, object_was_deleted: bool = False) -> "ChangeDetails":
        def positions(name: str) -> Tuple[Tuple[str, int], ...]:
            return tuple((one["id"], one["index"]) for one in details.get(name, []))

        def pairs(name: str) -> Tuple[Tuple[str, int, int], ...]:
            return tuple((one["id"], one["before"], one["after"]) for one in details.get(name, []))

        return ChangeDetails(
            token, details["hasIncrementalChanges"], details["countBefore"], details["countAfter"],
            positions("removed"), positions("inserted"), pairs("moved"), pairs("changed"), object_was_deleted, details,
        )

    def apply(self, ids: Sequence[str]) -> List[str]:
        """Returns the list of identifiers after the change."""
        return apply_details(ids, self.json)
