public import Logging
public import Messaging

/// Warns where a service listens on TCP without keys.
public enum LoopbackWarning {
    /// Logs a warning for each address that is TCP; to be called for addresses without keys.
    public static func log(_ addresses: [EndpointAddress], _ logger: Logger) {
        for address in addresses where address.transport == .tcp {
            logger.warning(
                "listening on TCP without keys: every local user can connect, and read and change the whole library",
                metadata: ["address": "\(address)", "advice": "use ipc://, or --listen with keys"]
            )
        }
    }
}
