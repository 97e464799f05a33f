import Hosting

/// The program: the service, or a worker process that reads files for it.
package enum CatalogProgram {
    /// Runs the command of the arguments, or the worker; never returns.
    package static func run() -> Never {
        ServiceProgram.run(CatalogCommand.self) { WorkerProcess.serve(MetadataExtractor.handle) }
    }
}
