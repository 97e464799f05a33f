/// The part of the script of ``LimitedScriptTests`` that compares collections and cloud identifiers with a model: the
/// owner's, reduced to the assets of the list.
enum LimitedCollectionsScript {
    static let text = #"""
        DAY = 86_400_000_000


        def collections(client, **fetch):
            return client.call("catalog", "fetch.collections", fetch={"kind": "collections", **fetch})


        def expected_moments(listed):
            """The moments of the assets of the list: the place and the day of the owner's, the facts of these assets."""
            found = {}
            for id, asset in everything(owner).items():
                if id not in listed:
                    continue
                for moment in collections(owner, containing=id, type="moment")["collections"]:
                    assert not asset["isHidden"] and "trashedDate" not in asset
                    found.setdefault(moment["id"], (moment, []))[1].append(asset)
            expected = []
            for moment, members in found.values():
                facts = {name: moment[name] for name in (
                    "id", "type", "subtype", "title", "approximateLocation", "localizedLocationNames") if name in moment}
                dates = [asset["creationDate"] for asset in members]
                expected.append({**facts, "startDate": min(dates), "endDate": max(dates),
                                 "estimatedAssetCount": len(members),
                                 "creationDate": min(asset["addedDate"] for asset in members),
                                 "modificationDate": max(asset["modificationDate"] for asset in members)})
            return sorted(expected, key=lambda moment: (moment["startDate"], moment["id"]))


        def lists(client, **fetch):
            return client.call("catalog", "fetch.lists", fetch={"kind": "lists", **fetch})


        def expected_lists(moments):
            """The lists of moments: the owner's, with the facts of these moments, and their moments."""
            expected, of_list = [], {}
            for owners in lists(owner, type="momentList")["lists"]:
                below = {one["id"] for one in collections(owner, **{"kind": "children", "in": owners["id"]})["collections"]}
                inside = [one for one in moments if one["id"] in below]
                if not inside:
                    continue
                facts = {name: owners[name] for name in ("id", "type", "subtype", "title") if name in owners}
                expected.append({**facts, "childCount": len(inside), "startDate": min(one["startDate"] for one in inside),
                                 "endDate": max(one["endDate"] for one in inside),
                                 "creationDate": min(one["creationDate"] for one in inside),
                                 "modificationDate": max(one["modificationDate"] for one in inside)})
                of_list[owners["id"]] = inside
            return sorted(expected, key=lambda one: (one["startDate"], one["id"])), of_list


        def compare_lists(listed, moments):
            expected, of_list = expected_lists(moments)
            page = lists(viewer, type="momentList")
            equal((plain(page["lists"]), page["count"]), (expected, len(expected)))
            years = lists(viewer, subtype="momentListYear", sort=[{"key": "endDate", "ascending": False}])
            equal({one["id"] for one in years["lists"]},
                  {one["id"] for one in expected if one["subtype"] == "momentListYear"})
            equal({one["id"] for one in lists(viewer)["lists"]}, {one["id"] for one in expected})
            owners = [one["id"] for one in lists(owner)["lists"]]
            named = lists(viewer, ids=owners[::-1])["lists"]
            equal([one["id"] for one in named], [id for id in owners[::-1] if id in of_list])
            for id in owners:
                children = {"kind": "children", "in": id}
                below = {"kind": "assets", "in": id}
                if id not in of_list:
                    is_moments = not plain([lists(owner, ids=[id])["lists"][0]])[0]["type"] == "folder"
                    for method, params in (("fetch.collections", {"fetch": children}),
                                           ("fetch.counts", {"fetches": [children]})):
                        equal((method, viewer.refusal("catalog", method, **params)),
                              (method, "identifier_not_found" if is_moments else "access_denied"))
                    equal(viewer.refusal("catalog", "fetch.assets", fetch=below), "identifier_not_found")
                    equal(viewer.call("catalog", "fetch.can", ids=[id])["can"], {})
                    continue
                moments = viewer.call("catalog", "fetch.collections", fetch=children)["collections"]
                equal(plain(moments), of_list[id])
                found = viewer.call("catalog", "fetch.find", fetch=children, ids=[moments[-1]["id"], id])["indexes"]
                equal(found, [len(moments) - 1, None])
                wanted = [a for a in stripped(assets(**{"in": id})) if a["id"] in listed]
                equal(stripped(assets(viewer, **{"in": id})), wanted)
                equal(viewer.call("catalog", "fetch.counts", fetches=[below, children])["counts"],
                      [len(wanted), len(moments)])
                equal(list(viewer.call("catalog", "fetch.can", ids=[id])["can"]), [id])


        def plain(moments):
            """Moments without what every collection of their kind has, and without the opaque revision."""
            names = ("revision", "canContainAssets", "canContainCollections", "can")
            return [{name: value for name, value in moment.items() if name not in names} for moment in moments]


        # The moments of each comparison, and the token at which they were these.
        earlier = []


        def compare_collections(listed):
            expected = expected_moments(listed)
            page = collections(viewer, type="moment")
            equal((plain(page["collections"]), page["count"]), (expected, len(expected)))
            for token, moments in earlier[-2:]:
                then = viewer.call("catalog", "fetch.collections", token=token,
                                   fetch={"kind": "collections", "type": "moment"})
                equal(plain(then["collections"]), moments)
                for moment in moments:
                    fetch = {"kind": "assets", "in": moment["id"]}
                    equal(viewer.call("catalog", "fetch.counts", fetches=[fetch], token=token)["counts"],
                          [moment["estimatedAssetCount"]])
            earlier.append((page["token"], expected))
            compare_lists(listed, expected)
            many = collections(viewer, type="moment", predicate="estimatedAssetCount > 1")
            equal(plain(many["collections"]), [one for one in expected if one["estimatedAssetCount"] > 1])
            latest = collections(viewer, type="moment", sort=[{"key": "endDate", "ascending": False}], limit=2)
            equal([one["endDate"] for one in latest["collections"]],
                  sorted((one["endDate"] for one in expected), reverse=True)[:2])
            smart = collections(owner, type="smartAlbum")["collections"]
            for album in smart:
                album.pop("keyAsset", None)
            equal(collections(viewer, type="smartAlbum")["collections"], smart)
            equal({one["id"] for one in collections(viewer)["collections"]},
                  {one["id"] for one in smart + expected})
            owners = collections(owner, type="moment")["collections"]
            known = {one["id"] for one in expected}
            named = collections(viewer, ids=[one["id"] for one in owners[::-1]])["collections"]
            equal(plain(named), plain(sorted(
                expected, key=lambda one: [other["id"] for other in owners[::-1]].index(one["id"]))))
            for collection in [*smart, *owners]:
                fetch = {"kind": "assets", "in": collection["id"]}
                if collection["id"] not in known and collection["type"] == "moment":
                    for method, params in (("fetch.assets", {"fetch": fetch}), ("fetch.counts", {"fetches": [fetch]}),
                                           ("fetch.find", {"fetch": fetch, "ids": sorted(listed)}),
                                           ("fetch.objects", {"fetch": fetch, "at": [0]}),
                                           ("fetch.keyAssets", {"collection": collection["id"]})):
                        equal((method, viewer.refusal("catalog", method, **params)), (method, "identifier_not_found"))
                    equal(viewer.call("catalog", "fetch.can", ids=[collection["id"]])["can"], {})
                    continue
                wanted = [a for a in stripped(assets(**{"in": collection["id"]})) if a["id"] in listed]
                equal(stripped(assets(viewer, **{"in": collection["id"]})), wanted)
                equal(viewer.call("catalog", "fetch.counts", fetches=[fetch])["counts"], [len(wanted)])
                covers = stripped(viewer.call("catalog", "fetch.keyAssets", collection=collection["id"])["assets"])
                equal(covers, wanted[:3])
                equal(list(viewer.call("catalog", "fetch.can", ids=[collection["id"]])["can"]), [collection["id"]])
                equal(viewer.refusal("broker", "fetch.observe", fetch=fetch),
                      "identifier_not_found" if collection["type"] == "moment" else None)


        NOT_FOUND = {"error": "identifier_not_found", "code": 3201}


        def compare_cloud_identifiers(listed):
            unknown = "a" + "0" * 26
            # The other album's identifier must be in no answer, and answers repeat what was asked.
            albums = [one["id"] for one in collections(owner, type="album")["collections"] if one["title"] == "named"]
            assert albums
            ids = [*sorted(everything(owner)), unknown, *albums]
            whole = owner.call("catalog", "ids.toCloud", ids=ids)["mappings"]
            present = {id for id in everything(owner) if id in listed}
            equal(viewer.call("catalog", "ids.toCloud", ids=ids)["mappings"],
                  {id: mapping if id in present else NOT_FOUND for id, mapping in whole.items()})
            clouds = sorted({mapping["id"] for mapping in whole.values() if "id" in mapping})
            found = owner.call("catalog", "ids.toLocal", cloudIds=clouds)["mappings"]
            expected = {}
            for cloud, mapping in found.items():
                candidates = [id for id in mapping.get("candidates", [mapping.get("id")]) if id in present]
                expected[cloud] = (NOT_FOUND if not candidates else {"id": candidates[0]} if len(candidates) == 1 else
                                   {"error": "multiple_identifiers", "code": 3202, "candidates": candidates})
            equal(viewer.call("catalog", "ids.toLocal", cloudIds=clouds)["mappings"], expected)


        """#
}
