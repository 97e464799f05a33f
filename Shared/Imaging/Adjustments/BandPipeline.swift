import Basics
import Foundation
import Synchronization

/// Passes the rows of an image in bands between two threads: one fills bands, the other empties them. The change of a
/// band in between is made by the thread that is ahead.
///
/// A band may have a margin: rows of the bands above and below it, unchanged, which the change of the band may read.
///
/// The content of a band does not depend on the thread that processes it, so the result is deterministic.
final class BandPipeline: @unchecked Sendable {
    // Unchecked because of `memory`, whose bands are accessed by one thread at a time, synchronized by the semaphores,
    // and of `carried`, which only the thread that fills bands accesses.

    /// The rows of a band. In memory they are surrounded by `above` and `below` rows of its margin.
    struct Rows {
        let band: Int
        let first: Int
        let count: Int
        let pixels: UnsafeMutablePointer<UInt8>
        var above = 0
        var below = 0
    }

    private let rowsPerBand: Int
    private let margin: Int
    private static let slots = 4

    private let height: Int
    private let rowBytes: Int
    private let memory: UnsafeMutablePointer<UInt8>
    /// The last rows of the band that was filled last, with which the next band starts.
    private let carried: UnsafeMutablePointer<UInt8>
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

    init(height: Int, rowBytes: Int, rowsPerBand: Int = 32, margin: Int = 0) {
        self.height = height
        self.rowBytes = rowBytes
        self.rowsPerBand = rowsPerBand
        self.margin = margin
        memory = .allocate(capacity: Self.slots * (rowsPerBand + 2 * margin) * rowBytes)
        carried = .allocate(capacity: 2 * margin * rowBytes)
        for _ in 0..<Self.slots { free.signal() }
    }

    deinit {
        memory.deallocate()
        carried.deallocate()
    }

    private func rows(_ band: Int) -> Rows {
        let first = band * rowsPerBand
        let count = min(rowsPerBand, height - first)
        return Rows(
            band: band,
            first: first,
            count: count,
            pixels: memory + (band % Self.slots * (rowsPerBand + 2 * margin) + margin) * rowBytes,
            above: min(margin, first),
            below: min(margin, height - first - count)
        )
    }

    /// Fills a band and its margin. Only rows that earlier bands did not contain are requested.
    private func fill(_ band: Int, _ body: (Rows) throws(ImagingError) -> Void) throws(ImagingError) {
        let rows = rows(band)
        guard margin > 0 else { return try body(rows) }
        let start = band == 0 ? 0 : min(height, rows.first + margin)
        let end = rows.first + rows.count + rows.below
        // The rows around the start of the band, which were the last rows and the margin of the previous band.
        if band > 0 {
            let carriedRows = start - rows.first + rows.above
            (rows.pixels - rows.above * rowBytes).update(from: carried, count: carriedRows * rowBytes)
        }
        if end > start {
            let target = rows.pixels + (start - rows.first) * rowBytes
            try body(Rows(band: band, first: start, count: end - start, pixels: target))
        }
        let next = rows.first + rows.count
        let from = max(0, next - margin)
        if end > from {
            carried.update(from: rows.pixels + (from - rows.first) * rowBytes, count: (end - from) * rowBytes)
        }
    }

    private var bands: Int { (height + rowsPerBand - 1) / rowsPerBand }

    /// Processes all bands and throws the first error of either thread.
    ///
    /// - Parameters:
    ///   - fill: writes rows; with a margin they are not the rows of one band, but each row is requested once and in
    ///     order
    ///   - change: changes the rows of a band in place
    ///   - empty: reads the rows of a band
    ///   - start: starts the thread that fills bands; if it returns false, the calling thread fills them too
    func run(
        fill: @escaping @Sendable (Rows) throws(ImagingError) -> Void,
        change: @escaping @Sendable (Rows) -> Void,
        empty: (Rows) throws(ImagingError) -> Void,
        start: (@escaping @Sendable () -> Void) -> Bool = DetachedThread.start
    ) throws(ImagingError) {
        var hasThread = ProcessInfo.processInfo.activeProcessorCount > 1
        if hasThread {
            hasThread = start {
                self.fillAll(fill, change)
                self.ended.signal()
            }
        }
        guard hasThread else {
            for band in 0..<bands {
                try self.fill(band, fill)
                change(rows(band))
                try empty(rows(band))
            }
            return
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
            do throws(ImagingError) { try self.fill(band, fill) } catch {
                state.withLock { $0.failure = error }
                ready.signal()
                return
            }
            // If two or more bands are ready for the other thread, this one changes the band.
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
