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
        # The first error that tells its client nothing.
        self.unnamed = None
        self.count = 0

    def succeed(self):
        with self.condition:
            self._look()
            self.last = time.monotonic()
            self.count += 1
            self.condition.notify_all()

    def _look(self):
        self.longest[self.part] = max(self.longest.get(self.part, 0), time.monotonic() - self.last)

    def fail(self, error):
        name = getattr(error, "name", type(error).__name__)
        with self.condition:
            self.errors[name] = self.errors.get(name, 0) + 1
            if name == "internal_error" and self.unnamed is None:
                self.unnamed = f"{self.part}: {error}"

    def mark(self, part):
        with self.condition:
            self._look()
            self.part = part

    def seconds(self):
        """The longest time of the present part, which may be going on."""
        with self.condition:
            self._look()
            return self.longest[self.part]

    def wait_until(self, count, end):
        with self.condition:
            return self.condition.wait_for(lambda: self.count >= count, max(0, end - time.monotonic()))
