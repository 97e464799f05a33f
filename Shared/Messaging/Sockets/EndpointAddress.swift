/// The address of a service: `ipc:///path`, `tcp://host:port` or `inproc://name`.
public struct EndpointAddress: Sendable, Hashable, CustomStringConvertible {
    /// The transport of an address.
    public enum Transport: String, Sendable {
        /// Unix sockets, TCP, and queues within the process.
        case ipc, tcp, inproc
    }

    /// The part before `://`.
    public let transport: Transport
    /// The part after `://`: a path, `host:port` or a name.
    public let location: String

    /// The longest path of an `ipc://` address in bytes; the kernel stores it in a field of fixed size, with a
    /// terminator.
    public static let maxPathBytes = 106

    /// Parses an address; throws ``MessagingError/invalidAddress(_:reason:)``.
    ///
    /// An ipc path is absolute and at most ``maxPathBytes`` bytes; a tcp port is 1...65535, or `0` or `*` for any free
    /// one.
    public init(_ text: String) throws(MessagingError) {
        func refuse(_ reason: String) -> MessagingError { .invalidAddress(text, reason: reason) }
        guard !text.utf8.contains(0) else { throw refuse("it contains a zero byte") }
        guard let mark = text.range(ofText: "://"),
            let transport = Transport(rawValue: String(text[..<mark.lowerBound]))
        else { throw refuse("it must start with ipc://, tcp:// or inproc://") }
        let location = String(text[mark.upperBound...])
        switch transport {
        case .ipc:
            guard location.hasPrefix("/") else { throw refuse("the path of an ipc:// address must be absolute") }
            guard location.utf8.count <= Self.maxPathBytes else {
                throw refuse("its path has \(location.utf8.count) bytes; the maximum is \(Self.maxPathBytes)")
            }
        case .tcp:
            guard let colon = location.lastIndex(of: ":"), colon > location.startIndex else {
                throw refuse("a tcp:// address has the form host:port")
            }
            let port = location[location.index(after: colon)...]
            let isNumber = !port.isEmpty && port.utf8.allSatisfy { (0x30...0x39).contains($0) }
            guard port == "*" || (isNumber && UInt16(port) != nil) else {
                throw refuse("the port must be a number from 0 to 65535, or *")
            }
        case .inproc:
            guard !location.isEmpty, location.utf8.count <= 200 else {
                throw refuse("the name of an inproc:// address must have 1 to 200 bytes")
            }
        }
        self.transport = transport
        self.location = location
    }

    /// The address as text, in the form that is parsed.
    public var description: String { "\(transport.rawValue)://\(location)" }

    /// True if the address can be reached from this machine only.
    public var isLocal: Bool {
        guard transport == .tcp, let host else { return true }
        if host == "localhost" || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// The path of the socket file; nil unless the transport is ipc.
    public var path: String? { transport == .ipc ? location : nil }

    /// The host; nil unless the transport is tcp.
    public var host: String? {
        guard transport == .tcp, let colon = location.lastIndex(of: ":") else { return nil }
        return String(location[..<colon])
    }
}

extension String {
    /// Returns the first range of a short text, without Foundation.
    fileprivate func range(ofText needle: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(needle) { return start..<index(start, offsetBy: needle.count) }
            start = index(after: start)
        }
        return nil
    }
}
