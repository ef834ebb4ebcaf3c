// Package page is what all pages of the console share: how a page is declared, how it asks
// Skein, its layout, its live panels, forms, errors and sessions. The pages themselves are in
// package console.
//
// # How a page is made
//
// A page is one Go file and one template. The file has a [Page], a row that says everything
// about it, and a function that loads what the template shows:
//
//	func runs() page.Page {
//		return page.Page{
//			Path: "/runs", Name: "Runs", In: page.Navigation, Template: "runs",
//			JSON: "/api/runs", CLI: "skein run list",
//			Panels: []page.Panel{{ID: "run-list", On: []string{"execution.*"}, Load: loadRuns}},
//		}
//	}
//
// The template defines "runs", which has {{.Panel "run-list"}} where the panel goes, and
// "run-list", which shows what loadRuns returns as .Data. A change is an [Action]: a form of
// the page posts to it, and it answers with a redirect.
//
// # What it promises
//
//   - A page asks through the [Ask], whose client acts as the request's principal. There
//     is no other way to a tenant's data, so that the console can do nothing that the
//     principal may not.
//   - A page that a principal may not see is neither linked nor shown. A link is a comfort;
//     the client's guard decides.
//   - Everything can be read without JavaScript. With it, a panel is replaced, and a row is
//     added, when an event of its types is committed; after a lost connection nothing is
//     missing.
//   - Scripts and styles come from this origin only, as the Content-Security-Policy says:
//     nothing inline, nothing of others, no frames around the console.
//   - An action is done only for a page of the same origin.
//   - What templates show is escaped by html/template. A function that returns a template.HTML
//     vouches for it.
//
// # What it does not
//
// It has no state: sessions are the edge's. It knows no command and no query but thread.get, for
// the head of a thread's tabs.
package page
