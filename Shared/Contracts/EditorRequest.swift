import JSONValue
import PhotoModel

/// All requests of the editor.
public enum EditorRequest: ServiceRequest {
    case begin(BeginEditing)
    case apply(ApplyEdits)
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
            access: .read,
            attachments: "Response: adjustment data, input and display-size image, numbered as in the result."
        ),
        .method(apply, access: .change, notifications: [.editsProgress], limits: .large),
        .method(preview, access: .read, attachments: "Response: the image.", limits: .large),
        .method(revert, access: .change),
        .method(copy, access: .change, notifications: [.editsProgress], limits: .large),
        .method(suggest, access: .read),
        .method(history, access: .read),
        .method(undo, access: .change),
        .method(compare, access: .read, attachments: "Response: the image."),
        .method(describe, access: .read, attachments: "Response: the file.", limits: .large),
        .method(discover, access: .public),
        .method(health, access: .public),
        .method(figures, access: .read),
    ])

    /// The notifications that are pushed to the edits endpoint.
    public static let notifications = [
        MethodDescription(notification: PublishEdit.method, PublishEdit.self, to: "edits", access: .change)
    ]
}
