import Hosting
import Imaging

/// The program: the service, or the worker process that decodes images for it.
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
