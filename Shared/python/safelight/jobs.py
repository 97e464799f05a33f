"""Jobs that upload single files to the object store, or download them."""

import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Union

from .errors import SafelightError
from .members import Record, boolean, date, integer, optional_number, optional_text, text
from .objects import Object, identifier

if TYPE_CHECKING:
    from .library import Library


class UploadJob(Record):
    """A job for one file of an asset, which is kept until it is acknowledged."""

    id = integer("id", "The number of the job.")
    asset = text("asset", "The identifier of the asset.")
    resource_type = text("resourceType", "The type of the resource.")
    digest = text("digest", "SHA-256 of the file.")
    type = text("type", "upload or downloadOnly.")
    state = text("state", "registered, pending, failed, succeeded or cancelled.")
    is_retried = boolean("isRetried", "True if it was retried, which is possible once.")
    date = date("date", "The date of the last change of its state.")
    identity = optional_text("identity", "Who created it.")
    progress = optional_number("progress", "The part that was transferred, 0 to 1, while a transfer runs.")
    problem = optional_text("problem", "The name of the failure.")
    message = optional_text("message", "The failure.")
    _shown = ("id", "type", "state", "asset")

    @property
    def has_ended(self) -> bool:
        """True if it has failed, succeeded or was cancelled."""
        return self.state in ("failed", "succeeded", "cancelled")


class UploadJobs:
    """The jobs of a library with an object store; new files are uploaded without a job."""

    def __init__(self, library: "Library") -> None:
        self._library = library

    def __call__(self, action: Optional[str] = None) -> List[UploadJob]:
        """Returns the jobs, the oldest first; or those for which `acknowledge`, `retry` or `cancel` is possible."""
        params: Dict[str, Any] = {"action": action} if action else {}
        jobs: List[UploadJob] = []
        while True:
            page = self._library.request(self._library.catalog, "jobs.list", params).result
            jobs += [UploadJob(one) for one in page["jobs"]]
            if "next" not in page:
                return jobs
            params["after"] = page["next"]

    def follow(self, jobs: Iterable[UploadJob]) -> Iterator[UploadJob]:
        """Yields each of the jobs when its state changes or its transfer proceeds, until all have ended."""
        known = {one.id: one for one in jobs}
        page: Dict[str, Any] = {"jobs": []}
        while True:
            if not page["jobs"]:
                # Reads all states, first and after each wait without changes: another client may acknowledge a job.
                page = self._library.request(self._library.catalog, "jobs.list", {"jobs": list(known)}).result
                listed = {one["id"] for one in page["jobs"]}
                known = {number: one for number, one in known.items() if number in listed}
            for one in [UploadJob(one) for one in page["jobs"] if one["id"] in known]:
                if one.state != known[one.id].state or one.progress != known[one.id].progress:
                    known[one.id] = one
                    yield one
            if all(one.has_ended for one in known.values()):
                return
            try:
                page = self._library.catalog.request(
                    "jobs.list", {"changedAfter": page["version"], "jobs": list(known)}, deadline=30).result
            except SafelightError as error:
                if not error.is_temporary:
                    raise
                # The catalog restarts, or is busy: all states are read again, with retries for 30 seconds.
                time.sleep(1)
                page = {"jobs": []}

    def upload(self, assets: Iterable[Object], resource_type: str = "photo") -> List[UploadJob]:
        """Creates a job for a resource of each asset, which is done when the object store has the file."""
        return self._create(assets, "upload", resource_type)

    def download(self, assets: Iterable[Object], resource_type: str = "photo") -> List[UploadJob]:
        """Creates a job for a resource of each asset, which is done when the catalog's machine has the file."""
        return self._create(assets, "downloadOnly", resource_type)

    def acknowledge(self, *jobs: Union[UploadJob, int]) -> List[UploadJob]:
        """Removes jobs that have ended, so that others can be created."""
        return self._update(jobs, "acknowledge")

    def retry(self, *jobs: Union[UploadJob, int]) -> List[UploadJob]:
        """Tries failed jobs again, each once."""
        return self._update(jobs, "retry")

    def cancel(self, *jobs: Union[UploadJob, int]) -> List[UploadJob]:
        """Cancels jobs that have not ended."""
        return self._update(jobs, "cancel")

    def _create(self, assets: Iterable[Object], kind: str, resource_type: str) -> List[UploadJob]:
        ids = [identifier(one) for one in assets]
        return self._send("jobs.create", {"assets": ids, "type": kind, "resourceType": resource_type})

    def _update(self, jobs: Iterable[Union[UploadJob, int]], action: str) -> List[UploadJob]:
        numbers = [one.id if isinstance(one, UploadJob) else one for one in jobs]
        return self._send("jobs.update", {"jobs": numbers, "action": action})

    def _send(self, method: str, params: Dict[str, Any]) -> List[UploadJob]:
        # Sent once: a job that was created twice would be two jobs.
        result = self._library.catalog.request(method, params).result
        return [UploadJob(one) for one in result["jobs"]]
