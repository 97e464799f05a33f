import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Handles requests for contact sheets.
struct ContactSheetService: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let originals: OriginalFiles
    /// The maximum size of an attachment, in bytes.
    let maxAttachmentBytes: Int

    /// Handles `image.sheet`. An asset without an image gets a grey cell with the name of the error, and the response
    /// contains the reason.
    ///
    /// - Parameters:
    ///   - limitedClient: the client if it does not see the whole library, else nil
    ///   - unseen: assets that the client does not see; they are treated as missing
    func sheet(
        _ request: ImageSheet,
        for limitedClient: String?,
        without unseen: Set<ObjectID>
    ) async throws(RPCError) -> Reply {
        try ContactSheetPlan.check(request)
        let found = try await assets.resolve(
            unseen.isEmpty ? request.assets : request.assets.filter { !unseen.contains($0) },
            atLeast: request.atLeast
        )
        let images = try await images(for: request, found, limitedClient)
        var failed = JSONObject()
        for (id, outcome) in zip(request.assets, images) {
            if case .failure(let error) = outcome {
                failed[id.text] = ["name": .string(error.name), "message": .string(error.message)]
            }
        }
        let labels =
            request.labels.isEmpty
            ? request.assets.map { found.assets[$0]?.filename ?? $0.text } : request.labels
        let sheet = try await renditions.sheet(
            images.map { try? $0.get() },
            ContactSheetPlan(
                columns: request.columns,
                cell: request.cell,
                layout: request.layout,
                labels: labels,
                lengths: images.map { (try? $0.get().bytes.count) ?? 0 },
                problems: images.map { outcome in
                    if case .failure(let error) = outcome { error.name.replacing("_", with: " ") } else { "" }
                }
            )
        )
        guard sheet.bytes.count <= maxAttachmentBytes else {
            throw .sheetTooLarge(bytes: sheet.bytes.count, limit: maxAttachmentBytes)
        }
        let result = ImageSheet.Result(
            mimeType: sheet.mimeType,
            pixelWidth: sheet.pixelWidth,
            pixelHeight: sheet.pixelHeight,
            sequence: found.sequence,
            failed: failed
        )
        return Reply(result.json, attachments: [sheet.bytes])
    }

    /// The maximum number of images of one sheet that are requested at a time: enough to keep the workers busy, and a
    /// small part of the queue that all requests share.
    private static let maxConcurrentImages = 8

    /// Returns the image of each cell, or the error that prevented it.
    private func images(
        for request: ImageSheet,
        _ found: AssetResolver.ResolvedAssets,
        _ limitedClient: String?
    ) async throws(RPCError) -> [Result<EncodedRendition, RPCError>] {
        typealias Outcome = (index: Int, result: Result<EncodedRendition, RPCError>)
        let ids = request.assets
        let (outcomes, refusal) = await withTaskGroup(of: Outcome.self) { group in
            var outcomes = [Result<EncodedRendition, RPCError>?](repeating: nil, count: ids.count)
            var next = 0
            var refusal: RPCError?
            func begin() {
                guard next < ids.count else { return }
                let index = next
                next += 1
                group.addTask { (index, await image(of: ids[index], found, in: request, for: limitedClient)) }
            }
            for _ in 0..<Self.maxConcurrentImages { begin() }
            for await outcome in group {
                outcomes[outcome.index] = outcome.result
                if case .failure(let error) = outcome.result, error.concernsService {
                    // The errors after the first one are those of cancelled images.
                    refusal = refusal ?? error
                    group.cancelAll()
                } else {
                    begin()
                }
            }
            return (outcomes.compactMap { $0 }, refusal)
        }
        // A sheet with grey cells because the service was busy would be misleading.
        if let refusal { throw refusal }
        return outcomes
    }

    private func image(
        of id: ObjectID,
        _ found: AssetResolver.ResolvedAssets,
        in sheet: ImageSheet,
        for limitedClient: String?
    ) async -> Result<EncodedRendition, RPCError> {
        do throws(RPCError) {
            let asset = try ImageRequestService.asset(id, of: found)
            let plan = try RenditionPlan(ContactSheetPlan.image(id, in: sheet), of: asset, for: limitedClient)
            if let cached = renditions.cached(plan) { return .success(cached.rendition) }
            if let refusal = found.rpcError(of: plan, asset) { throw refusal }
            let provided = try await renditions.rendered(
                plan,
                from: originals,
                of: id,
                isNetworkAccessAllowed: sheet.isNetworkAccessAllowed
            )
            return .success(provided.rendition)
        } catch {
            return .failure(error)
        }
    }
}
