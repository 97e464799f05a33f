import Foundation
import Synchronization

/// A picture's rows in bands, on two threads: one fills bands, the other empties them, and whichever is ahead does what
/// is to be done to each between.
///
/// What a band becomes does not depend on which thread does it, so the result is the same every time.
final class BandPipe: @unchecked Sendable {
    // The memory of a band is touched by one thread at a time: the semaphores hand it over.
    typealias Rows = (band: Int, first: Int, count: Int, pixels: UnsafeMutablePointer<UInt8>)

    static let rowsOfBand = 32
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

    init(height: Int, rowBytes: Int) {
        self.height = height
        self.rowBytes = rowBytes
        memory = .allocate(capacity: Self.slots * Self.rowsOfBand * rowBytes)
        for _ in 0..<Self.slots { free.signal() }
    }

    deinit { memory.deallocate() }

    private func rows(_ band: Int) -> Rows {
        let first = band * Self.rowsOfBand
        let place = memory + band % Self.slots * Self.rowsOfBand * rowBytes
        return (band, first, min(Self.rowsOfBand, height - first), place)
    }

    private var bands: Int { (height + Self.rowsOfBand - 1) / Self.rowsOfBand }

    /// Runs to the end; throws the first failure of either side.
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
            // With enough in hand for the other side there is time to do a part of its work.
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
