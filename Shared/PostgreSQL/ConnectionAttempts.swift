import Basics
import CPQ
import Glibc
import Synchronization

/// Connects to one of the hosts of an address.
///
/// The host that was connected last is tried first. If it does not answer within a quarter of a second, or refuses, the
/// next one is tried at the same time, as RFC 8305 describes for the addresses of a host: a lost host delays the
/// connection by that time instead of the whole time limit. A host that refuses is tried again while another one does
/// not answer, because the replica of a lost primary server refuses until it is promoted.
struct ConnectionAttempts {
    /// Milliseconds after which the next host is tried too.
    static let delay: Int64 = 250

    private struct Host {
        /// The whole address with this host only, as parameters of libpq.
        var settings: [(name: String, value: String)]
        var name: String
    }

    fileprivate struct Attempt {
        let connection: OpaquePointer
        let host: Int
        let end: Int64
        var status = PGRES_POLLING_WRITING
    }

    private let address: String
    private let hosts: [Host]
    private let settings: [(name: String, value: String)]
    /// The values of `target_session_attrs` in the order in which they are tried; nil for that of the address.
    private let sessions: [String?]
    private let milliseconds: Int64

    init(_ address: String, limits: PostgreSQLConnection.Limits) throws(PostgreSQLError) {
        self.address = address
        let given = try Self.parse(address)
        func list(_ name: String) -> [String] {
            given[name]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
        }
        let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(names.count, addresses.count)
        // libpq ignores an empty value, so one of these lists cannot be replaced in the text of the address: that of
        // postgresql://a,b/ has the ports ",".
        let lists: Set = ["host", "hostaddr", "port"]
        let others = given.filter { !lists.contains($0.key) }.map { (name: $0.key, value: $0.value) }
        hosts =
            count < 2
            ? [Host(settings: [("dbname", address)], name: "")]
            : (0..<count).map { index in
                var own: [(name: String, value: String)] = []
                if index < names.count { own.append(("host", names[index])) }
                if index < addresses.count { own.append(("hostaddr", addresses[index])) }
                if let port = ports.count == 1 ? ports[0] : ports.dropFirst(index).first {
                    own.append(("port", port))
                }
                let name = own.map(\.value).filter { !$0.isEmpty }.joined(separator: ":")
                return Host(settings: others + own, name: name)
            }
        settings = [("client_encoding", "UTF8"), ("fallback_application_name", "safelight")]
        // In one pass, the first host that answers would be accepted, whatever its role.
        let isPreference = given["target_session_attrs"] == "prefer-standby" && count > 1
        sessions = isPreference ? ["standby", "any"] : [nil]
        let seconds = given["connect_timeout"].flatMap { Int64($0) } ?? Int64(limits.connectSeconds)
        // To libpq, 0 and negative numbers mean no limit, and it waits at least two seconds.
        let addressLimit = seconds > 0 ? max(2, seconds) * 1000 : Int64(Int32.max)
        milliseconds = limits.connectMilliseconds.map { min(addressLimit, $0) } ?? addressLimit
    }

    private static func parse(_ address: String) throws(PostgreSQLError) -> [String: String] {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(address, &message) else {
            let text = message.map { String(cString: $0) } ?? ""
            PQfreemem(message)
            throw PostgreSQLError(.statement, "the address cannot be read: \(text.trimmingSuffix())")
        }
        defer { PQconninfoFree(options) }
        var found: [String: String] = [:]
        var option = options
        while let name = option.pointee.keyword {
            if let value = option.pointee.val { found[String(cString: name)] = String(cString: value) }
            option += 1
        }
        return found
    }

    // MARK: Connecting

    /// Returns a connection to the first host that accepts one. It blocks.
    func connect() throws(PostgreSQLError) -> OpaquePointer {
        var failures: [Int: String] = [:]
        for session in sessions {
            failures = [:]
            if let connection = try connect(session, &failures) { return connection }
        }
        let texts = failures.sorted { $0.key < $1.key }.map(\.value)
        throw PostgreSQLError(.disconnected, texts.joined(separator: "; "))
    }

    private func connect(_ session: String?, _ failures: inout [Int: String]) throws(PostgreSQLError) -> OpaquePointer?
    {
        let first = LastHosts.name(for: address).flatMap { name in hosts.firstIndex { $0.name == name } } ?? 0
        var waiting = ([first] + hosts.indices.filter { $0 != first })[...]
        var running: [Attempt] = []
        defer { for attempt in running { PQfinish(attempt.connection) } }
        let begin = Self.now
        var nextStart = begin
        while !running.isEmpty || !waiting.isEmpty {
            // A replica is preferred, but one that does not answer is abandoned if another host has answered.
            if session == "standby", !failures.isEmpty, Self.now >= begin + 2 * Self.delay { return nil }
            if running.isEmpty || Self.now >= nextStart, let host = waiting.popFirst() {
                running.append(try start(host, session))
                nextStart = Self.now + Self.delay
            }
            let limit = session == "standby" && !failures.isEmpty ? begin + 2 * Self.delay : .max
            wait(running, until: waiting.isEmpty ? limit : min(limit, nextStart))
            for index in running.indices.reversed() {
                let attempt = running[index]
                switch attempt.status {
                case PGRES_POLLING_OK:
                    running.remove(at: index)
                    LastHosts.remember(hosts[attempt.host].name, for: address)
                    return attempt.connection
                case PGRES_POLLING_FAILED: failures[attempt.host] = Self.message(attempt.connection)
                case _ where Self.now >= attempt.end:
                    let name = hosts.count > 1 ? " of \(hosts[attempt.host].name)" : ""
                    failures[attempt.host] = "the server\(name) did not answer in \(milliseconds) ms"
                default:
                    running[index].status = advance(attempt)
                    continue
                }
                PQfinish(attempt.connection)
                running.remove(at: index)
                nextStart = Self.now
                if attempt.status == PGRES_POLLING_FAILED, !running.isEmpty {
                    if waiting.isEmpty { nextStart += Self.delay }
                    waiting.append(attempt.host)
                }
            }
        }
        return nil
    }

    private func start(_ host: Int, _ session: String?) throws(PostgreSQLError) -> Attempt {
        // Later settings replace earlier ones.
        var all = hosts[host].settings + settings
        if let session { all.append(("target_session_attrs", session)) }
        let words = all.map { strdup($0.0) } + [nil]
        let texts = all.map { strdup($0.1) } + [nil]
        defer { for text in words + texts { free(text) } }
        let opened = words.map { UnsafePointer($0) }.withUnsafeBufferPointer { words in
            texts.map { UnsafePointer($0) }.withUnsafeBufferPointer { texts in
                PQconnectStartParams(words.baseAddress, texts.baseAddress, 1)
            }
        }
        guard let opened else { throw PostgreSQLError(.outOfResources, "libpq has no memory for a connection") }
        let status = PQstatus(opened) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
        return Attempt(connection: opened, host: host, end: Self.now + milliseconds, status: status)
    }

    /// Waits until one of the connections can continue, or a time is reached.
    private func wait(_ running: [Attempt], until end: Int64) {
        guard !running.contains(where: { $0.status == PGRES_POLLING_FAILED || $0.status == PGRES_POLLING_OK }) else {
            return
        }
        var sockets = running.map(\.pollDescriptor)
        let limit = running.map(\.end).reduce(end, min) - Self.now
        poll(&sockets, nfds_t(sockets.count), Int32(clamping: max(0, limit)))
    }

    /// Continues a connection attempt if its socket is ready for it, and returns its status.
    private func advance(_ attempt: Attempt) -> PostgresPollingStatusType {
        var socket = attempt.pollDescriptor
        guard poll(&socket, 1, 0) > 0 else { return attempt.status }
        return PQconnectPoll(attempt.connection)
    }

    private static func message(_ connection: OpaquePointer) -> String {
        PostgreSQLConnection.trimmed(PQerrorMessage(connection).map { String(cString: $0) } ?? "")
    }

    /// The current time of the monotonic clock in milliseconds.
    static var now: Int64 { MonotonicClock.system.nowMicroseconds() / 1000 }
}

extension ConnectionAttempts.Attempt {
    /// The event of the socket for which libpq waits.
    fileprivate var pollDescriptor: pollfd {
        let event = status == PGRES_POLLING_READING ? POLLIN : POLLOUT
        return pollfd(fd: PQsocket(connection), events: Int16(event), revents: 0)
    }
}

extension String {
    fileprivate func trimmingSuffix() -> String {
        var text = self[...]
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}

/// For each address, the host to which this process has connected last.
private enum LastHosts {
    /// The maximum number of addresses that are remembered.
    private static let limit = 64
    private static let names = Mutex<[String: String]>([:])

    static func name(for address: String) -> String? { names.withLock { $0[address] } }

    static func remember(_ name: String, for address: String) {
        names.withLock { names in
            if names.count >= limit, names[address] == nil { names = [:] }
            names[address] = name
        }
    }
}
