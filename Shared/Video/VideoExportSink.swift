/// The receiver of an exported file. Both functions are called on the thread of the export.
public final class VideoExportSink {
    let write: (_ bytes: UnsafeRawBufferPointer, _ position: Int64) -> Bool
    let progress: (_ time: Int64) -> Bool

    /// - Parameters:
    ///   - write: writes bytes at a position of the file; returns false to stop
    ///   - progress: called with the microseconds of output so far; returns false to stop
    public init(
        write: @escaping (_ bytes: UnsafeRawBufferPointer, _ position: Int64) -> Bool,
        progress: @escaping (_ time: Int64) -> Bool
    ) {
        self.write = write
        self.progress = progress
    }
}
