public import Logging
public import Messaging

/// A warning that a service listens on TCP without keys.
public enum LoopbackWarning {
    /// Logs a warning for each TCP address; called with addresses that have no keys.
    public static func log(_ addresses: [EndpointAddress], _ logger: Logger) {
        for address in addresses where address.transport == .tcp {
            logger.warning(
                "listening on TCP without keys: every local user can connect, and read and change the whole library",
                metadata: ["address": "\(address)", "advice": "use ipc://, or --listen with keys"]
            )
        }
    }
}
