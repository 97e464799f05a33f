"""The addresses of the services."""

import os
import re
import socket
from typing import List, Optional
from urllib.parse import urlsplit

from .errors import NotRunningError

FIRST_PORT = 5571
# The services in the order of their ports.
PORTS = ("catalog", "thumbnailer", "editor", "broker", "feed", "edits")


class Endpoints:
    """The addresses of the services: arguments, environment variables, or the sockets in the run folder.

    `host`, or `SAFELIGHT_HOST`, is the host of services on another machine, with the first of their six ports if it is
    not 5571: `photos.example:5571`. The run folder is `folder`, `SAFELIGHT_RUN`, `$XDG_RUNTIME_DIR/safelight` or
    `/tmp/safelight-UID`, in this order. Each address may be given as an argument, or as `SAFELIGHT_CATALOG`,
    `SAFELIGHT_THUMBNAILER`, `SAFELIGHT_EDITOR`, `SAFELIGHT_BROKER`, `SAFELIGHT_FEED` and `SAFELIGHT_EDITS`. Those of
    the catalog, the thumbnailer, the editor and the edits may be comma-separated lists of several instances.
    """

    def __init__(
        self,
        folder: Optional[str] = None,
        *,
        host: Optional[str] = None,
        catalog: Optional[str] = None,
        thumbnailer: Optional[str] = None,
        editor: Optional[str] = None,
        broker: Optional[str] = None,
        feed: Optional[str] = None,
        edits: Optional[str] = None,
    ) -> None:
        runtime = os.getenv("XDG_RUNTIME_DIR")
        default = f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}"
        self.folder = os.fspath(folder or os.getenv("SAFELIGHT_RUN") or default)
        self.host = host or os.getenv("SAFELIGHT_HOST")
        self.catalog = self._address(catalog, "catalog", "catalog")
        self.thumbnailer = self._address(thumbnailer, "thumbnailer", "thumbnailer")
        self.editor = self._address(editor, "editor", "editor")
        self.broker = self._address(broker, "broker", "change-broker")
        self.feed = self._address(feed, "feed", "feed")
        self.edits = self._address(edits, "edits", "edits")

    def _address(self, given: Optional[str], key: str, socket_name: str) -> str:
        given = given or os.getenv(f"SAFELIGHT_{key.upper()}")
        if given or not self.host:
            return given or f"ipc://{self.folder}/{socket_name}.sock"
        parts = urlsplit(f"tcp://{self.host}")
        port = (parts.port or FIRST_PORT) + PORTS.index(key)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"tcp://{name}:{port}"

    def __repr__(self) -> str:
        return f"<Endpoints catalog={self.catalog!r}>"


def split_addresses(text: str) -> List[str]:
    """Returns the addresses of a comma-separated list. A comma without a scheme after it belongs to a path."""
    return re.split(r",(?=[a-z]+://)", text)


def check_address(service: str, address: str) -> None:
    """Raises `NotRunningError` if it is certain that nothing listens at an address, without connecting to it."""
    if address.startswith("ipc://"):
        path = address[len("ipc://"):]
        folder = os.path.dirname(path)
        if not path.startswith("@") and not os.path.isdir(folder):
            raise not_running(f"there is no run folder {folder}; start the services with: safelight up")
        if not path.startswith("@") and not os.path.exists(path):
            raise not_running(
                f"the {service} is not running: there is no {path}; start the services with: safelight up"
            )
    elif address.startswith("tcp://"):
        host = urlsplit(address).hostname or ""
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            raise not_running(f"the {service} cannot be reached: the host {host!r} of {address} is unknown") from error


def not_running(message: str) -> NotRunningError:
    return NotRunningError(message=message)
