import Basics
import Contracts
import Foundation
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Storage
import Synchronization
import SystemPackage

/// Renders videos: a worker of its own encodes one at a time, and the result is uploaded to the catalog.
final class VideoRenderer: Sendable {
    private let resources: ResourceFolder
    private let workers: WorkerPool
    private let files: WorkerFileJob
    private let runner: ResourceJobRunner
    private let folder: String
    private let maxBytes: Int64
    private let library: PhotoLibrary
    private let starting = Mutex<Task<Bool, Never>?>(nil)

    /// - Parameters:
    ///   - folder: the folder of videos that are being rendered; created on first use
    ///   - maxBytes: the maximum number of bytes of a video
    init(
        resources: ResourceFolder,
        workers: WorkerPool,
        folder: String,
        maxBytes: Int64,
        library: PhotoLibrary,
        report: @escaping @Sendable (ResourceJobRunner.WorkerFault) async -> Void
    ) {
        self.resources = resources
        self.workers = workers
        self.folder = folder
        self.maxBytes = maxBytes
        self.library = library
        runner = ResourceJobRunner(workers, resources: resources, report: report)
        files = WorkerFileJob(runner, folder: folder, maxBytes: maxBytes)
    }

    /// Renders a video and uploads it.
    ///
    /// - Parameter progress: called with the fraction that is rendered, 0...1
    func render(
        _ video: AssetResource,
        _ list: AdjustmentList,
        _ priority: WorkerPriority,
        progress: @escaping @Sendable (Double) -> Void
    ) async throws(RPCError) -> Render {
        var (render, file) = try await file(video, list, nil, maxBytes, priority, progress: progress)
        defer { try? file.close() }
        render.upload = try await library.upload(file)
        return render
    }

    /// Renders a video in a size, and returns its bytes.
    ///
    /// - Parameter maximumSide: the longer side, in pixels
    func preview(
        _ video: AssetResource,
        _ list: AdjustmentList,
        maximumSide: Int,
        maxBytes: Int
    ) async throws(RPCError) -> Render {
        var (render, file) = try await file(video, list, maximumSide, Int64(maxBytes), .high) { _ in }
        defer { try? file.close() }
        do {
            let size = Int(try file.seek(offset: 0, from: .end))
            render.bytes = try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                while count < size {
                    let part = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
                    let read = try file.read(fromAbsoluteOffset: Int64(count), into: part)
                    guard read > 0 else { break }
                    count += read
                }
            }
        } catch {
            throw .videoNotWritten(errno: (error as? Errno)?.rawValue ?? EIO, folder: folder)
        }
        return render
    }

    /// Renders a video into a file without a name.
    private func file(
        _ video: AssetResource,
        _ list: AdjustmentList,
        _ maximumSide: Int?,
        _ maxBytes: Int64,
        _ priority: WorkerPriority,
        progress: @escaping @Sendable (Double) -> Void
    ) async throws(RPCError) -> (Render, FileDescriptor) {
        await start()
        let source = try resources.open(video.digest)
        let plan = VideoRenderPlan(video, list, maximumSide: maximumSide, maxBytes: min(maxBytes, self.maxBytes))
        let job = WorkerJob(method: VideoEditWorker.renderMethod, params: plan.json, files: [source.descriptor])
        let length = Double(max(1, list.lengthOfPart(of: video.duration ?? 0)))
        let output: (descriptor: Int32, result: WorkerResult)
        do throws(WorkerFileJob.Failure) {
            output = try await files.run(job, over: video.digest, priority: priority) { time in
                progress(min(1, Double(time) / length))
            }
        } catch {
            switch error {
            case .worker(let failure): throw failure.rpcError
            case .notWritten(let number): throw .videoNotWritten(errno: number, folder: folder)
            case .malformed: throw .invalidResult(expected: "a video")
            }
        }
        let file = FileDescriptor(rawValue: output.descriptor)
        withExtendedLifetime(source) {}
        guard let render = try? Render(json: output.result.result) else {
            try? file.close()
            throw .invalidResult(expected: "a video")
        }
        return (render, file)
    }

    /// Starts the worker on first use, because many libraries have no videos to edit.
    private func start() async {
        let task = starting.withLock { starting in
            if let starting { return starting }
            let task = Task { [workers] in (try? await workers.start(isRequired: false)) != nil }
            starting = task
            return task
        }
        if await task.value { return }
        // The next video starts it again.
        starting.withLock { starting in
            if starting == task { starting = nil }
        }
    }
}

extension AdjustmentList {
    /// Returns the length of the part of a video that the list keeps, in microseconds, before its speed is changed.
    func lengthOfPart(of duration: Int64) -> Int64 {
        guard let range = operations.last(where: { $0.kind == .timeRange && !$0.isNeutral }) else { return duration }
        return min(duration, Int64(range.number("end") * 1e6)) - Int64(range.number("start") * 1e6)
    }
}
