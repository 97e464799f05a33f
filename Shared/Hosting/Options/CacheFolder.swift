/// The folder of cached files.
public enum CacheFolder {
    /// Returns the folder: `SAFELIGHT_CACHE`, else the user's folder of caches.
    ///
    /// - Parameter given: the value of the flag `--cache`; nil without one
    /// - Throws: ``HostingError/badSetting(source:reason:)``
    public static func resolve(
        _ given: String? = nil,
        environment: (String) -> String? = { Environment[$0] }
    ) throws(HostingError) -> String {
        if let cache = given ?? environment("SAFELIGHT_CACHE") { return cache }
        if let caches = environment("XDG_CACHE_HOME") { return caches + "/safelight" }
        guard let home = environment("HOME") else {
            throw .badSetting(source: "--cache", reason: "HOME is not set; name the cache folder")
        }
        return home + "/.cache/safelight"
    }
}
