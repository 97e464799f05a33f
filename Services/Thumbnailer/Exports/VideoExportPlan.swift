import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage
import Video

/// One file to export. Requests for the same file have equal plans.
struct VideoExportPlan: Sendable, Hashable {
    /// The video, whose stream name is compared.
    let video: AssetResource
    let preset: VideoExportPreset
    /// True to export slow motion as players show it.
    var appliesSlowMotion = false
    /// The client if it does not see the whole library, else nil. Such a client must not learn which bytes others have
    /// exported.
    var limitedClient: String?
    /// The open source file until the export has ended, so that it can be read even if the local file is removed. Not
    /// compared.
    var file: ResourceFile?

    /// The job's parameters.
    func params(maxBytes: Int64) -> JSON {
        var params = video.partOfFile
        params["appliesSlowMotion"] = .bool(appliesSlowMotion)
        params["preset"] = .string(preset.rawValue)
        params["maxBytes"] = .int(maxBytes)
        return .object(params)
    }

    static func == (left: Self, right: Self) -> Bool {
        left.video.stream == right.video.stream && left.preset == right.preset
            && left.appliesSlowMotion == right.appliesSlowMotion && left.limitedClient == right.limitedClient
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(video.stream)
        hasher.combine(preset)
        hasher.combine(appliesSlowMotion)
        hasher.combine(limitedClient)
    }
}

extension VideoExportPreset {
    /// The settings of an export. The default constant rate factor of 21 is hardly distinguishable from the original;
    /// `highest` has 18.
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
