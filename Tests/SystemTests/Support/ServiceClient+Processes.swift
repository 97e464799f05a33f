import Contracts
import JSONValue
import PhotoClient

extension ServiceClient {
    /// Returns the process id of the service.
    func processIdentifier(deadline: Duration = .seconds(2)) async throws -> Int32? {
        try await ask(MetricsRequest(), deadline: deadline).result.members["process"]?["pid"]?.intValue.map {
            Int32($0)
        }
    }

    /// Returns the process ids of the service's workers.
    func workerIdentifiers() async throws -> [Int32] {
        let workers = try await metrics()["workers"]?["pids"]?.arrayValue ?? []
        return workers.compactMap(\.intValue).map { Int32($0) }
    }
}
