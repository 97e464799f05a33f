import Hosting

/// The program: the service, or the process that reads pictures for it.
@main
enum Program {
    static func main() {
        ServiceProgram.run(CatalogCommand.self) { WorkerProcess.serve(PictureReader.handle) }
    }
}
