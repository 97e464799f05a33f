import JSONValue
import Storage

/// An alias, so that only `*Store` files and this one depend on the database's own types.
typealias DatabaseFileOptions = DatabaseFile.Options

extension LibraryReader {
    /// Returns the usual counts of the library.
    func metrics() throws -> JSONObject {
        let head = try head()
        var counts = JSONObject()
        for name in ["assets", "visible", "visible.image", "visible.video", "visible.favorite", "hidden"] {
            counts[name] = JSON(try counter(name))
        }
        counts["library"] = .string(head.library)
        counts["oldest"] = .int(head.oldest)
        counts["historyBytes"] = JSON(try history.bytes())
        counts["editsAccepted"] = JSON(try edits.pending())
        counts["editsFinished"] = JSON(try edits.finished())
        return counts
    }
}
