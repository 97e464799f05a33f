import Basics
import CZeroMQ

/// A ZAP request: libzmq asks whether a connection may be made.
struct ZAPRequest {
    /// The decision about the connection.
    enum Decision: Equatable {
        /// The connection is made, with this user id.
        case admitted(String)
        case refused
        /// It is not known yet whether the owner of the key may connect.
        case undecided
        /// The client is disconnected without an error, and reconnects by itself.
        case later
    }

    private let routing: Bytes
    private let id: Bytes
    let domain: String
    let address: String
    /// The client's key; nil if the mechanism is not CURVE.
    let key: CurvePublicKey?

    /// Parses a request; nil if it is malformed and cannot be answered.
    init?(_ message: IncomingMessage) {
        let frames = message.frames
        guard message.violation == nil, frames.count >= 8, frames[1].isEmpty, frames[2] == Bytes("1.0".utf8) else {
            return nil
        }
        routing = frames[0]
        id = frames[3]
        domain = String(decoding: frames[4], as: UTF8.self)
        address = String(decoding: frames[5], as: UTF8.self)
        let isCurve = frames[7] == Bytes("CURVE".utf8) && frames.count == 9
        key = isCurve ? CurvePublicKey(bytes: frames[8]) : nil
    }

    /// Returns the reply to libzmq.
    func reply(_ decision: Decision) -> OutgoingMessage {
        let texts =
            switch decision {
            case .admitted(let userID): ["200", "OK", userID]
            case .refused: ["400", "this key is not on the list", ""]
            case .undecided, .later: ["300", "try again", ""]
            }
        return OutgoingMessage([routing, [], Bytes("1.0".utf8), id] + texts.map { Bytes($0.utf8) } + [[]])
    }
}
