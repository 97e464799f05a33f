import Basics
import Contracts
import Hosting
import JSONValue
import PhotoModel
import Storage
import Synchronization

/// Videos as streams that a player can begin to play before it has all bytes: an index at the end of a file is moved to
/// its beginning.
final class VideoStreams: Sendable {
    /// The bytes of a stream: parts of the file, and the moved index between them.
    struct Layout: Sendable {
        let description: VideoDescription
        let index: Bytes?
        /// The bytes of the video in the stored file.
        let range: Range<Int64>

        /// Returns the part of the stream's bytes that begins at an offset, at most `count` bytes long.
        fileprivate func piece(at offset: Int64, count: Int64) -> Piece {
            guard let index, let to = description.movedTo, let from = description.movedFrom else {
                return .file(offset, count)
            }
            let (start, end, length) = (Int64(to), Int64(from), Int64(index.count))
            if offset < start { return .file(offset, min(count, start - offset)) }
            if offset < start + length {
                let first = Int(offset - start)
                return .index(first..<min(index.count, first + Int(clamping: count)))
            }
            if offset < end + length { return .file(offset - length, min(count, end + length - offset)) }
            return .file(offset, count)
        }
    }

    fileprivate enum Piece {
        case file(Int64, Int64)
        case index(Range<Int>)
    }

    private let renderer: Renderer
    private let state: Mutex<State>

    private struct State {
        var order = LRUIndex<String>(budget: VideoStreams.budget)
        var layouts: [String: Layout] = [:]
    }

    /// The maximum size of the indexes in memory, in bytes.
    private static let budget: Int64 = 64 << 20

    init(renderer: Renderer) {
        self.renderer = renderer
        state = Mutex(State())
    }

    /// Returns the layout of a video's stream. If it is not in memory, a worker examines the file.
    func layout(_ video: AssetResource) async throws(RPCError) -> Layout {
        let name = video.stream
        let cached = state.withLock { state -> Layout? in
            guard let layout = state.layouts[name] else { return nil }
            state.order.touch(name)
            return layout
        }
        if let cached { return cached }
        var (description, index) = try await renderer.describe(video: video)
        // The worker opened untrusted bytes, so its report is checked.
        if let bytes = index, let to = description.movedTo, let from = description.movedFrom, to < from,
            from <= Int(video.size) - bytes.count
        {
            index = bytes
        } else {
            index = nil
            (description.movedTo, description.movedFrom) = (nil, nil)
        }
        let start = video.offset ?? 0
        let layout = Layout(description: description, index: index, range: start..<start + video.size)
        let cost = Int64(index?.count ?? 0) + 1024
        state.withLock { state in
            state.layouts[name] = layout
            for evicted in state.order.insert(name, cost: cost) { state.layouts[evicted] = nil }
        }
        return layout
    }

    /// Returns the tracks of a video and their timing.
    func structure(_ video: AssetResource) async throws(RPCError) -> VideoStructure {
        try await renderer.structure(of: video)
    }

    /// Opens the stored bytes.
    func open(_ digest: String) throws(RPCError) -> ResourceFile { try renderer.resources.open(digest) }

    /// Returns bytes of a stream; blocks. They are fewer than `count` only at the end.
    ///
    /// - Parameter read: reads bytes of the file
    static func read(
        _ layout: Layout,
        offset: Int64,
        count: Int,
        from read: (_ offset: Int64, _ count: Int) throws(StorageError) -> Bytes
    ) throws(StorageError) -> Bytes {
        var bytes: Bytes = []
        bytes.reserveCapacity(count)
        while bytes.count < count, offset + Int64(bytes.count) < layout.range.count {
            switch layout.piece(at: offset + Int64(bytes.count), count: Int64(count - bytes.count)) {
            case .index(let range): bytes += layout.index?[range] ?? []
            case .file(let start, let length):
                let part = try read(layout.range.lowerBound + start, Int(length))
                guard !part.isEmpty else { return bytes }
                bytes += part
            }
        }
        return bytes
    }
}

extension AssetResource {
    /// The name of the video's stream.
    var stream: String { offset.map { "\(digest).\($0)" } ?? digest }

    /// The parameters of a worker's job for the part of the file that is the video; empty for a whole file.
    var partOfFile: JSONObject { offset.map { ["offset": .int($0), "size": .int(size)] } ?? [:] }
}
