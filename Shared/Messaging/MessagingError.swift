/// Why a socket could not be set up.
public enum MessagingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text is no endpoint address; `reason` says what is wrong with it.
    case invalidAddress(String, reason: String)
    /// The address leaves this machine, and that takes CURVE keys.
    case needsCurve(EndpointAddress)
    /// libzmq has no context or no socket left, usually because file descriptors ran out.
    case noSocket(reason: String)
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
            "\(address) leaves this machine, which needs CURVE keys; use ipc:// or a loopback address"
        case .noSocket(let reason):
            "no ZeroMQ socket can be opened: \(reason); raise the limit of open files"
        case .cannotBind(let address, let reason):
            "cannot listen at \(address): \(reason)"
        case .cannotConnect(let address, let reason):
            "cannot connect to \(address): \(reason)"
        case .optionRefused(let number, let reason):
            "libzmq refuses socket option \(number): \(reason)"
        }
    }
}
