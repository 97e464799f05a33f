import CZlib

/// Decompresses zlib streams (RFC 1950).
public enum Inflater {
    /// Returns the decompressed bytes; nil if the stream is damaged, incomplete or longer than `limit`.
    public static func bytes(_ input: ArraySlice<UInt8>, limit: Int) -> [UInt8]? {
        guard !input.isEmpty, input.count <= limit else { return nil }
        var source = Array(input)
        var stream = z_stream()
        guard safelight_inflate_start(&stream) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var output: [UInt8] = []
        let isWhole = source.withUnsafeMutableBufferPointer { source in
            stream.next_in = source.baseAddress
            stream.avail_in = UInt32(source.count)
            var status = Z_OK
            while status == Z_OK, output.count <= limit {
                let size = max(16 << 10, output.count)
                output += [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = UInt32(size)
                    status = inflate(&stream, Z_NO_FLUSH)
                    count = size - Int(stream.avail_out)
                }
            }
            return status == Z_STREAM_END
        }
        return isWhole && output.count <= limit ? output : nil
    }
}
