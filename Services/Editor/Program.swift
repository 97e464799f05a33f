import Foundation
import Hosting
import Imaging

/// The program: the service, or a worker process that renders images for it. A ``WorkerPool`` of the service starts
/// this executable again with the argument `worker`.
@main
enum Program {
    static func main() {
        ServiceProgram.run(EditorCommand.self) {
            ImagingLibrary.start(threads: min(4, ProcessInfo.processInfo.activeProcessorCount))
            ImagingLibrary.observeStages { WorkerProcess.enter($0 == .reading ? .reading : .working) }
            WorkerProcess.serve(EditWorker.handle)
        }
    }
}
