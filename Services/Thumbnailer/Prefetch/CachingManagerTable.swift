import Basics
import Contracts
import JSONValue
import PhotoModel

/// The lists of images that caching managers keep prepared (S-53 to S-58).
///
/// It has no side effects: the time is passed in, and the work to do is returned. Every operation but ``postpone(_:)``
/// takes constant time per image.
struct CachingManagerTable: Sendable {
    /// The options with which an image is prepared: everything in `cache.start` but the assets. Only a request with
    /// equal options finds the prepared image.
    typealias CachingOptions = CachedImages

    struct Entry: Sendable, Hashable {
        var asset: ObjectID
        var options: CachingOptions
    }

    /// The state of a requested image in a manager's list.
    enum PreparationState: Sendable {
        case prepared
        /// On the list, and not prepared yet.
        case waiting
        /// The asset is on the list, but with other options.
        case differs
    }

    /// Images of one asset that are prepared together.
    struct PrefetchTask: Sendable {
        let number: UInt64
        let asset: ObjectID
        let optionSets: [CachingOptions]
        let allowsHighQuality: Bool
    }

    /// Work to stop and renditions to release after images were removed from a list.
    struct Removal: Sendable {
        /// Tasks whose images are no longer on any list.
        var tasks: [UInt64] = []
        /// Renditions that are no longer on any list and may be removed from the memory cache.
        var plans: [RenditionPlan] = []
    }

    private enum Stage: Sendable {
        case waiting
        case working(UInt64)
        case prepared(RenditionPlan?)
    }

    private struct Manager: Sendable {
        var allowsHighQuality: Bool
        var entries: [Entry: Stage] = [:]
        var optionSets: [ObjectID: Set<CachingOptions>] = [:]
        /// Images not prepared yet, oldest first; the next one is the last. May contain entries that were removed
        /// meanwhile.
        var waiting: [Entry] = []
        var waitingCount = 0
        /// All images of the list, oldest first. May contain entries that were removed meanwhile.
        var order: [Entry] = []
        /// The number of the last task of this manager, for round-robin scheduling.
        var lastServed: UInt64 = 0
    }

    static let maxPerIdentity = 16
    static let maxCount = 256
    static let leaseMicroseconds: Int64 = 600_000_000

    /// The maximum number of images on one list. If there are more, the oldest are dropped.
    let limit: Int
    private var managers: [String: Manager] = [:]
    private var leases = LeaseTable<String>(duration: leaseMicroseconds)
    private var tasks: [UInt64: (manager: String, entries: Set<Entry>)] = [:]
    private var planReferences: [RenditionPlan: Int] = [:]
    private var lastTask: UInt64 = 0
    private(set) var dropped = 0

    init(limit: Int = 10_000) {
        self.limit = limit
    }

    var metrics: (managers: Int, entries: Int, waiting: Int, working: Int) {
        (
            managers.count, managers.values.reduce(0) { $0 + $1.entries.count },
            managers.values.reduce(0) { $0 + $1.waitingCount }, tasks.count
        )
    }

    // MARK: Managers

    mutating func open(_ name: String, identity: String, allowsHighQuality: Bool, now: Int64) throws(RPCError) {
        guard managers.count < Self.maxCount, leases.keys(of: identity).count < Self.maxPerIdentity else {
            throw .tooManyCachingManagers(perClient: Self.maxPerIdentity, limit: Self.maxCount)
        }
        managers[name] = Manager(allowsHighQuality: allowsHighQuality)
        leases.insert(name, owner: identity, now: now)
    }

    /// Renews the manager's lease.
    ///
    /// - Throws: `handle_expired` if the manager does not exist or belongs to another client
    mutating func renewLease(of name: String, identity: String, now: Int64) throws(RPCError) {
        guard leases.renew(name, owner: identity, now: now) else {
            throw .unknownCachingManager
        }
    }

    mutating func configure(_ name: String, allowsHighQuality: Bool) {
        managers[name]?.allowsHighQuality = allowsHighQuality
    }

    /// Returns the names of an identity's caching managers.
    func names(of identity: String) -> Set<String> { leases.keys(of: identity) }

    mutating func close(_ name: String) -> Removal {
        let removal = stopAll(name)
        managers[name] = nil
        leases.remove(name)
        return removal
    }

    /// Closes the managers whose lease has expired.
    mutating func expire(now: Int64) -> Removal {
        var removal = Removal()
        for name in leases.expired(now: now) {
            let part = close(name)
            removal.tasks += part.tasks
            removal.plans += part.plans
        }
        return removal
    }

    // MARK: Lists

    /// Adds images to the list. They are prepared before all earlier ones, the first asset first, because the images
    /// requested last are those on the screen.
    mutating func start(_ name: String, _ assets: [ObjectID], _ options: CachingOptions) -> Removal {
        guard managers[name] != nil else { return Removal() }
        for asset in assets.reversed() {
            let entry = Entry(asset: asset, options: options)
            guard managers[name]?.entries[entry] == nil else { continue }
            managers[name]?.entries[entry] = .waiting
            managers[name]?.optionSets[asset, default: []].insert(options)
            managers[name]?.waiting.append(entry)
            managers[name]?.order.append(entry)
            managers[name]?.waitingCount += 1
        }
        compact(name)
        return trim(name)
    }

    mutating func stop(_ name: String, _ assets: [ObjectID], _ options: CachingOptions) -> Removal {
        var removal = Removal()
        for asset in assets { remove(Entry(asset: asset, options: options), from: name, &removal) }
        compact(name)
        return removal
    }

    mutating func stopAll(_ name: String) -> Removal {
        var removal = Removal()
        for entry in managers[name].map({ Array($0.entries.keys) }) ?? [] { remove(entry, from: name, &removal) }
        managers[name]?.waiting = []
        managers[name]?.order = []
        return removal
    }

    func preparationState(_ entry: Entry, in name: String) -> PreparationState? {
        guard let manager = managers[name] else { return nil }
        switch manager.entries[entry] {
        case .prepared: return .prepared
        case .waiting, .working: return .waiting
        case nil: return manager.optionSets[entry.asset] == nil ? nil : .differs
        }
    }

    /// Returns the progress of a manager.
    func status(_ name: String) -> CacheStatus.Result {
        var status = CacheStatus.Result()
        var failed: Set<ObjectID> = []
        for (entry, stage) in managers[name]?.entries ?? [:] {
            switch stage {
            case .waiting: status.waiting += 1
            case .working: status.preparing += 1
            case .prepared(nil):
                status.failed += 1
                if failed.count < CacheStatus.Result.maxFailedAssets { failed.insert(entry.asset) }
            case .prepared: status.prepared += 1
            }
        }
        status.failedAssets = failed.sorted()
        return status
    }

    // MARK: Work

    /// Returns the next images to prepare: all waiting images of the asset added last, from the manager that has been
    /// served least recently.
    mutating func next(maxCount: Int) -> PrefetchTask? {
        let waiting = managers.lazy.filter { $0.value.waitingCount > 0 }
        guard let name = waiting.min(by: { $0.value.lastServed < $1.value.lastServed })?.key else { return nil }
        while let entry = managers[name]?.waiting.popLast() {
            guard case .waiting? = managers[name]?.entries[entry] else { continue }
            lastTask += 1
            let optionSets = (managers[name]?.optionSets[entry.asset] ?? []).filter { options in
                if case .waiting? = managers[name]?.entries[Entry(asset: entry.asset, options: options)] {
                    true
                } else {
                    false
                }
            }
            let chosen = Array(([entry.options] + optionSets.filter { $0 != entry.options }).prefix(max(1, maxCount)))
            for options in chosen {
                managers[name]?.entries[Entry(asset: entry.asset, options: options)] = .working(lastTask)
            }
            managers[name]?.waitingCount -= chosen.count
            managers[name]?.lastServed = lastTask
            tasks[lastTask] = (name, Set(chosen.map { Entry(asset: entry.asset, options: $0) }))
            return PrefetchTask(
                number: lastTask,
                asset: entry.asset,
                optionSets: chosen,
                allowsHighQuality: managers[name]?.allowsHighQuality ?? true
            )
        }
        managers[name]?.waitingCount = 0
        return nil
    }

    /// Ends a task.
    ///
    /// - Parameter plans: the prepared renditions by options; missing ones failed and are not tried again
    mutating func finish(_ task: PrefetchTask, plans: [CachingOptions: RenditionPlan]) -> Removal {
        var removal = Removal()
        guard let (name, entries) = tasks.removeValue(forKey: task.number) else {
            removal.plans = plans.values.filter { planReferences[$0] == nil }
            return removal
        }
        for options in task.optionSets {
            let entry = Entry(asset: task.asset, options: options)
            let plan = plans[options]
            guard entries.contains(entry), managers[name]?.entries[entry] != nil else {
                if let plan, planReferences[plan] == nil { removal.plans.append(plan) }
                continue
            }
            managers[name]?.entries[entry] = .prepared(plan)
            if let plan { planReferences[plan, default: 0] += 1 }
        }
        return removal
    }

    /// Ends a task whose images cannot be prepared now. They wait again, after all others of their list.
    mutating func postpone(_ task: PrefetchTask) {
        guard let (name, entries) = tasks.removeValue(forKey: task.number) else { return }
        for entry in entries { managers[name]?.entries[entry] = .waiting }
        // Only one of them was removed from the array when their task began.
        managers[name]?.waiting.removeAll { $0.asset == task.asset && entries.contains($0) }
        managers[name]?.waiting.insert(contentsOf: entries, at: 0)
        managers[name]?.waitingCount += entries.count
    }

    private mutating func remove(_ entry: Entry, from name: String, _ removal: inout Removal) {
        guard let stage = managers[name]?.entries.removeValue(forKey: entry) else { return }
        managers[name]?.optionSets[entry.asset]?.remove(entry.options)
        if managers[name]?.optionSets[entry.asset]?.isEmpty == true { managers[name]?.optionSets[entry.asset] = nil }
        switch stage {
        case .waiting: managers[name]?.waitingCount -= 1
        case .working(let number):
            tasks[number]?.entries.remove(entry)
            if tasks[number]?.entries.isEmpty == true {
                tasks[number] = nil
                removal.tasks.append(number)
            }
        case .prepared(let plan):
            guard let plan, let count = planReferences[plan] else { return }
            planReferences[plan] = count > 1 ? count - 1 : nil
            if count == 1 { removal.plans.append(plan) }
        }
    }

    /// Drops the oldest images, prepared or not, if the list is longer than its limit.
    private mutating func trim(_ name: String) -> Removal {
        var removal = Removal()
        guard let manager = managers[name], manager.entries.count > limit else { return removal }
        var excess = manager.entries.count - limit
        for entry in manager.order where excess > 0 && managers[name]?.entries[entry] != nil {
            remove(entry, from: name, &removal)
            dropped += 1
            excess -= 1
        }
        compact(name)
        return removal
    }

    /// Removes outdated entries from the arrays before they outnumber the others.
    private mutating func compact(_ name: String) {
        guard let manager = managers[name] else { return }
        if manager.order.count > 64 + 2 * manager.entries.count {
            var seen: Set<Entry> = []
            let current = manager.order.reversed().filter { manager.entries[$0] != nil && seen.insert($0).inserted }
            managers[name]?.order = current.reversed()
        }
        if manager.waiting.count > 64 + 2 * manager.waitingCount {
            var seen: Set<Entry> = []
            let current = manager.waiting.reversed().filter { entry in
                guard case .waiting? = manager.entries[entry] else { return false }
                return seen.insert(entry).inserted
            }
            managers[name]?.waiting = current.reversed()
        }
    }
}
