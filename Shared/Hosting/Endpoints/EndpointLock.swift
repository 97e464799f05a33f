import CProcess
import Glibc
public import Messaging

/// A lock that prevents a second service from binding the same `ipc://` path, which libzmq silently allows.
///
/// It is acquired before binding and held while serving; the kernel releases it when the process ends.
public final class EndpointLock: Sendable {
    private let descriptor: Int32

    /// Locks an address; returns nil for transports for which a second bind fails anyway.
    ///
    /// Throws ``HostingError/alreadyRunning(program:pid:address:)``.
    public static func acquire(_ address: EndpointAddress, for program: ServiceName) throws(HostingError)
        -> EndpointLock?
    {
        guard let path = address.path else { return nil }
        return try EndpointLock(path: path + ".lock", address: address, program: program)
    }

    private init(path: String, address: EndpointAddress, program: ServiceName) throws(HostingError) {
        var holder: Int32 = 0
        let descriptor = safelight_lock(path, &holder)
        let problem = errno
        guard descriptor >= 0 else {
            guard problem == EWOULDBLOCK else {
                throw .cannotLock(path: path, reason: String(cString: strerror(problem)))
            }
            throw .alreadyRunning(
                program: program.rawValue,
                pid: holder > 0 ? holder : nil,
                address: address.description
            )
        }
        self.descriptor = descriptor
    }

    deinit { _ = close(descriptor) }
}
