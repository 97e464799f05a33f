import SamplePhotos

/// Photos with a video inside, as cameras of several makers write them.
public enum TestMotionPhotos {
    /// The formats.
    public enum Kind: String, CaseIterable, Sendable {
        /// Google's first format: the distance of the video from the end of the file.
        case microVideo
        /// Google's list of items, as attributes.
        case container
        /// The same as elements, with a gain map before the video and padding after it.
        case elements
        /// Samsung's table of blocks at the end of the file.
        case samsung
    }

    /// Returns a JPEG with a video, and the position of the video.
    public static func jpeg(_ kind: Kind, video: [UInt8], width: Int = 640, height: Int = 480, seed: UInt64 = 1) -> (
        bytes: [UInt8], range: Range<Int>
    ) {
        let camera = """
            xmlns:GCamera="http://ns.google.com/photos/1.0/camera/" \
            xmlns:Container="http://ns.google.com/photos/1.0/container/" \
            xmlns:Item="http://ns.google.com/photos/1.0/container/item/"
            """
        // The packet ends the last description.
        let end = "</rdf:Description><rdf:Description rdf:about=\"\""
        func photo(_ attributes: String) -> [UInt8] {
            var exif = ExifBlock()
            exif.photo.append(.ascii(0x9003, "2024:06:01 12:30:00"))
            return TestImages.jpeg(
                width: width,
                height: height,
                orientation: 1,
                exif: exif,
                segments: attributes.isEmpty ? [] : [TestImages.xmpSegment(attributes)],
                seed: seed
            )
        }
        switch kind {
        case .microVideo:
            let still = photo("\(camera) GCamera:MicroVideo=\"1\" GCamera:MicroVideoOffset=\"\(video.count)\"")
            return (still + video, still.count..<still.count + video.count)
        case .container:
            let still = photo(
                """
                \(camera) GCamera:MotionPhoto="1"><Container:Directory><rdf:Seq>\
                <rdf:li rdf:parseType="Resource"><Container:Item Item:Mime="image/jpeg" Item:Semantic="Primary" \
                Item:Length="0" Item:Padding="0"/></rdf:li>\
                <rdf:li rdf:parseType="Resource"><Container:Item Item:Mime="video/mp4" Item:Semantic="MotionPhoto" \
                Item:Length="\(video.count)"/></rdf:li></rdf:Seq></Container:Directory>\(end)
                """
            )
            return (still + video, still.count..<still.count + video.count)
        case .elements:
            // Gain map and video follow the image.
            let map = [UInt8](repeating: 9, count: 77)
            let still = photo(
                """
                \(camera)><GCamera:MotionPhoto>1</GCamera:MotionPhoto><Container:Directory><rdf:Seq>\
                <rdf:li rdf:parseType="Resource"><Item:Semantic>Primary</Item:Semantic></rdf:li>\
                <rdf:li rdf:parseType="Resource"><Item:Semantic>GainMap</Item:Semantic><Item:Length>\(map.count)</Item:Length></rdf:li>\
                <rdf:li rdf:parseType="Resource"><Item:Semantic>MotionPhoto</Item:Semantic>\
                <Item:Length>\(video.count)</Item:Length>\
                <Item:Padding>5</Item:Padding></rdf:li></rdf:Seq></Container:Directory>\(end)
                """
            )
            let start = still.count + map.count
            return (still + map + video + [0, 0, 0, 0, 0], start..<start + video.count)
        case .samsung:
            func little(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
            func block(_ kind: [UInt8], _ name: String, _ content: [UInt8]) -> [UInt8] {
                [0, 0] + kind + little(name.utf8.count) + Array(name.utf8) + content
            }
            let still = photo("")
            let time = block([0x01, 0x0A], "Image_UTC_Data", Array("1717237800000".utf8))
            let motion = block([0x30, 0x0A], "MotionPhoto_Data", video)
            var table = Array("SEFH".utf8) + little(107) + little(2)
            table += [0, 0, 0x01, 0x0A] + little(time.count + motion.count) + little(time.count)
            table += [0, 0, 0x30, 0x0A] + little(motion.count) + little(motion.count)
            let start = still.count + time.count + motion.count - video.count
            return (
                still + time + motion + table + little(table.count) + Array("SEFT".utf8), start..<start + video.count
            )
        }
    }

    /// The encoding of a box's length.
    public enum BoxLength: CaseIterable, Sendable {
        case short, long
        /// To the end of the file.
        case open
    }

    /// Returns a HEIC or AVIF followed by a box with a video, and the position of the video.
    public static func boxed(
        _ still: [UInt8],
        video: [UInt8],
        _ length: BoxLength = .short
    ) -> (bytes: [UInt8], range: Range<Int>) {
        func big(_ value: Int, _ width: Int) -> [UInt8] {
            (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
        }
        let name = Array("mpvd".utf8)
        let head =
            switch length {
            case .short: big(video.count + 8, 4) + name
            case .long: big(1, 4) + name + big(video.count + 16, 8)
            case .open: big(0, 4) + name
            }
        let start = still.count + head.count
        return (still + head + video, start..<start + video.count)
    }
}
