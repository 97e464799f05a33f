import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Handles requests for contact sheets.
struct ContactSheetService: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let originals: OriginalFiles
    /// The most bytes of one attachment.
    let largestAttachment: Int

    /// Handles `image.sheet`. Assets without an image get a grey cell with the name of the error, and the response says
    /// why.
    ///
    /// - Parameters:
    ///   - limitedClient: the client, if it does not see the whole library
    ///   - unseen: assets that the client does not see; to it they do not exist
    func sheet(
        _ request: ImageSheet,
        for limitedClient: String?,
        without unseen: Set<ObjectID>
    ) async throws(RPCError) -> Reply {
        try ContactSheetPlan.check(request)
        let page = try await assets.resolve(
            unseen.isEmpty ? request.assets : request.assets.filter { !unseen.contains($0) },
            atLeast: request.atLeast
        )
        let images = try await images(for: request, page, limitedClient)
        var failed = JSONObject()
        for (id, outcome) in zip(request.assets, images) {
            if case .failure(let error) = outcome {
                failed[id.text] = ["name": .string(error.name), "message": .string(error.message)]
            }
        }
        let labels =
            request.labels.isEmpty
            ? request.assets.map { page.assets[$0]?.filename ?? $0.text } : request.labels
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
        guard sheet.bytes.count <= largestAttachment else {
            throw .sheetTooLarge(bytes: sheet.bytes.count, limit: largestAttachment)
        }
        let result = ImageSheet.Result(
            mimeType: sheet.mimeType,
            pixelWidth: sheet.pixelWidth,
            pixelHeight: sheet.pixelHeight,
            sequence: page.sequence,
            failed: failed
        )
        return Reply(result.json, attachments: [sheet.bytes])
    }

    /// The most images of one sheet requested at a time: enough to keep the workers busy, and a small part of the queue
    /// that all requests share.
    private static let sheetWidth = 8

    /// Returns the image of each cell, or the error that prevented it.
    private func images(
        for request: ImageSheet,
        _ answer: AssetResolver.ResolvedAssets,
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
                group.addTask { (index, await picture(of: ids[index], answer, in: request, for: limitedClient)) }
            }
            for _ in 0..<Self.sheetWidth { begin() }
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

    private func picture(
        of id: ObjectID,
        _ answer: AssetResolver.ResolvedAssets,
        in sheet: ImageSheet,
        for limitedClient: String?
    ) async -> Result<EncodedRendition, RPCError> {
        do throws(RPCError) {
            let asset = try ImageRequestService.asset(id, of: answer)
            let plan = try RenditionPlan(ContactSheetPlan.image(id, in: sheet), of: asset, for: limitedClient)
            if let cached = renditions.cached(plan) { return .success(cached.rendition) }
            if let refusal = answer.rpcError(of: plan, asset) { throw refusal }
            let made = try await renditions.rendered(
                plan,
                from: originals,
                of: id,
                isNetworkAccessAllowed: sheet.isNetworkAccessAllowed
            )
            return .success(made.rendition)
        } catch {
            return .failure(error)
        }
    }
}
