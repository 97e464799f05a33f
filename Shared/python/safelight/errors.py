"""What a service refuses, and what became of a token."""

PASSING = {"busy", "connection_lost", "unavailable", "deadline_exceeded", "behind", "interrupted"}


class SafelightError(Exception):
    """An error reply of a service.

    `name` and `code` are those of the tables in Shared/docs; `data` says what was offered instead.
    """

    def __init__(self, name, message, code=0, data=None):
        super().__init__(f"{name}: {message}")
        self.name, self.message, self.code, self.data = name, message, code, data or {}

    @property
    def is_passing(self):
        """Whether the same request may well succeed a little later."""
        return self.name in PASSING

    @classmethod
    def of(cls, error):
        data = error.get("data") or {}
        return cls(data.get("name", "internal_error"), error.get("message", ""), error.get("code", 0), data)


class Expired(dict):
    """An event: the history does not reach back to the token, or is another one. Fetch everything again; the feed goes
    on after `self["head"]`, so that a fetch begun now misses nothing."""
