import ArgumentParser
import Basics
import Contracts
import JSONValue
import PhotoClient
import SystemPackage

/// The flag of commands that need originals.
struct DownloadOptions: ParsableArguments {
    @Flag(help: "Download originals that are only in the object store. Without it, they are an error.")
    var download = false

    /// Returns the deadline of a request: nil if it may download, which can take any time.
    func deadline(_ limit: Duration) -> Duration? { download ? nil : limit }
}

// MARK: - Requests that may download

extension ServiceClient {
    /// Sends a request. If it may download originals, it has no deadline, and draws the progress of the download.
    func ask<R: Request>(
        _ request: R,
        deadline: Duration,
        _ downloads: DownloadOptions,
        _ output: Output
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        guard downloads.download else { return try await ask(request, deadline: deadline) }
        for try await event in stream(request, credit: 1 << 20) {
            switch event {
            case .notification(DownloadResource.notification, let params, _):
                if let fraction = params["progress"]?.doubleValue { output.showDownload(fraction) }
            case .notification: continue
            case .response(let response): return response
            }
        }
        throw ErrorCode.connectionLost.error("the connection was lost before the response")
    }
}

extension PhotoLibrary {
    /// Returns an image. If its original may be downloaded, there is no deadline, and the progress is drawn.
    func image(
        _ request: ImageRequest,
        _ downloads: DownloadOptions,
        _ output: Output
    ) async throws(RPCError) -> (result: ImageRequest.Result, bytes: Bytes) {
        try await image(request, deadline: downloads.deadline(.seconds(120)), progress: { output.showDownload($0) })
    }
}

extension Output {
    /// Draws the progress of a download on a terminal, and clears it at the end.
    func showDownload(_ fraction: Double) {
        guard showsProgress else { return }
        let text = fraction < 1 ? "downloading \(Int(100 * fraction)) %" : ""
        try? Output.write("\r\u{1B}[K\(text)", to: .standardError)
    }
}
