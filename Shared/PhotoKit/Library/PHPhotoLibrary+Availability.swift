/// Observes whether the library is available: `PHPhotoLibraryAvailabilityObserver` (T-42).
public protocol PHPhotoLibraryAvailabilityObserver: AnyObject, Sendable {
    /// Called on the callback queue after ``PHPhotoLibrary/unavailabilityReason`` was set.
    func photoLibraryDidBecomeUnavailable(_ photoLibrary: PHPhotoLibrary)
    /// Called when it is available again. PhotoKit has no counterpart.
    func photoLibraryDidBecomeAvailable(_ photoLibrary: PHPhotoLibrary)
}

extension PHPhotoLibraryAvailabilityObserver {
    public func photoLibraryDidBecomeAvailable(_ photoLibrary: PHPhotoLibrary) {}
}

extension PHPhotoLibrary {
    /// Adds an observer of the library's availability, which is not retained.
    public func register(_ observer: any PHPhotoLibraryAvailabilityObserver) {
        availability.register(observer, of: self)
    }

    public func unregisterAvailabilityObserver(_ observer: any PHPhotoLibraryAvailabilityObserver) {
        availability.unregister(observer)
    }

    /// The reason why the library is not available: ``PHPhotosError/libraryVolumeOffline``,
    /// ``PHPhotosError/relinquishingLibraryBundleToWriter`` or ``PHPhotosError/switchingSystemPhotoLibrary``; nil if it
    /// is available. It is known only while there is an availability observer. A library that can be read but not
    /// written is available; changes fail with the reason.
    public var unavailabilityReason: (any Error)? { availability.reason }
}
