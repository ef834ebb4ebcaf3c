// Package openresponses converts items of a thread to items of Open Responses, the protocol of
// model endpoints, and back.
//
// # What it promises
//
//   - [Form].Write with Exact loses nothing: [Read] restores the items of the thread unchanged,
//     whatever they hold.
//   - [Read] keeps fields and types of items that a thread does not have, and Write returns them
//     as they were as long as the item is unchanged.
//   - An invalid item is an invalid_request that names its index and the path in it.
//
// # What it does not
//
// It does no I/O, and does not know endpoints, responses or streams: package runtime/model
// calls models with it. It imports package events and nothing else of Skein.
package openresponses
