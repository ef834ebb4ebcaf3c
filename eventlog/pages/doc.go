// Package pages reads the pages of histories: items of a thread, as many as fit into a page,
// which any number of threads inherit.
//
// # What it promises
//
//   - A page is the bytes that its digest names, or an error: events.Unavailable, with the digest
//     and the cause.
//   - A page that was stored before it was named is found, on every process: where a copy of the
//     store lags, its leader is asked.
//   - Pages read last are kept in memory, [CacheBytes] of them at most.
//
// # What it does not
//
// It stores no pages: package files does, as it stores all contents. It does not know which
// thread names a page, and so returns it to any caller.
//
// # What may enter
//
// What reads pages. It knows digests and items, and neither threads nor read models.
package pages
