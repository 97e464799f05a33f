public import Contracts
import Messaging

extension ReportHarm {
    /// Creates the report that a service sends to the catalog about bytes that crash or hang its workers.
    public init(_ harm: ResourceWork.Harm, by service: ServiceName) {
        self.init(
            digest: harm.digest,
            name: harm.failure.refusal.name,
            reason: String(harm.failure.message.prefix(200)),
            service: service.rawValue,
            failures: harm.failures
        )
    }
}
