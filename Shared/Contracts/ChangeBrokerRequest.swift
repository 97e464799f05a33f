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
        .method(since),
        .method(follow, notifications: [.feedRecords, .feedProgress]),
        .method(head),
        .method(observe, limits: .large),
        .method(unobserve),
        .method(details, limits: .large),
        .method(discover),
        .method(health),
        .method(figures),
    ])
}
