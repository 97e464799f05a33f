public import Foundation
import Basics
import Contracts
import Glibc
import JSONValue
import PhotoModel
import Synchronization

/// The result of an edit: `PHContentEditingOutput` (S-89).
///
/// The program writes the edited photo or video to ``renderedContentURL``, upright, sets ``adjustmentData``, and
/// commits both with `contentEditingOutput` of a change request.
public final class PHContentEditingOutput: Sendable {
    private struct State {
        var adjustmentData: PHAdjustmentData?
        /// The type for which the program last requested the file.
        var renderType: String
    }

    /// The input's token; nil for a new asset.
    let inputToken: EditInputToken?
    private let folder: TemporaryFiles
    private let types: [String]
    private let state: Mutex<State>

    public init(contentEditingInput: PHContentEditingInput) {
        inputToken = contentEditingInput.token
        types = contentEditingInput.renderTypes
        folder = TemporaryFiles()
        state = Mutex(State(renderType: types.first ?? "public.jpeg"))
    }

    /// Creates the output for an asset that is created in the same change block (T-22).
    public init(placeholderForCreatedAsset: PHObjectPlaceholder) {
        inputToken = nil
        types = RenderType.supported(for: .image)
        folder = TemporaryFiles()
        state = Mutex(State(renderType: types.first ?? "public.jpeg"))
    }

    /// The description of the edit, which is required.
    public var adjustmentData: PHAdjustmentData? {
        get { state.withLock { $0.adjustmentData } }
        set { state.withLock { $0.adjustmentData = newValue } }
    }

    /// The uniform type identifiers that the library accepts; PhotoKit has `UTType`s.
    public var supportedRenderedContentTypes: [String] { types }
    public var defaultRenderedContentType: String { types.first ?? "public.jpeg" }

    /// The file to write, in the default type. It is removed when this object is released.
    ///
    /// If there are files of several types when the changes are performed, the one that was written last is committed.
    ///
    /// If the folder of the file cannot be created, for example because the disk is full, the changes fail with that
    /// reason.
    public var renderedContentURL: URL { urlToWrite(for: defaultRenderedContentType) }

    /// The file to write in another type (T-23).
    ///
    /// - Throws: ``PHPhotosError`` if the library does not accept the type, or if the folder of temporary files could
    ///   not be created
    public func renderedContentURL(for type: String) throws -> URL {
        if let problem = folder.problem { throw PHPhotosError(problem) }
        guard types.contains(type) else {
            throw PHPhotosError(
                .unsupportedFormat,
                "\(type) cannot be committed; accepted are \(types.joined(separator: ", "))"
            )
        }
        return urlToWrite(for: type)
    }

    /// Stores the type of the file that the program is about to write, and returns its URL.
    private func urlToWrite(for type: String) -> URL {
        state.withLock { $0.renderType = type }
        return url(for: type)
    }

    private func url(for type: String) -> URL {
        let fileExtensions = [
            "public.jpeg": "jpg", "public.png": "png", "public.heic": "heic", "public.tiff": "tiff",
            "org.webmproject.webp": "webp", "com.apple.quicktime-movie": "mov", "public.mpeg-4": "mp4",
        ]
        return folder.url.appendingPathComponent("render.\(fileExtensions[type] ?? "bin")")
    }

    /// Returns the file that was last written or moved to the folder; of several with the same time, the one whose type
    /// was last requested; nil if there is none.
    private func renderedFile() -> URL? {
        let lastRequested = state.withLock { $0.renderType }
        var last: (url: URL, time: [Int])?
        for type in [lastRequested] + types.filter({ $0 != lastRequested }) {
            let url = url(for: type)
            var status = stat()
            guard stat(url.path, &status) == 0 else { continue }
            // The status change time, because a moved or copied file may keep its earlier modification time.
            let time = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
            if let last, !last.time.lexicographicallyPrecedes(time) { continue }
            last = (url, time)
        }
        return last?.url
    }

    /// Returns the edit for a change request.
    ///
    /// - Throws: `missing_resource` if there is no rendered file or no adjustment data; `not_enough_space` if the
    ///   folder for the file could not be created
    func wireEdit(_ files: inout ChangeFiles) async throws(RPCError) -> NewEdit {
        if let problem = folder.problem { throw problem }
        guard let adjustment = adjustmentData else {
            throw ErrorCode.missingResource.error("an edit needs adjustmentData; set it before the changes")
        }
        guard let file = renderedFile() else {
            throw ErrorCode.missingResource.error("an edit needs the rendered file at renderedContentURL")
        }
        return NewEdit(
            render: NewResource(source: try await files.add(file: file)),
            adjustmentData: AdjustmentData(
                formatIdentifier: adjustment.formatIdentifier,
                formatVersion: adjustment.formatVersion,
                attachment: files.attach(Bytes(adjustment.data))
            )
        )
    }
}
