/// The rules that decide which files of a folder belong to one asset.
///
/// The rules on names are applied by an import to a folder. The rules on content need the files' metadata and are
/// applied by the catalog before it creates one asset from several files.
///
/// 1. Files of one folder belong together if they have the same stem: the name before its last dot, byte for byte.
///    Extensions are compared case-insensitively.
/// 2. One still (JPEG, HEIC, AVIF, JPEG XL) and one raw file of a stem are an image and its `alternatePhoto`. The pair
///    is confirmed if both have a capture time and the times are at most a second apart, or if one has none. If a
///    file does not contain the time zone, local times are compared. The time of the last change is no capture time.
/// 3. One still and one video (MOV, MP4) of a stem are a Live Photo: the video is the `pairedVideo`. The pair is
///    confirmed if both have the same Apple content identifier, or if at least one has none and the video lasts at most
///    six seconds; never if both have one and they differ.
/// 4. If a stem has several stills, nothing is paired; if it has several raw files or several videos, none of these is.
///    Files that are not paired become assets of their own.
/// 5. `NAME.EXT.xmp` is the sidecar of `NAME.EXT`; `STEM.xmp` is the sidecar of every file of the stem that has none
///    of its own. An asset of several files has the sidecar of its still, else that of its raw file, else that of its
///    video.
/// 6. A burst consists of frames with the same burst identifier in Apple's maker note. Other cameras write none, and
///    names and times alone do not make a burst.
public enum FileGrouping {
    /// File names that are imported as one asset.
    public struct Group: Sendable, Hashable {
        /// The still, or the only file.
        public var main: String
        /// The raw file of the still.
        public var alternate: String?
        /// The video of a Live Photo.
        public var pairedVideo: String?
        /// The XMP file.
        public var sidecar: String?

        public init(main: String, alternate: String? = nil, pairedVideo: String? = nil, sidecar: String? = nil) {
            self.main = main
            self.alternate = alternate
            self.pairedVideo = pairedVideo
            self.sidecar = sidecar
        }
    }

    /// The extensions of stills that can be paired.
    public static let stillExtensions: Set<String> = ["jpg", "jpeg", "jpe", "heic", "heif", "hif", "avif", "jxl"]
    /// The extensions of raw files.
    public static let rawExtensions: Set<String> = [
        "dng", "cr2", "cr3", "nef", "nrw", "arw", "sr2", "srf", "raf", "orf", "rw2", "pef", "srw", "3fr", "iiq", "erf",
    ]
    /// The extensions of videos that can be paired.
    public static let videoExtensions: Set<String> = ["mov", "mp4"]
    static let sidecarExtensions: Set<String> = ["xmp"]

    /// The maximum duration, in microseconds, of a video that is paired as a Live Photo by its name alone.
    public static let maxDurationByName: Int64 = 6_000_000
    /// The maximum difference between the capture times of an image and its raw file, in microseconds.
    public static let maxRawTimeDifference: Int64 = 1_000_000

    /// Returns the stem and the extension of a name, the latter in lower case and empty if the name has no dot inside.
    public static func parts(_ name: String) -> (stem: String, fileExtension: String) {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return (name, "") }
        return (String(name[..<dot]), name[name.index(after: dot)...].lowercased())
    }

    /// The sidecars among the names of a folder.
    public struct Sidecars: Sendable {
        /// The names by their bytes without the extension: equal texts can have different bytes, such as the two forms
        /// of "é".
        private var names: [[UInt8]: String] = [:]

        public init(among names: [String]) {
            for name in names {
                let (stem, fileExtension) = FileGrouping.parts(name)
                guard FileGrouping.sidecarExtensions.contains(fileExtension), self.names[Array(stem.utf8)] == nil else {
                    continue
                }
                self.names[Array(stem.utf8)] = name
            }
        }

        /// Returns the sidecar of a file as an asset of its own: that of its name, else that of its stem.
        public func sidecar(of name: String) -> String? {
            names[Array(name.utf8)] ?? names[Array(FileGrouping.parts(name).stem.utf8)]
        }

        /// Returns the sidecar of an asset: that of the first of its files that has one.
        func sidecar(of files: [String?]) -> String? {
            files.lazy.compactMap { $0 }.compactMap { sidecar(of: $0) }.first
        }
    }

    /// Returns the groups of a folder, in the order of their main files in `names`. Sidecars form no group of their
    /// own.
    public static func groups(_ names: [String]) -> [Group] {
        // The keys are bytes, because equal texts can have different bytes.
        var stems: [[UInt8]: [String]] = [:]
        let sidecars = Sidecars(among: names)
        for name in names {
            let (stem, fileExtension) = parts(name)
            guard !sidecarExtensions.contains(fileExtension) else { continue }
            stems[Array(stem.utf8), default: []].append(name)
        }
        var grouped: Set<[UInt8]> = []
        var groups: [Group] = []
        for name in names {
            let (stem, fileExtension) = parts(name)
            let (bytes, stemBytes) = (Array(name.utf8), Array(stem.utf8))
            guard !sidecarExtensions.contains(fileExtension), !grouped.contains(bytes) else { continue }
            var group = Group(main: name)
            let files = stems[stemBytes] ?? []
            func onlyFile(_ extensions: Set<String>) -> String? {
                let found = files.filter { extensions.contains(parts($0).fileExtension) }
                return found.count == 1 ? found[0] : nil
            }
            if let still = onlyFile(stillExtensions) {
                let (raw, video) = (onlyFile(rawExtensions), onlyFile(videoExtensions))
                // A raw file or a video that belongs to a still is part of the still's group.
                if name != still, name == raw || name == video { continue }
                if name == still {
                    group.alternate = raw
                    group.pairedVideo = video
                }
            }
            group.sidecar = sidecars.sidecar(of: [name, group.alternate, group.pairedVideo])
            grouped.insert(bytes)
            groups.append(group)
        }
        return groups
    }

    /// Returns true if the capture times of an image and a raw file agree (rule 2); times in microseconds.
    public static func isSameShot(_ photo: Int64?, _ raw: Int64?) -> Bool {
        guard let photo, let raw else { return true }
        let (distance, overflow) = photo.subtractingReportingOverflow(raw)
        return !overflow && distance.magnitude <= UInt64(maxRawTimeDifference)
    }

    /// Returns true if a still and a video are a Live Photo (rule 3); the duration in microseconds.
    public static func isLivePhoto(_ still: String?, video: String?, duration: Int64) -> Bool {
        if let still, let video { return still == video }
        return duration <= maxDurationByName
    }
}
