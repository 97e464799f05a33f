/// Finds values in an XMP packet without parsing it, which is enough for single numbers and names.
struct XMPText {
    private let packet: ByteReader

    init(_ packet: ArraySlice<UInt8>) { self.packet = ByteReader(packet) }

    /// Returns `tiff:Orientation`, written as an attribute or as an element.
    static func orientation(_ packet: ByteReader) -> Int? {
        guard let name = packet.find("tiff:Orientation") else { return nil }
        var offset = name + "tiff:Orientation".utf8.count
        while let byte = packet.byte(offset), [0x20, 0x3D, 0x22, 0x27, 0x3E, 0x0A, 0x0D, 0x09].contains(byte) {
            offset += 1
        }
        guard let digit = packet.byte(offset), (0x30...0x39).contains(digit) else { return nil }
        if let next = packet.byte(offset + 1), (0x30...0x39).contains(next) { return nil }
        return digit - 0x30
    }

    /// The longest value that is read, in bytes.
    private static let maxValueBytes = 64

    /// Returns the value of a property, written as an attribute or as an element.
    ///
    /// - Parameter name: with the colon before it; prefixes of namespaces may differ
    func value(_ name: StaticString) -> String? {
        var start = 0
        while let found = packet.find(name, from: start) {
            start = found + name.utf8CodeUnitCount
            var offset = start
            while let byte = packet.byte(offset), [0x20, 0x3D, 0x0A, 0x0D, 0x09].contains(byte) { offset += 1 }
            // A name that only begins like this one has another byte here.
            guard let opening = packet.byte(offset), [0x22, 0x27, 0x3E].contains(opening) else { continue }
            let closing = opening == 0x3E ? 0x3C : opening
            var bytes: [UInt8] = []
            offset += 1
            while bytes.count <= Self.maxValueBytes, let byte = packet.byte(offset), byte != closing {
                bytes.append(UInt8(byte))
                offset += 1
            }
            guard bytes.count <= Self.maxValueBytes, !bytes.isEmpty else { continue }
            return String(validating: bytes, as: UTF8.self)
        }
        return nil
    }

    /// Returns the value of a property that is a number, not negative.
    func number(_ name: StaticString) -> Int? {
        value(name).flatMap { Int($0) }.flatMap { (0...Int(Int32.max)).contains($0) ? $0 : nil }
    }

    /// Returns the numbers of a property: one, written as an attribute or as an element, or those of a list.
    ///
    /// - Returns: at most eight; nil if there are none
    func numbers(_ name: StaticString) -> [Double]? {
        if let one = value(name).flatMap({ Double($0) }) { return one.isFinite ? [one] : nil }
        guard let list = parts(name, limit: 1).first else { return nil }
        let text = String(decoding: list.packet.bytes.prefix(Self.maxListBytes), as: UTF8.self)
        let numbers = text.split { "<>".contains($0) }.compactMap { Double($0) }.filter(\.isFinite)
        return numbers.isEmpty ? nil : Array(numbers.prefix(8))
    }

    /// The longest list of numbers that is read, in bytes.
    private static let maxListBytes = 512

    /// The maximum number of items of a container's list that are read.
    private static let maxItems = 64

    /// Returns the range of an item of Google's container list: the items follow each other, and the last ends with the
    /// file.
    func containerItem(_ semantic: String, size: Int) -> Range<Int>? {
        var end = size
        for item in parts("<rdf:li", limit: Self.maxItems).reversed() {
            guard let found = item.value(":Semantic") else { continue }
            let length = item.number(":Length") ?? 0
            let padding = item.number(":Padding") ?? 0
            guard length <= end, padding <= end - length else { return nil }
            let start = end - padding - length
            if found == semantic { return start..<start + length }
            end = start
        }
        return nil
    }

    /// Returns the parts of the packet that begin with an occurrence of a text and end before the next one.
    func parts(_ name: StaticString, limit: Int) -> [XMPText] {
        var starts: [Int] = []
        var next = 0
        while starts.count <= limit, let found = packet.find(name, from: next) {
            starts.append(found)
            next = found + name.utf8CodeUnitCount
        }
        let ends = starts.dropFirst() + [packet.count]
        return zip(starts, ends).prefix(limit).compactMap { start, end in
            packet.slice(start, end - start).map { XMPText($0) }
        }
    }
}
