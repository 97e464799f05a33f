public import Contracts
import Messaging

extension ReportHarm {
    /// What a service tells the catalog of harm.
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
