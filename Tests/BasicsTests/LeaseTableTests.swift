import Basics
import Testing

/// A lease belongs to its owner, is renewed by use, and ends after its duration.
@Suite(.timeLimit(.minutes(1)))
struct LeaseTableTests {
    @Test func `a lease ends its duration after the last use`() {
        var leases = LeaseTable<String>(duration: 10)
        leases.insert("a", owner: "me", now: 0)
        #expect(leases.renew("a", owner: "me", now: 9) == true)
        #expect(leases.expired(now: 18) == [])
        #expect(leases.expired(now: 19) == ["a"])
        #expect(leases.renew("a", owner: "me", now: 19) == false, "an expired lease cannot be renewed")
        #expect(leases.count == 1, "it counts until it is removed")
        leases.remove("a")
        #expect(leases.count == 0)
    }

    @Test func `a lease can be used by its owner only`() {
        var leases = LeaseTable<Int>(duration: 10)
        leases.insert(1, owner: "me", now: 0)
        leases.insert(2, owner: "me", now: 0)
        leases.insert(3, owner: "you", now: 0)
        #expect(leases.renew(1, owner: "you", now: 1) == false)
        #expect(leases.renew(4, owner: "you", now: 1) == false)
        #expect(leases.isOwned(1, by: "me") && !leases.isOwned(1, by: "you"))
        #expect(leases.keys(of: "me") == [1, 2])
        leases.remove(1)
        leases.remove(1)
        #expect(leases.keys(of: "me") == [2])
        #expect(leases.keys(of: "nobody") == [])
    }

    @Test func `a key that is leased again belongs to its new owner`() {
        var leases = LeaseTable<Int>(duration: .max)
        leases.insert(1, owner: "me", now: 5)
        leases.insert(1, owner: "you", now: 5)
        #expect(leases.keys(of: "me") == [])
        #expect(leases.keys(of: "you") == [1])
        #expect(leases.expired(now: .max - 1) == [], "the end is clamped")
    }
}
