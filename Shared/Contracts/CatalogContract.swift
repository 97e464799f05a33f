/// Every request of the catalog.
public enum CatalogRequest: ServiceRequest {
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

    public static let table = MethodTable<CatalogRequest>([
        .method(fetchAssets),
        .method(fetchCollections),
        .method(fetchLists),
        .method(counts),
        .method(find),
        .method(objects),
        .method(keyAssets),
        .method(can),
        .method(createTransient),
        .method(releaseTransient),
        .method(details),
        .method(fetchKeys, attachments: "Notifications: keys, as ResultKey makes them."),
        .method(perform, attachments: "Bytes of resources and adjustment data, as numbered."),
        .method(since),
        .method(follow),
        .method(token),
        .method(editsStatus),
        .method(editsPending),
        .method(supports),
        .method(readResource, attachments: "Reply or notifications: the bytes."),
        .method(beginUpload),
        .method(appendUpload, attachments: "The next bytes."),
        .method(finishUpload),
        .method(cancelUpload),
        .method(backup),
        .method(rescan),
        .method(reportHarm),
        .method(listQuarantine),
        .method(liftQuarantine),
        .method(discover),
        .method(health),
        .method(figures),
    ])
}
