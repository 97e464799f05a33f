/// An error while a socket is set up.
public enum MessagingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text is not an endpoint address; `reason` says what is wrong with it.
    case invalidAddress(String, reason: String)
    /// The address is TCP, which requires CURVE keys.
    case needsCurve(EndpointAddress)
    /// The security does not fit the side: a listening socket was given a client's keys, a connecting socket a
    /// server's, or a domain is empty or too long.
    case wrongSecurity(EndpointAddress)
    /// This libzmq was built without CURVE.
    case noCurve
    /// libzmq cannot make a context or socket, usually because file descriptors ran out.
    case noSocket(reason: String)
    /// The system cannot start a thread or has no file descriptor for it.
    case noThread(reason: String)
    /// Binding failed.
    case cannotBind(EndpointAddress, reason: String)
    /// Connecting failed at once; an absent peer is not an error.
    case cannotConnect(EndpointAddress, reason: String)
    /// A socket option was refused.
    case optionRefused(number: Int32, reason: String)

    /// A description for people: the problem and its remedy.
    public var description: String {
        switch self {
        case .invalidAddress(let text, let reason):
            "\(text) is not an endpoint address: \(reason)"
        case .needsCurve(let address):
            "\(address) needs CURVE keys, because anyone can connect to a TCP port: make them with "
                + "`safelight keys` and pass them to a service with --listen and --keys, to a client with --server-key "
                + "and --client-key; or use ipc://, or, if every local user is trusted, a loopback address with "
                + "--trust-loopback"
        case .wrongSecurity(let address):
            "the keys for \(address) are those of the other side: a listening socket needs a secret key and a domain, "
                + "a connecting socket the server's public key and its own pair"
        case .noCurve:
            "this libzmq has no CURVE; install one that was built with libsodium"
        case .noSocket(let reason):
            "cannot open a ZeroMQ socket: \(reason); raise the limit of open files"
        case .noThread(let reason):
            "cannot start a thread for sockets: \(reason); raise the limits of open files and of threads"
        case .cannotBind(let address, let reason):
            "cannot listen at \(address): \(reason)"
        case .cannotConnect(let address, let reason):
            "cannot connect to \(address): \(reason)"
        case .optionRefused(let number, let reason):
            "libzmq refused socket option \(number): \(reason)"
        }
    }
}
