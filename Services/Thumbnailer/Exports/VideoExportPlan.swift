import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage
import Video

/// One file to export. Requests that must give the same file have equal plans.
struct VideoExportPlan: Sendable, Hashable {
    /// The video, also as the name of its stream.
    let video: AssetResource
    let preset: VideoExportPreset
    /// True if the export has the slow motion that players show.
    var isTimed = false
    /// The client, if it does not see the whole library: it must not learn which bytes others have exported.
    var limitedClient: String?
    /// The open file until it is encoded, so that it can be read if the local file is removed meanwhile. Not compared.
    var file: ResourceFile?

    /// The job's parameters.
    func params(maxBytes: Int64) -> JSON {
        var params = video.partOfFile
        params["isTimed"] = .bool(isTimed)
        params["preset"] = .string(preset.rawValue)
        params["maxBytes"] = .int(maxBytes)
        return .object(params)
    }

    static func == (one: Self, other: Self) -> Bool {
        one.video.stream == other.video.stream && one.preset == other.preset && one.isTimed == other.isTimed
            && one.limitedClient == other.limitedClient
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(video.stream)
        hasher.combine(preset)
        hasher.combine(isTimed)
        hasher.combine(limitedClient)
    }
}

extension VideoExportPreset {
    /// The encoder's settings. A factor of 21 is hardly distinguishable; 18 is for `highest`.
    var settings: VideoExportSettings {
        var settings = VideoExportSettings()
        switch self {
        case .passthrough: settings.isCopied = true
        case .size640x480: settings.box = .init(640, 480)
        case .size960x540: settings.box = .init(960, 540)
        case .size1280x720: settings.box = .init(1280, 720)
        case .size1920x1080: settings.box = .init(1920, 1080)
        case .size3840x2160: settings.box = .init(3840, 2160)
        case .low: (settings.box, settings.quality) = (.init(480, 360), 30)
        case .medium: (settings.box, settings.quality) = (.init(960, 540), 26)
        case .highest: settings.quality = 18
        case .hevc1920x1080: (settings.box, settings.isHEVC, settings.quality) = (.init(1920, 1080), true, 25)
        case .hevc3840x2160: (settings.box, settings.isHEVC, settings.quality) = (.init(3840, 2160), true, 25)
        case .hevcHighest: (settings.isHEVC, settings.quality) = (true, 22)
        }
        return settings
    }
}
