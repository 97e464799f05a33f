"""The objects of a library, with PhotoKit's properties."""

import re
from os import PathLike
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import MissingResourceError
from .members import (
    Record, boolean, date, integer, number, optional_date, optional_integer, optional_number,
    optional_text, record, records, seconds, strings, text,
)

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from .editing import EditOutcome, EditStatus, EditStep
    from .fetching import FetchResult
    from .images import Frame, ImageData, LivePhoto, Size, VideoPlayback
    from .library import Library
    from .progress import ProgressHandler

Path = Union[str, "PathLike[str]"]


class Location(Record):
    """A place on earth, WGS 84."""

    latitude = number("latitude", "Degrees north.")
    longitude = number("longitude", "Degrees east.")
    altitude = optional_number("altitude", "Metres above sea level.")
    _shown = ("latitude", "longitude", "altitude")


class Membership(Record):
    """The position of an asset in an album."""

    collection = text("collection", "The identifier of the album.")
    key = text("key", "The sort key of the member.")
    _shown = ("collection",)


class Person(Record):
    """A person in an image, as the file's metadata name them."""

    name = optional_text("name", "The name.")
    _shown = ("name",)


class AssetMetadata(Record):
    """Exposure, authors, places and persons, if known."""

    aperture = optional_number("aperture", "The f-number.")
    exposure_time = optional_number("exposureTime", "Seconds.")
    iso = optional_integer("iso", "The sensitivity.")
    focal_length = optional_number("focalLength", "Millimetres.")
    focal_length_in_35mm = optional_integer("focalLengthIn35mm", "Millimetres, for the same angle of view on film.")
    flash = optional_text("flash", "notFired or fired.")
    image_direction = optional_number("imageDirection", "Degrees clockwise from north.")
    title = optional_text("title", "The title.")
    headline = optional_text("headline", "The headline.")
    copyright = optional_text("copyright", "The copyright notice.")
    creator = optional_text("creator", "The authors, separated by '; '.")
    credit = optional_text("credit", "The credit line.")
    city = optional_text("city", "The city.")
    state = optional_text("state", "The state or province.")
    country = optional_text("country", "The country.")
    label = optional_text("label", "The colour or workflow label.")
    software = optional_text("software", "The program or firmware that wrote the file.")
    hierarchical_keywords = strings("hierarchicalKeywords", "Keywords with their parents: 'Places|Europe|Alps'.")
    persons = records("persons", Person, "The people in the image.")
    _shown = ("aperture", "exposure_time", "iso", "focal_length", "title", "city", "country")


class LibraryObject(Record):
    """An object with an identifier. Two are equal if their identifiers are, whatever their properties."""

    id = text("id", "Stable for the life of the library.")
    revision = text("revision", "Changes with any change of the object.")

    def __init__(self, json: Mapping[str, Any], library: "Optional[Library]" = None) -> None:
        super().__init__(json)
        self._library = library

    @property
    def library(self) -> "Library":
        """The library that the object was fetched from."""
        if self._library is None:
            raise ValueError(f"{self!r} was not fetched by a Library, so it can make no requests")
        return self._library

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LibraryObject) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class AssetResource(Record):
    """One of the files of an asset."""

    type = text("type", "photo, video, pairedVideo, fullSizePhoto, adjustmentData and so on, as in PhotoKit.")
    digest = text("digest", "SHA-256 of the bytes, in hexadecimal; of a part, that of the whole file.")
    size = integer("size", "Size in bytes.")
    offset = optional_integer("offset", "Position in the file with this digest, if it is a part of that file.")
    content_type = text("contentType", "Uniform type identifier.")
    original_filename = optional_text("originalFilename", "The file name at import.")
    pixel_width = integer("pixelWidth", "Pixels after orientation, 0 if no image.")
    pixel_height = integer("pixelHeight", "Pixels after orientation, 0 if no image.")
    duration = seconds("duration", "Seconds, 0 if not a video.")
    is_locally_available = boolean("locallyAvailable", "False if the bytes are only in remote storage.", True)
    damage = optional_text("damage", "Why the image, or a part of it, cannot be shown.")
    _shown = ("type", "original_filename", "content_type", "size")

    def __init__(self, json: Mapping[str, Any], asset: "Optional[Asset]" = None) -> None:
        super().__init__(json)
        self._asset = asset

    @property
    def asset(self) -> "Asset":
        """The asset that the resource belongs to."""
        if self._asset is None:
            raise ValueError(f"{self!r} does not belong to a fetched asset")
        return self._asset

    def read(
        self, offset: int = 0, length: Optional[int] = None, *, network_access_allowed: bool = False,
        progress: "Optional[ProgressHandler]" = None,
    ) -> bytes:
        """Returns the bytes, or a part of them.

        With `network_access_allowed`, bytes that are only in remote storage are downloaded, and `progress` is called
        meanwhile. Otherwise NetworkAccessRequiredError is raised.
        """
        if network_access_allowed:
            self.download(progress)
        return b"".join(self.chunks(offset, length, network_access_allowed=network_access_allowed))

    def download(self, progress: "Optional[ProgressHandler]" = None) -> bool:
        """Downloads the bytes to the catalog's machine if they are not there. Returns whether they were downloaded."""
        return self.asset.library.download(self.asset, self.type, progress)

    def chunks(
        self, offset: int = 0, length: Optional[int] = None, *, network_access_allowed: bool = False
    ) -> Iterator[bytes]:
        """Yields the bytes in parts of at most 8 MiB."""
        end = self.size if length is None else min(self.size, offset + length)
        params = {"asset": self.asset.id, "type": self.type, "networkAccessAllowed": network_access_allowed}
        if self.offset is None:
            params["digest"] = self.digest  # the asset may have another file of this type by now
        return self.asset.library.read_parts(self.asset.library.catalog, "resource.read", params, offset, end)

    def save(
        self, path: Path, progress: "Optional[ProgressHandler]" = None, *, network_access_allowed: bool = False
    ) -> None:
        """Writes the bytes to a file atomically. `progress` is called after each part."""
        from .progress import save_parts

        if network_access_allowed:
            self.download()
        save_parts(path, self.chunks(network_access_allowed=network_access_allowed), self.size, progress)


class Asset(LibraryObject):
    """A photo or video with all its stored properties, as they were when it was fetched."""

    content_revision = text("contentRevision", "Changes only when the pixels change.")
    media_type = text("mediaType", "unknown, image, video or audio.")
    media_subtypes = strings("mediaSubtypes", "photoPanorama, photoHDR, photoLive and so on.")
    playback_style = text("playbackStyle", "image, imageAnimated, livePhoto, video, videoLooping or unsupported.")
    playback_variation = text("playbackVariation", "Effect of a Live Photo.", "none")
    source_type = text("sourceType", "The source of the asset.")
    content_type = text("contentType", "Uniform type identifier.")
    pixel_width = integer("pixelWidth", "Pixels, after orientation.")
    pixel_height = integer("pixelHeight", "Pixels, after orientation.")
    duration = seconds("duration", "Seconds, 0 for a still image.")
    creation_date = optional_date("creationDate", "When it was taken.")
    creation_offset = optional_integer("creationOffset", "Seconds east of UTC where it was taken.")
    has_only_modification_date = boolean("hasOnlyModificationDate", "creation_date is that of the file's last change.")
    is_creation_offset_derived = boolean("isCreationOffsetDerived", "creation_offset is that of the place's time zone.")
    modification_date = date("modificationDate", "Last change of any kind.")
    content_modification_date = date("contentModificationDate", "Last change of the pixels.")
    added_date = date("addedDate", "When it was added to the library.")
    is_recently_added = boolean("isRecentlyAdded", "Added to the library recently.")
    trashed_date = optional_date("trashedDate", "When it was moved to the trash.")
    location = record("location", Location, "Where it was taken.")
    is_favorite = boolean("isFavorite", "Marked as a favourite.")
    is_hidden = boolean("isHidden", "Excluded from fetches that do not include hidden assets.")
    burst_identifier = optional_text("burstIdentifier", "Shared by the frames of a burst.")
    represents_burst = boolean("representsBurst", "The frame shown for its burst.")
    burst_selection_types = strings("burstSelectionTypes", "How the frame was selected: autoPick, userPick.")
    sharpness = optional_number("sharpness", "Variance of the Laplacian.")
    rating = integer("rating", "Stars, 0 for none.")
    caption = optional_text("caption", "The caption.")
    keywords = strings("keywords", "The keywords.")
    original_filename = optional_text("originalFilename", "The file name at import.")
    camera_make = optional_text("cameraMake", "Maker of the camera.")
    camera_model = optional_text("cameraModel", "Model of the camera.")
    lens_model = optional_text("lensModel", "Model of the lens.")
    metadata = record("metadata", AssetMetadata, "Exposure, authors, places and persons, if known.")
    adjustment_format_identifier = optional_text("adjustmentFormatIdentifier", "Format of the last edit, if edited.")
    adjustment_format_version = optional_text("adjustmentFormatVersion", "Version of that format.")
    adjustment_date = optional_date("adjustmentDate", "When the last edit was made.")
    adjustments_state = text("adjustmentsState", "Who adjusted it: none, userAdjusted, cameraAutoAdjusted.", "none")
    original_resource_choice = optional_text("originalResourceChoice", "raw or compressed, if it has both.")
    memberships = records("memberships", Membership, "The albums it is in.")
    _shown = ("id", "original_filename", "media_type", "pixel_size", "creation_date", "rating", "is_favorite")

    @property
    def resources(self) -> Tuple[AssetResource, ...]:
        """Its files."""
        return tuple(AssetResource(one, self) for one in self.json.get("resources", []))

    @property
    def pixel_size(self) -> Tuple[int, int]:
        """Width and height in pixels, after orientation."""
        return (self.pixel_width, self.pixel_height)

    @property
    def has_adjustments(self) -> bool:
        """True if the asset is edited."""
        return self.adjustment_format_identifier is not None

    def resource(self, type: str = "photo") -> AssetResource:
        """Returns the resource of a type. Raises MissingResourceError if there is none."""
        for resource in self.resources:
            if resource.type == type:
                return resource
        types = ", ".join(resource.type for resource in self.resources)
        raise MissingResourceError(message=f"{self.id} has no resource {type}; it has {types}")

    def refreshed(self) -> "Asset":
        """Returns the asset as it is now."""
        return self.library.assets[self.id]

    def albums(self) -> "FetchResult[AssetCollection]":
        """Returns the albums that contain the asset."""
        return self.library.collections(containing=self, type="album")

    def collections(self) -> "FetchResult[AssetCollection]":
        """Returns the albums, smart albums and moments that contain the asset."""
        return self.library.collections(containing=self)

    # Images: images.py describes the parameters.

    def thumbnail(self, size: "Size" = 512, **options: Any) -> "ImageData":
        """Returns an image of the requested quality as bytes. `safelight.images.request` has the options."""
        return self.library.thumbnail(self, size, **options)

    def thumbnails(self, size: "Size" = 512, **options: Any) -> "Iterator[ImageData]":
        """Yields images, after the last one is ready: degraded ones first, the requested one last."""
        return self.library.thumbnails(self, size, **options)

    def image(self, size: "Size" = None, **options: Any) -> "PillowImage":
        """Returns an image for Pillow, which must be installed. Without a size it has all pixels."""
        return self.library.thumbnail(self, size, **options).pillow()

    def image_data(self, version: str = "current", **options: Any) -> "ImageData":
        """Returns the file of the image: the `current`, `unadjusted` or `original` version. `Library.image_data` has
        the options."""
        return self.library.image_data(self, version, **options)

    # Video and Live Photos

    def playback(self, version: str = "current", **options: Any) -> "VideoPlayback":
        """Returns the data that a player of the video needs, with its bytes. `Library.playback` has the options."""
        return self.library.playback(self, version, **options)

    def frames(
        self, count: Optional[int] = None, times: Sequence[float] = (), size: "Size" = 256, **options: Any
    ) -> "List[Frame]":
        """Returns frames of the video: `count` at equal distances, or those at `times` in seconds."""
        return self.library.frames(self, count, times, size, **options)

    def export_video(
        self, path: Path, preset: str = "highest", version: str = "current",
        progress: "Optional[ProgressHandler]" = None, network_access_allowed: bool = False,
    ) -> None:
        """Writes the video to a file, in the size and with the encoder of a preset, such as `1280x720`."""
        self.library.export_video(self, path, preset, version, progress, network_access_allowed)

    def live_photo(self, size: "Size" = None, **options: Any) -> "LivePhoto":
        """Returns the still and the video of a Live Photo."""
        return self.library.live_photo(self, size, **options)

    # Edits

    def edit(self, *operations: Any, **options: Any) -> "EditOutcome":
        """Renders and commits an edit: `asset.edit(exposure=0.5, crop=(0.1, 0.1, 0.8, 0.8))`.

        Replaces the previous operations, unless `mode="append"`. `safelight.editing.adjustments` describes the
        operations, `Library.edit` the options.
        """
        return self.library.edit_one(self, *operations, **options)

    def publish(self, *operations: Any, **options: Any) -> "EditStatus":
        """Publishes an edit like `edit`, and waits until it is applied. Raises the error if it fails."""
        return self.library.publish_one(self, *operations, **options)

    def preview(self, *operations: Any, size: int = 1024, **options: Any) -> "ImageData":
        """Renders an edit without committing it."""
        return self.library.preview(self, *operations, size=size, **options)

    def compare(self, size: int = 1024) -> "ImageData":
        """Returns the original and the current image side by side."""
        return self.library.compare(self, size)

    def suggestion(self) -> Any:
        """Returns adjustments that would improve the image, for `edit`."""
        return self.library.request(self.library.editor, "edits.suggest", {"asset": self.id}).result["adjustments"]

    def history(self) -> "List[EditStep]":
        """Returns the steps of its edits, the oldest first."""
        return self.library.history(self)

    def undo(self, step: Optional[int] = None, *, transaction: Optional[str] = None) -> "EditOutcome":
        """Restores a step of the history, 0 for the original; without one, the step before the last."""
        return self.library.undo(self, step, transaction=transaction)

    def revert(self, *, transaction: Optional[str] = None) -> "EditOutcome":
        """Discards all edits."""
        return self.library.revert(self, transaction=transaction)


class AssetCollection(LibraryObject):
    """An album, smart album or moment."""

    type = text("type", "album, smartAlbum or moment.")
    subtype = text("subtype", "PhotoKit's name of the subtype.")
    can_contain_assets = boolean("canContainAssets", "True: its members are assets.", True)
    can_contain_collections = boolean("canContainCollections", "False.")
    title = optional_text("title", "Its name.")
    parent = optional_text("parent", "The identifier of the folder that contains it.")
    parent_key = optional_text("parentKey", "Its position in that folder.")
    creation_date = date("creationDate", "When it was created.")
    modification_date = date("modificationDate", "Last change of it or its members.")
    start_date = optional_date("startDate", "Earliest capture date among the members; smart albums have none.")
    end_date = optional_date("endDate", "Latest capture date among the members; smart albums have none.")
    estimated_asset_count = integer("estimatedAssetCount", "Number of members.")
    key_asset = optional_text("keyAsset", "The identifier of the cover.")
    approximate_location = record("approximateLocation", Location, "Approximate location.")
    localized_location_names = strings("localizedLocationNames", "The largest place near a moment and its country.")
    child_count = integer("childCount", "0: it contains no collections.")
    _shown = ("id", "title", "subtype", "estimated_asset_count")

    def fetch(self, where: Any = None, **options: Any) -> "FetchResult[Asset]":
        """Returns its assets, in their order unless `sort` is given. `Library.fetch` describes the parameters."""
        return self.library.fetch(where, album=self, **options)

    def refreshed(self) -> "AssetCollection":
        """Returns the collection as it is now."""
        return self.library.albums[self.id]


class CollectionList(LibraryObject):
    """A folder, or another list of collections."""

    type = text("type", "folder, smartFolder or momentList.")
    subtype = text("subtype", "PhotoKit's name of the subtype.")
    can_contain_assets = boolean("canContainAssets", "False.")
    can_contain_collections = boolean("canContainCollections", "True: its members are collections.", True)
    title = optional_text("title", "Its name.")
    parent = optional_text("parent", "The identifier of the folder that contains it.")
    parent_key = optional_text("parentKey", "Its position in that folder.")
    creation_date = date("creationDate", "When it was created.")
    modification_date = date("modificationDate", "Last change of it or its children.")
    start_date = optional_date("startDate", "Earliest capture date below a list of moments; folders have none.")
    end_date = optional_date("endDate", "Latest capture date below a list of moments; folders have none.")
    child_count = integer("childCount", "Albums and folders directly in it.")
    _shown = ("id", "title", "subtype", "child_count")

    def children(self) -> "List[Union[AssetCollection, CollectionList]]":
        """Returns the albums and folders directly in it, in their order."""
        return self.library.children(self)


Object = Union[str, LibraryObject]


def identifier(value: Object) -> str:
    """Returns the identifier of an object, or the identifier itself."""
    if isinstance(value, str):
        return value
    found = getattr(value, "id", None)
    if not isinstance(found, str):
        raise TypeError(f"{value!r} is neither an identifier nor an object of the library")
    return found


def is_identifier(text: str, kinds: str = "acl") -> bool:
    """Returns whether a text can be an identifier of an asset (`a`), a collection (`c`) or a list (`l`)."""
    return len(text) == 27 and text[0] in kinds and IDENTIFIER.fullmatch(text) is not None


IDENTIFIER = re.compile("[a-z][0-9a-hjkmnp-tv-z]{26}")

__all__ = [
    "Asset", "AssetCollection", "AssetMetadata", "AssetResource", "CollectionList", "LibraryObject", "Location",
    "Membership", "Object", "Person", "identifier", "is_identifier",
]

