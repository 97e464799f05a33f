"""The result of an observed fetch as a state machine: the list of identifiers, equal to the library's at `token`."""

from typing import List, Optional, Sequence

from .errors import JSON, SafelightError
from .feed import CONFIRM_AFTER, Action, split_token


def apply_details(ids: Sequence[str], details: JSON) -> List[str]:
    """Returns the list after the change that the details describe.

    Removes the removed and moved entries at their old indexes, then inserts the inserted and moved entries at their new
    indexes in ascending order. Raises ValueError if the details do not fit the list.
    """
    if not details["hasIncrementalChanges"]:
        raise ValueError("the details are not incremental: fetch again")
    if len(ids) != details["countBefore"]:
        raise ValueError(f"the list has {len(ids)} entries, but the details are for {details['countBefore']}")

    removed, moved = details.get("removed", []), details.get("moved", [])
    vacated = [(entry["index"], entry["id"]) for entry in removed] + [(entry["before"], entry["id"]) for entry in moved]
    for index, identifier in vacated:
        if ids[index] != identifier:
            raise ValueError(f"{identifier} is not at index {index}")

    vacated_indexes = {index for index, _ in vacated}
    after = [identifier for index, identifier in enumerate(ids) if index not in vacated_indexes]

    insertions = [(entry["index"], entry["id"]) for entry in details.get("inserted", [])]
    insertions += [(entry["after"], entry["id"]) for entry in moved]
    for index, identifier in sorted(insertions):
        after.insert(index, identifier)

    if len(after) != details["countAfter"]:
        raise ValueError("the details are inconsistent")
    return after


class LiveList:
    """The state of an observed fetch.

    `next_action` is ("list",): fetch the list; ("observe", token): call `fetch.observe`; ("subscribe", topic);
    ("details", token): call `fetch.details`; or ("live",): pass the next live message to `live` or `head`.

    `ids` is the list at `token`; `version` grows with each change of the list.
    """

    def __init__(self, fetch: JSON) -> None:
        self.fetch = fetch
        self.ids: List[str] = []
        self.token: Optional[str] = None
        self.version = 0
        # The change from the previously delivered list to this one, as JSON; None after the whole list was fetched,
        # or after several changes.
        self.details: Optional[JSON] = None
        self.observation: Optional[str] = None
        self.topic: Optional[str] = None
        self.instance: Optional[str] = None
        self._subscribed_topic: Optional[str] = None
        self._needs_details = False
        self._behind_since: Optional[float] = None

    @property
    def next_action(self) -> Action:
        if self.token is None:
            return ("list",)
        if self.observation is None:
            return ("observe", self.token)
        if self._subscribed_topic != self.topic:
            return ("subscribe", self.topic or "")
        return ("details", self.token) if self._needs_details else ("live",)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<LiveList of {len(self.ids)} objects at {self.token}>"

    # Responses

    def set_list(self, ids: Sequence[str], token: str) -> None:
        """Handles the response of ("list",): the whole list at a token."""
        self.ids, self.token, self.details = list(ids), token, None
        self.version += 1

    def handle_observation(self, response: JSON) -> None:
        """Handles the response of ("observe", token)."""
        self.observation = response["observation"]
        self.topic = response["topic"]
        self.instance = response["instance"]
        self.handle_details(response)

    def subscribed(self, topic: str) -> None:
        """Handles the completed subscription of ("subscribe", topic)."""
        self._subscribed_topic = topic
        # Messages between the observation and the subscription may have been missed.
        self._needs_details = True

    def handle_details(self, response: JSON) -> None:
        """Handles the response of ("details", token). There are no `details` in it if nothing has changed."""
        self._needs_details, self._behind_since = False, None
        details = response.get("details")
        if details is None:
            self.token = response["token"]
        elif details["hasIncrementalChanges"]:
            self.ids, self.token, self.details = apply_details(self.ids, details), response["token"], details
            self.version += 1
        elif "ids" in response:
            self.set_list(response["ids"], response["token"])
        else:
            self.token = None

    def recover_from(self, error: SafelightError) -> bool:
        """Handles an error response of the last action. Returns False if the caller must handle the error."""
        if error.name == "handle_expired":
            self.observation = None
        elif error.name == "token_expired":
            self.token = self.observation = None
        else:
            return False
        return True

    # Live messages

    def live(self, topic: str, message: JSON) -> None:
        """Handles a parsed live message."""
        if topic != self.topic or self.token is None or self.observation is None:
            return
        history, position = split_token(self.token)
        if message["library"] != history or message["sequence"] <= position:
            return
        if message.get("truncated") or message["previous"] > position:
            self._needs_details = True
            return
        try:
            self.handle_details({"details": message["details"], "token": message["token"]})
        except ValueError:
            self.token = self.observation = None

    def head(self, head: JSON, now: float) -> None:
        """Handles a head message. `now` is the time in seconds of a monotonic clock."""
        if self.token is None:
            return
        history, position = split_token(self.token)
        if head["library"] != history:
            self.token = self.observation = None
        elif self.observation is not None and head["instance"] != self.instance:
            self.observation = None
        elif head["sequence"] <= position:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= CONFIRM_AFTER:
            self._needs_details = True

    def handle_undecodable(self) -> None:
        """Handles a live message that cannot be parsed."""
        self._needs_details = True

    def handle_silence(self) -> None:
        """Handles several seconds without a message, although a head is published every second."""
        self._needs_details = True

    def mark_delivered(self, version: int) -> int:
        """Prepares the list for the caller, who has it at `version`. Returns the current version."""
        if self.version != version + 1:
            self.details = None  # they would not lead from the list that the caller has
        return self.version
