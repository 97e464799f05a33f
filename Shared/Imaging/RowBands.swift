import Basics
import Foundation
import Synchronization

/// Bands of rows, which are processed in parallel if the image is large.
///
/// It creates its own threads, because libdispatch manages its pool with files below /proc, and ends a process that may
/// not open them.
enum RowBands {
    /// The number of pixels from which several threads are used. For fewer pixels, starting threads takes too long.
    private static let parallelPixels = 500_000
    /// The maximum number of threads for one image: a service has a worker for each processor, and all may run at once.
    private static let maxThreads = 8

    /// Calls `body` for all bands.
    ///
    /// - Parameter start: starts a thread; if it returns false, the running threads process the bands
    static func run(
        _ height: Int,
        pixels: Int,
        _ body: @escaping @Sendable (_ first: Int, _ rows: Int) -> Void,
        start: (@escaping @Sendable () -> Void) -> Bool = DetachedThread.start
    ) {
        let threads = min(maxThreads, ProcessInfo.processInfo.activeProcessorCount)
        let bands = pixels < parallelPixels ? 1 : min(height, 4 * max(1, threads))
        guard bands > 1, threads > 1 else { return body(0, height) }
        let next = Atomic(0)
        let ended = DispatchSemaphore(value: 0)
        let work: @Sendable () -> Void = {
            while true {
                let band = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard band < bands else { return }
                let first = height * band / bands
                body(first, height * (band + 1) / bands - first)
            }
        }
        var started = 0
        for _ in 1..<min(threads, bands) {
            let isStarted = start {
                work()
                ended.signal()
            }
            guard isStarted else { break }
            started += 1
        }
        work()
        for _ in 0..<started { ended.wait() }
    }
}
