import Foundation
import Synchronization

/// Bands of rows, side by side on the processors where a picture is large.
///
/// On threads of its own: libdispatch manages its pool through files below /proc, and ends a process that may not
/// open them.
enum RowBands {
    /// Fewer pixels are not worth a second thread.
    private static let worthwhile = 500_000

    static func run(_ height: Int, pixels: Int, _ body: @escaping @Sendable (_ first: Int, _ rows: Int) -> Void) {
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let bands = pixels < worthwhile ? 1 : min(height, 4 * max(1, processors))
        guard bands > 1, processors > 1 else { return body(0, height) }
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
        let others = min(processors, bands) - 1
        for _ in 0..<others {
            Thread.detachNewThread {
                work()
                ended.signal()
            }
        }
        work()
        for _ in 0..<others { ended.wait() }
    }
}
