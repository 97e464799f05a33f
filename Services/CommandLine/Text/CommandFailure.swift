import Hosting
import JSONValue
import PhotoModel

/// The error with which a command ends.
struct CommandFailure: Error {
    /// The exit status of the program; 0 is success.
    enum Status: Int32 {
        case refused = 1
        /// The arguments are invalid.
        case usage = 2
        /// Some of the work was done; the output names the rest.
        case partly = 3
    }

    var message: String
    /// The stable error name, as in the tables of the page about operations.
    var name: String
    var status = Status.refused
    var data: JSONObject = [:]

    static func usage(_ message: String) -> CommandFailure {
        CommandFailure(message: message, name: "usage", status: .usage)
    }

    var json: JSON {
        var object: JSONObject = ["name": .string(name), "message": .string(message)]
        if !data.isEmpty { object["data"] = .object(data) }
        return ["error": .object(object)]
    }

    /// Converts any error of the modules below.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as RPCError:
            self.init(message: Self.message(error), name: error.name, data: error.data)
        case let error as PredicateError:
            self.init(message: "\(error)".dropping(prefix: error.name.rawValue + ": "), name: error.name.rawValue)
            status = .usage
        case let error as AdjustmentError:
            self.init(message: "\(error)", name: "invalid_params", status: .usage)
        case let error as HostingError:
            self.init(error)
        case let error as KeyError:
            self.init(message: "\(error)", name: "keys")
        case is CancellationError:
            self.init(message: "stopped", name: "user_cancelled")
        default:
            self.init(message: "\(error)", name: "error")
        }
    }

    /// Creates the error of one of several items.
    init(_ error: RPCError, of name: some CustomStringConvertible) {
        self.init(message: "\(name): \(Self.message(error))", name: error.name)
    }

    /// Creates the error that ended the work on many assets or other items: a partial success if some were done.
    init(_ error: any Error, after done: Int, of count: Int, _ noun: String = "asset") {
        self.init(error)
        guard done > 0 else { return }
        message = "stopped after \(done) of \(QuantityFormatter.count(count, noun)): \(message)"
        status = .partly
    }

    /// Returns the message. Its advice is for this program, not for the protocol.
    private static func message(_ error: RPCError) -> String { message(error.message, name: error.name) }

    private static func message(_ message: String, name: String) -> String {
        guard name == "network_access_required" else { return message }
        return "the original is only in the object store; give --download, or download it with `safelight storage keep`"
    }

    /// Returns the message of one of several results: an object with `name` and `message`.
    static func message(ofResult error: JSON) -> String {
        message(error["message"]?.stringValue ?? "", name: error["name"]?.stringValue ?? "").printable
    }

    private init(_ error: HostingError) {
        switch error {
        case .badSetting: self.init(message: error.description, name: "usage", status: .usage)
        case .noRunFolder: self.init(message: error.description, name: "unavailable")
        case .unsafeRunFolder, .runFolder: self.init(message: error.description, name: "run_folder")
        case .alreadyRunning: self.init(message: error.description, name: "already_running")
        case .cannotLock: self.init(message: error.description, name: "cannot_lock")
        }
    }

    init(message: String, name: String, status: Status = .refused, data: JSONObject = [:]) {
        self.message = message
        self.name = name
        self.status = status
        self.data = data
    }
}

extension String {
    fileprivate func dropping(prefix: String) -> String { hasPrefix(prefix) ? String(dropFirst(prefix.count)) : self }
}
