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
            attachments: "Response: adjustment data, input and display-size image, numbered as in the result."
        ),
        .method(apply, notifications: [.editsProgress], limits: .large),
        .method(preview, attachments: "Response: the image.", limits: .large),
        .method(revert),
        .method(copy, notifications: [.editsProgress], limits: .large),
        .method(suggest),
        .method(history),
        .method(undo),
        .method(compare, attachments: "Response: the image."),
        .method(describe, attachments: "Response: the file.", limits: .large),
        .method(discover),
        .method(health),
        .method(figures),
    ])

    /// The notifications that are pushed to the edits endpoint.
    public static let notifications = [
        MethodDescription(notification: PublishEdit.method, PublishEdit.self, to: "edits")
    ]
}
