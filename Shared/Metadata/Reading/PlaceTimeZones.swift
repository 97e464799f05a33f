import CTimeZones
import ImageFormats

/// The time zones of places, for dates without an offset.
///
/// The borders are exact to about two kilometres. At sea it is the zone of the longitude.
struct PlaceTimeZones: Sendable {
    /// The table that is compiled into the program; nil if it cannot be read.
    static let table: PlaceTimeZones? = {
        var count = 0
        guard let start = safelight_time_zones(&count) else { return nil }
        let packed = Array(UnsafeBufferPointer(start: start, count: count))
        return Inflater.bytes(packed[...], limit: 16 << 20).flatMap(PlaceTimeZones.init)
    }()

    private let cellsPerDegree: Int
    /// The row of each line of cells, from north to south.
    private let lines: [UInt16]
    /// The first run of each row, and the number of runs.
    private let rowStarts: [UInt32]
    /// The end of each run, in cells from 180° west.
    private let runEnds: [UInt16]
    private let runZones: [UInt16]
    /// The first transition of each zone, and the number of transitions.
    private let zoneStarts: [UInt32]
    /// Minutes since 1970; the first of a zone stands for all time before.
    private let transitions: [Int32]
    /// Seconds east of UTC.
    private let offsets: [Int32]

    /// - Parameter bytes: the table in the form that `make-table.py` describes
    init?(_ bytes: [UInt8]) {
        var reader = ArrayReader(bytes: bytes)
        let header: [UInt32] = reader.numbers(5)
        guard header.count == 5, (1...64).contains(header[0]) else { return nil }
        let (rows, runs, zones) = (Int(header[1]), Int(header[2]), Int(header[3]))
        cellsPerDegree = Int(header[0])
        lines = reader.numbers(180 * cellsPerDegree)
        rowStarts = reader.numbers(rows + 1)
        runEnds = reader.numbers(runs)
        runZones = reader.numbers(runs)
        zoneStarts = reader.numbers(zones + 1)
        transitions = reader.numbers(Int(header[4]))
        offsets = reader.numbers(Int(header[4]))
        guard offsets.count == header[4], reader.isAtEnd, lines.allSatisfy({ $0 < rows }),
            runZones.allSatisfy({ $0 < zones }), rowStarts.last == header[2], zoneStarts.last == header[4],
            zip(rowStarts, rowStarts.dropFirst()).allSatisfy({ $0 < $1 }),
            zip(zoneStarts, zoneStarts.dropFirst()).allSatisfy({ $0 < $1 })
        else { return nil }
    }

    /// Returns the offset at a place and at a UTC time in microseconds since 1970.
    func offset(at moment: Int64, _ place: PhotoMetadata.Coordinates) -> Int {
        let minute = Int32(clamping: Self.minuteInTable(moment / 60_000_000 - (moment % 60_000_000 < 0 ? 1 : 0)))
        let zone = zone(place)
        var (low, high) = (Int(zoneStarts[zone]), Int(zoneStarts[zone + 1]))
        while high - low > 1 {
            let middle = (low + high) / 2
            if transitions[middle] <= minute { low = middle } else { high = middle }
        }
        return Int(offsets[low])
    }

    private static let minutesOfDay: Int64 = 1440
    /// The first day that the table does not have, 2038-01-01, in days since 1970.
    private static let endOfTable: Int64 = 24_837
    /// The first of March of a year in the table, in days since 1970, for each day of the week; Thursday, that of 1970,
    /// is the first. They are the latest such years, which have the rules in force.
    private static let marches: [Int64] = [23_800, 21_974, 24_166, 20_513, 22_705, 23_070, 23_435]

    /// Returns the minute of the table that has the offset of a minute since 1970.
    ///
    /// Clocks change on a certain weekday of a month, and all changes are from March on. A time after the table is
    /// therefore mapped to a year in the table whose days from March on have the same weekdays.
    private static func minuteInTable(_ minute: Int64) -> Int64 {
        guard minute >= endOfTable * minutesOfDay else { return minute }
        let days = minute / minutesOfDay
        // The day of a year that begins in March (Howard Hinnant's civil_from_days).
        let dayOfEra = (days + 719_468) % 146_097
        let year = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * year + year / 4 - year / 100)
        let march = marches[Int((days - dayOfYear) % 7)]
        return (march + dayOfYear) * minutesOfDay + minute % minutesOfDay
    }

    /// Returns the offset of a local time, in microseconds since 1970 by the clock there.
    ///
    /// For a time that the clock shows twice, it is the offset of the first; for one that it skips, the offset before
    /// the change.
    func offset(local: Int64, _ place: PhotoMetadata.Coordinates) -> Int {
        let day: Int64 = 86_400_000_000
        let before = offset(at: local - day, place)
        for offset in [before, offset(at: local + day, place)]
        where self.offset(at: local - Int64(offset) * 1_000_000, place) == offset { return offset }
        return before
    }

    private func zone(_ place: PhotoMetadata.Coordinates) -> Int {
        let line = min(lines.count - 1, max(0, Int((90 - place.latitude) * Double(cellsPerDegree))))
        let cell = min(360 * cellsPerDegree - 1, max(0, Int((place.longitude + 180) * Double(cellsPerDegree))))
        var (low, high) = (Int(rowStarts[Int(lines[line])]), Int(rowStarts[Int(lines[line]) + 1]) - 1)
        // The first run that ends after the cell.
        while low < high {
            let middle = (low + high) / 2
            if Int(runEnds[middle]) > cell { high = middle } else { low = middle + 1 }
        }
        return Int(runZones[low])
    }

    /// Reads arrays of little-endian numbers, one after another.
    private struct ArrayReader {
        let bytes: [UInt8]
        private var offset = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool { offset == bytes.count }

        /// Returns the next numbers; none if there are too few bytes.
        mutating func numbers<Number: FixedWidthInteger>(_ count: Int) -> [Number] {
            let size = Number.bitWidth / 8
            guard count <= (bytes.count - offset) / size else { return [] }
            defer { offset += count * size }
            return bytes.withUnsafeBytes { buffer in
                (0..<count).map {
                    Number(littleEndian: buffer.loadUnaligned(fromByteOffset: offset + $0 * size, as: Number.self))
                }
            }
        }
    }
}

extension PhotoMetadata.Coordinates {
    /// Returns the offset of the time zone here, in seconds east of UTC; nil if the table cannot be read.
    ///
    /// - Parameters:
    ///   - date: microseconds since 1970
    ///   - isMoment: true if `date` is in UTC, false if it is by the clock here
    public func timeZoneOffset(at date: Int64, isMoment: Bool) -> Int? {
        guard let zones = PlaceTimeZones.table else { return nil }
        return isMoment ? zones.offset(at: date, self) : zones.offset(local: date, self)
    }
}
