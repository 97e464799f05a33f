import CMetadata

extension MetadataReader {
    /// The version of the metadata library, for example "0.27.6".
    public static var libraryVersion: String {
        let number = Int(safelight_metadata_version())
        return "\(number >> 16).\(number >> 8 & 0xFF).\(number & 0xFF)"
    }
}
