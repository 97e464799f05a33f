import Hosting

/// The program: the service, or a worker process that reads files for it.
@main
enum Program {
    static func main() {
        ServiceProgram.run(CatalogCommand.self) { WorkerProcess.serve(MetadataExtractor.handle) }
    }
}
