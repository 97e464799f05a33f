import Basics
import Contracts
import Glibc
import Hosting
import JSONValue
import Storage
import Video

/// A finished file. It has no name, so the system frees its space when its last descriptor is closed.
final class ExportedVideo: Sendable {
    let size: Int64
    let pixelWidth: Int
    let pixelHeight: Int
    /// The order of the bytes in which players can begin before they have the whole file.
    let layout: VideoStreams.Layout
    private let descriptor: Int32

    /// - Parameter descriptor: closed by `deinit`; an MPEG-4 file with untrusted content
    init(descriptor: Int32, size: Int64, pixelWidth: Int, pixelHeight: Int) {
        self.descriptor = descriptor
        self.size = size
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
        let order = FastStart(size: Int(size)) { offset, count in Self.bytes(of: descriptor, Int64(offset), count) }
        var description = VideoDescription()
        description.isFastStart = order.isPossible
        if let moved = order.moved { (description.movedTo, description.movedFrom) = (moved.position, moved.original) }
        layout = VideoStreams.Layout(description: description, index: order.moved?.index, range: 0..<size)
    }

    deinit { close(descriptor) }

    /// Reads bytes of the stream; blocks.
    func read(offset: Int64, count: Int) throws(StorageError) -> Bytes {
        try VideoStreams.read(layout, offset: offset, count: count) { start, length throws(StorageError) in
            Self.bytes(of: descriptor, start, length)
        }
    }

    private static func bytes(of descriptor: Int32, _ offset: Int64, _ count: Int) -> Bytes {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            used = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
        }
    }
}
