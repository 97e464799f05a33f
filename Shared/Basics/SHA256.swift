import CCrypto

/// SHA-256 (FIPS 180-4), computed by libcrypto, which uses the processor's SHA instructions.
///
/// It is a value: copying it copies the state, so that a copy and the original continue independently.
public struct SHA256: Sendable {
    private var state: State

    /// Creates the hash of no bytes.
    public init() { state = State() }

    /// Adds bytes.
    public mutating func update(data: some Sequence<UInt8>) {
        if !isKnownUniquelyReferenced(&state) { state = State(copying: state) }
        state.update(data)
    }

    /// Returns the digest of all bytes so far; more may be added afterwards.
    public func finalize() -> Digest { State(copying: state).finish() }

    /// Returns the digest of some bytes.
    public static func hash(data: some Sequence<UInt8>) -> Digest {
        let state = State()
        state.update(data)
        return state.finish()
    }

    /// The 32 bytes of a hash.
    public struct Digest: Sendable, Hashable, Sequence {
        /// The 32 bytes, the most significant first.
        public let bytes: [UInt8]

        public func makeIterator() -> IndexingIterator<[UInt8]> { bytes.makeIterator() }

        public var underestimatedCount: Int { bytes.count }

        public func withContiguousStorageIfAvailable<Result>(
            _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
        ) rethrows -> Result? {
            try bytes.withContiguousStorageIfAvailable(body)
        }
    }
}

/// libcrypto's context of one hash.
///
/// `@unchecked Sendable`: the pointer is used by its one owner only; `SHA256` copies the state before it changes a
/// shared one.
private final class State: @unchecked Sendable {
    /// Looked up once: looking an algorithm up takes longer than hashing a kilobyte (EVP_MD_fetch(3)).
    nonisolated(unsafe) private static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    private let context: OpaquePointer

    init() {
        context = Self.makeContext()
        precondition(EVP_DigestInit_ex(context, Self.algorithm, nil) == 1, "libcrypto offers SHA-256")
    }

    init(copying other: State) {
        context = Self.makeContext()
        precondition(EVP_MD_CTX_copy_ex(context, other.context) == 1, "a hash can be copied")
    }

    deinit { EVP_MD_CTX_free(context) }

    private static func makeContext() -> OpaquePointer {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("there is memory for a hash") }
        return context
    }

    func update(_ data: some Sequence<UInt8>) {
        let isDone: Void? = data.withContiguousStorageIfAvailable { bytes in
            _ = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        }
        if isDone == nil { update(Array(data)) }
    }

    func finish() -> SHA256.Digest {
        let bytes = [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            _ = EVP_DigestFinal_ex(context, buffer.baseAddress, nil)
            count = 32
        }
        return SHA256.Digest(bytes: bytes)
    }
}
