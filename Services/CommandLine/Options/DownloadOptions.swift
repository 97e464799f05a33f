import ArgumentParser

/// The flag of commands that need originals.
struct DownloadOptions: ParsableArguments {
    @Flag(help: "Download originals that are only in the object store. Without it, they are an error.")
    var download = false

    /// Returns the deadline of a request: none if it may download, which takes any time.
    func deadline(_ usual: Duration) -> Duration? { download ? nil : usual }
}
