import Contracts
import Hosting
import Messaging
import PhotoModel
import Synchronization

/// Less than was asked for, but at once: what is embedded in files, and what can be decoded cheaply.
final class PreviewDesk: Sendable {
    /// What one preview is made for; a cheap decode is another thing than the embedded one.
    private struct Wanted: Sendable, Hashable {
        var plan: RenditionPlan
        var isQuick: Bool
    }

    private let memory = RenditionMemory<Wanted>(budget: PreviewDesk.budget)
    private let work: SharedWork<Wanted, Wanted, StoredRendition?>
    private let state: Mutex<State>

    private struct State {
        /// Files of which it is known that they hold no preview.
        var without = LeastRecent<String>(budget: 20_000)
        /// How pictures were asked for lately, without their file.
        var shapes: [RenditionPlan] = []
    }

    private static let budget: Int64 = 16 << 20
    private static let mostShapes = 8

    init(renderer: Renderer, limit: Int, figures: PictureFigures) {
        state = Mutex(State())
        work = SharedWork(limit: limit, width: 2, group: { $0 }) { wanted in
            // Not cancelled when nobody waits any more: it takes a moment, and a worker that is killed over it longer.
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

    /// The preview that is embedded in the file, brought to the plan's form and never enlarged.
    func embedded(_ plan: RenditionPlan) async -> StoredRendition? {
        guard state.withLock({ !$0.without.contains(plan.digest) }) else { return nil }
        return await low(Wanted(plan: plan, isQuick: false))
    }

    /// A picture from a cheap decode.
    func quick(_ plan: RenditionPlan) async -> StoredRendition? { await low(Wanted(plan: plan, isQuick: true)) }

    private func low(_ wanted: Wanted) async -> StoredRendition? {
        if let rendition = memory.rendition(wanted) { return rendition }
        // No preview is no error: the picture itself is on its way, and says what is wrong.
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

    /// Notes how pictures are asked for: the same shapes are looked for later, when a larger one is wanted.
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

    /// Plans of the same file in shapes that were asked for lately and are smaller, the largest first.
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
    /// Whether it shows all of the picture, so that another size of it is the same picture smaller.
    var isWhole: Bool { crop == nil && !(resizeMode == .exact && contentMode == .aspectFill) }

    var longestSide: Int {
        switch targetSize {
        case .maximum: .max
        case .size(let width, let height): max(width, height)
        }
    }
}
