public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

public typealias PHContentEditingInputRequestID = Int32

public let PHContentEditingInputResultIsInCloudKey = "PHContentEditingInputResultIsInCloudKey"
public let PHContentEditingInputCancelledKey = "PHContentEditingInputCancelledKey"
public let PHContentEditingInputErrorKey = "PHContentEditingInputErrorKey"

/// The options of a request for the input of an edit: `PHContentEditingInputRequestOptions`.
public final class PHContentEditingInputRequestOptions {
    /// Called with the adjustment data of the last edit, if there is one. It returns true if the program can resume the
    /// edit: the input is then the version before it (S-86, D4).
    public var canHandleAdjustmentData: @Sendable (PHAdjustmentData) -> Bool = { _ in false }
    /// The original to edit, if the asset has a RAW and a compressed one (T-49); nil for the one that is displayed. For
    /// other assets the request fails if it is set.
    public var originalResourceChoice: PHAsset.OriginalResourceChoice?
    /// True to leave out ``PHContentEditingInput/displaySizeImage``, which takes time to render.
    public var skipsDisplaySizeImage = false
    public var isNetworkAccessAllowed = false
    /// Called on a serial queue while the input is downloaded; never for an input that is on the library's machine.
    public var progressHandler: (@Sendable (Double, UnsafeMutablePointer<ObjCBool>) -> Void)?

    public init() {}
}

/// The version of an asset to edit: `PHContentEditingInput` (S-86).
public final class PHContentEditingInput: Sendable {
    let asset: PHAsset
    let token: EditInputToken
    let renderTypes: [String]
    private let folder: TemporaryFiles
    /// The file of the photo; nil for a video. It is removed when this object is released.
    public let fullSizeImageURL: URL?
    /// The EXIF orientation of the file, 1...8.
    public let fullSizeImageOrientation: Int32
    /// The version at display size, upright; nil for a video, or if the options skip it.
    public let displaySizeImage: UIImage?
    /// The file of the video; nil for a photo. It is removed when this object is released. PhotoKit has an `AVAsset`.
    public let audiovisualAssetURL: URL?
    /// The adjustment data of the last edit, if the program can resume that edit; else nil.
    public let adjustmentData: PHAdjustmentData?
    public let uniformTypeIdentifier: String?

    public var mediaType: PHAssetMediaType { asset.mediaType }
    public var mediaSubtypes: PHAssetMediaSubtype { asset.mediaSubtypes }
    public var playbackStyle: PHAsset.PlaybackStyle { asset.playbackStyle }
    public var creationDate: Date? { asset.creationDate }
    public var location: CLLocation? { asset.location }

    init(
        _ asset: PHAsset,
        _ result: BeginEditing.Result,
        _ folder: TemporaryFiles,
        file: URL,
        display: UIImage?,
        adjustmentData: PHAdjustmentData?
    ) {
        self.asset = asset
        self.folder = folder
        token = result.inputToken
        renderTypes = result.supportedRenderTypes
        let isVideo = asset.mediaType == .video
        fullSizeImageURL = isVideo ? nil : file
        audiovisualAssetURL = isVideo ? file : nil
        fullSizeImageOrientation = Int32(result.orientation)
        displaySizeImage = display
        self.adjustmentData = adjustmentData
        uniformTypeIdentifier = result.resource.contentType
    }
}

/// A folder of temporary files, which is removed when this object is released.
final class TemporaryFiles: Sendable {
    let url: URL
    /// The reason why the folder could not be created; nil if it was created.
    let problem: RPCError?

    init() {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("photokit-\(UUID().uuidString)")
        self.url = url
        do {
            try FileManager.default.createDirectory(
                at: url,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            problem = nil
        } catch {
            problem = ErrorCode.notEnoughSpace.error("\(url.path) cannot be created: \(error)")
        }
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

extension PHAsset {
    private static let inputs = Mutex<[PHContentEditingInputRequestID: Task<Void, Never>]>([:])

    /// Requests the version to edit, and the adjustment data with which the last edit is resumed (S-86).
    ///
    /// - Returns: the identifier with which the request can be cancelled
    @discardableResult
    public func requestContentEditingInput(
        with options: PHContentEditingInputRequestOptions?,
        completionHandler: @escaping @Sendable (PHContentEditingInput?, [AnyHashable: Any]) -> Void
    ) -> PHContentEditingInputRequestID {
        let id = connection.makeRequestID()
        let canHandle = (options ?? PHContentEditingInputRequestOptions()).canHandleAdjustmentData
        let (request, access) = (makeRequest(options), NetworkAccess(options))
        Self.inputs.withLock { tasks in
            tasks[id] = connection.start { [self] in
                let result: Result<PHContentEditingInput, PHPhotosError>
                do {
                    result = .success(
                        try await self.loadInput(
                            request,
                            { data in await self.connection.call { canHandle(data) } },
                            access
                        )
                    )
                } catch {
                    result = .failure(PHPhotosError(error))
                }
                var isCancelled = Task.isCancelled
                // A progress handler can also cancel the request.
                if case .failure(let error) = result, error.code == .userCancelled { isCancelled = true }
                Self.inputs.withLock { _ = $0.removeValue(forKey: id) }
                connection.callbacks.async { [isCancelled] in
                    switch result {
                    case .success(let input): completionHandler(input, [:])
                    case .failure where isCancelled: completionHandler(nil, [PHContentEditingInputCancelledKey: true])
                    case .failure(let error):
                        var info: [AnyHashable: Any] = [PHContentEditingInputErrorKey: error]
                        if error.code == .networkAccessRequired { info[PHContentEditingInputResultIsInCloudKey] = true }
                        completionHandler(nil, info)
                    }
                }
            }
        }
        return id
    }

    public func cancelContentEditingInputRequest(_ requestID: PHContentEditingInputRequestID) {
        Self.inputs.withLock { $0[requestID] }?.cancel()
    }

    /// Returns the version to edit, as ``requestContentEditingInput(with:completionHandler:)`` does.
    ///
    /// - Throws: a ``PHPhotosError``
    public func contentEditingInput(
        with options: PHContentEditingInputRequestOptions? = nil
    ) async throws -> PHContentEditingInput {
        do {
            let options = options ?? PHContentEditingInputRequestOptions()
            return try await loadInput(makeRequest(options), options.canHandleAdjustmentData, NetworkAccess(options))
        } catch {
            throw PHPhotosError(error)
        }
    }

    /// Returns the request with which the editor begins an edit.
    private func makeRequest(_ options: PHContentEditingInputRequestOptions?) -> BeginEditing {
        var request = BeginEditing(
            asset: id,
            originalChoice: options?.originalResourceChoice?.choice,
            skipsDisplaySizeImage: mediaType == .video || options?.skipsDisplaySizeImage == true,
            skipsInput: mediaType == .video
        )
        request.isNetworkAccessAllowed = options?.isNetworkAccessAllowed ?? false
        return request
    }

    private func loadInput(
        _ request: BeginEditing,
        _ canHandle: @Sendable (PHAdjustmentData) async -> Bool,
        _ access: NetworkAccess
    ) async throws -> PHContentEditingInput {
        var request = request
        // The program decides by the adjustment data of the last edit whether it can resume that edit. The request
        // then names the format of the data, which `editing.begin` compares with the current one.
        if let last = try await lastAdjustmentData(), await canHandle(last) {
            request.canHandle = [
                HandledFormat(formatIdentifier: last.formatIdentifier, formatVersion: last.formatVersion)
            ]
        }
        let response = try await connection.ask(request, of: connection.client.editor, deadline: .seconds(120), access)
        let (result, attachments) = (response.result, response.attachments)
        func attachment(_ number: Int?) -> Bytes? {
            number.flatMap { attachments.indices.contains($0) ? attachments[$0] : nil }
        }
        let folder = TemporaryFiles()
        if let problem = folder.problem { throw problem }
        // The original's name may be missing, or too long for a file. Programs recognize the format by the extension.
        let fileExtension = result.resource.originalFilename?.split(separator: ".").dropFirst().last ?? ""
        let isPlain =
            (1...16).contains(fileExtension.count)
            && fileExtension.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        let file = folder.url.appendingPathComponent(isPlain ? "input.\(fileExtension)" : "input")
        if let bytes = attachment(result.input) {
            try Data(bytes).write(to: file)
        } else {
            let resource = PHAssetResource(
                result.resource,
                of: self,
                PHAssetResourceType(rawValue: result.resource.type.number) ?? .photo
            )
            let options = PHAssetResourceRequestOptions()
            options.isNetworkAccessAllowed = access.isAllowed
            try await PHAssetResourceManager.default().writeData(for: resource, toFile: file, options: options)
        }
        var adjustment: PHAdjustmentData?
        if let data = attachment(result.adjustmentData) {
            adjustment = PHAdjustmentData(
                formatIdentifier: result.formatIdentifier ?? "",
                formatVersion: result.formatVersion ?? "",
                data: Data(data)
            )
        }
        return PHContentEditingInput(
            self,
            result,
            folder,
            file: file,
            display: attachment(result.displaySizeImage).flatMap { PHImage(data: Data($0)) },
            adjustmentData: adjustment
        )
    }

    /// Returns the adjustment data of the last edit; nil if there is none.
    private func lastAdjustmentData() async throws(RPCError) -> PHAdjustmentData? {
        let page = try await connection.askCatalog(
            FetchAssets(fetch: FetchDescription(.assets, [localIdentifier]), count: 1)
        )
        guard let asset = page.assets.first, let format = asset.adjustmentFormatIdentifier,
            let resource = asset.resource(.adjustmentData)
        else { return nil }
        let bytes = try await connection.client.resource(asset: id, type: resource.type)
            .readAll(limit: AdjustmentData.maxBytes)
        return PHAdjustmentData(
            formatIdentifier: format,
            formatVersion: asset.adjustmentFormatVersion ?? "",
            data: Data(bytes)
        )
    }
}
