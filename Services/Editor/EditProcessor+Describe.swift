import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Edits as files for other programs.
extension EditProcessor {
    /// Handles `edits.describe`.
    func describe(_ describe: DescribeEdit, _ context: RequestContext) async throws(RPCError) -> Reply {
        guard describe.asset != nil || describe.adjustments != nil && describe.form != .convert else {
            throw describe.form == .convert ? .describesNoAsset : .describesNothing
        }
        var digest: String?
        var list = describe.adjustments ?? AdjustmentList()
        if let id = describe.asset {
            if describe.adjustments == nil { list = try await self.list(of: id) }
            let found = try await catalog.asset(id)
            let original = try EditPlan.original(of: found.asset)
            guard found.asset.mediaType != .video || describe.form != .convert else {
                throw .noCommand(for: found.asset)
            }
            let base = (found.asset.resource(.adjustmentBasePhoto) ?? original).digest
            try found.requireNotQuarantined(base)
            if describe.form == .convert {
                let access = NetworkAccess(isAllowed: describe.isNetworkAccessAllowed, client: context)
                try await require(base, of: found, access)
            }
            digest = base
        }
        var files: [ResourceFile] = []
        if let digest, describe.form == .convert { files.append(try resources.open(digest)) }
        let job = WorkerJob(
            method: EditWorker.describeMethod,
            params: [
                "plan": RenderPlan(digest: digest ?? "", adjustments: list).json,
                "form": .string(describe.form.rawValue),
            ],
            files: files.map(\.descriptor)
        )
        let result: WorkerResult
        do throws(WorkerFailure) { result = try await workers.run(job, over: digest, priority: .high) } catch {
            throw error.rpcError
        }
        let bytes = withExtendedLifetime(files) { result.attachments.first ?? [] }
        guard bytes.count <= largestAttachment else {
            throw .descriptionTooLarge(bytes.count, limit: largestAttachment)
        }
        return Reply(describe.form.result.json, attachments: [bytes])
    }
}

extension DescribeEdit.Form {
    fileprivate var result: DescribeEdit.Result {
        switch self {
        case .cube: DescribeEdit.Result(mimeType: "text/plain", filename: "edit.cube")
        case .hald: DescribeEdit.Result(mimeType: "image/png", filename: "edit.png")
        case .convert: DescribeEdit.Result(mimeType: "application/x-sh", filename: "edit.sh")
        }
    }
}
