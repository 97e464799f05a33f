/// The length of the texts of one key.
public struct TextSize: Sendable, Hashable {
    /// The number of UTF-8 bytes.
    public private(set) var bytes = 0
    /// The number of bytes that are not ASCII, whose folding takes far longer.
    public private(set) var otherBytes = 0

    mutating func add(_ text: String) {
        bytes += text.utf8.count
        otherBytes += text.utf8.count { $0 >= 0x80 }
    }
}

/// The approximate maximum number of steps of the tests of one key. A step takes one or two nanoseconds.
struct TextSteps: Sendable, Hashable {
    /// The steps of all tests for one byte.
    private var tests = 0
    /// The ways in which the texts are folded, each of them once.
    private var foldings: Set<TextFolding> = []

    /// The approximate steps of folding, for one byte of ASCII and for one of another character.
    private static let foldingSteps = (ascii: 4, other: 400)
    /// The approximate steps for one byte of a text that is looked up in a list.
    private static let lookUpSteps = 20

    mutating func add(_ match: TextMatch) {
        tests += match.steps
        if !match.folding.isEmpty { foldings.insert(match.folding) }
    }

    mutating func addLookUp() { tests += Self.lookUpSteps }

    func steps(for size: TextSize) -> Int {
        let (ascii, other) = Self.foldingSteps
        let folding = (size.bytes - size.otherBytes) * ascii + size.otherBytes * other
        return tests * size.bytes + foldings.count * folding
    }
}

extension PredicateSubject {
    /// Adds the lengths of all texts that a predicate of a class can test.
    public func addTextSizes(of entityClass: EntityClass, to sizes: inout [PredicateKey: TextSize]) {
        for key in entityClass.keys {
            switch key.type {
            case .text:
                guard case .text(let text) = value(of: key) else { continue }
                sizes[key, default: TextSize()].add(text)
            case .textList: for text in texts(of: key) { sizes[key, default: TextSize()].add(text) }
            default: continue
            }
        }
    }
}

extension PredicateNode {
    /// Adds the steps of all tests of texts.
    func addTextSteps(to steps: inout [PredicateKey: TextSteps]) {
        switch self {
        case .text(let key, let match), .any(let key, .matches(let match)):
            steps[key, default: TextSteps()].add(match)
        case .any(let key, .isIn): steps[key, default: TextSteps()].addLookUp()
        case .and(let operands), .or(let operands): for operand in operands { operand.addTextSteps(to: &steps) }
        case .not(let operand): operand.addTextSteps(to: &steps)
        case .constant, .comparison, .between, .isIn, .bits, .near, .inside: break
        }
    }
}
