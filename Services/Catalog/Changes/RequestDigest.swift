import Basics
import Contracts
import JSONValue
import PhotoModel

/// The digest of a `changes.perform`, by which a repeated transaction is recognized.
///
/// It is stored with the outcome, so its input must never change: the parameters with the members of every object
/// sorted. Updates of flags and the rating are written in that form directly; a test compares it with the sorted tree.
enum RequestDigest {
    /// Returns a digest, 32 bytes: of the digest that a service passes for its client's request or else of the
    /// parameters in canonical form and every attachment. A call that recalls an outcome has the digest of the call
    /// that it recalls.
    static func digest(of call: PerformChanges, _ attachments: [Bytes]) -> [UInt8] {
        if let passed = call.requestDigest { return SHA256.hash(data: Array("request:\(passed)".utf8)).bytes }
        var call = call
        call.recalls = false
        var hash = SHA256()
        hash.update(data: SHA256.hash(data: canonical(call)).bytes)
        for attachment in attachments { hash.update(data: SHA256.hash(data: attachment).bytes) }
        return hash.finalize().bytes
    }

    /// Returns the digest of the requests for which the owner is asked for consent. It ignores a digest that the client
    /// passes, so that consent to one transaction is not consent to another.
    ///
    /// A client that repeats a transaction uploads its files again, so the bytes of uploads count and not their names.
    ///
    /// - Parameter uploads: the digests of the uploads' bytes, by their names
    static func consentDigest(
        of call: PerformChanges,
        _ attachments: [Bytes],
        uploads: [String: String]
    ) -> [UInt8] {
        var call = call
        call.requestDigest = nil
        call.requests = call.requests.map { $0.with(uploads) }
        return digest(of: call, attachments)
    }

    /// Returns the canonical JSON of the parameters.
    static func canonical(_ call: PerformChanges) -> [UInt8] {
        var writer = JSONWriter(capacity: 256 + call.requests.count * 96)
        if call.onBehalfOf == nil, call.requestDigest == nil, !call.recalls {
            writer.writeObject { writer in
                if !call.client.isEmpty {
                    writer.append(",\"client\":")
                    writer.write(call.client)
                }
                writer.append(",\"requests\":")
                writer.writeList(count: call.requests.count) { write(call.requests[$1], to: &$0) }
                guard let transaction = call.transaction else { return }
                writer.append(",\"transaction\":")
                writer.write(transaction)
            }
            return writer.output
        }
        var rest = call
        rest.requests = []
        writer.writeObject { writer in
            for (name, value) in rest.json.canonical.objectValue?.members ?? [] {
                writer.append(",")
                writer.write(name)
                writer.append(":")
                if name == "requests" {
                    writer.writeList(count: call.requests.count) { write(call.requests[$1], to: &$0) }
                } else {
                    writer.write(value)
                }
            }
        }
        return writer.output
    }

    private static func write(_ request: ChangeRequest, to writer: inout JSONWriter) {
        if case .updateAsset(let update) = request, update.writeFlagsAndRating(to: &writer) { return }
        writer.write(request.json.canonical)
    }
}

extension ChangeRequest {
    /// Returns the request with the digests of uploads in place of their names.
    fileprivate func with(_ uploads: [String: String]) -> ChangeRequest {
        switch self {
        case .createAsset(var request):
            request.resources = request.resources.map { $0.with(uploads) }
            request.sidecar = request.sidecar.map { $0.with(uploads) }
            if let edit = request.edit { request.edit?.render = edit.render.with(uploads) }
            return .createAsset(request)
        case .editAsset(var request):
            request.render = request.render.with(uploads)
            request.pairedVideo = request.pairedVideo.map { $0.with(uploads) }
            return .editAsset(request)
        default: return self
        }
    }
}

extension NewResource {
    /// Returns the resource with the digest of its upload in place of the name.
    fileprivate func with(_ uploads: [String: String]) -> NewResource {
        var resource = self
        resource.upload = upload.map { uploads[$0] ?? $0 }
        return resource
    }
}
