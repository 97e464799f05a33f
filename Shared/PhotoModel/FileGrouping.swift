/// Which files of a folder belong to one asset, and which of those pairs are true ones.
///
/// All rules stand here. The first half needs names alone and is what an import does with a folder; the second needs
/// what the files say about themselves and is what the catalog asks before it makes one asset of several files.
///
/// 1. Files of one folder belong together by their stem: the name before its last dot, byte for byte; endings are
///    compared without case.
/// 2. One still (JPEG, HEIC, AVIF) and one raw file of a stem are a picture and its `alternatePhoto`. The pair is true
///    where both say when they were taken and these are at most a second apart, or one does not say.
/// 3. One still and one film (MOV, MP4) of a stem are a Live Photo: the film is the `pairedVideo`. The pair is true where
///    both have Apple's content identifier and it is the same; where one has none, where the film has six seconds at
///    most; never where both have one and they differ.
/// 4. Where a stem has several stills, raw files or films, nothing is paired: each is an asset of its own.
/// 5. `NAME.EXT.xmp` is the sidecar of `NAME.EXT`; `STEM.xmp` that of every asset of the stem that has none of its own.
/// 6. A burst is frames with the same burst identifier in Apple's maker note. Other cameras name none, and names and
///    times alone do not make a burst.
public enum FileGrouping {
    /// Files that are taken in as one asset, by their names.
    public struct Group: Sendable, Hashable {
        public var main: String
        public var alternate: String?
        public var pairedVideo: String?
        public var sidecar: String?

        public init(main: String, alternate: String? = nil, pairedVideo: String? = nil, sidecar: String? = nil) {
            self.main = main
            self.alternate = alternate
            self.pairedVideo = pairedVideo
            self.sidecar = sidecar
        }
    }

    public static let stills: Set<String> = ["jpg", "jpeg", "jpe", "heic", "heif", "hif", "avif", "jxl"]
    public static let raws: Set<String> = [
        "dng", "cr2", "cr3", "nef", "nrw", "arw", "sr2", "srf", "raf", "orf", "rw2", "pef", "srw", "3fr", "iiq", "erf",
    ]
    public static let films: Set<String> = ["mov", "mp4"]
    static let sidecars: Set<String> = ["xmp"]

    /// The longest film of a Live Photo that is paired by its name alone, in microseconds.
    public static let longestUnnamedLive: Int64 = 6_000_000
    /// How far apart a picture and its raw file may say that they were taken, in microseconds.
    public static let longestRawDistance: Int64 = 1_000_000

    /// The stem and the ending of a name, the latter in small letters; no ending where there is no dot inside.
    public static func parts(_ name: String) -> (stem: String, ending: String) {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return (name, "") }
        return (String(name[..<dot]), name[name.index(after: dot)...].lowercased())
    }

    /// The groups of a folder's names, in the order of their main files' places; sidecars are in no group of their own.
    public static func groups(_ names: [String]) -> [Group] {
        var stems: [String: [String]] = [:]
        var sidecars: [String: String] = [:]
        for name in names {
            let (stem, ending) = parts(name)
            if Self.sidecars.contains(ending) {
                if sidecars[stem] == nil { sidecars[stem] = name }
            } else {
                stems[stem, default: []].append(name)
            }
        }
        var taken: Set<String> = []
        var groups: [Group] = []
        for name in names {
            let (stem, ending) = parts(name)
            guard !Self.sidecars.contains(ending), !taken.contains(name) else { continue }
            var group = Group(main: name)
            let files = stems[stem] ?? []
            func only(_ endings: Set<String>) -> String? {
                let found = files.filter { endings.contains(parts($0).ending) }
                return found.count == 1 ? found[0] : nil
            }
            if let still = only(stills) {
                let (raw, film) = (only(raws), only(films))
                // A raw file or a film that belongs to a still is named with that.
                if name != still, name == raw || name == film { continue }
                if name == still {
                    group.alternate = raw
                    group.pairedVideo = film
                }
            }
            group.sidecar = sidecars[name] ?? sidecars[stem]
            taken.insert(name)
            groups.append(group)
        }
        return groups
    }

    /// Whether a raw file is of the same moment as the picture beside it (rule 2); dates in microseconds.
    public static func isSameShot(_ photo: Int64?, _ raw: Int64?) -> Bool {
        guard let photo, let raw else { return true }
        let (distance, overflow) = photo.subtractingReportingOverflow(raw)
        return !overflow && distance.magnitude <= UInt64(longestRawDistance)
    }

    /// Whether a still and a film are a Live Photo (rule 3); the duration in microseconds.
    public static func isLivePhoto(_ still: String?, film: String?, duration: Int64) -> Bool {
        if let still, let film { return still == film }
        return duration <= longestUnnamedLive
    }
}
