import Basics

import PhotoModel
import TestSupport
import Testing

@testable import Messaging
@testable import PhotoClient

/// The choice between several instances of a service.
@Suite(.timeLimit(.minutes(1)))
struct InstancesTests {
    private static let hosts = ["tcp://10.0.0.1:5572", "tcp://10.0.0.2:5572", "tcp://10.0.0.3:5572"]

    private func key(_ number: Int) -> String { "asset-\(number)" }

    @Test(arguments: [("a01", [0, 2, 1]), ("a02", [2, 1, 0]), ("asset-x", [2, 1, 0])])
    func `the order of instances is the one that other clients compute`(key: String, expected: [Int]) {
        #expect(Rendezvous.order(Self.hosts, for: key) == expected)
    }

    @Test func `the order does not depend on the order of the addresses`() {
        let reversed = Array(Self.hosts.reversed())
        for number in 0..<200 {
            let (forward, backward) = (
                Rendezvous.order(Self.hosts, for: key(number)).map { Self.hosts[$0] },
                Rendezvous.order(reversed, for: key(number)).map { reversed[$0] }
            )
            #expect(forward == backward)
        }
    }

    @Test func `each of three instances is preferred for about a third of the assets`() {
        var counts = [0, 0, 0]
        for number in 0..<3000 { counts[Rendezvous.order(Self.hosts, for: key(number))[0]] += 1 }
        #expect(counts.allSatisfy { (900...1100).contains($0) }, "\(counts)")
    }

    @Test func `if an instance is removed, only its assets move, each to the next instance in its order`() {
        let remaining = [Self.hosts[0], Self.hosts[2]]
        for number in 0..<500 {
            let all = Rendezvous.order(Self.hosts, for: key(number)).filter { $0 != 1 }.map { Self.hosts[$0] }
            #expect(Rendezvous.order(remaining, for: key(number)).map { remaining[$0] } == all)
        }
    }

    /// An instance whose connection state is set by a test.
    private struct Scripted: InstanceConnection {
        let address: EndpointAddress
        let connection: ConnectionState

        init(_ address: String, isReady: Bool, clock: MonotonicClock) throws {
            self.address = try EndpointAddress(address)
            connection = ConnectionState(isReady: isReady, clock: clock)
        }
    }

    /// Returns three instances, and an asset that prefers the first, then the third.
    private func instances(ready: [Bool], clock: MonotonicClock = .system) throws -> (Instances<Scripted>, ObjectID) {
        let all = try zip(Self.hosts, ready).map { try Scripted($0, isReady: $1, clock: clock) }
        var asset = assetID(1)
        for number: UInt64 in 1... where Rendezvous.order(Self.hosts, for: assetID(number).text) == [0, 2, 1] {
            asset = assetID(number)
            break
        }
        return (Instances(connections: all), asset)
    }

    @Test func `a request goes to the preferred instance, and without an asset to the first of the list`() async throws
    {
        let (instances, asset) = try instances(ready: [true, true, true])
        #expect(await instances.choose(for: asset).connection.address.description == Self.hosts[0])
        #expect(await instances.choose(for: nil).connection.address.description == Self.hosts[0])
    }

    @Test func `an instance that has been disconnected for long is skipped without waiting`() async throws {
        let clock = ManualClock()
        let (instances, asset) = try instances(ready: [false, true, true], clock: clock.clock)
        clock.advance(milliseconds: 10_000)
        // The shortest of five times is used, because the machine may be busy. For an instance that restarts, the wait
        // would be half a second.
        var shortest = Duration.seconds(60)
        for _ in 0..<5 {
            let started = ContinuousClock.now
            #expect(await instances.choose(for: asset).connection.address.description == Self.hosts[2])
            shortest = min(shortest, ContinuousClock.now - started)
        }
        #expect(shortest < .milliseconds(400), "\(shortest)")
        #expect(await instances.choose(for: nil).connection.address.description == Self.hosts[1])
    }

    @Test func `a request waits for an instance that is restarting`() async throws {
        let (instances, asset) = try instances(ready: [false, true, true])
        async let chosen = instances.choose(for: asset)
        instances.connections[0].connection.set(isReady: true)
        #expect(await chosen.connection.address.description == Self.hosts[0])
    }

    @Test func `if no instance is connected, a request waits for any, at most until its deadline`() async throws {
        let clock = ManualClock()
        let (instances, asset) = try instances(ready: [false, false, false], clock: clock.clock)
        clock.advance(milliseconds: 10_000)
        let none = await instances.choose(for: asset, within: .milliseconds(20))
        #expect(none.connection.address.description == Self.hosts[0] && !none.isConnected)
        async let chosen = instances.choose(for: asset, within: .seconds(30))
        instances.connections[1].connection.set(isReady: true)
        #expect(await chosen.connection.address.description == Self.hosts[1])
    }
}
