import PhotoModel

/// The member edits of one request, applied to the list as the client saw it, and their result (T-13 to T-16).
///
/// Members are represented by numbers: those of the snapshot by their position, new ones by negative numbers.
struct MemberEditPlan {
    private let snapshot: SnapshotList
    private var list: [Int]
    private var new: [ObjectID] = []
    private var newNumbers: [ObjectID: Int] = [:]
    private var placed: Set<Int> = []
    /// The members that edits have removed, in that order.
    private var removals: [Int] = []
    /// Those of them that no later edit has placed.
    private var removedNumbers: Set<Int> = []

    /// Applies the edits to the client's list.
    ///
    /// - Parameters:
    ///   - snapshot: the list as the client saw it; nil if the request names none
    ///   - resolve: returns the identifier of a reference
    ///   - members: returns the given objects that are in the current list
    /// - Throws: `snapshot_required`, `range_error`, `invalid_params`
    init(
        _ edits: [MemberEdit],
        _ snapshot: SnapshotList?,
        resolve: (ObjectReference) throws -> ObjectID,
        members: ([ObjectID]) throws -> Set<ObjectID>
    ) throws {
        guard let snapshot else { throw ChangeError.noSnapshot }
        self.snapshot = snapshot
        list = Array(0..<snapshot.count)
        for edit in edits { try apply(edit, resolve, members) }
    }

    /// A run of consecutive members that is to be placed after the nearest preceding neighbour that is still in the
    /// list, or at the front if there is none.
    struct Run {
        var members: [ObjectID] = []
        /// The position of the run's first member in the client's list.
        var start: Int
    }

    // MARK: Edits

    private mutating func apply(
        _ edit: MemberEdit,
        _ resolve: (ObjectReference) throws -> ObjectID,
        _ current: ([ObjectID]) throws -> Set<ObjectID>
    ) throws {
        switch edit {
        case .add(let members):
            var present = Set(list)
            let ids = try unique(members, resolve)
            let unseen = try current(ids.filter { try snapshot.position($0) == nil && newNumbers[$0] == nil })
            for id in ids {
                // A member that another client has added meanwhile, or that this client did not see, keeps its
                // position.
                if unseen.contains(id) { continue }
                let number = try number(of: id)
                guard present.insert(number).inserted else { continue }
                list.append(number)
                place(number)
            }
        case .remove(let ids): remove(Set(try ids.map { try number(of: $0) }))
        case .insert(let members, let at):
            guard members.count == at.count else {
                throw ChangeError.insertCountDiffers
            }
            try checkOrder(at)
            let numbers = try unique(members, resolve).map { try number(of: $0) }
            guard numbers.count == at.count else { throw ChangeError.duplicateMember }
            let moved = Set(numbers)
            list.removeAll(where: moved.contains)
            var (rest, merged) = (list[...], [Int]())
            merged.reserveCapacity(list.count + numbers.count)
            for (number, index) in zip(numbers, at) {
                // The indexes ascend, so members of the list fill the positions before this one.
                let before = rest.prefix(index - merged.count)
                merged += before
                rest = rest.dropFirst(before.count)
                guard merged.count == index else { throw ChangeError.indexOutOfRange(index, count: merged.count) }
                merged.append(number)
                place(number)
            }
            merged += rest
            list = merged
        case .move(let from, let to):
            try check(from)
            let moved = from.map { list[$0] }
            let leaving = Set(moved)
            list.removeAll(where: leaving.contains)
            guard to <= list.count else { throw outOfRange(to) }
            list.insert(contentsOf: moved, at: to)
            // A member that another client has removed meanwhile is not moved, and so not added again.
            let unplaced = try moved.filter { !placed.contains($0) }.map { (number: $0, id: try id($0)) }
            let present = try current(unplaced.map(\.id))
            let removed = Set(unplaced.filter { !present.contains($0.id) }.map(\.number))
            for number in moved where !removed.contains(number) { place(number) }
        case .replace(let at, let members):
            guard members.count == at.count else {
                throw ChangeError.replaceCountDiffers
            }
            try check(at)
            let numbers = try unique(members, resolve).map { try number(of: $0) }
            guard numbers.count == at.count else { throw ChangeError.duplicateMember }
            let left = Set(at.map { list[$0] }).subtracting(numbers)
            for (index, number) in zip(at, numbers) { list[index] = number }
            // A member that is also elsewhere in the list remains only where it was put.
            let (positions, moved) = (Set(at), Set(numbers))
            list = list.indices.filter { positions.contains($0) || !moved.contains(list[$0]) }.map { list[$0] }
            for number in numbers { place(number) }
            forget(left)
        case .removeAt(let at):
            try check(at)
            remove(Set(at.map { list[$0] }))
        }
    }

    private func unique(
        _ members: [ObjectReference],
        _ resolve: (ObjectReference) throws -> ObjectID
    ) throws -> [ObjectID] {
        IDList(try members.map(resolve)).ids
    }

    private mutating func number(of id: ObjectID) throws -> Int {
        if let position = try snapshot.position(id) { return position }
        if let number = newNumbers[id] { return number }
        new.append(id)
        newNumbers[id] = -new.count
        return -new.count
    }

    private mutating func place(_ number: Int) {
        placed.insert(number)
        removedNumbers.remove(number)
    }

    private mutating func remove(_ numbers: Set<Int>) {
        list.removeAll(where: numbers.contains)
        forget(numbers)
    }

    private mutating func forget(_ numbers: Set<Int>) {
        placed.subtract(numbers)
        removals += numbers.sorted()
        removedNumbers.formUnion(numbers)
    }

    private func checkOrder(_ indexes: [Int]) throws {
        guard zip(indexes, indexes.dropFirst()).allSatisfy({ $0 < $1 }) else {
            throw ChangeError.unorderedIndexes
        }
    }

    private func check(_ indexes: [Int]) throws {
        try checkOrder(indexes)
        if let index = indexes.last, index >= list.count { throw outOfRange(index) }
    }

    private func outOfRange(_ index: Int) -> ChangeError {
        .indexOutOfRange(index, count: list.count)
    }

    // MARK: Result

    private func id(_ number: Int) throws -> ObjectID { number < 0 ? new[-1 - number] : try snapshot.id(number) }

    /// Returns the members that the edits remove from the list.
    func removed() throws -> [ObjectID] {
        var left = removedNumbers
        return try removals.compactMap { try left.remove($0).map { try id($0) } }
    }

    /// Returns the runs of members that were placed, from the front of the list.
    func runs() throws -> [Run] {
        guard !placed.isEmpty else { return [] }
        var runs: [Run] = []
        var end = -1
        for (position, number) in list.enumerated() where placed.contains(number) {
            if position != end { runs.append(Run(start: position)) }
            runs[runs.count - 1].members.append(try id(number))
            end = position + 1
        }
        return runs
    }

    /// Returns the nearest member before a run that is still in the current list; nil if none is.
    ///
    /// - Parameter lastMember: returns the last of the given objects that is in the current list
    func neighbour(before run: Run, lastMember: ([ObjectID]) throws -> ObjectID?) throws -> ObjectID? {
        var end = run.start
        // The nearest one is nearly always in the list, but other clients may have removed any number of them.
        var count = 1
        while end > 0 {
            let start = max(0, end - count)
            if let found = try lastMember(list[start..<end].map { try id($0) }) { return found }
            (end, count) = (start, min(2 * count, 1024))
        }
        return nil
    }
}

// MARK: - Snapshot

/// A list as a client saw it: its members by position.
struct SnapshotList: Sendable {
    let count: Int
    let id: @Sendable (Int) throws -> ObjectID
    /// Returns the position of a member; nil if it is not in the list.
    let position: @Sendable (ObjectID) throws -> Int?
    private var memory: SnapshotMemory.Reservation?

    init(
        count: Int,
        id: @escaping @Sendable (Int) throws -> ObjectID,
        position: @escaping @Sendable (ObjectID) throws -> Int?
    ) {
        self.count = count
        self.id = id
        self.position = position
    }

    /// - Parameter memory: the memory of the list, which is released with it; nil for a small one
    init(_ ids: [ObjectID], _ memory: SnapshotMemory.Reservation? = nil) {
        let list = IDList(ids)
        self.init(count: list.ids.count, id: { list.ids[$0] }, position: { list.position(of: $0) })
        self.memory = memory
    }
}
