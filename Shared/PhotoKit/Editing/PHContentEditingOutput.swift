public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// The result of an edit: `PHContentEditingOutput` (S-89).
///
/// The program writes the edited photo or video to ``renderedContentURL``, upright, sets ``adjustmentData``, and commits both
/// with `contentEditingOutput` of a change request.
public final class PHContentEditingOutput: Sendable {
    private struct State {
        var adjustmentData: PHAdjustmentData?
        /// The type whose file was asked for last.
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
        folder = Self.makeFolder()
        state = Mutex(State(renderType: types.first ?? "public.jpeg"))
    }

    /// Creates the output for an asset that is created in the same change block (T-22).
    public init(placeholderForCreatedAsset: PHObjectPlaceholder) {
        inputToken = nil
        types = RenderType.supported(for: .image)
        folder = Self.makeFolder()
        state = Mutex(State(renderType: types.first ?? "public.jpeg"))
    }

    private static func makeFolder() -> TemporaryFiles {
        do throws(PHPhotosError) {
            return try TemporaryFiles()
        } catch {
            preconditionFailure("PHContentEditingOutput: \(error)")
        }
    }

    /// The description of the edit. It is required.
    public var adjustmentData: PHAdjustmentData? {
        get { state.withLock { $0.adjustmentData } }
        set { state.withLock { $0.adjustmentData = newValue } }
    }

    /// The uniform type identifiers that the library accepts; PhotoKit has `UTType`s.
    public var supportedRenderedContentTypes: [String] { types }
    public var defaultRenderedContentType: String { types.first ?? "public.jpeg" }

    /// The file to write, in the default type. It is removed with this object.
    public var renderedContentURL: URL { url(for: defaultRenderedContentType) }

    /// The file to write in another type (T-23).
    ///
    /// - Throws: ``PHPhotosError`` if the library does not accept it
    public func renderedContentURL(for type: String) throws -> URL {
        guard types.contains(type) else {
            throw PHPhotosError(
                .unsupportedFormat,
                "\(type) cannot be committed; accepted are \(types.joined(separator: ", "))"
            )
        }
        state.withLock { $0.renderType = type }
        return url(for: type)
    }

    private func url(for type: String) -> URL {
        let endings = [
            "public.jpeg": "jpg", "public.png": "png", "public.heic": "heic", "public.tiff": "tiff",
            "org.webmproject.webp": "webp", "com.apple.quicktime-movie": "mov", "public.mpeg-4": "mp4",
        ]
        return folder.url.appendingPathComponent("render.\(endings[type] ?? "bin")")
    }

    /// Returns the edit for a change request.
    ///
    /// - Throws: `missing_resource` if there is no rendered file or no adjustment data
    func wireEdit(_ files: inout ChangeFiles) async throws(RPCError) -> NewEdit {
        let (adjustment, type) = state.withLock { ($0.adjustmentData, $0.renderType) }
        guard let adjustment else {
            throw ErrorCode.missingResource.error("an edit needs adjustmentData; set it before the changes")
        }
        let file = url(for: type)
        guard FileManager.default.fileExists(atPath: file.path) else {
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
