import Contracts
import Hosting
import JSONValue
import PhotoModel

/// Makes images ahead of time, at a lower priority than interactive requests.
struct ImagePreparer: Sendable {
    let source: AssetResolver
    let renditions: RenditionProvider
    let originals: OriginalFiles
    /// Interactive requests shall not wait for those of prefetches.
    private let downloads = FairSemaphore<Int>(permits: ImagePreparer.concurrentDownloads)

    /// The originals that are downloaded from remote storage at the same time.
    private static let concurrentDownloads = 2

    init(source: AssetResolver, renditions: RenditionProvider, originals: OriginalFiles) {
        self.source = source
        self.renditions = renditions
        self.originals = originals
    }

    /// Makes sure that images of an asset are cached, from one decode.
    ///
    /// - Parameter allowsHighQuality: false if images from cheap decodes are enough
    /// - Returns: the renditions; those that could not be made are missing
    /// - Throws: the reason why the catalog could not be asked
    func prepare(
        _ id: ObjectID,
        _ optionSets: [CachedImages],
        allowsHighQuality: Bool = true
    ) async throws(RPCError) -> [CachedImages: RenditionPlan] {
        let answer = try await source.assets([id], atLeast: nil)
        guard let asset = answer.assets[id] else { return [:] }
        var plans: [(options: CachedImages, plan: RenditionPlan, source: AssetResource)] = []
        for options in optionSets {
            guard let plan = try? RenditionPlan(options.request(id), of: asset),
                let source = try? RenditionPlan.resource(of: asset, version: options.version),
                answer.rpcError(of: plan, asset) == nil
            else { continue }
            plans.append((options, plan, source))
        }
        for entry in plans where renditions.cached(entry.plan, urgency: .prefetch) == nil {
            await makeLocal(entry.plan.digest, of: id, entry.options.isNetworkAccessAllowed)
        }
        var prepared: [CachedImages: RenditionPlan] = [:]
        if allowsHighQuality {
            let failures = await renditions.prepare(plans.map(\.plan))
            for (entry, failure) in zip(plans, failures) where failure == nil { prepared[entry.options] = entry.plan }
        } else {
            for entry in plans {
                if await renditions.degraded(entry.plan, of: entry.source) == nil {
                    _ = await renditions.fastDecode(entry.plan)
                }
                prepared[entry.options] = entry.plan
            }
        }
        return prepared
    }

    /// Makes sure that an original is on this machine. If that fails, so does the image.
    private func makeLocal(_ digest: String, of asset: ObjectID, _ isNetworkAccessAllowed: Bool) async {
        guard !originals.isHere(digest) else { return }
        _ = await downloads.withPermit(for: 0) {
            _ = try? await originals.require(digest, of: asset, isNetworkAccessAllowed: isNetworkAccessAllowed)
        }
    }
}
