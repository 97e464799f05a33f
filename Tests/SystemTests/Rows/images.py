"""Tests of the requirements for images and resources: S-45 with each delivery mode for each state of the cache,
P-09, D12 and T-31."""

import hashlib
import io
import math

from PIL import Image, ImageChops

from rows import *


def image(id, width, height, **more):
    """Returns the messages of a request in order, the reply as the last one, and the bytes of each."""
    size = {"width": width, "height": height}
    reply, frames = call("thumbnailer", "image.request", asset=id, targetSize=size, **more)
    before = [(message["params"], content) for message, content in client.notifications]
    return [message for message, _ in before] + [reply], [content for _, content in before] + [frames]


def is_near(message, width, height):
    """Returns True if both sides are at least a quarter of the target."""
    return 4 * message["pixelWidth"] >= width and 4 * message["pixelHeight"] >= height


def delivery_modes():
    photo = import_file("photo.jpg")
    # A rendition that is far too small is cached. It must never answer a larger request.
    image(photo, 2, 2, deliveryMode="highQualityFormat", resizeMode="exact")
    for width, height, fitted in ((380, 300, (380, 253)), (800, 600, (800, 533)), (1199, 1199, (1199, 799))):
        messages, _ = image(photo, width, height, deliveryMode="fastFormat", resizeMode="exact")
        equal(len(messages), 1)
        assert is_near(messages[0], *fitted), messages[0]
        messages, attached = image(photo, width, height, resizeMode="exact")
        assert 1 <= len(messages) <= 2 and all(is_near(one, *fitted) for one in messages), messages
        equal([one["isDegraded"] for one in messages], [True] * (len(messages) - 1) + [False])
        equal([one["isFinal"] for one in messages], [False] * (len(messages) - 1) + [True])
        assert all(len(frames) == 1 and frames[0][:2] == b"\xff\xd8" for frames in attached)
        equal((messages[-1]["pixelWidth"], messages[-1]["pixelHeight"]), fitted)
        # Now that the image is cached, each mode sends only it.
        for mode in ("opportunistic", "fastFormat", "highQualityFormat"):
            messages, _ = image(photo, width, height, deliveryMode=mode, resizeMode="exact")
            equal([(one["isDegraded"], one["isCacheHit"]) for one in messages], [(False, True)])
    for mode in ("opportunistic", "fastFormat", "highQualityFormat"):
        side = {"opportunistic": 501, "fastFormat": 502, "highQualityFormat": 503}[mode]
        messages, _ = image(photo, side, side, deliveryMode=mode, resizeMode="exact", synchronous=True)
        equal([(one["isDegraded"], one["pixelWidth"]) for one in messages], [(False, side)])


def fast_images_look_like_exact_ones():
    """The PSNR is at least 35 dB, also if a JPEG decoded at a fraction has exactly the requested size."""
    jpeg = io.BytesIO()
    Image.effect_noise((1200, 800), 90).convert("RGB").save(jpeg, "JPEG", quality=95)
    request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}]}
    photo = perform(request, attachments=[jpeg.getvalue()])["placeholders"]["a"]

    def shown(side, mode):
        _, (frames,) = image(photo, side, side, resizeMode=mode, format="png", deliveryMode="highQualityFormat")
        return Image.open(io.BytesIO(frames[0])).convert("RGB")

    for side in (150, 300, 450, 599, 600, 750):
        fast, exact = shown(side, "fast"), shown(side, "exact")
        equal(fast.size, exact.size)
        counts = ImageChops.difference(fast, exact).histogram()
        error = sum(count * (value % 256) ** 2 for value, count in enumerate(counts)) / sum(counts)
        ratio = 10 * math.log10(255**2 / error) if error else math.inf
        assert ratio >= 35, f"{side}: {ratio:.1f} dB"


def crop_rectangles():
    photo = import_file("photo.jpg")
    good = {"x": 0.25, "y": 0.25, "width": 0.5, "height": 0.5}
    request = {"asset": photo, "targetSize": {"width": 100, "height": 100}, "resizeMode": "exact"}
    reply, _ = call("thumbnailer", "image.request", **request, contentMode="aspectFill", normalizedCropRect=good)
    equal((reply["pixelWidth"], reply["pixelHeight"]), (100, 100))
    for change in ({"x": -0.1}, {"y": 1.5}, {"width": 0}, {"height": -1}, {"width": 0.8}, {"x": 0.6}, {"width": 2}):
        equal((change, refusal("thumbnailer", "image.request", **request, normalizedCropRect={**good, **change})),
              (change, "invalid_options"))
    for mode in ("none", "fast"):
        other = {**request, "resizeMode": mode, "normalizedCropRect": good}
        equal((mode, refusal("thumbnailer", "image.request", **other)), (mode, "invalid_options"))


def whole_resources_or_an_error():
    small = import_file("photo.jpg")
    upload = call("catalog", "upload.begin")["upload"]
    content = file("large.jpg")
    for offset in range(0, len(content), 1 << 20):
        call("catalog", "upload.append", [content[offset:offset + (1 << 20)]], upload=upload, offset=offset)
    call("catalog", "upload.finish", upload=upload)
    request = {"type": "asset.create", "ref": "a", "resources": [{"upload": upload}]}
    large = perform(request)["placeholders"]["a"]

    # Without credit: all of it, or the error that states how to continue.
    equal(call("catalog", "resource.read", asset=small)[1][0] == file("photo.jpg"), True)
    try:
        call("catalog", "resource.read", asset=large)
        assert False, "the resource was truncated without an error"
    except Refused as error:
        equal(error.name, "limit_exceeded")
        assert "offset" in error.message and "credit" in error.message, error.message
    read = b""
    while len(read) < len(content):
        result, (part,) = call("catalog", "resource.read", asset=large, offset=len(read), length=5 << 20)
        equal((result["offset"], result["length"]), (len(read), len(part)))
        read += part
    equal(read == content, True)

    # With credit: chunks in order, then the reply with the digest of the whole.
    other = Client()
    number = other.send("catalog", "resource.read", asset=large, credit=1 << 20)
    read, chunks = b"", 0
    while True:
        message, frames = other.receive("catalog")
        if "method" not in message:
            break
        equal((message["method"], message["params"]["id"]), ("resource.chunk", number))
        equal(message["params"]["offset"], len(read))
        read += frames[0]
        chunks += 1
        credit = {"jsonrpc": "2.0", "method": "rpc.credit", "params": {"id": number, "bytes": len(frames[0])}}
        other.socket("catalog").send_json(credit)
    equal((message["result"]["resource"]["digest"], read == content), (hashlib.sha256(content).hexdigest(), True))
    assert chunks > 4, chunks

    # After a cancellation: one error, and no more chunks.
    number = other.send("catalog", "resource.read", asset=large, credit=1 << 20)
    assert "method" in other.receive("catalog")[0]
    cancel = {"jsonrpc": "2.0", "method": "rpc.cancel", "params": {"id": number}}
    other.socket("catalog").send_json(cancel)
    while "method" in (message := other.receive("catalog")[0]):
        pass
    equal((message["id"], message["error"]["data"]["name"]), (number, "user_cancelled"))
    health = other.send("catalog", "health")
    equal(other.receive("catalog")[0]["id"], health)
    other.close()


if __name__ == "__main__":
    run(delivery_modes, fast_images_look_like_exact_ones, crop_rectangles, whole_resources_or_an_error)
