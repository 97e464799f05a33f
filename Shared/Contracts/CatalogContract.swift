public import JSONValue
public import Messaging

/// Every request of the catalog.
public enum CatalogRequest: Sendable {
    case fetchAssets(FetchAssets)
    case fetchCollections(FetchCollections)
    case fetchLists(FetchLists)
    case counts(FetchCounts)
    case find(FindInFetch)
    case objects(FetchObjects)
    case keyAssets(FetchKeyAssets)
    case can(FetchCan)
    case createTransient(CreateTransient)
    case releaseTransient(ReleaseTransient)
    case details(ChangesDetails)
    case fetchKeys(FetchKeys)
    case perform(PerformChanges)
    case since(ChangesSince)
    case follow(ChangesFollow)
    case token(CurrentToken)
    case editsStatus(EditsStatus)
    case editsPending(EditsPending)
    case supports(SupportsResources)
    case readResource(ReadResource)
    case beginUpload(BeginUpload)
    case appendUpload(AppendUpload)
    case finishUpload(FinishUpload)
    case cancelUpload(CancelUpload)
    case backup(BackupLibrary)
    case rescan(RescanLibrary)
    case reportHarm(ReportHarm)
    case listQuarantine(ListQuarantine)
    case liftQuarantine(LiftQuarantine)
    case discover(Discover)
    case health(Health)
    case figures(Figures)

    public static let methods: [MethodDescription] = [
        MethodDescription(FetchAssets.self), MethodDescription(FetchCollections.self),
        MethodDescription(FetchLists.self), MethodDescription(FetchCounts.self), MethodDescription(FindInFetch.self),
        MethodDescription(FetchObjects.self), MethodDescription(FetchKeyAssets.self), MethodDescription(FetchCan.self),
        MethodDescription(CreateTransient.self), MethodDescription(ReleaseTransient.self),
        MethodDescription(ChangesDetails.self),
        MethodDescription(FetchKeys.self, attachments: "Notifications: keys, as ResultKey makes them."),
        MethodDescription(PerformChanges.self, attachments: "Bytes of resources and adjustment data, as numbered."),
        MethodDescription(ChangesSince.self), MethodDescription(ChangesFollow.self),
        MethodDescription(CurrentToken.self), MethodDescription(EditsStatus.self), MethodDescription(EditsPending.self),
        MethodDescription(SupportsResources.self),
        MethodDescription(ReadResource.self, attachments: "Reply or notifications: the bytes."),
        MethodDescription(BeginUpload.self), MethodDescription(AppendUpload.self, attachments: "The next bytes."),
        MethodDescription(FinishUpload.self), MethodDescription(CancelUpload.self),
        MethodDescription(BackupLibrary.self), MethodDescription(RescanLibrary.self),
        MethodDescription(ReportHarm.self), MethodDescription(ListQuarantine.self),
        MethodDescription(LiftQuarantine.self),
        MethodDescription(Discover.self), MethodDescription(Health.self), MethodDescription(Figures.self),
    ]

    public init(method: String, params: JSON) throws(RPCError) {
        switch method {
        case FetchAssets.method: self = .fetchAssets(try FetchAssets(params: params))
        case FetchCollections.method: self = .fetchCollections(try FetchCollections(params: params))
        case FetchLists.method: self = .fetchLists(try FetchLists(params: params))
        case FetchCounts.method: self = .counts(try FetchCounts(params: params))
        case FindInFetch.method: self = .find(try FindInFetch(params: params))
        case FetchObjects.method: self = .objects(try FetchObjects(params: params))
        case FetchKeyAssets.method: self = .keyAssets(try FetchKeyAssets(params: params))
        case FetchCan.method: self = .can(try FetchCan(params: params))
        case CreateTransient.method: self = .createTransient(try CreateTransient(params: params))
        case ReleaseTransient.method: self = .releaseTransient(try ReleaseTransient(params: params))
        case ChangesDetails.method: self = .details(try ChangesDetails(params: params))
        case FetchKeys.method: self = .fetchKeys(try FetchKeys(params: params))
        case PerformChanges.method:
            try PerformChanges.refuseNested(params)
            self = .perform(try PerformChanges(params: params))
        case ChangesSince.method: self = .since(try ChangesSince(params: params))
        case ChangesFollow.method: self = .follow(try ChangesFollow(params: params))
        case CurrentToken.method: self = .token(try CurrentToken(params: params))
        case EditsStatus.method: self = .editsStatus(try EditsStatus(params: params))
        case EditsPending.method: self = .editsPending(try EditsPending(params: params))
        case SupportsResources.method: self = .supports(try SupportsResources(params: params))
        case ReadResource.method: self = .readResource(try ReadResource(params: params))
        case BeginUpload.method: self = .beginUpload(try BeginUpload(params: params))
        case AppendUpload.method: self = .appendUpload(try AppendUpload(params: params))
        case FinishUpload.method: self = .finishUpload(try FinishUpload(params: params))
        case CancelUpload.method: self = .cancelUpload(try CancelUpload(params: params))
        case BackupLibrary.method: self = .backup(try BackupLibrary(params: params))
        case RescanLibrary.method: self = .rescan(try RescanLibrary(params: params))
        case ReportHarm.method: self = .reportHarm(try ReportHarm(params: params))
        case ListQuarantine.method: self = .listQuarantine(try ListQuarantine(params: params))
        case LiftQuarantine.method: self = .liftQuarantine(try LiftQuarantine(params: params))
        case Discover.method: self = .discover(try Discover(params: params))
        case Health.method: self = .health(try Health(params: params))
        case Figures.method: self = .figures(try Figures(params: params))
        default: throw unknownMethod(method, Self.methods)
        }
    }
}

/// The answer to a method that the service does not have.
func unknownMethod(_ method: String, _ methods: [MethodDescription]) -> RPCError {
    Refusal.methodNotFound.error(
        "there is no method \(method.prefix(64)); rpc.discover describes those there are",
        ["methods": JSON(methods.map(\.name))]
    )
}

extension JSONType where Value == JSONObject {
    /// An object with members of any name.
    static var members: JSONType {
        JSONType(
            schema: ["type": "object"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let object = json.objectValue else { throw JSONProblem("expected an object") }
                return object
            },
            encode: { .object($0) }
        )
    }
}
