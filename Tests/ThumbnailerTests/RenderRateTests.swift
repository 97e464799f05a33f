import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(5)))
struct RenderRateTests {
    @Test func `only the last ten seconds count`() {
        var rate = RenderRate()
        #expect(rate.perSecond(at: 0) == 0)
        for second in 0..<5 {
            for _ in 0..<20 { rate.record(at: Int64(second) * 1_000_000 + 7) }
        }
        #expect(rate.perSecond(at: 4_999_999) == 10)
        #expect(rate.perSecond(at: 11_000_000) == 6)
        #expect(rate.perSecond(at: 1_000_000_000_000) == 0)
        rate.record(at: 1_000_000_000_000)
        #expect(rate.perSecond(at: 1_000_000_000_000) == 0.1)
    }
}
