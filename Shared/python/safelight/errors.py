"""The errors of the services, and the event for an expired token."""

TEMPORARY_ERRORS = {"busy", "connection_lost", "unavailable", "deadline_exceeded", "behind", "interrupted"}


class SafelightError(Exception):
    """An error reply of a service.

    `name` and `code` are those of the tables in Shared/docs; `data` says what was offered instead.
    """

    def __init__(self, name, message, code=0, data=None):
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message
        self.code = code
        self.data = data or {}

    @property
    def is_temporary(self):
        """True if the same request may succeed a little later."""
        return self.name in TEMPORARY_ERRORS

    @classmethod
    def from_json(cls, error):
        """Creates an error from the `error` member of a JSON-RPC response."""
        data = error.get("data") or {}
        return cls(data.get("name", "internal_error"), error.get("message", ""), error.get("code", 0), data)


class Expired(dict):
    """An event: the history no longer reaches back to the token, or the library has a new history.

    Fetch everything again. The feed continues after `self["head"]`, so a fetch that starts now misses no change.
    """
