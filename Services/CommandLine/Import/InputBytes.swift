import Basics
import Contracts
import JSONValue
import SystemPackage

/// An open file on this machine; closed when released.
final class InputBytes {
    let size: Int64
    private let file: FileDescriptor
    /// A path to the open file that stays valid even if the file is renamed.
    var path: String { "/proc/self/fd/\(file.rawValue)" }

    init(_ path: FilePath) throws(RPCError) {
        do {
            file = try FileDescriptor.open(path, .readOnly)
            size = try file.seek(offset: 0, from: .end)
        } catch {
            throw ErrorCode.missingResource.error("\(path) cannot be read: \(error)")
        }
    }

    deinit { try? file.close() }

    /// Returns the SHA-256 of the file.
    func digest() throws(RPCError) -> String {
        var hash = SHA256()
        var buffer = Bytes(repeating: 0, count: 1 << 20)
        var offset: Int64 = 0
        do {
            while true {
                let count = try buffer.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: offset, into: $0) }
                guard count > 0 else { return hash.finalize().hexadecimal }
                hash.update(data: buffer[..<count])
                offset += Int64(count)
            }
        } catch {
            throw ErrorCode.missingResource.error("the file cannot be read: \(error)")
        }
    }

    /// Reads the whole file, at most `limit` bytes.
    func read(limit: Int) throws(RPCError) -> Bytes {
        var bytes = Bytes(repeating: 0, count: min(Int(size), limit))
        do {
            var filled = 0
            while filled < bytes.count {
                let count = try bytes.withUnsafeMutableBytes { buffer in
                    try file.read(fromAbsoluteOffset: Int64(filled), into: .init(rebasing: buffer[filled...]))
                }
                if count == 0 { break }
                filled += count
            }
            return Bytes(bytes.prefix(filled))
        } catch {
            throw ErrorCode.missingResource.error("the file cannot be read: \(error)")
        }
    }
}
