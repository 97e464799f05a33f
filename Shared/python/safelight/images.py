"""Images, videos and Live Photos."""

import io
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .errors import SafelightError, make_error
from .members import Record, boolean, integer, number, optional_number, optional_text, records, seconds, text
from .progress import Path, ProgressHandler, save_bytes, save_parts

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from .library import Library

# The sides of a box in pixels; one number for a square; None for all pixels.
Size = Union[int, Tuple[int, int], None]


def target_size(size: Size) -> Union[str, Dict[str, int]]:
    """Returns a size in the form that the services expect."""
    if size is None:
        return "max"
    width, height = (size, size) if isinstance(size, int) else size
    return {"width": width, "height": height}


def request(
    size: Size = 512,
    *,
    mode: str = "aspectFit",
    resize: str = "exact",
    delivery: str = "highQualityFormat",
    crop: Optional[Tuple[float, float, float, float]] = None,
    version: str = "current",
    format: str = "jpeg",
    quality: int = 85,
    time: Optional[float] = None,
    network_access_allowed: bool = False,
    prefer_hdr: bool = False,
    target_hdr_headroom: float = 0,
) -> Dict[str, Any]:
    """Returns the parameters of a request for an image.

    - `size`: width and height of a box in pixels, or one number for a square box; None for all pixels
    - `mode`: `aspectFit` fits the image into the box, `aspectFill` fills the box
    - `resize`: `exact` has the size, enlarged if necessary; `fast` has the size, but is never enlarged, and
      `aspectFill` crops nothing; `none` has all pixels
    - `delivery`: `highQualityFormat`, `fastFormat` (one image, degraded if that is ready sooner), `opportunistic`
    - `crop`: x, y, width and height of a part, as fractions of the sides
    - `version`: `current`, `unadjusted` or `original`
    - `format`: `jpeg`, `webp`, `png` or `avif`; `quality`: 1 to 100
    - `time`: seconds into a video
    - `network_access_allowed`: whether an original that is only in remote storage may be downloaded
    - `prefer_hdr`: high dynamic range if the asset has it: with `avif` 10 bits in BT.2020 and PQ, with `jpeg` a gain
      map beside the image; `target_hdr_headroom`: the brightest white of the display over that of standard range, 0 if
      it is unknown
    """
    params: Dict[str, Any] = {
        "targetSize": target_size(size), "contentMode": mode, "resizeMode": "none" if size is None else resize,
        "deliveryMode": delivery, "version": version, "format": format, "quality": quality,
        "networkAccessAllowed": network_access_allowed,
    }
    if crop is not None:
        params["normalizedCropRect"] = dict(zip(("x", "y", "width", "height"), crop))
    if prefer_hdr:
        params["preferHDR"] = True
        params["targetHDRHeadroom"] = target_hdr_headroom
    if time is not None:
        params["frameTime"] = round(time * 1e6)
    return params


class ImageData(Record):
    """The bytes of an image and their description."""

    asset = text("asset", "The identifier of the asset.")
    content_revision = text("contentRevision", "Content revision of the image.")
    mime_type = text("mimeType", "Media type of the bytes.")
    pixel_width = integer("pixelWidth", "Width of this image in pixels.")
    pixel_height = integer("pixelHeight", "Height of this image in pixels.")
    is_degraded = boolean("isDegraded", "True if the quality is lower than requested.")
    is_upscaled = boolean("isUpscaled", "True if it is larger than the source.")
    is_cache_hit = boolean("isCacheHit", "True if it was cached.")
    frame_time = seconds("frameTime", "Of a video: the time of the frame in seconds.")
    hdr_headroom = optional_number(
        "hdrHeadroom", "The brightest white over that of standard range; None in standard range."
    )
    orientation = integer("orientation", "EXIF orientation of the file, for image_data.")
    _shown = ("mime_type", "pixel_width", "pixel_height", "is_degraded")

    def __init__(self, json: Mapping[str, Any], data: bytes) -> None:
        super().__init__(json)
        self.data = data

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, ImageData) and other.data == self.data

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.data))

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return True

    def save(self, path: Path) -> None:
        """Writes the bytes to a file."""
        save_bytes(path, self.data)

    def pillow(self) -> "PillowImage":
        """Returns the image for Pillow. Raises ImportError if Pillow is not installed."""
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError("Pillow is not installed: pip install Pillow, or use thumbnail().data") from error
        return Image.open(io.BytesIO(self.data))

    def _repr_mimebundle_(self, **_: Any) -> Dict[str, bytes]:
        """Shows the image in a notebook."""
        return {self.mime_type: self.data}


class Frame(NamedTuple):
    """A frame of a video: the requested time, and the image or the error."""

    time: float
    image: Optional[ImageData]
    error: Optional[SafelightError]


class VideoTrack(Record):
    """A track of a video file; 0 for unknown numbers."""

    kind = text("kind", "video, audio, text or other.")
    codec = text("codec", "FFmpeg's name, for example h264 or aac.")
    bit_rate = integer("bitRate", "Bits per second.")
    pixel_width = integer("pixelWidth", "Width in pixels, as stored.")
    pixel_height = integer("pixelHeight", "Height in pixels, as stored.")
    frame_rate = number("frameRate", "Frames per second.")
    sample_rate = integer("sampleRate", "Samples per second.")
    channels = integer("channels", "Number of audio channels.")
    language = optional_text("language", "ISO 639 code.")
    _shown = ("kind", "codec", "language")


class VideoPlayback(Record):
    """The data that a player of a video needs."""

    asset = text("asset", "The identifier of the asset.")
    content_revision = text("contentRevision", "Content revision of the video.")
    stream = text("stream", "Name of the stream for video.read.")
    size = integer("size", "Size of the stream in bytes.")
    mime_type = text("mimeType", "Media type of the stream.")
    duration = seconds("duration", "Duration in seconds.")
    pixel_width = integer("pixelWidth", "Width in pixels, as displayed.")
    pixel_height = integer("pixelHeight", "Height in pixels, as displayed.")
    rotation = number("rotation", "Degrees clockwise by which players turn frames.")
    frame_rate = number("frameRate", "Frames per second; 0 if unknown.")
    is_fast_start = boolean("isFastStart", "True if a player can begin before it has all bytes.")
    is_hdr = boolean("isHDR", "High dynamic range: PQ or HLG.")
    tracks = records("tracks", VideoTrack, "The tracks.")
    _shown = ("asset", "mime_type", "duration", "pixel_width", "pixel_height", "size")

    def __init__(self, json: Mapping[str, Any], library: "Library", network_access_allowed: bool = False) -> None:
        super().__init__(json)
        self._library = library
        self._network_access_allowed = network_access_allowed

    def read(self, offset: int = 0, length: Optional[int] = None) -> bytes:
        """Returns the bytes of the stream, or a part of them."""
        return b"".join(self.chunks(offset, length))

    def chunks(self, offset: int = 0, length: Optional[int] = None) -> Iterator[bytes]:
        """Yields the bytes of the stream in parts of at most 8 MiB."""
        end = self.size if length is None else min(self.size, offset + length)
        params = {"asset": self.asset, "stream": self.stream, "networkAccessAllowed": self._network_access_allowed}
        return self._library.read_parts(self._library.thumbnailer, "video.read", params, offset, end)

    def save(self, path: Path, progress: Optional[ProgressHandler] = None) -> None:
        """Writes the stream to a file."""
        save_parts(path, self.chunks(), self.size, progress)


class LivePhoto(NamedTuple):
    """A Live Photo: its still, and its video."""

    still: ImageData
    film: VideoPlayback


def frames(result: Mapping[str, Any], attachments: Sequence[bytes]) -> List[Frame]:
    """Returns the frames of a reply of `image.frames`; those with an error have no attachment."""
    found: List[Frame] = []
    rest = iter(attachments)
    for one in result["frames"]:
        error = one.get("error")
        if error:
            problem = make_error(error["name"], error["message"])
            found.append(Frame(one["time"] / 1e6, None, problem))
        else:
            described = {**one, "asset": result["asset"], "mimeType": result["mimeType"],
                         "contentRevision": result["contentRevision"]}
            found.append(Frame(one["time"] / 1e6, ImageData(described, next(rest)), None))
    return found
