public import Dispatch
import Contracts
import Foundation
import Messaging
import PhotoClient

extension PHPhotoLibrary {
    /// The addresses and options of a library's connections. PhotoKit has no counterpart: on a device there is one
    /// library.
    public struct Configuration: Sendable {
        /// The folder of the services' sockets.
        public var runFolder: String
        /// The host of services on another machine, with the first of six ports, for example `192.168.1.5:5571`; nil
        /// for the sockets in ``runFolder``. Services on other machines also need ``keys``.
        public var host: String?
        /// The keys for connections over TCP.
        public var keys: Keys?
        /// The name of this program, at most 128 bytes. It is recorded as the author of changes.
        public var client: String
        /// The reason why the program needs access, which the owner reads: `NSPhotoLibraryUsageDescription`.
        public var purpose: String
        /// The time in which a request must be answered. It includes waiting for services that restart.
        public var deadline: Duration = .seconds(30)
        /// The serial queue of completion and result handlers. PhotoKit uses the main queue or one of its own for them.
        /// Use `.main` in a program that runs its main queue.
        public var callbackQueue = DispatchQueue(label: "photokit.callbacks")

        /// The keys of CURVE as Z85 text of 40 characters each, from the files that `safelight keys` writes.
        public struct Keys: Sendable {
            /// The public key of the services.
            public var server: String
            /// The public key of this program.
            public var publicKey: String
            /// The secret key of this program.
            public var secretKey: String

            public init(server: String, publicKey: String, secretKey: String) {
                self.server = server
                self.publicKey = publicKey
                self.secretKey = secretKey
            }

            func security() throws -> SocketSecurity {
                guard let server = CurvePublicKey(server), let own = CurvePublicKey(publicKey),
                    let secret = CurveSecretKey(secretKey), let pair = CurveKeyPair(publicKey: own, secretKey: secret)
                else { throw PHPhotosError(.invalidOptions, "the keys are not a pair of CURVE keys as Z85 text") }
                return .curveClient(serverPublicKey: server, keys: pair)
            }
        }

        /// Creates a configuration from the environment: `SAFELIGHT_RUN`, else `$XDG_RUNTIME_DIR/safelight`, else
        /// `/tmp/safelight-<uid>`; and the name of the program.
        public init() {
            let environment = ProcessInfo.processInfo.environment
            if let folder = environment["SAFELIGHT_RUN"] {
                runFolder = folder
            } else if let folder = environment["XDG_RUNTIME_DIR"] {
                runFolder = folder + "/safelight"
            } else {
                runFolder = "/tmp/safelight-\(getuid())"
            }
            client = String(ProcessInfo.processInfo.processName.prefix(32))
            purpose = "\(client) did not state its purpose"
        }

        /// Creates a configuration for the sockets in a folder.
        public init(runFolder: String, client: String, purpose: String) {
            self.init()
            self.runFolder = runFolder
            self.client = client
            self.purpose = purpose
        }

        func endpoints() throws -> ServiceEndpoints {
            let services = try remote()
            func address(_ name: String, _ offset: Int) throws -> EndpointAddress {
                guard let services else { return try EndpointAddress("ipc://\(runFolder)/\(name).sock") }
                return try EndpointAddress("tcp://\(services.host):\(services.port + offset)")
            }
            return ServiceEndpoints(
                catalog: try address("catalog", 0),
                thumbnailer: try address("thumbnailer", 1),
                editor: try address("editor", 2),
                changeBroker: try address("change-broker", 3),
                feed: try address("feed", 4),
                edits: try address("edits", 5),
                security: try keys?.security() ?? .none
            )
        }

        /// Returns ``host`` without its port, and the first port; nil if there is no host.
        private func remote() throws -> (host: String, port: Int)? {
            guard let host else { return nil }
            if host.count(where: { $0 == ":" }) > 1, !host.hasPrefix("[") { return ("[\(host)]", 5571) }
            guard let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") else { return (host, 5571) }
            // The last of the six ports is at most 65535.
            guard let port = UInt16(host[host.index(after: colon)...]), (1...65_530).contains(port) else {
                throw PHPhotosError(.invalidOptions, "\(host): the port must be a number from 1 to 65530")
            }
            return (String(host[..<colon]), Int(port))
        }
    }
}
