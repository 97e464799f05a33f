import Foundation
import Hosting
import Imaging

/// The program: the service, or the worker process that renders images for it.
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
