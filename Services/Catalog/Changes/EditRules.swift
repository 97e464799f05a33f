import Contracts
import JSONValue
import Messaging
import PhotoModel

extension Asset {
    /// Makes what the edit began with the base of the last edit (spec section 9).
    ///
    /// An input token says what that was, and is held against what is there. Without one, whoever continues edits of its
    /// own format began with the same base, and another format with what was shown.
    ///
    /// - Throws: `conflict` where the token is of other pixels, `invalid_params` where it is of another asset
    mutating func rebase(_ edit: ChangeRequest.EditAsset) throws {
        guard let token = edit.inputToken else {
            if let format = adjustmentFormatIdentifier, format != edit.adjustmentData.formatIdentifier {
                takeRenderAsBase()
            }
            return
        }
        guard token.asset == id else {
            throw Refusal.invalidParams.error(
                "the inputToken is of \(token.asset), the edit of \(id)",
                ["parameter": "inputToken"]
            )
        }
        guard token.contentRevision == contentRevision,
            resource(of: token.base).contains(where: { $0.digest == token.digest })
        else {
            throw Refusal.conflict.error(
                "\(id) has other pixels than when the edit began: call editing.begin again",
                [
                    "id": .string(id.text), "revision": .string(revision.description),
                    "contentRevision": .string(contentRevision.description),
                ]
            )
        }
        switch token.base {
        case .original: resources.removeAll { $0.type == .adjustmentBasePhoto }
        case .previous: break
        case .current: takeRenderAsBase()
        }
    }

    private mutating func takeRenderAsBase() {
        guard var base = resource(.fullSizePhoto) else { return }
        base.type = .adjustmentBasePhoto
        resources.removeAll { $0.type == .adjustmentBasePhoto }
        resources.append(base)
    }

    /// Makes one of two originals the one that is shown; false where nothing was chosen or it is shown already (T-26).
    ///
    /// - Throws: `request_not_supported` where there is no such choice
    mutating func choose(_ choice: OriginalChoice?) throws -> Bool {
        guard let choice else { return false }
        guard let chosen = originalChoices[choice] else {
            throw Refusal.requestNotSupported.error(
                "\(id) did not begin with a RAW and a compressed file: leave base out",
                ["id": .string(id.text)]
            )
        }
        guard chosen.type != .photo else { return false }
        for index in resources.indices {
            switch resources[index].type {
            case .photo: resources[index].type = .alternatePhoto
            case .alternatePhoto: resources[index].type = .photo
            default: break
            }
        }
        return true
    }
}
