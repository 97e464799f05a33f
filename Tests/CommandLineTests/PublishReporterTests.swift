import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Testing

@testable import CommandLine

/// The counts that `safelight publish` reports.
@Suite(.timeLimit(.minutes(1)))
struct PublishReporterTests {
    @Test func `an edit whose acceptance was not received counts as accepted when it is applied`() throws {
        var reporter = PublishReporter(output: Output(json: false), isVerbose: false, goal: .applied)
        var random = SystemRandomNumberGenerator()
        let lines = try (1...3).map { number in
            let asset = ObjectID(.asset, milliseconds: 1, using: &random)
            let text =
                #"{"id": "\#(number)", "asset": "\#(asset.text)", "adjustments": "#
                + #"{"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}}"#
            return try #require(try PublishedLine(Array(text.utf8), number: number, name: "run") { _ in nil })
        }
        for line in lines { reporter.recordPublished(line) }
        func report(_ index: Int, _ state: PublishedEditState) throws {
            let edit = PublishedEdit(id: lines[index].edit.id, asset: lines[index].edit.asset, state: state)
            try reporter.record(EditStatus(edit: edit, sequence: 1, digest: ""))
        }
        // The first is applied before its acceptance is received, the second after it, the third is only accepted.
        try report(0, .applied)
        try report(1, .accepted)
        try report(1, .applied)
        try report(2, .accepted)
        #expect((reporter.published, reporter.accepted, reporter.applied) == (3, 3, 2))
    }
}
