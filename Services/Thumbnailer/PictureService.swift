import Contracts
import Imaging
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Answers for pictures: looks the asset up, then has the picture made or finds it.
struct PictureService: Sendable {
    /// Asks the catalog for assets; the page names those that are missing.
    typealias Lookup =
        @Sendable (_ ids: [ObjectID], _ atLeast: ChangeToken?) async throws(RPCError) -> FetchAssets.Result

    let lookup: Lookup
    let desk: PictureDesk
    /// Bytes that one attachment may have.
    let largestAttachment: Int

    /// Existence and revision come first, whatever is in the caches: what was deleted or edited is never served.
    func image(_ request: ImageRequest) async throws(RPCError) -> Reply {
        try RenditionPlan.check(request)
        try Self.check(request.format)
        let page = try await lookup([request.asset], request.atLeast)
        let asset = try Self.asset(request.asset, of: page)
        let plan = try RenditionPlan(request, of: asset)
        let delivery = try await desk.picture(plan, refusal: Self.refusal(plan, asset, page))
        let rendition = delivery.rendition
        try check(rendition, advice: "ask for a smaller size, for JPEG or for less quality")
        let result = ImageRequest.Result(
            asset: asset.id,
            contentRevision: asset.contentRevision,
            sequence: page.sequence,
            mimeType: rendition.mimeType,
            pixelWidth: rendition.pixelWidth,
            pixelHeight: rendition.pixelHeight,
            isUpscaled: rendition.isUpscaled,
            isCacheHit: delivery.isCacheHit
        )
        return Reply(result.json, attachments: [rendition.bytes])
    }

    /// A sheet shows what can be shown; what cannot is a grey field, and the answer says why.
    func sheet(_ request: ImageSheet) async throws(RPCError) -> Reply {
        try SheetPlan.check(request)
        let page = try await lookup(request.assets, request.atLeast)
        let assets = Dictionary(page.assets.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let pictures = try await pictures(for: request, assets, page)
        var failed = JSONObject()
        for (id, outcome) in zip(request.assets, pictures) {
            if case .failure(let error) = outcome {
                failed[id.text] = ["name": .string(error.name), "message": .string(error.message)]
            }
        }
        let labels =
            request.labels.isEmpty
            ? request.assets.map { assets[$0]?.originalFilename ?? $0.text } : request.labels
        let sheet = try await desk.sheet(
            pictures.map { try? $0.get() },
            columns: request.columns,
            cell: request.cell,
            labels: labels
        )
        try check(sheet, advice: "make the cells smaller or ask for several sheets")
        let result = ImageSheet.Result(
            mimeType: sheet.mimeType,
            pixelWidth: sheet.pixelWidth,
            pixelHeight: sheet.pixelHeight,
            sequence: page.sequence,
            failed: failed
        )
        return Reply(result.json, attachments: [sheet.bytes])
    }

    /// How many pictures of one sheet are asked for at a time: enough to keep the workers busy, and a small part of
    /// the queue that all requests share.
    private static let sheetWidth = 8

    /// The picture of each cell, or why there is none.
    private func pictures(
        for request: ImageSheet,
        _ assets: [ObjectID: Asset],
        _ page: FetchAssets.Result
    ) async throws(RPCError) -> [Result<StoredRendition, RPCError>] {
        typealias Outcome = (index: Int, result: Result<StoredRendition, RPCError>)
        let ids = request.assets
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            var outcomes = [Result<StoredRendition, RPCError>?](repeating: nil, count: ids.count)
            var next = 0
            func begin() {
                guard next < ids.count else { return }
                let index = next
                next += 1
                group.addTask { (index, await picture(of: ids[index], assets[ids[index]], page, in: request)) }
            }
            for _ in 0..<Self.sheetWidth { begin() }
            for await outcome in group {
                outcomes[outcome.index] = outcome.result
                if case .failure(let error) = outcome.result, error.isOfTheService {
                    group.cancelAll()
                } else {
                    begin()
                }
            }
            return outcomes.compactMap { $0 }
        }
        // A sheet full of grey because the service was busy would be a lie.
        for outcome in outcomes {
            if case .failure(let error) = outcome, error.isOfTheService { throw error }
        }
        return outcomes
    }

    private func picture(
        of id: ObjectID,
        _ asset: Asset?,
        _ page: FetchAssets.Result,
        in sheet: ImageSheet
    ) async -> Result<StoredRendition, RPCError> {
        do throws(RPCError) {
            guard let asset else { throw Self.notFound(id) }
            let plan = try RenditionPlan(SheetPlan.image(id, in: sheet), of: asset)
            return .success(try await desk.picture(plan, refusal: Self.refusal(plan, asset, page)).rendition)
        } catch {
            return .failure(error)
        }
    }

    private func check(_ rendition: StoredRendition, advice: String) throws(RPCError) {
        guard rendition.bytes.count <= largestAttachment else {
            throw Refusal.limitExceeded.error(
                "the picture has \(rendition.bytes.count) bytes and an answer carries \(largestAttachment); \(advice)",
                ["limit": JSON(largestAttachment), "bytes": JSON(rendition.bytes.count)]
            )
        }
    }

    private static func refusal(_ plan: RenditionPlan, _ asset: Asset, _ page: FetchAssets.Result) -> RPCError? {
        page.quarantine(of: plan.digest)?.refusal(of: asset.originalFilename ?? asset.id.text)
    }

    private static func asset(_ id: ObjectID, of page: FetchAssets.Result) throws(RPCError) -> Asset {
        guard let asset = page.assets.first(where: { $0.id == id }) else { throw notFound(id) }
        return asset
    }

    private static func notFound(_ id: ObjectID) -> RPCError {
        Refusal.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
    }

    /// Refused before anything is done where the build cannot write the format.
    private static func check(_ format: DeliveredFormat) throws(RPCError) {
        let offered = DeliveredFormat.allCases.filter { ImageFormat(rawValue: $0.rawValue)?.canEncode == true }
        guard offered.contains(format) else {
            throw Refusal.unsupportedFormat.error(
                "\(format.rawValue) cannot be written here; ask for \(offered.map(\.rawValue).joined(separator: ", "))",
                ["formats": JSON(offered.map(\.rawValue))]
            )
        }
    }
}

extension RPCError {
    /// It says something about the service and nothing about the asset.
    var isOfTheService: Bool {
        switch refusal {
        case .busy, .unavailable, .userCancelled, .deadlineExceeded, .interrupted, .connectionLost: true
        default: false
        }
    }
}
