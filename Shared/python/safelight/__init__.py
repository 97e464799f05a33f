"""A client for a Safelight photo library.

    from safelight import Library

    with Library() as library:
        for asset in library.fetch(where="rating >= 4", sort="-creationDate", limit=10):
            print(asset.original_filename, asset.creation_date)

        with library.changing() as changes:
            changes.update(library.fetch()[0], is_favorite=True)

        for change in library.changes():  # each change once, in order, also while services restart
            print(change.sequence, change.assets)

`safelight.aio` has fetches, changes and live lists for asyncio. The only dependency is pyzmq; `Asset.image` also needs
Pillow. Shared/docs/python.md describes everything.
"""

from . import editing, errors
from .change import Change, CaughtUp, ObjectChange
from .changing import Changes, Outcome, Placeholder
from .editing import EditOutcome, EditStatus, EditStep, adjustments, load_preset, presets, save_preset
from .endpoints import Endpoints
from .errors import (
    AccessRestrictedError, AccessUserDeniedError, BehindError, BusyError, ChangeNotSupportedError, ConflictError,
    ConnectionLostError, CycleError, DeadlineExceededError, Expired, HandleExpiredError, IdReusedError,
    IdentifierNotFoundError, InternalError, InvalidOptionsError, InvalidParametersError, InvalidPredicateError,
    InvalidRequestError, InvalidResourceError, LibraryReadOnlyError, LibraryVolumeOfflineError, LimitExceededError,
    MethodNotFoundError,
    MissingPredecessorError, MissingPurposeError, MissingResourceError, MultipleIdentifiersFoundError,
    NestedChangeError, NetworkAccessRequiredError, NetworkError, NotDeterminedError, NotEnoughSpaceError,
    NotObservableError, NotRunningError,
    OperationInterruptedError, ParseError, PersistentChangeDetailsUnavailableError, PersistentChangeTokenExpiredError,
    PredecessorFailedError, QuarantinedError, RangeError, RelinquishingLibraryBundleToWriterError,
    RequestNotSupportedForAssetError, ResourceChangedError,
    ResourcesDisagreeError, SafelightError, SnapshotRequiredError, SwitchingSystemPhotoLibraryError, UnavailableError,
    UnsupportedFormatError,
    UnsupportedPredicateError, UnsupportedSortKeyError, UserCancelledError, WorkerCrashedError, WorkerTimeoutError,
)
from .feed import Feed
from .fetching import ChangeDetails, FetchResult, description
from .grants import ConsentQuestion, Grant, Session
from .images import Frame, ImageData, LivePhoto, VideoPlayback
from .importing import ImportedFile
from .jobs import UploadJob
from .library import Library
from .live import LiveList, apply_details
from .objects import Asset, AssetCollection, AssetResource, CollectionList, Location
from .progress import Progress, save_bytes

__version__ = "0.1.0"

__all__ = [
    "AccessRestrictedError", "AccessUserDeniedError", "Asset", "AssetCollection", "AssetResource", "BehindError",
    "BusyError", "CaughtUp", "Change", "ChangeDetails", "ChangeNotSupportedError", "Changes", "CollectionList",
    "ConflictError", "ConnectionLostError", "ConsentQuestion", "CycleError", "DeadlineExceededError", "EditOutcome",
    "EditStatus", "EditStep", "Endpoints", "Expired", "Feed", "FetchResult", "Frame", "Grant", "HandleExpiredError",
    "IdReusedError", "IdentifierNotFoundError", "ImageData", "ImportedFile", "InternalError", "InvalidOptionsError",
    "InvalidParametersError", "InvalidPredicateError", "InvalidRequestError", "InvalidResourceError", "Library",
    "LibraryReadOnlyError", "LibraryVolumeOfflineError", "LimitExceededError", "LiveList", "LivePhoto", "Location",
    "MethodNotFoundError", "MissingPredecessorError", "MissingPurposeError", "MissingResourceError",
    "MultipleIdentifiersFoundError", "NestedChangeError", "NetworkAccessRequiredError", "NetworkError",
    "NotDeterminedError", "NotEnoughSpaceError", "NotObservableError", "NotRunningError", "ObjectChange",
    "OperationInterruptedError", "Outcome", "ParseError", "PersistentChangeDetailsUnavailableError",
    "PersistentChangeTokenExpiredError", "Placeholder", "PredecessorFailedError", "Progress", "QuarantinedError",
    "RangeError", "RelinquishingLibraryBundleToWriterError", "RequestNotSupportedForAssetError",
    "ResourceChangedError", "ResourcesDisagreeError", "SafelightError", "Session", "SnapshotRequiredError",
    "SwitchingSystemPhotoLibraryError", "UnavailableError", "UnsupportedFormatError", "UnsupportedPredicateError",
    "UnsupportedSortKeyError", "UploadJob", "UserCancelledError", "VideoPlayback", "WorkerCrashedError",
    "WorkerTimeoutError", "adjustments", "apply_details", "description", "editing", "errors", "load_preset", "presets",
    "save_bytes", "save_preset",
]
