import PhotoModel

extension ChangeTransaction {
    // MARK: Folders

    func existingFolder(_ id: ObjectID) throws -> CollectionList {
        let list = try existingList(id)
        guard list.type == .folder else {
            throw ChangeError.derived(id)
        }
        return list
    }

    mutating func create(_ request: ChangeRequest.CreateList) throws {
        let parent = try request.parent.map { try existingFolder(id($0)).id } ?? .root
        var list = try CollectionList(id: newID(.collectionList, request.id), revision: Revision(sequence))
        list.title = try storable(request.title, "title", maxBytes: TextLimit.title)
        list.parent = parent
        list.parentKey = try nextChildKey(in: parent)
        list.creationDate = now
        list.modificationDate = now
        try requireDepth(of: parent)
        try changeChildren(of: parent, by: 1)
        try set(list)
        for child in request.add { try append(id(child), to: list.id) }
        try bind(request.ref, to: list.id)
    }

    mutating func update(_ request: ChangeRequest.UpdateList, _ snapshot: SnapshotList?) throws {
        var list = try existingFolder(id(request.id))
        try require(request.ifRevision, list.revision, of: list.id)
        if let title = request.title {
            guard list.id != .root else {
                throw ChangeError.rootHasNoTitle
            }
            list.title = try storable(title, "title", maxBytes: TextLimit.title)
            try set(list)
        }
        try apply(request.edits, snapshot, to: list.id)
    }

    /// Deletes folders with everything below them; their assets stay (S-80).
    mutating func deleteLists(_ request: ChangeRequest.ObjectIDs) throws {
        let folders = try IDList(request.ids).ids.map(existingFolder)
        for folder in folders {
            guard folder.id != .root else {
                throw ChangeError.rootUndeletable
            }
            // A folder that was inside another one of these has already been deleted with it.
            if let folder = try list(folder.id) { try delete(folder, depth: 1) }
        }
    }

    private mutating func delete(_ list: CollectionList, depth: Int) throws {
        // Each level of folders is an entity that the transaction touches, and a call on the stack.
        guard depth <= limit else {
            throw ChangeError.tooManyObjects(limit: limit)
        }
        // Children that this transaction has deleted are still in the database until it ends; each is skipped once.
        var last: OrderKey?
        while let child = try child(after: last, in: list.id, passingOver: []) {
            last = child.key
            if child.id.kind == .collectionList {
                try delete(existingFolder(child.id), depth: depth + 1)
            } else {
                try deleteCollections(ChangeRequest.ObjectIDs(ids: [child.id]))
            }
        }
        try remove(list: list.id)
        if let parent = list.parent { try changeChildren(of: parent, by: -1) }
    }

    // MARK: Children

    func nextChildKey(in parent: ObjectID) throws -> OrderKey {
        let touched = touchedChildren(of: parent).map(\.key)
        let last = [try state.lastChildKey(of: parent), touched.max()].compactMap { $0 }.max()
        return OrderKey.after(last)
    }

    /// Returns the albums and folders that this transaction touched and that are in a folder now.
    private func touchedChildren(of parent: ObjectID) -> [(id: ObjectID, key: OrderKey)] {
        var children: [(id: ObjectID, key: OrderKey)] = []
        for id in collections.order {
            if let child = collections.state(of: id) ?? nil, child.parent == parent, let key = child.parentKey {
                children.append((id, key))
            }
        }
        for id in lists.order {
            if let child = lists.state(of: id) ?? nil, child.parent == parent, let key = child.parentKey {
                children.append((id, key))
            }
        }
        return children
    }

    private func position(of child: ObjectID) throws -> (parent: ObjectID, key: OrderKey)? {
        if child.kind == .collectionList {
            guard let list = try list(child), let parent = list.parent, let key = list.parentKey else { return nil }
            return (parent, key)
        }
        guard let collection = try collection(child), let parent = collection.parent, let key = collection.parentKey
        else { return nil }
        return (parent, key)
    }

    private func isChild(_ child: ObjectID, of parent: ObjectID) throws -> Bool {
        try position(of: child)?.parent == parent
    }

    /// Returns the child that follows an order key, in the current state of this transaction.
    private func child(
        after lower: OrderKey?,
        in parent: ObjectID,
        passingOver moving: Set<ObjectID>
    ) throws -> (id: ObjectID, key: OrderKey)? {
        var stored = try state.child(after: lower, in: parent)
        while let found = stored {
            let position = try position(of: found.id)
            if !moving.contains(found.id), position?.parent == parent, position?.key == found.key { break }
            stored = try state.child(after: found.key, in: parent)
        }
        let touched = touchedChildren(of: parent).filter { child in
            !moving.contains(child.id) && (lower.map { $0 < child.key } ?? true)
        }
        return ([stored].compactMap { $0 } + touched).min { ($0.key, $0.id) < ($1.key, $1.id) }
    }

    private mutating func append(_ child: ObjectID, to parent: ObjectID) throws {
        if try isChild(child, of: parent) { return }
        try insert(child, in: parent, at: nextChildKey(in: parent))
    }

    /// Moves an album or folder into a folder, out of its former parent: it has exactly one (S-06).
    private mutating func insert(_ child: ObjectID, in parent: ObjectID, at key: OrderKey) throws {
        let old: ObjectID?
        if child.kind == .collectionList {
            var list = try existingFolder(child)
            try requireNoCycle(child, in: parent)
            old = list.parent
            (list.parent, list.parentKey) = (parent, key)
            try set(list)
        } else {
            var collection = try existingCollection(child)
            guard collection.type == .album else {
                throw ChangeError.derivedInFolder(child)
            }
            old = collection.parent
            (collection.parent, collection.parentKey) = (parent, key)
            try set(collection)
        }
        guard old != parent else { return }
        if let old { try changeChildren(of: old, by: -1) }
        try changeChildren(of: parent, by: 1)
    }

    /// The maximum nesting of folders, not counting the root.
    private static var maxDepth: Int { 64 }

    private func requireDepth(of parent: ObjectID) throws {
        var depth = 0
        var current: ObjectID? = parent
        while let id = current {
            depth += 1
            current = try list(id)?.parent
            guard depth <= Self.maxDepth else {
                throw ChangeError.tooDeep(limit: Self.maxDepth)
            }
        }
    }

    private func requireNoCycle(_ child: ObjectID, in parent: ObjectID) throws {
        guard child != .root else {
            throw ChangeError.rootUnmovable
        }
        try requireDepth(of: parent)
        var current: ObjectID? = parent
        while let id = current {
            guard id != child else {
                throw ChangeError.cycle(child, in: parent)
            }
            current = try list(id)?.parent
        }
    }

    /// Checks the levels of the folders that were moved, with those below them. Called once, after the last request:
    /// all folders below the lowest moved folder of a path are where they were, so the stored levels can be counted.
    ///
    /// - Throws: `limit_exceeded`
    func requireLevels() throws {
        for (id, before, current) in lists.entries where current != nil && before?.parent != current?.parent {
            var depth = 0
            var next = current?.parent
            while let folder = next, depth <= Self.maxDepth {
                depth += 1
                next = try list(folder)?.parent
            }
            if before != nil { depth += try state.levels(below: id, limit: Self.maxDepth) }
            guard depth <= Self.maxDepth else {
                throw ChangeError.tooDeep(limit: Self.maxDepth)
            }
        }
    }

    // MARK: Member edits

    private mutating func apply(_ edits: [MemberEdit], _ snapshot: SnapshotList?, to id: ObjectID) throws {
        guard edits.contains(where: \.hasIndexes) else {
            for edit in edits {
                switch edit {
                case .add(let members): for member in members { try append(self.id(member), to: id) }
                case .remove(let ids): try removeChildren(ids, of: id)
                case .insert, .move, .replace, .removeAt: break
                }
            }
            return
        }
        // No client can have a result of a list that this transaction has created.
        let isNew = try state.list(id) == nil
        let clientList = isNew ? SnapshotList(touchedChildren(of: id).sorted { $0.key < $1.key }.map(\.id)) : snapshot
        let plan = try MemberEditPlan(edits, clientList) { reference in
            try self.id(reference)
        } members: { ids in
            Set(try ids.filter { try isChild($0, of: id) })
        }
        try removeChildren(plan.removed(), of: id)
        for run in try plan.runs() {
            let anchor = try plan.neighbour(before: run) { ids in
                try ids.last { try isChild($0, of: id) }
            }
            let lower = try anchor.flatMap { try position(of: $0)?.key }
            let upper = try child(after: lower, in: id, passingOver: Set(run.members))?.key
            let keys = try OrderKey.keys(count: run.members.count, between: lower, and: upper)
            try checkLength(keys, of: id)
            for (child, key) in zip(run.members, keys) { try insert(child, in: id, at: key) }
        }
    }

    /// Removes objects from a folder; they move to the end of the root folder.
    private mutating func removeChildren(_ ids: [ObjectID], of list: ObjectID) throws {
        for id in ids where try isChild(id, of: list) {
            guard list != .root else {
                throw ChangeError.inRoot(id)
            }
            try append(id, to: .root)
        }
    }
}
