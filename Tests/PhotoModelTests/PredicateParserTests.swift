import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct PredicateParserTests {
    private static let rating = #"{"key":"rating","op":">","value":3}"#
    private static let favorite = #"{"key":"isFavorite","op":"==","value":true}"#
    private static let photoHDR = #"{"key":"mediaSubtypes","mask":2,"op":"!=","value":0}"#
    private static let date = #"{"key":"creationDate","op":">=","value":1714521600000000}"#

    private static let durations = #"{"key":"duration","op":"in","value":[2,1000,90000000,3600000000]}"#
    private static let withoutKeywords = #"{"not":{"any":"keywords","op":"like","value":"*"}}"#
    private static let day =
        #"{"key":"creationDate","op":"between","value":[1714521600000000,1714607999999999]}"#

    static let readings: [(String, String)] = [
        ("rating > 3", rating), ("3 < rating", rating), ("(rating) > (3)", rating), ("rating>3", rating),
        ("  rating\n>\t3 ", rating), ("rating > 3.0", rating), ("rating > 0x3", rating), ("((rating > 3))", rating),
        ("NOT NOT rating > 3", rating), ("rating > 3 AND rating > 3", rating), ("rating > 3 && TRUEPREDICATE", rating),
        ("rating > 3 OR FALSEPREDICATE", rating), ("rating => 4", #"{"key":"rating","op":">=","value":4}"#),
        ("rating =< 4", #"{"key":"rating","op":"<=","value":4}"#),
        ("4 >= rating", #"{"key":"rating","op":"<=","value":4}"#),
        ("rating <> 4", #"{"key":"rating","op":"!=","value":4}"#),
        ("rating = -1", #"{"key":"rating","op":"==","value":-1}"#),
        ("favorite == YES", favorite), ("isFavorite = true", favorite), ("favorite == 1", favorite),
        ("isFavorite", favorite), ("(favorite)", favorite), ("TRUE == favorite", favorite),
        ("!isHidden", #"{"key":"isHidden","op":"==","value":false}"#),
        ("isHidden != YES", #"{"key":"isHidden","op":"==","value":false}"#),
        ("(mediaSubtypes & 2) != 0", photoHDR), ("(mediaSubtypes & 2) <> 0", photoHDR),
        ("mediaSubtypes & 2 != 0", photoHDR), ("((mediaSubtypes & 2) != 0)", photoHDR),
        ("0 != (2 & mediaSubtypes)", photoHDR), ("NOT (mediaSubtypes & 2) == 0", photoHDR),
        ("(mediaSubtypes & 'photoHDR') != 0", photoHDR),
        ("(mediaSubtypes & {'photoHDR','photoLive'}) == 8", #"{"key":"mediaSubtypes","mask":10,"op":"==","value":8}"#),
        ("(mediaSubtypes & 2) == 4", "false"), ("(mediaSubtypes & 2) != 4", "true"),
        ("mediaType == 1", #"{"key":"mediaType","op":"==","value":"image"}"#),
        ("mediaType IN {1, 'video'}", #"{"key":"mediaType","op":"in","value":["image","video"]}"#),
        ("mediaType IN {'video'}", #"{"key":"mediaType","op":"==","value":"video"}"#),
        ("duration > 60", #"{"key":"duration","op":">","value":60}"#),
        ("duration > 60 s", #"{"key":"duration","op":">","value":60000000}"#),
        ("duration > '1.5 s'", #"{"key":"duration","op":">","value":1500000}"#),
        ("duration IN {1 ms, 2 us, 1.5 min, 1 h}", durations),
        ("location == nil", #"{"key":"location.latitude","op":"==","value":null}"#),
        ("location != NULL", #"{"key":"location.latitude","op":"!=","value":null}"#),
        ("keywords.@count == 0", withoutKeywords), ("keywords.@count < 1", withoutKeywords),
        ("NOT keywords.@count > 0", withoutKeywords), ("!(keywords.@count != 0)", withoutKeywords),
        ("creationDate < '2024-05-01'", #"{"key":"creationDate","op":"<","value":1714521600000000}"#),
        ("creationDate <= '2024-05-01'", #"{"key":"creationDate","op":"<=","value":1714607999999999}"#),
        ("creationDate > '2024-05-01'", #"{"key":"creationDate","op":">","value":1714607999999999}"#),
        ("creationDate == '2024-05-01'", day), ("creationDate BETWEEN {'2024-05-01', '2024-05-01'}", day),
        ("creationDate IN {'2024-05-01'}", day), ("creationDate != '2024-05-01'", #"{"not":\#(day)}"#),
        ("pixelWidth BETWEEN {100, 200}", #"{"key":"pixelWidth","op":"between","value":[100,200]}"#),
        ("pixelWidth BETWEEN {100, 100}", #"{"key":"pixelWidth","op":"==","value":100}"#),
        ("pixelWidth BETWEEN {200, 100}", "false"), ("rating IN {}", "false"), ("rating < nil", "false"),
        ("rating IN {3, 1, 3}", #"{"key":"rating","op":"in","value":[1,3]}"#),
        (#"creationDate >= CAST("2024-05-01T00:00:00Z", "NSDate")"#, date),
        (#"creationDate >= "2024-05-01T02:00:00+02:00""#, date), ("creationDate >= '2024-05-01'", date),
        ("creationDate >= 1714521600000000", date), (#"creationDate >= CAST(736214400.000000, "NSDate")"#, date),
        ("caption CONTAINS[cd] 'ÉTÉ'", #"{"key":"caption","op":"contains","value":"ete","options":"cd"}"#),
        ("caption beginswith 'x'", #"{"key":"caption","op":"beginsWith","value":"x"}"#),
        ("caption LIKE[c] 'A*?'", #"{"key":"caption","op":"like","value":"a*?","options":"c"}"#),
        (#"caption LIKE 'a\*'"#, #"{"key":"caption","op":"like","value":"a\\*"}"#),
        (#"caption ENDSWITH "it\"s\n""#, #"{"key":"caption","op":"endsWith","value":"it\"s\n"}"#),
        ("caption ==[c] 'A'", #"{"key":"caption","op":"==","value":"a","options":"c"}"#),
        ("caption !=[c] 'A'", #"{"not":{"key":"caption","op":"==","value":"a","options":"c"}}"#),
        ("caption == 'e\u{301}'", #"{"key":"caption","op":"==","value":"é"}"#),
        ("caption == nil", #"{"key":"caption","op":"==","value":null}"#),
        ("NULL != caption", #"{"key":"caption","op":"!=","value":null}"#),
        ("NOT caption == NULL", #"{"key":"caption","op":"!=","value":null}"#),
        ("ANY keywords == 'cat'", #"{"any":"keywords","op":"==","value":"cat"}"#),
        ("any keywords contains[c] 'Cat'", #"{"any":"keywords","op":"contains","value":"cat","options":"c"}"#),
        ("NONE keywords IN {'b', 'a'}", #"{"not":{"any":"keywords","op":"in","value":["a","b"]}}"#),
        ("NEAR(1, -2.5, 100)", #"{"near":{"latitude":1.0,"longitude":-2.5,"radius":100.0}}"#),
        ("inside(-1, 170, 1, -170)", #"{"inside":{"south":-1.0,"west":170.0,"north":1.0,"east":-170.0}}"#),
        ("rating > 3 OR favorite == YES AND rating > 3", rating.or(favorite.and(rating))),
        ("(rating > 3 OR favorite == YES) AND rating > 3", rating.and(favorite.or(rating))),
        ("rating > 3 AND (favorite == YES AND rating > 3)", favorite.and(rating)),
        ("!(rating > 3 || favorite)", #"{"not":\#(favorite.or(rating))}"#),
    ]

    @Test(arguments: readings)
    func `text is parsed into a tree`(text: String, tree: String) throws {
        #expect(try Predicate(format: text, of: .asset).json.text == tree)
        #expect(try Predicate(json: JSON(parsing: tree), of: .asset).json.text == tree)
    }

    @Test(.spec("S-20"))
    func `a duration without a unit has the unit that the caller gives`() throws {
        func seconds(_ text: String, _ arguments: JSON...) throws -> String {
            try Predicate(format: text, arguments: arguments, of: .asset, durations: .seconds).json.text
        }
        let long = #"{"key":"duration","op":">","value":60000000}"#
        #expect(try seconds("duration > 60") == long && seconds("60 < duration") == long)
        #expect(try seconds("duration > %f", 60.0) == long && seconds("duration > %d", 60) == long)
        #expect(try seconds("duration > 60 s") == long && seconds("duration > '1 min'") == long)
        #expect(
            try seconds("duration BETWEEN %@", [0.5, 2])
                == #"{"key":"duration","op":"between","value":[500000,2000000]}"#
        )
        #expect(try seconds("duration IN {1, 2.5}") == #"{"key":"duration","op":"in","value":[1000000,2500000]}"#)
        // The form in which programs write "without a limit".
        let any = #"{"key":"duration","op":"<","value":1000000000000000}"#
        for maximum in [Double.infinity, .greatestFiniteMagnitude] {
            #expect(try seconds("duration < %f", .double(maximum)) == any)
        }
        for wrong: JSON in [.double(.nan), true] {
            let refused = #expect(throws: PredicateError.self) { try seconds("duration < %@", wrong) }
            #expect(refused?.message.contains("compared with seconds") == true)
        }
    }

    @Test func `an argument is always a value and never a part of the text`() throws {
        let id = RandomEntities.id(.asset, 7).text
        let hostile = "x' OR 1 == 1 OR 'x' == 'x\"); DROP TABLE asset; --"
        #expect(
            try Predicate(format: "%K == %@", arguments: ["caption", .string(hostile)], of: .asset).json
                == ["key": "caption", "op": "==", "value": .string(hostile)]
        )
        #expect(
            try Predicate(format: "SELF IN %@ AND rating > %d", arguments: [[.string(id)], 3], of: .asset)
                == Predicate(format: "rating > 3 AND localIdentifier == '\(id)'", of: .asset)
        )
        #expect(
            try Predicate(format: "(mediaSubtypes & %ld) != %lld", arguments: [2, 0], of: .asset)
                == Predicate(format: "(mediaSubtypes & 2) != 0", of: .asset)
        )
        #expect(
            try Predicate(format: "duration BETWEEN %@", arguments: [[1, 2.5]], of: .asset)
                == Predicate(format: "duration BETWEEN {1, 2.5}", of: .asset)
        )
        #expect(
            try Predicate(format: "duration BETWEEN {%f, %@}", arguments: [1, 2.5], of: .asset)
                == Predicate(format: "duration BETWEEN {1, 2.5}", of: .asset)
        )
        #expect(
            try Predicate(format: "favorite == %d && caption == %@", arguments: [true, .null], of: .asset)
                == Predicate(format: "favorite == YES AND caption == nil", of: .asset)
        )
        #expect(
            try Predicate(anyForm: ["format": "caption == '%@' OR rating == %d", "arguments": [1]], of: .asset)
                == Predicate(format: "caption == \"%@\" OR rating == 1", of: .asset)
        )
        #expect(throws: PredicateError.self) {
            try Predicate(format: "%K == 1", arguments: ["1 == 1 OR rating"], of: .asset)
        }
        #expect(throws: PredicateError.self) { try Predicate(format: "%@ == 1", arguments: ["rating"], of: .asset) }
        #expect(throws: PredicateError.self) { try Predicate(format: "rating == %d", arguments: ["1"], of: .asset) }
        #expect(throws: PredicateError.self) { try Predicate(format: "rating == 1", arguments: [1], of: .asset) }
        #expect(throws: PredicateError.self) { try Predicate(format: "rating == %d", of: .asset) }
        #expect(throws: PredicateError.self) { try Predicate(format: "rating == %s", arguments: ["1"], of: .asset) }
    }

    static let invalid: [(String, PredicateError.Name, String?, Int?)] = [
        ("", .invalidPredicate, nil, 0), ("rating", .invalidPredicate, nil, 6), ("rating >", .invalidPredicate, nil, 8),
        ("rating > 3 4", .invalidPredicate, nil, 11), ("rating > 3 AND", .invalidPredicate, nil, 14),
        ("(rating > 3", .invalidPredicate, nil, 11), ("rating > 3)", .invalidPredicate, nil, 10),
        ("caption == 'x", .invalidPredicate, nil, 11), ("rating # 3", .invalidPredicate, nil, 7),
        ("caption ==[x] 'a'", .invalidPredicate, nil, 11), ("caption == é", .invalidPredicate, nil, 11),
        ("rating == 99999999999999999999", .invalidPredicate, "rating", 0),
        ("rating == 1e999", .invalidPredicate, nil, 10), ("rating == 12abc", .invalidPredicate, nil, 10),
        ("rating > 3 AND shoeSize == 4", .unsupportedPredicate, "shoeSize", 15),
        ("faces == 1", .unsupportedPredicate, "faces", 0), ("Rating == 1", .unsupportedPredicate, "Rating", 0),
        ("endDate == 'x'", .unsupportedPredicate, "endDate", 0), ("rating == 1.5", .invalidPredicate, "rating", 0),
        ("rating == 'x'", .invalidPredicate, "rating", 0), ("caption == 1", .invalidPredicate, "caption", 0),
        ("creationDate > 'soon'", .invalidPredicate, "creationDate", 0),
        ("rating > CAST('2024-05-01', 'NSDate')", .invalidPredicate, "rating", 0),
        ("creationDate > CAST('soon', 'NSDate')", .invalidPredicate, nil, 15),
        ("creationDate > CAST('2024-05-01', 'NSNumber')", .invalidPredicate, nil, 34),
        ("mediaType == 'painting'", .invalidPredicate, "mediaType", 0),
        ("mediaType == 9", .invalidPredicate, "mediaType", 0),
        ("SELF == 'x'", .invalidPredicate, "localIdentifier", 0),
        ("SELF < 'x'", .unsupportedPredicate, "localIdentifier", 0),
        ("favorite > NO", .unsupportedPredicate, "isFavorite", 0),
        ("favorite == 2", .invalidPredicate, "isFavorite", 0),
        ("rating CONTAINS '1'", .unsupportedPredicate, "rating", 0),
        ("keywords == 'x'", .unsupportedPredicate, "keywords", 0),
        ("'x' IN keywords", .unsupportedPredicate, "keywords", 0),
        ("ANY caption == 'x'", .unsupportedPredicate, "caption", 0),
        ("ANY keywords > 'x'", .unsupportedPredicate, "keywords", 0),
        ("caption MATCHES 'x'", .unsupportedPredicate, nil, 8),
        ("pixelWidth > pixelHeight", .unsupportedPredicate, nil, 0),
        ("1 == 1", .unsupportedPredicate, nil, 0), ("(rating & 1) != 0", .unsupportedPredicate, "rating", 0),
        ("(mediaSubtypes & 2) > 0", .unsupportedPredicate, "mediaSubtypes", 0),
        ("rating IN 3", .invalidPredicate, "rating", 0), ("rating BETWEEN {1}", .invalidPredicate, "rating", 0),
        ("rating == {1, 2}", .invalidPredicate, "rating", 0), ("rating IN {{1}}", .invalidPredicate, nil, 11),
        ("caption <[c] 'x'", .unsupportedPredicate, "caption", 0), ("NEAR(1, 2)", .invalidPredicate, nil, 0),
        ("NEAR(91, 2, 3)", .invalidPredicate, nil, 0), ("INSIDE(2, 0, 1, 0)", .invalidPredicate, nil, 0),
        ("AND", .invalidPredicate, nil, 0), ("rating == CAST(CAST(", .invalidPredicate, nil, 15),
        (String(repeating: "(", count: 60_000), .limitExceeded, nil, 33),
        (String(repeating: "!", count: 60_000), .limitExceeded, nil, 33),
        (String(repeating: "NOT ", count: 34) + "favorite", .limitExceeded, nil, 132),
        (Array(repeating: "rating > 1", count: 257).joined(separator: " OR "), .limitExceeded, nil, 3584),
        (String(repeating: " ", count: 70_000), .limitExceeded, nil, nil),
        ("caption == '" + String(repeating: "x", count: 4097) + "'", .limitExceeded, "caption", 0),
    ]

    @Test(arguments: invalid.indices)
    func `the error for an invalid text has a name, the key and the offset`(index: Int) throws {
        let (text, name, key, offset) = Self.invalid[index]
        let error = try #require(throws: PredicateError.self) { try Predicate(format: text, of: .asset) }
        #expect(error.name == name, "\(text.prefix(80)): \(error)")
        #expect(error.key == key, "\(text.prefix(80)): \(error)")
        #expect(error.offset == offset, "\(text.prefix(80)): \(error)")
        #expect(!error.message.isEmpty)
    }

    @Test func `the error for an unknown key lists the keys of the class`() throws {
        let error = try #require(throws: PredicateError.self) { try Predicate(format: "rating > 1", of: .collection) }
        #expect(error.entityClass == .collection)
        #expect(error.allowed == ["localIdentifier", "title", "startDate", "endDate"])
    }

    @Test func `parsing random text of the language's tokens does not trap`() {
        var random = SeededRandom(named: "parser")
        let words = [
            "rating", "caption", "keywords", "mediaSubtypes", "creationDate", "SELF", "favorite", "(", ")", "{", "}",
            "[", "]", "[cd]", ",", "&", "&&", "|", "||", "!", "!=", "==", "<", ">", "=", "AND", "OR", "NOT", "ANY",
            "IN", "BETWEEN", "LIKE", "CONTAINS", "CAST", "NEAR", "INSIDE", "'x'", "\"NSDate\"", "'", "\\", "%@", "%d",
            "%K", "%", "1", "-", "-1", "1.5", "1e", "0x", "9223372036854775807", "nil", "TRUE", "é", "\0", ".", "..",
        ]
        for _ in 0..<TestEnvironment.rounds(20_000) {
            let text = (0..<Int.random(in: 0...14, using: &random)).map { _ in
                random.pick(words) + (random.one(in: 3) ? "" : " ")
            }.joined()
            let arguments: [JSON] =
                random.one(in: 2) ? [] : [random.pick([1, "x", JSON.null, [1], "rating", ["a": 1]])]
            do throws(PredicateError) {
                let predicate = try Predicate(format: text, arguments: arguments, of: .asset)
                #expect(try Predicate(json: predicate.json, of: .asset) == predicate)
            } catch {
                if let offset = error.offset { #expect((0...text.utf8.count).contains(offset), "\(text)") }
            }
        }
    }
}

extension String {
    /// Returns the tree of two leaves in the order of their bytes.
    fileprivate func and(_ other: String) -> String { joined("and", other) }
    fileprivate func or(_ other: String) -> String { joined("or", other) }

    private func joined(_ name: String, _ other: String) -> String {
        let operands = [self, other].sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return "{\"\(name)\":[\(operands.joined(separator: ","))]}"
    }
}
