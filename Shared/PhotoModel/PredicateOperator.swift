import JSONValue

/// An operator as written in the JSON tree.
enum PredicateOperator: String, CaseIterable {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case between
    case isIn = "in"
    case beginsWith, contains, endsWith, like

    var relation: PredicateNode.Relation? { PredicateNode.Relation(rawValue: rawValue) }

    var textKind: TextMatch.Kind? {
        switch self {
        case .beginsWith: .beginsWith
        case .contains: .contains
        case .endsWith: .endsWith
        case .like: .like
        default: nil
        }
    }
}
