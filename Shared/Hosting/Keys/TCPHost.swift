import ArgumentParser
import Messaging

/// A host and the first of its six consecutive TCP ports.
struct TCPHost: Sendable, Equatable {
    let host: String
    /// The first port; 0 if each endpoint uses any free port.
    let firstPort: Int

    /// Parses `host`, `host:port`, `[address]` or `[address]:port`.
    init(_ text: String, source: String) throws(HostingError) {
        var host = text
        var port = EndpointName.firstPort
        let isBare = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        if !isBare, let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let number = UInt16(text[text.index(after: colon)...]), number <= 65_535 - 5 else {
                throw .badSetting(source: source, reason: "\(text): the port must be a number from 0 to 65530")
            }
            port = Int(number)
            host = String(text[..<colon])
        }
        if isBare { host = "[\(text)]" }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x2F })
        else {
            throw .badSetting(source: source, reason: "\(text.prefix(80)) is not an address")
        }
        self.host = host
        self.firstPort = port
    }

    func address(of endpoint: EndpointName) throws(MessagingError) -> EndpointAddress {
        let port = firstPort == 0 ? 0 : firstPort + endpoint.port - EndpointName.firstPort
        return try EndpointAddress("tcp://\(host):\(port)")
    }
}
