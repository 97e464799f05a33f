import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// Prepares images ahead of time, at a lower priority than interactive requests.
struct ImagePreparer: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let originals: OriginalFiles
    /// Limits the downloads, so that those of interactive requests do not wait for those of prefetches.
    private let downloads = FairSemaphore<Int>(permits: ImagePreparer.concurrentDownloads)

    /// The maximum number of originals that are downloaded from remote storage at the same time.
    private static let concurrentDownloads = 2
    /// The maximum number of attempts for images whose original is removed from this machine before they are rendered.
    private static let maxAttempts = 3

    init(assets: AssetResolver, renditions: RenditionProvider, originals: OriginalFiles) {
        self.assets = assets
        self.renditions = renditions
        self.originals = originals
    }

    /// Makes sure that images of an asset are cached, from one decode.
    ///
    /// - Parameters:
    ///   - allowsHighQuality: false if images from quick decodes are enough
    ///   - requiresDisk: true if no client will request missing images again. Then images that are only in memory count
    ///     as missing, and while a disk is full, or the library or the object store is unavailable, images are
    ///     postponed instead of failing.
    /// - Returns: the renditions; those that could not be made are missing
    /// - Throws: the error of a catalog that does not respond, or the reason why images have to be prepared later
    func prepare(
        _ id: ObjectID,
        _ optionSets: [CachedImages],
        allowsHighQuality: Bool = true,
        requiresDisk: Bool = false
    ) async throws(RPCError) -> [CachedImages: RenditionPlan] {
        let found = try await assets.resolve([id], atLeast: nil)
        guard let asset = found.assets[id] else { return [:] }
        var plans: [(options: CachedImages, plan: RenditionPlan, source: AssetResource)] = []
        for options in optionSets {
            guard let plan = try? RenditionPlan(options.request(id), of: asset),
                let source = try? RenditionPlan.resource(of: asset, version: options.version),
                found.rpcError(of: plan, asset) == nil
            else { continue }
            plans.append((options, plan, source))
        }
        var prepared: [CachedImages: RenditionPlan] = [:]
        if allowsHighQuality {
            for _ in 0..<Self.maxAttempts {
                for entry in plans {
                    try await makeLocal(entry.plan, of: id, entry.options, requiresDisk: requiresDisk)
                }
                let failures = await renditions.prepare(plans.map(\.plan), requiresDisk: requiresDisk)
                for index in plans.indices where failures[index] == nil {
                    prepared[plans[index].options] = plans[index].plan
                }
                let temporary = failures.compactMap { $0 }.first { error in
                    error.isTransient || requiresDisk && error.concernsAllImages
                }
                if let temporary { throw temporary }
                // The originals of failed images may have been removed meanwhile, because other files needed the space.
                let wereRemoved = zip(plans, failures).contains { $1 != nil && !originals.isLocal($0.plan.digest) }
                guard wereRemoved, !Task.isCancelled else { break }
            }
        } else {
            for entry in plans {
                guard try await makeLocal(entry.plan, of: id, entry.options, requiresDisk: requiresDisk) else {
                    continue
                }
                if await renditions.degraded(entry.plan, of: entry.source, urgency: .prefetch) == nil {
                    _ = await renditions.quickDecode(entry.plan, urgency: .prefetch)
                }
                prepared[entry.options] = entry.plan
            }
        }
        return prepared
    }

    /// Makes sure that the original of an image that is not cached is on this machine. If it cannot be downloaded, the
    /// image fails.
    ///
    /// - Returns: false if the image is not cached and its original is not on this machine
    /// - Throws: the error of a catalog that does not respond, or, with `requiresDisk`, the reason why the image has to
    ///   be prepared later
    @discardableResult
    private func makeLocal(
        _ plan: RenditionPlan,
        of asset: ObjectID,
        _ options: CachedImages,
        requiresDisk: Bool
    ) async throws(RPCError) -> Bool {
        guard !originals.isLocal(plan.digest), renditions.cached(plan, urgency: .prefetch) == nil else { return true }
        do throws(RPCError) {
            _ = try await downloads.withPermit(for: 0) { () async throws(RPCError) in
                let isAllowed = options.isNetworkAccessAllowed
                try await originals.require(plan.digest, of: asset, isNetworkAccessAllowed: isAllowed)
            }
        } catch {
            if error.isTransient || requiresDisk && error.concernsAllImages { throw error }
        }
        return originals.isLocal(plan.digest)
    }
}

extension RPCError {
    /// The problems that concern all objects of an object store. They are temporary, or end when the settings of the
    /// store are corrected.
    private static let storeOutages: Set = [
        "unreachable", "store_busy", "access_denied", "untrusted_certificate", "clock_skew", "no_bucket",
        "invalid_settings",
    ]

    /// True if the library, the object store or disk space is unavailable, which concerns all images.
    fileprivate var concernsAllImages: Bool {
        switch errorCode {
        case .notEnoughSpace, .libraryOffline, .libraryRelinquished, .librarySwitching: true
        case .networkError: Self.storeOutages.contains(data["problem"]?.stringValue ?? "")
        default: false
        }
    }
}
