"""Jobs that bring single files to the object store, or from there."""

from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from .members import Record, boolean, date, integer, optional_text, text
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
    is_retried = boolean("isRetried", "Whether it was retried, which is possible once.")
    date = date("date", "When it came into its state.")
    problem = optional_text("problem", "The name of the failure.")
    message = optional_text("message", "The failure.")
    _shown = ("id", "type", "state", "asset")


class UploadJobs:
    """The jobs of a library with an object store; every new file is uploaded without one."""

    def __init__(self, library: "Library") -> None:
        self._library = library

    def __call__(self, action: Optional[str] = None) -> List[UploadJob]:
        """Returns the jobs, the oldest first; or those for which `acknowledge`, `retry` or `cancel` is possible."""
        return self._send("jobs.list", {"action": action} if action else {})

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
        """Ends jobs that have not ended."""
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
