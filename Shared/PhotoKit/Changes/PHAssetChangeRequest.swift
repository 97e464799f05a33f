public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// A request to create, change or delete assets, inside a change block: `PHAssetChangeRequest` (S-76 to S-79).
///
/// Properties that are not set stay as they are. Reading one returns what this request sets, else the asset's value.
public class PHAssetChangeRequest: RecordedChange, @unchecked Sendable {
    /// The requested changes; modified only by the thread of the change block, and read after the block.
    final class State: @unchecked Sendable {
        var patch = AssetPatch()
        var addedKeywords: [String] = []
        var removedKeywords: [String] = []
        var output: PHContentEditingOutput?
        var isReverted = false
        var revertedTo: OriginalChoice?
        var resources: [NewAssetResource] = []
    }

    let asset: PHAsset?
    let placeholder: PHObjectPlaceholder?
    let state = State()
    var hasAdjustmentData: Bool { state.output != nil }

    /// Creates a request that changes an asset.
    public init(for asset: PHAsset) {
        self.asset = asset
        placeholder = nil
        ChangeRecorder.add(self)
    }

    /// Creates a request that creates an asset.
    init(creating: Void) {
        asset = nil
        placeholder = ChangeRecorder.makePlaceholder(.asset)
        ChangeRecorder.add(self)
    }

    /// Requests a new asset with the bytes of an image.
    public class func creationRequestForAsset(from image: UIImage) -> PHAssetChangeRequest {
        let request = PHAssetChangeRequest(creating: ())
        request.state.resources = [NewAssetResource(type: .photo, bytes: .data(image.data), options: nil)]
        return request
    }

    /// Requests a new asset from an image file; nil if there is no such file.
    public class func creationRequestForAssetFromImage(atFileURL fileURL: URL) -> PHAssetChangeRequest? {
        creationRequest(.photo, fileURL)
    }

    /// Requests a new asset from a video file; nil if there is no such file.
    public class func creationRequestForAssetFromVideo(atFileURL fileURL: URL) -> PHAssetChangeRequest? {
        creationRequest(.video, fileURL)
    }

    private class func creationRequest(_ type: PHAssetResourceType, _ url: URL) -> PHAssetChangeRequest? {
        guard FileManager.default.isReadableFile(atPath: url.path) else { return nil }
        let request = PHAssetChangeRequest(creating: ())
        request.state.resources = [NewAssetResource(type: type, bytes: .file(url), options: nil)]
        return request
    }

    /// A placeholder with the identifier of the new asset; nil for a request that changes an existing one.
    public var placeholderForCreatedAsset: PHObjectPlaceholder? { placeholder }

    /// Requests that assets are deleted from the library, at most 1,000 in one block.
    public class func deleteAssets(_ assets: some Sequence<PHAsset>) {
        ChangeRecorder.add(DeletionRequest(ChangeRecorder.identifiers(assets)) { .deleteAssets($0) })
    }

    // MARK: Properties

    public var creationDate: Date? {
        get {
            if let set = state.patch.creationDate { return set.map { Date(microseconds: $0) } }
            return asset?.creationDate
        }
        set { state.patch.creationDate = .some(newValue?.microseconds) }
    }

    public var location: CLLocation? {
        get {
            if let set = state.patch.location { return set.map { CLLocation($0) } }
            return asset?.location
        }
        set { state.patch.location = .some(newValue?.location) }
    }

    public var isFavorite: Bool {
        get { state.patch.isFavorite ?? asset?.isFavorite ?? false }
        set { state.patch.isFavorite = newValue }
    }

    public var isHidden: Bool {
        get { state.patch.isHidden ?? asset?.isHidden ?? false }
        set { state.patch.isHidden = newValue }
    }

    /// The rating, from 1 to 5; 0 if unset.
    public var rating: Int {
        get { state.patch.rating ?? asset?.rating ?? 0 }
        set { state.patch.rating = newValue }
    }

    /// The caption; nil or empty text removes it.
    public var caption: String? {
        get {
            if let set = state.patch.caption { return set }
            return asset?.caption
        }
        set { state.patch.caption = .some(newValue.flatMap { $0.isEmpty ? nil : $0 }) }
    }

    /// Adds a keyword, for a new asset in addition to those of its file; ignored if the asset has it.
    public func addKeyword(_ keyword: String) {
        // The library removes keywords before it adds others. The last call for a keyword decides.
        state.removedKeywords.removeAll { $0 == keyword }
        if !state.addedKeywords.contains(keyword) { state.addedKeywords.append(keyword) }
    }

    /// Removes a keyword, for a new asset also one of its file; ignored if the asset does not have it.
    public func removeKeyword(_ keyword: String) {
        state.addedKeywords.removeAll { $0 == keyword }
        if !state.removedKeywords.contains(keyword) { state.removedKeywords.append(keyword) }
    }

    // MARK: Content

    /// The edited content to commit (S-90).
    public var contentEditingOutput: PHContentEditingOutput? {
        get { state.output }
        set { state.output = newValue }
    }

    /// Requests that all edits are discarded (S-92).
    public func revertAssetContentToOriginal() { state.isReverted = true }

    /// Requests that all edits are discarded, and that one of two originals is displayed and edited from now on (T-26).
    ///
    /// The changes fail if the asset does not have a RAW and a compressed original.
    public func revertAssetContent(to choice: PHAsset.OriginalResourceChoice) {
        state.isReverted = true
        state.revertedTo = choice.choice
    }

    // MARK: On the wire

    func wireRequests(_ files: inout ChangeFiles) async throws(RPCError) -> [ChangeRequest] {
        guard let asset else { return [try await creationRequest(&files)] }
        var requests: [ChangeRequest] = []
        if state.patch != AssetPatch() || !state.addedKeywords.isEmpty || !state.removedKeywords.isEmpty {
            requests.append(
                .updateAsset(
                    .init(
                        id: .id(asset.id),
                        set: state.patch,
                        addKeywords: state.addedKeywords,
                        removeKeywords: state.removedKeywords
                    )
                )
            )
        }
        if state.isReverted { requests.append(.revertAsset(.init(id: asset.id, base: state.revertedTo))) }
        if let output = state.output {
            let edit = try await output.wireEdit(&files)
            requests.append(
                .editAsset(
                    .init(
                        id: asset.id,
                        render: edit.render,
                        adjustmentData: edit.adjustmentData,
                        inputToken: output.inputToken
                    )
                )
            )
        }
        return requests
    }

    private func creationRequest(_ files: inout ChangeFiles) async throws(RPCError) -> ChangeRequest {
        var resources: [NewResource] = []
        for resource in state.resources { resources.append(try await resource.wireResource(&files)) }
        var request = ChangeRequest.CreateAsset(
            ref: placeholder?.localIdentifier,
            resources: resources,
            set: state.patch,
            addKeywords: state.addedKeywords,
            removeKeywords: state.removedKeywords,
            ifDuplicate: .create
        )
        request.id = placeholder?.id
        if let output = state.output { request.edit = try await output.wireEdit(&files) }
        return .createAsset(request)
    }
}

/// A request to delete objects.
final class DeletionRequest: RecordedChange {
    private let ids: [ObjectID]
    private let makeRequest: @Sendable (ChangeRequest.ObjectIDs) -> ChangeRequest

    init(_ ids: [ObjectID], _ makeRequest: @escaping @Sendable (ChangeRequest.ObjectIDs) -> ChangeRequest) {
        self.ids = ids
        self.makeRequest = makeRequest
    }

    func wireRequests(_ files: inout ChangeFiles) async throws(RPCError) -> [ChangeRequest] {
        [makeRequest(ChangeRequest.ObjectIDs(ids: ids))]
    }
}

/// A file of a new asset.
struct NewAssetResource: Sendable {
    enum Content: Sendable {
        case data(Data)
        case file(URL)
    }

    let type: PHAssetResourceType
    let bytes: Content
    let options: PHAssetResourceCreationOptions?

    /// Returns the corresponding value of the protocol, and adds the bytes to the files.
    func wireResource(_ files: inout ChangeFiles) async throws(RPCError) -> NewResource {
        let type = ResourceType(number: type.rawValue) ?? .photo
        switch bytes {
        case .data(let data):
            return NewResource(
                type: type,
                source: try await files.add(Bytes(data)),
                originalFilename: options?.originalFilename
            )
        case .file(let url):
            let isMoved = options?.shouldMoveFile == true
            return NewResource(
                type: type,
                source: isMoved ? try await files.move(file: url) : try await files.add(file: url),
                originalFilename: options?.originalFilename ?? url.lastPathComponent,
                verifies: isMoved
            )
        }
    }
}
