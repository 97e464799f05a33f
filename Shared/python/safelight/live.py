"""A live fetch result as a state machine: the list of identifiers, exactly as the library has it at `token`."""

from .feed import CONFIRM_AFTER, split


def apply_details(ids, details):
    """The after list: takes out removed and moved together, then puts in inserted and moved in ascending order."""
    if not details["hasIncrementalChanges"]:
        raise ValueError("the details are not incremental: fetch again")
    if len(ids) != details["countBefore"]:
        raise ValueError(f"the list has {len(ids)} entries, the details are about {details['countBefore']}")
    removed, moved = details.get("removed", []), details.get("moved", [])
    for one, index in [(one, one["index"]) for one in removed] + [(one, one["before"]) for one in moved]:
        if ids[index] != one["id"]:
            raise ValueError(f"{one['id']} does not stand at {index}")
    taken = {one["index"] for one in removed} | {one["before"] for one in moved}
    after = [one for index, one in enumerate(ids) if index not in taken]
    placed = [(one["index"], one["id"]) for one in details.get("inserted", [])]
    for index, one in sorted(placed + [(one["after"], one["id"]) for one in moved]):
        after.insert(index, one)
    if len(after) != details["countAfter"]:
        raise ValueError("the details contradict themselves")
    return after


class LiveList:
    """`want` is what to do next: ("list",) fetch the list, ("observe", token), ("subscribe", topic),
    ("details", token) or ("live",). `ids` is the list at `token`; `version` grows whenever it changed."""

    def __init__(self, fetch):
        self.fetch = fetch
        self.ids, self.token, self.version = [], None, 0
        self.observation = self.topic = self.instance = None
        self._subscribed = None
        self._asking = False
        self._behind_since = None

    @property
    def want(self):
        if self.token is None:
            return ("list",)
        if self.observation is None:
            return ("observe", self.token)
        if self._subscribed != self.topic:
            return ("subscribe", self.topic)
        return ("details", self.token) if self._asking else ("live",)

    # In answer to what was wanted

    def listed(self, ids, token):
        """The whole list as it is at a token."""
        self.ids, self.token = list(ids), token
        self.version += 1

    def observed(self, answer):
        self.observation, self.topic, self.instance = answer["observation"], answer["topic"], answer["instance"]
        self.detailed(answer)

    def subscribed(self, topic):
        # What was published between the observation and the subscription is asked for.
        self._subscribed, self._asking = topic, True

    def detailed(self, answer):
        """Details from the list at hand to `answer["token"]`; none where nothing changed."""
        self._asking, self._behind_since = False, None
        details = answer.get("details")
        if details is None:
            self.token = answer["token"]
        elif details["hasIncrementalChanges"]:
            self.ids, self.token = apply_details(self.ids, details), answer["token"]
            self.version += 1
        elif "ids" in answer:
            self.listed(answer["ids"], answer["token"])
        else:
            self.token = None

    def refused(self, error):
        """What was wanted was refused; returns whether the machine knows what to do about it."""
        if error.name == "handle_expired":
            self.observation = None
        elif error.name == "token_expired":
            self.token = self.observation = None
        else:
            return False
        return True

    # The live path

    def live(self, topic, message):
        if topic != self.topic or self.token is None or self.observation is None:
            return
        library, position = split(self.token)
        if message["library"] != library or message["sequence"] <= position:
            return
        if message.get("truncated") or message["previous"] > position:
            self._asking = True
            return
        try:
            self.detailed({"details": message["details"], "token": message["token"]})
        except ValueError:
            self.token = self.observation = None

    def head(self, head, now):
        """A head message; `now` in seconds on a clock that is not set back."""
        if self.token is None:
            return
        library, position = split(self.token)
        if head["library"] != library:
            self.token = self.observation = None
        elif self.observation is not None and head["instance"] != self.instance:
            self.observation = None
        elif head["sequence"] <= position:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= CONFIRM_AFTER:
            self._asking = True

    def unreadable(self):
        self._asking = True
