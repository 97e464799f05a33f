/// A statement that the server has prepared on one connection, and the values of its next execution.
public final class PreparedStatement {
    /// The name on the connection.
    let name: String
    /// The types of the parameters.
    let types: [UInt32]
    var parameters = ParameterBuffer()

    init(name: String, types: [UInt32]) {
        self.name = name
        self.types = types
    }

    /// Sets the value of the next parameter.
    ///
    /// - Throws: ``PostgreSQLError`` if the parameter has another type, or there is none
    public func bind(_ value: PostgreSQLValue) throws(PostgreSQLError) {
        guard parameters.count < types.count else {
            throw PostgreSQLError(.statement, "the statement has only \(types.count) parameters")
        }
        try parameters.append(value, as: types[parameters.count])
    }

    /// Removes the values.
    public func reset() { parameters.removeAll() }
}
