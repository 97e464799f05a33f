import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct AdjustmentListTests {
    private func list(_ text: String) throws -> AdjustmentList {
        try AdjustmentList(json: JSON(parsing: text))
    }

    private func error(_ text: String) -> AdjustmentError? {
        #expect(throws: AdjustmentError.self) { try list(text) }
    }

    @Test func `a list reads back equal, and its JSON is canonical`() throws {
        let text = """
            {"operations":[{"value":0.5,"operation":"exposure"},{"operation":"contrast","value":-1},
            {"operation":"saturation","value":0},{"operation":"temperature","value":1},{"operation":"blackAndWhite"},
            {"operation":"crop","width":0.5,"x":0.25},{"operation":"straighten","value":-12.5},
            {"operation":"rotate","value":270.0},{"operation":"flip","value":"vertical"}],"version":1}
            """
        let list = try list(text)
        #expect(
            list.operations == [
                .exposure(0.5), .contrast(-1), .saturation(0), .temperature(1), .blackAndWhite(1),
                .crop(UnitRect(x: 0.25, y: 0, width: 0.5, height: 1)), .straighten(-12.5), .rotate(.threeQuarters),
                .flip(.vertical),
            ]
        )
        #expect(
            list.json.text == """
                {"version":1,"operations":[{"operation":"exposure","value":0.5},{"operation":"contrast","value":-1.0},\
                {"operation":"saturation","value":0.0},{"operation":"temperature","value":1.0},\
                {"operation":"blackAndWhite","value":1.0},\
                {"operation":"crop","x":0.25,"y":0.0,"width":0.5,"height":1.0},\
                {"operation":"straighten","value":-12.5},\
                {"operation":"rotate","value":270},{"operation":"flip","value":"vertical"}]}
                """
        )
        #expect(try AdjustmentList(json: list.json) == list)
    }

    @Test func `each refusal names the operation, the member and what is allowed`() {
        let bad: [(String, Int?, String?, AdjustmentError.Reason)] = [
            ("[]", nil, nil, .malformed), (#"{"version":2,"operations":[]}"#, nil, "version", .unknownVersion),
            (#"{"operations":[]}"#, nil, "version", .unknownVersion),
            (#"{"version":1}"#, nil, "operations", .malformed),
            (#"{"version":1,"operations":[],"x":1}"#, nil, "x", .unknownMember),
            (#"{"version":1,"operations":[{"operation":"flip"},7]}"#, 1, "operation", .malformed),
            (#"{"version":1,"operations":[{"operation":"blur"}]}"#, 0, "operation", .unknownOperation),
            (#"{"version":1,"operations":[{"operation":"exposure","value":5.01}]}"#, 0, "value", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"exposure","value":"1"}]}"#, 0, "value", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"exposure","value":null}]}"#, 0, "value", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"exposure","stops":1}]}"#, 0, "stops", .unknownMember),
            (#"{"version":1,"operations":[{"operation":"rotate","value":45}]}"#, 0, "value", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"flip","value":"diagonal"}]}"#, 0, "value", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"crop","width":0}]}"#, 0, "width", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"crop","x":0.6,"width":0.5}]}"#, 0, "width", .outOfRange),
            (#"{"version":1,"operations":[{"operation":"crop","y":0.6,"height":0.5}]}"#, 0, "height", .outOfRange),
        ]
        for (text, index, member, reason) in bad {
            let error = error(text)
            #expect(error?.index == index, "\(text)")
            #expect(error?.member == member, "\(text)")
            #expect(error?.reason == reason, "\(text)")
            #expect(error?.allowed.isEmpty == false, "\(text)")
        }
        #expect(
            error(#"{"version":1,"operations":[{"operation":"exposure","value":9}]}"#)?.description.contains(
                "-5.0...5.0"
            ) == true
        )
        let many = AdjustmentList(operations: Array(repeating: .flip(.horizontal), count: 65))
        #expect(throws: AdjustmentError.self) { try AdjustmentList(json: many.json) }
        let most = AdjustmentList(operations: Array(repeating: .flip(.horizontal), count: 64))
        #expect(throws: Never.self) { try AdjustmentList(json: most.json) }
    }

    @Test func `the table holds a default, a neutral value and limits that it accepts itself`() throws {
        for kind in AdjustmentKind.all {
            #expect(!kind.meaning.isEmpty)
            let byDefault = try list("{\"version\":1,\"operations\":[{\"operation\":\"\(kind.rawValue)\"}]}")
            #expect(byDefault.operations.first?.kind == kind)
            for parameter in kind.parameters {
                guard case .number(let range) = parameter.domain else { continue }
                for edge in [range.lowerBound, range.upperBound] where kind != .crop {
                    let text = "{\"version\":1,\"operations\":[{\"operation\":\"\(kind.rawValue)\",\"value\":\(edge)}]}"
                    #expect(throws: Never.self) { try list(text) }
                }
            }
            let neutral = kind.parameters.compactMap(\.neutral)
            guard neutral.count == kind.parameters.count else { continue }
            var object: JSONObject = ["operation": .string(kind.rawValue)]
            for parameter in kind.parameters { object[parameter.name] = parameter.neutral?.json }
            #expect(try AdjustmentList(json: ["version": 1, "operations": [.object(object)]]).isNeutral, "\(kind)")
        }
        #expect(AdjustmentList.documentation["operations"]?.arrayValue?.count == AdjustmentKind.allCases.count)
        #expect(!AdjustmentList(operations: [.flip(.horizontal)]).isNeutral)
    }

    @Test func `random lists survive the way to JSON text and back`() throws {
        for seed in UInt64(1)...50 {
            var numbers = SeededRandom(seed: seed)
            let list = AdjustmentList.random(count: Int.random(in: 0...64, using: &numbers), using: &numbers)
            #expect(try AdjustmentList(json: JSON(parsing: list.json.text)) == list, "seed \(seed)")
        }
    }
}

extension AdjustmentList {
    static func random(count: Int, using numbers: inout SeededRandom) -> AdjustmentList {
        AdjustmentList(
            operations: (0..<count).map { _ in
                switch Int.random(in: 0..<9, using: &numbers) {
                case 0: .exposure(Double.random(in: -5...5, using: &numbers))
                case 1: .contrast(Double.random(in: -1...1, using: &numbers))
                case 2: .saturation(Double.random(in: -1...1, using: &numbers))
                case 3: .temperature(Double.random(in: -1...1, using: &numbers))
                case 4: .blackAndWhite(Double.random(in: 0...1, using: &numbers))
                case 5:
                    .crop(
                        UnitRect(
                            x: Double.random(in: 0...0.3, using: &numbers),
                            y: Double.random(in: 0...0.3, using: &numbers),
                            width: Double.random(in: 0.3...0.7, using: &numbers),
                            height: Double.random(in: 0.3...0.7, using: &numbers)
                        )
                    )
                case 6: .straighten(Double.random(in: -45...45, using: &numbers))
                case 7: .rotate(Adjustment.QuarterTurn.allCases.randomElement(using: &numbers) ?? .half)
                default: .flip(Adjustment.Axis.allCases.randomElement(using: &numbers) ?? .vertical)
                }
            }
        )
    }
}
