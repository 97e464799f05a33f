import ArgumentParser
import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Subprocess
import SystemPackage

extension ServiceClient {
    /// Sends a long-running request and draws its progress; Ctrl-C cancels it.
    func following<R: Request>(_ request: R, output: Output) async throws -> R.Result {
        var answer: R.Result?
        for try await event in stream(request, credit: 1 << 16) {
            switch event {
            case .notification(_, let params, _):
                guard output.showsProgress, let done = params["done"]?.intValue, let total = params["total"]?.intValue
                else { continue }
                try? Output.write("\r\u{1B}[K\(done)/\(total)", to: .standardError)
            case .answer(let reply): answer = reply.result
            }
        }
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
        guard let answer else {
            throw CommandFailure(
                message: "the connection to the catalog was lost before the operation was complete",
                name: "connection_lost"
            )
        }
        return answer
    }
}
