import Contracts
import JSONValue
import PhotoClient
import PhotoModel

@testable import ChangeBroker

/// The steps of tests that observe fetches of a real broker over a fake catalog.
protocol ObservationSteps {}

extension ObservationSteps {
    /// Returns a fetch of the assets rated two or more, the best first.
    func best(limit: Int = 0, offset: Int = 0) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        fetch.predicate = "rating >= 2"
        fetch.sort = [SortDescription(key: "rating", ascending: false)]
        fetch.limit = limit
        fetch.offset = offset
        return fetch
    }

    /// Sets the ratings of the assets 1, 2, 3, ….
    func rateAssets(_ ratings: [Int], in fixture: BrokerFixture) async {
        for (number, rating) in ratings.enumerated() { await fixture.catalog.rate(UInt64(number + 1), rating) }
    }

    func ids(_ numbers: UInt64...) -> [ObjectID] { numbers.map(assetID) }

    func observe(
        _ fetch: FetchDescription,
        _ fixture: BrokerFixture,
        since token: ChangeToken? = nil
    ) async throws -> FetchObserve.Result {
        try await fixture.library.changeBroker.ask(FetchObserve(fetch: fetch, token: token)).result
    }

    func details(
        _ observed: FetchObserve.Result,
        _ fixture: BrokerFixture,
        since token: ChangeToken,
        incremental: Bool = true,
        form: DetailsForm = .details
    ) async throws -> FetchDetailsResult {
        let request = FetchDetails(
            observation: observed.details.observation,
            token: token,
            isIncremental: incremental,
            form: form
        )
        return try await fixture.library.changeBroker.ask(request).result
    }
}
