import PhotoModel

/// All requests of the change-broker.
public enum ChangeBrokerRequest: ServiceRequest {
    case since(FeedSince)
    case follow(FeedFollow)
    case head(FeedHeadRequest)
    case observe(FetchObserve)
    case unobserve(FetchUnobserve)
    case details(FetchDetails)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<ChangeBrokerRequest>([
        .method(since, access: .view),
        .method(follow, access: .view, notifications: [.feedRecords, .feedProgress]),
        .method(head, access: .view),
        .method(observe, access: .view, limits: .large),
        .method(unobserve, access: .view),
        .method(details, access: .view, limits: .large),
        .method(discover, access: .public),
        .method(health, access: .public),
        .method(figures, access: .read),
    ])
}
