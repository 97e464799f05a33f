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

    @Test func `a list is decoded from its own JSON, which is canonical`() throws {
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

    @Test func `each error names the operation, the member and the allowed values`() {
        let bad: [(String, Int?, String?, AdjustmentError.Reason)] = [
            ("[]", nil, nil, .malformed), (#"{"version":2,"operations":[]}"#, nil, "version", .unknownVersion),
            (#"{"operations":[]}"#, nil, "version", .unknownVersion),
            (#"{"version":1}"#, nil, "operations", .malformed),
            (#"{"version":1,"operations":[],"x":1}"#, nil, "x", .unknownMember),
            (#"{"version":1,"operations":[{"operation":"flip"},7]}"#, 1, "operation", .malformed),
            (#"{"version":1,"operations":[{"operation":"glow"}]}"#, 0, "operation", .unknownOperation),
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
        let largest = AdjustmentList(operations: Array(repeating: .flip(.horizontal), count: 64))
        #expect(throws: Never.self) { try AdjustmentList(json: largest.json) }
    }

    @Test func `default, neutral value and limits of every member are accepted`() throws {
        for kind in AdjustmentKind.all {
            #expect(!kind.meaning.isEmpty)
            let byDefault = try list("{\"version\":1,\"operations\":[{\"operation\":\"\(kind.rawValue)\"}]}")
            #expect(byDefault.operations.first?.kind == kind)
            for parameter in kind.parameters {
                #expect(!parameter.unit.isEmpty)
                guard case .number(let range) = parameter.domain else { continue }
                for (edge, isAllowed) in [
                    (range.lowerBound, true), (range.upperBound, true), (range.upperBound + 0.01, false),
                    (range.lowerBound - 0.01, false),
                ] {
                    let members: JSONObject = [parameter.name: .double(edge)]
                    do {
                        _ = try Adjustment(kind, members)
                        #expect(isAllowed, "\(kind) \(parameter.name) \(edge)")
                    } catch {
                        // Some values are allowed only in combination with others: two corners may not coincide.
                        let isContradiction = [.crop, .levels, .perspective, .timeRange].contains(kind)
                        #expect(!isAllowed || isContradiction, "\(kind) \(parameter.name) \(edge)")
                        #expect(error.reason == .outOfRange && error.member != nil && !error.allowed.isEmpty)
                    }
                }
            }
            let deciding = kind.parameters.filter { !$0.isModifier }
            guard deciding.allSatisfy({ $0.neutral != nil }) else { continue }
            var object: JSONObject = ["operation": .string(kind.rawValue)]
            for parameter in deciding { object[parameter.name] = parameter.neutral?.json }
            #expect(try AdjustmentList(json: ["version": 1, "operations": [.object(object)]]).isNeutral, "\(kind)")
        }
        #expect(!AdjustmentList(operations: [.flip(.horizontal)]).isNeutral)
    }

    @Test func `contradictory curves, levels and corners are refused with the name of the member`() {
        let bad: [(String, String)] = [
            (#"{"operation":"curve","master":[[0,0]]}"#, "master"),
            (#"{"operation":"curve","red":[[0,0],[0.5,1.5]]}"#, "red"),
            (#"{"operation":"curve","blue":[[0.5,0],[0.4,1]]}"#, "blue"),
            (#"{"operation":"levels","black":0.6,"white":0.5}"#, "white"),
            (#"{"operation":"perspective","topLeftX":1,"topRightX":0}"#, "topLeftX"),
            (
                #"{"operation":"perspective","topLeftX":0.5,"topLeftY":0.5,"bottomRightX":0.5,"bottomRightY":0.5}"#,
                "topLeftX"
            ),
            (#"{"operation":"textWatermark","text":"a\u0007"}"#, "text"),
            (#"{"operation":"textWatermark","text":"a","colour":"red"}"#, "colour"),
            (#"{"operation":"pictureWatermark","picture":"not base 64"}"#, "picture"),
            (#"{"operation":"resize","width":1.5}"#, "width"),
        ]
        for (text, member) in bad {
            let error = error("{\"version\":1,\"operations\":[\(text)]}")
            #expect(error?.member == member && error?.reason == .outOfRange, "\(text): \(error?.description ?? "")")
        }
    }

    @Test func `the schema has every operation, its members, the ordered stages and the forward rule`() {
        let schema = AdjustmentList.schema
        let operations = schema["properties"]?["operations"]?["items"]?["oneOf"]?.arrayValue ?? []
        #expect(operations.compactMap { $0["title"]?.stringValue } == AdjustmentKind.all.map(\.rawValue))
        for (kind, operation) in zip(AdjustmentKind.all, operations) {
            let names = operation["properties"]?.objectValue?.members.map(\.name) ?? []
            #expect(names == ["operation"] + kind.parameters.map(\.name))
            #expect(operation["additionalProperties"] == false)
        }
        #expect(
            schema["x-stages"]?.arrayValue?.compactMap { $0["stage"]?.stringValue } == [
                "geometry", "cleaning", "colour", "detail", "effect", "finish", "overlay", "frame", "film",
            ]
        )
        #expect(schema["x-forward"]?.stringValue?.contains("refuses the whole list") == true)
    }

    @Test func `random lists are decoded from their own JSON text`() throws {
        for seed in UInt64(1)...50 {
            var generator = SeededRandom(seed: seed)
            let list = AdjustmentList.random(count: Int.random(in: 0...64, using: &generator), using: &generator)
            #expect(try AdjustmentList(json: JSON(parsing: list.json.text)) == list, "seed \(seed)")
        }
    }
}

extension AdjustmentList {
    /// Returns a list of random operations with random allowed values.
    static func random(count: Int, using generator: inout SeededRandom) -> AdjustmentList {
        var operations: [Adjustment] = []
        while operations.count < count {
            let kind = AdjustmentKind.all.randomElement(using: &generator) ?? .exposure
            var members = JSONObject()
            for parameter in kind.parameters { members[parameter.name] = parameter.random(using: &generator) }
            if kind == .crop {
                for name in ["x", "y"] { members[name] = .double(Double.random(in: 0...0.3, using: &generator)) }
                for name in ["width", "height"] {
                    members[name] = .double(Double.random(in: 0.3...0.7, using: &generator))
                }
            }
            if let operation = try? Adjustment(kind, members) { operations.append(operation) }
        }
        return AdjustmentList(operations: operations)
    }
}

extension AdjustmentParameter {
    fileprivate func random(using generator: inout SeededRandom) -> JSON {
        switch domain {
        case .number(let range): .double(Double.random(in: range, using: &generator))
        case .whole(let range): JSON(Int.random(in: range, using: &generator))
        case .choice(let values): (values.randomElement(using: &generator) ?? defaultValue).json
        case .points:
            .array(
                (0..<Int.random(in: 2...16, using: &generator)).map { index in
                    [.double(Double(index) / 16), .double(Double.random(in: 0...1, using: &generator))]
                }
            )
        case .text: .string("text \(Int.random(in: 0...99, using: &generator))")
        case .colour: "#12ab9f"
        case .picture, .table: .string("")
        }
    }
}
