/// All requests of the catalog.
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
    case difference(DetailsDiff)
    case fetchKeys(FetchKeys)
    case perform(PerformChanges)
    case since(ChangesSince)
    case follow(ChangesFollow)
    case token(CurrentToken)
    case editsStatus(EditsStatus)
    case editsPending(EditsPending)
    case supports(SupportsResources)
    case readResource(ReadResource)
    case exportResource(ExportResource)
    case beginUpload(BeginUpload)
    case appendUpload(AppendUpload)
    case finishUpload(FinishUpload)
    case cancelUpload(CancelUpload)
    case backup(BackupLibrary)
    case rescan(RescanLibrary)
    case collect(CollectLibrary)
    case reportHarm(ReportWorkerFault)
    case listQuarantine(ListQuarantine)
    case liftQuarantine(LiftQuarantine)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<CatalogRequest>([
        .method(fetchAssets, limits: .large),
        .method(fetchCollections, limits: .large),
        .method(fetchLists, limits: .large),
        .method(counts, limits: .large),
        .method(find, limits: .large),
        .method(objects, limits: .large),
        .method(keyAssets, limits: .large),
        .method(can, limits: .large),
        .method(createTransient, limits: .large),
        .method(releaseTransient),
        .method(details, limits: .large),
        .method(difference, limits: .large),
        .method(
            fetchKeys,
            attachments: "Notifications: keys, as encoded by ResultKey.",
            notifications: [.keys],
            limits: .large
        ),
        .method(
            perform,
            attachments: "Bytes of resources and adjustment data; the requests name them by number.",
            limits: .transaction
        ),
        .method(since),
        .method(follow, notifications: [.changeRecords]),
        .method(token),
        .method(editsStatus),
        .method(editsPending),
        .method(supports),
        .method(
            readResource,
            attachments: "Response or notifications: the bytes.",
            notifications: [.resourceChunk]
        ),
        .method(exportResource, attachments: "The bytes, if no path is given."),
        .method(beginUpload),
        .method(appendUpload, attachments: "The bytes to append.", limits: .withAttachments),
        .method(finishUpload),
        .method(cancelUpload),
        .method(backup, notifications: [.libraryProgress]),
        .method(rescan, notifications: [.libraryProgress]),
        .method(collect),
        .method(reportHarm),
        .method(listQuarantine),
        .method(liftQuarantine),
        .method(discover),
        .method(health),
        .method(figures),
    ])
}
