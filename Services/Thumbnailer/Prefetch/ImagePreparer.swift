import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// Makes images ahead of time, at a lower priority than interactive requests.
struct ImagePreparer: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let originals: OriginalFiles
    /// Interactive requests shall not wait for those of prefetches.
    private let downloads = FairSemaphore<Int>(permits: ImagePreparer.concurrentDownloads)

    /// The originals that are downloaded from remote storage at the same time.
    private static let concurrentDownloads = 2
    /// The attempts for images whose original is given up again before they are made.
    private static let attempts = 3

    init(assets: AssetResolver, renditions: RenditionProvider, originals: OriginalFiles) {
        self.assets = assets
        self.renditions = renditions
        self.originals = originals
    }

    /// Makes sure that images of an asset are cached, from one decode.
    ///
    /// - Parameter allowsHighQuality: false if images from quick decodes are enough
    /// - Returns: the renditions; those that could not be made are missing
    /// - Throws: the reason why the catalog could not be asked, or no image can be made now
    func prepare(
        _ id: ObjectID,
        _ optionSets: [CachedImages],
        allowsHighQuality: Bool = true
    ) async throws(RPCError) -> [CachedImages: RenditionPlan] {
        let answer = try await assets.resolve([id], atLeast: nil)
        guard let asset = answer.assets[id] else { return [:] }
        var plans: [(options: CachedImages, plan: RenditionPlan, source: AssetResource)] = []
        for options in optionSets {
            guard let plan = try? RenditionPlan(options.request(id), of: asset),
                let source = try? RenditionPlan.resource(of: asset, version: options.version),
                answer.rpcError(of: plan, asset) == nil
            else { continue }
            plans.append((options, plan, source))
        }
        var prepared: [CachedImages: RenditionPlan] = [:]
        if allowsHighQuality {
            for _ in 0..<Self.attempts {
                for entry in plans { try await makeLocal(entry.plan, of: id, entry.options) }
                let failures = await renditions.prepare(plans.map(\.plan))
                for index in plans.indices where failures[index] == nil {
                    prepared[plans[index].options] = plans[index].plan
                }
                if let error = failures.compactMap({ $0 }).first(where: \.isOfLoad) { throw error }
                // Of the others the original may have been given up meanwhile, because other files needed its space.
                let areAway = zip(plans, failures).contains { $1 != nil && !originals.isHere($0.plan.digest) }
                guard areAway, !Task.isCancelled else { break }
            }
        } else {
            for entry in plans {
                try await makeLocal(entry.plan, of: id, entry.options)
                if await renditions.degraded(entry.plan, of: entry.source, urgency: .prefetch) == nil {
                    _ = await renditions.quickDecode(entry.plan, urgency: .prefetch)
                }
                prepared[entry.options] = entry.plan
            }
        }
        return prepared
    }

    /// Makes sure that the original of an image that is not cached is on this machine. If it cannot be downloaded, the image
    /// fails.
    ///
    /// - Throws: the reason why the catalog could not be asked
    private func makeLocal(
        _ plan: RenditionPlan,
        of asset: ObjectID,
        _ options: CachedImages
    ) async throws(RPCError) {
        guard !originals.isHere(plan.digest), renditions.cached(plan, urgency: .prefetch) == nil else { return }
        do throws(RPCError) {
            _ = try await downloads.withPermit(for: 0) { () async throws(RPCError) in
                let isAllowed = options.isNetworkAccessAllowed
                try await originals.require(plan.digest, of: asset, isNetworkAccessAllowed: isAllowed)
            }
        } catch {
            if error.isTransient { throw error }
        }
    }
}

extension RPCError {
    /// The service makes no images now: its queue is full, or no worker can be started.
    fileprivate var isOfLoad: Bool { errorCode == .busy || errorCode == .unavailable }
}
