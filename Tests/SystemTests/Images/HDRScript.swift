/// A script that writes images with gain maps and compares the answers with the formula.
enum HDRScript {
    /// Files with the same base and map in every form.
    static let samples = #"""
        import io, json, os, re, struct, subprocess, traceback, zmq
        from PIL import Image

        WIDTH, HEIGHT, STOPS, GAMMA, OFFSET = 256, 128, 2.5, 1.2, 1 / 64
        XMP = b"http://ns.adobe.com/xap/1.0/\0"
        ISO = b"urn:iso:std:iso:ts:21496:-1\0"


        def grey(width, height, value):
            image = Image.new("L", (width, height))
            image.putdata([round(value(x / (width - 1), y / (height - 1))) for y in range(height) for x in range(width)])
            return image


        BASE = grey(WIDTH, HEIGHT, lambda x, y: 64 + 186 * x)
        MAP = grey(WIDTH // 4, HEIGHT // 4, lambda x, y: 255 * y)


        def coded(image, kind, **options):
            out = io.BytesIO()
            image.save(out, kind, **options)
            return out.getvalue()


        def segment(marker, content):
            return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


        def packet(properties):
            return ('<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
                    f'<rdf:Description rdf:about="" {properties}/></rdf:RDF></x:xmpmeta>').encode()


        def hdrgm(**values):
            values = {"Version": "1.0", "GainMapMin": 0, "GainMapMax": STOPS, "Gamma": GAMMA, "OffsetSDR": OFFSET,
                      "OffsetHDR": OFFSET, "HDRCapacityMin": 0, "HDRCapacityMax": STOPS, **values}
            text = " ".join(f'hdrgm:{name}="{value}"' for name, value in values.items())
            return packet(f'xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" {text}')


        def fractions(*values):
            return b"".join(struct.pack(">iI", round(value * 4096), 4096) for value in values)


        # Version, flags, headrooms, and for the single channel minimum, maximum, gamma and offsets.
        BINARY = struct.pack(">HHB", 0, 0, 0x40) + fractions(0, STOPS, 0, STOPS, GAMMA, OFFSET, OFFSET)


        def two_jpegs(first, second):
            """Returns two JPEGs in one file with an index (CIPA DC-007)."""
            total = len(first) + 90
            index = (b"MM\0*\0\0\0\x08" + struct.pack(">H", 3) + struct.pack(">HHI4s", 0xB000, 7, 4, b"0100")
                     + struct.pack(">HHII", 0xB001, 4, 1, 2) + struct.pack(">HHII", 0xB002, 7, 32, 50) + bytes(4)
                     + struct.pack(">IIIHH", 0x30000, total, 0, 0, 0)
                     + struct.pack(">IIIHH", 0, len(second), total - 10, 0, 0))
            return first[:2] + segment(0xE2, b"MPF\0" + index) + first[2:] + second


        def described(image, *segments):
            data = coded(image, "JPEG", quality=98)
            return data[:2] + b"".join(segments) + data[2:]


        def box(name, *content):
            content = b"".join(content)
            return struct.pack(">I4s", len(content) + 8, name) + content


        def full(name, *content, version=0, flags=0):
            return box(name, struct.pack(">I", version << 24 | flags), *content)


        def avif_item(image):
            """Returns the AV1 data of an image, and the properties of its item."""
            data = coded(image.convert("RGB"), "AVIF", quality=98, subsampling="4:4:4")
            at = data.index(b"av1C") - 4
            at_data = data.index(b"mdat") + 4
            config = data[at:at + struct.unpack(">I", data[at:at + 4])[0]]
            return data[at_data:], [full(b"ispe", struct.pack(">II", *image.size)), config]


        def avif(items, references):
            """Returns a file of items: (type, data, properties, end of the entry, is hidden)."""
            properties, links = [], []
            for number, (kind, data, own, rest, hidden) in enumerate(items, 1):
                indexes = range(len(properties) + 1, len(properties) + len(own) + 1)
                properties += own
                links.append(struct.pack(">HB", number, len(own)) + bytes(indexes))
            entries = b"".join(
                full(b"infe", struct.pack(">HH4s", number, 0, kind), b"\0" + rest, version=2, flags=hidden)
                for number, (kind, data, own, rest, hidden) in enumerate(items, 1))
            links_box = box(b"iprp", box(b"ipco", *properties), full(b"ipma", struct.pack(">I", len(links)), *links))
            refer = full(b"iref", *(box(name, struct.pack(f">HH{len(to)}H", source, len(to), *to))
                                    for name, source, to in references))
            head = box(b"ftyp", b"avif\0\0\0\0avifmif1miaf")

            def meta(start):
                locations, offset = b"", start
                for number, (kind, data, *_) in enumerate(items, 1):
                    locations += struct.pack(">HHHII", number, 0, 1, offset, len(data))
                    offset += len(data)
                return full(b"meta", full(b"hdlr", bytes(4) + b"pict" + bytes(13)), full(b"pitm", struct.pack(">H", 1)),
                            full(b"iinf", struct.pack(">H", len(items)), entries), refer, links_box,
                            full(b"iloc", struct.pack(">HH", 0x4400, len(items)), locations))

            start = len(head) + len(meta(0)) + 8
            return head + meta(start) + box(b"mdat", *(data for kind, data, *_ in items))


        def tone_mapped():
            base, base_properties = avif_item(BASE)
            map, map_properties = avif_item(MAP)
            items = [(b"av01", base, base_properties, b"", 0), (b"av01", map, map_properties, b"", 1),
                     (b"tmap", b"\0" + BINARY, base_properties[:1], b"", 0)]
            return avif(items, [(b"dimg", 3, [1, 2])])


        APPLE = "urn:com:apple:photo:2020:aux:hdrgainmap"
        APPLE_HEADROOM = 4.0


        def apple():
            base, base_properties = avif_item(BASE)
            map, map_properties = avif_item(MAP)
            text = packet('xmlns:HDRGainMap="http://ns.apple.com/HDRGainMap/1.0/" HDRGainMap:HDRGainMapVersion="131072" '
                          f'HDRGainMap:HDRGainMapHeadroom="{APPLE_HEADROOM}"')
            kind = full(b"auxC", APPLE.encode() + b"\0")
            items = [(b"av01", base, base_properties, b"", 0), (b"av01", map, map_properties + [kind], b"", 1),
                     (b"mime", text, [], b"application/rdf+xml\0", 0)]
            return avif(items, [(b"auxl", 2, [1]), (b"cdsc", 3, [2])])


        TURNED = BASE.transpose(Image.Transpose.ROTATE_90)
        TURN = segment(0xE1, b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, 6, 0, 0))
        ULTRA = two_jpegs(described(BASE), described(MAP, segment(0xE1, XMP + hdrgm())))
        FILES = {
            "ultra.jpg": ULTRA,
            "iso.jpg": two_jpegs(described(BASE), described(MAP, segment(0xE2, ISO + BINARY))),
            "tmap.avif": tone_mapped(),
            "apple.avif": apple(),
            # Stored rotated, and displayed like the others.
            "turned.jpg": two_jpegs(described(TURNED, TURN), described(
                MAP.transpose(Image.Transpose.ROTATE_90), segment(0xE1, XMP + hdrgm()))),
            "plain.jpg": described(BASE),
            "absurd.jpg": two_jpegs(described(BASE), described(MAP, segment(0xE1, XMP + hdrgm(GainMapMax="1e300")))),
            "inverse.jpg": two_jpegs(described(BASE), described(
                MAP, segment(0xE1, XMP + hdrgm(BaseRenditionIsHDR="True")))),
            "cut.jpg": ULTRA[:-300],
        }
        for name, data in FILES.items():
            with open(f"{os.environ['FILES']}/{name}", "wb") as out:
                out.write(data)
        """#

    /// The checks: a line of JSON for each, with the problem if there is one.
    static let rows = #"""

        context = zmq.Context.instance()
        sockets = {}
        created = {}


        def call(service, method, attachments=(), **params):
            if service not in sockets:
                sockets[service] = context.socket(zmq.REQ)
                sockets[service].rcvtimeo = 60000
                sockets[service].connect(f"ipc://{os.environ['SAFELIGHT_RUN']}/{service}.sock")
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            sockets[service].send_multipart([json.dumps(request).encode(), *attachments])
            reply, *frames = sockets[service].recv_multipart()
            reply = json.loads(reply)
            assert "error" not in reply, reply["error"]
            return reply["result"], frames


        def asset_id(name):
            if name not in created:
                request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0, "originalFilename": name}]}
                created[name] = call("catalog", "changes.perform", [FILES[name]], requests=[request])[0]["placeholders"]["a"]
            return created[name]


        def image(name, size=(WIDTH, HEIGHT), format="avif", quality=100, **params):
            params.setdefault("preferHDR", True)
            box = {"width": size[0], "height": size[1]}
            reply, frames = call("thumbnailer", "image.request", asset=asset_id(name), targetSize=box, format=format,
                                 quality=quality, synchronous=True, **params)
            return reply, frames[0]


        def luminance(data, size):
            """Decodes the luma of a grey AVIF in PQ and returns cd/m²."""
            with open(f"{os.environ['FILES']}/answer.avif", "wb") as out:
                out.write(data)
            words = [os.environ["FFMPEG"], "-v", "error", "-i", f"{os.environ['FILES']}/answer.avif", "-f", "rawvideo",
                     "-pix_fmt", "yuv444p10le", "-"]
            raw = subprocess.run(words, capture_output=True, check=True).stdout
            values = struct.unpack(f"<{size[0] * size[1]}H", raw[:2 * size[0] * size[1]])

            def light(value):
                power = (value / 1023) ** (32 / 2523)
                return 10000 * (max(power - 3424 / 4096, 0) / (2413 / 128 - 2392 / 128 * power)) ** (16384 / 2610)
            table = [light(value) for value in range(1024)]
            return [table[value] for value in values]


        def floats(image):
            return list(image.getdata())


        def expected_luminance(base, map, weight=1.0, is_apple=False):
            """Returns the luminances by the formula, for a base and a map of the same size, in cd/m²."""
            result = []
            for value, gain in zip(floats(base), floats(map)):
                value, gain = value / 255, min(max(gain / 255, 0), 1)
                linear = value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
                if is_apple:
                    part = gain / 4.5 if gain < 0.081 else ((gain + 0.099) / 1.099) ** (1 / 0.45)
                    result.append(203 * linear * (1 + (APPLE_HEADROOM - 1) * part))
                else:
                    factor = 2 ** (weight * STOPS * gain ** (1 / GAMMA))
                    result.append(203 * ((linear + OFFSET) * factor - OFFSET))
            return result


        def largest_error(actual, expected, width):
            """Returns the largest relative difference between the means of squares of 8 by 8 pixels."""
            worst, height = 0, len(expected) // width
            for top in range(0, height - 7, 8):
                for left in range(0, width - 7, 8):
                    indexes = [(top + y) * width + left + x for y in range(8) for x in range(8)]
                    mean = sum(expected[index] for index in indexes)
                    worst = max(worst, abs(sum(actual[index] for index in indexes) - mean) / mean)
            return worst


        def base_of(name):
            data = FILES[name]
            return Image.open(io.BytesIO(data)).convert("L").convert("F")


        def map_of(name, size=(WIDTH, HEIGHT)):
            image = MAP if name.endswith("avif") else Image.open(io.BytesIO(FILES[name][FILES[name].rindex(b"\xff\xd8\xff"):]))
            return image.convert("F").resize(size, Image.Resampling.BILINEAR)


        def near(error, limit=0.01):
            assert error < limit, f"{error:.4f} is not below {limit}"


        def subtypes_name_gain_maps():
            for name in FILES:
                has = name not in ("plain.jpg", "absurd.jpg", "inverse.jpg")
                reply, _ = call("catalog", "fetch.assets", fetch={"kind": "assets", "ids": [asset_id(name)]})
                found = "photoHDR" in reply["assets"][0]["mediaSubtypes"]
                assert found == (has and name != "cut.jpg"), (name, reply["assets"][0]["mediaSubtypes"])


        def luminance_is_that_of_the_formula():
            for name in ("ultra.jpg", "iso.jpg", "tmap.avif", "apple.avif"):
                reply, data = image(name)
                assert "hdrHeadroom" in reply, (name, reply)
                is_apple = name == "apple.avif"
                headroom = APPLE_HEADROOM if is_apple else 2 ** STOPS
                assert abs(reply["hdrHeadroom"] - headroom) < 0.01, reply
                assert (reply["mimeType"], reply["pixelWidth"], reply["pixelHeight"]) == ("image/avif", WIDTH, HEIGHT)
                actual = luminance(data, (WIDTH, HEIGHT))
                assert max(actual) > 203 * 0.9 * headroom, max(actual)
                expected = expected_luminance(base_of(name), map_of(name), is_apple=is_apple)
                near(largest_error(actual, expected, WIDTH))
            reply, data = image("turned.jpg")
            assert (reply["pixelWidth"], reply["pixelHeight"]) == (WIDTH, HEIGHT)
            expected = expected_luminance(base_of("ultra.jpg"), map_of("ultra.jpg"))
            near(largest_error(luminance(data, (WIDTH, HEIGHT)), expected, WIDTH), 0.02)


        def displays_with_less_headroom():
            for headroom, weight in ((2.0, 1 / STOPS), (1.0, 0.0), (64.0, 1.0)):
                reply, data = image("ultra.jpg", targetHDRHeadroom=headroom)
                assert abs(reply["hdrHeadroom"] - min(headroom, 2 ** STOPS)) < 0.01, reply
                expected = expected_luminance(base_of("ultra.jpg"), map_of("ultra.jpg"), weight)
                near(largest_error(luminance(data, (WIDTH, HEIGHT)), expected, WIDTH))
            _, whole = image("ultra.jpg")
            for unknown in (0, 0.5, -3):
                reply, data = image("ultra.jpg", targetHDRHeadroom=unknown)
                assert data == whole and reply["isCacheHit"], unknown


        def standard_range_is_unchanged():
            for format in ("jpeg", "avif", "png", "webp"):
                reply, plain = image("ultra.jpg", format=format, preferHDR=False)
                other, same = image("plain.jpg", format=format, preferHDR=True)
                assert plain == same and "hdrHeadroom" not in {**reply, **other}, format
            for name in ("absurd.jpg", "inverse.jpg", "cut.jpg"):
                reply, data = image(name)
                assert "hdrHeadroom" not in reply, (name, reply)
                Image.open(io.BytesIO(data)).load()
            reply, _ = image("ultra.jpg", format="png")
            assert "hdrHeadroom" not in reply


        def jpegs_have_their_map_beside_them():
            reply, data = image("ultra.jpg", format="jpeg", quality=98)
            _, plain = image("ultra.jpg", format="jpeg", quality=98, preferHDR=False)
            assert reply["hdrHeadroom"] > 5
            shown = Image.open(io.BytesIO(data))
            assert shown.n_frames == 2 and shown.tobytes() == Image.open(io.BytesIO(plain)).tobytes()
            shown.seek(1)
            assert shown.size == MAP.size
            text = data.decode("latin1")
            maximum = re.search(r"<hdrgm:GainMapMax><rdf:Seq><rdf:li>([0-9.]+)</rdf:li>", text)
            assert float(maximum[1]) == STOPS and 'Item:Semantic="GainMap"' in text
            # Pillow resizes the second image of a file incorrectly.
            map = Image.open(io.BytesIO(data[data.rindex(b"\xff\xd8\xff"):])).convert("F")
            map = map.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
            base = Image.open(io.BytesIO(plain)).convert("L").convert("F")
            expected = expected_luminance(base_of("ultra.jpg"), map_of("ultra.jpg"))
            near(largest_error(expected_luminance(base, map), expected, WIDTH), 0.03)
            # Apple's map is written in the logarithmic form, which has the same luminance.
            reply, data = image("apple.avif", format="jpeg", quality=98)
            FILES["again.jpg"] = data
            again, light = image("again.jpg")
            assert abs(again["hdrHeadroom"] - APPLE_HEADROOM) < 0.01, again
            expected = expected_luminance(base_of("apple.avif"), map_of("apple.avif"), is_apple=True)
            near(largest_error(luminance(light, (WIDTH, HEIGHT)), expected, WIDTH), 0.04)


        def parts_have_their_part_of_the_map():
            rect = {"x": 0.5, "y": 0.25, "width": 0.5, "height": 0.5}
            reply, data = image("ultra.jpg", (128, 64), resizeMode="exact", normalizedCropRect=rect)
            part = (128, 32, 256, 96)
            expected = expected_luminance(base_of("ultra.jpg").crop(part), map_of("ultra.jpg").crop(part))
            near(largest_error(luminance(data, (128, 64)), expected, 128), 0.02)
            reply, data = image("ultra.jpg", (64, 64), contentMode="aspectFill", resizeMode="exact")
            expected = expected_luminance(base_of("ultra.jpg").resize((128, 64)).crop((32, 0, 96, 64)),
                                          map_of("ultra.jpg", (128, 64)).crop((32, 0, 96, 64)))
            near(largest_error(luminance(data, (64, 64)), expected, 64), 0.03)


        def prepared_images_are_those_of_the_same_range():
            box = {"width": 77, "height": 77}
            manager = call("thumbnailer", "cache.open")[0]["cache"]
            for headroom in (0, 2):
                call("thumbnailer", "cache.start", cache=manager, assets=[asset_id("ultra.jpg")], targetSize=box,
                     format="avif", preferHDR=True, targetHDRHeadroom=headroom)
            reply, data = image("ultra.jpg", (77, 77), quality=85, resizeMode="fast", cache=manager)
            assert reply["cacheReason"] != "optionsDiffer", reply
            assert reply["hdrHeadroom"] > 5
            reply, _ = image("ultra.jpg", (77, 77), quality=85, preferHDR=False, cache=manager)
            assert reply["cacheReason"] == "optionsDiffer" and "hdrHeadroom" not in reply, reply


        def edit(name, *operations):
            return call("editor", "edits.apply", asset=asset_id(name), adjustments={"version": 1, "operations": operations})[0]


        def edits_keep_the_map_in_step():
            rect = {"x": 0.25, "y": 0, "width": 0.5, "height": 1}
            turn = {"operation": "rotate", "value": 90}
            assert "dropsGainMap" not in edit("iso.jpg", {"operation": "crop", **rect}, turn)
            reply, data = image("iso.jpg", (128, 128))
            assert (reply["pixelWidth"], reply["pixelHeight"]) == (128, 128), reply
            part = (64, 0, 192, 128)
            base = base_of("iso.jpg").crop(part).transpose(Image.Transpose.ROTATE_270)
            map = map_of("iso.jpg").crop(part).transpose(Image.Transpose.ROTATE_270)
            near(largest_error(luminance(data, (128, 128)), expected_luminance(base, map), 128), 0.04)
            reply, original = image("iso.jpg", version="original")
            expected = expected_luminance(base_of("iso.jpg"), map_of("iso.jpg"))
            near(largest_error(luminance(original, (WIDTH, HEIGHT)), expected, WIDTH))
            assert "dropsGainMap" not in edit("turned.jpg", {"operation": "straighten", "value": 3})
            assert image("turned.jpg")[0]["hdrHeadroom"] > 5
            assert "dropsGainMap" not in edit("tmap.avif", {"operation": "saturation", "value": 0.3})
            assert image("tmap.avif")[0]["hdrHeadroom"] > 5


        def edits_that_move_pixels_drop_it_and_say_so():
            assert edit("apple.avif", {"operation": "swirl", "value": 40})["dropsGainMap"] is True
            assert "hdrHeadroom" not in image("apple.avif")[0]
            assert "dropsGainMap" not in edit("plain.jpg", {"operation": "swirl", "value": 40})


        def key_frames_of_live_photos_drop_it():
            video = f"{os.environ['FILES']}/film.mov"
            subprocess.run([os.environ["FFMPEG"], "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=320x240:duration=1",
                            "-pix_fmt", "yuv420p", video], check=True)
            with open(video, "rb") as opened:
                files = [FILES["ultra.jpg"] + b"live", opened.read()]
            resources = [{"attachment": 0, "type": "photo", "originalFilename": "live.jpg"},
                         {"attachment": 1, "type": "pairedVideo", "originalFilename": "live.mov"}]
            request = {"type": "asset.create", "ref": "a", "resources": resources}
            created["live.jpg"] = call("catalog", "changes.perform", files, requests=[request])[0]["placeholders"]["a"]
            brighter = {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}
            reply, _ = call("editor", "edits.livePhoto", asset=created["live.jpg"], adjustments=brighter)
            assert "dropsGainMap" not in reply, reply
            assert image("live.jpg")[0]["hdrHeadroom"] > 5
            reply, _ = call("editor", "edits.livePhoto", asset=created["live.jpg"], adjustments=brighter, keyFrame=200000)
            assert reply.get("dropsGainMap") is True, reply
            assert "hdrHeadroom" not in image("live.jpg")[0]


        for check in (subtypes_name_gain_maps, luminance_is_that_of_the_formula, displays_with_less_headroom,
                      standard_range_is_unchanged, jpegs_have_their_map_beside_them, parts_have_their_part_of_the_map,
                      prepared_images_are_those_of_the_same_range,
                      edits_keep_the_map_in_step, edits_that_move_pixels_drop_it_and_say_so,
                      key_frames_of_live_photos_drop_it):
            line = {"check": check.__name__}
            try:
                check()
            except Exception:
                line["problem"] = traceback.format_exc()
            print(json.dumps(line), flush=True)
        """#
}
