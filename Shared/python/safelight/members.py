"""Typed attributes of the JSON objects that the services return."""

from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Generic, Mapping, Optional, Tuple, Type, TypeVar, Union, overload

Value = TypeVar("Value")

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def date_from_json(value: Union[int, str]) -> datetime:
    """Returns a date of a response: microseconds since 1970, or RFC 3339 text."""
    if isinstance(value, str):
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    return EPOCH + timedelta(microseconds=value)


def camel_case(name: str) -> str:
    """Returns the name of a member in JSON: `is_favorite` is `isFavorite`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


class Member(Generic[Value]):
    """A read-only attribute that is a member of a JSON object."""

    def __init__(self, name: str, convert: Callable[[Any], Value], default: Value, doc: str) -> None:
        self.name = name
        self._convert = convert
        self._default = default
        self.__doc__ = doc

    @overload
    def __get__(self, instance: None, owner: Type[Any]) -> "Member[Value]": ...

    @overload
    def __get__(self, instance: "Record", owner: Type[Any]) -> Value: ...

    def __get__(self, instance: Optional["Record"], owner: Type[Any]) -> Union["Member[Value]", Value]:
        if instance is None:
            return self
        value = instance.json.get(self.name)
        return self._default if value is None else self._convert(value)

    def __set__(self, instance: "Record", value: Any) -> None:
        raise AttributeError(f"{self.name} is read-only: change the library with `library.changing()`")


class Record:
    """An object of a response, with an attribute for each member. `json` is the object as it was received."""

    _shown: Tuple[str, ...] = ()

    def __init__(self, json: Mapping[str, Any]) -> None:
        self.json: Dict[str, Any] = dict(json)

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self._shown)
        shown = (
            f"{name}={value.isoformat()}" if isinstance(value, datetime) else f"{name}={value!r}"
            for name, value in values
            if value not in (None, (), "", False)
        )
        return f"<{' '.join([type(self).__name__, *shown])}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Record) and other.json == self.json

    def __hash__(self) -> int:
        return hash((type(self), frozen(self.json)))


def frozen(value: Any) -> Any:
    """Returns a hashable form of a JSON value; equal values have equal forms."""
    if isinstance(value, Mapping):
        return frozenset((key, frozen(one)) for key, one in value.items())
    return tuple(frozen(one) for one in value) if isinstance(value, (list, tuple)) else value


def text(name: str, doc: str, default: str = "") -> Member[str]:
    return Member(name, str, default, doc)


def optional_text(name: str, doc: str) -> Member[Optional[str]]:
    return Member(name, lambda value: str(value), None, doc)


def integer(name: str, doc: str) -> Member[int]:
    return Member(name, int, 0, doc)


def optional_integer(name: str, doc: str) -> Member[Optional[int]]:
    return Member(name, lambda value: int(value), None, doc)


def number(name: str, doc: str) -> Member[float]:
    return Member(name, float, 0.0, doc)


def optional_number(name: str, doc: str) -> Member[Optional[float]]:
    return Member(name, lambda value: float(value), None, doc)


def boolean(name: str, doc: str, default: bool = False) -> Member[bool]:
    return Member(name, bool, default, doc)


def strings(name: str, doc: str) -> Member[Tuple[str, ...]]:
    empty: Tuple[str, ...] = ()
    return Member(name, lambda value: tuple(str(one) for one in value), empty, doc)


def date(name: str, doc: str) -> Member[datetime]:
    return Member(name, date_from_json, EPOCH, doc)


def optional_date(name: str, doc: str) -> Member[Optional[datetime]]:
    return Member(name, lambda value: date_from_json(value), None, doc)


def seconds(name: str, doc: str) -> Member[float]:
    return Member(name, lambda value: float(value) / 1e6, 0.0, doc)


def anything(name: str, doc: str) -> Member[Any]:
    return Member(name, lambda value: value, None, doc)


Part = TypeVar("Part", bound=Record)


def record(name: str, kind: Type[Part], doc: str) -> Member[Optional[Part]]:
    return Member(name, lambda value: kind(value), None, doc)


def records(name: str, kind: Type[Part], doc: str) -> Member[Tuple[Part, ...]]:
    empty: Tuple[Part, ...] = ()
    return Member(name, lambda value: tuple(kind(one) for one in value), empty, doc)
