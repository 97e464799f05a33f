import CMetadata

extension MetadataReader {
    /// The version of the metadata library, for example "0.14.0".
    public static var libraryVersion: String {
        let number = Int(safelight_metadata_version())
        return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
    }
}
