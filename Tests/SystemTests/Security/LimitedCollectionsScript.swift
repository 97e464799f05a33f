/// The part of the script of ``LimitedScriptTests`` that compares collections and cloud identifiers with a model: those
/// of the owner, reduced to the listed assets.
enum LimitedCollectionsScript {
    static let text = #"""
        DAY = 86_400_000_000


        def collections(client, **fetch):
            return client.call("catalog", "fetch.collections", fetch={"kind": "collections", **fetch})


        def expected_moments(listed):
            """Returns the moments that contain listed assets, with the dates and counts of these assets."""
            members_by_moment = {}
            for id, asset in everything(owner).items():
                if id not in listed:
                    continue
                for moment in collections(owner, containing=id, type="moment")["collections"]:
                    assert not asset["isHidden"] and "trashedDate" not in asset
                    members_by_moment.setdefault(moment["id"], (moment, []))[1].append(asset)
            expected = []
            for moment, members in members_by_moment.values():
                facts = {name: moment[name] for name in (
                    "id", "type", "subtype", "title", "approximateLocation", "localizedLocationNames") if name in moment}
                dates = [asset["creationDate"] for asset in members]
                expected.append({**facts, "startDate": min(dates), "endDate": max(dates),
                                 "estimatedAssetCount": len(members),
                                 "creationDate": min(asset["addedDate"] for asset in members),
                                 "modificationDate": max(asset["addedDate"] for asset in members)})
            return sorted(expected, key=lambda moment: (moment["startDate"], moment["id"]))


        def lists(client, **fetch):
            return client.call("catalog", "fetch.lists", fetch={"kind": "lists", **fetch})


        def expected_lists(moments):
            """Returns the owner's lists of moments with the dates and counts of these moments, and their moments."""
            expected, of_list = [], {}
            for owners in lists(owner, type="momentList")["lists"]:
                children = collections(owner, **{"kind": "children", "in": owners["id"]})["collections"]
                below = {entity["id"] for entity in children}
                inside = [entity for entity in moments if entity["id"] in below]
                if not inside:
                    continue
                facts = {name: owners[name] for name in ("id", "type", "subtype", "title") if name in owners}
                expected.append({**facts, "childCount": len(inside),
                                 "startDate": min(entity["startDate"] for entity in inside),
                                 "endDate": max(entity["endDate"] for entity in inside),
                                 "creationDate": min(entity["creationDate"] for entity in inside),
                                 "modificationDate": max(entity["modificationDate"] for entity in inside)})
                of_list[owners["id"]] = inside
            return sorted(expected, key=lambda entity: (entity["startDate"], entity["id"])), of_list


        def compare_lists(listed, moments):
            expected, of_list = expected_lists(moments)
            page = lists(viewer, type="momentList")
            equal((plain(page["lists"]), page["count"]), (expected, len(expected)))
            years = lists(viewer, subtype="momentListYear", sort=[{"key": "endDate", "ascending": False}])
            equal({entity["id"] for entity in years["lists"]},
                  {entity["id"] for entity in expected if entity["subtype"] == "momentListYear"})
            equal({entity["id"] for entity in lists(viewer)["lists"]}, {entity["id"] for entity in expected})
            owners = [entity["id"] for entity in lists(owner)["lists"]]
            named = lists(viewer, ids=owners[::-1])["lists"]
            equal([entity["id"] for entity in named], [id for id in owners[::-1] if id in of_list])
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
                expected_assets = [a for a in stripped(assets(**{"in": id})) if a["id"] in listed]
                equal(stripped(assets(viewer, **{"in": id})), expected_assets)
                equal(viewer.call("catalog", "fetch.counts", fetches=[below, children])["counts"],
                      [len(expected_assets), len(moments)])
                equal(list(viewer.call("catalog", "fetch.can", ids=[id])["can"]), [id])


        def plain(moments):
            """Returns moments without the members that are equal in all of them, and without the opaque revision."""
            names = ("revision", "canContainAssets", "canContainCollections", "can")
            return [{name: value for name, value in moment.items() if name not in names} for moment in moments]


        # The moments of each comparison, and its token.
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
            equal(plain(many["collections"]), [entity for entity in expected if entity["estimatedAssetCount"] > 1])
            latest = collections(viewer, type="moment", sort=[{"key": "endDate", "ascending": False}], limit=2)
            equal([entity["endDate"] for entity in latest["collections"]],
                  sorted((entity["endDate"] for entity in expected), reverse=True)[:2])
            smart = collections(owner, type="smartAlbum")["collections"]
            for album in smart:
                album.pop("keyAsset", None)
            equal(collections(viewer, type="smartAlbum")["collections"], smart)
            equal({entity["id"] for entity in collections(viewer)["collections"]},
                  {entity["id"] for entity in smart + expected})
            owners = collections(owner, type="moment")["collections"]
            known = {entity["id"] for entity in expected}
            named = collections(viewer, ids=[entity["id"] for entity in owners[::-1]])["collections"]
            equal(plain(named), plain(sorted(
                expected, key=lambda entity: [other["id"] for other in owners[::-1]].index(entity["id"]))))
            for collection in [*smart, *owners]:
                fetch = {"kind": "assets", "in": collection["id"]}
                if collection["id"] not in known and collection["type"] == "moment":
                    for method, params in (("fetch.assets", {"fetch": fetch}), ("fetch.counts", {"fetches": [fetch]}),
                                           ("fetch.find", {"fetch": fetch, "ids": sorted(listed)}),
                                           ("fetch.objects", {"fetch": fetch, "at": [0]}),
                                           ("fetch.keyAssets", {"collection": collection["id"]}),
                                           ("fetch.observe", {"fetch": fetch})):
                        service = "broker" if method == "fetch.observe" else "catalog"
                        equal((method, viewer.refusal(service, method, **params)), (method, "identifier_not_found"))
                    equal(viewer.call("catalog", "fetch.can", ids=[collection["id"]])["can"], {})
                    continue
                expected_assets = [a for a in stripped(assets(**{"in": collection["id"]})) if a["id"] in listed]
                equal(stripped(assets(viewer, **{"in": collection["id"]})), expected_assets)
                equal(viewer.call("catalog", "fetch.counts", fetches=[fetch])["counts"], [len(expected_assets)])
                covers = stripped(viewer.call("catalog", "fetch.keyAssets", collection=collection["id"])["assets"])
                equal(covers, expected_assets[:3])
                equal(list(viewer.call("catalog", "fetch.can", ids=[collection["id"]])["can"]), [collection["id"]])
                live = viewer.call("broker", "fetch.observe", fetch=fetch)
                equal(live["count"], len(expected_assets))
                viewer.call("broker", "fetch.unobserve", observation=live["observation"])


        def observed_moments():
            """Moments of the view and their lists are observed as they are fetched: with counts and dates of its assets."""
            known = sorted(id for id, asset in everything(owner).items() if "trashedDate" not in asset)[:4]
            day = 19_900 * DAY
            common_values = {"isHidden": False, "location": None}
            for number, id in enumerate(known):
                owner.perform({"type": "asset.update", "id": id, "set": {
                    "creationDate": day + number * 1_000_000, **common_values}})
            a, b, c, other = known
            limit("set", [a, b])
            every = {entity["id"]: entity for entity in collections(owner, type="moment")["collections"]}
            moment = collections(owner, containing=a, type="moment")["collections"][0]["id"]
            year = next(entity["id"] for entity in lists(viewer, subtype="momentListYear")["lists"])
            shapes = {"moments": {"kind": "collections", "type": "moment"}, "lists": {"kind": "lists", "type": "momentList"},
                      "children": {"kind": "children", "in": year},
                      "assets": {"kind": "assets", "in": moment}, "below": {"kind": "assets", "in": year}, "all": {"kind": "collections"},
                      "several": {"kind": "collections", "type": "moment", "predicate": "estimatedAssetCount > 1"}}
            observed = {name: Observed(shape) for name, shape in shapes.items()}

            def facts():
                """Returns the moments of the view and their lists, by identifier."""
                found = collections(viewer)["collections"] + lists(viewer)["lists"]
                return {entity["id"]: bare(entity) for entity in found}

            def bare(entity):
                return entity and {name: value for name, value in entity.items() if not name.startswith("can")}

            def objects_agree(before, token):
                """Checks that `changes.details` has the states of the fetches, with a revision for each state."""
                ids, after = sorted({moment, *cluster_and_year, *before}), facts()
                found = viewer.call("catalog", "changes.details", **{"from": token}, ids=ids).get("objects", [])
                changed = {entity["id"]: (bare(entity.get("before")), bare(entity.get("after"))) for entity in found}
                expected = {id: (before.get(id), after.get(id)) for id in ids if before.get(id) != after.get(id)}
                equal(changed, expected)
                for id in before.keys() & after.keys():
                    other = [{name: value for name, value in state[id].items() if name != "revision"}
                             for state in (before, after)]
                    equal(before[id]["revision"] == after[id]["revision"], other[0] == other[1])
                return after

            def step(what, *requests):
                """Performs a change and returns the changes that each observed fetch reports."""
                if requests:
                    owner.perform(*requests)
                view["facts"] = objects_agree(view["facts"], view["token"])
                view["token"] = viewer.call("catalog", "changes.token")["token"]
                reported = {}
                for name, observation in observed.items():
                    reply = observation.follow()
                    observation.check()
                    details = reply.get("details", {})
                    reported[name] = {kind: [item["id"] for item in details[kind]] for kind in
                                  ("removed", "inserted", "changed") if details.get(kind)}
                    if reply.get("objectWasDeleted"):
                        reported[name]["deleted"] = True
                return {name: changes for name, changes in reported.items() if changes}

            def update(id, **values):
                return {"type": "asset.update", "id": id, "set": values}

            cluster_and_year = {entity["id"] for entity in lists(viewer)["lists"]}
            equal(len(cluster_and_year), 2)
            view = {"facts": facts(), "token": viewer.call("catalog", "changes.token")["token"]}
            equal(step("a favorite", update(a, isFavorite=True, rating=3)),
                  {"assets": {"changed": [a]}, "below": {"changed": [a]}})
            equal(step("an asset of the moment that is not on the list", update(other, creationDate=day + 5)), {})
            everywhere = {"moments": {"changed": [moment]}, "children": {"changed": [moment]}, "all": {"changed": [moment]}}
            reported = step("a later end", update(b, creationDate=day + 7_000_000))
            equal(set(reported.pop("lists")["changed"]), cluster_and_year)
            equal(reported, {**everywhere, "several": {"changed": [moment]}, "assets": {"changed": [b]},
                             "below": {"changed": [b]}})
            reported = step("one asset less, between the dates", update(a, isHidden=True))
            equal(reported["several"], {"removed": [moment]})
            equal(reported["moments"], {"changed": [moment]})
            reported = step("and again", update(a, isHidden=False))
            equal(reported["several"], {"inserted": [moment]})
            limit("add", [c])
            equal({name: changes for name, changes in step("widened").items() if name != "lists"},
                  {**everywhere, "several": {"changed": [moment]}, "assets": {"inserted": [c]}, "below": {"inserted": [c]}})
            reported = step("another day", update(a, creationDate=day + DAY))
            equal(len(reported["moments"]["inserted"]), 1)
            equal(reported["moments"]["inserted"], reported["children"]["inserted"])
            equal((reported["assets"], reported["below"]), ({"removed": [a]}, {"changed": [a]}))
            step("back", update(a, creationDate=day))
            token = observed["moments"].token
            limit("set", [])
            reported = step("narrowed to nothing")
            equal(reported["moments"], {"removed": [moment]})
            equal(set(reported["lists"]["removed"]), cluster_and_year)
            equal(reported["children"], {"removed": [moment], "deleted": True})
            for name in ("assets", "below"):
                equal((set(reported[name]["removed"]), reported[name]["deleted"]), ({a, b, c}, True))
            for service, method, list in (("catalog", "fetch.collections", year),
                                          ("broker", "fetch.observe", year[:-2] + "zz")):
                shape = {"kind": "children", "in": list}
                equal((shape, viewer.refusal(service, method, fetch=shape)), (shape, "identifier_not_found"))
            details = viewer.call("catalog", "changes.details", **{"from": token}, fetch=shapes["lists"])["details"]
            equal({removal["id"] for removal in details["removed"]}, cluster_and_year)
            now = viewer.call("catalog", "changes.token")["token"]
            difference = viewer.call("catalog", "details.diff", **{
                "from": {"fetch": shapes["lists"], "token": token}, "to": {"fetch": shapes["lists"], "token": now}})
            equal(difference["details"], details)
            limit("set", [a, b])
            reported = step("widened again")
            equal(reported["moments"], {"inserted": [moment]})
            equal(reported["children"], {"inserted": [moment]})
            equal(set(reported["assets"]["inserted"]), {a, b})
            # A restarted broker requests earlier records from the catalog.
            kill("broker", viewer)
            owner.perform(update(b, creationDate=day + 9_000_000))
            equal(step("killed")["moments"], {"changed": [moment]})
            for shape in ({"kind": "collections", "containing": a}, {"kind": "children"}):
                equal((shape, viewer.refusal("broker", "fetch.observe", fetch=shape)), (shape, "access_denied"))


        NOT_FOUND = {"error": "identifier_not_found", "code": 3201}


        def compare_cloud_identifiers(listed):
            unknown = "a" + "0" * 26
            # The other album's identifier must not be in any reply; replies repeat the requested identifiers.
            albums = [entity["id"] for entity in collections(owner, type="album")["collections"]
                      if entity["title"] == "named"]
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
