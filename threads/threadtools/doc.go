// Package threadtools reads and finds threads for a model: it is what the tools read_thread
// and find_thread do, whether a run calls them or an MCP client.
//
// # What it promises
//
//   - An answer is bounded, however large the thread is, and says where the next one begins:
//     nothing is lost between two pages, not even within one message.
//   - For a run it reads threads of the same user only. Any other thread is not_found, in the
//     same words as one that does not exist.
//   - A read that another thread makes is recorded on both threads as a mention, once for each
//     pair, after the access was checked. If the mention is refused, the answer says why.
//   - Messages are data: each is a JSON value of its own, or quoted line by line, so that no
//     text looks like another message or like a part of the answer.
//
// # What it does not
//
// It has no index of texts. Find compares words with what lists show: title, key, id, agent,
// tags and repositories. It does not know what a text means, and does not shorten it in other
// words.
package threadtools
