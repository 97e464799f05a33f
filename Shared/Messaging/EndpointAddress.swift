/// Where a service listens: `ipc:///path`, `tcp://host:port` or `inproc://name`.
public struct EndpointAddress: Sendable, Hashable, CustomStringConvertible {
    /// How bytes travel to it.
    public enum Transport: String, Sendable {
        case ipc, tcp, inproc
    }

    public let transport: Transport
    /// What follows `://`: a path, `host:port` or a name.
    public let location: String

    /// The longest path of an `ipc://` address in bytes; the kernel keeps it in a fixed field with a terminator.
    public static let longestPath = 106

    /// Reads an address.
    ///
    /// An ipc path is absolute and at most ``longestPath`` bytes; a tcp port is 1...65535, or `0` or `*` for any free
    /// one.
    public init(_ text: String) throws(MessagingError) {
        func refuse(_ reason: String) -> MessagingError { .invalidAddress(text, reason: reason) }
        guard !text.utf8.contains(0) else { throw refuse("it has a zero byte") }
        guard let mark = text.range(ofText: "://"),
            let transport = Transport(rawValue: String(text[..<mark.lowerBound]))
        else { throw refuse("it starts with none of ipc://, tcp://, inproc://") }
        let location = String(text[mark.upperBound...])
        switch transport {
        case .ipc:
            guard location.hasPrefix("/") else { throw refuse("the path of an ipc:// address is absolute") }
            guard location.utf8.count <= Self.longestPath else {
                throw refuse("its path has \(location.utf8.count) bytes and may have \(Self.longestPath)")
            }
        case .tcp:
            guard let colon = location.lastIndex(of: ":"), colon > location.startIndex else {
                throw refuse("a tcp:// address is host:port")
            }
            let port = location[location.index(after: colon)...]
            let isNumber = !port.isEmpty && port.utf8.allSatisfy { (0x30...0x39).contains($0) }
            guard port == "*" || (isNumber && UInt16(port) != nil) else {
                throw refuse("the port is a number from 0 to 65535, or *")
            }
        case .inproc:
            guard !location.isEmpty, location.utf8.count <= 200 else {
                throw refuse("the name of an inproc:// address has 1 to 200 bytes")
            }
        }
        self.transport = transport
        self.location = location
    }

    public var description: String { "\(transport.rawValue)://\(location)" }

    /// Whether nothing but this machine can reach it.
    public var isLocal: Bool {
        guard transport == .tcp, let host else { return true }
        if host == "localhost" || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// The path of the socket file, for ipc.
    public var path: String? { transport == .ipc ? location : nil }

    /// The host, for tcp.
    public var host: String? {
        guard transport == .tcp, let colon = location.lastIndex(of: ":") else { return nil }
        return String(location[..<colon])
    }
}

extension String {
    /// The first place of a short text; Foundation is not needed for this one look-up.
    fileprivate func range(ofText needle: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(needle) { return start..<index(start, offsetBy: needle.count) }
            start = index(after: start)
        }
        return nil
    }
}
