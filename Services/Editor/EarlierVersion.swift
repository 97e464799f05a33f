import Basics
import PhotoModel

/// An earlier version of a photo by another program, committed again as it was: only that program could render it.
struct EarlierVersion: Sendable {
    /// The rendered image.
    var render: Bytes
    var formatIdentifier: String
    var formatVersion: String
    /// The adjustment data, byte for byte.
    var adjustmentData: Bytes
    /// The content revision that the version replaces.
    var contentRevision: Revision
    var base: Base

    /// The version that the edit was based on.
    enum Base: Sendable {
        /// A version that the asset has.
        case existing(EditBase, digest: String)
        /// The bytes of a version that the asset no longer has.
        case bytes(Bytes)
    }

    /// The format of the edit that makes a missing base the current version within the transaction. It appears in no
    /// change record.
    static let baseFormat = "org.safelight.base"
}
