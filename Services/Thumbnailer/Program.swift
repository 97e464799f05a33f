import Hosting
import Imaging

/// The program: the service, or a worker process that decodes images for it. A ``WorkerPool`` of the service starts
/// this executable again with the argument `worker`.
@main
enum Program {
    static func main() {
        ServiceProgram.run(ThumbnailerCommand.self) {
            ImagingLibrary.start()
            ImagingLibrary.observeStages { WorkerProcess.enter($0 == .reading ? .reading : .working) }
            WorkerProcess.serve(ThumbnailWorker.handle)
        }
    }
}
