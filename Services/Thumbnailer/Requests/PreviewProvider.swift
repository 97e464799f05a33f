import Contracts
import Hosting
import JSONValue
import PhotoModel
import Synchronization

/// Provides degraded images quickly: previews embedded in files, and quick decodes.
final class PreviewProvider: Sendable {
    /// The key of a preview. A quick decode has another key than the embedded preview.
    private struct PreviewRequest: Sendable, Hashable {
        var plan: RenditionPlan
        var isQuick: Bool
    }

    private let memory = RenditionMemoryCache<PreviewRequest>(budget: PreviewProvider.budget)
    private let work: CoalescingWorkQueue<PreviewRequest, PreviewRequest, EncodedRendition?>
    private let state: Mutex<State>

    private struct State {
        /// The digests of files that contain no preview.
        var withoutPreview = LRUIndex<String>(budget: 20_000)
        /// Plans of recent requests without their digest.
        var recentPlans: [RenditionPlan] = []
    }

    private static let budget: Int64 = 16 << 20
    private static let maxRecentPlans = 8

    init(renderer: Renderer, limit: Int, metrics: ThumbnailerMetrics) {
        state = Mutex(State())
        work = CoalescingWorkQueue(limit: limit, maxBatches: 2, group: { $0 }) { requests in
            // Not cancelled when the last waiter leaves: the work is short, and replacing a killed worker takes longer.
            await Task {
                var outcomes: [Result<EncodedRendition?, RPCError>] = []
                for request in requests {
                    metrics.previews.add()
                    do throws(RPCError) {
                        outcomes.append(.success(try await renderer.degraded(request.plan, isQuick: request.isQuick)))
                    } catch {
                        outcomes.append(.failure(error))
                    }
                }
                return outcomes
            }.value
        }
    }

    func run() async { await work.run() }

    /// Returns the preview embedded in the file as the plan describes it, never enlarged. For a video it is the key
    /// frame before the requested frame; nil for the automatic frame, which is one of the first.
    func embedded(_ plan: RenditionPlan, urgency: RequestUrgency) async -> EncodedRendition? {
        if let frame = plan.frame, frame.time ?? 0 == 0 { return nil }
        guard state.withLock({ !$0.withoutPreview.contains(plan.digest) }) else { return nil }
        return await degraded(PreviewRequest(plan: plan, isQuick: false), urgency)
    }

    /// Returns a rendition from a quick decode.
    func quickDecode(_ plan: RenditionPlan, urgency: RequestUrgency) async -> EncodedRendition? {
        await degraded(PreviewRequest(plan: plan, isQuick: true), urgency)
    }

    /// Returns true if a rendition from a quick decode is cached.
    func hasQuickDecode(_ plan: RenditionPlan) -> Bool {
        memory.rendition(PreviewRequest(plan: plan, isQuick: true)) != nil
    }

    private func degraded(_ request: PreviewRequest, _ urgency: RequestUrgency) async -> EncodedRendition? {
        if let rendition = memory.rendition(request) { return rendition }
        // A missing preview is not an error: the rendition itself follows and reports the problem.
        guard case .success(let rendition)? = await outcome(of: request, urgency) else { return nil }
        if let rendition {
            memory.insert(rendition, request)
        } else if !request.isQuick, request.plan.frame == nil {
            _ = state.withLock { $0.withoutPreview.insert(request.plan.digest, cost: 1) }
        }
        return rendition
    }

    private func outcome(
        of request: PreviewRequest,
        _ urgency: RequestUrgency
    ) async -> Result<EncodedRendition?, RPCError>? {
        let owner = request.plan.requester.limitedClient
        do throws(RPCError) {
            return .success(try await work.value(request, urgency: urgency, owner: owner))
        } catch { return nil }
    }

    // MARK: Recent options

    /// Records the options of a request, so that smaller cached renditions can be found when a larger one is requested.
    func rememberOptions(of plan: RenditionPlan) {
        guard plan.isWhole else { return }
        var options = plan
        options.digest = ""
        options.frame = nil
        state.withLock { state in
            if state.recentPlans.first == options { return }
            state.recentPlans.removeAll { $0 == options }
            state.recentPlans.insert(options, at: 0)
            if state.recentPlans.count > Self.maxRecentPlans { state.recentPlans.removeLast() }
        }
    }

    /// Returns plans of the same file with recently requested, smaller options, the largest first.
    func smaller(_ plan: RenditionPlan) -> [RenditionPlan] {
        guard plan.isWhole else { return [] }
        let recentPlans = state.withLock { $0.recentPlans }
        return recentPlans.filter {
            $0.format == plan.format && $0.headroom == plan.headroom && $0.longestSide < plan.longestSide
        }
        .sorted { $0.longestSide > $1.longestSide }
        .map { options in
            var smaller = options
            smaller.digest = plan.digest
            smaller.frame = plan.frame
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
