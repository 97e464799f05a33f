"""Transaction ids for programs that choose none."""

import os
import time


def new_transaction_id() -> str:
    """Returns a UUID of version 7 (RFC 9562) as 32 hexadecimal digits: the time in milliseconds, and 74 random bits.

    The catalog keeps the outcomes of transactions sorted by their ids. Ids that ascend with time are neighbours, so
    consecutive outcomes change the same page of the database; with random ids each would change another page.
    """
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    version_and_random = 7 << 12 | random >> 64 & 0xFFF
    variant_and_random = 2 << 62 | random & (1 << 62) - 1
    return f"{milliseconds & (1 << 48) - 1:012x}{version_and_random:04x}{variant_and_random:016x}"
