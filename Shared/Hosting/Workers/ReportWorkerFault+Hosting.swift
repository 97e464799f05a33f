import JSONValue
public import Contracts

extension ReportWorkerFault {
    /// Creates the report that a service sends to the catalog about bytes that crash or hang its workers.
    public init(_ fault: ResourceJobRunner.WorkerFault, by service: ServiceName) {
        self.init(
            digest: fault.digest,
            name: fault.failure.rpcError.name,
            reason: String(fault.failure.message.prefix(200)),
            service: service.rawValue,
            failures: fault.failures
        )
    }
}
