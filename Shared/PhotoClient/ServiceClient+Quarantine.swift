public import Contracts
public import Logging

extension ServiceClient {
    /// Tells the catalog that a worker came to harm over stored bytes.
    ///
    /// That it cannot be told is logged and no more: the bytes are tried again, and will do harm again.
    public func tell(_ harm: ReportHarm, logger: Logger) async {
        var metadata: Logger.Metadata = ["digest": "\(harm.digest)", "reason": "\(harm.reason)"]
        do {
            let result = try await ask(harm, deadline: .seconds(5)).result
            metadata["failures"] = "\(result.failures)"
            logger.warning(
                result.isSetAside ? "bytes are set aside: they did harm" : "bytes did harm to a worker",
                metadata: metadata
            )
        } catch {
            metadata["error"] = "\(error)"
            logger.warning("the catalog could not be told of bytes that did harm", metadata: metadata)
        }
    }
}
