import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient

/// What the service says about itself.
struct EditorState: Sendable {
    let catalog: ServiceClient
    let resources: ResourceFolder
    let workers: WorkerPool
    let figures: EditFigures

    let document = openRPCDocument(
        service: ServiceName.editor.rawValue,
        version: ServiceVersion.current,
        methods: EditorRequest.methods + EditorRequest.notifications
    )

    /// Healthy is who could apply an edit now.
    func health() async -> Health.Result {
        var problems: [String] = []
        var sequence: Int64 = 0
        do throws(RPCError) {
            let health = try await catalog.health(deadline: .seconds(2))
            sequence = health.sequence
            if !health.isHealthy { problems.append("the catalog is not healthy: ask it for its health") }
        } catch {
            problems.append("the catalog does not answer: \(error.message)")
        }
        do throws(RPCError) { try resources.check() } catch { problems.append(error.message) }
        let seats = workers.figures()
        if seats["workers"] == seats["backingOff"] { problems.append("no worker can be started; the log says why") }
        return Health.Result(
            service: ServiceName.editor.rawValue,
            version: ServiceVersion.current,
            isHealthy: problems.isEmpty,
            problems: problems,
            sequence: sequence
        )
    }
}
