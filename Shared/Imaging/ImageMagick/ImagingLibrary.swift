import CAVIF
import CHeif
import CMagickWand
import Foundation
import Synchronization

/// The initialization and version of ImageMagick and the other codecs.
public enum ImagingLibrary {
    /// Starts ImageMagick with the project's security policy, and opens the fonts. Later calls have no effect.
    ///
    /// The first ``Wand`` calls it. A worker calls it at its start, before it receives any data.
    ///
    /// The policy is read from a file when the library starts, because a running program can only lower the limits of
    /// the policies that were read, and Debian's limit is 16,000 pixels per side. If no file can be written (a worker
    /// without a temporary folder), the same policy is set at run time: it disables the coders too, but Debian's lower
    /// limits remain.
    ///
    /// - Parameter threads: the maximum number of threads of each call to ImageMagick
    public static func start(threads count: Int = 1) {
        threads.withLock { $0 = max(1, count) }
        _ = started
    }

    private static let threads = Mutex(1)

    private static let started: Void = {
        let count = threads.withLock { $0 }
        let policy = Self.policy(threads: count)
        let hasPolicy = withPolicyFolder(policy) { folder in
            setenv("MAGICK_CONFIGURE_PATH", folder, 1)
            MagickWandGenesis()
            unsetenv("MAGICK_CONFIGURE_PATH")
        }
        if !hasPolicy {
            MagickWandGenesis()
            let wand = NewMagickWand()
            MagickSetSecurityPolicy(wand, policy)
            DestroyMagickWand(wand)
        }
        MagickSetResourceLimit(ThreadResource, UInt64(count))
        TextRenderer.openFonts()
    }()

    private static func withPolicyFolder(_ policy: String, _ body: (String) -> Void) -> Bool {
        // Writing beyond this limit would kill the process.
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, limit.rlim_cur >= 16_384 else {
            return false
        }
        // An empty variable is treated as unset.
        let parent = ProcessInfo.processInfo.environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        var template = Array("\(parent)/safelight-policy-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return false }
        let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        let file = "\(folder)/policy.xml"
        defer {
            unlink(file)
            rmdir(folder)
        }
        guard FileManager.default.createFile(atPath: file, contents: Data(policy.utf8)),
            FileManager.default.contents(atPath: file)?.count == policy.utf8.count
        else { return false }
        body(folder)
        return true
    }

    /// Allows only the supported coders; no delegates, filters or indirect reads.
    ///
    /// There is no time limit: ImageMagick measures it from its start, so a long-lived worker would refuse all images.
    /// The worker pool enforces time limits instead.
    private static func policy(threads: Int) -> String {
        """
        <policymap>
          <policy domain="resource" name="memory" value="4GiB"/>
          <policy domain="resource" name="map" value="4GiB"/>
          <policy domain="resource" name="area" value="1GP"/>
          <policy domain="resource" name="disk" value="0"/>
          <policy domain="resource" name="width" value="65500"/>
          <policy domain="resource" name="height" value="65500"/>
          <policy domain="resource" name="list-length" value="64"/>
          <policy domain="resource" name="thread" value="\(threads)"/>
          <policy domain="delegate" rights="none" pattern="*"/>
          <policy domain="filter" rights="none" pattern="*"/>
          <policy domain="path" rights="none" pattern="@*"/>
          <policy domain="coder" rights="none" pattern="*"/>
          <policy domain="coder" rights="read|write" pattern="{JPEG,PNG,GIF,WEBP,TIFF,BMP}"/>
        </policymap>
        """
    }

    /// The versions of the decoding and encoding libraries by name.
    public static var versions: [String: String] {
        start()
        var number = 0
        let magick = MagickGetVersion(&number).map { String(cString: $0) } ?? ""
        return [
            "imagemagick": magick.split(separator: " ").dropFirst().first.map(String.init) ?? magick,
            "libraw": RawDecoder.version,
            "libjxl": JPEGXLDecoder.version,
            "libheif": heif_get_version().map { String(cString: $0) } ?? "",
            "libavif": avifVersion().map { String(cString: $0) } ?? "",
        ]
    }
}

// MARK: - The policy in force

extension ImagingLibrary {
    /// The security policy in force in this process, determined by queries and by trial.
    public struct EffectivePolicy: Sendable {
        /// The maximum side in pixels that ImageMagick decodes.
        public var maxSide: Int
        /// The formats that must be disabled but can be decoded; empty if the policy is effective.
        public var open: [String]
    }

    /// Formats that read files, use the network or start programs, each with a text that its decoder accepts.
    private static let harmful = [
        ("SVG", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>"),
        ("MVG", "viewbox 0 0 1 1 rectangle 0,0 1,1"), ("MSL", "<image><read filename=\"xc:red\"/></image>"),
        ("TEXT", "text"), ("PS", "%!PS"), ("PNM", "P1 1 1 1"),
    ]

    /// The security policy in force. Starts ImageMagick if necessary.
    public static var effectivePolicy: EffectivePolicy {
        start()
        let open = harmful.filter { format, text in
            let wand = NewMagickWand()
            defer { DestroyMagickWand(wand) }
            MagickSetFormat(wand, format)
            let bytes = Array(text.utf8)
            return MagickReadImageBlob(wand, bytes, bytes.count) == MagickTrue && MagickGetImageWidth(wand) > 0
        }
        return EffectivePolicy(
            maxSide: Int(clamping: MagickGetResourceLimit(WidthResource)),
            open: open.map(\.0)
        )
    }
}

// MARK: - Stages

/// The stage of this module's work. A crash is attributed to the bytes or to the request, depending on the stage.
public enum ImagingStage: Sendable {
    /// The bytes of an image are read: its header, its pixels, its colour profile.
    case reading
    /// The image is in memory, and the requested result is computed.
    case working
}

extension ImagingLibrary {
    private static let observer = Mutex<(@Sendable (ImagingStage) -> Void)?>(nil)

    /// Sets the function that is called whenever a stage begins. A process has one such function.
    public static func observeStages(_ body: @escaping @Sendable (ImagingStage) -> Void) {
        observer.withLock { $0 = body }
    }

    static func enter(_ stage: ImagingStage) { observer.withLock { $0 }?(stage) }
}
