public import Contracts
public import Logging

extension ServiceClient {
    /// Reports to the catalog that a worker crashed or hung while reading stored bytes.
    ///
    /// A failure to report is only logged: the bytes will be tried again, and the next failure will be reported.
    public func report(_ fault: ReportWorkerFault, logger: Logger) async {
        var metadata: Logger.Metadata = ["digest": "\(fault.digest)", "reason": "\(fault.reason)"]
        do {
            let result = try await ask(fault, deadline: .seconds(5)).result
            metadata["failures"] = "\(result.failures)"
            logger.warning(
                result.isSetAside ? "bytes quarantined after worker failures" : "worker failed while reading bytes",
                metadata: metadata
            )
        } catch {
            metadata["error"] = "\(error)"
            logger.warning("worker failure could not be reported to the catalog", metadata: metadata)
        }
    }
}
