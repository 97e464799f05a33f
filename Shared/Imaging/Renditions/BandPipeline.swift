import Foundation
import Synchronization

/// Passes the rows of an image in bands between two threads: one fills bands, the other empties them. The step in
/// between is run by whichever thread is ahead.
///
/// The content of a band does not depend on the thread that processes it, so the result is deterministic.
final class BandPipeline: @unchecked Sendable {
    // Unchecked because of `memory`: a band is accessed by one thread at a time, synchronized by the semaphores.
    typealias Rows = (band: Int, first: Int, count: Int, pixels: UnsafeMutablePointer<UInt8>)

    private let rowsOfBand: Int
    private static let slots = 4

    private let height: Int
    private let rowBytes: Int
    private let memory: UnsafeMutablePointer<UInt8>
    private let free = DispatchSemaphore(value: 0)
    private let ready = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    private struct State {
        var filled = 0
        var emptied = 0
        var isDone = [Bool](repeating: false, count: slots)
        var isStopped = false
        var failure: ImagingError?
    }
    private let state = Mutex(State())

    init(height: Int, rowBytes: Int, rowsOfBand: Int = 32) {
        self.height = height
        self.rowBytes = rowBytes
        self.rowsOfBand = rowsOfBand
        memory = .allocate(capacity: Self.slots * rowsOfBand * rowBytes)
        for _ in 0..<Self.slots { free.signal() }
    }

    deinit { memory.deallocate() }

    private func rows(_ band: Int) -> Rows {
        let first = band * rowsOfBand
        let place = memory + band % Self.slots * rowsOfBand * rowBytes
        return (band, first, min(rowsOfBand, height - first), place)
    }

    private var bands: Int { (height + rowsOfBand - 1) / rowsOfBand }

    /// Processes all bands and throws the first error of either thread.
    func run(
        fill: @escaping @Sendable (Rows) throws(ImagingError) -> Void,
        change: @escaping @Sendable (Rows) -> Void,
        empty: (Rows) throws(ImagingError) -> Void
    ) throws(ImagingError) {
        guard ProcessInfo.processInfo.activeProcessorCount > 1 else {
            for band in 0..<bands {
                try fill(rows(band))
                change(rows(band))
                try empty(rows(band))
            }
            return
        }
        Thread.detachNewThread {
            self.fillAll(fill, change)
            self.ended.signal()
        }
        defer {
            state.withLock { $0.isStopped = true }
            free.signal()
            ended.wait()
        }
        for band in 0..<bands {
            ready.wait()
            let (failure, isDone) = state.withLock { ($0.failure, $0.isDone[band % Self.slots]) }
            if let failure { throw failure }
            if !isDone { change(rows(band)) }
            try empty(rows(band))
            state.withLock { $0.emptied += 1 }
            free.signal()
        }
    }

    private func fillAll(
        _ fill: @Sendable (Rows) throws(ImagingError) -> Void,
        _ change: @Sendable (Rows) -> Void
    ) {
        for band in 0..<bands {
            free.wait()
            guard !state.withLock({ $0.isStopped }) else { return }
            do throws(ImagingError) { try fill(rows(band)) } catch {
                state.withLock { $0.failure = error }
                ready.signal()
                return
            }
            // Two or more bands are ready for the other thread, so this one does a part of the work.
            let isAhead = state.withLock { $0.filled - $0.emptied >= 2 }
            if isAhead { change(rows(band)) }
            state.withLock {
                $0.isDone[band % Self.slots] = isAhead
                $0.filled += 1
            }
            ready.signal()
        }
    }
}
