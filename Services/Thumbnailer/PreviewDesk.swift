import Contracts
import Hosting
import Messaging
import PhotoModel
import Synchronization

/// Provides degraded images quickly: previews embedded in files, and cheap decodes.
final class PreviewDesk: Sendable {
    /// The key of a preview; a cheap decode differs from the embedded preview.
    private struct Wanted: Sendable, Hashable {
        var plan: RenditionPlan
        var isQuick: Bool
    }

    private let memory = RenditionMemory<Wanted>(budget: PreviewDesk.budget)
    private let work: SharedWork<Wanted, Wanted, StoredRendition?>
    private let state: Mutex<State>

    private struct State {
        /// The digests of files known to contain no preview.
        var without = LeastRecent<String>(budget: 20_000)
        /// Plans of recent requests without their digest.
        var shapes: [RenditionPlan] = []
    }

    private static let budget: Int64 = 16 << 20
    private static let mostShapes = 8

    init(renderer: Renderer, limit: Int, figures: PictureFigures) {
        state = Mutex(State())
        work = SharedWork(limit: limit, width: 2, group: { $0 }) { wanted in
            // Not cancelled when the last waiter has gone: it takes a moment, and replacing a killed worker takes
            // longer.
            await Task {
                var outcomes: [Result<StoredRendition?, RPCError>] = []
                for one in wanted {
                    figures.previews.add()
                    do throws(RPCError) {
                        outcomes.append(.success(try await renderer.low(one.plan, isQuick: one.isQuick)))
                    } catch {
                        outcomes.append(.failure(error))
                    }
                }
                return outcomes
            }.value
        }
    }

    func run() async { await work.run() }

    /// Returns the preview embedded in the file in the plan's form, never enlarged.
    func embedded(_ plan: RenditionPlan) async -> StoredRendition? {
        guard state.withLock({ !$0.without.contains(plan.digest) }) else { return nil }
        return await low(Wanted(plan: plan, isQuick: false))
    }

    /// Returns a rendition from a cheap decode.
    func quick(_ plan: RenditionPlan) async -> StoredRendition? { await low(Wanted(plan: plan, isQuick: true)) }

    private func low(_ wanted: Wanted) async -> StoredRendition? {
        if let rendition = memory.rendition(wanted) { return rendition }
        // A missing preview is not an error: the rendition itself follows and reports what is wrong.
        guard case .success(let answer)? = await outcome(of: wanted) else { return nil }
        if let answer {
            memory.insert(answer, wanted)
        } else if !wanted.isQuick {
            _ = state.withLock { $0.without.insert(wanted.plan.digest, cost: 1) }
        }
        return answer
    }

    private func outcome(of wanted: Wanted) async -> Result<StoredRendition?, RPCError>? {
        do throws(RPCError) { return .success(try await work.value(wanted)) } catch { return nil }
    }

    // MARK: Shapes

    /// Records the options of a request, so that smaller cached renditions can be found when a larger one is requested.
    func note(_ plan: RenditionPlan) {
        guard plan.isWhole else { return }
        var shape = plan
        shape.digest = ""
        state.withLock { state in
            if state.shapes.first == shape { return }
            state.shapes.removeAll { $0 == shape }
            state.shapes.insert(shape, at: 0)
            if state.shapes.count > Self.mostShapes { state.shapes.removeLast() }
        }
    }

    /// Returns plans of the same file with recently requested, smaller options, the largest first.
    func smaller(_ plan: RenditionPlan) -> [RenditionPlan] {
        guard plan.isWhole else { return [] }
        let shapes = state.withLock { $0.shapes }
        return shapes.filter { $0.format == plan.format && $0.longestSide < plan.longestSide }
            .sorted { $0.longestSide > $1.longestSide }
            .map { shape in
                var smaller = shape
                smaller.digest = plan.digest
                return smaller
            }
    }
}

extension RenditionPlan {
    /// True if the whole image is shown, so that another size of it has the same content.
    var isWhole: Bool { crop == nil && !(resizeMode == .exact && contentMode == .aspectFill) }

    var longestSide: Int {
        switch targetSize {
        case .maximum: .max
        case .size(let width, let height): max(width, height)
        }
    }
}
