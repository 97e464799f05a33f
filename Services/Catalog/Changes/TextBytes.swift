import Metadata
import PhotoModel

/// Returns the size of the texts of an asset that may be large; a transaction keeps them in memory until its commit.
private func bytes(_ keywords: [String], _ caption: String?, _ metadata: AssetMetadata?) -> Int {
    var bytes = caption?.utf8.count ?? 0
    for keyword in keywords { bytes += keyword.utf8.count }
    guard let metadata else { return bytes }
    for keyword in metadata.hierarchicalKeywords { bytes += keyword.utf8.count }
    for person in metadata.persons { bytes += person.name.utf8.count }
    return bytes
}

extension Asset {
    /// The bytes of its keywords, people and caption: a change record with the asset is larger.
    var textBytes: Int { bytes(keywords, caption, metadata) }
}

extension ExtractedMetadata {
    /// The bytes of the keywords, people and caption.
    var textBytes: Int { bytes(keywords, caption, metadata) }
}

extension SidecarMetadata {
    /// The bytes of the keywords, people and caption.
    var textBytes: Int { bytes(keywords ?? [], caption, metadata) }
}
