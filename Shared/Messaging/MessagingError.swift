/// Why a socket could not be set up.
public enum MessagingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text is no endpoint address; `reason` says what is wrong with it.
    case invalidAddress(String, reason: String)
    /// The address is TCP, and that takes CURVE keys.
    case needsCurve(EndpointAddress)
    /// The side that listens was given a client's keys, the side that connects a server's, or a domain is empty.
    case wrongSecurity(EndpointAddress)
    /// This libzmq was built without CURVE.
    case noCurve
    /// libzmq has no context or no socket left, usually because file descriptors ran out.
    case noSocket(reason: String)
    /// The system has no thread, or no file descriptor for one, left.
    case noThread(reason: String)
    /// Binding failed.
    case cannotBind(EndpointAddress, reason: String)
    /// Connecting failed at once; a peer that is merely absent is no error.
    case cannotConnect(EndpointAddress, reason: String)
    /// A socket option was refused.
    case optionRefused(number: Int32, reason: String)

    public var description: String {
        switch self {
        case .invalidAddress(let text, let reason):
            "\(text) is no endpoint address: \(reason)"
        case .needsCurve(let address):
            "\(address) needs CURVE keys, since others can connect to a TCP port: make them with `safelight keys`; a service "
                + "takes them by --listen and --keys, a client by --server-key and --client-key; or use ipc://, or, where "
                + "every local user is trusted, a loopback address with --trust-loopback"
        case .wrongSecurity(let address):
            "the keys for \(address) are those of the other side: who listens has a secret key and a domain, who connects "
                + "the server's public key and its own pair"
        case .noCurve:
            "this libzmq has no CURVE; install one that was built with libsodium"
        case .noSocket(let reason):
            "no ZeroMQ socket can be opened: \(reason); raise the limit of open files"
        case .noThread(let reason):
            "no thread can be started for sockets: \(reason); raise the limits of open files and of threads"
        case .cannotBind(let address, let reason):
            "cannot listen at \(address): \(reason)"
        case .cannotConnect(let address, let reason):
            "cannot connect to \(address): \(reason)"
        case .optionRefused(let number, let reason):
            "libzmq refuses socket option \(number): \(reason)"
        }
    }
}
