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
    /// Downloads of interactive requests must not wait for those of prefetches.
    private let downloads = FairSemaphore<Int>(permits: ImagePreparer.concurrentDownloads)

    /// The originals that are downloaded from remote storage at the same time.
    private static let concurrentDownloads = 2
    /// The attempts for images whose original is removed from this machine before they are made.
    private static let attempts = 3

    init(assets: AssetResolver, renditions: RenditionProvider, originals: OriginalFiles) {
        self.assets = assets
        self.renditions = renditions
        self.originals = originals
    }

    /// Makes sure that images of an asset are cached, from one decode.
    ///
    /// - Parameters:
    ///   - allowsHighQuality: false if images from quick decodes are enough
    ///   - onDisk: true if missing images are not requested again by a client. Then images that are only in memory
    ///     count as missing, and while a disk is full, or the library or the object store is unavailable, images are
    ///     postponed instead of failing.
    /// - Returns: the renditions; those that could not be made are missing
    /// - Throws: the reason why the catalog does not respond, or why images have to be made later
    func prepare(
        _ id: ObjectID,
        _ optionSets: [CachedImages],
        allowsHighQuality: Bool = true,
        onDisk: Bool = false
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
                for entry in plans { try await makeLocal(entry.plan, of: id, entry.options, onDisk: onDisk) }
                let failures = await renditions.prepare(plans.map(\.plan), onDisk: onDisk)
                for index in plans.indices where failures[index] == nil {
                    prepared[plans[index].options] = plans[index].plan
                }
                let passing = failures.compactMap { $0 }.first { $0.isTransient || onDisk && $0.isOfAbsence }
                if let passing { throw passing }
                // The originals of the others may have been removed meanwhile, because other files needed the space.
                let areAway = zip(plans, failures).contains { $1 != nil && !originals.isLocal($0.plan.digest) }
                guard areAway, !Task.isCancelled else { break }
            }
        } else {
            for entry in plans {
                guard try await makeLocal(entry.plan, of: id, entry.options, onDisk: onDisk) else { continue }
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
    /// - Returns: false if the image is not cached, and its original not on this machine
    /// - Throws: the reason why the catalog does not respond, or, with `onDisk`, why the image has to be made later
    @discardableResult
    private func makeLocal(
        _ plan: RenditionPlan,
        of asset: ObjectID,
        _ options: CachedImages,
        onDisk: Bool
    ) async throws(RPCError) -> Bool {
        guard !originals.isLocal(plan.digest), renditions.cached(plan, urgency: .prefetch) == nil else { return true }
        do throws(RPCError) {
            _ = try await downloads.withPermit(for: 0) { () async throws(RPCError) in
                let isAllowed = options.isNetworkAccessAllowed
                try await originals.require(plan.digest, of: asset, isNetworkAccessAllowed: isAllowed)
            }
        } catch {
            if error.isTransient || onDisk && error.isOfAbsence { throw error }
        }
        return originals.isLocal(plan.digest)
    }
}

extension RPCError {
    /// The problems of an object store that concern all of its objects: they pass, or end when the settings of the
    /// store are corrected.
    private static let storeAbsences: Set = [
        "unreachable", "store_busy", "access_denied", "untrusted_certificate", "clock_skew", "no_bucket",
        "invalid_settings",
    ]

    /// True if the library, the object store or disk space is unavailable, which concerns all images and not only this
    /// one.
    fileprivate var isOfAbsence: Bool {
        switch errorCode {
        case .notEnoughSpace, .libraryOffline, .libraryRelinquished, .librarySwitching: true
        case .networkError: Self.storeAbsences.contains(data["problem"]?.stringValue ?? "")
        default: false
        }
    }
}
