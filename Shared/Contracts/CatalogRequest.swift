/// All requests of the catalog.
public enum CatalogRequest: ServiceRequest {
    case fetchAssets(FetchAssets)
    case fetchCollections(FetchCollections)
    case fetchLists(FetchLists)
    case counts(FetchCounts)
    case find(FindInFetch)
    case objects(FetchObjects)
    case keyAssets(FetchKeyAssets)
    case duplicates(FetchDuplicates)
    case can(FetchCan)
    case toCloud(IDsToCloud)
    case toLocal(IDsToLocal)
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
    case downloadResource(DownloadResource)
    case storageStatus(StorageStatus)
    case storageVerify(VerifyStorage)
    case storageKeep(KeepInStorage)
    case storageRetry(RetryStorage)
    case createJobs(CreateUploadJobs)
    case listJobs(ListUploadJobs)
    case updateJobs(UpdateUploadJobs)
    case beginUpload(BeginUpload)
    case appendUpload(AppendUpload)
    case finishUpload(FinishUpload)
    case cancelUpload(CancelUpload)
    case libraryStatus(LibraryStatus)
    case backup(BackupLibrary)
    case rescan(RescanLibrary)
    case collect(CollectLibrary)
    case reportWorkerFault(ReportWorkerFault)
    case listQuarantine(ListQuarantine)
    case liftQuarantine(LiftQuarantine)
    case openSession(OpenSession)
    case listGrants(ListGrants)
    case pendingGrants(PendingGrants)
    case approveGrant(ApproveGrant)
    case denyGrant(DenyGrant)
    case limitGrant(LimitGrant)
    case revokeGrant(RevokeGrant)
    case grantHistory(GrantHistory)
    case grantStatus(GrantStatus)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<CatalogRequest>([
        .method(fetchAssets, access: .view, limits: .large),
        .method(fetchCollections, access: .view, limits: .large),
        .method(fetchLists, access: .view, limits: .large),
        .method(counts, access: .view, limits: .large),
        .method(find, access: .view, limits: .large),
        .method(objects, access: .view, limits: .large),
        .method(keyAssets, access: .view, limits: .large),
        .method(duplicates, access: .read),
        .method(can, access: .view, limits: .large),
        .method(toCloud, access: .view),
        .method(toLocal, access: .view),
        .method(createTransient, access: .view, limits: .large),
        .method(releaseTransient, access: .view),
        .method(details, access: .view, limits: .large),
        .method(difference, access: .view, limits: .large),
        .method(
            fetchKeys,
            access: .read,
            attachments: "Notifications: keys, as encoded by ResultKey.",
            notifications: [.keys],
            limits: .large
        ),
        .method(
            perform,
            access: .add,
            attachments: "Bytes of resources and adjustment data; the requests name them by number.",
            limits: .transaction
        ),
        .method(since, access: .view),
        .method(follow, access: .view, notifications: [.changeRecords]),
        .method(token, access: .view),
        .method(editsStatus, access: .view, limits: .waiting),
        .method(editsPending, access: .service, limits: .waiting),
        .method(supports, access: .public),
        .method(
            readResource,
            access: .view,
            attachments: "Response or notifications: the bytes.",
            notifications: [.resourceChunk, .resourceProgress]
        ),
        .method(
            exportResource,
            access: .view,
            attachments: "The bytes, if no path is given.",
            notifications: [.resourceProgress]
        ),
        .method(downloadResource, access: .view, notifications: [.resourceProgress]),
        .method(storageStatus, access: .owner),
        .method(storageVerify, access: .owner, notifications: [.libraryProgress]),
        .method(storageKeep, access: .owner, notifications: [.libraryProgress], limits: .large),
        .method(storageRetry, access: .owner),
        .method(createJobs, access: .add),
        .method(listJobs, access: .add, limits: .waiting),
        .method(updateJobs, access: .add),
        .method(beginUpload, access: .add),
        .method(
            appendUpload,
            access: .add,
            attachments: "The bytes to append, at most the `chunkBytes` of `upload.begin`.",
            limits: .withAttachments
        ),
        .method(finishUpload, access: .add),
        .method(cancelUpload, access: .add),
        .method(libraryStatus, access: .add, limits: .waiting),
        .method(backup, access: .owner, notifications: [.libraryProgress]),
        .method(rescan, access: .owner, notifications: [.libraryProgress]),
        .method(collect, access: .owner),
        .method(reportWorkerFault, access: .service),
        .method(listQuarantine, access: .read),
        .method(liftQuarantine, access: .owner),
        .method(openSession, access: .public),
        .method(listGrants, access: .owner),
        .method(pendingGrants, access: .owner),
        .method(approveGrant, access: .owner),
        .method(denyGrant, access: .owner),
        .method(limitGrant, access: .owner, limits: .large),
        .method(revokeGrant, access: .owner),
        .method(grantHistory, access: .owner),
        .method(grantStatus, access: .service),
        .method(discover, access: .public),
        .method(health, access: .public),
        .method(figures, access: .read),
    ])
}
