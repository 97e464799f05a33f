import Contracts
import PhotoModel

extension ChangeTransaction {
    /// Remembers the digest of a new asset's image data, and which other assets have the same.
    mutating func addImage(_ digest: [UInt8], of id: ObjectID, _ ref: String?) throws {
        defer { imageDigests.append(ImageDigest(asset: id, bytes: digest)) }
        guard reportsSameImage else { return }
        let limit = PerformChanges.SameImage.maxAssets
        let new = imageDigests.lazy.filter { $0.bytes == digest }.map(\.asset)
        let others = try state.assets(withImage: digest, limit: limit).filter { try asset($0) != nil } + new
        guard !others.isEmpty else { return }
        let found = PerformChanges.SameImage(request: requestIndex, ref: ref, assets: Array(others.prefix(limit)))
        sameImage.append(found)
    }
}
