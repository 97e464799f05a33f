"""The times of requests while parts of a cluster fail."""

import threading
import time


class Clock:
    """The times at which one kind of request succeeded, and the longest time between two of them in each part."""

    def __init__(self):
        self.condition = threading.Condition()
        self.last = time.monotonic()
        self.part = "before a failure"
        self.longest = {}
        self.errors = {}
        # The text of the first internal error: clients must not receive any.
        self.internal_error = None
        self.count = 0

    def succeed(self):
        with self.condition:
            self._update_longest()
            self.last = time.monotonic()
            self.count += 1
            self.condition.notify_all()

    def _update_longest(self):
        self.longest[self.part] = max(self.longest.get(self.part, 0), time.monotonic() - self.last)

    def fail(self, error):
        name = getattr(error, "name", type(error).__name__)
        with self.condition:
            self.errors[name] = self.errors.get(name, 0) + 1
            if name == "internal_error" and self.internal_error is None:
                self.internal_error = f"{self.part}: {error}"

    def mark(self, part):
        with self.condition:
            self._update_longest()
            self.part = part

    def seconds(self):
        """Returns the longest time of the current part, including the time since the last request succeeded."""
        with self.condition:
            self._update_longest()
            return self.longest[self.part]

    def wait_until(self, count, end):
        with self.condition:
            return self.condition.wait_for(lambda: self.count >= count, max(0, end - time.monotonic()))
