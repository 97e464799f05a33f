import Synchronization

/// The stage of the work of this module: it decides whether bytes or a request are to blame for a crash.
public enum ImagingStage: Sendable {
    /// The bytes of a picture are read: its header, its pixels, its colour profile.
    case reading
    /// The picture is in memory, and what was asked for is made of it.
    case working
}

extension ImagingLibrary {
    private static let observer = Mutex<(@Sendable (ImagingStage) -> Void)?>(nil)

    /// Calls a function whenever a stage begins; one function in a process.
    public static func observeStages(_ body: @escaping @Sendable (ImagingStage) -> Void) {
        observer.withLock { $0 = body }
    }

    static func enter(_ stage: ImagingStage) { observer.withLock { $0 }?(stage) }
}
