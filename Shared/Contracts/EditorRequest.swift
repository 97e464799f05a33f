import JSONValue
import PhotoModel

/// All requests of the editor.
public enum EditorRequest: ServiceRequest {
    case begin(BeginEditing)
    case apply(ApplyEdits)
    case livePhoto(EditLivePhoto)
    case preview(PreviewEdit)
    case revert(RevertEdit)
    case copy(CopyEdits)
    case compare(CompareEdit)
    case describe(DescribeEdit)
    case suggest(SuggestEdit)
    case history(EditHistory)
    case undo(UndoEdits)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<EditorRequest>([
        .method(
            begin,
            access: .view,
            attachments: "Response: adjustment data, input and display-size image, numbered as in the result.",
            notifications: [.resourceProgress]
        ),
        .method(apply, access: .view, notifications: [.editsProgress, .resourceProgress], limits: .large),
        .method(livePhoto, access: .view, notifications: [.editsProgress, .resourceProgress], limits: .large),
        .method(
            preview,
            access: .view,
            attachments: "Response: the image, then the video of a Live Photo, if the result has one.",
            notifications: [.resourceProgress],
            limits: .large
        ),
        .method(revert, access: .view),
        .method(copy, access: .view, notifications: [.editsProgress], limits: .large),
        .method(suggest, access: .view, notifications: [.resourceProgress]),
        .method(history, access: .view),
        .method(undo, access: .view, notifications: [.resourceProgress]),
        .method(
            compare,
            access: .view,
            attachments: "Response: the image.",
            notifications: [.resourceProgress]
        ),
        .method(
            describe,
            access: .view,
            attachments: "Response: the file.",
            notifications: [.resourceProgress],
            limits: .large
        ),
        .method(discover, access: .public),
        .method(health, access: .public),
        .method(figures, access: .read),
    ])

    /// The notifications that are pushed to the edits endpoint.
    public static let notifications = [
        MethodDescription(notification: PublishEdit.method, PublishEdit.self, to: "edits", access: .view)
    ]
}
