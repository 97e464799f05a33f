public import Foundation
import Contracts
import JSONValue

/// The domain of PhotoKit's errors.
public let PHPhotosErrorDomain = "PHPhotosErrorDomain"

/// The key in `userInfo` for the local identifiers of the objects that have the same cloud identifier: `[String]`.
public let PHLocalIdentifiersErrorKey = "PHLocalIdentifiersErrorKey"

/// An error of the library: PhotoKit's code if PhotoKit has the error, else Safelight's, with the text of the service.
public struct PHPhotosError: Error, Sendable, Hashable, CustomNSError, LocalizedError, CustomStringConvertible {
    /// The codes of errors: PhotoKit's numbers, and Safelight's from 9001.
    public enum Code: Int, Sendable, CaseIterable {
        case internalError = -1
        case userCancelled = 3072
        case persistentChangeTokenExpired = 3105
        case libraryVolumeOffline = 3114
        case relinquishingLibraryBundleToWriter = 3142
        case switchingSystemPhotoLibrary = 3143
        case networkAccessRequired = 3164
        case networkError = 3169
        case identifierNotFound = 3201
        case multipleIdentifiersFound = 3202
        case persistentChangeDetailsUnavailable = 3210
        case changeNotSupported = 3300
        case operationInterrupted = 3301
        case invalidResource = 3302
        case missingResource = 3303
        case notEnoughSpace = 3305
        case requestNotSupportedForAsset = 3306
        case accessRestricted = 3310
        case accessUserDenied = 3311
        case libraryInFileProviderSyncRoot = 5423
        case limitExceeded = 9004
        /// An error that PhotoKit does not have, identified by ``PHPhotosError/name``.
        case other = 9000
    }

    public let code: Code
    /// The name of the error in Safelight's protocol, for example `unsupported_predicate`.
    public let name: String
    /// The number of the error in Safelight's protocol.
    public let number: Int
    /// The failure, the object concerned, and a remedy.
    public let message: String
    /// For ``Code/multipleIdentifiersFound`` the local identifiers of the objects, at most 100; else empty.
    public let localIdentifiers: [String]

    public static var errorDomain: String { PHPhotosErrorDomain }
    public var errorCode: Int { number }
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message]
        if !localIdentifiers.isEmpty { info[PHLocalIdentifiersErrorKey] = localIdentifiers }
        return info
    }
    public var errorDescription: String? { message }
    public var description: String { "\(name) (\(number)): \(message)" }

    init(_ error: RPCError) {
        name = error.name
        message = error.message
        localIdentifiers = (error.data["candidates"]?.arrayValue ?? []).compactMap(\.stringValue)
        number = error.errorCode == .internalError ? Code.internalError.rawValue : error.code
        code = Code(rawValue: number) ?? .other
    }

    init(_ code: ErrorCode, _ message: String) { self.init(code.error(message)) }

    /// Converts any error to an error of the library.
    init(_ error: any Error) {
        switch error {
        case let error as PHPhotosError: self = error
        case let error as RPCError: self.init(error)
        default: self.init(.internalError, "\(error)")
        }
    }
}

extension PHPhotosError.Code {
    /// Lets `catch PHPhotosError.accessUserDenied` match, as in PhotoKit.
    public static func ~= (code: PHPhotosError.Code, error: any Error) -> Bool {
        (error as? PHPhotosError)?.code == code
    }
}

extension PHPhotosError {
    public static let internalError = Code.internalError
    public static let userCancelled = Code.userCancelled
    public static let persistentChangeTokenExpired = Code.persistentChangeTokenExpired
    public static let libraryVolumeOffline = Code.libraryVolumeOffline
    public static let relinquishingLibraryBundleToWriter = Code.relinquishingLibraryBundleToWriter
    public static let switchingSystemPhotoLibrary = Code.switchingSystemPhotoLibrary
    public static let networkAccessRequired = Code.networkAccessRequired
    public static let networkError = Code.networkError
    public static let identifierNotFound = Code.identifierNotFound
    public static let multipleIdentifiersFound = Code.multipleIdentifiersFound
    public static let persistentChangeDetailsUnavailable = Code.persistentChangeDetailsUnavailable
    public static let changeNotSupported = Code.changeNotSupported
    public static let operationInterrupted = Code.operationInterrupted
    public static let invalidResource = Code.invalidResource
    public static let missingResource = Code.missingResource
    public static let notEnoughSpace = Code.notEnoughSpace
    public static let requestNotSupportedForAsset = Code.requestNotSupportedForAsset
    public static let accessRestricted = Code.accessRestricted
    public static let accessUserDenied = Code.accessUserDenied
    public static let limitExceeded = Code.limitExceeded
}
