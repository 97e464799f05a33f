/// The versions of the C libraries that are too old or have known bugs.
enum LibraryVersions {
    /// Returns the finding about the version of a library.
    ///
    /// - Parameters:
    ///   - name: the library: libzmq, imagemagick, libheif, exiv2 or sqlite
    ///   - text: the version as the library reports it, for example "6.9.11-60"
    static func judge(_ name: String, _ text: String) -> Finding {
        let version = numbers(text)
        func isBelow(_ other: [Int]) -> Bool { version.lexicographicallyPrecedes(other) }
        guard !version.isEmpty else {
            return .warning(name, "its version is unknown", "check that it is installed as a package")
        }
        switch name {
        case "libzmq" where isBelow([4, 3, 3]):
            return .problem(name, "\(text) lets any peer crash a service (CVE-2020-15166)", "upgrade libzmq5 to 4.3.4")
        case "libzmq" where isBelow([4, 3, 4]):
            return .warning(name, "\(text) is older than what Safelight is tested with", "upgrade libzmq5 to 4.3.4")
        case "imagemagick" where isBelow([6, 9, 11]):
            return .problem(
                name,
                "\(text) is too old",
                "upgrade to Debian 12's libmagickwand-6, with its security updates"
            )
        case "libheif" where isBelow([1, 15]):
            return .problem(name, "\(text) is too old", "upgrade libheif1 to 1.15 or newer")
        case "libheif" where isBelow([1, 17]):
            return .warning(
                name,
                "\(text) cannot open photos from iOS 18 and later; they are refused with an error",
                "install libheif1 from Debian's bookworm-backports (1.19), then restart the services"
            )
        case "exiv2" where isBelow([0, 27]):
            return .problem(name, "\(text) is too old", "upgrade libexiv2-27 to 0.27.6")
        case "sqlite" where isBelow([3, 37]):
            return .problem(name, "\(text) is too old for the database", "upgrade libsqlite3-0 to 3.40 or newer")
        case "sqlite" where isBelow([3, 51, 3]):
            // The bug needs two connections that write or checkpoint; the catalog has only one.
            return .ok(name, "\(text); its WAL-reset bug cannot occur unless another program writes to the database")
        default: return .ok(name, text)
        }
    }

    /// Returns the numbers of a version: 6, 9, 11 and 60 for "6.9.11-60 Q16".
    static func numbers(_ text: String) -> [Int] {
        let start = text.prefix { $0.isNumber || $0 == "." || $0 == "-" }
        return start.split { !$0.isNumber }.compactMap { Int($0) }
    }
}
