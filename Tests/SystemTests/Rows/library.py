"""Tests of the requirements for import, originals, bursts, smart albums and transient collections: S-04,
S-08, S-09, S-30, S-31, S-33, S-37, S-38, S-72, P-23, T-11, T-19, T-26, T-27 and T-28."""

from rows import *


def reimport_restores_from_the_trash():
    first = import_file("1.jpg")
    perform({"type": "asset.trash", "ids": [first]})
    second = import_file("1.jpg", ifDuplicate="createIfTrashed")
    assert second != first and ids(inTrash=True) == [first]
    perform({"type": "asset.delete", "ids": [second]})
    again = create("1.jpg")
    equal((again["placeholders"]["a"], again["duplicates"], again.get("restored")), (first, ["a"], [first]))
    assert again["isChanged"] and ids(inTrash=True) == [] and "trashedDate" not in asset(first)
    equal("restored" in create("1.jpg"), False)


def reimport_by_upload():
    first = import_file("2.jpg")
    perform({"type": "asset.trash", "ids": [first]})
    upload = call("catalog", "upload.begin")["upload"]
    call("catalog", "upload.append", [file("2.jpg")], upload=upload, offset=0)
    call("catalog", "upload.finish", upload=upload)
    request = {"type": "asset.create", "ref": "a", "resources": [{"upload": upload}]}
    equal(perform(request).get("restored"), [first])


def set_of_a_duplicate():
    first = import_file("3.jpg", set={"caption": "mine"})
    edit = {"render": {"attachment": 1}, "adjustmentData": {
        "formatIdentifier": "org.example", "formatVersion": "1", "attachment": 2}}
    request = {"type": "asset.create", "ref": "b", "resources": [{"attachment": 0}], "edit": edit,
               "set": {"isFavorite": True}}
    again = perform(request, attachments=[file("3.jpg"), file("4.jpg"), b"any"])
    now = asset(first)
    equal((now["isFavorite"], now["caption"], "adjustmentDate" in now), (True, "mine", False))
    equal(again.get("ignored"), [{"request": 0, "ref": "b", "members": ["edit"]}])


def chosen_original():
    request = {"type": "asset.create", "ref": "a", "resources": [
        {"type": "photo", "attachment": 0},
        {"type": "alternatePhoto", "attachment": 1, "originalFilename": "pair.dng"}]}
    jpeg, dng = file("5.jpg"), file("pair.dng")
    pair = perform(request, attachments=[jpeg, dng])["placeholders"]["a"]

    def shown(token, version="current"):
        size = {"width": 60, "height": 60}
        reply, image = call("thumbnailer", "image.request", asset=pair, targetSize=size, version=version,
                            format="png", deliveryMode="highQualityFormat", resizeMode="exact", atLeast=token)
        result, data = call("thumbnailer", "image.data", asset=pair, version=version, atLeast=token)
        return image[0], data[0], result["contentType"]

    token = call("catalog", "changes.token")["token"]
    as_jpeg, as_raw = shown(token), shown(token, "original")
    equal((as_jpeg[1] == jpeg, as_raw[1] == dng, as_jpeg[0] == as_raw[0]), (True, True, False))
    token = perform({"type": "asset.revert", "id": pair, "base": "raw"})["token"]
    equal(shown(token) == as_raw, True)
    now = asset(pair)
    equal((now["contentType"], now.get("originalResourceChoice")), ("com.adobe.raw-image", "raw"))
    equal((now["pixelWidth"], now["pixelHeight"]), (120, 80))
    equal(shown(token, "unadjusted") == as_jpeg, True)
    # The photo of the pair is still known by its bytes.
    equal(perform(request, attachments=[jpeg, dng])["duplicates"], ["a"])
    token = perform({"type": "asset.revert", "id": pair, "base": "compressed"})["token"]
    equal((shown(token) == as_jpeg, asset(pair)["originalResourceChoice"]), (True, "compressed"))


def lone_raw_files():
    raws = []
    for name, kind, size in (("lone.dng", "com.adobe.raw-image", (96, 64)),
                             ("lone.nef", "com.nikon.raw-image", (90, 60))):
        raws.append(import_file(name))
        now = asset(raws[-1])
        equal((now["mediaType"], now["contentType"]), ("image", kind))
        equal((now["pixelWidth"], now["pixelHeight"]), size)
    album = ids(**{"in": smart_album("smartAlbumRAW")})
    assert set(raws) <= set(album), album
    reply, _ = call("thumbnailer", "image.request", asset=raws[0], targetSize="max")
    equal((reply["pixelWidth"], reply["pixelHeight"]), (96, 64))


def recalled_outcome():
    request = {"type": "collection.create", "ref": "c", "title": "Recalled"}
    outcome = perform(request, transaction="recall-me")
    equal(perform(request, transaction="recall-me", recall=True), outcome)
    equal(perform(transaction="recall-me", recall=True), outcome)
    other = {**request, "title": "Other"}
    equal(refusal("catalog", "changes.perform", requests=[other], transaction="recall-me", recall=True),
          "id_reused")
    equal(refusal("catalog", "changes.perform", requests=[request], transaction="never", recall=True),
          "identifier_not_found")
    equal(refusal("catalog", "changes.perform", requests=[request], recall=True), "invalid_options")


def transient_collections():
    one, two, three = import_file("6.jpg"), import_file("7.jpg"), import_file("8.jpg")
    album = perform({"type": "collection.create", "ref": "c", "title": "A", "add": [one, two]})
    album = album["placeholders"]["c"]
    folder = perform({"type": "list.create", "ref": "l", "title": "F"})["placeholders"]["l"]
    held = call("catalog", "transient.create", ids=[two, three], title="Held")
    equal((held.get("title"), held["count"]), ("Held", 2))
    both = call("catalog", "transient.create", ids=[held["id"], album, folder], title="Both")
    page = call("catalog", "fetch.collections", fetch={"kind": "children", "in": both["id"]})
    equal(page["order"], [held["id"], album, folder])
    equal([found.get("title") for found in page["collections"]], ["Held", "A"])
    equal(ids(**{"in": both["id"]}), [one, two, three])
    equal(ids(**{"in": both["id"], "sort": [{"key": "addedDate", "ascending": False}], "limit": 2}),
          [three, two])
    fetches = [{"kind": "assets", "in": both["id"]}, {"kind": "children", "in": both["id"]}]
    equal(call("catalog", "fetch.counts", fetches=fetches)["counts"], [3, 3])
    found = call("catalog", "fetch.collections", fetch={"kind": "collections", "ids": [held["id"]]})
    equal([(one["title"], one["estimatedAssetCount"]) for one in found["collections"]], [("Held", 2)])
    for request in ({"type": "collection.update", "id": held["id"], "title": "x"},
                    {"type": "collection.update", "id": held["id"], "add": [one]},
                    {"type": "collection.delete", "ids": [held["id"]]},
                    {"type": "list.update", "id": both["id"], "title": "x"},
                    {"type": "list.update", "id": folder, "edits": [{"op": "add", "members": [held["id"]]}]},
                    {"type": "list.delete", "ids": [both["id"]]}):
        equal((request["type"], refusal("catalog", "changes.perform", requests=[request])),
              (request["type"], "change_not_supported"))


def playback_variation():
    still = import_file("9.jpg")
    for effect, name in (("longExposure", "request_not_supported"), ("none", None)):
        request = {"type": "asset.update", "id": still, "set": {"playbackVariation": effect}}
        equal(refusal("catalog", "changes.perform", requests=[request]), name)
    request = {"type": "asset.create", "ref": "a", "set": {"playbackVariation": "autoloop"}, "resources": [
        {"type": "photo", "attachment": 0}, {"type": "pairedVideo", "attachment": 1}]}
    live = perform(request, attachments=[file("10.jpg"), file("live.mov")])["placeholders"]["a"]
    equal(asset(live)["playbackVariation"], "autoloop")
    del request["resources"][1]
    equal(refusal("catalog", "changes.perform", [file("11.jpg")], requests=[request]),
          "request_not_supported")


def two_photos_in_one_asset():
    def outcome(*types):
        resources = [{"type": type, "attachment": number} for number, type in enumerate(types)]
        request = {"type": "asset.create", "resources": resources}
        files = [file(f"{11 + number}.jpg") for number in range(len(types))]
        return refusal("catalog", "changes.perform", files, requests=[request])

    equal((outcome("photo", "photo"), outcome("photo", "video"), outcome("alternatePhoto")),
          ("resources_disagree", "resources_disagree", "missing_resource"))


def automatic_picks():
    names = ["frame0.jpg", "frame1.jpg", "frame2.jpg"]
    frames = [import_file(name, burst={"identifier": "stripes"}) for name in names]
    equal([asset(frame).get("burstSelectionTypes", []) for frame in frames], [[], ["autoPick"], []])
    perform({"type": "asset.trash", "ids": [frames[1]]})
    equal([asset(frames[0])["burstSelectionTypes"], asset(frames[2]).get("burstSelectionTypes")],
          [["autoPick"], None])


def remaining_smart_albums():
    other, unable = smart_album("smartAlbumGeneric"), smart_album("smartAlbumUnableToUpload")
    assert other and unable
    plain = import_file("13.jpg")
    assert plain in ids(**{"in": other})
    assert import_file("lone.nef") not in ids(**{"in": other})
    feed = Subscription("changes")
    damaged = import_file("cut.jpg")
    while ids(**{"in": unable}) != [damaged]:
        feed.receive()
    assert damaged in ids(**{"in": other})
    equal(call("catalog", "fetch.counts", fetches=[{"kind": "assets", "in": unable}])["counts"], [1])


def what_collections_can_contain():
    album = perform({"type": "collection.create", "ref": "c", "title": "B"})["placeholders"]["c"]
    fetch = {"kind": "collections", "ids": [album]}
    found = call("catalog", "fetch.collections", fetch=fetch)["collections"][0]
    root = call("catalog", "fetch.lists", fetch={"kind": "lists", "type": "folder"})["lists"][0]
    equal([(one.get("canContainAssets"), one.get("canContainCollections")) for one in (found, root)],
          [(True, False), (False, True)])


def state_of_adjustments():
    plain = import_file("14.jpg")
    equal(asset(plain).get("adjustmentsState"), None)
    data = {"formatIdentifier": "org.example", "formatVersion": "1", "attachment": 1}
    edit = {"type": "asset.edit", "id": plain, "render": {"attachment": 0}, "adjustmentData": data}
    perform(edit, attachments=[file("4.jpg"), b"any"])
    equal(asset(plain).get("adjustmentsState"), "userAdjusted")


def hidden_representative():
    names = ["2.jpg", "3.jpg", "4.jpg"]
    frames = [import_file(name, burst={"identifier": "hidden"}, ifDuplicate="create") for name in names]

    def representatives():
        return [number for number, frame in enumerate(frames) if asset(frame).get("representsBurst")]

    def hide(number, isHidden=True):
        perform({"type": "asset.update", "id": frames[number], "set": {"isHidden": isHidden}})
        return representatives()

    equal(representatives(), [0])
    equal((hide(0), hide(1), hide(2)), ([1], [2], [2]))
    equal((hide(0, False), hide(2, False)), ([0], [0]))
    assert frames[0] in ids() and frames[1] not in ids()


if __name__ == "__main__":
    run(
        reimport_restores_from_the_trash,
        reimport_by_upload,
        set_of_a_duplicate,
        chosen_original,
        lone_raw_files,
        recalled_outcome,
        transient_collections,
        playback_variation,
        two_photos_in_one_asset,
        automatic_picks,
        remaining_smart_albums,
        what_collections_can_contain,
        state_of_adjustments,
        hidden_representative,
    )
