import JSONValue

// The JSON text of a record, written member by member. A test compares it with that of ``ChangeRecord/table``.

extension ChangeRecord {
    /// The canonical JSON of the record.
    public var bytes: [UInt8] {
        // An asset with one file takes about a kibibyte.
        let capacity = 512 + assets.count * 2304 + (collections.count + lists.count) * 1024
        return JSONWriter.bytes(capacity: capacity) { write(to: &$0) }
    }

    private func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.append(",\"sequence\":")
            writer.write(sequence)
            writer.append(",\"library\":")
            writer.write(library)
            writer.append(",\"date\":")
            writer.write(date)
            writer.append(",\"origin\":")
            origin.write(to: &writer)
            if !assets.isEmpty {
                writer.append(",\"assets\":")
                writer.writeList(count: assets.count) { assets[$1].write(to: &$0) }
            }
            write(collections, ",\"collections\":", to: &writer) { $0.write($1.json) }
            write(lists, ",\"lists\":", to: &writer) { $0.write($1.json) }
            if !edits.isEmpty {
                writer.append(",\"edits\":")
                writer.writeList(edits) { $0.write($1.json) }
            }
            write(grants, ",\"grants\":", to: &writer) { $0.write($1.json) }
            guard !questions.isEmpty else { return }
            writer.append(",\"questions\":")
            writer.writeList(questions) { $0.write($1.json) }
        }
    }

    private func write<Entity>(
        _ changes: [EntityChange<Entity>],
        _ name: StaticString,
        to writer: inout JSONWriter,
        _ write: (inout JSONWriter, Entity) -> Void
    ) {
        guard !changes.isEmpty else { return }
        writer.append(name)
        writer.writeList(changes) { writer, change in
            writer.append("{\"before\":")
            if let before = change.before { write(&writer, before) } else { writer.append("null") }
            writer.append(",\"after\":")
            if let after = change.after { write(&writer, after) } else { writer.append("null") }
            writer.append("}")
        }
    }
}

extension ChangeOrigin {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.append(",\"identity\":")
            writer.write(identity)
            if let client {
                writer.append(",\"client\":")
                writer.write(client)
            }
            if let transaction {
                writer.append(",\"transaction\":")
                writer.write(transaction)
            }
            guard let onBehalfOf else { return }
            writer.append(",\"onBehalfOf\":")
            writer.write(onBehalfOf)
        }
    }
}
