/// An EXIF block that is built field by field, so that samples can contain the same bytes as a camera's files,
/// including invalid data.
public struct ExifBlock: Sendable {
    /// One field of a directory.
    public struct Field: Sendable {
        public var tag: UInt16
        /// The TIFF type: 1 byte, 2 ASCII, 3 short, 4 long, 5 rational, 7 undefined.
        public var type: UInt16
        /// The number of values of the type, which may disagree with `value`.
        public var count: Int
        /// The bytes of the values, little-endian.
        public var value: [UInt8]

        public init(tag: UInt16, type: UInt16, count: Int, value: [UInt8]) {
            self.tag = tag
            self.type = type
            self.count = count
            self.value = value
        }

        /// Returns a text field with its terminating zero.
        public static func ascii(_ tag: UInt16, _ text: String) -> Field {
            let bytes = Array(text.utf8) + [0]
            return Field(tag: tag, type: 2, count: bytes.count, value: bytes)
        }

        public static func short(_ tag: UInt16, _ number: Int) -> Field {
            Field(tag: tag, type: 3, count: 1, value: little(number, 2))
        }

        public static func long(_ tag: UInt16, _ number: Int) -> Field {
            Field(tag: tag, type: 4, count: 1, value: little(number, 4))
        }

        public static func byte(_ tag: UInt16, _ number: UInt8) -> Field {
            Field(tag: tag, type: 1, count: 1, value: [number])
        }

        /// Returns a field of fractions.
        public static func rationals(_ tag: UInt16, _ numbers: [(Int, Int)]) -> Field {
            Field(tag: tag, type: 5, count: numbers.count, value: numbers.flatMap { little($0.0, 4) + little($0.1, 4) })
        }
    }

    /// The fields of IFD0, of the Exif directory and of the GPS directory.
    public var main: [Field] = []
    public var photo: [Field] = []
    public var gps: [Field] = []
    /// A JPEG for IFD1.
    public var thumbnail: [UInt8]?

    public init() {}

    /// Appends a location in degrees, stored as degrees, minutes and seconds to a ten-thousandth of a second.
    public mutating func setLocation(latitude: Double, longitude: Double, altitude: Double? = nil) {
        gps.append(.ascii(1, latitude < 0 ? "S" : "N"))
        gps.append(.rationals(2, Self.sexagesimal(abs(latitude))))
        gps.append(.ascii(3, longitude < 0 ? "W" : "E"))
        gps.append(.rationals(4, Self.sexagesimal(abs(longitude))))
        if let altitude {
            gps.append(.byte(5, altitude < 0 ? 1 : 0))
            gps.append(.rationals(6, [(Int((abs(altitude) * 1000).rounded()), 1000)]))
        }
    }

    /// The block as a JPEG segment.
    public var segment: [UInt8] { JPEGEncoder.segment(0xE1, Array("Exif\0\0".utf8) + bytes) }

    private static func sexagesimal(_ degrees: Double) -> [(Int, Int)] {
        let units = Int((degrees * 36_000_000).rounded())
        return [(units / 36_000_000, 1), (units / 600_000 % 60, 1), (units % 600_000, 10_000)]
    }

    /// The block after "Exif\0\0": a little-endian TIFF structure.
    public var bytes: [UInt8] {
        var main = main
        if !photo.isEmpty { main.append(.long(0x8769, 0)) }
        if !gps.isEmpty { main.append(.long(0x8825, 0)) }
        let mainAt = 8
        let photoAt = mainAt + Self.size(main)
        let gpsAt = photoAt + (photo.isEmpty ? 0 : Self.size(photo))
        let nextAt = gpsAt + (gps.isEmpty ? 0 : Self.size(gps))
        for index in main.indices {
            if main[index].tag == 0x8769 { main[index] = .long(0x8769, photoAt) }
            if main[index].tag == 0x8825 { main[index] = .long(0x8825, gpsAt) }
        }
        var output: [UInt8] = [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0]
        output += Self.directory(main, at: mainAt, next: thumbnail == nil ? 0 : nextAt)
        if !photo.isEmpty { output += Self.directory(photo, at: photoAt, next: 0) }
        if !gps.isEmpty { output += Self.directory(gps, at: gpsAt, next: 0) }
        if let thumbnail {
            var small: [Field] = [.short(0x0103, 6), .long(0x0201, 0), .long(0x0202, thumbnail.count)]
            small[1] = .long(0x0201, nextAt + Self.size(small))
            output += Self.directory(small, at: nextAt, next: 0) + thumbnail
        }
        return output
    }

    private static func size(_ fields: [Field]) -> Int {
        2 + 12 * fields.count + 4 + fields.reduce(0) { $0 + ($1.value.count > 4 ? ($1.value.count + 1) & ~1 : 0) }
    }

    private static func directory(_ fields: [Field], at start: Int, next: Int) -> [UInt8] {
        var head = little(fields.count, 2)
        var tail: [UInt8] = []
        let tailAt = start + 2 + 12 * fields.count + 4
        for field in fields.sorted(by: { $0.tag < $1.tag }) {
            head += little(Int(field.tag), 2) + little(Int(field.type), 2) + little(field.count, 4)
            if field.value.count <= 4 {
                head += field.value + [UInt8](repeating: 0, count: 4 - field.value.count)
            } else {
                head += little(tailAt + tail.count, 4)
                tail += field.value + [UInt8](repeating: 0, count: field.value.count & 1)
            }
        }
        return head + little(next, 4) + tail
    }
}

private func little(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
}
